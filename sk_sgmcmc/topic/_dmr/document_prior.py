"""The document prior that depends on metadata."""

import weakref
from copy import copy

import numpy as np

from ...samplers._mass import MonteCarloEM
from ...samplers._registry import SAMPLERS, fitting_pair, make_sampler
from ...utils._bit_stable import one_blas_thread
from .._counts.document_prior import DocumentPrior
from .coefficients import STEPS_PER_PASS, Coefficients, OptimisedCoefficients, QuadraticSummary
from .evidence import Evidence, evidence_of
from .group_counts import counts_of_rows

# Passes of burn-in after which coefficients move to their mode given the assignments; passes after which their
# coordinates are chosen again; and the latter if coefficients do not move after every pass.
_FIT_AT, _PRECONDITION_AT, _SELDOM_AT = (2, 10), (5, 20, 40, 80), (40,)
# Tokens to sweep for each prior parameter that a step computes, so that steps cost a fraction of the sweeps; the factor
# by which steps are rarer before the share `_SETTLES` of burn-in; and most passes from one step to the next.
_TOKENS_PER_PRIOR, _RARER, _SETTLES, _MOST_PASSES = 1.1, 5.0, 0.8, 10

COEF_SAMPLER = "sghmc"  # The default for exact gradients.
L_BFGS = "l-bfgs"  # Coefficients are optimised, not sampled.
_NAMES = '"sgld", "sghmc", "sgnht", "sg-nphmc" or "l-bfgs"'


def checked_coef_sampler(sampler):
    """The sampler of the coefficients, from a name or an object, or `L_BFGS`; raises for an unsuitable sampler."""
    if isinstance(sampler, str) and sampler == L_BFGS:
        return sampler
    if isinstance(sampler, str) and sampler not in SAMPLERS:
        raise ValueError(f"`coef_sampler` must be {_NAMES}, or a sampler object; got {sampler!r}.")
    sampler = make_sampler(sampler)
    fits = fitting_pair(sampler, (("euclidean", "gradient"),)) is not None and not sampler._has_own_loop
    if not fits or isinstance(getattr(sampler, "mass", None), MonteCarloEM):
        raise ValueError(
            f"coef_sampler={sampler!r} does not fit the coefficients of DMRTopicModel, which have a gradient but no "
            "log density, and whitened coordinates, so that no mass is left to learn. "
            f"Use {_NAMES}."
        )
    return sampler


def refuse_optimised(why):
    """Raise, since coefficients can be optimised only if the assignments of all documents are stored."""
    raise ValueError(
        f'coef_sampler="l-bfgs" needs the assignments of all documents; {why}. Pass coef_sampler=None, or call `fit` '
        'with assignments="stored".'
    )


def refuse_other_coef_sampler(chain, coef_sampler):
    """Raise if the coefficients of a chain cannot continue under ``coef_sampler``; None is the default."""
    present = chain.document_priors[0].coefficients.given
    if coef_sampler is present is None or (present == L_BFGS and coef_sampler == L_BFGS):
        return
    if None in (coef_sampler, present) or present == L_BFGS or not coef_sampler._is_compatible(present):
        raise ValueError(
            f"The coefficients of coef_sampler={present!r} cannot go on with {coef_sampler!r}: only the step size, "
            "friction and temperature may change. Set it back, or call fit, or partial_fit on a clone, to start over."
        )


