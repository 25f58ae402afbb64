"""Chains of latent class models against the exact posterior of six rows of five kinds; broken variants rejected."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit, gammaln, logsumexp

from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.kernels.models import latent_classes, mixed_rows
from sk_sgmcmc.mixture._dirichlet_process.mixed import MixedChain
from sk_sgmcmc.mixture._latent_class.chain import ClassChain
from sk_sgmcmc.mixture._latent_class.membership import Regression, Shares
from sk_sgmcmc.mixture._mixed import columns
from sk_sgmcmc.mixture._mixed.columns import (
    BinaryColumn,
    CategoricalColumn,
    ContinuousColumn,
    CountColumn,
    OrdinalColumn,
)
from sk_sgmcmc.mixture._mixed.layout import MixedLayout
from sk_sgmcmc.mixture._mixed.rows import MixedRows
from tests.cases import THRESHOLD, z_scores
from tests.naive import dp_categorical as of_partitions
from tests.naive import mixed_rows as naive
from tests.tiny_lda import batch_means

NAN = np.nan
COLUMNS = (
    CategoricalColumn("a", np.arange(3), 0.6),
    BinaryColumn("b", np.arange(2), 0.6),
    OrdinalColumn("c", np.arange(3), 0.6, np.array([0.4, 0.7]), 1.5),
    CountColumn("d", 2.0, 1.2),
    ContinuousColumn("e", 1.0, 2.0, (0.5, 1.5, 0.7)),
)
LAYOUT = MixedLayout(COLUMNS)
KINDS = "categorical", "categorical", "ordinal", "count", "continuous"
PRIORS = (
    np.full(3, 0.6), np.full(2, 0.6), 1.5 * np.array([[0.4, 0.6], [0.7, 0.3]]), (1.2, 0.6), (0.5, 1.5, 0.7),
)  # fmt: skip
ROWS = np.array(
    [
        [0, 0, 0, 1, -0.5],
        [0, 1, NAN, 0, 0.1],
        [2, 1, 2, 4, NAN],
        [NAN, 1, 2, 3, 1.4],
        [1, 0, 1, NAN, 0.3],
        [2, NAN, 1, 6, 1.1],
    ]
)
N, A = len(ROWS), 0.8
ODDS = np.linspace(-1.0, 1.0, N)[:, None] * np.array([1.0, 0.0, -1.0])


class FixedOdds(Shares):
    """Classes with given log prior odds."""

    def odds(self, data):
        return np.ascontiguousarray(ODDS[:, : self.n_classes])


def data_of(weights=None, Z=None, X=ROWS):
    return MixedRows(X, np.ones(len(X)) if weights is None else weights, LAYOUT, 4, Z=Z)


def make(membership, seed, cls=ClassChain, **arguments):
    plan = DrawPlan(10**6, 10**6 - 1, 1)
    return cls(np.random.SeedSequence(seed), plan, LAYOUT, membership, n_starts=0, **arguments).bind(data_of())


def step(chain):
    """One sweep."""
    now = chain.step
    while chain.step == now:
        chain._advance(now + 1)


def statistics(z, n_classes):
    """Pairs of rows that are together, rows in the first class, and the sum of squared class sizes."""
    i, k = np.triu_indices(z.shape[-1], 1)
    sizes = (z[..., None] == np.arange(n_classes)).sum(axis=-2)
    parts = z[..., i] == z[..., k], z == 0, (sizes**2).sum(axis=-1, keepdims=True) / N
    return np.concatenate(parts, axis=-1).astype(float)


@cache
def exact(n_classes, has_odds):
    labels = naive.labelings(N, n_classes)
    odds = ODDS[:, :n_classes] if has_odds else None
    log_p = naive.log_posterior(labels, ROWS, KINDS, PRIORS, n_classes, A, odds)
    return np.exp(log_p - logsumexp(log_p)) @ statistics(labels, n_classes)


def z_of(chain, has_odds, n_steps=4000):
    n_classes = chain.n_classes
    for _ in range(50):
        step(chain)
    labels = np.empty((n_steps, N), dtype=np.int64)
    for s in range(n_steps):
        step(chain)
        labels[s] = chain.z
    means = batch_means(statistics(labels, n_classes), 40)
    return np.abs(z_scores(means, exact(n_classes, has_odds))).max()


# --------------------------------------------------------------------------------------------------------- predictives


def test_columns_name_kinds_as_the_kernels_do():
    names = "CATEGORICAL", "ORDINAL", "COUNT", "CONTINUOUS"
    assert [getattr(columns, name) for name in names] == [getattr(mixed_rows, name) for name in names]


def test_kernels_agree_with_slow_predictives():
    """Of each row given the others, with missing cells, and of all rows together."""
    z = np.zeros(N, dtype=np.int32)
    columns = LAYOUT.kinds, LAYOUT.starts, LAYOUT.prior
    for i in range(N):
        z[:], z[i] = 0, -1
        counts, tables, sizes = np.zeros((LAYOUT.n_stats, 1)), np.zeros((LAYOUT.n_stats, 1)), np.zeros(1)
        mixed_rows.count_rows(z, ROWS, np.ones(N), *columns, counts, tables, sizes)
        out, marginal = np.zeros((N, 1)), np.zeros(1)
        mixed_rows.log_predictives(ROWS, *columns[:2], tables, out)
        mixed_rows.log_marginals(*columns, counts, marginal)
        others = np.delete(ROWS, i, axis=0)
        expected = 0.0
        for j, (kind, prior) in enumerate(zip(KINDS, PRIORS, strict=True)):
            if not np.isnan(ROWS[i, j]):
                cells = others[:, j][~np.isnan(others[:, j])]
                expected += naive.log_predictive(kind, ROWS[i, j], cells, prior)
        assert out[i, 0] == pytest.approx(expected, rel=1e-10)
        assert marginal[0] == pytest.approx(naive.log_marginal(others, KINDS, PRIORS), rel=1e-10)


@pytest.mark.parametrize("j", range(len(COLUMNS)))
def test_densities_given_parameters_average_to_the_predictive(j, global_random_seed):
    """The mean density of a cell over the posterior of a cluster's parameters is the predictive probability."""
    layout, rng = MixedLayout(COLUMNS[j : j + 1]), np.random.default_rng(global_random_seed)
    cells = ROWS[:, j][~np.isnan(ROWS[:, j])]
    others, cell = np.ascontiguousarray(cells[1:, None]), cells[:1, None].copy()
    counts, tables, sizes = np.zeros((layout.n_stats, 1)), np.zeros((layout.n_stats, 1)), np.zeros(1)
    mixed_rows.count_rows(
        np.zeros(len(others), dtype=np.int32), others, np.ones(len(others)), layout.kinds, layout.starts, layout.prior,
        counts, tables, sizes,
    )  # fmt: skip
    draws = np.concatenate([layout.draw(counts, rng) for _ in range(4000)])
    density = np.exp(layout.log_density(cell, draws)[0] - layout.row_constant(cell)[0])
    expected = np.exp(naive.log_predictive(KINDS[j], cell[0, 0], others[:, 0], PRIORS[j]))
    assert abs(density.mean() - expected) < 4.5 * density.std() / np.sqrt(len(density))


