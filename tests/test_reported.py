"""Every fault that the first users reported, and those who tried to break the package: one test each.

Faults of other processes, full disks and damaged caches are not tried again here, but in ``tests/faults``,
``tests/test_callbacks.py`` and ``tests/kernels/test_jit.py``.

Uses the public interface alone and nothing of the other tests, so it runs on any commit:
``pytest --noconftest tests/test_reported.py``. What each mended part promises in detail, its own tests hold.
"""

import contextlib
import signal
import subprocess
import sys
import textwrap
import warnings

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sk_sgmcmc import (
    BayesianGaussian,
    BayesianLDA,
    BayesianLogisticRegression,
    DMRTopicModel,
    DPCategoricalMixture,
    sample,
)
from sk_sgmcmc.callbacks import Checkpoint
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.targets import Density

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="signals and limits of Linux")
PARTS = {
    "rows": "import numpy as np; rng = np.random.default_rng(0); X = rng.normal(size=(400, 5)); y = X[:, 0] > 0",
    "logistic": "from sk_sgmcmc import BayesianLogisticRegression",
}


def child(code, **options):
    """A process that runs code; its last words are on its standard output."""
    code = "\n".join([*PARTS.values(), textwrap.dedent(code)])
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], **pipes, **options)


def said_by(code, **options):
    """The last words of a process that runs code and must end well."""
    process = child(code, **options)
    said = process.communicate(timeout=300)[0]
    assert process.returncode == 0, said[-2000:]
    return said.strip().splitlines()[-1]


