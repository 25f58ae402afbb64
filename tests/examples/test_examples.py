"""What pages of the gallery and long scripts promise, beyond running, which the build of the documentation and
``.ci/smoke.py`` let them do.
"""

import ast
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import sk_sgmcmc
from sk_sgmcmc.samplers._registry import names_fitting

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PAGES = sorted(EXAMPLES.rglob("plot_*.py"))
SCRIPTS = sorted(
    path
    for folder in ("reproduce", "benchmarks")
    for path in (EXAMPLES / folder).glob("*.py")
    if not path.name.startswith("_")
)

FIRST = "plot_docstrings.py"  # README's first command


@pytest.fixture
def run_here(monkeypatch, capsys):
    """Run a script in this process, which spares it the imports; returns what it printed."""

    def run_here(path, folder, *arguments):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        monkeypatch.syspath_prepend(path.parent)
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            assert not end.code, end.code
        return capsys.readouterr().out

    before = set(sys.modules)
    yield run_here
    for name in set(sys.modules) - before:  # modules beside a script, and figures that it left open
        if str(EXAMPLES) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def is_definition(node):
    """Whether a statement imports, defines a function, or sets a constant with a name in capitals."""
    if isinstance(node, ast.Assign):
        return all(name.id.isupper() for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name))
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)


def definitions_of(page):
    """Names that a page defines, without running the rest of it."""
    tree = ast.parse(page.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if is_definition(node)]
    namespace = {}
    exec(compile(tree, str(page), "exec"), namespace)
    return namespace


def test_there_is_something_to_run():
    assert len(PAGES) >= 4
    assert SCRIPTS


def test_first_command_of_readme_keeps_its_promise(run_here, tmp_path, importorskip):
    importorskip("matplotlib")
    importorskip("pandas")
    (page,) = (page for page in PAGES if page.name == FIRST)
    text, whole = page.read_text(encoding="utf-8"), "random_state=0).fit(X_train"
    assert text.count(whole) == 1
    copy = tmp_path / page.name
    copy.write_text(text.replace(whole, f"n_iter=6, {whole}"), encoding="utf-8")
    assert "perplexity" in run_here(copy, tmp_path)
    assert (tmp_path / "output" / "topics.png").stat().st_size > 10_000
    header, *rows = (tmp_path / "output" / "topics.csv").read_text(encoding="utf-8").splitlines()
    assert {"topic", "word", "probability", "low", "high"} <= set(header.split(","))
    assert len(rows) == 30 * 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs_on_data_that_everyone_has(page):
    """Other data under the same title would leave its conclusion without support."""
    assert "fetch_" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_asks_a_question_and_ends_with_its_answer(page):
    text = page.read_text(encoding="utf-8")
    title = ast.get_docstring(ast.parse(text)).splitlines()[0]
    assert title.endswith("?")
    assert "# **" in text.rsplit("plt.show()", 1)[1], "one sentence of conclusion, in bold, after the figure"
    if page.parent.name == "recipes":
        assert text.count("plt.show()") >= 1, "at least one figure"
    else:
        assert text.count("plt.show()") == 1, "one figure"


@pytest.mark.parametrize(
    "posterior, name, batch_size, step_size",
    [
        ("sparse", "SCIR", 500, 0.5),
        ("sparse", "SCIR", 1, 0.1),
        ("sparse", "SGRLD", 500, 0.0025),
        ("sparse", "SGRLD", 10, 0.0025),
        ("dense", "SCIR", 500, 0.1),
        ("dense", "SGRLD", 500, 0.0025),
    ],
)
def test_distances_on_the_simplex_are_those_of_the_reference(posterior, name, batch_size, step_size):
    page = definitions_of(EXAMPLES / "studies" / "plot_sparse_dirichlet.py")
    sampler = page[name](step_size)
    assert step_size in [each.step_size for each in page["SAMPLERS"][name]]
    expected = page["REFERENCE"][posterior, name][page["BATCH_SIZES"].index(batch_size)]
    assert np.isclose(page["mean_distance"](posterior, sampler, batch_size), expected, rtol=0, atol=0.03)


