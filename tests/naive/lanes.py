"""A power as the vectors of heated sweeps take it, from its definition: linear between the powers of two."""

import numpy as np


def raised(x, power):
    """``x`` > 0 to a power in (0, 1], about: the logarithm of base 2 is taken as linear between whole numbers."""
    fraction, exponent = np.frexp(x)  # x = fraction 2^exponent, fraction in [1/2, 1)
    log = power * (exponent - 1 + (2.0 * fraction - 1.0))
    whole = np.floor(log)
    return 2.0**whole * (1.0 + log - whole)
