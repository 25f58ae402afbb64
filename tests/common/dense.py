"""The estimators on dense rows, with arguments small enough for tests: what `tests/test_dense_models.py` runs on."""

import numpy as np
from sklearn.datasets import make_classification

from sk_sgmcmc import BayesianGaussian, BayesianLogisticRegression
from sk_sgmcmc.samplers import HMC, SGLD

_SMALL = {"n_iter": 60, "random_state": 0}


def classes(n_classes):
    X, y = make_classification(
        150, 5, n_informative=4, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )
    return X * [1.0, 10.0, 0.1, 1000.0, 1.0] + 3.0, y


def rows():
    return np.random.default_rng(0).normal(size=(120, 3)) @ np.diag([1.0, 5.0, 100.0]), None


DENSE_MODELS = {
    "logistic": (BayesianLogisticRegression(**_SMALL), lambda: classes(2)),
    "logistic-multinomial": (BayesianLogisticRegression(**_SMALL, batch_size=30), lambda: classes(3)),
    "logistic-plain": (
        BayesianLogisticRegression(
            **_SMALL, control_variates=False, batch_size=30, with_replacement=True, sampler=SGLD(0.01)
        ),
        lambda: classes(2),
    ),
    "logistic-hmc": (BayesianLogisticRegression(**_SMALL, sampler=HMC(n_leapfrog=3)), lambda: classes(2)),
    "logistic-em": (BayesianLogisticRegression(**_SMALL, sampler="sghmc-em"), lambda: classes(2)),
    "gaussian": (BayesianGaussian(**_SMALL), rows),
    "gaussian-minibatch": (BayesianGaussian(**_SMALL, batch_size=20, sampler="sgnht"), rows),
}
