"""Exact samplers, as references for stochastic samplers."""

from ..kernels.samplers import simplex
from ._base import Sampler


class ExactDirichlet(Sampler):
    r"""Independent draws from the conjugate posterior: the limit :math:`h \to \infty` of `SCIR` on the full data.

    Targets :math:`\mathrm{Gamma}(a, 1)` cell by cell, exactly. Draws are independent given the shapes. Each step reads
    all the data, for any ``batch_size``.

    See Also
    --------
    SCIR : The stochastic sampler with the same target.
    """

    _name = "exact-dirichlet"
    _fits = (("simplex", "counts"), ("positive", "counts"))
    _reads_all_rows = True
    _keeps_logs = True

    def _kernels(self, geometry):
        return simplex.no_advance, simplex.gamma_redraw


class Gibbs(Sampler):
    r"""The model's own Gibbs sampler over all the data: exact, one sweep per step.

    Targets the posterior exactly, and has no step size. For models of counts it is collapsed: topics, or components of
    a Dirichlet process, are integrated out. A sweep draws the topic of each token, or the component of each row, given
    all others. When a draw is kept, topics or components are drawn from their Dirichlet distribution given the counts.
    It is the default of the count topic models, of `DPCategoricalMixture` and of `BayesianLinearRegression` if ``fit``
    receives all the data. For topic models, it is exact only for whole counts, because the conditionals of fractional
    tokens belong to no joint distribution.

    See Also
    --------
    SliceGibbs : Not collapsed, for Dirichlet processes: weights and components are in the state.

    References
    ----------
    Griffiths and Steyvers (2004), Finding scientific topics, PNAS 101. Neal (2000), Markov chain sampling methods for
    Dirichlet process mixture models, Journal of Computational and Graphical Statistics 9, algorithm 3.
    """

    _name = "gibbs"
    _loop = "gibbs"
    _fits = (("any", "conditionals"),)
    _reads_all_rows = True


class SliceGibbs(Sampler):
    r"""Slice sampler of Dirichlet process mixtures over all the data, with exact draws of sticks and components.

    Targets the posterior exactly, without truncation. A step draws a slice below the weight of each row's component,
    then the labels given the slices, and then sticks and components given the labels.

    See Also
    --------
    Gibbs : The collapsed sampler, which mixes faster.

    References
    ----------
    Kalli, Griffin and Walker (2011), Slice sampling mixture models, Statistics and Computing 21.
    """

    _name = "slice-gibbs"
    _fits = (("any", "slices"),)
    _reads_all_rows = True

    def _kernels(self, geometry):
        return simplex.no_advance, simplex.gamma_redraw
