"""Code of users that a type checker must refuse: each comment names the error, and is one itself if there is none."""

import numpy as np

import sk_sgmcmc
from sk_sgmcmc import (
    BayesianLDA,
    BayesianLinearRegression,
    DMRTopicModel,
    DPCategoricalMixture,
    LatentClassModel,
    metrics,
    samplers,
)
from sk_sgmcmc.callbacks import Checkpoint
from sk_sgmcmc.inspection import TopicWordsDisplay
from sk_sgmcmc.targets import GaussianMean, Simplex

X = np.ones((4, 3))


def constructors() -> None:
    BayesianLDA(n_components="x")  # type: ignore[arg-type]
    BayesianLDA(topics=3)  # type: ignore[call-arg]
    BayesianLDA(5, "scir")  # type: ignore[call-arg]
    BayesianLDA(assignments="old")  # type: ignore[arg-type]
    BayesianLDA(sampler=3)  # type: ignore[arg-type]
    BayesianLDA(random_state="0")  # type: ignore[arg-type]
    BayesianLDA(n_sweeps=5)  # type: ignore[arg-type]
    BayesianLDA(callbacks=5)  # type: ignore[arg-type]
    BayesianLinearRegression(prior="cauchy")  # type: ignore[arg-type]
    LatentClassModel(columns="guess")  # type: ignore[arg-type]
    DPCategoricalMixture(partition_loss="rand")  # type: ignore[arg-type]
    samplers.SGLD(step_size="large")  # type: ignore[arg-type]
    samplers.SGHMC(scheme="leapfrog")  # type: ignore[arg-type]
    samplers.PSGHMC(bandwidth=1.0)  # type: ignore[arg-type]
    Checkpoint(5)  # type: ignore[arg-type]


def methods() -> None:
    BayesianLinearRegression().fit(X)  # type: ignore[call-arg]
    BayesianLDA().fit(X).top_words("ten")  # type: ignore[arg-type]
    BayesianLDA().fit(X).top_words(by="tfidf")  # type: ignore[arg-type]
    BayesianLDA().fit(X, metadata=X)  # type: ignore[call-arg]
    DMRTopicModel().fit(X, metadata=X).effects(3)  # type: ignore[arg-type]
    BayesianLinearRegression().fit(X, [1.0] * 4).predict(X) + "x"  # type: ignore[operator]
    TopicWordsDisplay.from_estimator(BayesianLDA(), interval="wide")  # type: ignore[arg-type]


def functions() -> None:
    sk_sgmcmc.sample(3)  # type: ignore[arg-type]
    sk_sgmcmc.sample(GaussianMean(X), n_iter="many")  # type: ignore[arg-type]
    sk_sgmcmc.sample(max, parameters=["x"])  # type: ignore[arg-type]
    Simplex("3")  # type: ignore[arg-type]
    metrics.coherence(X, X, measure="cv")  # type: ignore[arg-type]
    metrics.align_topics(X)  # type: ignore[call-arg]