# -------------------------------------------------------------------------------------------------------------- labels

EXACT = {
    "two classes, sweeps alone": (Shares(2, A), {"n_moves": 0}),
    "two classes": (Shares(2, A), {"n_moves": 4}),
    "three classes": (Shares(3, A), {"n_moves": 4}),
    "two classes, odds": (FixedOdds(2, A), {"n_moves": 4}),
    "three classes, odds": (FixedOdds(3, A), {"n_moves": 4}),
}


@pytest.mark.parametrize("key", EXACT)
def test_chain_has_the_exact_posterior(key, global_random_seed):
    membership, arguments = EXACT[key]
    chain = make(membership, global_random_seed, **arguments)
    assert z_of(chain, isinstance(membership, FixedOdds)) < THRESHOLD


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("has_odds", [False, True])
def test_moves_of_whole_classes_alone_leave_the_posterior_unchanged(n_classes, has_odds, global_random_seed):
    """Few sweeps of single rows in between, so that an error of the moves would show."""
    chain = make((FixedOdds if has_odds else Shares)(n_classes, A), global_random_seed, MovesMostly, n_moves=20)
    assert z_of(chain, has_odds, 3000) < THRESHOLD
    assert chain.moves[1:].min() >= 1


class MovesMostly(ClassChain):
    """Draws the label of one random row, and moves whole classes."""

    def _advance(self, until):
        if self.z is None:
            self._start()
        i, data, layout = int(self.rng.integers(N)), self.data, self.layout
        latent_classes.sweep_rows(
            i, i + 1, data.cells, data.weights, layout.kinds, layout.starts, layout.prior, self.odds, self._mass, 1.0,
            self.z, self.counts, self.tables, self.sizes, self.rng,
        )  # fmt: skip
        self._move_classes()
        self.step += 1


