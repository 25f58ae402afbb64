"""Laws of the steps of documents with outcomes: exact ones of tiny corpora, and joint laws of all parts.

The joint law is simulated forward, and by turns of the chain's updates, after each of which words and outcomes are
drawn again given the rest (Geweke, 2004).
"""

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

from sk_sgmcmc.kernels.models import outcome as kernels
from sk_sgmcmc.topic._counts.corpus import Shard
from sk_sgmcmc.topic._counts.document_prior import first_doc_prior
from sk_sgmcmc.topic._outcome import outcomes as outcomes_module
from sk_sgmcmc.topic._outcome.activity_priors import DirichletActivities, FixedActivities, ScaledActivities
from sk_sgmcmc.topic._outcome.document_prior import OutcomeStep, OutcomeSweeps, update_all
from sk_sgmcmc.topic._outcome.outcomes import BinaryOutcome, GaussianOutcome, Outcomes
from tests.cases import THRESHOLD
from tests.joint_law import z_scores

BETA = 0.5

# ------------------------------------------------------------------------------------------------------ enumeration

WORDS = np.array([0, 0, 1, 2, 1], dtype=np.int32)
PTR = np.array([0, 3, 5])
SHAPE, RATE = np.array([0.5, 0.8]), np.array([1.0, 2.5])
COEF, RESPONSE, PRECISION = np.array([-1.0, 1.0]), np.array([0.8, -0.6]), 8.0
PHI = np.array([[0.6, 0.1], [0.3, 0.3], [0.1, 0.6]])


def log_of_outcome(y, f, is_binary):
    return -np.logaddexp(0, -f if y > 0.5 else f) if is_binary else -0.5 * PRECISION * (y - f) ** 2


def exact_law(is_binary, phi=None):
    """Probabilities of all assignments given words and outcomes, by numerical integration over proportions."""
    t = np.linspace(-25, 25, 4001)  # logit of the share of topic 0
    theta = np.stack([-np.logaddexp(0, -t), -np.logaddexp(0, t)])
    logs = []
    for z in product(range(2), repeat=WORDS.size):
        z, log = np.array(z), 0.0
        if phi is None:
            n = np.zeros((3, 2))
            np.add.at(n, (WORDS, z), 1)
            log += gammaln(n + BETA).sum() - gammaln(n.sum(axis=0) + 3 * BETA).sum()
        else:
            log += np.log(phi[WORDS, z]).sum()
        for d in range(2):
            m = np.bincount(z[PTR[d] : PTR[d + 1]], minlength=2)
            f = COEF @ np.exp(theta)
            density = (SHAPE + m) @ theta - SHAPE.sum() * np.log(RATE @ np.exp(theta))
            log += np.log(np.exp(density + log_of_outcome(RESPONSE[d], f, is_binary)).sum())
        logs.append(log)
    p = np.exp(np.array(logs) - max(logs))
    return p / p.sum()


def step_of(is_binary, activity):
    known = np.ones(2, dtype=bool)
    response = (RESPONSE > 0).astype(float) if is_binary else RESPONSE
    return OutcomeStep(SHAPE[None], RATE[None], activity, response, known, np.zeros(2), COEF, PRECISION, is_binary)


def frequencies(one_step, n, seed=0, n_batches=50):
    """z-scores of the frequencies of all assignments in a chain, against `exact_law`, as a function of that law."""
    places, z = 2 ** np.arange(WORDS.size)[::-1], np.zeros(WORDS.size, dtype=np.uint16)
    rng, found = np.random.default_rng(seed), np.empty(n, dtype=np.int64)
    for i in range(n):
        one_step(z, rng)
        found[i] = z @ places
    shares = np.stack([np.bincount(part, minlength=2**WORDS.size) for part in found.reshape(n_batches, -1)])
    shares = shares * n_batches / n
    error = shares.std(axis=0, ddof=1) / np.sqrt(n_batches)
    return lambda law: np.abs((shares.mean(axis=0) - law) / np.where(error > 0, error, np.inf)).max()