@pytest.mark.parametrize("script, arguments", [("dmr.py", ["--part", "peer"]), ("topics.py", ["--part", "transform"])])
def test_benchmark_without_its_data_says_what_to_do(script, arguments, run_here, tmp_path, monkeypatch):
    def no_network(**params):
        raise OSError("no network")

    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.delenv("SK_SGMCMC_DATA", raising=False)
    monkeypatch.setattr("sk_sgmcmc.datasets._fetch.fetch_20newsgroups", no_network)
    with pytest.raises(AssertionError, match=r"SK_SGMCMC_DATA.*comes with the package"):
        run_here(EXAMPLES / "benchmarks" / script, tmp_path, *arguments)


def test_comparison_of_topic_models_goes_on_where_it_stopped(run_here, tmp_path):
    script, results = EXAMPLES / "benchmarks" / "topics.py", tmp_path / "topics.jsonl"
    arguments = ["--smoke", "--part", "perplexity", "own", "--results", str(results)]
    whole = run_here(script, tmp_path, *arguments)
    records = results.read_text(encoding="utf-8").splitlines(keepends=True)
    results.write_text("".join(records[:-1]), encoding="utf-8")
    rest = run_here(script, tmp_path, *arguments)
    assert results.read_text(encoding="utf-8").startswith("".join(records[:-1]))
    assert len(results.read_text(encoding="utf-8").splitlines()) == len(records)
    assert rest == whole


def test_tables_of_topic_models_name_their_command_and_what_is_lost(run_here, tmp_path):
    script, page = EXAMPLES / "benchmarks" / "topics.py", tmp_path / "tables.rst"
    printed = run_here(script, tmp_path, "--smoke", "--part", "perplexity", "--rst", str(page))
    assert "python examples/benchmarks/topics.py --smoke --part perplexity" in printed
    for text in (printed, page.read_text(encoding="utf-8")):
        assert "We lose to:" in text
        assert f"sk-sgmcmc {sk_sgmcmc.__version__}" in text


def test_tables_of_several_runs_name_one_command(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / "benchmarks")
    joined = runpy.run_path(str(EXAMPLES / "benchmarks" / "topics.py"), run_name="topics")["joined"]
    first = "topics.py --part perplexity own --topics 20,100 --most-seconds 300 --programs 'ours;topica, warp'"
    assert joined([first]) == first
    assert joined([first, "topics.py --smoke --part own --topics 20,1000 --most-seconds 1e2 --programs gensim"]) == (
        "topics.py --part perplexity own --topics 20,100,1000 --most-seconds 300 "
        "--programs 'ours;topica, warp;gensim' --smoke"
    )


def test_a_case_that_uses_up_its_time_is_ended(run_here, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / "benchmarks")
    script = runpy.run_path(str(EXAMPLES / "benchmarks" / "topics.py"), run_name="topics")
    monkeypatch.setitem(script["in_child"].__globals__, "STARTING", 0.0)
    assert script["in_child"]({"part": "speed", "kill_after": 0.1}) == {"stopped": 0.1}


def test_every_pair_is_calibrated():
    study = definitions_of(EXAMPLES / "reproduce" / "calibration.py")
    estimators = [each for each in map(vars(sk_sgmcmc).get, sk_sgmcmc.__all__) if isinstance(each, type)]
    pairs = {each.__name__: names_fitting(each._offers) for each in estimators}
    pairs["StructuralTopicModel"] = ["gibbs"]  # Others require content=None, and then it is DMRTopicModel.
    assert {name: sorted(samplers) for name, samplers in study["SAMPLERS"].items()} == pairs
    assert set(study["MODELS"]) == set(pairs)


def test_calibration_makes_some_replicates_of_all_pairs_before_many_of_one():
    study = definitions_of(EXAMPLES / "reproduce" / "calibration.py")
    records = [{"model": "slow", "sampler": "a", "replicate": 1, "seconds": 9.0}]
    order = []
    for model, sampler, i in study["missing"]([("slow", "a"), ("fast", "b")], 30, records):
        records.append({"model": model, "sampler": sampler, "replicate": i, "seconds": 9.0 if model == "slow" else 1.0})
        order.append((model, i))
    assert order[:3] == [("fast", 0), ("fast", 1), ("slow", 0)]
    assert order[3 : 3 + 46] == [(model, i) for model in ("fast", "slow") for i in range(2, 25)]
    assert len(order) == len(set(order)) == 59
