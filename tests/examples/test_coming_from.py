"""The page for users of stm, poLCA and BERTopic names all of their functions; its calls and scripts run."""

import re
import runpy
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sk_sgmcmc import BayesianLDA, DMRTopicModel, LatentClassModel, StructuralTopicModel, inspection
from sk_sgmcmc.datasets import make_count_vectorizer
from sk_sgmcmc.metrics import coherence, exclusivity
from sk_sgmcmc.model_selection import search_n_components
from tests.conftest import importorskip

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "examples" / "side_by_side"
PAGE = (ROOT / "doc" / "user_guide" / "coming_from.rst").read_text(encoding="utf-8")

LEFT_OUT = None

# Each function that stm exports, and what the page names in its place.
STM = {
    "alignCorpus": lambda c: c.lda.transform(c.vectorizer.transform(c.texts[:3])),
    "calcfrex": lambda c: c.lda.top_words(by="frex"),
    "calclift": lambda c: c.lda.top_words(by="lift"),
    "calcscore": lambda c: c.lda.top_words(by="score"),
    "checkBeta": LEFT_OUT,
    "checkResiduals": LEFT_OUT,
    "cloud": LEFT_OUT,
    "convertCorpus": LEFT_OUT,
    "estimateEffect": lambda c: c.dmr.effects("party"),
    "eval.heldout": lambda c: c.lda.score(c.X),
    "exclusivity": lambda c: exclusivity(c.lda.components_),
    "findThoughts": lambda c: c.lda.representative_docs(c.X, c.texts),
    "findTopic": lambda c: c.lda.find_topics(["ocean", "fish"]),
    "fitNewDocuments": lambda c: c.lda.transform(c.vectorizer.transform(["an ocean of unseen fish"])),
    "js.estimate": LEFT_OUT,
    "labelTopics": lambda c: [c.lda.top_words(by=by) for by in ("probability", "frex", "lift", "score")],
    "make.dt": lambda c: c.lda.set_output(transform="pandas").transform(c.X),
    "make.heldout": lambda c: c.lda.score(c.X),
    "makeDesignMatrix": lambda c: c.dmr.metadata_names_,
    "manyTopics": lambda c: c.chains.chains_agree_,
    "multiSTM": lambda c: (c.chains.chains_agree_, c.chains.topic_stability_),
    "optimizeDocument": lambda c: c.lda.transform(c.X[:1]),
    "permutationTest": lambda c: c.dmr.permutation_test(
        c.X, "party", metadata=c.metadata, n_permutations=19, refit=False
    ),
    "plot.STM": lambda c: (
        inspection.TopicWordsDisplay.from_estimator(c.lda, topics=[0, 2]),
        inspection.TopicMapDisplay.from_estimator(c.lda),
        inspection.WordContrastDisplay.from_estimator(c.structural, "D", "R"),
    ),
    "plot.estimateEffect": lambda c: (
        inspection.PrevalenceDisplay.from_estimator(c.dmr, "year", by="party"),
        inspection.EffectsDisplay.from_estimator(c.dmr, "party"),
    ),
    "plot.searchK": lambda c: inspection.NumberOfTopicsDisplay.from_search(c.search),
    "plotModels": lambda c: c.chains.chains_agree_,
    "plotQuote": lambda c: inspection.TopicDocumentsDisplay.from_estimator(c.lda, c.X, c.texts),
    "plotRemoved": lambda c: make_count_vectorizer(min_df=5).fit(c.texts),
    "plotTopicLoess": lambda c: inspection.TopicsOverTimeDisplay.from_estimator(c.lda, c.X, c.year, n_bins=4),
    "prepDocuments": lambda c: make_count_vectorizer(min_df=2).fit_transform(c.texts),
    "readCorpus": LEFT_OUT,
    "readLdac": LEFT_OUT,
    "s": lambda c: c.dmr.effects("year"),
    "sageLabels": lambda c: (c.structural.word_contrast("D", "R"), c.structural.top_words(group="D")),
    "searchK": lambda c: search_n_components(BayesianLDA(n_iter=4, random_state=0), c.X, [2, 3]),
    "selectModel": lambda c: c.chains.chains_agree_,
    "semanticCoherence": lambda c: coherence(c.lda.components_, c.X),
    "stm": lambda c: DMRTopicModel(3, formula="~ party * bs(year, df=4)", n_iter=4).fit(c.X, metadata=c.metadata),
    "textProcessor": lambda c: make_count_vectorizer(min_df=2).fit_transform(c.texts),
    "thetaPosterior": lambda c: c.lda.transform_draws(c.X),
    "toLDAvis": lambda c: inspection.to_pyldavis(c.lda, c.X),
    "topicCorr": lambda c: (
        c.lda.topic_correlation(c.X), inspection.TopicHierarchyDisplay.from_estimator(c.lda)
    ),
    "topicLasso": lambda c: make_pipeline(
        BayesianLDA(3, n_iter=4), LogisticRegression(l1_ratio=1, solver="saga", max_iter=20)
    ).fit(c.X, c.party),
    "topicQuality": lambda c: c.lda.topic_info(c.X),
    "writeLdac": LEFT_OUT,
}  # fmt: skip

