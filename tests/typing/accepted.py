"""Code of users that a type checker must accept, in strict mode, and the types that it must find; nothing here runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import numpy as np
from numpy.typing import NDArray

import sk_sgmcmc
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
    datasets,
    inspection,
    metrics,
    samplers,
    targets,
)
from sk_sgmcmc.callbacks import Checkpoint, HeldOutScore, load_checkpoint
from sk_sgmcmc.model_selection import search_n_components

if TYPE_CHECKING:  # tests run without pandas too
    import pandas as pd

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]


def linear_models(X: Floats, y: Floats, names: list[str]) -> None:
    linear = BayesianLinearRegression("auto", prior="laplace", n_iter=100, n_jobs=-1, random_state=0)
    assert_type(linear.fit(X, y), BayesianLinearRegression)
    assert_type(linear.fit(X.tolist(), y.tolist(), sample_weight=[1.0] * len(y)), BayesianLinearRegression)
    assert_type(linear.partial_fit(X, y), BayesianLinearRegression)
    assert_type(linear.resume(X, y), BayesianLinearRegression)
    assert_type(linear.predict(X), Floats)
    assert_type(linear.predict(X, return_std=True), tuple[Floats, Floats])
    assert_type(linear.predict_interval(X, 0.9, of="mean"), tuple[Floats, Floats, Floats])
    assert_type(linear.score(X, y), float)
    linear.coef_table()["mean"]
    linear.diagnostics_["r_hat"]
    logistic = BayesianLogisticRegression(prior_scale=2, class_weight={"a": 1.0, "b": 2}, sampler=samplers.NUTS())
    assert_type(logistic.fit(X, names), BayesianLogisticRegression)
    logistic.partial_fit(X, names, classes=["a", "b"])
    logistic.predict(X)
    assert_type(logistic.predict_proba(X), Floats)
    assert_type(logistic.predict_log_proba(X), Floats)
    assert_type(logistic.decision_function(X), Floats)
    assert_type(logistic.set_params(sampler__step_size=0.1), BayesianLogisticRegression)
    logistic.predict_uncertainty(X)
    poisson = BayesianPoissonRegressor(sampler="nuts", callbacks=[lambda estimator, step: step > 10])
    assert_type(poisson.fit(X, y, exposure=np.ones(len(X))).predict(X), Floats)
    assert_type(poisson.fit(X, y).coef_, Floats)
    assert_type(poisson.predict(X, True, exposure=np.ones(len(X))), tuple[Floats, Floats])
    assert_type(poisson.score(X, y, exposure=np.ones(len(X))), float)
    poisson.predict_interval(X, of="mean", exposure=np.ones(len(X)))
    overdispersed = BayesianNegativeBinomialRegressor(prior="laplace", dispersion_prior_scale=0.5, n_chains=2)
    assert_type(overdispersed.fit(X, y, exposure=np.ones(len(X))), BayesianNegativeBinomialRegressor)
    assert_type(overdispersed.fit(X, y).resume(X, y).dispersion_, float)
    assert_type(overdispersed.predict(X, True), tuple[Floats, Floats])
    assert_type(overdispersed.predict_interval(X, 0.5), tuple[Floats, Floats, Floats])
    assert_type(overdispersed.score(X, y), float)


def densities_and_mixtures(X: Floats, codes: Integers) -> None:
    gaussian = BayesianGaussian(mean_prior=[0.0, 0.0], batch_size=10, thin=2, burn_in=100)
    assert_type(gaussian.fit(X).partial_fit(X).resume(X), BayesianGaussian)
    assert_type(gaussian.score_samples(X), Floats)
    gaussian.exact_posterior(X).mean
    gaussian.exact_samples(X, 10, np.random.default_rng(0))
    mixture = DPCategoricalMixture(likelihood="categorical", concentration_prior=(1.0, 2.0), weights="survey")
    assert_type(mixture.fit(codes, sample_weight=np.ones(len(codes))), DPCategoricalMixture)
    assert_type(mixture.fit_predict(codes), Integers)
    assert_type(mixture.predict_proba(codes), Floats)
    assert_type(mixture.transform(codes), Floats)
    assert_type(mixture.co_clustering(codes), Floats)
    mixture.consensus_partition(codes, loss="binder").labels
    mixture.top_categories(3)["probability"]
    mixture.profile_table()
    mixture.n_clusters_posterior()
    classes = LatentClassModel(3, columns={"age": "continuous"}, formula="~ x", weights="survey")
    assert_type(classes.fit(codes, metadata={"x": X[:, 0]}, sample_weight=np.ones(len(codes))), LatentClassModel)
    assert_type(classes.predict_proba(codes, metadata={"x": X[:, 0]}), Floats)
    assert_type(classes.score(codes), float)
    classes.profile_table(interval=0.5)
    classes.effects("x", at=[0.0, 1.0])
    directions = VonMisesFisherMixture(4, kappa=[10.0] * 4, weight_concentration_prior_type="dirichlet_process")
    assert_type(directions.fit(X).predict(X), Integers)
    assert_type(directions.score(X), float)


def topic_models(X: Integers, names: list[str], years: Integers) -> None:
    lda = BayesianLDA(5, sampler="scir", n_iter=200, seed_words={"sea": 0, "moon": [1, 2]}, n_sweeps=(5, 5))
    assert_type(lda.fit(X, feature_names=names), BayesianLDA)
    assert_type(lda.partial_fit(datasets.CountBlocks(["a.npz", "b.npz"], folder=None)), BayesianLDA)
    assert_type(lda.transform(X), Floats)
    assert_type(lda.transform_draws(X, n_draws=5), Floats)
    assert_type(lda.perplexity(X), float)
    assert_type(lda.topic_stability_, Floats)
    assert_type(lda.merge_topics([0, 3]), BayesianLDA)
    lda.top_words(10, interval=0.9, by="frex", format="wide")
    lda.find_topics(["sea", "fish"])
    lda.topic_info(X)
    lda.representative_docs(X, texts=names, n=2)
    lda.topic_correlation(X)
    lda.topics_over_time(X, years, n_bins=4)
    lda.topic_names_[0]
    lda.get_feature_names_out()
    assert_type(lda.components_, Floats)
    assert_type(lda.samples_["components"], Floats)
    dmr = DMRTopicModel(3, formula="~ year", coef_sampler=samplers.SGHMC(step_size=0.1), handle_unknown="ignore")
    assert_type(dmr.fit(X, metadata={"year": years}), DMRTopicModel)
    assert_type(dmr.transform(X, metadata=years[:, None]), Floats)
    assert_type(dmr.predict_prevalence({"year": years}), Floats)
    assert_type(dmr.predict_prevalence({"year": years}, interval=0.9), tuple[Floats, Floats, Floats])
    assert_type(dmr.merge_topics([[0, 1]]), DMRTopicModel)
    dmr.effects("year", [1990, 2000], given={"party": "Whig"})
    dmr.effects("year", of="documents", X=X, metadata={"year": years}, random_state=1)
    dmr.effects("year", groups=years)
    dmr.permutation_test(X, "year", metadata={"year": years}, refit=False)
    dmr.prevalence_difference({"year": [1990]}, {"year": [2000]})
    process = GammaProcessTopicModel(50, topics_sampler=samplers.SGRLD(), scale_prior=(0.01, 0.01))
    assert_type(process.fit(X), GammaProcessTopicModel)
    process.n_topics_posterior(min_share=0.02)
    process.topic_weights()
    sam = SphericalAdmixtureModel(4, sampler=samplers.SGGMC(), kappa1="auto", proportions="fresh", init="random")
    assert_type(sam.fit(X).score_samples(X, n_temperatures=100), Floats)
    assert_type(sam.log_perplexity(X, method="annealed"), float)
    search_n_components(lda, X, [5, 10], n_jobs=2)


def frames(frame: "pd.DataFrame") -> None:
    X, y = frame[["age", "income"]], frame["votes"]
    BayesianPoissonRegressor().fit(X, y, sample_weight=frame["weight"]).predict(X)
    metadata = {"year": frame["year"], "party": ["Whig"] * len(frame)}
    dmr = DMRTopicModel(metadata_columns=["year"]).fit(X, metadata=frame[["year"]]).fit(X, metadata=metadata)
    dmr.predict_prevalence(pd.DataFrame({"year": [1990]}))
    BayesianLDA().fit(X, feature_names=X.columns.to_numpy()).topics_over_time(X, frame["year"])


def callbacks(X: Integers) -> None:
    held_out = HeldOutScore(X, every=5, patience=3)
    BayesianLDA(callbacks=held_out)
    BayesianLDA(callbacks=[held_out, Checkpoint("fit.joblib", seconds=30)]).fit(X).trace_
    load_checkpoint("fit.joblib").resume(X)


def sampling(X: Floats) -> None:
    def log_density(mean: Any, scale: Any, *, rows: Any) -> Any:
        return -0.5 * (((rows - mean) / scale) ** 2).sum()

    parameters = {"mean": 3, "scale": targets.Positive(), "shares": targets.Simplex((5, 3)), "cut": targets.Ordered(4)}
    result = sk_sgmcmc.sample(log_density, "nuts", parameters=parameters, data=X, gradient="jax", n_chains=4)
    assert_type(result.samples_["mean"], Floats)
    assert_type(result.sampler_, samplers.Sampler)
    result.summary(quantiles=[0.1, 0.9])["r_hat"]
    target = targets.GaussianMean(X)
    assert_type(target.posterior(), tuple[Floats, Floats])
    step = samplers.PolynomialDecay(0.1, offset=100)
    sk_sgmcmc.sample(target, samplers.SGLD(step), batch_size=10, random_state=np.random.default_rng(0))
    sk_sgmcmc.sample(targets.DirichletCategorical([0, 1, 1]), geometry="simplex", init=np.ones(3))
    sk_sgmcmc.sample(target, samplers.HMC(mass=samplers.MonteCarloEM("full"), n_leapfrog=5))
    sk_sgmcmc.sample(target, samplers.SGHMC(samplers.CyclicalStep(cycle_length=100), mass=np.ones(3)))
    sk_sgmcmc.sample(target, samplers.SGHMC(scheme="ubu"), batch_order="palindromic")
    sk_sgmcmc.sample(target, samplers.PSGHMC("fgh", n_particles=10, bandwidth="he"))
    sk_sgmcmc.sample(
        targets.ManifoldDensity(log_density, {"frame": ("stiefel", (2, 5))}, start={"frame": np.eye(2, 5)}),
        samplers.GSGNHT(friction="auto", gradient_noise="estimated"),
    )


def measures(X: Integers, topics: Floats, draws: Floats) -> None:
    observed, hidden = metrics.split_tokens(X, 0.5, random_state=0)
    metrics.document_completion(observed, hidden, topics, average="running").perplexity
    assert_type(metrics.completion_perplexity(observed, hidden, topics), float)
    assert_type(metrics.coherence(topics, X, "umass"), Floats)
    assert_type(metrics.top_word_indices(topics), Integers)
    assert_type(metrics.align_topics(topics, topics, metric="cosine"), Integers)
    assert_type(metrics.point_partition([[0, 1], [0, 0]], loss="binder"), tuple[Integers, float])
    assert_type(metrics.rosenblatt_ks(draws, [1.0, 2.0]), float)
    assert_type(metrics.split_r_hat(draws), float | Floats)
    assert_type(metrics.effective_sample_size(draws, "tail"), float | Floats)


def data() -> None:
    datasets.make_lda(10, n_components=3, random_state=np.random.SeedSequence(1)).components
    datasets.fetch_wikipedia(data_home="data").counts
    assert_type(datasets.normalize_text("Sea"), str)
    datasets.make_count_vectorizer(min_df=2, stop_words=["the"]).fit_transform(["the sea"])


def outcomes(X: Integers, y: Integers, table: Floats) -> None:
    regressor = TopicRegressor(2, dispersion="shared", feedback=False).fit(X, y, table)
    assert_type(regressor, TopicRegressor)
    regressor.partial_fit(X, y, covariates=table).partial_fit(X)
    assert_type(regressor.predict(X, table), Floats)
    assert_type(regressor.predict_interval(X, 0.8, covariates=table, of="mean"), tuple[Floats, Floats, Floats])
    regressor.contrast(0, "1_sea", interval=0.8)
    regressor.coef_table(reference=1)
    assert_type(regressor.score(X, y, covariates=table), float)
    classifier = TopicClassifier(2, coef_prior_scale=3.0).fit(X, ["a", "b"])
    assert_type(classifier.predict_proba(X), Floats)
    classifier.partial_fit(X, y, classes=["a", "b"])
    BayesianLDA(2).fit(X).regress(X, y, table, interval=0.8, reference=0)


def pictures(
    lda: BayesianLDA,
    dmr: DMRTopicModel,
    mixture: DPCategoricalMixture,
    classes: LatentClassModel,
    X: Integers,
    years: Integers,
) -> None:
    words = inspection.TopicWordsDisplay.from_estimator(lda, n_words=5, topics=[0, 1])
    assert_type(words, inspection.TopicWordsDisplay)
    assert_type(words.plot(n_columns=2), inspection.TopicWordsDisplay)
    inspection.TopicsOverTimeDisplay.from_estimator(lda, X, years, topics=np.arange(2))
    inspection.TopicHierarchyDisplay.from_estimator(lda, method="single")
    inspection.TopicMapDisplay.from_estimator(lda, X)
    inspection.PrevalenceDisplay.from_estimator(dmr, "year", at=[1990, 2000], of="prior")
    assert_type(
        inspection.PrevalenceDisplay.from_estimator(classes, "age", by="sex", topics=[1]), inspection.PrevalenceDisplay
    )
    assert_type(
        inspection.EffectsDisplay.from_estimator(dmr, "year", at=[1990, 2000], reference=1990, topics=[0], of="prior"),
        inspection.EffectsDisplay,
    )
    structural = StructuralTopicModel(2, content="party", formula="~ 1").fit(X, metadata={"party": years})
    structural.top_words(3, group="Whig")
    structural.set_params(keywords={"Trade": ["tariff"]})
    structural.keyword_table(interval=0.8)
    structural.word_contrast("Whig", "Democratic", topics=[0], n=5)
    assert_type(
        inspection.WordContrastDisplay.from_estimator(structural, "Whig", "Democratic", topics=np.arange(2)),
        inspection.WordContrastDisplay,
    )
    inspection.CoClusteringDisplay.from_estimator(mixture, X)
    inspection.TraceDisplay.from_estimator(lda, x="step").plot()
    inspection.to_arviz(lda, words=10)
    assert_type(inspection.to_pyldavis(lda, X), dict[str, Any])
    inspection.topic_report(lda, X, "topics.html", ["a", "b"], labels={0: "sea"}, times=years, groups=["left", "right"])
    written = inspection.topic_report(dmr, X, Path("topics.html"), metadata={"year": years}, n_bins=10, of="documents")
    assert_type(written, Path)
