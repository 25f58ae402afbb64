"""Warnings about values that an estimator misreads, and none about those that it does not."""

import datetime
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from sk_sgmcmc import BayesianLDA, DMRTopicModel, DPCategoricalMixture, GammaProcessTopicModel
from sk_sgmcmc.datasets import CountBlocks, load_sotu, make_dmr, make_lda
from sk_sgmcmc.mixture._dirichlet_process.cells import warn_of_categories
from sk_sgmcmc.utils import Corpus
from sk_sgmcmc.utils.corpus import warn_of_other_values
from tests.conftest import importorskip

COUNTS = make_lda(n_samples=60, n_features=20, n_components=3, random_state=0).counts.toarray()
NORMALISED = {
    "log of counts per million": lambda X: np.log1p(1e4 * X / X.sum(axis=1, keepdims=True)),
    "log": np.log1p,
    "log2 in single precision": lambda X: np.log2(X + 1).astype(np.float32),
    "tf-idf": lambda X: TfidfTransformer(norm=None).fit_transform(X),
    "unit rows": lambda X: TfidfTransformer().fit_transform(X),
    "shares": lambda X: X / X.sum(axis=1, keepdims=True),
}
MODELS = {
    "lda": BayesianLDA(2, n_iter=4, random_state=0),
    "gamma": GammaProcessTopicModel(3, n_iter=4, random_state=0),
    "mixture": DPCategoricalMixture(n_iter=4, random_state=0),
}


@pytest.mark.parametrize("how", NORMALISED)
@pytest.mark.parametrize("name", MODELS)
def test_normalised_values_warn(how, name):
    X = NORMALISED[how](COUNTS)
    for form in (X, sparse.csr_array(X)):
        with pytest.warns(UserWarning, match="[Pp]ass raw counts"):
            MODELS[name].fit(form)


def test_normalised_blocks_warn():
    with pytest.warns(UserWarning, match=r'adata\.layers\["counts"\]'):
        MODELS["lda"].fit(CountBlocks([sparse.csr_array(np.log1p(COUNTS))] * 2))


def survey(n=400, n_items=8, zero=0, seed=0):
    rng = np.random.default_rng(seed)
    profiles = rng.dirichlet(np.full(5, 0.7), (3, n_items))
    z = rng.integers(3, size=n)
    return zero + np.array([[rng.choice(5, p=profiles[c, j]) for j in range(n_items)] for c in z])


@pytest.mark.parametrize("zero", [0, 1])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_codes_of_categories_warn(zero, form):
    with pytest.warns(UserWarning, match='use likelihood="categorical"'):
        MODELS["mixture"].fit(form(survey(zero=zero)))


def test_codes_of_one_and_two_warn():
    with pytest.warns(UserWarning, match='use likelihood="categorical"'):
        MODELS["mixture"].fit(np.random.default_rng(0).integers(1, 3, (50, 6)))


def real_counts():
    rng = np.random.default_rng(0)
    for rate in (0.1, 0.5, 1.0, 2.0, 5.0, 20.0):
        for n in (20, 60, 500):
            yield rng.poisson(rate, (n, 8))
    yield rng.multinomial(3, np.ones(3) / 3, 200)
    yield rng.multinomial(12, np.ones(4) / 4, 200)
    yield (rng.random((300, 40)) < 0.1).astype(int)
    yield (rng.random((300, 10)) < 0.5).astype(int)
    yield rng.negative_binomial(2, 0.3, (300, 10))
    yield COUNTS
    yield load_sotu().counts[:1000]


def test_counts_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X in real_counts():
            X = sparse.csr_array(X, dtype=np.float64)
            warn_of_categories(X)
            for weighted in (X, X + 0.5 * (X == 2)):  # some counts are fractions
                warn_of_other_values(Corpus.from_counts(weighted), "BayesianLDA")


def metadata_warnings(metadata, **params):
    data = make_dmr(60, 20, 2, 1, 20, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DMRTopicModel(2, n_iter=4, random_state=0, **params).fit(data.counts, metadata=metadata)
    return [str(w.message) for w in caught if "metadata" in str(w.message)]


DAY = [f"{1990 + i % 40}-0{1 + i % 9}-11" for i in range(60)]
LEVELS = {
    "ids": ([f"document {i}" for i in range(60)], "60 levels in 60 rows"),
    "texts of dates": (DAY, "levels in 60 rows, as dates have"),
    "dates": ([datetime.date(1990 + i % 40, 1, 1) for i in range(60)], "40 levels in 60 rows, as dates have"),
    "few dates": ([f"2020-0{1 + i % 9}" for i in range(60)], "holds dates such as '2020-01'"),
    "blanks": (["left", "right", ""] * 20, "the level ''"),
    "spaces": (["left", "right", " "] * 20, "the level ' '"),
}


@pytest.mark.parametrize("name", LEVELS)
def test_levels_that_are_hardly_categories_warn(name):
    values, message = LEVELS[name]
    for params in ({}, {"formula": "~ column"}):
        found = metadata_warnings({"column": values}, **params)
        assert len(found) == 1 and message in found[0] and "metadata column 'column'" in found[0]
    X = np.column_stack([np.array(values, dtype=object), ["a", "b"] * 30])
    with pytest.warns(UserWarning, match="Column 0 of X") as caught:
        DPCategoricalMixture(likelihood="categorical", n_iter=4, random_state=0).fit(X)
    assert any(message in str(w.message) for w in caught)


def test_usual_categories_do_not_warn():
    party = np.array(["whig", "tory", "free"])[np.arange(60) % 3]
    assert (
        metadata_warnings({"party": party, "state": [f"state {i % 30}" for i in range(60)], "year": np.arange(60)})
        == []
    )


def test_an_index_column_warns():
    pandas = importorskip("pandas")
    frame = pandas.DataFrame(COUNTS).rename(columns=str)
    frame.insert(0, "Unnamed: 0", np.arange(60))
    with pytest.warns(UserWarning, match=r"'Unnamed: 0' of X .* index_col=0"):
        MODELS["lda"].fit(frame)
    assert "index_col=0" in metadata_warnings(frame[["Unnamed: 0", "1"]])[0]


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["ap", "poliblog5k", "reuters21578", "sotu_paragraphs"])
def test_real_corpora_do_not_warn(name, data_folder):
    counts = sparse.csr_array(sparse.load_npz(data_folder / name / "counts.npz"), dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X in (counts, (counts > 0).astype(np.float64)):
            warn_of_other_values(Corpus.from_counts(X), "BayesianLDA")
            warn_of_categories(X)
            warn_of_categories(X[:, np.argsort(-X.sum(axis=0))[:10]])
