import builtins
import gzip
import sys

import numba
import numpy as np
import pytest
from sklearn.utils import Bunch

from sk_sgmcmc.datasets import load_docstrings, make_count_vectorizer


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def data(home):
    return load_docstrings(data_home=home, return_text=True)


def same(a, b):
    assert (a.data != b.data).nnz == 0
    np.testing.assert_array_equal(a.feature_names, b.feature_names)
    assert list(a.metadata["name"]) == list(b.metadata["name"])


def test_it_is_large_and_belongs_to_all_packages(data):
    assert 3500 < data.data.shape[0] < 8000
    assert 400_000 < data.data.sum() < 1_500_000
    assert 3000 < data.data.shape[1] < 10_000
    assert data.target_names == ["numpy", "scipy", "sklearn", "numba", "joblib"]
    sizes = np.bincount(data.target)
    assert sizes[:4].min() > 300
    assert sizes[4] > 30


def test_metadata_belong_to_the_rows(data):
    packages, names = list(data.metadata["package"]), list(data.metadata["name"])
    assert len(packages) == data.data.shape[0] == len(data.text)
    assert packages == [data.target_names[i] for i in data.target]
    assert all(name.split(".")[0] == package for name, package in zip(names, packages, strict=True))
    assert all(name.startswith(module) for name, module in zip(names, data.metadata["module"], strict=True))
    row = names.index("sklearn.linear_model.LogisticRegression")
    assert data.metadata["module"][row] == "sklearn.linear_model"
    assert data.metadata["kind"][row] == "class"
    assert "Logistic Regression" in data.text[row]
    column = list(data.feature_names).index("logistic")
    assert data.data[row, column] >= 1
    assert set(data.metadata["kind"]) == {"module", "class", "function", "method"}


def test_counts_equal_those_of_the_vectorizer(data):
    vectorizer = make_count_vectorizer(min_df=5, ascii_only=True)
    counts = vectorizer.fit_transform(data.text)
    assert (counts != data.data).nnz == 0
    np.testing.assert_array_equal(vectorizer.get_feature_names_out(), data.feature_names)


def test_no_text_twice_and_none_private(data):
    assert len(set(data.text)) == len(data.text)
    assert not [name for name in data.metadata["name"] if any(part.startswith("_") for part in name.split("."))]
    assert not {"tests", "testing", "experimental", "externals"} & {
        part for name in data.metadata["name"] for part in name.split(".")[:-1]
    }


def test_order_is_by_package_and_name(data):
    names = np.array(data.metadata["name"], dtype=str)
    for package in range(5):
        part = names[data.target == package].tolist()
        assert part == sorted(part)
    assert np.all(np.diff(data.target) >= 0)


def test_the_cache_gives_the_same_and_a_damaged_one_is_rebuilt(data, home, monkeypatch):
    from sk_sgmcmc.datasets import _load

    (path,) = home.glob("docstrings-*.json.gz")
    sound = path.read_bytes()
    collected = []
    original = _load._collect
    monkeypatch.setattr(_load, "_collect", lambda names: collected.append(names) or original(names))
    same(load_docstrings(data_home=home), data)
    assert not collected
    for broken in (sound[: len(sound) // 2], b"no archive", gzip.compress(b'{"name": []}'), b""):
        path.write_bytes(broken)
        assert _load._read(path) is None
    same(load_docstrings(data_home=home), data)
    assert len(collected) == 1
    assert _load._read(path) is not None
    assert [p.name for p in home.iterdir()] == [path.name]  # no half-written file left


def test_another_version_is_another_cache(home, monkeypatch):
    from sk_sgmcmc.datasets import _load

    before = set(home.iterdir())
    monkeypatch.setattr(_load, "_version", lambda name: "0.0")
    load_docstrings(["joblib"], min_df=1, data_home=home)
    assert len(set(home.iterdir()) - before) == 1


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path):
    (tmp_path / "file").write_text("in the way")
    data = load_docstrings(["joblib"], min_df=1, data_home=tmp_path / "file")
    assert data.target_names == ["joblib"]
    assert data.data.shape[0] > 30


def test_reading_prints_nothing_and_fails_on_nothing(tmp_path, capsys, monkeypatch):
    """A package whose modules print, warn, leave and raise."""
    package = tmp_path / "noisy_package"
    package.mkdir()
    text = "apple pear plum alpha beta gamma delta words plenty surely counted lines"
    (package / "__init__.py").write_text(f'"""{text} top."""\nprint("hello")\n')
    (package / "leaves.py").write_text("raise SystemExit(1)\n")
    (package / "raises.py").write_text("raise RuntimeError\n")
    (package / "setup.py").write_text("import builtins; builtins._setup_was_run = True\n")
    (package / "good.py").write_text(
        'import warnings\nwarnings.warn("careful", FutureWarning)\n'
        f'def function():\n    """{text} function."""\n'
        f'def _private():\n    """{text} hidden."""\n'
        f'class Class:\n    """{text} class."""\n'
        f'    @staticmethod\n    def method():\n        """{text} method."""\n'
        f'    @property\n    def value(self):\n        """{text} value."""\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    data = load_docstrings(["noisy_package"], min_df=1, max_df=1.0, data_home=tmp_path / "home")
    assert capsys.readouterr() == ("", "")
    assert not hasattr(builtins, "_setup_was_run")
    assert list(data.metadata["name"]) == [
        "noisy_package",
        *(f"noisy_package.good.{name}" for name in ("Class", "Class.method", "Class.value", "function")),
    ]
    assert list(data.metadata["kind"]) == ["module", "class", "method", "method", "function"]
    for name in [name for name in sys.modules if name.startswith("noisy_package")]:
        del sys.modules[name]


def test_without_pandas_metadata_is_a_bunch(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    metadata = load_docstrings(data_home=home).metadata
    assert isinstance(metadata, Bunch)
    assert metadata.name.shape == metadata.package.shape


def test_a_package_without_docstrings_is_named(tmp_path, monkeypatch):
    (tmp_path / "silent_module.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"no public docstring.*name others"):
        load_docstrings(["silent_module"], data_home=tmp_path / "home")
    sys.modules.pop("silent_module", None)


def test_bad_arguments_are_named(home):
    with pytest.raises(ValueError, match=r"not installed.*no_such_package"):
        load_docstrings(["no_such_package"], data_home=home)
    with pytest.raises(ValueError, match="packages is empty"):
        load_docstrings([], data_home=home)
    with pytest.raises(ValueError, match="lower min_df"):
        load_docstrings(min_df=10**6, data_home=home)


def test_numba_still_compiles_after_its_modules_were_read(data):
    # Its version 0.61 does not once one of its modules named new_ has been imported.
    assert numba.njit(lambda pair: pair[0] + 1)((1, 2)) == 2
