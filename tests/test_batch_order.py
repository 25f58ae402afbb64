"""Palindromic minibatches: which rows are read at which step, and the law of the chains that read them."""

import itertools
import pickle

import numpy as np
import pytest

from sk_sgmcmc import BayesianGaussian, BayesianLogisticRegression, sample
from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.chains.minibatches import BATCH_ORDERS, Minibatches, palindromic_blocks
from sk_sgmcmc.dense.bias import Noise, stationary_covariance
from sk_sgmcmc.dense.chain import DenseData, make_chains
from sk_sgmcmc.metrics import effective_sample_size
from sk_sgmcmc.samplers import SGHMC, SGLD
from sk_sgmcmc.targets import GaussianMean

RNG = np.random.default_rng(0)
X = RNG.normal(size=(43, 3))
Y = (RNG.random(43) < 1.0 / (1.0 + np.exp(-X[:, 0]))).astype(int)
EACH = pytest.mark.parametrize("scheme", ["baoab", "ubu"])


def chain_that_reads(n_rows, n_batch, batch_order):
    target = GaussianMean(np.arange(n_rows, dtype=float)[:, None])
    rows, params, shape = target._rows()
    dense = DenseData(rows, np.zeros((n_rows, 0)), np.ones(n_rows), params, target._signal(), n_batch)
    plan, seeds = DrawPlan(10, 0, 1), [np.random.SeedSequence(5)]
    sampler = SGLD()._resolved(0.1)
    return make_chains(seeds, plan, sampler, "euclidean", [np.zeros(shape)], 7, dense, batch_order)[0]


# ------------------------------------------------------------------------------------------------------- rows and steps


@pytest.mark.parametrize("n_rows, n_batch", [(40, 10), (43, 10), (43, 1), (4000, 1), (12, 9)])
def test_each_second_epoch_reads_the_minibatches_of_the_one_before_in_reverse_order(n_rows, n_batch):
    chain, m = chain_that_reads(n_rows, n_batch, "palindromic"), n_rows // n_batch
    # Read in pieces whose ends fall into both halves of a pair of epochs.
    starts = np.concatenate([chain.next_starts(n) for n in (1, m, 3, 2 * m, 5 * m - 4)]).reshape(-1, 2, m)
    np.testing.assert_array_equal(starts[:, 1], starts[:, 0, ::-1])
    for there in starts[:, 0]:  # an epoch reads no row twice
        read = (there[:, None] + np.arange(n_batch)) % n_rows
        assert np.unique(read).size == m * n_batch
    if m > 3:
        assert not np.array_equal(starts[0, 0], starts[1, 0])


def test_all_orders_of_a_pair_of_epochs_are_equally_likely():
    reader = Minibatches(np.random.SeedSequence(1))
    pairs = reader.ahead(6 * 12_000, 3, 1, palindromic_blocks).reshape(-1, 6)
    seen = [(pairs[:, :3] == order).all(axis=1).mean() for order in itertools.permutations(range(3))]
    np.testing.assert_allclose(seen, 1.0 / 6.0, atol=4.0 * np.sqrt(5.0 / 36.0 / 12_000))


# --------------------------------------------------------------------------------------------------- resuming and jobs


def logistic(**more):
    params = {"sampler": SGHMC(0.1), "batch_size": 10, "batch_order": "palindromic", "control_variates": False}
    return BayesianLogisticRegression(**{**params, "n_iter": 300, "thin": 1, "burn_in": 0, "random_state": 0, **more})


@pytest.mark.parametrize("stop", [5, 6, 7, 203])  # of eight steps in a pair of epochs, the last four go back
def test_resuming_in_a_backward_epoch_gives_the_same_draws(stop):
    whole = logistic().fit(X, Y)
    dense, _ = whole._chains[0].data
    chain = whole._chains[0]
    shuffle_seed, *seeds = whole._chain_seeds()
    given = chain.plan, whole.sampler_, "euclidean", [np.zeros((4, 1))], shuffle_seed, dense, "palindromic"
    begun = make_chains(seeds, *given)[0]
    begun.run(stop)
    again = pickle.loads(pickle.dumps(begun)).bind((dense, None))
    again.run(300)
    np.testing.assert_array_equal(again.kept["theta"], chain.kept["theta"])


def test_draws_do_not_depend_on_the_number_of_jobs():
    one, two = (logistic(n_chains=2, n_jobs=n).fit(X, Y).samples_["coef"] for n in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, logistic(n_chains=2, batch_order="shuffled").fit(X, Y).samples_["coef"])


def test_other_estimators_and_sample_read_palindromes():
    for make in (
        lambda order: BayesianGaussian(sampler="sghmc", batch_size=10, n_iter=100, batch_order=order, random_state=0)
        .fit(X).samples_["mean"],
        lambda order: sample(
            GaussianMean(X), SGLD(0.01), batch_size=10, n_iter=100, batch_order=order, random_state=0
        ).samples_["theta"],
    ):  # fmt: skip
        assert not np.array_equal(*map(make, BATCH_ORDERS))


