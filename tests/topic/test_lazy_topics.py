"""Words that wait: the law of each is exact, and the normaliser is close to the sum of all, never a stale sum."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import special

from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.samplers import SCIR, SGRLD
from sk_sgmcmc.topic._counts.document_prior import DocumentPrior
from sk_sgmcmc.topic._counts.documents import MatrixCorpus
from sk_sgmcmc.topic._counts.word_prior import WordPrior
from sk_sgmcmc.topic._minibatch import simplex_topics as _waiting
from sk_sgmcmc.topic._minibatch.chain import MinibatchChain
from sk_sgmcmc.topic._minibatch.simplex_topics import LONGEST, LazyTopics
from tests.cases import N_BATCHES, THRESHOLD, z_scores
from tests.corpora import token_corpus
from tests.tiny_lda import batch_means, make_chain, statistics

N_WORDS = 6


def waiting(h, shape, rng):
    theta = rng.standard_gamma(shape)
    return LazyTopics(SCIR(step_size=h)._resolved(None), theta, shape.sum(axis=0))


def walk(topics, shape, rng, h, n_steps, keep):
    """Random rows wake and go back to sleep at their constant shapes; calls ``keep(rows, total)``."""
    hyper = np.array([h])
    for _ in range(n_steps):
        rows = np.flatnonzero(rng.random(len(shape)) < 0.4)
        _, total = topics.update(rows, np.ascontiguousarray(shape[rows]), hyper, rng)
        keep(rows, total)
        if rng.random() < 0.5:
            topics.defer(np.zeros(shape.shape[1]), hyper)
        else:
            topics.move(rows, np.ascontiguousarray(shape[rows]), np.zeros(shape.shape[1]), hyper, rng)


def columns_of_shapes():
    """Six shapes, each in `N_BATCHES` columns."""
    return np.repeat(np.array([0.05, 0.3, 1.0, 2.0, 5.0, 20.0])[:, None], N_BATCHES, axis=1)


@pytest.mark.parametrize("h, cells_per_block", [(0.1, 2**16), (0.7, 2**16), (LONGEST, 2**16), (0.7, 2 * N_BATCHES)])
def test_rows_that_wake_at_random_times_keep_their_gamma_law(h, cells_per_block, global_random_seed, monkeypatch):
    monkeypatch.setattr(_waiting, "_CELLS_PER_PART", cells_per_block)
    rng = np.random.default_rng(global_random_seed)
    shape = columns_of_shapes()
    topics = waiting(h, shape, rng)
    sums, squares, logs, times = (np.zeros(shape.shape) for _ in range(4))

    def keep(rows, total):
        x = topics.theta[rows]
        sums[rows] += x
        squares[rows] += x**2
        logs[rows] += np.log(x)
        times[rows] += 1

    walk(topics, shape, rng, h, 1500, keep)
    a = shape[:, 0]
    values = np.concatenate([sums / times, squares / times, logs / times]).T
    exact = np.concatenate([a, a * (a + 1), special.digamma(a)])
    assert np.abs(z_scores(values, exact)).max() < THRESHOLD


def test_blocks_of_rows_are_drawn_alike_in_threads_and_from_streams_that_differ(monkeypatch):
    monkeypatch.setattr(_waiting, "_CELLS_PER_PART", 2 * N_BATCHES)
    shape = np.full((6, N_BATCHES), 3.0)
    start, rows = waiting(LONGEST, shape, np.random.default_rng(0)), np.arange(6)
    start.now += LONGEST
    drawn = []
    with ThreadPoolExecutor(3) as pool:
        for threads in (None, pool):
            topics, rng = start.copy(), np.random.default_rng(1)
            topics.update(rows, shape, np.array([LONGEST]), rng, pool=threads)
            drawn.append(topics.theta)
    np.testing.assert_array_equal(*drawn)
    assert np.unique(drawn[0]).size == drawn[0].size and not np.any(drawn[0] == start.theta)


def test_rows_woken_without_being_brought_up_to_date_are_rejected(global_random_seed):
    # The same walk when the clock is forgotten: rows step at the time that has passed since the last *step*.
    rng = np.random.default_rng(global_random_seed)
    topics = waiting(0.3, columns_of_shapes(), rng)
    topics.theta[:] = 50.0
    topics.mass = topics.theta.sum(axis=0)
    hyper, rows, shape = np.array([0.3]), np.array([1]), columns_of_shapes()
    for _ in range(30):  # row 0 sleeps for 9 units of time, in which it forgets its start
        topics.update(rows, shape[rows], hyper, rng)
        topics.defer(np.zeros(N_BATCHES), hyper)
    late = topics.copy()
    late.updated_at[:] = late.now - 0.3
    expected = 0.05 + (50.0 - 0.05) * np.exp(-9.0)
    for twin, right in ((topics, True), (late, False)):
        twin.update(np.array([0]), shape[:1], hyper, rng)
        z = np.abs(z_scores(twin.theta[:1].T, np.array([expected]))).max()
        assert (z < THRESHOLD) == right


@pytest.mark.parametrize("h", [0.2, 1.0])
def test_the_normaliser_is_the_conditional_mean_of_the_true_sum(h, global_random_seed):
    # Unbiased: over many columns, the normaliser and the sum of all rows brought up to date by a copy agree.
    rng = np.random.default_rng(global_random_seed)
    shape = np.repeat(np.array([0.3, 1.0, 2.0, 5.0, 20.0, 40.0])[:, None], 2000, axis=1)
    topics = waiting(h, shape, rng)
    differences = []

    def keep(rows, total):
        twin = topics.copy()
        twin.all_up_to_date(shape, np.array([h]), np.random.default_rng(0))
        differences.append((total - twin.theta.sum(axis=0)).reshape(N_BATCHES, -1).mean(axis=1))

    walk(topics, shape, rng, h, 12, keep)
    assert np.abs(z_scores(np.array(differences).T, np.zeros(12))).max() < THRESHOLD


def test_looking_at_a_copy_changes_nothing():
    rng = np.random.default_rng(0)
    shape = columns_of_shapes()
    topics = waiting(0.3, shape, rng)
    walk(topics, shape, rng, 0.3, 3, lambda rows, total: None)
    before = {name: np.copy(value) for name, value in vars(topics).items() if isinstance(value, np.ndarray)}
    cells = topics.copy().all_up_to_date(shape, np.array([0.3]), np.random.default_rng(1))
    np.testing.assert_allclose(cells.sum(axis=0), 1.0)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(topics, name), value)


def test_words_that_join_start_from_their_prior(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    shape = columns_of_shapes()
    topics = waiting(0.3, shape, rng)
    new = np.full((400, N_BATCHES), 0.5)
    mass = topics.mass.copy()
    topics.extend(new, rng)
    assert topics.theta.shape == (406, N_BATCHES)
    np.testing.assert_allclose(topics.mass - mass, topics.theta[6:].sum(axis=0))
    np.testing.assert_allclose(topics.shape_mass, shape.sum(axis=0) + 200.0)
    assert np.abs(z_scores(topics.theta[6:].mean(axis=0)[:, None], np.array([0.5]))).max() < THRESHOLD


@pytest.mark.parametrize("form", ["expanded-mean", "expanded-natural", "reduced-mean", "reduced-natural"])
def test_words_that_join_have_their_share_in_all_coordinates(form):
    shape = columns_of_shapes()
    natural, whole = form.endswith("natural"), shape.sum(axis=0)
    theta = shape if form == "expanded-mean" else shape / whole
    if natural:
        theta = np.log(shape) - np.log(shape[-1])
    prior, new = 0.5, np.full((4, N_BATCHES), 0.5)
    topics = LazyTopics(SGRLD(0.1, form)._resolved(None), theta, whole, whole - prior * len(shape))
    share = topics.extend(new, np.random.default_rng(0))
    np.testing.assert_allclose(share, new / (whole + 2.0))
    cells = topics.linear() / topics.linear().sum(axis=0)
    np.testing.assert_allclose(cells[-4:].mean(), share.mean(), rtol=1e-9 if natural else 0.2)
    np.testing.assert_allclose(cells[:6] / cells[:6].sum(axis=0), shape / whole)
    if form == "reduced-mean":
        np.testing.assert_allclose(topics.theta.sum(axis=0), 1.0)
    assert form != "reduced-natural" or not topics.theta[-1].any()


@pytest.mark.parametrize("parameterization", ["expanded-mean", "expanded-natural"])
def test_samplers_that_cannot_wait_get_every_row_and_the_true_sum(parameterization):
    rng = np.random.default_rng(0)
    sampler = SGRLD(step_size=0.01, parameterization=parameterization)._resolved(None)
    cells = rng.gamma(5.0, 1.0, (N_WORDS, 2))
    theta = np.log(cells) if parameterization == "expanded-natural" else cells
    topics = LazyTopics(sampler, theta, np.full(2, 30.0))
    linear, total = topics.update(np.array([1]), np.full((1, 2), 5.0), np.array([0.01]), rng)
    np.testing.assert_allclose(total, linear.sum(axis=0))
    np.testing.assert_allclose(linear / total, cells / cells.sum(axis=0), rtol=1e-12)


# --------------------------------------------------------------------- inside a chain: the twin that moves all rows


class Assigning(MinibatchChain):
    """A chain whose topics may change just before assignments are drawn."""

    def bind(self, data):
        super().bind(data)
        draw = self.minibatch.draw

        def drawn(docs, rows, cells, total, *args, **kwargs):
            return draw(docs, rows, cells, self._normaliser(rows, cells, total), *args, **kwargs)

        self.minibatch.draw = drawn
        return self


class AllRows(Assigning):
    """Twin of the lazy chain: every word is brought up to date at every step, so that the sum is the true one."""

    def _normaliser(self, rows, cells, total):
        true = self.topics.copy()
        hyper = self._hyper()
        rest = np.setdiff1d(np.arange(self.n_words), rows)
        true.update(rest, self._shape_of(rest), hyper, self.rng)
        self.topics.theta[rest] = true.theta[rest]
        self.topics.updated_at[rest] = self.topics.now
        self.topics._rest = true.theta[rest].sum(axis=0)
        return self.topics.theta.sum(axis=0)


class StaleSum(Assigning):
    """Broken: divides by the sum of the words as they are, those that wait out of date."""

    def _normaliser(self, rows, cells, total):
        return cells.sum(axis=0)


class Recording(Assigning):
    """Keeps, at every step, the normaliser in use and the stale one over the true sum."""

    def _normaliser(self, rows, cells, total):
        twin = self.topics.copy()
        twin.all_up_to_date(self._shape_of(np.arange(self.n_words)), self._hyper(), np.random.default_rng(0))
        self.ratios = [*getattr(self, "ratios", []), (total / twin.theta.sum(axis=0)).mean()]
        self.stale = [*getattr(self, "stale", []), (cells.sum(axis=0) / twin.theta.sum(axis=0)).mean()]
        return total


@pytest.fixture(scope="module")
def corpus():
    return MatrixCorpus.from_counts(make_lda(n_samples=400, n_features=1500, n_components=5, random_state=0).counts)


def lda_chain(make, corpus, n_iter, seed=0, step_size=0.5, n_batch=8):
    from sk_sgmcmc.chains.chain import DrawPlan

    sampler = SCIR(step_size=step_size)._resolved(None)
    data = token_corpus(corpus, 5, n_batch=n_batch)
    plan = DrawPlan(n_iter, 0.5, 2)
    seed = np.random.SeedSequence(seed)
    priors = WordPrior(0.01, corpus.n_words, 5), DocumentPrior(np.full(5, 0.1), False)
    chain = make(seed, plan, sampler, *priors, stored=False, n_sweeps=(2, 1))
    return chain.bind(data).run(n_iter)


def test_normaliser_is_within_a_fifth_of_a_percent_and_a_stale_sum_is_not(corpus):
    chain = lda_chain(Recording, corpus, 120)
    ratios, stale = np.array(chain.ratios[40:]), np.array(chain.stale[40:])
    assert abs(ratios.mean() - 1.0) < 0.002
    assert np.abs(stale - 1.0).mean() > 10 * abs(ratios.mean() - 1.0)
    assert stale.mean() > 1.05


def tiny_values(make, seed, n_steps=7000):
    # Fresh minibatches: a word that is not in the batch waits at the prior, and matters to the sum.
    counts = np.array([[6, 1, 0, 0], [0, 1, 5, 0], [0, 0, 2, 5], [4, 0, 0, 3]])
    chain = make_chain(
        seed, 0.3, n_steps, counts=counts, stored=False, n_batch=1, n_sweeps=(2, 1), make=make, thin=2, burn_in=200
    )
    values = statistics(chain.run(n_steps).draws()["components"])
    return values[: len(values) // N_BATCHES * N_BATCHES].reshape(N_BATCHES, -1, values.shape[1]).mean(axis=1)


def largest_difference(one, other):
    """Largest z-score of the difference of two chains' means."""
    error = np.sqrt((one.var(axis=0, ddof=1) + other.var(axis=0, ddof=1)) / N_BATCHES)
    return np.abs((one.mean(axis=0) - other.mean(axis=0)) / error).max()