class NumpySteps:
    """The step of a document in NumPy; mistakes are options.

    Parameters
    ----------
    orders : tuple
        Of the scans: 1 ascending, -1 descending.
    asks_outcome : bool
        Whether topics are accepted or rejected with the proportions; otherwise they are always accepted.
    """

    def __init__(self, is_binary, orders=(1, -1), asks_outcome=True, phi=None):
        self.is_binary, self.orders, self.asks_outcome, self.phi = is_binary, orders, asks_outcome, phi
        self.activity = np.ones((2, 2))

    def __call__(self, z, rng):
        for d in range(2):
            tokens, G = np.arange(PTR[d], PTR[d + 1]), self.activity[d]
            u, new = rng.gamma(tokens.size) / G.sum(), z.copy()
            for i in tokens[:: self.orders[rng.integers(len(self.orders))]]:
                others, own = np.delete(np.arange(z.size), i), np.delete(tokens, i - PTR[d])
                m = np.bincount(new[own], minlength=2)
                p = (m + SHAPE) / (RATE + u)
                if self.phi is None:
                    n = np.zeros((3, 2))
                    np.add.at(n, (WORDS[others], new[others]), 1)
                    p = p * (n[WORDS[i]] + BETA) / (n.sum(axis=0) + 3 * BETA)
                else:
                    p = p * self.phi[WORDS[i]]
                new[i] = rng.random() * p.sum() > p[0]
            proposed = rng.gamma(SHAPE + np.bincount(new[tokens], minlength=2)) / (RATE + u)
            y = float(RESPONSE[d] > 0) if self.is_binary else RESPONSE[d]
            gain = [log_of_outcome(y, COEF @ (g / g.sum()), self.is_binary) for g in (proposed, G)]
            accepts = np.log(rng.random()) < gain[0] - gain[1]
            if accepts:
                self.activity[d] = proposed
            if accepts or not self.asks_outcome:
                z[:] = new


def sweep_by_kernel(is_binary, is_wide=False):
    """The chain's own sweeps, of words with one prior, or with a prior for each topic."""
    shard = Shard(PTR, WORDS, np.zeros(0), 0, 3)
    step, state = step_of(is_binary, np.full((2, 2), np.nan, dtype=np.float32)), {}

    def one_step(z, rng):
        if not state:
            prior = np.full((3, 2), BETA) if is_wide else np.broadcast_to(BETA, (3, 2))
            state["sweeps"] = OutcomeSweeps(shard, z, prior)
        state["sweeps"].sweep(shard, 0, 2, step, np.zeros(2, dtype=np.int64), rng)

    return one_step


def sweep_given_topics(is_binary):
    step = step_of(is_binary, np.full((2, 2), np.nan, dtype=np.float32))

    def one_step(z, rng):
        kernels.sweep_given_topics(PTR, WORDS, np.zeros(0), z, PHI, step.shape, step.rate, rng, *step[2:])

    return one_step


@cache
def _law(is_binary, is_given):
    return exact_law(is_binary, PHI if is_given else None)


@pytest.mark.parametrize("is_binary", [False, True])
def test_sweeps_have_the_exact_law(is_binary, global_random_seed):
    assert frequencies(sweep_by_kernel(is_binary), 100_000, global_random_seed)(_law(is_binary, False)) < THRESHOLD


@pytest.mark.parametrize("is_binary", [False, True])
def test_sweeps_given_topics_have_the_exact_law(is_binary, global_random_seed):
    assert frequencies(sweep_given_topics(is_binary), 100_000, global_random_seed)(_law(is_binary, True)) < THRESHOLD


def test_a_twin_in_numpy_has_the_exact_law(global_random_seed):
    assert frequencies(NumpySteps(False), 10_000, global_random_seed)(_law(False, False)) < THRESHOLD


@pytest.mark.parametrize("mistake", [{"orders": (1,)}, {"orders": (-1,)}, {"asks_outcome": False}], ids=str)
def test_one_order_of_scans_and_topics_apart_from_outcomes_are_rejected(mistake):
    assert frequencies(NumpySteps(False, **mistake), 10_000)(_law(False, False)) > THRESHOLD


# -------------------------------------------------------------------------------------------------------- joint law

N_WORDS, N_TOPICS = 4, 3
LENGTHS = np.array([3, 0, 2, 0, 1, 0])
DOCS = np.repeat(np.arange(LENGTHS.size), LENGTHS)
DOC_PTR = np.concatenate([[0], np.cumsum(LENGTHS)])
OBSERVED = np.array([True, True, True, True, False, True])
COVARIATES = np.array([[-1.0], [0.5], [2.0], [0.0], [1.0], [-1.5]])
FIXED = np.array([0.3, 0.7, 0.4])
SCALE = 4.0  # prior standard deviation of the coefficients


