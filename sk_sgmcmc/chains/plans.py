"""Which steps of a chain are kept."""

import numpy as np

# Draws are kept as float32 up to this many bytes over all chains; ``thin="auto"`` keeps fewer draws to stay below.
DRAW_MEMORY = 512 * 2**20
MAX_AUTO_DRAWS = 100


class DrawPlan:
    """Which steps of a chain are kept.

    Parameters
    ----------
    n_iter : int
        Steps of the chain.
    burn_in : float or int
        Steps to discard at the start, as a fraction of ``n_iter`` in [0, 1) or a number.
    thin : int or "auto"
        Every ``thin``-th later step is kept; "auto" keeps at most `MAX_AUTO_DRAWS` within `DRAW_MEMORY`.
    bytes_per_draw : int
        Over all chains.
    max_draws : int
        Maximum for "auto".
    """

    streams = False  # whether rows arrive in blocks, so that draws are of different posteriors

    def __init__(self, n_iter, burn_in, thin, bytes_per_draw=0, max_draws=MAX_AUTO_DRAWS):
        self.n_iter = int(n_iter)
        # 0.29 * 100 is a little less than 29.
        self.n_burn = int(burn_in * n_iter + 1e-9) if burn_in < 1 else int(burn_in)
        if self.n_burn >= self.n_iter:
            raise ValueError(
                f"burn_in={burn_in!r} discards all of the n_iter={n_iter} steps; "
                f"use a burn_in below {n_iter} or a fraction such as 0.5."
            )
        n_left = self.n_iter - self.n_burn
        if thin == "auto":
            n_draws = min(max_draws, max(1, DRAW_MEMORY // max(1, bytes_per_draw)))
            thin = max(1, -(-n_left // n_draws))
        elif thin > n_left:
            raise ValueError(
                f"thin={thin} keeps no draw of the {n_left} steps after burn-in; use a thin of at most {n_left}."
            )
        self.thin = int(thin)
        self.n_draws = n_left // self.thin

    def wants(self, step):
        """Whether the state after ``step`` steps is kept."""
        return step > self.n_burn and (step - self.n_burn) % self.thin == 0

    def used(self, kept_steps):
        """Which of the draws kept after ``kept_steps`` count: all of them."""
        return np.ones(len(kept_steps), dtype=bool)

    def slots(self, start, stop):
        """For the steps start..stop-1 (from 0): the index of the draw kept after each, or -1."""
        after = np.arange(start + 1, stop + 1) - self.n_burn
        return np.where((after > 0) & (after % self.thin == 0), after // self.thin - 1, -1)


class StreamPlan:
    """Which steps of an endless chain are kept: every one, then every second, every fourth, ... as it grows.

    Parameters
    ----------
    burn_in : float or int
        Fraction of the steps made so far, or number of steps, whose draws do not count.
    bytes_per_draw : int
        Over all chains.
    """

    n_iter = np.inf  # nobody knows when a stream ends
    n_burn = np.inf  # on a stream, priors are fitted to its end
    streams = True

    def __init__(self, burn_in, bytes_per_draw=0):
        self.burn_in = burn_in
        self.n_draws = int(min(MAX_AUTO_DRAWS, max(2, DRAW_MEMORY // max(1, bytes_per_draw))))
        self.stride = 1

    def wants(self, step):
        """Whether the state after ``step`` steps is kept."""
        return step % self.stride == 0

    def used(self, kept_steps):
        """Which of the draws kept after ``kept_steps`` count: those after burn-in, at least the last."""
        kept_steps = np.asarray(kept_steps)
        n_burn = self.burn_in * kept_steps[-1] if self.burn_in < 1 else self.burn_in
        used = kept_steps > n_burn
        used[-1] = True
        return used