def test_bad_orders_are_refused():
    with pytest.raises(ValueError, match="batch_order"):
        logistic(batch_order="sorted").fit(X, Y)
    with pytest.raises(ValueError, match=r"batch_order=.*with_replacement"):
        logistic(with_replacement=True).fit(X, Y)
    with pytest.raises(ValueError, match=r"batch_order=.*with_replacement"):
        sample(GaussianMean(X), SGLD(0.01), batch_size=10, batch_order="palindromic", with_replacement=True)
    fitted = logistic().fit(X, Y)
    with pytest.raises(ValueError, match="batch_order"):
        fitted.set_params(batch_order="shuffled").resume(X, Y)


# ---------------------------------------------------------------------------------------------------------------- laws

CURVATURES = np.array([0.3, 1.0, 2.5])
SAMPLERS = [SGLD(), SGHMC(friction=1.5), SGHMC(scheme="ubu", friction=2.0)]
V = np.array([[1.0, 0.3, 0.0], [0.3, 2.0, -0.5], [0.0, -0.5, 0.7]])


def noise_covariance(sampler, h, n_batches, batch_order="palindromic"):
    """Part of the covariance of theta that is due to the noise of minibatches."""
    chain = sampler._linear_chain(CURVATURES, h, np.zeros(3))
    return stationary_covariance(chain, Noise(V, n_batches, batch_order))[1]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("n_batches", [2, 5, 30])
def test_noise_of_pairs_of_epochs_by_brute_force(sampler, n_batches):
    # The response of theta to an impulse, added up over the steps at which a minibatch is read, at each position in a
    # pair of epochs. Errors of two minibatches of an epoch have the correlation -1 / (m - 1).
    chain, m = sampler._linear_chain(CURVATURES, 0.15, np.zeros(3)), n_batches
    response, state = [], chain.response
    for _ in range(2 * m * (1500 // (2 * m) + 1)):
        response.append(state[:, 0])
        state = (chain.transition @ state[..., None])[..., 0]
    response, expected = np.array(response), np.zeros((3, 3))
    within = np.eye(m) - (1.0 - np.eye(m)) / (m - 1.0)
    of_step = np.concatenate([np.arange(m), np.arange(m)[::-1]])
    for position in range(2 * m):
        late = np.concatenate([np.zeros((2 * m - 1 - position, 3)), response])  # from the end of a pair of epochs
        for pair in late[: len(late) // (2 * m) * 2 * m].reshape(-1, 2 * m, 3):
            total = np.array([pair[::-1][of_step == batch].sum(axis=0) for batch in range(m)])
            expected += V * np.einsum("ai,ab,bj->ij", total, within, total) / (2 * m)
    found = noise_covariance(sampler, 0.15, float(m))
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())
    shuffled = noise_covariance(sampler, 0.15, float(m), "shuffled")  # the broken variant
    assert np.abs(shuffled - expected).max() > 0.01 * np.abs(expected).max()


def test_orders_of_the_bias():
    # As the step size falls, epochs become short, and their noise cancels.
    for n_batches, batch_order, order in ((np.inf, "shuffled", 1), (4.0, "shuffled", 3), (4.0, "palindromic", 4)):
        for sampler in SAMPLERS[1:]:
            coarse, fine = (np.diag(noise_covariance(sampler, h, n_batches, batch_order)) for h in (0.02, 0.01))
            np.testing.assert_allclose(np.log2(coarse / fine), order, atol=0.15)
    for sampler, order in ((SGLD(), 1), (SAMPLERS[2], 2)):  # without noise
        bias = [
            np.diag(stationary_covariance(sampler._linear_chain(CURVATURES, h, np.zeros(3)), None)[0]) * CURVATURES - 1
            for h in (0.1, 0.05)
        ]
        np.testing.assert_allclose(np.log2(bias[0] / bias[1]), order, atol=0.15)


@pytest.mark.parametrize("sampler", [SGLD(0.3), SGHMC(0.5), SGHMC(0.5, scheme="ubu")], ids=str)
def test_chains_have_the_predicted_covariance(sampler):
    rows = np.array([[0.0, 2.0], [1.5, -1.0], [-2.5, 0.5], [1.0, -1.5]])
    precision = np.array([[0.25, 0.05], [0.05, 0.4]])  # of one row; the noise is not proportional to the identity
    draws = sample(
        GaussianMean(rows, precision), sampler, batch_size=1, batch_order="palindromic", n_iter=60_000, burn_in=500,
        n_chains=6, random_state=0,
    ).samples_["theta"]  # fmt: skip
    curvatures, turn = np.linalg.eigh(4.0 * precision)
    error = 4.0 * (rows - rows.mean(axis=0)) @ precision @ turn
    turned = (draws - rows.mean(axis=0)) @ turn
    products = np.stack([turned[..., 0] ** 2, turned[..., 1] ** 2, turned[..., 0] * turned[..., 1]], axis=-1)
    slack = products.std(axis=(0, 1)) / np.sqrt(effective_sample_size(products))

    def scores(n_batches, batch_order):
        chain = sampler._linear_chain(curvatures, float(sampler.step_size), np.zeros(2))
        law, _ = stationary_covariance(chain, Noise(error.T @ error / 4.0, n_batches, batch_order))
        return (products.mean(axis=(0, 1)) - [law[0, 0], law[1, 1], law[0, 1]]) / slack

    assert np.abs(scores(4.0, "palindromic")).max() < 4.5
    assert np.abs(scores(4.0, "shuffled")).max() > 6.0  # the broken variants
    assert np.abs(scores(np.inf, "shuffled")).max() > 6.0