# Arguments and results of poLCA.
POLCA = {
    "nrep": lambda c: (c.lca.n_starts, c.lca.n_chains),
    "na.rm": lambda c: c.lca.predict_proba(np.full((1, 3), np.nan)),
    "P": lambda c: c.lca.weights_,
    "probs": lambda c: c.lca.profile_table(),
    "probs.se": lambda c: c.lca.profile_table(),
    "posterior": lambda c: c.lca.predict_proba(c.answers),
    "poLCA.posterior": lambda c: c.lca.predict_proba(c.answers[:3]),
    "predclass": lambda c: c.lca.labels_,
    "coeff": lambda c: c.membership.samples_["coef"] - c.membership.samples_["coef"][:, :, :1],
    "coeff.se": lambda c: c.membership.samples_["coef"].std(axis=(0, 1)),
    "bic": lambda c: cross_val_score(LatentClassModel(n_iter=4), c.answers, cv=2),
    "aic": lambda c: search_n_components(LatentClassModel(n_iter=4), c.answers, [1, 2]),
    "llik": lambda c: c.lca.score(c.answers) * len(c.answers),
    "poLCA.predcell": lambda c: np.exp(c.lca.score_samples(c.answers[:3])),
    "plot.poLCA": lambda c: inspection.ProfileDisplay.from_estimator(c.lca),
    "poLCA.reorder": LEFT_OUT,
    "poLCA.entropy": LEFT_OUT,
}