def warnings_of(function):
    """What a function returns, and the messages of the warnings that it gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = function()
    return value, [str(each.message) for each in caught if issubclass(each.category, ConvergenceWarning)]


# -- tried as users ------------------------------------------------------------------------------------------------


def poisson(theta, rows, scale, gradient):
    value = 0.0
    for k in range(theta.size):
        value -= 0.5 * theta[k] ** 2 / 100.0
        gradient[k] = -theta[k] / 100.0
    for i in range(rows.shape[0]):
        eta = 0.0
        for k in range(theta.size):
            eta += rows[i, k] * theta[k]
        mean = np.exp(eta)
        value += scale * (rows[i, theta.size] * eta - mean)
        for k in range(theta.size):
            gradient[k] += scale * (rows[i, theta.size] - mean) * rows[i, k]
    return value


def poisson_data():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(20_000), rng.normal(size=(20_000, 3))])
    return X, rng.poisson(np.exp(X @ [0.49, 0.5, 0.3, -0.2])).astype(float)


def test_user_1_minibatches_of_ones_own_density_have_its_spread_or_warn():
    X, y = poisson_data()
    data = np.column_stack([X, y])

    def fit():
        return sample(Density(poisson, dim=4, data=data), "sghmc", batch_size=500, n_chains=2, random_state=0)

    result, said = warnings_of(fit)
    draws = np.asarray(next(iter(result.samples_.values()))).reshape(2, -1, 4)
    mode = draws.mean(axis=(0, 1))
    exact = np.sqrt(np.diag(np.linalg.inv((X * np.exp(X @ mode)[:, None]).T @ X)))
    np.testing.assert_allclose(mode, [0.49, 0.5, 0.3, -0.2], atol=0.03)
    assert said or np.all(np.abs(draws.std(axis=1).mean(axis=0) / exact - 1.0) < 0.15)


def test_user_1_a_gradient_of_the_wrong_sign_is_refused_where_it_is_zero_at_the_start():
    def wrong(theta, rows, scale, gradient):
        gradient[0] = theta[0]
        return -0.5 * theta[0] ** 2

    with pytest.raises(ValueError, match="gradient"):
        sample(Density(wrong, dim=1), n_iter=20, random_state=0)


def test_user_2_chains_that_found_other_topics_warn_and_are_not_averaged():
    counts = make_lda(300, 200, 20, document_length=40, doc_topic_prior=0.05, random_state=0).counts
    model = BayesianLDA(6, n_chains=2, n_iter=60, init="random", random_state=0)
    _, said = warnings_of(lambda: model.fit(counts))
    assert any("topic" in each for each in said)
    draws = np.asarray(model.samples_["components"])
    means = np.sqrt(draws.reshape(2, -1, 6, 200).mean(axis=1))
    away = np.sqrt(1.0 - np.minimum(1.0, (means * np.sqrt(model.components_)).sum(axis=-1)))
    assert away.max(axis=1).min() < 0.1 < np.sqrt(1.0 - (means[0] * means[1]).sum(axis=-1)).max()


def test_user_3_metadata_in_the_place_of_y_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="metadata=M"):
        DMRTopicModel(2, n_iter=10).fit(rng.poisson(1.0, (40, 20)), rng.normal(size=(40, 2)))


def test_user_4_weights_that_are_no_whole_numbers_give_no_cluster_without_rows():
    rng = np.random.default_rng(0)
    segments = np.kron(np.eye(2), np.ones((2, 5))) * 0.8 + 0.1
    rows = (rng.random((400, 10)) < segments[rng.integers(4, size=400)]).astype(float)
    weight = rng.gamma(4.0, 0.25, 400)
    model = DPCategoricalMixture(likelihood="bernoulli", n_iter=60, random_state=0)
    labels = model.fit(rows, sample_weight=weight).predict(rows)
    assert np.bincount(labels, minlength=model.n_clusters_).min() > 0


# -- tried to break ------------------------------------------------------------------------------------------------


def test_break_3_indices_beyond_the_columns_are_refused():
    said = said_by(
        """
        import sk_sgmcmc
        from scipy import sparse
        X = sparse.csr_array(rng.poisson(.3, (60, 40)) * 1.0)
        X.indices[5] = 10**8
        refused = []
        for name in ("SphericalAdmixtureModel", "VonMisesFisherMixture", "BayesianLogisticRegression"):
            try: getattr(sk_sgmcmc, name)(n_iter=10).fit(X, y[:60])
            except ValueError: refused.append(name)
        print(len(refused), "refused")
        """
    )
    assert said == "3 refused"


def test_break_4_the_default_length_of_small_step_samplers_is_enough_or_warns():
    held, n_warnings = [], 0
    for seed in range(6):
        data = make_lda(50, 20, 3, document_length=50, doc_topic_prior=0.5, topic_word_prior=0.5, random_state=seed)
        model = BayesianLDA(
            3, sampler="sgrld", doc_topic_prior=0.5, topic_word_prior=0.5, n_chains=1, random_state=seed
        )
        _, said = warnings_of(lambda model=model, data=data: model.fit(data.counts))
        n_warnings += bool(said)
        draws = np.asarray(model.samples_["components"]).reshape(-1, 3, 20)
        mean = draws.mean(axis=0)
        nearest = [np.linalg.norm(np.sqrt(mean) - np.sqrt(topic), axis=1).argmin() for topic in data.components]
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)[:, nearest]
        large = data.components > 0.02
        held.append(((low <= data.components) & (data.components <= high))[large].mean())
    assert np.mean(held) > 0.7 or n_warnings == 6, held


def test_break_5_an_interrupt_that_is_raised_leaves_the_estimator_as_it_was():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    model = BayesianLogisticRegression(n_iter=50, random_state=0).fit(X, np.where(X[:, 0] > 0, 1, 0))
    before = model.coef_.copy()

    def interrupt(estimator, step):
        raise KeyboardInterrupt

    model.set_params(callbacks=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, np.where(X[:, 0] < 0, "a", "b"))
    np.testing.assert_array_equal(model.classes_, [0, 1])
    np.testing.assert_array_equal(model.coef_, before)
    new = BayesianLDA(2, n_iter=20, callbacks=interrupt)
    with pytest.raises(KeyboardInterrupt):
        new.fit(rng.poisson(1.0, (20, 10)))
    with pytest.raises(NotFittedError):
        new.transform(rng.poisson(1.0, (20, 10)))


def test_break_6_a_flipped_bit_is_found(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    BayesianLogisticRegression(n_iter=60, callbacks=Checkpoint(tmp_path / "m", 0.0)).fit(X, X[:, 0] > 0)
    whole = (tmp_path / "m").read_bytes()
    load = joblib.load
    with contextlib.suppress(ImportError):  # joblib loads in versions without it
        from sk_sgmcmc.callbacks import load_checkpoint as load
    for place in np.linspace(0.3, 0.9, 5):
        damaged = bytearray(whole)
        damaged[int(place * len(whole))] ^= 4
        (tmp_path / "m").write_bytes(damaged)
        with pytest.raises(Exception, match=r"damaged|checksum"):
            load(tmp_path / "m")


@pytest.mark.parametrize("prior", [{"degrees_of_freedom_prior": 1e4}, {"mean_precision_prior": 1e6}])
def test_break_8_strong_priors_do_not_diverge(prior):
    X = np.random.default_rng(5).normal(size=(200, 3))
    assert np.isfinite(BayesianGaussian(random_state=0, **prior).fit(X).mean_).all()


@pytest.mark.parametrize("offset", [1e4, 1.6e9])
def test_break_9_a_column_with_an_offset_keeps_its_effect_or_warns(offset):
    rng = np.random.default_rng(0)
    year = rng.uniform(1990.0, 2020.0, 500)
    y = rng.random(500) < 1.0 / (1.0 + np.exp(-0.3 * (year - 2005.0)))
    model = BayesianLogisticRegression(n_iter=500, random_state=0)
    _, said = warnings_of(lambda: model.fit((year + offset)[:, None], y))
    assert said or 0.2 < float(np.ravel(model.coef_)[0]) < 0.4


@LINUX
def test_break_10_counts_too_many_for_memory_are_refused_by_name():
    said = said_by(
        """
        import resource
        from sk_sgmcmc import BayesianLDA
        BayesianLDA(2, n_iter=2).fit(np.ones((3, 3)))
        resource.setrlimit(resource.RLIMIT_AS, (9 * 2**30, 9 * 2**30))
        try: BayesianLDA(2, n_iter=2).fit(np.full((3, 3), 3e8))
        except ValueError as error: print(str(error).splitlines()[0])
        """
    )
    assert "X" in said.split() and "tokens" in said


def test_break_11_metadata_with_a_column_of_text_in_polars():
    frame = pytest.importorskip("polars").DataFrame({"g": ["u", "v"] * 6})
    counts = np.random.default_rng(0).poisson(1.0, (12, 20))
    assert "g" in str(DMRTopicModel(2, n_iter=10).fit(counts, metadata=frame).metadata_names_)


@LINUX
def test_break_13_an_ignored_interrupt_stays_ignored():
    seen = []
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        look = lambda estimator, step: bool(seen.append(signal.getsignal(signal.SIGINT)))  # noqa: E731
        BayesianLDA(2, n_iter=5, callbacks=look).fit(np.ones((5, 5)))
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen and set(seen) == {signal.SIG_IGN}


def test_break_14_narrow_integers_do_not_overflow():
    counts = np.ones((40, 60))
    assert BayesianLDA(np.int8(3), n_iter=5).fit(counts).components_.shape == (3, 60)
    model = DMRTopicModel(3, n_chains=np.int8(3), n_iter=5).fit(counts, metadata=np.arange(40.0)[:, None])
    assert np.isfinite(model.components_).all()


def test_break_15_an_entry_too_large_is_refused_by_column_and_value():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] > 0
    X[3, 1] = 1e300
    with pytest.raises(ValueError, match=r"(?i)column 1 .*1e\+300"):
        BayesianLogisticRegression(n_iter=50, random_state=0).fit(X, y)


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e8), (1e8, 1.0), (1e8, 1e8)])
def test_break_15_columns_of_any_scale_and_offset_leak_no_warning(offset, scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] > 0
    X[:, 1] = offset + scale * X[:, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Columns 1 and 2 of X have the standard deviations")  # what the prior does
        BayesianLogisticRegression(n_iter=50, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("params", "y", "remedy"),
    [
        ({"n_jobs": 0, "n_chains": 2}, [0, 1] * 10, "-1"),
        ({"n_jobs": 10**20}, [0, 1] * 10, ""),
        ({}, [0, "a"] * 10, "y"),
    ],
)
def test_break_15_what_cannot_be_is_refused_with_its_name(params, y, remedy):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises((ValueError, TypeError), match=rf"{[*params, 'y'][0]}.*{remedy}"):
        BayesianLogisticRegression(n_iter=5, **params).fit(X, np.array(y, dtype=object if not params else None))


def test_break_16_the_layout_of_rows_changes_no_bit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60) > 0
    fits = [
        BayesianLogisticRegression(n_iter=200, random_state=0).fit(rows, y).coef_
        for rows in (np.ascontiguousarray(X), np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2])
    ]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], fits[2])


def test_break_17_balanced_classes_say_what_they_do_to_the_spread():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = np.arange(2000) < 3
    model = BayesianLogisticRegression(class_weight="balanced", n_iter=200, random_state=0)
    with pytest.warns(UserWarning, match="weight"):
        model.fit(X, y)
