"""Exact references: what the stochastic samplers are measured against."""

from ._base import Sampler


class ExactDirichlet(Sampler):
    r"""Independent draws from the conjugate posterior: the limit :math:`h \to \infty` of `SCIR` on the full data.

    Targets :math:`\mathrm{Gamma}(a, 1)` cell by cell, exactly and without memory. It always reads all the data,
    whatever ``batch_size`` says.

    See Also
    --------
    SCIR : The stochastic sampler that it is the reference of.
    """

    _name = "exact-dirichlet"
    _fits = (("simplex", "counts"), ("positive", "counts"))
    _full_batch = True

    def _transition(self, geometry):
        return "simplex.no_advance", "simplex.gamma_redraw"


class Gibbs(Sampler):
    r"""The model's own Gibbs sampler over all the data: the exact reference, one sweep a step.

    Targets the posterior exactly. For topic models it is the collapsed sampler: every token's topic is drawn given
    those of all other tokens, and topics are drawn from their Dirichlet given the counts when a draw is kept. For
    Dirichlet-process mixtures it is the slice sampler, with sticks and components drawn exactly.

    References
    ----------
    Griffiths and Steyvers (2004), Finding scientific topics, PNAS 101.
    """

    _name = "gibbs"
    _fits = (("any", "conditionals"),)
    _full_batch = True