# Each picture of BERTopic's README, and its methods for tables.
BERTOPIC = {
    "visualize_topics": lambda c: inspection.TopicMapDisplay.from_estimator(c.lda, c.X),
    "visualize_documents": LEFT_OUT,
    "visualize_document_datamap": LEFT_OUT,
    "visualize_hierarchical_documents": LEFT_OUT,
    "visualize_hierarchy": lambda c: inspection.TopicHierarchyDisplay.from_estimator(c.lda),
    "get_topic_tree": lambda c: inspection.TopicHierarchyDisplay.from_estimator(c.lda).linkage,
    "visualize_barchart": lambda c: inspection.TopicWordsDisplay.from_estimator(c.lda),
    "visualize_heatmap": lambda c: inspection.TopicMapDisplay.from_estimator(c.lda).distances,
    "visualize_term_rank": lambda c: c.lda.top_words(n=50)[["rank", "probability"]],
    "visualize_distribution": lambda c: c.lda.transform_draws(c.X[:1]),
    "visualize_topics_over_time": lambda c: inspection.TopicsOverTimeDisplay.from_estimator(
        c.lda, c.X, c.year, n_bins=4
    ),
    "visualize_topics_per_class": lambda c: inspection.TopicsOverTimeDisplay.from_estimator(c.lda, c.X, c.party),
    "get_topic_info": lambda c: c.lda.topic_info(c.X),
    "get_topic_freq": lambda c: c.lda.topic_info(c.X)["share"],
    "get_topic": lambda c: c.lda.top_words(10),
    "get_topics": lambda c: c.lda.top_words(10),
    "update_topics": lambda c: c.lda.top_words(by="lift"),
    "transform": lambda c: c.lda.transform(c.X[:2]),
    "approximate_distribution": lambda c: c.lda.transform_draws(c.X[:2], n_draws=2),
    "generate_topic_labels": lambda c: c.lda.topic_names_,
    "hierarchical_topics": lambda c: inspection.TopicHierarchyDisplay.from_estimator(c.lda).linkage,
    "get_representative_docs": lambda c: c.lda.representative_docs(c.X, c.texts),
    "find_topics": lambda c: c.lda.find_topics("ocean"),
    "topics_": lambda c: c.lda.transform(c.X).argmax(axis=1),
    "get_document_info": lambda c: c.lda.transform(c.X).argmax(axis=1),
    "merge_topics": lambda c: c.lda.merge_topics([[0, 2]]),
    "reduce_topics": lambda c: c.lda.merge_topics([0, 1]),
    "set_topic_labels": lambda c: setattr(c.lda.merge_topics([0, 1]), "topic_names_", ["sea", "rest"]),
    "seed_topic_list": lambda c: StructuralTopicModel(3, formula="~ 1", keywords={"Sea": ["ocean"]}, n_iter=4).fit(
        c.X, feature_names=c.words
    ),
    "topics_over_time": lambda c: c.lda.topics_over_time(c.X, c.year),
    "topics_per_class": lambda c: c.lda.topics_over_time(c.X, c.party),
    "partial_fit": lambda c: BayesianLDA(3, n_iter=4).partial_fit(c.X),
}

CALLS = {**STM, **POLCA, **BERTOPIC}


def posts(n=240):
    """Texts of three topics, one of which a party prefers, with a date."""
    rng = np.random.default_rng(0)
    words = [
        "ocean fish reef whale coral tide harbour sailor wave island".split(),
        "orbit rocket planet moon comet launch crater telescope star dust".split(),
        "bread oven flour yeast butter sugar crust dough recipe baker".split(),
    ]
    party = rng.choice(["D", "R"], n)
    kind = np.where(party == "D", rng.choice(3, n, p=[0.6, 0.2, 0.2]), rng.choice(3, n, p=[0.2, 0.4, 0.4]))
    texts = [" ".join(rng.choice(words[k], 20)) + " " + " ".join(rng.choice(words[(k + 1) % 3], 5)) for k in kind]
    year = rng.integers(1950, 2000, n)
    date = np.datetime64("2020-01-01") + rng.integers(0, 360, n).astype("timedelta64[D]")
    return {"text": texts, "party": party, "year": year, "date": date.astype(str)}


@pytest.fixture(scope="module")
def fitted():
    """Everything that the calls of the page use."""
    importorskip("pandas")
    importorskip("formulaic")
    importorskip("matplotlib")
    table = posts()
    vectorizer = make_count_vectorizer(min_df=2)
    X = vectorizer.fit_transform(table["text"])
    words = vectorizer.get_feature_names_out()
    metadata = {name: table[name] for name in ("party", "year")}
    answers = np.random.default_rng(0).integers(0, 2, (60, 3)).astype(float)
    return types.SimpleNamespace(
        vectorizer=vectorizer, X=X, words=words, texts=table["text"], metadata=metadata, **metadata,
        lda=BayesianLDA(3, n_iter=30, random_state=0).fit(X, feature_names=words),
        chains=BayesianLDA(3, n_iter=30, n_chains=2, random_state=0).fit(X, feature_names=words),
        dmr=DMRTopicModel(3, formula="~ party * bs(year, df=4)", n_iter=30, random_state=0).fit(
            X, metadata=metadata, feature_names=words
        ),
        structural=StructuralTopicModel(3, formula="~ party", content="party", n_iter=30, random_state=0).fit(
            X, metadata=metadata, feature_names=words
        ),
        search=search_n_components(BayesianLDA(n_iter=4, random_state=0), X, [2, 3]),
        answers=answers,
        lca=LatentClassModel(2, n_iter=20, random_state=0).fit(answers),
        membership=LatentClassModel(2, n_iter=20, random_state=0).fit(answers, metadata=answers[:, :1]),
    )  # fmt: skip