class Parts:
    """A way to learn the documents' prior: how its parameters are drawn, and an object with given ones."""

    @staticmethod
    def drawn(rng):
        return FIXED, np.ones(N_TOPICS)

    @staticmethod
    def prior(shape, scale):
        return FixedActivities(shape)


class Dirichlet(Parts):
    @staticmethod
    def drawn(rng):
        return np.exp(rng.normal(np.log(first_doc_prior(N_TOPICS)), 2.0, N_TOPICS)), np.ones(N_TOPICS)

    @staticmethod
    def prior(shape, scale):
        return DirichletActivities(shape)


class Scaled(Parts):
    @staticmethod
    def drawn(rng):
        return Dirichlet.drawn(rng)[0], np.exp(rng.normal(size=N_TOPICS))

    @staticmethod
    def prior(shape, scale):
        prior = ScaledActivities(shape)
        prior.coefficients.value = np.log(np.column_stack([shape, scale]))
        return prior


class Forward:
    """All parts of the state, and the words and outcomes, drawn forward."""

    def __init__(self, rng, parts, is_binary):
        self.shape, self.scale = parts.drawn(rng)
        logs = np.log(rng.gamma(self.shape + 1.0, size=(LENGTHS.size, N_TOPICS)))
        self.logs = logs + np.log(rng.random(logs.shape)) / self.shape + np.log(self.scale)
        theta = np.exp(self.logs - self.logs.max(axis=1, keepdims=True))
        self.theta = theta / theta.sum(axis=1, keepdims=True)
        self.z = np.array([rng.choice(N_TOPICS, p=self.theta[d]) for d in DOCS], dtype=np.uint16)
        phi = rng.dirichlet(np.full(N_WORDS, BETA), N_TOPICS)
        self.words = np.array([rng.choice(N_WORDS, p=phi[k]) for k in self.z], dtype=np.int32)
        self.coef, self.own = rng.normal(scale=SCALE, size=N_TOPICS), rng.normal(scale=SCALE, size=1)
        self.variance = outcomes_module._LEAST_RESIDUAL**2 / rng.chisquare(1.0)
        self.response = outcome_of(rng, self.theta, self.coef, self.own, self.variance, is_binary)


def outcome_of(rng, theta, coef, own, variance, is_binary):
    f = theta @ coef + COVARIATES @ own
    y = (rng.random(f.size) < 1 / (1 + np.exp(-f))) if is_binary else f + np.sqrt(variance) * rng.normal(size=f.size)
    return np.where(OBSERVED, y, 0.0)


def statistics(shape, scale, theta, z, words, coef, own, variance, response):
    """Functions of the state whose means are compared."""
    m = np.zeros((LENGTHS.size, N_TOPICS))
    np.add.at(m, (DOCS, z), 1.0)
    n = np.zeros((N_WORDS, N_TOPICS))
    np.add.at(n, (words, z), 1.0)
    sign = np.sign(response - (0.5 if set(response) <= {0.0, 1.0} else 0.0)) * OBSERVED
    ratio = np.log(scale / scale[0])[1:]
    return np.concatenate([
        np.log(shape), np.log(shape) ** 2, ratio, ratio**2, theta[[0, 1, 4]].ravel(), (theta**2).sum(axis=0),
        (theta * m).sum(axis=0), (m**2).sum(axis=0), (n**2).sum(axis=0), coef, coef**2, own, own**2,
        [np.log(variance), coef @ theta[0], (coef @ theta[0]) ** 2], sign @ theta, (sign @ m) * coef,
        sign @ COVARIATES * own,
        [(coef[None] * theta).sum(axis=1) @ sign, (theta * theta[:, [1, 2, 0]]).sum()],
        np.log(shape) * theta[1], np.log(shape) * theta.sum(axis=0), [(theta**2).sum() * np.log(shape.sum())],
    ])  # fmt: skip


