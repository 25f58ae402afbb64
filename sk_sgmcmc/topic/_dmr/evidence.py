"""The log likelihood of the coefficients given the topics of documents, with its gradient and curvature."""

from ...utils._bit_stable import one_blas_thread
from .coefficients import CurvatureSums, expansion
from .group_counts import group_counts, information, likelihood


class Evidence:
    """The likelihood of the coefficients given the topics of documents.

    Parameters
    ----------
    coefficients : Coefficients
    rows : DenseRows or SparseRows
        Metadata of the groups.
    counts : GroupCounts
    scale : float
        Factor N/n of the log likelihood.
    """

    def __init__(self, coefficients, rows, counts, scale=1.0):
        self.coefficients, self.rows, self.counts, self.scale = coefficients, rows, counts, scale

    def slope(self, value):
        """Gradient of the log likelihood at coefficients ``value``."""
        residual = likelihood(self.counts, self.coefficients.doc_priors(self.rows, value))[1]
        return self.rows.pull(residual if self.scale == 1.0 else self.scale * residual)

    def likelihood(self, value):
        """Log likelihood and its gradient, at scale 1."""
        log_likelihood, residual = likelihood(
            self.counts, self.coefficients.doc_priors(self.rows, value), with_value=True
        )
        return log_likelihood, self.rows.pull(residual)

    def curvature(self, jointly=True):
        """The `CurvatureSums` at the present coefficients; ``jointly`` as for `Coefficients.curvature`."""
        prior = self.coefficients.doc_priors(self.rows)
        parts = information(self.counts, prior)
        return self.coefficients.curvature(self.rows, prior, parts, self.scale, jointly)

    def expansion(self):
        """Gradient and second derivatives for `QuadraticSummary`, at the present coefficients."""
        prior = self.coefficients.doc_priors(self.rows)
        return expansion(self.rows, prior, information(self.counts, prior))


def _of_shard(shard, counts, coefficients, what, *args):
    """The result of the method ``what`` of the `Evidence` of a shard; it runs where the shard is."""
    # Sums over documents must not depend on how many threads a worker gives to BLAS.
    with one_blas_thread():
        return getattr(Evidence(coefficients, shard.rows, counts), what)(*args)


def _summed(parts):
    """The elementwise sum of arrays, numbers or tuples of them, in their order."""
    first, *others = parts
    if isinstance(first, CurvatureSums):
        return CurvatureSums(*map(_summed, zip(*parts, strict=True)))
    if isinstance(first, tuple):
        return tuple(map(_summed, zip(*parts, strict=True)))
    if first is None:
        return None
    total = first.copy() if hasattr(first, "copy") else first
    for each in others:
        total += each
    return total


class EvidenceInShards:
    """`Evidence` of documents in several shards, as sums over the shards in their order.

    Parameters
    ----------
    coefficients : Coefficients
    assigned : AssignedShards
    """

    def __init__(self, coefficients, assigned):
        self.coefficients = coefficients
        self.counts = assigned.keep(group_counts, len(coefficients.value))

    def _sum(self, what, *args):
        return _summed(self.counts.map(_of_shard, self.coefficients.alone(), what, *args))

    def slope(self, value):
        """As `Evidence.slope`."""
        return self._sum("slope", value)

    def likelihood(self, value):
        """As `Evidence.likelihood`."""
        return self._sum("likelihood", value)

    def curvature(self, jointly=True):
        """As `Evidence.curvature`."""
        return self._sum("curvature", jointly)

    def expansion(self):
        """As `Evidence.expansion`."""
        return self._sum("expansion")


def evidence_of(coefficients, assigned):
    """The `Evidence` of all documents if they are a single shard in memory, otherwise `EvidenceInShards`."""
    if assigned.shards.n_shards == 1 and assigned.documents is not None:
        shard = assigned.documents
        return Evidence(coefficients, shard.rows, group_counts(shard, assigned.z, len(coefficients.value)))
    return EvidenceInShards(coefficients, assigned)
