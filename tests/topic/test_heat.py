"""Warm sweeps early in burn-in: when they cool down, and that what is kept is exact."""

import numpy as np
import pytest

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.topic._counts.collapsed_chain import CollapsedTopicChain
from sk_sgmcmc.topic._counts.heat import first_temperature
from tests.cases import THRESHOLD, z_scores
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
    assert seen[0] == pytest.approx(1.4) and np.all(np.diff(seen) <= 0.0)
    if n_warm > 3:
        np.testing.assert_allclose(np.diff(seen[: n_warm + 1]), -0.4 / n_warm)


def test_many_topics_begin_cooler():
    first = [first_temperature(n_topics) for n_topics in (1, 2, 20, 100, 500)]
    assert first[0] == first[1] == 1.4 and np.all(np.diff(first[2:]) < 0.0) and first[-1] > 1.1


def test_nothing_is_warm_without_burn_in():
    assert np.all(recorded(BayesianLDA(4, n_iter=6, burn_in=0)) == 1.0)


def test_a_dmr_and_the_steps_of_scir_stay_cool():
    assert np.all(recorded(DMRTopicModel(4, n_iter=10), metadata=np.ones((60, 1))) == 1.0)
    assert np.all(recorded(BayesianLDA(4, sampler="scir", n_iter=10)) == 1.0)


class Warm(CollapsedTopicChain):
    """Mistake: the kept phase is warm too."""

    def _temperature(self):
        return 1.2


def z_of(seed, make):
    chain = make_chain(seed, 1.0, N_STEPS + 200, make=make)
    chain.doc_prior.bears_heat = True
    values = statistics(chain.run(N_STEPS + 200).draws()["components"])
    return np.abs(z_scores(batch_means(values), exact_law())).max()


def test_what_is_kept_has_the_exact_law(global_random_seed):
    assert z_of(global_random_seed, CollapsedTopicChain) < THRESHOLD


def test_warm_kept_sweeps_are_rejected(global_random_seed):
    assert z_of(global_random_seed, Warm) > 1.3 * THRESHOLD
