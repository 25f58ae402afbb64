"""Every sampler leaves its law, and every broken variant of `tests.cases` is rejected by the same test."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sk_sgmcmc.samplers import SCIR, SGLD, PolynomialDecay
from sk_sgmcmc.samplers._registry import SAMPLERS
from tests.cases import (
    APPROXIMATE,
    CASES,
    ELSEWHERE,
    N_BATCHES,
    THRESHOLD,
    DirichletCells,
    GammaCells,
    run_columns,
    z_scores,
)  # fmt: skip

BROKEN = [pytest.param(case, name, id=f"{key}-{name}") for key, case in CASES.items() for name in case.broken]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_sampler_has_its_law(case, global_random_seed):
    assert np.abs(case.z_scores(global_random_seed)).max() < THRESHOLD


@pytest.mark.parametrize("case, name", BROKEN)
def test_broken_variant_is_rejected(case, name, global_random_seed):
    # Not only above the threshold that lets the right one pass, but away from it.
    assert np.abs(case.z_scores(global_random_seed, case.broken[name])).max() > 1.3 * THRESHOLD


def test_every_sampler_is_in_the_table_and_has_a_broken_variant():
    of_own = {name for name in SAMPLERS if Path(__file__).with_name(f"test_{name.replace('-', '_')}.py").exists()}
    found = {case.sampler._name for case in CASES.values()} | set(ELSEWHERE) | of_own
    missing = set(SAMPLERS) - found
    assert not missing, f"no law test: add tests/samplers/test_<name>.py (hyphens as underscores) for {sorted(missing)}"
    assert found == set(SAMPLERS)


def test_every_file_of_laws_rejects_a_broken_variant():
    # A case without one is refused (`refuse_without_broken`), and pytest fails where it would run a test for none.
    root, tables = Path(__file__).parents[2], {"tests/flat_cases.py"}
    files = {root / file for name, file in ELSEWHERE.items() if name not in APPROXIMATE and file not in tables}
    files |= set(Path(__file__).parent.glob("test_*laws.py"))
    own = {Path(__file__).with_name(f"test_{name.replace('-', '_')}.py") for name in SAMPLERS}
    files |= {path for path in own if path.exists()}
    without = [path.name for path in files if not re.search(r"^def test_\w*reject", path.read_text(), re.MULTILINE)]
    assert not without, f"no test that rejects a broken variant: add one (test_..._is_rejected) to {without}"


@pytest.mark.parametrize("shape", [1e-2, 0.5, 2.0, 10.0])
@pytest.mark.parametrize("h", [0.01, 0.5, 5.0])
def test_scir_leaves_gamma_invariant_from_the_first_step(shape, h, global_random_seed):
    # Many chains begun from the law itself: a wrong transition shows at once, however slowly it mixes.
    target = GammaCells(np.full(4, shape))
    rng = np.random.default_rng(global_random_seed)
    start = target.start(None, 20_000, rng)
    kept, _ = run_columns(SCIR()._kernels("positive"), start, target.shape, 0.0, h, 8, rng, thin=8)
    values = target.batch_means(kept, None, None)
    if shape < 0.05:  # the squares of so skew a law have no normal batch means
        values, exact = values[:, [0, 1, 2, 3, 8, 9, 10, 11]], target.exact()[[0, 1, 2, 3, 8, 9, 10, 11]]
    else:
        exact = target.exact()
    assert np.abs(z_scores(values, exact)).max() < THRESHOLD


def test_scir_at_shape_1e_4_has_the_law_of_log_gamma_without_zeros(global_random_seed):
    # 93% of these draws are 0 in float64; their logarithms are what the simplex is made of.
    shape = np.array([1e-4, 1e-4, 1e-3, 1e-2, 0.04])
    target = GammaCells(shape, geometry="simplex")
    rng = np.random.default_rng(global_random_seed)
    start = target.start(None, 500, rng)
    theta, log_theta = run_columns(SCIR()._kernels("simplex"), start, shape, 0.0, 0.5, 200, rng, thin=2, n_aux=1)
    assert np.all(theta > 0) and np.all(np.isfinite(theta)) and np.all(np.isfinite(log_theta))
    assert np.all(theta.sum(axis=1) > 0)
    assert np.mean(log_theta[:, 0] < np.log(5e-324)) > 0.9
    # log G(a) is -Exp(1)/a up to O(a): its mean and square, in units of 1/a.
    from scipy.special import digamma, polygamma

    scaled = log_theta.mean(axis=0).T * shape, (log_theta**2).mean(axis=0).T * shape**2
    exact = digamma(shape) * shape, (polygamma(1, shape) + digamma(shape) ** 2) * shape**2
    assert np.abs(z_scores(np.hstack(scaled), np.hstack(exact))).max() < THRESHOLD


_DENSER = DirichletCells(np.array([60.0, 50.0, 40.0]), 140.0)  # the natural coordinates overflow on sparser ones
# Where the bias of SGRLD is large against its error: largest step, target, length, time between draws.
BIAS = {
    "sgrld expanded-mean": (0.32, CASES["sgrld expanded-mean"].target, 10_000.0, 0.3),
    "sgrld expanded-natural": (0.04, _DENSER, 5_000.0, 0.1),
    "sgrld reduced-mean": (0.64, CASES["sgrld reduced-mean"].target, 8_000.0, 0.5),
    "sgrld reduced-natural": (0.8, _DENSER, 40_000.0, 0.8),
}


@pytest.mark.parametrize("key", BIAS)
def test_sgrld_bias_is_of_first_order(key):
    h, target, time, every = BIAS[key]
    case = replace(CASES[key], target=target, time=time)
    kernels = case.sampler._kernels("simplex")
    bias, error = [], []
    for size in (h, h / 2, h / 4):
        means = case.batch_means(kernels, size, np.random.default_rng(0), every)
        bias.append(means.mean(axis=0) - target.exact())
        error.append(means.std(axis=0, ddof=1) / np.sqrt(N_BATCHES))
    bias, error = np.array(bias), np.array(error)
    seen = np.all(np.abs(bias) > 10.0 * error, axis=0)
    assert seen.any()
    slopes = np.log2(bias[:-1, seen] / bias[1:, seen])
    # 1 in the limit; a method of second order would show 2 in both halvings.
    assert np.all(np.abs(slopes[-1] - 1.0) < 0.5), slopes
    assert np.all(np.abs(slopes[-1] - 1.0) < np.abs(slopes[0] - 1.0) + 0.3), slopes


def test_scir_keeps_what_sgrld_loses_on_a_sparse_simplex():
    # At the same nominal step, on cells of shape 0.05, SGRLD's Euler step with its mirror gives several times the mean.
    shape = np.array([0.05, 0.05, 5.0])
    rng = np.random.default_rng(0)
    means = {}
    for name, sampler in {"scir": SAMPLERS["scir"](), "sgrld": SAMPLERS["sgrld"]()}.items():
        start = DirichletCells(shape, 0.0).start(SCIR(), N_BATCHES, rng) * 5.1
        kept, _ = run_columns(sampler._kernels("simplex"), start, shape, 0.0, 0.5, 2000, rng, n_aux=1)
        means[name] = kept.mean(axis=(0, 2))
    assert np.all(np.abs(means["scir"] / shape - 1.0) < 0.2)
    assert np.all(means["sgrld"][:2] > 4.0 * shape[:2])


def test_step_sizes_come_from_schedules_and_names_from_the_registry():
    for name, make in SAMPLERS.items():
        sampler = make()
        assert sampler._name == name.removesuffix("-em")
        fitted = sampler._resolved(0.25)
        assert fitted is not sampler
        assert not hasattr(sampler, "step_size_")
        hyper = fitted._hyper(3, 7)
        assert hyper.shape[0] == 4 and hyper.flags["C_CONTIGUOUS"]
        if hasattr(fitted, "step_size_"):
            np.testing.assert_array_equal(hyper[:, 0], 0.25)


def test_schedules_follow_their_equations():
    from sk_sgmcmc.samplers import ConstantStep, CyclicalStep, PolynomialDecay, Schedule

    t = np.arange(50)
    np.testing.assert_array_equal(ConstantStep(0.3)(t), np.full(50, 0.3))
    np.testing.assert_allclose(PolynomialDecay(0.5, 10.0, 0.33)(t), [0.5 * (1 + i / 10) ** -0.33 for i in t])
    cycle = CyclicalStep(0.2, 10, 0.05)
    np.testing.assert_allclose(cycle(t[:10]), cycle(t[10:20]))
    assert cycle(0) == 0.2
    assert np.min(cycle(t)) == pytest.approx(0.2 * 0.05)
    with pytest.raises(TypeError, match="not a schedule"):
        Schedule()(t)


@pytest.mark.parametrize("bad", [0.0, -1.0, "large", None])
def test_bad_step_sizes_are_refused(bad):
    for make in (SAMPLERS["scir"], SAMPLERS["sgrld"], SAMPLERS["exponential-ou"]):
        with pytest.raises(ValueError, match="step_size"):
            make(step_size=bad)._resolved(0.1)


@pytest.mark.parametrize("sizes", [[0.1, 0.0, 0.1], [0.1, -0.1, 0.1], [0.1, np.nan, 0.1], [0.1, np.inf, 0.1], [0.1]])
def test_schedules_whose_step_sizes_are_not_all_positive_numbers_are_refused(sizes):
    from sk_sgmcmc.samplers import Schedule

    class Own(Schedule):
        def __call__(self, step):
            return np.array(sizes)

    with pytest.raises(ValueError, match="a schedule must give a positive number for each"):
        SAMPLERS["sgrld"](step_size=Own())._resolved(0.1)._step_sizes(0, 3)


def test_kernels_are_pickled_by_name():
    import pickle

    for make, geometry in itertools.product((SAMPLERS["scir"], SAMPLERS["exact-dirichlet"]), ("simplex", "positive")):
        for kernel in make()._kernels(geometry):
            assert pickle.loads(pickle.dumps(kernel)) is kernel


def test_an_automatic_step_goes_on_at_the_size_that_the_chain_has_reached():
    present = SGLD(step_size=PolynomialDecay(0.5, 10.0, 1.0))._resolved(None)
    later = SGLD()._resumed_from(present, 30, np.zeros(1))
    assert later.step_size_(0) == later.step_size_(99) == present.step_size_(30) == 0.125
    given = SGLD(step_size=0.01)._resumed_from(present, 30, np.zeros(1))
    assert given.step_size_(0) == 0.01
