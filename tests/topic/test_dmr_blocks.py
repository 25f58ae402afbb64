"""Dirichlet-multinomial regression of documents in blocks: its law over shards, metadata by block, and refusals."""

import pickle
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.covariates.metadata import MetadataEncoder
from sk_sgmcmc.datasets import CountBlocks, make_dmr
from sk_sgmcmc.samplers import Gibbs
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._counts.corpus import AssignedShards
from sk_sgmcmc.topic._counts.documents import MatrixCorpus
from sk_sgmcmc.topic._counts.record import scored_draws
from sk_sgmcmc.topic._counts.word_prior import WordPrior
from sk_sgmcmc.topic._dmr.coefficients import Coefficients, CurvatureSums
from sk_sgmcmc.topic._dmr.document_prior import MetadataPrior
from sk_sgmcmc.topic._dmr.evidence import Evidence, EvidenceInShards
from sk_sgmcmc.topic._dmr.group_counts import group_counts
from tests.cases import THRESHOLD, z_scores
from tests.common.compare import mapped_files
from tests.conftest import importorskip
from tests.corpora import block_corpus, shard_of
from tests.tiny_lda import BETA, COUNTS, batch_means, exact_law, statistics

# ------------------------------------------------------------------------------------------------------------ the law

PRIORS, GROUP = np.array([[0.2, 1.5], [2.0, 0.1]]), np.array([0, 1, 0])  # not in the order of their groups
N_STEPS = 8000


class Held(MetadataPrior):
    """Coefficients stand still, at the priors of the groups."""

    def __init__(self):
        super().__init__(PRIORS[0], True, coef_sampler=None, n_metadata=1, scales=(1.0, 1.0))
        eta = np.log(PRIORS)
        self.coefficients.value = np.column_stack([eta[1] - eta[0], eta[0]])

    def update(self, assigned, progress):
        pass


def tiny_chain(seed, doc_prior, shard_tokens, counts=COUNTS, group=GROUP):
    metadata = group[:, None].astype(float)
    blocks = CountBlocks([sparse.csr_array(counts[:1]), sparse.csr_array(counts[1:])], shard_tokens=shard_tokens)
    corpus = block_corpus(blocks, 2, described=metadata, prepare=MetadataEncoder().fit(metadata).rows)
    chain = CollapsedChain(
        np.random.SeedSequence(seed), DrawPlan(N_STEPS, 100, 1), Gibbs()._resolved(None),
        WordPrior(BETA, counts.shape[1], 2), doc_prior, init="random",
    )  # fmt: skip
    return chain.bind(corpus)


@pytest.mark.parametrize("shard_tokens", [3, 100])
def test_assignments_under_priors_of_metadata_have_the_exact_law(shard_tokens, global_random_seed):
    chain = tiny_chain(global_random_seed, Held(), shard_tokens)
    values = statistics(chain.run(N_STEPS).draws()["components"])
    law = exact_law(alpha=PRIORS[GROUP], beta=BETA)
    assert np.abs(z_scores(batch_means(values), law)).max() < THRESHOLD


@pytest.fixture(scope="module")
def planted():
    return make_dmr(90, 40, 3, document_length=25, random_state=0)


