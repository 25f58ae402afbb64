"""The chain of the spherical admixture model: documents' proportions and topics, in turn."""

from dataclasses import dataclass

import numpy as np

from ..chains import Chain, ChainDivergedError
from ..samplers._base import load_kernel
from ..samplers.schedules import ConstantStep

# A step as a share of the shortest period of the topics, and how much the gradient's noise may bring in a step, as a
# share of the thermal velocity; measured on 20 Newsgroups, see doc/developer.
_STEP_SHARE = 0.2
_NOISE_SHARE = 0.03
_ADAPT_EVERY = 5


@dataclass(frozen=True, eq=False)
class AdmixturePrior:
    """The model's constants.

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
    numbers : ndarray of shape (3,)
        kappa0, kappa1, sigma.
    center : ndarray of shape (n_words,)
        Unit.
    """

    alpha: np.ndarray
    numbers: np.ndarray
    center: np.ndarray


class AdmixtureChain(Chain):
    """Topics by a geodesic sampler, proportions by geodesic Monte Carlo on the simplex, in turn.

    The proportions of every document are part of the state, so that a document goes on from where it was.

    Parameters
    ----------
    seed : SeedSequence
    plan : DrawPlan
    sampler : Sampler
        Resolved.
    prior : AdmixturePrior
    n_inner : int
        Steps of the sampler of the topics for each draw of the proportions.
    n_draws : tuple of int
        Trajectories of a document's proportions thrown away, and averaged over.
    init : {"centroids", "random"}
    auto : bool
        Find the step size from the curvature during burn-in.
    """

    def __init__(self, seed, plan, sampler, prior, *, n_inner, n_draws, init, auto):
        super().__init__(seed, plan)
        self.sampler = sampler
        self.prior = prior
        self.n_inner = n_inner
        self.n_draws = n_draws
        self.init = init
        self.auto = auto
        self.beta = None
        self.theta = None
        self.theta_steps = None
        self.aux = None
        self.scalars = np.zeros(max(1, sampler._n_scalars))
        self.hyper = None
        self.acceptance = 0.0
        self.batches = np.empty((0, 0), dtype=np.int64)

    @property
    def n_topics(self):
        """Number of topics."""
        return self.prior.alpha.size

    # -- start -----------------------------------------------------------------------------------------------------

    def _start(self):
        data, K = self.data, self.n_topics
        self.beta = self._first_topics()
        self.aux = np.zeros((max(1, self.sampler._n_aux), *self.beta.shape))
        self.theta = np.zeros((data.n_docs, K))
        self.theta_steps = np.full(data.n_docs, 0.1 / np.sqrt(self.prior.numbers[1] + K * K))
        for docs in np.array_split(np.arange(data.n_docs), max(1, data.n_docs // 1000)):
            gram, products = self._products(docs)
            # Least squares, clipped: the mode at alpha = 1 where that lies inside.
            solved = np.linalg.solve(gram + 1e-3 * np.trace(gram) / K * np.eye(K), products.T).T
            solved = np.maximum(solved / np.maximum(np.abs(solved).sum(axis=1, keepdims=True), 1e-12), 0.2 / K)
            self.theta[docs] = solved / solved.sum(axis=1, keepdims=True)

    def _first_topics(self):
        """Unit rows: the prior's centre and noise, or centroids of a few rounds of spherical k-means."""
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

    # -- steps -----------------------------------------------------------------------------------------------------

    def _products(self, docs):
        K = self.n_topics
        gram, products = np.empty((K, K)), np.empty((docs.size, K))
        load_kernel("signals.admixture.document_products")(self.beta, *self.data.csr, docs, gram, products)
        return gram, products

    def _next_batch(self):
        data = self.data
        if data.n_batch >= data.n_docs:
            return np.arange(data.n_docs)
        if not len(self.batches):
            n_blocks = data.n_docs // data.n_batch
            self.batches = self.rng.permutation(data.n_docs)[: n_blocks * data.n_batch].reshape(n_blocks, -1)
        batch, self.batches = np.sort(self.batches[0]), self.batches[1:]
        return batch

    def _draw_proportions(self, docs):
        draws = np.empty((docs.size, self.n_draws[1], self.n_topics))
        load_kernel("admixture.draw_proportions")(
            *self._products(docs), self.prior.alpha, self.prior.numbers[1], docs, self.theta, self.theta_steps,
            self.n_draws[0], self.n_draws[1], 10, draws, self.rng,
        )  # fmt: skip
        return draws

    def _advance(self, until):
        if self.beta is None:
            self._start()
        docs = self._next_batch()
        self._move_topics(docs, self._draw_proportions(docs))
        self.step += 1
        if self.plan.wants(self.step):
            self.keep(self.current())

    def _move_topics(self, docs, draws):
        scale = self.data.n_docs / docs.size
        if self.auto and (self.hyper is None or (self.step < self.plan.n_burn and self.step % _ADAPT_EVERY == 0)):
            self._adapt(docs, draws, scale)
        hypers = self.sampler._hyper(self.step * self.n_inner, (self.step + 1) * self.n_inner)
        advance, step = self.sampler._kernels("sphere")
        status = load_kernel("admixture.run_topics")(
            self.beta, self.aux, self.scalars, *self.data.csr, docs, draws, self.prior.numbers, self.prior.center,
            scale, hypers, np.zeros(2), advance.compiled, step.compiled, self.rng,
        )  # fmt: skip
        if status != 0:
            raise ChainDivergedError(
                f"The topics left the finite numbers at step {self.step + 1}: {self.sampler!r} with a step size of "
                f"{hypers[0, 0]:.3g} is too large; try step_size={hypers[0, 0] / 10:.2g}."
            )

    def _adapt(self, docs, draws, scale):
        """Set the step size from the stiffness of the topics and the noise of the gradient as they are now."""
        across, signal, extra = np.empty((self.n_topics,) * 2), np.empty_like(self.beta), np.zeros(2)
        load_kernel("signals.admixture.admixture_signal")(
            self.beta, *self.data.csr, docs, draws, self.prior.numbers, self.prior.center, scale, across, signal, extra
        )
        h = _STEP_SHARE / np.sqrt(np.linalg.eigvalsh(across)[-1] + self.prior.numbers[2] + 1.0)
        if extra[1] > 0.0:
            # A minibatch stays for all inner steps, so its noise adds up over them.
            h = min(h, np.sqrt(_NOISE_SHARE / (extra[1] * self.n_inner)))
        # During burn-in a step too long does more harm than one too short: take the shortest of late.
        before = None if self.hyper is None else self.sampler._hyper(0, 1)[0]
        self.hyper = h if self.hyper is None else min(h, 1.1 * self.hyper)
        self.sampler.step_size_ = ConstantStep(float(self.hyper))
        if before is not None and self.scalars.size > 1:
            # A thermostat keeps its distance from the friction, which may go with the step size.
            self.scalars[1] += self.sampler._hyper(0, 1)[0, 1] - before[1]

    def current(self):
        """The present topics."""
        if self.beta is None:
            self._start()
        return {"components": self.beta.astype(np.float32)}


class MetropolisAdmixtureChain(AdmixtureChain):
    """Topics by Metropolis trajectories at fixed draws of all documents' proportions."""

    def _move_topics(self, docs, draws):
        scale = self.data.n_docs / docs.size
        if self.hyper is None:
            if self.auto:
                self._adapt(docs, draws, scale)
            self.hyper = float(self.sampler.step_size_(self.step))
        flow, project = self.sampler._kernels("sphere")
        h = self.hyper if self.auto else float(self.sampler.step_size_(self.step))
        accepted = load_kernel("admixture.run_topic_trajectories")(
            self.beta, *self.data.csr, docs, draws, self.prior.numbers, self.prior.center, scale, h,
            self.sampler.n_leapfrog, self.n_inner, flow.compiled, project.compiled, self.rng,
        )  # fmt: skip
        self.acceptance += accepted
        if self.auto and self.step < self.plan.n_burn:
            self.hyper *= np.exp(0.2 * (accepted - 0.8))
            self.sampler.step_size_ = ConstantStep(float(self.hyper))