class Forgetful(ClassChain):
    """Adds rows without removing them before."""

    def _recount(self):
        super()._recount()
        if self.step:
            self.z[:] = -1


class WrongMass(MovesMostly):
    """Moves whole classes under another prior of their sizes."""

    def _move_classes(self):
        membership = self.membership
        self.membership = Shares(membership.n_classes, 4.0 * membership.concentration)
        super()._move_classes()
        self.membership = membership


@pytest.mark.parametrize("cls, n_moves", [(Forgetful, 0), (WrongMass, 4)])
def test_broken_chains_are_rejected(cls, n_moves, global_random_seed):
    assert z_of(make(Shares(2, A), global_random_seed, cls, n_moves=n_moves), False) > 1.5 * THRESHOLD


# -------------------------------------------------------------------------------------------------------- coefficients

SCALES = np.array([1.0, 1.5])
X_OF_ROWS = np.array([-1.2, 0.3, 0.8, -0.4, 1.5, -0.1])
LABELS = np.array([0, 1, 1, 0, 1, 1], dtype=np.int32)


def exact_difference():
    """Posterior mean of the difference of two classes' coefficients given the labels, and of its square, on a grid."""
    Z = np.column_stack([X_OF_ROWS, np.ones(N)])
    grid = np.linspace(-9.0, 9.0, 241)
    slope, intercept = np.meshgrid(grid, grid, indexing="ij")
    log_p = -0.25 * ((slope / SCALES[0]) ** 2 + (intercept / SCALES[1]) ** 2)
    for z, row in zip(LABELS, Z, strict=True):
        log_p += np.log(expit((2 * z - 1) * (row[0] * slope + row[1] * intercept)))
    p = np.exp(log_p - log_p.max())

    def mean(values):
        return integrate.trapezoid(integrate.trapezoid(p * values)) / integrate.trapezoid(integrate.trapezoid(p))

    return np.array([mean(slope), mean(intercept), mean(slope**2), mean(intercept**2)])


def z_of_coefficients(membership, seed, n_steps=4000):
    data, rng = data_of(Z=np.column_stack([X_OF_ROWS, np.ones(N)])), np.random.default_rng(seed)
    drawn = np.empty((n_steps, 4))
    for s in range(n_steps):
        membership.update(data, LABELS, None, rng)
        difference = membership.coef[1] - membership.coef[0]
        drawn[s] = *difference, *difference**2
    return np.abs(z_scores(batch_means(drawn[100:], 40), exact_difference())).max()


class Doubled(Regression):
    """Counts each row twice."""

    def update(self, data, z, sizes, rng):
        super().update(replace(data, weights=2.0 * data.weights), z, sizes, rng)


def test_coefficients_have_the_exact_posterior_given_labels(global_random_seed):
    precision = np.diag(SCALES**-2.0)
    assert z_of_coefficients(Regression(2, precision), global_random_seed) < THRESHOLD
    assert z_of_coefficients(Doubled(2, precision), global_random_seed) > THRESHOLD


# --------------------------------------------------------------------------------------------------- Dirichlet process

ALPHA = 1.3


@cache
def exact_partitions():
    labels = of_partitions.partitions(N)
    log_p = np.array(
        [
            sum(naive.log_marginal(ROWS[z == k], KINDS, PRIORS) + gammaln((z == k).sum()) for k in range(z.max() + 1))
            for z in labels
        ]
    )
    log_p += np.log(ALPHA) * (labels.max(axis=1) + 1)
    return np.exp(log_p - logsumexp(log_p)) @ partition_statistics(labels)


