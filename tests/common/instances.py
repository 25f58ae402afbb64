"""THE list of estimators with arguments small enough for tests; every common check runs on each of them.

A new estimator is added here, and nowhere else, to get the checks of `tests/test_estimators.py`,
`tests/test_data_paths.py` and `tests/test_callbacks.py`.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification

from sk_sgmcmc import (
    BayesianGaussian,
    BayesianLDA,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    DMRTopicModel,
    DPCategoricalMixture,
    GammaProcessTopicModel,
    LatentClassModel,
    SphericalAdmixtureModel,
    StructuralTopicModel,
    TopicClassifier,
    TopicRegressor,
    VonMisesFisherMixture,
)
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.samplers import PSGHMC, SCIR, SGHMC
from sk_sgmcmc.samplers._registry import make_sampler
from sk_sgmcmc.topic._estimator.model import CountTopicModel


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

    def fitted(self, **params):
        """A fresh estimator, fitted to the data."""
        return self.new(**params).fit(*self.data_of())

    def data_of(self):
        """What ``fit`` is given: (X,) or (X, y)."""
        return DATA[self.data]()

    def X(self):
        """The rows alone."""
        return self.data_of()[0]

    def draws(self, model):
        """The first array of ``samples_``: (n_chains, n_kept, ...)."""
        return next(iter(model.samples_.values()))

    def answer(self, model, X=None):
        """What a fitted model says of rows."""
        X = self.X() if X is None else X
        return next(
            getattr(model, m) for m in ("predict_proba", "transform", "score_samples", "predict") if hasattr(model, m)
        )(X)

    @property
    def has_steps(self):
        """Whether a sampler with a ``step_size`` fits it."""
        return self.sampler != "gibbs"

    @property
    def keeps_draws(self):
        """Whether its draws are states on the way: those of particles are the last ones."""
        return getattr(make_sampler(self.estimator.sampler or "scir"), "_loop", None) != "particles"

    @property
    def streams(self):
        """Whether it takes `partial_fit`: exact references over all data do not."""
        without = ("sam-gibbs", "dp-slices", "dp-step")
        return hasattr(self.estimator, "partial_fit") and self.id not in without


def _counts():
    return (make_lda(n_samples=90, n_features=40, n_components=3, document_length=25, random_state=0).counts,)


def _described():
    """Counts, and behind them two columns of metadata."""
    counts = _counts()[0]
    year, party = 1900.0 + np.arange(90) // 10, np.arange(90) % 2
    return (sparse.hstack([counts, sparse.csr_array(np.column_stack([year, party]))], format="csr"),)


def _rated():
    """Counts and outcomes of the documents."""
    data = make_lda(n_samples=90, n_features=40, n_components=3, document_length=25, random_state=0)
    return data.counts, data.doc_topics @ [0.0, 1.0, 2.0] + 0.1 * np.random.default_rng(0).normal(size=90)


def _classed():
    """Counts and classes of the documents."""
    counts, y = _rated()
    return counts, (y > 1.0).astype(int)


def classes(n_classes, n_samples=150):
    """Rows on very different scales, and their labels."""
    X, y = make_classification(
        n_samples, 5, n_informative=4, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )
    return X * [1.0, 10.0, 0.1, 1000.0, 1.0] + 3.0, y


def _answers():
    """Categories with missing entries."""
    rng = np.random.default_rng(0)
    X = rng.random((90, 6, 1)) < np.cumsum([[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]], axis=1)[np.arange(90) % 2][:, None, :]
    X = X.argmax(axis=2).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return (X,)


def _mixed():
    """Categories, counts and measurements, with missing entries."""
    answers, rng = _answers()[0][:, :3], np.random.default_rng(1)
    z = np.arange(90) % 2
    return (np.column_stack([answers, rng.poisson(np.where(z, 12, 3)), rng.normal(100.0 * z, 40.0)]),)


def _binary():
    X = (_answers()[0] > 0).astype(float)
    X[5, 2] = np.nan
    return (X,)


def _responses():
    X, _ = classes(2, 90)
    return X, X @ [1.0, 0.1, 10.0, 0.001, -1.0] + np.random.default_rng(0).normal(size=90)


def _events():
    X, y = _responses()
    return X, np.random.default_rng(0).poisson(np.exp((y - y.mean()) / (2.0 * y.std())))


def _rows():
    return (np.random.default_rng(0).normal(size=(90, 3)) @ np.diag([1.0, 5.0, 100.0]),)


DATA = {
    "counts": _counts,
    "described": _described,
    "rated": _rated,
    "classed": _classed,
    "two classes": lambda: classes(2, 90),
    "three classes": lambda: classes(3, 90),
    "responses": _responses,
    "events": _events,
    "rows": _rows,
    "answers": _answers,
    "binary": _binary,
    "mixed": _mixed,
}

_SMALL = {"n_components": 3, "n_iter": 16}


def _dense(id, estimator, data, **params):
    """A case whose parameter ``sampler``, if any, is a name."""
    model = estimator(n_iter=16, **params)
    return Case(id, model, data, sampler=params.get("sampler", "sghmc"), wrong_sampler="scir")


ESTIMATORS = [
    Case("lda", BayesianLDA(**_SMALL)),
    Case("lda-minibatch", BayesianLDA(**_SMALL, batch_size=20, sampler=SCIR(step_size=0.5))),
    Case("lda-fresh", BayesianLDA(**_SMALL, batch_size=20, assignments="fresh", n_sweeps=(1, 2))),
    Case("lda-sgrld", BayesianLDA(**_SMALL, batch_size=20, assignments="fresh", n_sweeps=(1, 1), sampler="sgrld")),
    Case("lda-flat", BayesianLDA(**_SMALL, batch_size=20, sampler=SGHMC(0.2), topic_prior="normal"), sampler="sghmc"),
    Case("lda-particles", BayesianLDA(**_SMALL, sampler=PSGHMC(n_particles=2)), sampler="psghmc-det"),
    Case("lda-scir", BayesianLDA(**_SMALL, sampler="scir")),
    Case("dmr-plain", DMRTopicModel(**_SMALL)),
    Case("dmr", DMRTopicModel(**_SMALL, metadata_columns=2), "described"),
    Case(
        "dmr-fresh",
        DMRTopicModel(
            **_SMALL, metadata_columns=2, batch_size=20, assignments="fresh", n_sweeps=(1, 2), coef_sampler="sgnht"
        ),
        "described",
    ),
    Case("dmr-minibatch", DMRTopicModel(**_SMALL, metadata_columns=2, batch_size=20), "described"),
    Case("dmr-scir", DMRTopicModel(**_SMALL, metadata_columns=2, sampler="scir"), "described"),
    Case("structural", StructuralTopicModel(**_SMALL)),
    Case("topic-regressor", TopicRegressor(**_SMALL), "rated", sampler="gibbs", wrong_sampler="scir"),
    Case("topic-classifier", TopicClassifier(**_SMALL), "classed", sampler="gibbs", wrong_sampler="scir"),
    Case("gamma-process", GammaProcessTopicModel(**_SMALL)),
    Case("gamma-process-scir", GammaProcessTopicModel(**_SMALL, sampler="scir")),
    Case("gamma-process-fresh", GammaProcessTopicModel(**_SMALL, batch_size=20, assignments="fresh")),
    Case(
        "gamma-process-flat", GammaProcessTopicModel(**_SMALL, batch_size=20, sampler="sghmc-em", n_inner=3),
        sampler="sghmc",
    ),
    Case("sam", SphericalAdmixtureModel(**_SMALL), sampler="sggmc", wrong_sampler="scir"),
    Case("sam-minibatch", SphericalAdmixtureModel(**_SMALL, sampler="gsgnht", batch_size=20), sampler="gsgnht"),
    Case("sam-gibbs", SphericalAdmixtureModel(**_SMALL, sampler="gmc-b-gibbs"), sampler="gmc-b-gibbs"),
    Case("vmf", VonMisesFisherMixture(**_SMALL), sampler="sggmc", wrong_sampler="scir"),
    Case(
        "vmf-minibatch", VonMisesFisherMixture(**_SMALL, sampler="gsgnht", batch_size=20, kappa=50.0),
        sampler="gsgnht",
    ),
    Case(
        "vmf-process",
        VonMisesFisherMixture(**_SMALL, sampler="gmc", weight_concentration_prior_type="dirichlet_process"),
        sampler="gmc",
    ),
    _dense("logistic", BayesianLogisticRegression, "two classes"),
    _dense("logistic-multinomial", BayesianLogisticRegression, "three classes", batch_size=30),
    _dense(
        "logistic-plain", BayesianLogisticRegression, "two classes", sampler="sgld", control_variates=False,
        batch_size=30, with_replacement=True,
    ),
    _dense(
        "logistic-palindromic", BayesianLogisticRegression, "two classes", sampler=SGHMC(scheme="ubu"),
        batch_size=30, batch_order="palindromic",
    ),
    _dense("logistic-hmc", BayesianLogisticRegression, "two classes", sampler="hmc"),
    _dense("logistic-particles", BayesianLogisticRegression, "two classes", sampler="blob"),
    _dense("logistic-em", BayesianLogisticRegression, "two classes", sampler="sghmc-em"),
    _dense("linear", BayesianLinearRegression, "responses"),
    _dense("linear-minibatch", BayesianLinearRegression, "responses", sampler="sghmc", batch_size=30),
    _dense("linear-laplace", BayesianLinearRegression, "responses", sampler="hmc", prior="laplace"),
    _dense("poisson", BayesianPoissonRegressor, "events"),
    _dense("poisson-laplace", BayesianPoissonRegressor, "events", prior="laplace", batch_size=30),
    _dense("negative-binomial", BayesianNegativeBinomialRegressor, "events"),
    _dense("negative-binomial-laplace", BayesianNegativeBinomialRegressor, "events", prior="laplace", batch_size=30),
    _dense("gaussian", BayesianGaussian, "rows"),
    _dense("gaussian-minibatch", BayesianGaussian, "rows", sampler="sgnht", batch_size=20),
    Case("dp", DPCategoricalMixture(n_iter=16)),
    Case("dp-categorical", DPCategoricalMixture(likelihood="categorical", n_iter=16, batch_size=20), "answers"),
    Case("dp-bernoulli", DPCategoricalMixture(likelihood="bernoulli", n_iter=16), "binary"),
    Case(
        "dp-step", DPCategoricalMixture(likelihood="bernoulli", sampler=SCIR(0.5), n_iter=16, batch_size=20), "binary"
    ),
    Case("dp-fresh", DPCategoricalMixture(n_iter=16, batch_size=20, assignments="fresh")),
    Case("dp-sgrld", DPCategoricalMixture(n_iter=16, batch_size=20, assignments="fresh", sampler="sgrld")),
    Case("dp-mixed", DPCategoricalMixture(likelihood="mixed", n_iter=16), "mixed", sampler="gibbs"),
    Case("latent-class", LatentClassModel(2, n_iter=16), "mixed", sampler="gibbs", wrong_sampler="scir"),
    Case("dp-slices", DPCategoricalMixture(likelihood="categorical", sampler="slice-gibbs", n_iter=16), "answers"),
]  # fmt: skip
# One of each class, for checks that say nothing about the sampler.
DEFAULTS = [
    case
    for case in ESTIMATORS
    if case.id
    in {
        "lda", "dmr", "structural", "topic-regressor", "topic-classifier", "gamma-process", "sam", "vmf", "logistic",
        "linear", "poisson", "negative-binomial", "gaussian", "dp", "latent-class",
    }
]  # fmt: skip
# Count topic models, whose components are distributions over words: all of them, and one of each class.
LDA = [case for case in ESTIMATORS if isinstance(case.estimator, CountTopicModel) and case.data == "counts"]
COUNTS = [case for case in ESTIMATORS if case.id in {"lda", "dmr-plain", "gamma-process"}]
# Those on which scikit-learn's own checks run: each class, whatever its sampler, with batches that its small data hold.
# Models of dense rows make the steps that the checks' bounds on their accuracy ask for.
CHECKED = [
    clone(case.estimator).set_params(batch_size="auto", **({} if case.data == "counts" else {"n_iter": 400}))
    for case in ESTIMATORS
    if case.id
    in {
        "lda", "dmr-plain", "structural", "topic-regressor", "topic-classifier", "gamma-process", "sam", "vmf",
        "logistic", "linear", "poisson", "negative-binomial", "gaussian", "dp", "latent-class",
    }
]  # fmt: skip