def test_lazy_chain_agrees_with_its_twin_of_all_rows_in_means_and_squares(global_random_seed):
    lazy, every = (tiny_values(make, global_random_seed) for make in (MinibatchChain, AllRows))
    assert largest_difference(lazy, every) < THRESHOLD


def contested_values(make, seed, n_steps=3000, n_rare=40):
    """Probabilities, and their squares, of a word that two topics contest, one of which has mostly words that wait.

    A factor that all topics have in common drops out of assignments, so a stale sum shows only where it is staler in
    one topic than in another. Word 0 is the first topic's alone, the last ``n_rare`` are the second's; each document
    holds two of these, which then wait until their document comes again.
    """
    counts = np.zeros((n_rare // 2, 2 + n_rare), dtype=int)
    counts[:, :2] = 3, 10
    counts[:, 2:] = 5 * np.repeat(np.eye(n_rare // 2, dtype=int), 2, axis=1)
    beta = np.full((2 + n_rare, 2), [1e-3, 0.5])
    beta[:2] = [1.0, 1e-3], [50.0, 50.0]
    chain = make_chain(
        seed, 1.0, n_steps, counts=counts, alpha=np.array([2.0, 2.0]), beta=beta, stored=False, n_batch=1,
        n_sweeps=(2, 1), make=make, thin=2, burn_in=100,
    )  # fmt: skip
    contested = chain.run(n_steps).draws()["components"][:, :, 1].astype(float)
    return batch_means(np.hstack([contested, contested**2]), N_BATCHES)


def test_a_stale_sum_is_rejected_by_the_law_of_the_topics_and_the_waiting_mass_is_not(global_random_seed):
    every, lazy, stale = (
        contested_values(make, 3 * global_random_seed + i) for i, make in enumerate((AllRows, MinibatchChain, StaleSum))
    )
    assert largest_difference(lazy, every) < THRESHOLD
    assert largest_difference(stale, every) > 1.3 * THRESHOLD
