"""THE list of estimators with arguments small enough for tests; every common check runs on each of them.

A new estimator is added here, and nowhere else, to get the checks of `tests/test_estimators.py`,
`tests/test_data_paths.py` and `tests/test_callbacks.py`.
"""

from dataclasses import dataclass

from sklearn.base import clone

from sk_sgmcmc import BayesianLDA, SphericalAdmixtureModel
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.samplers import SCIR


@dataclass(frozen=True)
class Case:
    """An estimator with small arguments.

    Parameters
    ----------
    id : str
    estimator : estimator
        Never fitted: `new` clones it.
    data : str
        Key of `DATA`: what it is fitted to.
    sampler : str
        Name of a sampler with a ``step_size`` that fits it.
    wrong_sampler : str
        Name of a sampler that does not fit it.
    """

    id: str
    estimator: object
    data: str = "counts"
    sampler: str = "scir"
    wrong_sampler: str = "exponential-ou"

    def new(self, **params):
        """A fresh estimator with a seed."""
        return clone(self.estimator).set_params(**{"random_state": 0, **params})

    @property
    def streams(self):
        """Whether it takes `partial_fit`: exact references over all data do not."""
        return hasattr(self.estimator, "partial_fit") and self.id != "lda-gibbs"

    def X(self):
        """Its data."""
        return DATA[self.data]()


def _counts():
    return make_lda(n_samples=90, n_features=40, n_components=3, document_length=25, random_state=0).counts


DATA = {"counts": _counts}

_SMALL = {"n_components": 3, "n_iter": 16}
ESTIMATORS = [
    Case("lda", BayesianLDA(**_SMALL)),
    Case("lda-minibatch", BayesianLDA(**_SMALL, batch_size=20, sampler=SCIR(step_size=0.5))),
    Case("lda-fresh", BayesianLDA(**_SMALL, batch_size=20, assignments="fresh", n_sweeps=(1, 2))),
    Case("lda-sgrld", BayesianLDA(**_SMALL, batch_size=20, assignments="fresh", n_sweeps=(1, 1), sampler="sgrld")),
    Case("lda-gibbs", BayesianLDA(**_SMALL, sampler="gibbs")),
    # Of the checks of one of each class, those of LDA speak of counts; SAM's are in tests/topic/test_sam.py.
    Case("sam", SphericalAdmixtureModel(**_SMALL), sampler="sggmc", wrong_sampler="scir"),
    Case("sam-minibatch", SphericalAdmixtureModel(**_SMALL, sampler="gsgnht", batch_size=20), sampler="gsgnht"),
    Case("sam-gibbs", SphericalAdmixtureModel(**_SMALL, sampler="gmc-b-gibbs"), sampler="gmc-b-gibbs"),
]
# Count topic models, whose components are distributions over words.
LDA = [case for case in ESTIMATORS if isinstance(case.estimator, BayesianLDA)]
# One of each class, for checks that say nothing about the sampler.
DEFAULTS = [case for case in ESTIMATORS if case.id == "lda"]
# Those on which scikit-learn's own checks run, whose data may be smaller than a batch. Exact references that cannot
# stream are left out, since they refuse `partial_fit`, which the checks call wherever it exists.
CHECKED = [
    clone(case.estimator).set_params(batch_size="auto")
    for case in ESTIMATORS
    if case.id not in ("lda-gibbs", "lda-minibatch", "sam-minibatch")
]
