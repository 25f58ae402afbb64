import gzip
import json
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from sk_sgmcmc import datasets
from sk_sgmcmc.datasets import (
    fetch_20newsgroups_counts,
    fetch_corpus,
    fetch_table,
    make_count_vectorizer,
    normalize_text,
)
from sk_sgmcmc.datasets._registry import CORPORA, TABLES


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data folder of our own making; nothing else is found."""
    monkeypatch.delenv("SK_SGMCMC_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "sklearn"))
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def write_corpus(folder, counts, words, meta=None, labels=None, suffix=""):
    folder.mkdir(parents=True, exist_ok=True)
    sparse.save_npz(folder / f"counts{suffix}.npz", sparse.csr_matrix(np.array(counts)))
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    if meta:
        (folder / "meta.csv").write_text(meta, encoding="utf-8")
    if labels:
        (folder / f"labels{suffix}.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")


META = 'split,category,filename\ntrain,b,007\ntest,a,"x,y"\ntrain,a,9\n'


def test_a_corpus_is_read_from_the_folder_given(home):
    write_corpus(home / "20newsgroups", [[1, 0], [0, 2], [0, 0]], ["naïve", "b"], META, ["b", "a", "a"])
    data = fetch_corpus("20newsgroups", data_home=home)
    np.testing.assert_array_equal(data.data.toarray(), [[1, 0], [0, 2], [0, 0]])
    assert data.counts is data.data
    assert data.feature_names.tolist() == ["naïve", "b"]
    assert list(data.metadata["filename"]) == ["007", "x,y", "9"]
    assert (data.target_names, data.target.tolist()) == (["a", "b"], [1, 0, 0])
    assert (data.train.tolist(), data.test.tolist()) == ([0, 2], [1])
    assert "qwone.com" in data.DESCR
    assert (fetch_20newsgroups_counts(data_home=home).data != data.data).nnz == 0


def test_environment_and_sklearn_home_are_searched_in_this_order(home, tmp_path, monkeypatch):
    write_corpus(tmp_path / "sklearn" / "sk_sgmcmc" / "ap", [[1]], ["own"])
    assert fetch_corpus("ap").feature_names.tolist() == ["own"]
    write_corpus(home / "ap", [[1]], ["named"])
    monkeypatch.setenv("SK_SGMCMC_DATA", str(home))
    assert datasets.fetch_ap().feature_names.tolist() == ["named"]
    with pytest.raises(OSError):
        fetch_corpus("ap", data_home=tmp_path / "elsewhere")


def test_numbers_in_metadata_become_numbers(home):
    write_corpus(home / "acl_abstracts", [[1], [2]], ["w"], "id,year,venue\n1,2001,acl\n2,2002,\n")
    metadata = datasets.fetch_acl_abstracts(data_home=home).metadata
    assert list(metadata["year"] - 2000) == [1, 2]
    assert list(metadata["id"]) == ["1", "2"]
    assert list(metadata["venue"]) == ["acl", ""]


def test_sets_in_parts_are_put_together(home):
    folder = home / "20news_different"
    write_corpus(folder, [[1, 0], [0, 1]], ["a", "b"], labels=["s", "r"], suffix="_train")
    write_corpus(folder, [[3, 3]], ["a", "b"], labels=["s"], suffix="_test")
    for part, rows in (("train", np.eye(2)), ("test", [[0.6, 0.8]])):
        sparse.save_npz(folder / f"tfidf_{part}.npz", sparse.csr_matrix(np.array(rows)))
    data = datasets.fetch_20news_different(data_home=home)
    assert (data.train.tolist(), data.test.tolist()) == ([0, 1], [2])
    assert data.target.tolist() == [1, 0, 1]
    np.testing.assert_allclose(data.tfidf.toarray()[2], [0.6, 0.8])
    (home / "binary").mkdir()
    np.savez(home / "binary" / "nltcs.npz", **{p: np.eye(4, 16, dtype=np.uint8) for p in ("train", "valid", "test")})
    data = datasets.fetch_nltcs(data_home=home)
    assert data.data.shape == (12, 16)
    assert data.valid.tolist() == [4, 5, 6, 7]


def test_tables(home):
    folder = home / "tabular"
    folder.mkdir()
    np.savez(folder / "heart.npz", X=np.eye(3), y=np.array([0, 1, 1], dtype=np.int8), feature_names=list("abc"))
    data = fetch_table("heart", data_home=home)
    assert (data.feature_names.tolist(), data.target.tolist()) == (["a", "b", "c"], [0, 1, 1])
    for file, rows in (("a9a.svm.gz", "-1 3:1 123:1\n+1 1:1\n"), ("a9a.t.svm.gz", "+1 2:1\n")):
        with gzip.open(folder / file, "wt") as out:
            out.write(rows)
    data = fetch_table("a9a", data_home=home)
    assert data.data.shape == (3, 123)
    assert (data.target.tolist(), data.test.tolist()) == ([-1, 1, 1], [2])
    assert data.data[0].indices.tolist() == [2, 122]
    np.savez(
        folder / "covertype.npz",
        numeric=np.arange(20, dtype=np.int16).reshape(2, 10),
        wilderness=np.array([3, 0], dtype=np.uint8),
        soil=np.array([39, 1], dtype=np.uint8),
        cover_type=np.array([1, 7], dtype=np.uint8),
        feature_names=[f"n{j}" for j in range(10)] + ["Wilderness_Area", "Soil_Type"],
    )
    data = fetch_table("covertype", data_home=home)
    expected = np.hstack([np.arange(20).reshape(2, 10), np.eye(4)[[3, 0]], np.eye(40)[[39, 1]]])
    np.testing.assert_array_equal(data.data, expected)
    assert len(data.feature_names) == 54


@pytest.mark.parametrize("name", [*CORPORA, *TABLES])
def test_what_is_nowhere_is_told_how_to_get(name, home, monkeypatch):
    monkeypatch.setenv("SK_SGMCMC_DATA", str(home))
    fetch = fetch_corpus if name in CORPORA else fetch_table
    with pytest.raises(OSError) as error:
        fetch(name)
    said = str(error.value)
    facts = {**CORPORA, **TABLES}[name]
    for part in (name, str(home), "sk_sgmcmc", "Expected layout", facts.files[0], facts.source, "SK_SGMCMC_DATA"):
        assert part in said
    assert not list(home.iterdir())  # looking leaves no trace


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"fetch_corpus has no data set 'wiki'.*'wikipedia'"):
        fetch_corpus("wiki")
    with pytest.raises(ValueError, match=r"fetch_table has no data set 'iris'.*'heart'"):
        fetch_table("iris")


@pytest.mark.parametrize("fault", ["vocab", "meta", "labels"])
def test_files_that_do_not_fit_are_refused(fault, home):
    words = ["a"] if fault == "vocab" else ["a", "b"]
    meta = "rating\nx\n" if fault == "meta" else None
    write_corpus(home / "poliblog5k", [[1, 0], [0, 2]], words, meta, ["l"] if fault == "labels" else None)
    with pytest.raises(OSError, match="do not fit together"):
        fetch_corpus("poliblog5k", data_home=home)


def test_newsgroups_come_from_scikit_learn_where_no_folder_has_them(home, monkeypatch):
    from sk_sgmcmc.datasets import _fetch

    calls = []

    def fetch(subset, **options):
        calls.append((subset, options))
        posts = ["The space shuttle flew"] * 25 + ["Baseball pitchers' shuttle"] * 30
        return Bunch(data=posts, target=np.repeat([1, 0], [25, 30]), target_names=["rec", "sci"])

    monkeypatch.setattr(_fetch, "fetch_20newsgroups", fetch)
    data = fetch_20newsgroups_counts()
    assert [call[0] for call in calls] == ["train", "test"]
    assert all(call[1]["remove"] == ("headers", "footers", "quotes") for call in calls)
    assert not any(call[1]["shuffle"] for call in calls)
    assert data.feature_names.tolist() == ["flew", "space"]  # the others are in more than half of the posts
    assert data.data.shape == (110, 2)
    assert data.train.tolist() == list(range(55))
    assert data.target_names == ["rec", "sci"]

    def fail(subset, **options):
        raise OSError("no network")

    monkeypatch.setattr(_fetch, "fetch_20newsgroups", fail)
    with pytest.raises(OSError, match=r"was not found.*SK_SGMCMC_DATA.*no network"):
        fetch_20newsgroups_counts()


# ------------------------------------------------------------------------------------------------------------- recipe


def test_recipe():
    assert normalize_text("Café\u2019s DON'T they'LL Ωmega can't 'em") == "cafe  do  they  \u03c9mega ca  'em"
    vectorizer = pickle.loads(pickle.dumps(make_count_vectorizer(min_df=2, max_df=1.0)))
    counts = vectorizer.fit_transform(
        ["Topics, topics and the chain's end", "topic chains: Chain 42 b1", "chain topics"]
    )
    assert vectorizer.get_feature_names_out().tolist() == ["chain", "topics"]
    np.testing.assert_array_equal(counts.toarray(), [[1, 2], [1, 0], [1, 1]])
    assert make_count_vectorizer(vocabulary=["a"], ngram_range=(1, 2)).ngram_range == (1, 2)


@pytest.mark.real_data
@pytest.mark.parametrize("name, file", [("acl2020_abstracts", "texts"), ("acl_abstracts", "texts_sample")])
def test_recounting_the_texts_gives_the_shipped_rows(name, file, data_folder):
    data = fetch_corpus(name, data_home=data_folder)
    rows, texts = read_texts(data_folder / name / f"{file}.jsonl.gz")
    counts = make_count_vectorizer(vocabulary=data.feature_names, ascii_only=True).transform(texts)
    assert (counts != data.data[rows]).nnz == 0


@pytest.mark.real_data
def test_making_the_vocabulary_anew_gives_the_shipped_one(data_folder):
    data = datasets.fetch_sotu_paragraphs(data_home=data_folder)
    rows, texts = read_texts(data_folder / "sotu_paragraphs" / "texts.jsonl.gz")
    vectorizer = make_count_vectorizer(min_df=10, ascii_only=True)
    counts = vectorizer.fit_transform(texts)
    # Paragraphs that were dropped as short had a say in the vocabulary, so a word at the limit may be missing now.
    shared = np.isin(data.feature_names, vectorizer.get_feature_names_out())
    assert shared.mean() > 0.99
    columns = [vectorizer.vocabulary_[word] for word in data.feature_names[shared]]
    assert (counts[:, columns] != data.data[rows][:, np.flatnonzero(shared)]).nnz == 0


def read_texts(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    return [int(record["row"]) for record in records], [record["text"] for record in records]


# ---------------------------------------------------------------------------------------------------------- real sets


@pytest.mark.real_data
@pytest.mark.parametrize(
    "name, shape, tokens, split",
    [
        ("20newsgroups", (18846, 5520), 1_204_485, (11314, 7532)),
        ("wikipedia", (22194, 7702), 16_988_711, None),
        ("acl_abstracts", (17195, 6771), 1_399_135, None),
        ("acl2020_abstracts", (778, 1910), 60_517, None),
        ("sotu_paragraphs", (20486, 7773), 814_649, None),
        ("poliblog5k", (5000, 2632), 1_005_745, None),
        ("reuters21578", (20608, 4665), 1_289_154, None),
        ("ap", (2246, 10473), 435_838, None),
        ("20news_different", (2773, 5000), 279_232, (1666, 1107)),
        ("msweb", (37711, 294), 113_845, (32711, 5000)),
        ("nltcs", (21574, 16), None, (16181, 3236)),
    ],
)
def test_real_corpora_have_the_sizes_known(name, shape, tokens, split, data_folder):
    data = fetch_corpus(name, data_home=data_folder)
    assert data.data.shape == shape
    assert tokens is None or data.data.sum() == tokens
    assert len(data.feature_names) == shape[1]
    if split:
        assert (len(data.train), len(data.test)) == split
    columns = list(data.metadata)
    assert all(len(data.metadata[column]) == shape[0] for column in columns)


@pytest.mark.real_data
def test_a_plain_classifier_reaches_the_accuracies_known(data_folder):
    model = make_pipeline(StandardScaler(), LogisticRegression())
    for name, accuracy in (("australian", 0.861), ("heart", 0.837)):
        data = fetch_table(name, data_home=data_folder)
        assert cross_val_score(model, data.data, data.target).mean() == pytest.approx(accuracy, abs=0.01)
    data = fetch_table("a9a", data_home=data_folder)
    model = LogisticRegression(max_iter=300).fit(data.data[data.train], data.target[data.train])
    assert model.score(data.data[data.test], data.target[data.test]) == pytest.approx(0.8495, abs=0.002)
    data = fetch_table("covertype", data_home=data_folder)
    assert data.data.shape == (397050, 54)
    np.testing.assert_allclose(np.bincount(data.target)[1:3] / 397050, [0.365, 0.487], atol=0.002)