class MetadataPrior(DocumentPrior):
    """A Dirichlet prior for each group of documents, with parameter exp(metadata @ coefficients).

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
        Exponential of the prior mean of the intercepts.
    stored : bool
        As for `DocumentPrior`.
    coef_sampler, n_metadata, scales, smooth
        As for `Coefficients`.
    """

    reads_every_draw = records_documents = True
    held = None  # `QuadraticSummary` of the documents with stored assignments, made before these are dropped.
    is_released = False  # Whether the summary was made by `release`.
    _cached = None, None  # A shard, and the table of its priors.
    _batch = None

    def __init__(self, alpha, stored, *, coef_sampler, n_metadata, scales, smooth=()):
        super().__init__(alpha, stored)
        make = OptimisedCoefficients if coef_sampler == L_BFGS else Coefficients
        self.coefficients = make(coef_sampler, stored, self.alpha, n_metadata, scales, smooth)

    def __getstate__(self):
        unpickled = ("_cached", "_batch")
        return {name: value for name, value in self.__dict__.items() if name not in unpickled}

    def start(self):
        if not self.stored:
            self.coefficients.reset()
        self._cached = None, None

    def table(self, shard, docs=None):
        if docs is None or self.stored:
            of, prior = self._cached  # Read both at once: other threads may replace them.
            if of is not shard:
                with one_blas_thread():  # The last bits may depend on the number of threads.
                    prior = self.coefficients.doc_priors(shard.rows)
                self._cached = shard, prior
            return prior, shard.group if docs is None else shard.group[docs]
        groups, group = np.unique(shard.group[docs], return_inverse=True)
        self._batch = shard.rows.take(groups), group.astype(np.int64)
        return self.coefficients.doc_priors(self._batch[0]), self._batch[1]

    def exchangeable_groups(self):
        return self.alpha  # If topics change places, so do their coefficients.

    def permute(self, order):
        super().permute(order)
        self.coefficients.reorder(order)

    def draw(self):
        return {"coef": self.coefficients.value.copy()}

    def set_to(self, draw):
        self.coefficients, self._cached = self.coefficients.alone(), (None, None)
        self.coefficients.value = draw["coef"].astype(np.float64)

    def widen(self, like):
        """Take the columns of metadata that another prior has."""
        self.coefficients.widen(like.coefficients.prior)
        self.held, self.is_released, self._cached = None, False, (None, None)

    def append(self, is_new):
        """Choose the coordinates of the coefficients again before their next move."""
        self.coefficients.whitener, self._cached = None, (None, None)

    def warnings(self, draws):
        return self.coefficients.checks(draws["coef"])

    # -- all documents ---------------------------------------------------------------------------------------------

    def update(self, assigned, progress):
        """Move the coefficients; after some passes of burn-in, optimise them or choose new coordinates first."""
        n_groups, n_tokens = assigned.size
        affordable = n_tokens / (_TOKENS_PER_PRIOR * max(1, n_groups * self.alpha.size))
        if progress.is_start:
            if not self.stored:
                self._maximise(evidence_of(self.coefficients, assigned), affordable)
            return
        fits = self.coefficients.stays_at_mode or (progress.burns_in and progress.n_passes in _FIT_AT)
        every, n_steps = self._pace(progress, affordable)
        adapts = progress.burns_in and progress.n_passes in (_PRECONDITION_AT if every == 1 else _SELDOM_AT)
        adapts = adapts or self.coefficients.whitener is None
        if progress.n_passes % every and not fits and not adapts:
            return
        evidence = evidence_of(self.coefficients, assigned)
        if fits:
            self._maximise(evidence, affordable)
        else:
            if adapts:
                self.coefficients.choose_coordinates(evidence.curvature())
            self.coefficients.move(evidence.slope, self._stream_of(progress), n_steps)
        self._cached = None, None

    @staticmethod
    def _pace(progress, affordable):
        """Number of passes from one move of the coefficients to the next, and number of steps of each move.

        A step computes the priors of all groups. ``affordable`` such steps per pass cost a small share of the pass.
        Early in burn-in single, rarer steps suffice, since the chain comes from the mode; kept draws need more.
        """
        affordable = max(affordable, 1e-9)  # It is 0 without tokens.
        if progress.step < _SETTLES * progress.n_burn:
            return round(np.clip(_RARER / affordable, 1, _MOST_PASSES)), 1
        return round(np.clip(1.0 / affordable, 1, _MOST_PASSES)), int(np.clip(affordable, 1, STEPS_PER_PASS))

    @staticmethod
    def _stream_of(progress):
        """A random stream of the coefficients alone, so that with fixed coefficients the chain equals that of LDA."""
        return np.random.default_rng([progress.seed, progress.step])

    def _maximise(self, evidence, affordable):
        if self.coefficients.whitener is None:
            self.coefficients.choose_coordinates(evidence.curvature(jointly=False))
        options = self.coefficients.search(affordable)
        # SciPy 1.12 leaves the objective in a reference cycle, which would keep the documents and their files alive.
        held = weakref.proxy(evidence)
        self.coefficients.maximise(lambda value: held.likelihood(value), options)
        self.coefficients.choose_coordinates(evidence.curvature())
        self._cached = None, None

    # -- minibatches ----------------------------------------------------------------------------------------------

    def update_from_batch(self, batch, progress):
        if self.stored:
            return
        rows, group = self._batch
        n_draws = len(batch.counts)
        scale = batch.n_samples / batch.docs.size / n_draws
        counts = counts_of_rows(batch.counts.reshape(-1, self.alpha.size), np.tile(group, n_draws))
        evidence = Evidence(self.coefficients, rows, counts, scale)
        n = self.coefficients.state.n_steps
        # In a stream the information grows, so coordinates are chosen again at powers of 2; in `fit` the start used all
        # documents.
        if self.coefficients.whitener is None or (np.isinf(progress.n_burn) and n >= 16 and n & (n - 1) == 0):
            self.coefficients.choose_coordinates(evidence.curvature(jointly=False))
        self.coefficients.move(evidence.slope, self._stream_of(progress), noise=scale * n_draws)

    # -- streams --------------------------------------------------------------------------------------------------

    def release(self, assigned):
        """Keep a second-order expansion of the log likelihood of the coefficients given these documents."""
        if self.stored and not self.is_released:
            expansion = evidence_of(self.coefficients, assigned).expansion()
            self.held, self.is_released = QuadraticSummary(self.coefficients.value, *expansion), True

    def for_pickle(self, assigned):
        if assigned is None or not self.stored or self.is_released:
            return self
        saved = copy(self)
        saved.release(assigned)
        saved.is_released = False
        return saved

    def stream(self, sampler_params):
        if self.stored:
            super().stream(sampler_params)
            self.coefficients.begin(False)
            self.coefficients.held, self.held = self.held, None
        if sampler_params["coef_sampler"] is not None:
            self.coefficients.continue_with(sampler_params["coef_sampler"])
