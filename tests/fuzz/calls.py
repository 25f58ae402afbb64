"""Public methods, properties, tables and plots that are called of a fitted estimator, and with which arguments.

Names of methods stand for themselves, names of classes of `sk_sgmcmc.inspection` for their plots. Values are
descriptions, as in `inputs`; `MUST` lists the arguments without which a call makes no sense, and ``"X"`` the rows.
"""

import importlib.util

FITS = ("fit", "partial_fit", "resume", "fit_transform", "fit_predict")

# What is asked about rows (True), and what about the model alone. Equal questions must get equal answers.
ANSWERS = {
    **dict.fromkeys((
        "transform", "predict", "predict_proba", "predict_log_proba", "decision_function", "score", "score_samples",
        "perplexity", "log_perplexity", "predict_interval", "predict_uncertainty", "co_clustering",
        "consensus_partition", "exact_posterior", "exact_samples", "transform_draws", "topic_info",
        "representative_docs", "topic_correlation", "topics_over_time", "regress",
    ), True),
    **dict.fromkeys((
        "top_words", "coef_table", "topic_weights", "n_topics_posterior", "n_clusters_posterior", "top_categories",
        "profile_table", "get_feature_names_out", "find_topics", "merge_topics", "predict_prevalence",
        "doc_topic_priors", "prevalence_difference", "effects", "word_contrast",
        "content_draws", "keyword_table", "contrast",
    ), False),
}  # fmt: skip
PROPERTIES = ("checks_", "diagnostics_", "topic_names_", "topic_stability_")

_PLOTS = {
    "CoClusteringDisplay": True, "EffectsDisplay": False, "KeywordDisplay": False, "PrevalenceDisplay": False,
    "ProfileDisplay": False,
    "TopicDocumentsDisplay": True, "TopicHierarchyDisplay": False, "TopicMapDisplay": True,
    "TopicWordsDisplay": False, "TopicsOverTimeDisplay": True, "TraceDisplay": False, "WordContrastDisplay": False,
}  # fmt: skip
_EXPORTS = {"to_arviz": ("arviz", True), "to_pyldavis": ("pyLDAvis", True)}
PLOTS = {
    **(_PLOTS if importlib.util.find_spec("matplotlib") else {}),
    **{name: rows for name, (package, rows) in _EXPORTS.items() if importlib.util.find_spec(package)},
}
# By a method that an estimator must have for its plot; any estimator for the others.
_NEEDS = {
    "CoClusteringDisplay": "co_clustering", "EffectsDisplay": "effects", "KeywordDisplay": "keyword_table",
    "PrevalenceDisplay": "effects",
    "ProfileDisplay": "profile_table", "TraceDisplay": "fit", "to_arviz": "fit", "to_pyldavis": "perplexity",
    "TopicWordsDisplay": "perplexity", "WordContrastDisplay": "word_contrast",
}  # fmt: skip


def plots_of(model):
    """Names of the plots of an estimator."""
    return [name for name in sorted(PLOTS) if hasattr(model, _NEEDS.get(name, "topic_info"))]


# Public names that are not drawn, each with the reason.
NOT_DRAWN = {
    "NumberOfTopicsDisplay": "shows a table of `search_n_components`",
    "forget_documents": "drops documents, as keep_documents=False does, which is drawn",
    "forget_rows": "drops rows, as keep_rows=False does, which is drawn",
    "get_params": "called around each operation",
    "permutation_test": "makes fits of its own",
    "topic_report": "writes a file",
    "set_params": "an operation of its own",
    "get_metadata_routing": "scikit-learn's own",
    "set_callbacks": "scikit-learn's own",
    "set_output": "scikit-learn's own",
}


def _metadata(n=None):
    return {"~": "metadata", "n": n}


def _of_rows(kind):
    return {"~": "of rows", "of": kind}


