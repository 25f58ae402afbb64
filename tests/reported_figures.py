"""What three silent faults gave, and give: prints figures.

    python -m tests.reported_figures

Uses the public interface alone, so it runs on any commit, beside ``test_reported.py``.
The others have scripts for users: ``two_chains.py`` and ``seeded_topics.py`` in ``examples/reproduce``.
"""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import DMRTopicModel, DPCategoricalMixture, sample
from sk_sgmcmc.targets import Density
from tests.test_reported import poisson, poisson_data


def outcome(function):
    """What a function returns or raises, with its ConvergenceWarnings and seconds."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = function()
        except (TypeError, ValueError) as error:
            value = f"{type(error).__name__}: {error}"
    said = [str(each.message) for each in caught if issubclass(each.category, (ConvergenceWarning, UserWarning))]
    return value, said, time.perf_counter() - start


def poisson_by_minibatches():
    X, y = poisson_data()
    data = np.column_stack([X, y])
    target = Density(poisson, dim=4, data=data)
    result, said, _ = outcome(lambda: sample(target, "sghmc", batch_size=500, n_chains=4, random_state=0))
    draws = np.asarray(next(iter(result.samples_.values()))).reshape(4, -1, 4)
    mode = np.array([0.49, 0.5, 0.3, -0.2])
    for _ in range(20):  # Newton
        mean = np.exp(X @ mode)
        mode += np.linalg.solve((X * mean[:, None]).T @ X + np.eye(4) / 100, X.T @ (y - mean) - mode / 100)
    sd = np.sqrt(np.diag(np.linalg.inv((X * np.exp(X @ mode)[:, None]).T @ X)))
    within, between = draws.var(axis=1, ddof=1).mean(axis=0), draws.mean(axis=1).var(axis=0, ddof=1)
    print("Poisson regression, 20,000 rows, minibatches of 500, four chains")
    print("  mean", draws.mean(axis=(0, 1)).round(3), " mode", mode.round(3))
    print("  sd within a chain", np.sqrt(within).round(5), " by the curvature", sd.round(5))
    print("  largest R-hat", np.sqrt(1.0 + between / within).max().round(2), " warnings:", said or "none")


def metadata_as_y():
    rng = np.random.default_rng(0)
    X, M = rng.poisson(1.0, (40, 20)), rng.normal(size=(40, 2))
    for name, arguments in {"fit(X, M)": (X, M), "fit(X)": (X,)}.items():
        value, said, _ = outcome(lambda given=arguments: DMRTopicModel(2, n_iter=20, random_state=0).fit(*given))
        print(f"{name}: {value if isinstance(value, str) else 'fitted'}; warnings: {said or 'none'}")


def survey_weights():
    rng = np.random.default_rng(0)
    segments = np.where(rng.random((4, 12)) < 0.5, 0.1, 0.9)
    planted = rng.integers(4, size=1000)
    rows = (rng.random((1000, 12)) < segments[planted]).astype(float)
    weight = rng.gamma(4.0, 0.25, 1000)
    given_weights = {"whole weights": np.ones(1000), "survey weights": weight}
    for given in given_weights.values():  # compiles
        DPCategoricalMixture(likelihood="bernoulli", n_iter=5).fit(rows[:50], sample_weight=given[:50]).predict(rows)
    for name, given in given_weights.items():
        model = DPCategoricalMixture(likelihood="bernoulli", random_state=0)
        _, _, seconds = outcome(lambda m=model, w=given: m.fit(rows, sample_weight=w))
        used = np.unique(model.predict(rows)).size
        print(f"1,000 rows in 4 segments, {name}: {seconds:.2f} s, {model.n_clusters_} clusters, {used} with rows")


if __name__ == "__main__":
    poisson_by_minibatches()
    metadata_as_y()
    survey_weights()
