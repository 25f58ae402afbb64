"""Chains of the spherical admixture model: prior, updates of proportions and topics, and variational inference."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ...chains.chain import Chain
from ...chains.minibatches import Minibatches, every_row, independent, whole
from ...directions import check_movement
from ...kernels.math import concentration, special
from ...kernels.models.spherical import admixture, proportions, variational
from ...samplers.state import SamplerState
from ...utils._numbers import real_array

CONCENTRATIONS = ("kappa0", "kappa1", "sigma")


@dataclass(frozen=True, eq=False)
class AdmixturePrior:
    """Constants of the priors.

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
        Dirichlet parameter of the proportions of documents.
    numbers : ndarray of shape (3,)
        Concentrations kappa0, kappa1 and sigma.
    center : ndarray of shape (n_words,)
        Prior mean direction of the mean of the topics, a unit vector.
    learnt : tuple of str
        Which of "kappa0", "kappa1", "sigma" and "doc_topic_prior" are sampled, starting from ``alpha`` and ``numbers``.
        Their logarithms have normal priors centred at the logarithms of these starting values.
    scale : float
        Standard deviation of the priors of ``learnt`` parameters.
    """

    alpha: np.ndarray
    numbers: np.ndarray
    center: np.ndarray
    learnt: tuple = ()
    scale: float = 1.0


def checked_prior(model, rows, sampler, is_sampled):
    """Check the prior parameters of ``model`` and return them as `AdmixturePrior`, given unit rows.

    ``is_sampled``: whether the ``sampler`` samples a distribution. Only then can parameters be "auto".
    """
    K, V = model.n_components, rows.shape[1]
    learnt = tuple(name for name in (*CONCENTRATIONS, "doc_topic_prior") if isinstance(getattr(model, name), str))
    if learnt and not is_sampled:
        raise ValueError(
            f'{learnt[0]}="auto" requires posterior draws, but {type(sampler).__name__} returns a point estimate. '
            "Pass a number."
        )
    alpha = real_array("doc_topic_prior", 1.0 if "doc_topic_prior" in learnt else model.doc_topic_prior)
    if alpha.shape not in ((), (K,)) or not np.all(alpha > 0) or not np.all(np.isfinite(alpha)):
        raise ValueError(
            f"doc_topic_prior={model.doc_topic_prior!r} must be a positive number, or {K} of them, one per topic."
        )
    given = [getattr(model, name) for name in CONCENTRATIONS]
    numbers = np.array(
        [times * V if value in (None, "auto") else value for value, times in zip(given, (2, 6, 2), strict=True)]
    )
    center = np.asarray(rows.sum(axis=0), dtype=np.float64).ravel()
    length = np.linalg.norm(center)
    center = center / length if length > 1e-12 else np.full(V, V**-0.5)
    return AdmixturePrior(np.broadcast_to(alpha, (K,)).copy(), numbers.astype(np.float64), center, learnt)


_STIFF = 1.0  # largest step size, relative to the shortest time scale; the integrator is stable below 2
# Automatic step size relative to the shortest time scale of the topics, and the most that the noise of the gradient may
# add to the velocity in a step, relative to the thermal velocity. Chosen on 20 Newsgroups.
_STEP_SHARE = 0.4
_NOISE_SHARE = 0.15
_AGE_NOISE_SHARE = 0.05  # as _NOISE_SHARE, for the noise of the correction of outdated stored terms
ADAPTS = 0.2  # change of the log step size of a document after a rejection, during adaptation
_ADAPT_EVERY = 5


class AdmixtureChain(Chain):
    """Draws proportions of documents by geodesic Monte Carlo and topics by a geodesic sampler, in turn.

    The proportions of every document are kept, so that each visit of a document starts from its last proportions.

    Parameters
    ----------
    seed : SeedSequence
    plan : DrawPlan
    sampler : Sampler
        Resolved.
    prior : AdmixturePrior
    n_inner : int
        Number of steps of the sampler of the topics between draws of the proportions.
    n_draws : tuple of int
        Number of trajectories of a document's proportions to discard, and to average over.
    init : {"centroids", "random"}
    auto : bool
        Whether to set the step size from the curvature during burn-in.
    stored : bool
        Whether the gradient of the topics is a sum over all documents. Those outside the minibatch then contribute the
        terms of their last visit, corrected for the motion of the topics since. Otherwise the gradient is the sum over
        the minibatch, scaled by N/n.
    """

    stores = True  # whether the gradient can use stored terms of documents outside the minibatch
    is_sampled = True  # whether the chain samples a distribution, rather than optimising a point estimate
    proposes = False  # whether moves of the topics can be rejected

    def __init__(self, seed, plan, sampler, prior, *, n_inner, n_draws, init, auto, stored=False):
        super().__init__(seed, plan)
        self.stored = stored
        self.alpha, self.numbers = prior.alpha.copy(), prior.numbers.copy()
        self.others = np.empty((0, 0)), np.empty((0, 0))
        self.total = None
        self.sampler = sampler
        self.prior = prior
        self.n_inner = n_inner
        self.n_draws = n_draws
        self.init = init
        self.auto = auto
        self.state = None
        self.theta = None
        self.theta_steps = None
        self.hyper = None
        self.is_due = False
        self.acceptance = 0.0
        self.batches = Minibatches(seed)

    @property
    def beta(self):
        """Topics, unit rows of shape (n_topics, n_words); None before the start."""
        return None if self.state is None else self.state.theta

    @property
    def n_topics(self):
        """Number of topics."""
        return self.alpha.size

    def scale(self, docs):
        """N/n, the number of documents in the posterior over the number in the minibatch ``docs``."""
        return (self.total or self.data.n_docs) / docs.size

    # -- start -----------------------------------------------------------------------------------------------------

    def _start(self):
        self.state = SamplerState(self.sampler, self._first_topics(), "sphere", name="The topics")
        self._take_documents()

    def _take_documents(self):
        """Set the initial proportions of documents."""
        data, K = self.data, self.n_topics
        self.theta = np.zeros((data.n_docs, K))
        self.theta_steps = np.full(data.n_docs, 0.1 / np.sqrt(self.numbers[1] + K * K))
        for docs in np.array_split(np.arange(data.n_docs), max(1, data.n_docs // 1000)):
            gram, products = self._products(docs)
            # Start from clipped least squares, which is the mode for alpha = 1 if it lies inside the simplex.
            solved = np.linalg.solve(gram + 1e-3 * np.trace(gram) / K * np.eye(K), products.T).T
            solved = np.maximum(solved / np.maximum(np.abs(solved).sum(axis=1, keepdims=True), 1e-12), 0.2 / K)
            self.theta[docs] = solved / solved.sum(axis=1, keepdims=True)
        self.terms = np.zeros((data.n_docs, 2))
        self.batches.forget()
        if self.stored:
            self.others = np.zeros_like(self.beta), np.zeros((K, K))
            if data.n_batch < data.n_docs:
                self._exchange(np.arange(data.n_docs), 1.0)

    def _first_topics(self):
        """Initial topics: the prior mean direction plus noise, or centroids of spherical k-means."""
        data, K = self.data, self.n_topics
        noise = self.rng.standard_normal((K, data.n_words)) / np.sqrt(data.n_words)
        beta = self.prior.center + noise
        if self.init == "centroids":
            from scipy.sparse import csr_array

            some = np.sort(self.rng.choice(data.n_docs, min(data.n_docs, 5000), replace=False))
            X = csr_array((data.values, data.words, data.ptr), shape=(data.n_docs, data.n_words))[some]
            beta = X[self.rng.choice(len(some), K, replace=len(some) < K)].toarray() + 0.1 * noise
            for _ in range(8):
                beta /= np.linalg.norm(beta, axis=1, keepdims=True)
                label = np.asarray(X @ beta.T).argmax(axis=1)
                member = csr_array((np.ones(len(some)), (label, np.arange(len(some)))), shape=(K, len(some)))
                beta = (member @ X).toarray() + 0.1 * self.prior.center + 0.05 * noise
        return np.ascontiguousarray(beta / np.linalg.norm(beta, axis=1, keepdims=True))

    def stream(self, total):
        """Continue with the documents just bound; gradients of minibatches are scaled to ``total`` documents."""
        self.is_due = self.is_due or (self.stored and self.auto)  # because the gradient is noisier now
        self.stored, self.total = False, total
        self.others = np.empty((0, 0)), np.empty((0, 0))
        if self.beta is not None:
            self._take_documents()
        return self

    def take_sampler(self, sampler):
        """Continue with another step size or friction; "auto" starts from the current step size."""
        if sampler.get_params(deep=False) == self.sampler.get_params(deep=False):
            return
        self.auto = sampler._picks_step
        if self.state is None:
            self.sampler = sampler._resolved(None)
            return
        self.state.n_steps = self.step * self.n_inner
        self.state.continue_with(sampler)
        self.sampler = self.state.sampler
        self.hyper = float(self.state.hypers(1)[0, 0])

    # -- steps -----------------------------------------------------------------------------------------------------

    def _products(self, docs):
        K = self.n_topics
        gram, products = np.empty((K, K)), np.empty((docs.size, K))
        admixture.document_products(self.beta, *self.data.csr, docs, gram, products)
        return gram, products

    def _next_batch(self):
        data, streams = self.data, self.total is not None
        # The correction in `_since` requires that the choice of documents does not depend on their last visits.
        order = every_row if streams else independent if self.stored else whole
        return self.batches.next(data.n_docs, data.n_batch, order)

    def _since(self, docs):
        """Proportions and terms of ``docs`` at their last visit, and the ratio of other documents to ``docs``.

        The terms of the other documents are as old as those of ``docs``, on average. So the effect of the motion of the
        topics on the former is estimated from its effect on the latter, at the proportions of the last visit. The
        proportions drawn in this visit would add their own change to the estimate, and the topics would overreact.
        """
        return self.theta[docs], self.terms[docs], (self.data.n_docs - docs.size) / docs.size

    def _exchange(self, docs, sign):
        admixture.exchange_documents(self.beta, *self.data.csr, docs, self.theta, self.terms, sign, *self.others)

    def _draw_proportions(self, docs):
        draws = np.empty((docs.size, self.n_draws[1], self.n_topics))
        # Adapt during burn-in and at the first visit of each document, which is the only visit in a stream.
        first = -(-self.data.n_docs // docs.size)
        adapts = ADAPTS if self.step < max(self.plan.n_burn, first) else 0.0
        proportions.draw_proportions(
            *self._products(docs), self.alpha, self.numbers[1], docs, self.theta, self.theta_steps, *self.n_draws, 10,
            adapts, draws, self.rng,
        )  # fmt: skip
        return draws

    def _advance(self, until):
        if self.beta is None:
            self._start()
        docs = self._next_batch()
        apart = self.stored and docs.size < self.data.n_docs
        since = np.empty((0, 0)), np.empty((0, 0)), 0.0
        if apart:
            self._exchange(docs, -1.0)
            if 2 * self.step >= self.plan.n_burn:  # before, topics move so far that the correction is mostly noise
                since = self._since(docs)
        draws = self._draw_proportions(docs)
        scale = 1.0 if self.stored else self.scale(docs)
        self._move_topics(*self.data.csr, docs, draws, self.numbers, self.prior.center, scale, *self.others, *since)
        if apart:
            self._exchange(docs, 1.0)
        if self.prior.learnt:
            self._draw_concentrations(docs, scale)
        self.step += 1
        if self.plan.wants(self.step):
            self.keep(self.current())

    def _move_topics(self, *context):
        every = self.step < self.plan.n_burn and self.step % _ADAPT_EVERY == 0
        if self.auto and (self.hyper is None or self.is_due or every):
            self._adapt(context)
            self.is_due = False
        state = self.state
        state.n_steps = self.step * self.n_inner
        state.check(
            proportions.run_topics(
                *state.arrays, *context, state.hypers(self.n_inner), np.zeros(2), *state.kernels(), self.rng
            )
        )

    def _draw_concentrations(self, docs, scale):
        """Draw the learnt prior parameters by slice sampling, given topics and proportions."""
        prior, draw = self.prior, concentration.concentration_draw
        if not (self.stored and docs.size < self.data.n_docs):
            # Update the terms of these documents at the current topics; the sums are not needed.
            admixture.exchange_documents(
                self.beta, *self.data.csr, docs, self.theta, self.terms, 1.0, np.zeros_like(self.beta),
                np.zeros((self.n_topics,) * 2),
            )  # fmt: skip
        which = slice(None) if self.stored else docs
        full = np.diff(self.data.ptr)[which] > 0  # empty documents are ignored
        center, total = prior.center, self.beta.sum(axis=0)
        for name in prior.learnt:
            if name == "doc_topic_prior":
                logs = np.log(np.maximum(self.theta[which], 1e-300)).sum()
                n = scale * len(self.theta[which])
                numbers = [1.0, self.n_topics, n, scale * logs, np.log(prior.alpha[0]), prior.scale]
                self.alpha[:] = draw(self.alpha[0], np.array(numbers), self.rng)
                continue
            at = ("kappa0", "kappa1", "sigma").index(name)
            if name == "kappa1":
                rest = [scale * full.sum(), scale * self.terms[which, 1][full].sum()], [0.0] * 4
            elif name == "sigma":
                pull = self.numbers[0] * center
                rest = [self.n_topics, 0.0], [1.0, pull @ pull, pull @ total, total @ total]
            else:
                pull = self.numbers[2] * total
                rest = [1.0, 0.0], [1.0, pull @ pull, pull @ center, center @ center]
            numbers = [0.0, self.data.n_words, *rest[0], np.log(prior.numbers[at]), prior.scale, *rest[1]]
            self.numbers[at] = draw(self.numbers[at], np.array(numbers), self.rng)

    def _adapt(self, context):
        """Set the step size from the current curvature of the topics and noise of the gradient."""
        across, signal, extra = np.empty((self.n_topics,) * 2), np.empty_like(self.beta), np.zeros(2)
        admixture.admixture_signal(self.beta, *context, across, signal, extra)
        curvature = max(np.linalg.eigvalsh(across)[-1], 0.0) + self.numbers[2] + 1.0
        # All inner steps use one minibatch, so its noise adds up over them.
        noise = max(extra[1], 0.0) * self.n_inner
        share = _AGE_NOISE_SHARE if self.stored else _NOISE_SHARE
        h = self.sampler._stable_step(curvature, noise, share=share, reach=_STEP_SHARE)
        # A step size that is too large does more harm than one that is too small, so let it grow only slowly.
        self.hyper = h if self.hyper is None else min(h, 1.1 * self.hyper)
        self.sampler._with_step(self.hyper, self.step, self.state.scalars)

    def _is_too_stiff(self):
        """Whether the step size is too large at the curvature that topics have after they fit their documents."""
        full = np.diff(self.data.ptr) > 0
        theta = self.theta[full]
        sizes = np.sqrt(np.einsum("dk,kj,dj->d", theta, self.beta @ self.beta.T, theta))
        theta = theta / np.maximum(sizes, 1e-12)[:, None]
        size = self.scale(full) * self.numbers[1] * np.linalg.eigvalsh(theta.T @ theta)[-1] + self.numbers[2] + 1.0
        start = self.step * self.n_inner
        return self.sampler._hyper(start, start + 1)[0, 0] * np.sqrt(size) > _STIFF

    def current(self):
        """Current topics and learnt prior parameters."""
        if self.beta is None:
            self._start()
        values = dict(
            zip(("kappa0", "kappa1", "sigma", "doc_topic_prior"), [*self.numbers, self.alpha[0]], strict=True)
        )
        return {"components": self.beta.astype(np.float32), **{name: values[name] for name in self.prior.learnt}}


class MetropolisAdmixtureChain(AdmixtureChain):
    """As `AdmixtureChain`, with topics moved by Metropolis trajectories given the proportions of all documents."""

    proposes = True

    def checks(self):
        return check_movement(self.draws()["components"][None])

    def _move_topics(self, *context):
        if self.hyper is None:
            if self.auto:
                self._adapt(context)
            self.hyper = float(self.sampler.step_size_(self.step))
        flow, project = self.sampler._kernels("sphere")
        h = self.hyper if self.auto else float(self.sampler.step_size_(self.step))
        jitter = float(self.sampler.jitter)
        accepted = proportions.run_topic_trajectories(
            self.beta, *context, h, jitter, self.sampler.n_leapfrog, self.n_inner, flow.compiled, project.compiled,
            self.rng,
        )  # fmt: skip
        self.acceptance += accepted
        if self.auto and self.step < self.plan.n_burn:
            self.hyper *= np.exp(0.2 * (accepted - self.sampler.target_accept))
            self.sampler._with_step(self.hyper, self.step, self.state.scalars)


class VariationalAdmixtureChain(AdmixtureChain):
    """Variational inference: ``beta`` are mean directions of topics, ``theta`` Dirichlet parameters of documents."""

    stores = is_sampled = False

    def _take_documents(self):
        super()._take_documents()
        self.theta = self.alpha + 10.0 * self.n_topics * self.theta
        self.theta_steps[:] = 1e-3

    def _advance(self, until):
        if self.beta is None:
            self._start()
        data, numbers = self.data, self.numbers
        docs = self._next_batch()
        length_topic, length_mean = _mean_length(data.n_words, numbers[2]), _mean_length(data.n_words, numbers[0])
        gram, products = self._products(docs)
        share, across = np.empty(products.shape), np.empty(gram.shape)
        variational.ascend_documents(
            gram, products, self.alpha, numbers[1], length_topic, docs, self.theta, self.theta_steps,
            self.sampler.n_inner, share, across, self.scale(docs),
        )  # fmt: skip
        X = sparse.csr_array((data.values, data.words, data.ptr), shape=(data.n_docs, data.n_words))[docs]
        pull = numbers[0] * self.prior.center + length_topic * numbers[2] * self.beta.sum(axis=0)
        pull *= numbers[2] * length_topic * length_mean / max(np.linalg.norm(pull), 1e-300)
        gradient = (X.T @ share).T - across @ self.beta + pull
        step = 1.0 / (np.linalg.eigvalsh(across)[-1] + numbers[2])
        beta = self.beta + step * gradient
        beta /= np.linalg.norm(beta, axis=1, keepdims=True)
        w = self.sampler._share(self.step)
        if w is not None:
            beta = (1.0 - w) * self.beta + w * beta
            beta /= np.linalg.norm(beta, axis=1, keepdims=True)
        self.state.theta = np.ascontiguousarray(beta)
        self.step += 1
        if self.plan.wants(self.step):
            self.keep(self.current())


def _mean_length(n_words, kappa):
    """Length of the mean vector of a von Mises-Fisher distribution in ``n_words`` dimensions."""
    out = [np.empty(1) for _ in range(3)]
    special.von_mises_fisher_table(float(n_words), np.array([float(kappa)]), *out)
    return float(out[2][0])