_INTERVALS = (0.9, 0.5, 0.99, 0.8, 0.0, 1.0)
_SEEDS = (0, 3, None)
_COLUMNS = ("number", "year", "text", "bool", "constant", "date", "absent", 0, "x0")
_TOPICS = (None, [0], [0, 1], [5], 0, [])
_TIMES = tuple(map(_of_rows, ("numbers", "years", "texts", "dates", "equal", "nan", "short")))
_METADATA = (_metadata(), _metadata(1), _metadata(2), 3.0)
MUST = {
    "find_topics": ("words",), "merge_topics": ("groups",), "predict_prevalence": ("metadata",),
    "doc_topic_priors": ("metadata",), "prevalence_difference": ("metadata_a", "metadata_b"),
    "effects": ("covariate",), "EffectsDisplay": ("covariate",), "topics_over_time": ("times",),
    "TopicsOverTimeDisplay": ("times",),
    "TopicDocumentsDisplay": ("texts",), "PrevalenceDisplay": ("metadata", "by"),
    "content_draws": ("group",), "word_contrast": ("a", "b"), "WordContrastDisplay": ("a", "b"),
    "contrast": ("a", "b"),
}  # fmt: skip
# Arguments of any method that has them.
ARGUMENTS = {
    "interval": _INTERVALS,
    "n": (1, 3, 10, 0, 10**6),
    "by": ("probability", "frex", "lift", "score", "best"),
    "format": ("long", "wide", "table"),
    "feature_names": (None, {"~": "names", "of": 0}, {"~": "names", "of": -1}),
    "words": (["w0"], ["w0", "w1"], "w1", [0], ["absent"], [], 3),
    "groups": ([[0, 1]], [[0], [1]], [], [[0, 5]], [[0, 0]], {"~": "dict", "of": [["a", [0, 1]]]}),
    "texts": (None, _of_rows("texts"), _of_rows("short"), "text"),
    "n_words": (1, 5, 0, 10**6),
    "n_bins": (None, 1, 2, 0),
    "times": _TIMES,
    "n_draws": (None, 1, 3, 0),
    "random_state": _SEEDS,
    "metadata": _METADATA,
    "metadata_a": _METADATA,
    "metadata_b": _METADATA,
    "covariate": _COLUMNS,
    "at": (None, [0.0, 1.0], ["a", "b"], ["absent"], [True, False]),
    "kind": ("difference", "level", "slope", "ratio"),
    "reference": (None, "a", 0.0, "absent"),
    "pairwise": (True, False),
    **dict.fromkeys(("a", "b", "group"), ("a", "b", True, False, 0.0, "absent")),
    "given": (None, {"~": "dict", "of": [["number", 0.5]]}, {"~": "dict", "of": [["absent", 1.0]]}),
    "min_share": (0.01, 0.0, 1.0, 2.0),
    "method": ("prior", "ais", "average", "single", "other"),
    "pooled": (True, False),
    "n_proportions": (1, 5, 0),
    "n_temperatures": (2, 10, 0),
    "return_std": (True, False),
    "of": ("observation", "mean", "rate"),
    "loss": (None, "vi", "binder", "rand"),
    "n_rows": (None, 2, 10**6),
    "topics": _TOPICS,
    "clusters": _TOPICS,
    "features": (None, [0], ["w0"], [10**6]),
    "distance": ("hellinger", "correlation", "jensen-shannon", "other"),
    "n_columns": (1, 3, 0),
    "n_points": (2, 5, 0),
    "average_over": (None, "number", "absent"),
    "x": ("step", "seconds", "other"),
    "input_features": (None, {"~": "names", "of": 0}),
}
_MEANS, _CLUSTERS = ("population", "documents", "prior", "other"), (None, [0, 1], "text")
SPECIAL = {
    ("PrevalenceDisplay", "metadata"): (*_METADATA, "number", "text"),
    ("PrevalenceDisplay", "by"): (None, *_COLUMNS), ("transform_draws", "n_draws"): (None, 1, 3, 0, 10**9),
    ("PrevalenceDisplay", "groups"): _CLUSTERS, ("effects", "groups"): _CLUSTERS,
    **dict.fromkeys([(name, "of") for name in ("effects", "PrevalenceDisplay", "topics_over_time")], _MEANS),
    ("TopicsOverTimeDisplay", "of"): _MEANS,
    **dict.fromkeys([("contrast", "a"), ("contrast", "b"), ("regress", "reference")], (0, 1, 2, "0_w1_w2", True, None)),
}  # fmt: skip
NEVER = {
    "X", "y", "self", "ax", "figure", "name", "sample_weight", "exposure", "estimator", "params", "kwargs",
    "covariates", "classes",
}  # fmt: skip


def values_of(call, argument):
    """What an argument of a call may be; None if it is drawn with the case."""
    if argument in NEVER:
        return None
    return SPECIAL.get((call, argument), ARGUMENTS.get(argument))