class Turns:
    """The chain's updates, and words and outcomes drawn given the rest."""

    def __init__(self, seed, parts, is_binary):
        self.rng = rng = np.random.default_rng(seed)
        start = Forward(rng, parts, is_binary)
        self.is_binary, self.z = is_binary, start.z
        self.prior = parts.prior(start.shape, start.scale)
        self.outcome = (BinaryOutcome if is_binary else GaussianOutcome)(N_TOPICS, 1, SCALE)
        self.outcome.coef, self.outcome.covariate_coef = start.coef, start.own
        if not is_binary:
            self.outcome.variance = start.variance
        self.outcomes = Outcomes(start.response.astype(float), OBSERVED, COVARIATES)
        self.activity = start.logs.astype(np.float32)
        self.shard = Shard(DOC_PTR, start.words, np.zeros(0), 0, N_WORDS)
        self.sweeps = OutcomeSweeps(self.shard, self.z, np.broadcast_to(BETA, (N_WORDS, N_TOPICS)))

    def update(self):
        step = OutcomeStep.of(self.prior, self.outcome, self.outcomes, self.activity)
        self.sweeps.sweep(self.shard, 0, LENGTHS.size, step, np.zeros(LENGTHS.size, dtype=np.int64), self.rng)
        tokens = DOC_PTR, np.zeros(0), self.z
        update_all(self.activity, self.outcome, self.outcomes, self.prior, tokens, self.rng, False)

    def turn(self):
        """Update everything once; returns the statistics."""
        self.update()
        rng, outcome = self.rng, self.outcome
        theta = np.exp(self.activity.astype(float) - self.activity.max(axis=1, keepdims=True))
        theta /= theta.sum(axis=1, keepdims=True)
        shape, rate = (each[0] for each in self.prior.gamma_parameters())
        own = outcome.coef, outcome.covariate_coef, outcome.variance
        found = statistics(shape, 1 / rate, theta, self.z, self.shard.words, *own, self.outcomes.response)
        self.outcomes.response[:] = outcome_of(rng, theta, *own, self.is_binary)
        for i, k in enumerate(self.z):
            self.sweeps.table[self.shard.words[i], k] -= 1
            p = self.sweeps.table[:, k] + BETA
            self.shard.words[i] = rng.choice(N_WORDS, p=p / p.sum())
            self.sweeps.table[self.shard.words[i], k] += 1
        return found


class GivenCounts(Turns):
    """Mistake: the documents' prior is drawn with the proportions integrated out."""

    def update(self):
        super().update()
        m = np.zeros((LENGTHS.size, N_TOPICS))
        np.add.at(m, (DOCS, self.z), 1.0)

        def log_likelihood(shape):
            terms = gammaln(shape + m).sum(axis=1) - gammaln(shape).sum()
            return (terms + gammaln(shape.sum()) - gammaln(shape.sum() + LENGTHS)).sum() - 0.5 * (
                ((np.log(shape) - np.log(first_doc_prior(N_TOPICS))) / 2.0) ** 2
            ).sum()

        for k in range(N_TOPICS):
            for _ in range(10):
                new = self.prior.alpha.copy()
                new[k] *= np.exp(self.rng.normal())
                if np.log(self.rng.random()) < log_likelihood(new) - log_likelihood(self.prior.alpha):
                    self.prior.alpha = new


def z_of(seed, parts, is_binary, make=Turns, n_forward=5000, n_turns=5000, n_batches=40):
    rng, forward = np.random.default_rng(seed), []
    for _ in range(n_forward):
        state = Forward(rng, parts, is_binary)
        variance = 1.0 if is_binary else state.variance
        own = state.coef, state.own, variance
        forward.append(statistics(state.shape, state.scale, state.theta, state.z, state.words, *own, state.response))
    chain = make(seed + 1, parts, is_binary)
    return z_scores(np.array(forward), np.array([chain.turn() for _ in range(n_turns)]), n_batches)


@pytest.mark.parametrize("is_binary", [False, True], ids=["normal", "binary"])
@pytest.mark.parametrize("parts", [Parts, Dirichlet, Scaled])
def test_turns_have_the_joint_law(parts, is_binary, global_random_seed, monkeypatch):
    monkeypatch.setattr(outcomes_module, "_LEAST_RESIDUAL", 1.0)  # so that outcomes have usual sizes
    assert z_of(global_random_seed, parts, is_binary).max() < THRESHOLD


def test_a_prior_given_counts_is_rejected(monkeypatch):
    monkeypatch.setattr(outcomes_module, "_LEAST_RESIDUAL", 0.3)
    assert z_of(0, Dirichlet, False, GivenCounts, 8000, 8000).max() > THRESHOLD
