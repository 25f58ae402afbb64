"""Chains side by side on Ray, through joblib. Collected where Ray is installed, see conftest.py."""

import joblib
import pytest
import ray
from ray.util.joblib import register_ray

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_lda
from tests.common.compare import assert_same_draws


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        # Its processes would wait for all others of the machine, and write to the home folder.
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
        register_ray()
        yield
        ray.shutdown()


def test_chains_on_ray_make_the_same_draws(cluster):
    counts = make_lda(n_samples=60, n_features=40, n_components=3, random_state=0).counts
    arguments = {"n_components": 3, "n_iter": 20, "n_chains": 3, "random_state": 0}
    here = BayesianLDA(**arguments).fit(counts)
    with joblib.parallel_config("ray"):
        there = BayesianLDA(**arguments, n_jobs=2).fit(counts)
    assert_same_draws(here, there)
