"""The temperature of collapsed sweeps, above 1 at their beginning.

What the start leads to is a mode that hundreds of sweeps do not leave; warm ones do, and the topics stay.
"""

from math import log

# The more topics there are, the lower is the temperature at which they melt into one another, hence the logarithm of
# their number. It falls to 1 evenly over this share of the sweeps, and within so many.
_HOTTEST, _HEAT = 1.4, 1.2
_COOLING, _MOST_WARM = 0.6, 60


def first_temperature(n_topics):
    """The temperature of the first sweep."""
    return min(_HOTTEST, 1.0 + _HEAT / log(max(2, n_topics)))


def temperature(n_topics, sweep, n_sweeps):
    """The temperature of a sweep, from 0, of so many that are not kept."""
    n_warm = min(_COOLING * n_sweeps, _MOST_WARM)
    if sweep >= n_warm:
        return 1.0
    return 1.0 + (first_temperature(n_topics) - 1.0) * (1.0 - sweep / n_warm)
