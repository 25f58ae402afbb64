"""Every page of the gallery and every long script runs; pages in a small setting, as the docs build runs them whole."""

import ast
import os
import runpy
import subprocess
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

# What is replaced in a page to make it small. A page that is not here runs as it is.
SMALLER = {
    "plot_bias_order.py": [("SHARE = 0.5", "SHARE = 0.01")],
    "plot_circle.py": [("SHARE = 1.0", "SHARE = 0.01")],
    "plot_vmf_posterior.py": [("SHARE = 1.0", "SHARE = 0.01")],
    "plot_coefficients.py": [("n_chains=2,", "n_chains=2, n_iter=400,")],
    "plot_credible_ellipses.py": [("N_SETS = 200", "N_SETS = 5")],
    "plot_banana.py": [("SHARE = 1.0", "SHARE = 0.01")],
    "plot_abstracts.py": [("n_iter=60", "n_iter=6"), ("every=5", "every=2")],
    "plot_neural_network.py": [
        ("10, (100, 300, 1000)", "3, (2, 4)"),
        ("max_iter=3000", "max_iter=20"),
        ("n_iter=6000", "n_iter=200"),
        ("burn_in=1000", "burn_in=10"),
    ],
    "plot_own_density.py": [("SHARE = 1.0", "SHARE = 0.05")],
    "plot_many_rows.py": [("2_000_000", "40_000")],
    "plot_mixture_density.py": [("N_ITER = 2000", "N_ITER = 200")],
    "plot_stream.py": [("N_ROWS, N_BLOCKS = 20_000, 8", "N_ROWS, N_BLOCKS = 2_000, 2")],
    "plot_blocks.py": [
        ("load_docstrings().counts", "load_docstrings().counts[::5]"),
        ("n_components=20, n_iter=60", "n_components=4, n_iter=12"),
        ("step == 40", "step == 7"),
    ],
    "plot_truncated_gaussian.py": [("SHARE = 1.0", "SHARE = 0.02")],
    "plot_matrix_completion.py": [("SHARE = 1.0", "SHARE = 0.05")],
    "plot_product_of_manifolds.py": [("SHARE = 1.0", "SHARE = 0.02")],
    "plot_sam_sotu.py": [
        ('"n_iter": 160', '"n_iter": 5'),
        ('"n_iter": 60', '"n_iter": 5'),
        ("rows[1::120]", "rows[1::1000]"),
    ],
    "plot_sam_docstrings.py": [("SHARE = 1.0", "SHARE = 0.15")],
    "plot_vmf_clusters.py": [("SEEDS = range(5)", "SEEDS = range(1)"), ("N_ITER = 200", "N_ITER = 4")],
    "plot_dmr_two_effects.py": [("N_DOCUMENTS, N_ITER = 1500, 800", "N_DOCUMENTS, N_ITER = 300, 20")],
    "plot_dmr_docstrings.py": [("N_TOPICS, N_ITER = 20, 150", "N_TOPICS, N_ITER = 20, 4")],
    "plot_dmr_formula.py": [("20, 150", "6, 10")],
    "plot_dmr_planted.py": [("N_SETS = 100", "N_SETS = 2"), ("n_iter=600", "n_iter=20")],
    "plot_dmr_sotu.py": [("20, 700, 100", "6, 700, 10")],
    "plot_docstrings.py": [("random_state=0).fit(X_train)", "n_iter=6, random_state=0).fit(X_train)")],
    "plot_gamma_process.py": [
        ("STRIDE, N_ITER = 3, 60", "STRIDE, N_ITER = 20, 6"),
        ('["scir", "gibbs", "sghmc", "sgnht-em", "sg-nphmc-em", "sgr-nphmc"]', '["scir", "sghmc"]'),
    ],
    "plot_grid_search.py": [("n_iter=150", "n_iter=4"), ("n_folds = 4", "n_folds = 2"), ("n_jobs=2", "n_jobs=1")],
    "plot_visitors.py": [("range(2), 400, 200, 40, 20", "range(2), 400, 40, 10, 5")],
    "plot_survey_missing.py": [("n_iter=800", "n_iter=10")],
    "plot_survey_analyst.py": [("N_CUSTOMERS, N_ITER = 6000, 400", "N_CUSTOMERS, N_ITER = 1500, 40")],
    "plot_births_and_deaths.py": [
        ("np.zeros((20, 3))", "np.zeros((13, 3))"),
        ("range(12, 20)", "range(12, 13)"),
        ("range(6, 20)", "range(6, 13)"),
    ],
    "plot_sparse_dirichlet.py": [
        ("range(5, 10)", "range(5, 6)"),
        ("(1.0, 0.5, 0.1, 0.05, 0.01, 0.005, 0.001)", "(0.1,)"),
        ("(0.5, 0.1, 0.05, 0.01, 0.005, 0.001, 1e-4)", "(0.005,)"),
    ],
    "plot_topic_explorer.py": [("N_ITER, STRIDE = 150, 1", "N_ITER, STRIDE = 8, 8")],
    "plot_topic_pictures.py": [("N_ITER = 80", "N_ITER = 4"), ("shape[0], 3)", "shape[0], 40)")],
    "plot_streaming.py": [("n_blocks, change = 16, 8", "n_blocks, change = 4, 2")],
}


