"""Default numbers of sweeps: many over small data, so that intervals are right, and few over large data, for time."""

from typing import NamedTuple

import numpy as np


class DefaultSweeps(NamedTuple):
    """A rule for the number of sweeps of a fit, given the size of its data.

    There are ``most`` sweeps over small data; then as many as make ``work`` together; at least ``usual``, which falls
    to ``fewest`` as the size rises from a certain fraction of ``large`` to ``large``. The number is continuous in the
    size, so that a few more data do not change it much.

    Parameters
    ----------
    work : float
        Sum of the sizes of all sweeps, in the units of the size.
    most, usual, fewest : int
        Numbers of sweeps over small, medium and large data.
    large : float
        Size from which on there are ``fewest`` sweeps.
    """

    work: float
    most: int
    usual: int
    fewest: int
    large: float

    def of(self, size):
        """The number of sweeps over data of this size."""
        size = max(1.0, float(size))
        least = np.clip(self.fewest * self.large / size, self.fewest, self.usual)
        return int(np.clip(self.work / size, least, self.most))