@pytest.mark.parametrize("limits", [{}, {"_MAX_JOINT": 1}, {"_MAX_CELLS": 1}])
@pytest.mark.parametrize("in_groups", [True, False])
def test_shards_together_know_what_all_documents_know(limits, in_groups, planted, monkeypatch):
    for name, limit in limits.items():
        monkeypatch.setattr("sk_sgmcmc.topic._dmr.coefficients." + name, limit)
    X = sparse.csr_array(planted.counts)
    encoded = np.asarray(planted.metadata, dtype=float)
    encoded = np.round(encoded) if in_groups else encoded
    encoder = MetadataEncoder().fit(encoded)
    blocks = CountBlocks([X], shard_tokens=300)
    shards = block_corpus(blocks, 3, described=encoded, prepare=encoder.rows).shards
    corpus = MatrixCorpus.from_counts(X)
    whole = shard_of(corpus.with_described(encoded), prepare=encoder.rows)
    assert shards.n_shards > 4 and (whole.group.max() < 60) == in_groups
    z = np.random.default_rng(0).integers(3, size=shards.words.size).astype(np.uint16)
    # The same topic for each token of a document: shards and the whole have documents in other orders.
    plain, topics = shard_of(corpus), {}
    for d in range(90):
        topics[tuple(plain.words[plain.token_ptr[d] : plain.token_ptr[d + 1]])] = d
    z_whole = z.copy()
    for data, to in ((shards, z), (whole, z_whole)):
        for d in range(90):
            part = slice(data.token_ptr[d], data.token_ptr[d + 1])
            d = topics[tuple(data.words[part])]
            to[part] = np.random.default_rng(d).integers(3, size=part.stop - part.start)
    coefficients = Coefficients(None, True, np.full(3, 0.3), encoder.n_metadata, (1.0, 2.0))
    coefficients.value += 0.3 * np.random.default_rng(1).normal(size=coefficients.value.shape)
    here = Evidence(coefficients, whole.rows, group_counts(whole, z_whole, 3))
    there = EvidenceInShards(coefficients, AssignedShards(shards, z, None))
    value = coefficients.value + 0.1
    np.testing.assert_allclose(there.slope(value), here.slope(value), rtol=1e-9, atol=1e-9)
    pairs = [(there.likelihood(value), here.likelihood(value)), (there.expansion(), here.expansion())]
    if not in_groups:  # bounds of the curvature are taken group by group
        pairs.append((there.curvature(), here.curvature()))
        pairs.append((there.curvature(jointly=False), here.curvature(jointly=False)))
    for one, other in pairs:
        assert type(one) is type(other)
        for a, b in zip(flat(one), flat(other), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def flat(value):
    if value is None:
        return []
    return [x for each in value for x in flat(each)] if isinstance(value, (tuple, CurvatureSums)) else [value]


# --------------------------------------------------------------------------------------------- metadata block by block

PARAMS = {"n_components": 3, "n_iter": 24, "random_state": 0, "topic_word_prior": 0.1}
ENDS = (0, 31, 31, 60, 90)


@pytest.fixture(scope="module")
def counts(planted):
    return sparse.csr_array(planted.counts)


@pytest.fixture(scope="module")
def columns(planted):
    year = 1900.0 + 10 * np.round(np.asarray(planted.metadata, dtype=float)[:, 0], 1)
    return {"party": [("whig", "tory", "free soil")[i % 3] for i in range(90)], "year": list(year)}


def cut(columns, start, stop):
    return {name: values[start:stop] for name, values in columns.items()}


def parts_of(columns):
    return [cut(columns, start, stop) for start, stop in pairwise(ENDS)]


def blocks_of(counts, **params):
    parts = [counts[start:stop] for start, stop in pairwise(ENDS)]
    return CountBlocks(parts, **{"shard_tokens": 500, **params})


@pytest.fixture(scope="module")
def fitted(counts, columns):
    return DMRTopicModel(**PARAMS).fit(CountBlocks([counts], shard_tokens=500), metadata=columns)


def same(a, b):
    return all(np.array_equal(a.samples_[name], b.samples_[name]) for name in ("coef", "components"))


def forms(columns):
    pandas = importorskip("pandas")
    polars = importorskip("polars")
    tables = parts_of(columns)
    yield tables
    yield lambda: iter(tables)
    yield [pandas.DataFrame(table) for table in tables]
    yield pandas.DataFrame(columns).astype({"party": "category"})
    yield [polars.DataFrame(table, schema={"party": polars.String, "year": polars.Float64}) for table in tables]


def test_the_form_of_metadata_changes_no_draw(counts, columns, fitted):
    assert fitted._chains[0].data.shards_wanted > 3
    for n_jobs, metadata in enumerate(forms(columns), start=1):
        model = DMRTopicModel(**PARAMS, n_jobs=n_jobs % 2 + 1).fit(blocks_of(counts), metadata=metadata)
        assert same(model, fitted)
        assert model.metadata_names_ == fitted.metadata_names_


def test_arrays_and_sparse_matrices(counts, columns):
    M = np.column_stack([columns["year"], np.arange(90) % 4])
    whole = DMRTopicModel(**PARAMS).fit(blocks_of(counts), metadata=M)
    parts = [M[start:stop] for start, stop in pairwise(ENDS)]
    years = [M[start:stop, 0] for start, stop in pairwise(ENDS)]
    of_years = DMRTopicModel(**PARAMS).fit(blocks_of(counts), metadata=lambda: iter(years))
    assert same(of_years, DMRTopicModel(**PARAMS).fit(blocks_of(counts), metadata=M[:, :1]))
    for tables in (parts, [sparse.csr_array(part) for part in parts]):
        assert same(DMRTopicModel(**PARAMS).fit(blocks_of(counts), metadata=tables), whole)
    many = sparse.csr_array(np.eye(90)[:, :70])
    tables = [many[start:stop] for start, stop in pairwise(ENDS)]
    model = DMRTopicModel(**PARAMS).fit(blocks_of(counts), metadata=tables)
    assert model.coef_.shape == (3, 71)
    assert same(DMRTopicModel(**PARAMS).fit(blocks_of(counts), metadata=many), model)


def test_answers_are_those_in_memory(counts, columns, fitted):
    source, tables = blocks_of(counts), parts_of(columns)
    for metadata in (tables, columns):
        assert fitted.score(source, metadata=metadata) == fitted.score(counts, metadata=columns)
        assert fitted.perplexity(source, metadata=metadata) == fitted.perplexity(counts, metadata=columns)
        answer = fitted.transform(source, metadata=metadata)
        np.testing.assert_array_equal(answer, fitted.transform(counts, metadata=columns))
    np.testing.assert_array_equal(fitted.transform(source), fitted.transform(counts))
    np.testing.assert_array_equal(fitted.predict_prevalence(tables), fitted.predict_prevalence(columns))
    whole = DMRTopicModel(**PARAMS).fit(counts, metadata=columns)
    assert fitted.perplexity(counts, metadata=columns) < 1.05 * whole.perplexity(counts, metadata=columns)
    np.testing.assert_allclose(fitted.doc_topic_prior_.sum(), whole.doc_topic_prior_.sum(), rtol=0.3)
    encoded = fitted._encoder.encode(columns, 90, "error")
    draws = fitted.samples_["coef"][0]
    mean = np.mean([np.exp(c[:, 0] + encoded @ c[:, 1:].T) for c in draws[scored_draws(len(draws))]], axis=(0, 1))
    np.testing.assert_allclose(fitted.doc_topic_prior_, mean, rtol=1e-10)


def test_resume_gives_the_draws_of_an_uninterrupted_fit(counts, columns, fitted):
    model = DMRTopicModel(**PARAMS, callbacks=lambda _, now: now > 9).fit(blocks_of(counts), metadata=columns)
    model = pickle.loads(pickle.dumps(model)).set_params(callbacks=None)
    with pytest.raises(ValueError, match="resume continues with the data"):
        model.resume(blocks_of(counts), metadata={**columns, "year": columns["year"][::-1]})
    assert same(model.resume(blocks_of(counts), metadata=parts_of(columns)), fitted)


@pytest.mark.filterwarnings("ignore:total_samples")
def test_a_stream_of_blocks_is_that_of_its_blocks_and_may_follow_a_fit(counts, columns, fitted):
    tables = parts_of(columns)
    one, other = (DMRTopicModel(3, n_iter=40, random_state=0) for _ in range(2))
    one.partial_fit(blocks_of(counts), metadata=tables)
    for start, stop, table in zip(ENDS, ENDS[1:], tables, strict=False):
        if stop > start:
            other.partial_fit(counts[start:stop], metadata=table)
    assert same(one, other)
    streams = [pickle.loads(pickle.dumps(fitted)), pickle.loads(pickle.dumps(fitted))]
    streams[1] = pickle.loads(pickle.dumps(streams[1]))
    for stream in streams:
        stream.set_params(sampler="scir").partial_fit(blocks_of(counts), metadata=columns)
        held = stream._chains[0].doc_prior.coefficients.held
        assert np.abs(held.matrix).max() > 1.0  # what the fitted documents say is not forgotten
    assert same(*streams) and streams[0].n_samples_seen_ == 180


def test_an_interrupted_fit_goes_on_as_a_stream(counts, columns):
    model = DMRTopicModel(**PARAMS, callbacks=lambda _, now: now > 9).fit(blocks_of(counts), metadata=columns)
    updated = pickle.loads(pickle.dumps(model)).set_params(callbacks=None).partial_fit(counts, metadata=columns)
    assert updated.samples_["coef"].shape[1] == 1  # the state in which the fit ended
    model.set_params(callbacks=None, sampler="scir").partial_fit(counts, metadata=columns)
    assert np.abs(model._chains[0].doc_prior.coefficients.held.matrix).max() > 1.0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc as Linux has it")
def test_temporary_files_go_when_the_fit_ends(counts, columns, tmp_path, uncollected):
    model = DMRTopicModel(**PARAMS, n_chains=2).fit(blocks_of(counts, folder=tmp_path), metadata=columns)
    assert not list(tmp_path.iterdir()) and not mapped_files(tmp_path)
    assert np.isfinite(model.perplexity(counts, metadata=columns))


def test_without_metadata_it_is_a_topic_model_with_a_learnt_prior(counts):
    with pytest.warns(UserWarning, match="No metadata were given"):
        model = DMRTopicModel(**PARAMS).fit(blocks_of(counts))
    assert model.coef_.shape == (3, 1) and np.isfinite(model.score(blocks_of(counts)))


# ------------------------------------------------------------------------------------------------------------ refusals


def test_metadata_of_other_lengths_are_refused_by_the_block(counts, columns, fitted):
    short = parts_of(columns)
    short[2] = cut(columns, 31, 59)
    for ask in (DMRTopicModel(**PARAMS).fit, DMRTopicModel(**PARAMS).partial_fit, fitted.score, fitted.transform):
        with pytest.raises(ValueError, match="metadata of block 2 has 28 rows, but block 2 holds 29 documents"):
            ask(blocks_of(counts), metadata=short)
        with pytest.raises(ValueError, match="metadata has 3 tables and X has 4 blocks"):
            ask(blocks_of(counts), metadata=parts_of(columns)[:3])
        with pytest.raises(ValueError, match="metadata has 89 rows and X has 90"):
            ask(blocks_of(counts), metadata=cut(columns, 0, 89))


def test_tables_of_other_columns_or_kinds_are_refused(counts, columns):
    pandas = importorskip("pandas")
    tables = parts_of(columns)
    other = [*tables[:3], {"year": tables[3]["year"]}]
    with pytest.raises(ValueError, match=r"metadata of block 3 has the columns \['year'\]"):
        DMRTopicModel(**PARAMS).fit(blocks_of(counts), metadata=other)
    arrays = [np.ones((stop - start, 1 + (stop == 90))) for start, stop in pairwise(ENDS)]
    with pytest.raises(ValueError, match="metadata of block 3 has the columns 2, but that of the first block 1"):
        DMRTopicModel(**PARAMS).fit(blocks_of(counts), metadata=arrays)
    with pytest.raises(TypeError, match="different kinds: dict, DataFrame"):
        DMRTopicModel(**PARAMS).fit(blocks_of(counts), metadata=[*tables[:3], pandas.DataFrame(tables[3])])


ONCE = {
    "a generator": (lambda tables: iter(tables), "metadata is a list_iterator, which can be read only once"),
    "one table": (lambda tables: lambda: tables[0], "returned a dict; it must return an iterator over tables"),
    "nothing": (lambda tables: lambda: None, "returned a NoneType; it must return an iterator over tables"),
    "a gap": (lambda tables: [*tables[:3], None], "metadata of block 3 is of type NoneType; pass a frame"),
}


@pytest.mark.parametrize("key", ONCE)
def test_what_is_no_list_of_tables_is_told_what_to_pass(key, counts, columns):
    make, message = ONCE[key]
    with pytest.raises(TypeError, match=message):
        DMRTopicModel(**PARAMS).fit(blocks_of(counts), metadata=make(parts_of(columns)))


def test_metadata_in_the_columns_of_blocks_are_refused(counts):
    with pytest.raises(ValueError, match=r"Blocks contain only counts\. Leave metadata_columns=None"):
        DMRTopicModel(metadata_columns=2).fit(blocks_of(counts))