def partition_statistics(z):
    """Pairs of rows that are together, and the number of clusters."""
    i, k = np.triu_indices(N, 1)
    n_clusters = np.array([np.unique(labels).size for labels in z])
    return np.concatenate([z[:, i] == z[:, k], n_clusters[:, None]], axis=1).astype(float)


class Unsplit(MixedChain):
    """Splits and merges under another concentration."""

    def _move_groups(self):
        concentration, self.concentration = self.concentration, 5.0 * ALPHA
        super()._move_groups()
        self.concentration = concentration


def z_of_process(cls, seed, n_pairs, n_steps=2500):
    plan = DrawPlan(10**6, 10**6 - 1, 1)
    chain = cls(np.random.SeedSequence(seed), plan, LAYOUT, ALPHA, n_pairs=n_pairs).bind(data_of())
    labels = np.empty((n_steps, N), dtype=np.int64)
    for s in range(-50, n_steps):
        step(chain)
        labels[max(s, 0)] = chain.z
    return np.abs(z_scores(batch_means(partition_statistics(labels), 40), exact_partitions())).max()


@pytest.mark.parametrize("n_pairs", [0, 3])
def test_process_of_mixed_rows_has_the_exact_posterior(n_pairs, global_random_seed):
    assert z_of_process(MixedChain, global_random_seed, n_pairs) < THRESHOLD


def test_wrong_splits_of_mixed_rows_are_rejected(global_random_seed):
    assert z_of_process(Unsplit, global_random_seed, 10) > THRESHOLD


# -------------------------------------------------------------------------------------------------------- calibration

N_DRAWS, N_REPLICATES = 7, 300


def cells_given(parameters, z, rng):
    """Rows drawn from the parameters of their classes, a sixth of the cells missing."""
    at = LAYOUT.entry_starts
    p = [parameters[z, at[j] : at[j + 1]] for j in range(len(COLUMNS))]
    cells = [
        *((rng.random((len(z), 1)) > np.cumsum(each, axis=1)[:, :-1]).sum(axis=1) for each in p[:3]),
        rng.poisson(p[3][:, 0]), (rng.normal(p[4][:, 0], p[4][:, 1]) - COLUMNS[4].shift) / COLUMNS[4].scale,
    ]  # fmt: skip
    X = np.stack(cells, axis=1).astype(float)
    X[rng.random(X.shape) < 1 / 6] = NAN
    return X


def of_all_rows(draw):
    """Statistics that do not depend on labels: two sums over classes for each parameter, and of shares."""
    weights, parameters = draw["weights"], draw["components"]
    mean = weights @ parameters
    return np.concatenate([mean, weights @ (parameters - mean) ** 2, [weights @ weights]])


def ranks(seed):
    """Ranks of true statistics among draws given rows of which they are the truth, one line for each replicate."""
    found, plan = [], DrawPlan(10**6, 10**6 - 1, 1)
    for replicate in range(N_REPLICATES):
        rng = np.random.default_rng([seed, replicate])
        truth = {"weights": rng.dirichlet(np.full(2, A)), "components": LAYOUT.draw(np.zeros((LAYOUT.n_stats, 2)), rng)}
        X = cells_given(truth["components"], rng.choice(2, 10, p=truth["weights"]), rng)
        chain = ClassChain(np.random.SeedSequence([seed, replicate]), plan, LAYOUT, Shares(2, A)).bind(data_of(X=X))
        draws = []
        for s in range(25 + 5 * N_DRAWS):
            step(chain)
            if s >= 25 and s % 5 == 0:
                draws.append(of_all_rows(chain.current_draw()))
        found.append((np.array(draws) < of_all_rows(truth)).sum(axis=0))
    return np.array(found)


def test_draws_of_mixed_tables_are_calibrated(global_random_seed):
    """The rank of a true value among draws given its data is uniform, if the value is a draw from the prior."""
    found = ranks(global_random_seed)
    moving = found.std(axis=0) > 0
    p = [stats.chisquare(np.bincount(column, minlength=N_DRAWS + 1)).pvalue for column in found[:, moving].T]
    assert moving.sum() >= 20 and min(p) > 1e-4