def run(path, folder):
    """Run a script in a folder, in a process of its own; returns what it printed."""
    result = subprocess.run([sys.executable, str(path)], cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture
def checkout_first(monkeypatch):
    """Let processes that a test starts find this checkout."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(EXAMPLES.parent), os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def run_here(checkout_first, monkeypatch, capsys):
    """Run a script in this process, as the gallery does, which spares it the imports; returns what it printed."""

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
    assert set(SMALLER) <= {page.name for page in PAGES}


def smaller(page, folder):
    """A copy of a page in a folder, with small settings."""
    text = page.read_text(encoding="utf-8")
    for whole, small in SMALLER.get(page.name, []):
        assert text.count(whole) == 1, f"{whole!r} is no longer in {page.name}: say here how to make it small"
        text = text.replace(whole, small)
    copy = folder / page.name
    copy.write_text(text, encoding="utf-8")
    return copy


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != FIRST], ids=lambda page: page.name)
def test_page_runs(page, run_here, tmp_path, importorskip):
    matplotlib = importorskip("matplotlib")
    importorskip("pandas")
    if "formula=" in page.read_text(encoding="utf-8"):
        importorskip("formulaic")
    if "dask" in page.read_text(encoding="utf-8"):
        importorskip("distributed")
    with matplotlib.rc_context():
        run_here(smaller(page, tmp_path), tmp_path)


def test_first_command_of_readme_keeps_its_promise(checkout_first, tmp_path, importorskip):
    importorskip("matplotlib")
    importorskip("pandas")
    (page,) = (page for page in PAGES if page.name == FIRST)
    assert "perplexity" in run(smaller(page, tmp_path), tmp_path)
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
    page = definitions_of(EXAMPLES / "simplex" / "plot_sparse_dirichlet.py")
    sampler = page[name](step_size)
    assert step_size in [each.step_size for each in page["SAMPLERS"][name]]
    expected = page["REFERENCE"][posterior, name][page["BATCH_SIZES"].index(batch_size)]
    assert np.isclose(page["mean_distance"](posterior, sampler, batch_size), expected, rtol=0, atol=0.03)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.name}")
def test_script_has_a_short_setting(script, run_here, tmp_path, importorskip):
    if script.name == "transform_blocks.py":
        importorskip("dask")
    assert run_here(script, tmp_path, "--smoke").strip(), "it prints nothing"


@pytest.mark.parametrize("script, arguments", [("dmr.py", ["--part", "peer"]), ("lda_transform.py", [])])
def test_benchmark_without_its_data_says_what_to_do(script, arguments, run_here, tmp_path, monkeypatch):
    def no_network(**params):
        raise OSError("no network")

    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.delenv("SK_SGMCMC_DATA", raising=False)
    monkeypatch.setattr("sk_sgmcmc.datasets._fetch.fetch_20newsgroups", no_network)
    with pytest.raises(AssertionError, match=r"SK_SGMCMC_DATA.*comes with the package"):
        run_here(EXAMPLES / "benchmarks" / script, tmp_path, *arguments)


def test_benchmark_of_lda_goes_on_where_it_stopped(run_here, tmp_path):
    script, results = EXAMPLES / "benchmarks" / "lda.py", tmp_path / "curves.jsonl"
    whole = run_here(script, tmp_path, "--smoke", "--results", str(results))
    curves = results.read_text(encoding="utf-8").splitlines(keepends=True)
    results.write_text("".join(curves[:-1]), encoding="utf-8")
    rest = run_here(script, tmp_path, "--smoke", "--results", str(results))
    assert results.read_text(encoding="utf-8").startswith("".join(curves[:-1]))
    assert len(results.read_text(encoding="utf-8").splitlines()) == len(curves)
    assert rest.splitlines()[-1] == whole.splitlines()[-1]


def test_every_pair_is_calibrated():
    study = definitions_of(EXAMPLES / "reproduce" / "calibration.py")
    estimators = [each for each in map(vars(sk_sgmcmc).get, sk_sgmcmc.__all__) if isinstance(each, type)]
    pairs = {each.__name__: names_fitting(each._offers) for each in estimators}
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
