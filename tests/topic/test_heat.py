"""Warm sweeps early in burn-in: when they cool down, and that what is kept is exact."""

import numpy as np
import pytest

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.topic._counts import sweeps as heat
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._counts.document_prior import DocumentPrior
from sk_sgmcmc.topic._counts.start import first_assignments
from sk_sgmcmc.topic._counts.sweeps import CollapsedSweeps, first_temperature, singular_values
from sk_sgmcmc.topic._counts.word_prior import WordPrior
from tests.cases import THRESHOLD, z_scores
from tests.corpora import shard_of, token_corpus
from tests.tiny_lda import batch_means, exact_law, make_chain, statistics

N_STEPS = 8000


class Recorder(Callback):
    """The temperature of each step."""

    def __init__(self):
        super().__init__(1)
        self.temperatures = []

    def __call__(self, estimator, step):
        sweeps = estimator._chains[0].collapsed
        self.temperatures.append(1.0 if sweeps is None else sweeps.temperature)


def recorded(model, *args, **given):
    recorder = Recorder()
    counts = make_lda(60, 40, 4, random_state=0).counts
    model.set_params(callbacks=recorder, random_state=0).fit(counts, *args, **given)
    return np.array(recorder.temperatures)


@pytest.mark.parametrize(("burn_in", "n_warm"), [(1, 1), (2, 2), (3, 2), (30, 18), (200, 60)])
def test_sweeps_cool_down_before_draws_are_kept(burn_in, n_warm):
    seen = recorded(BayesianLDA(4, n_iter=burn_in + 4, burn_in=burn_in))
    assert np.all(seen[:n_warm] > 1.0) and np.all(seen[n_warm:] == 1.0)
    assert np.all(np.diff(seen) <= 0.0)
    if n_warm > 3:
        np.testing.assert_allclose(np.diff(seen[: n_warm + 1]), (1.0 - seen[0]) / n_warm)


def tokens(counts):
    return shard_of(counts)


@pytest.mark.parametrize("shape", [(300, 40), (40, 300)])
def test_singular_values_are_those_of_scaled_counts(shape):
    counts = make_lda(*shape, 4, document_length=80, random_state=0).counts.toarray().astype(float)
    scaled = counts / np.sqrt(counts.sum(axis=1, keepdims=True) * np.maximum(counts.sum(axis=0), 1.0))
    exact = np.linalg.svd(scaled, compute_uv=False)[:6]
    found = singular_values(tokens(counts), 6)
    assert found[0] == pytest.approx(1.0, abs=1e-4) and np.all(found < exact + 1e-4)
    np.testing.assert_allclose(found, exact, rtol=0.07)


def test_singular_values_of_a_sample_are_near_those_of_all(monkeypatch):
    data = tokens(make_lda(2000, 40, 4, document_length=80, random_state=0).counts)
    values = singular_values(data, 4)
    monkeypatch.setattr(heat, "_SAMPLE_TOKENS", 80_000)
    np.testing.assert_allclose(singular_values(data, 4), values, rtol=0.05)


def test_a_topic_melts_where_its_singular_value_says():
    counts = make_lda(400, 60, 2, document_length=150, doc_topic_prior=0.3, random_state=0).counts
    data = tokens(counts)
    critical = 1.0 + float(singular_values(data, 2)[1])

    def contrast(temperature):
        """How far the two topics are apart after sweeps at a temperature, from 0 to 1."""
        rng = np.random.default_rng(0)
        priors = DocumentPrior(np.full(2, 0.3)), WordPrior(0.01, 60, 2)
        z, _ = first_assignments(token_corpus(counts, 2), *priors, "soft", False, rng)
        sweeps = CollapsedSweeps(data, z, np.broadcast_to(0.01, (60, 2)))
        sweeps.temperature = temperature
        for _ in range(200):
            sweeps.sweep(data, 0, data.n_docs, np.full((1, 2), 0.3), data.group, rng)
        shares = sweeps.counts / sweeps.counts.sum(axis=0)
        return np.abs(shares[:, 0] - shares[:, 1]).sum() / 2.0

    cool, cold, hot = (contrast(1.0 + factor * (critical - 1.0)) for factor in (0.7, 0.0, 1.5))
    assert cool > 0.5 * cold and hot < 0.25 * cold


def test_temperatures_hold_for_hardly_any_words():
    assert first_temperature(tokens(np.ones((1, 1))), 5) == 1.4
    assert first_temperature(tokens(np.eye(2)), 5) == 1.4
    assert first_temperature(tokens(np.vstack([np.eye(2), np.zeros((3, 2))])), 2) == 1.4


def test_nothing_is_warm_without_burn_in():
    assert np.all(recorded(BayesianLDA(4, n_iter=6, burn_in=0)) == 1.0)


def test_a_dmr_and_the_steps_of_scir_stay_cool():
    assert np.all(recorded(DMRTopicModel(4, n_iter=10), metadata=np.ones((60, 1))) == 1.0)
    assert np.all(recorded(BayesianLDA(4, sampler="scir", n_iter=10)) == 1.0)


class Warm(CollapsedChain):
    """Mistake: the kept phase is warm too."""

    def _temperature(self):
        return 1.2


def z_of(seed, make):
    chain = make_chain(seed, 1.0, N_STEPS + 200, make=make)
    chain.doc_prior.allows_tempering = True
    values = statistics(chain.run(N_STEPS + 200).draws()["components"])
    return np.abs(z_scores(batch_means(values), exact_law())).max()


def test_what_is_kept_has_the_exact_law(global_random_seed):
    assert z_of(global_random_seed, CollapsedChain) < THRESHOLD


def test_warm_kept_sweeps_are_rejected(global_random_seed):
    assert z_of(global_random_seed, Warm) > 1.3 * THRESHOLD