def rows(section):
    """Names in the left column of the table of a section, and the text of the right one."""
    text = PAGE.split(section, 1)[1]
    text = text.split(".. csv-table::", 1)[1].split("\n\n", 2)[1]
    for row in text.splitlines()[1:]:  # The first row is the header.
        left, right = row.split(" | ")
        yield left, right


def names_of(section):
    """Each name of a section's left column, and whether its row states that it is left out."""
    found = {}
    for left, right in rows(section):
        for name in re.findall(r"``([\w.]+)``", left):
            found.setdefault(name, []).append("left out" in right)
    return found


@pytest.mark.parametrize(
    "section, table",
    [("stm: every exported function", STM), ("poLCA: its arguments", POLCA), ("BERTopic: every picture", BERTOPIC)],
    ids=["stm", "polca", "bertopic"],
)
def test_page_has_every_verb(section, table):
    found = names_of(section)
    assert not set(table) - set(found)
    for name, call in table.items():
        assert (call is LEFT_OUT) == all(found[name]), name


@pytest.mark.filterwarnings("ignore")  # of chains of a few steps
@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call is not LEFT_OUT])
def test_call_runs(name, fitted):
    CALLS[name](fitted)
    __import__("matplotlib.pyplot").pyplot.close("all")
    fitted.lda.set_output(transform="default")


# --------------------------------------------------------------------------------------------------------- the scripts

SMALLER = {
    "covariates": [("DMRTopicModel(20,", "DMRTopicModel(3, n_iter=20,")],
    "words_by_group": [("StructuralTopicModel(20,", "StructuralTopicModel(3, n_iter=20,")],
    "keywords": [
        ("StructuralTopicModel(20,", "StructuralTopicModel(3, n_iter=20,"),
        ('["tax", "market", "budget"]', '["bread", "oven"]'),
        ('["war", "troops"]', '["moon", "comet"]'),
    ],
    "over_time": [("BayesianLDA(20,", "BayesianLDA(3, n_iter=20,")],
    "survey": [("LatentClassModel(random", "LatentClassModel(n_iter=20, random")],
    "number_of_topics": [("BayesianLDA(random", "BayesianLDA(n_iter=4, random"), ("[10, 20, 40, 80]", "[2, 3]")],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task", SMALLER)
def test_script_runs(task, tmp_path, monkeypatch, capsys):
    pandas = importorskip("pandas")
    importorskip("formulaic")
    importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    pandas.DataFrame(posts()).to_csv("posts.csv", index=False)
    rng = np.random.default_rng(0)
    survey = pandas.DataFrame({f"q{j}": rng.choice(["no", "yes", None], 90) for j in range(5)})
    survey.to_csv("survey.csv", index=False)
    survey[:3].to_csv("new.csv", index=False)
    text = (SCRIPTS / f"{task}.py").read_text(encoding="utf-8")
    for whole, small in SMALLER[task]:
        assert text.count(whole) == 1
        text = text.replace(whole, small)
    Path("script.py").write_text(text, encoding="utf-8")
    runpy.run_path("script.py")
    __import__("matplotlib.pyplot").pyplot.close("all")
    assert capsys.readouterr().out and len(list(tmp_path.glob("*.pdf"))) >= 1


def test_our_scripts_have_half_the_lines_and_the_page_states_how_many():
    table = runpy.run_path(str(SCRIPTS / "_lines.py"))["table"]()
    assert set(table) == set(SMALLER)
    total = np.sum(list(table.values()), axis=0)  # Lines, and how many load packages.
    assert 2 * (total[0, 0] - total[0, 1]) <= total[1, 0] - total[1, 1]
    for task, (ours, theirs) in table.items():
        bare = ours[0] - ours[1], theirs[0] - theirs[1]
        assert bare[0] < bare[1]
        assert re.search(rf"side_by_side/{task}\.py", PAGE)
        assert re.search(rf" \| {bare[0]} \| {bare[1]} \| {ours[0]} \| {theirs[0]}\n", PAGE), task
