"""A prior of documents that follows their metadata."""

import weakref
from copy import copy

import numpy as np

from ...samplers._mass import MonteCarloEM
from ...samplers._registry import SAMPLERS, fitting_pair, make_sampler
from ...utils._bit_stable import one_blas_thread
from .._counts.doc_prior import DocumentPrior
from .coefficients import STEPS_PER_PASS, Coefficients, OptimisedCoefficients, QuadraticSummary
from .evidence import Evidence, EvidenceInShards
from .group_counts import counts_of_rows, group_counts, group_lengths

# Passes of burn-in after which coefficients move to their mode given the assignments, and after which their coordinates
# are chosen again; and the latter where coefficients do not move after every pass.
_FIT_AT, _PRECONDITION_AT, _SELDOM_AT = (2, 10), (5, 20, 40, 80), (40,)
# Tokens swept for each parameter of a group's prior that a step computes, so that steps cost a fraction of the sweeps;
# the factor by which steps are rarer up to a share of burn-in; and most passes for a step.
_TOKENS_PER_PRIOR, _RARER, _SETTLES, _MOST_PASSES = 1.1, 5.0, 0.8, 10

COEF_SAMPLER = "sghmc"  # for exact gradients
L_BFGS = "l-bfgs"  # no sampler: coefficients at their mode
_NAMES = '"sgld", "sghmc", "sgnht", "sg-nphmc" or "l-bfgs"'


def checked_coef_sampler(sampler):
    """A sampler of the coefficients from its name or itself, or `L_BFGS`; raises for one that does not fit them."""
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
    """Raise because coefficients can be optimised only where the assignments of all documents are stored."""
    raise ValueError(
        f'coef_sampler="l-bfgs" needs the assignments of all documents; {why}. Pass coef_sampler=None, or call `fit` '
        'with assignments="stored".'
    )


def refuse_other_coef_sampler(chain, coef_sampler):
    """Raise if the coefficients of a chain cannot continue under ``coef_sampler``; None is the default."""
    present = chain.document_priors[0].coefficients.given
    if coef_sampler is present is None:
        return
    if None in (coef_sampler, present) or present == L_BFGS or not coef_sampler._is_compatible(present):
        raise ValueError(
            f"The coefficients of coef_sampler={present!r} cannot go on with {coef_sampler!r}: only the step size, "
            "friction and temperature may change. Set it back, or call fit, or partial_fit on a clone, to start afresh."
        )


