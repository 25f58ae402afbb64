"""Updates of fits whose data grow: how many data are kept, which sweeps are due, and which draws stay."""

import numpy as np

from .chain import MAX_AUTO_DRAWS, DrawPlan

MOST_KEPT = 20_000_000  # Largest size of the data that "auto" keeps.
RECOGNISED = 100  # Smallest size of a block that is recognised: larger blocks are not equal by chance.
BLOCK_SWEEPS = 5  # Sweeps over a new block alone.
_DUE = 0.05  # An update sweeps over all data once the new data are this share of the earlier data.
# Kept draws: those made with at least this share of the present data, but at least this many.
_SHARE, FEWEST_DRAWS = 0.8, 20
# Share of the sweeps of a fit in which an update keeps `FEWEST_DRAWS`.
FEWEST_SHARE = FEWEST_DRAWS / MAX_AUTO_DRAWS


class GrowthPlan(DrawPlan):
    """The steps after which draws are kept in an update of a fit: a window of the latest draws.

    The first half of the steps is burn-in.

    Parameters
    ----------
    first_step : int
        Number of steps that the chain has made before.
    n_sweeps : int
        Number of steps of the update.
    bytes_per_draw : int
        As for `DrawPlan`.
    thin : int, default=1
        Sweeps from one kept draw to the next.
    hottest : float, default=1.0
        Largest temperature at which burn-in may begin.
    """

    streams = True

    def __init__(self, first_step, n_sweeps, bytes_per_draw, thin=1, hottest=1.0):
        super().__init__(max(2, n_sweeps), 0.5, 1, bytes_per_draw)
        self.n_draws, self.thin = self.most_draws(bytes_per_draw), thin
        self.first_step, self.hottest = first_step, hottest
        self.n_burn, self.n_iter = first_step + n_sweeps // 2, first_step + n_sweeps

    def staying(self, kept_steps):
        """Indices of the draws that stay if another one is kept: all but the oldest."""
        return list(range(1, len(kept_steps)))

    def recent(self, sizes):
        """Indices of the draws that are of most of the present data; ``sizes`` as for `in_window`, the last present."""
        return in_window(sizes, sizes[-1], self.n_draws)


def planned_update(rule, chain, pending, n_new, size, bytes_per_draw, hottest=1.0):
    """Plan the sweeps over all data that an update makes, and those that Ctrl-C prevented in the update before.

    Parameters
    ----------
    rule : DefaultSweeps
        Number of sweeps of a fit, by the size of its data.
    chain : Chain
        One of the chains that the update continues.
    pending : float
        Size of the data that came since the last sweeps over all data.
    n_new, size : int
        Sizes of the block and of all data.
    bytes_per_draw, hottest
        As for `GrowthPlan`.

    Returns
    -------
    plan : GrowthPlan
    pending : float
        What is pending after the planned sweeps.
    """
    unmade = max(0, chain.plan.n_iter - chain.step) if chain.plan.streams else 0
    pending += n_new + pending_after(rule, unmade, size)
    n_sweeps = n_sweeps_due(rule, pending, size)
    # Draws are as far apart as in a default fit, which keeps the second half of its sweeps.
    thin = max(1, rule.of(size) // (2 * MAX_AUTO_DRAWS))
    return GrowthPlan(chain.step, n_sweeps, bytes_per_draw, thin, hottest), 0.0 if n_sweeps else pending


def n_sweeps_due(rule, pending, size):
    """Number of sweeps over all data, given the size of the data that came since the last ones; 0 for few."""
    if not pending > 0 or pending < _DUE * (size - pending):
        return 0
    return int(np.ceil(rule.of(size) * pending / size))


def pending_after(rule, unmade, size):
    """The size of the data for which ``unmade`` sweeps would be due, where Ctrl-C prevented these sweeps."""
    return unmade / rule.of(size) * size


def in_window(sizes, size, most):
    """Indices of the draws to keep, at most ``most``, given the sizes of the data of each draw, oldest first."""
    recent = np.asarray(sizes) >= _SHARE * size
    recent[-FEWEST_DRAWS:] = True
    return np.flatnonzero(recent)[-most:].tolist()


def is_within(limit, size):
    """Whether data of a size are kept. ``limit`` is True, False, the largest size, or "auto" for `MOST_KEPT`."""
    if isinstance(limit, bool):
        return limit
    return size <= (MOST_KEPT if isinstance(limit, str) else int(limit))


def known_with(known, digest):
    """The digests of known blocks, with the digest of another block; None for a block that is too small for one."""
    return known if digest is None else known | {digest}