class MetadataPrior(DocumentPrior):
    """A Dirichlet prior for each group of documents, exp(metadata @ coefficients).

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
        Exponential of the prior mean of the intercepts.
    stored : bool
        As for `DocumentPrior`.
    coef_sampler, n_metadata, scales, smooth
        As for `Coefficients`.
    """

    reads_every_draw = True
    _unpickled = (*DocumentPrior._unpickled, "_table", "_batch_rows", "_lengths")
    _table = _lengths = None
    held = None  # summary of the documents with stored assignments, made when these are dropped
    is_released = False  # whether it was made because shards were given back

    def __init__(self, alpha, stored, *, coef_sampler, n_metadata, scales, smooth=()):
        super().__init__(alpha, stored)
        make = OptimisedCoefficients if coef_sampler == L_BFGS else Coefficients
        self.coefficients = make(coef_sampler, stored, self.alpha, n_metadata, scales, smooth)

    def bind(self, data):
        self._table = self._lengths = None
        super().bind(data)

    def begin(self, data, z, alpha, rng, swept=True):
        if not self.stored:
            self.coefficients.reset()
            self._maximise(Evidence(self.coefficients, data.rows, group_counts(data, z, self.alpha.size)), data)

    def table(self, docs=None):
        if docs is None or self.stored:
            if self._table is None:
                self._table = self.coefficients.doc_priors(self.data.rows)
            return self._table, self.data.group if docs is None else self.data.group[docs]
        groups, group = np.unique(self.data.group[docs], return_inverse=True)
        self._batch_rows = self.data.rows.take(groups), group.astype(np.int64)
        return self.coefficients.doc_priors(self._batch_rows[0]), self._batch_rows[1]

    def renumber(self, order):
        super().renumber(order)
        self.coefficients.reorder(order)

    def draw(self):
        return {"coef": self.coefficients.value.copy()}

    def doubts(self, draws):
        return self.coefficients.doubts(draws["coef"])

    # -- stored assignments of all documents ----------------------------------------------------------------------

    def after_pass(self, z, now, collapsed):
        """Move the coefficients; after some passes of burn-in, to their mode or in newly chosen coordinates."""
        self._learn(lambda: self._evidence(z), now)

    def _evidence(self, z):
        return Evidence(self.coefficients, self.data.rows, self._counts(z))

    def _learn(self, evidence, now):
        """`after_pass`; ``evidence`` is a function that returns an `Evidence`."""
        fits = self.coefficients.stays_at_mode or (now.burns_in and now.n_passes in _FIT_AT)
        every, n_steps = self._pace(now)
        adapts = now.burns_in and now.n_passes in (_PRECONDITION_AT if every == 1 else _SELDOM_AT)
        adapts = adapts or self.coefficients.whitener is None
        if now.n_passes % every and not fits and not adapts:
            return
        evidence = evidence()
        if fits:
            self._maximise(evidence, self.data)
        else:
            if adapts:
                self.coefficients.choose_coordinates(evidence.curvature())
            rng = self._stream_of(now)
            for _ in range(n_steps):
                self.coefficients.move(evidence.slope, rng)
        self._table = None

    def _affordable(self, data):
        """Steps per pass whose cost is a small share of the pass; a step computes the priors of all groups."""
        return data.n_tokens / (_TOKENS_PER_PRIOR * max(1, data.n_groups * self.alpha.size))

    def _pace(self, now):
        """Passes from one move of the coefficients to the next, and steps of each move.

        Where the chain comes from the mode and has long to go, single steps do: kept draws need more.
        """
        affordable = max(self._affordable(self.data), 1e-9)  # 0 without tokens
        if now.step < _SETTLES * now.n_burn:
            return round(np.clip(_RARER / affordable, 1, _MOST_PASSES)), 1
        return round(np.clip(1.0 / affordable, 1, _MOST_PASSES)), int(np.clip(affordable, 1, STEPS_PER_PASS))

    def _counts(self, z):
        if self._lengths is None:
            self._lengths = group_lengths(self.data)
        return group_counts(self.data, z, self.alpha.size, self._lengths)

    def after_epoch(self, z, now):
        self.after_pass(z, now, None)

    @staticmethod
    def _stream_of(now):
        """The coefficients' own random stream, so that with fixed coefficients the chain is that of LDA."""
        return np.random.default_rng([now.seed, now.step])

    def _maximise(self, evidence, data):
        if self.coefficients.whitener is None:
            self.coefficients.choose_coordinates(evidence.curvature(jointly=False))
        options = self.coefficients.search(self._affordable(data))
        # SciPy 1.12 leaves its objective in a cycle of references, which would keep the documents and their files.
        held = weakref.proxy(evidence)
        self.coefficients.maximise(lambda value: held.likelihood(value), options)
        self.coefficients.choose_coordinates(evidence.curvature())

    # -- shards ----------------------------------------------------------------------------------------------------

    def unbound(self):
        """A copy for shards: the coefficients, without the state of their sampler."""
        other = DocumentPrior.unbound(self)
        other.coefficients = self.coefficients.alone()
        return other

    def of_shard(self, shard):
        with one_blas_thread():
            return self.coefficients.doc_priors(shard.described.rows), shard.group

    def after_shards(self, shards, now):
        """As `after_pass`."""
        self._learn(lambda: EvidenceInShards(self.coefficients, shards), now)

    def release_shards(self, shards):
        self.held = QuadraticSummary(self.coefficients.value, *EvidenceInShards(self.coefficients, shards).expansion())
        self.is_released = True

    # -- minibatches ----------------------------------------------------------------------------------------------

    def after_minibatch(self, docs, doc_counts, z, now):
        if self.stored:
            return
        rows, group = self._batch_rows
        n_draws = len(doc_counts)
        scale = self.data.total_samples / docs.size / n_draws
        counts = counts_of_rows(doc_counts.reshape(-1, self.alpha.size), np.tile(group, n_draws))
        evidence = Evidence(self.coefficients, rows, counts, scale)
        n = self.coefficients.state.n_steps
        # The information in a stream grows; in a fit the start used all documents.
        if self.coefficients.whitener is None or (np.isinf(now.n_burn) and n >= 16 and n & (n - 1) == 0):
            self.coefficients.choose_coordinates(evidence.curvature(jointly=False))
        self.coefficients.move(evidence.slope, self._stream_of(now), scale * n_draws)

    # -- streams --------------------------------------------------------------------------------------------------

    def saved(self, z):
        saved = copy(self)
        saved.held = self._summary(z) if z is not None else self.held if self.is_released else None
        return saved

    def _summary(self, z):
        """Log likelihood of the coefficients given stored assignments, for a stream that continues from them."""
        if not self.stored or self.data is None or self.is_released:
            return self.held
        return QuadraticSummary(self.coefficients.value, *self._evidence(z).expansion())

    def stream(self, z):
        summary = self._summary(z)
        super().stream(z)
        self.coefficients.begin(False)
        self.coefficients.held, self.held = summary, None

    def use(self, coef_sampler):
        if coef_sampler is not None:
            self.coefficients.continue_with(coef_sampler)
