"""Special functions that numba lacks: digamma, trigamma, and modified Bessel functions with their ratios.

Bessel functions are computed as log[I_nu(x) / x^nu], which is finite for every x >= 0, by three overlapping expansions:

nu >= 20
    The uniform (Debye) expansion with `N_DEBYE` terms; its error is of the order nu^-N_DEBYE.
nu < 20, x >= max(60, nu^2)
    The expansion for large arguments.
else
    The power series, summed outward from its largest term to avoid overflow and underflow.

References
----------
Abramowitz and Stegun (1964), Handbook of Mathematical Functions, 9.6.10, 9.7.1, 9.7.7 and 9.3.9.
Amos (1974), Computation of modified Bessel functions and their ratios, Mathematics of Computation 28.
"""

import math
from fractions import Fraction
from math import lgamma

import numpy as np

from .._jit import F1, F1_IN, F8, I8, OK, helper, kernel

MANY = 8.0  # Whole numbers up to this use a product, others lgamma.


@helper
def digamma(x):
    """Digamma for x > 0: recurrence up to 6, then the asymptotic series; absolute error below 1e-12 for x > 1e-3."""
    result = 0.0
    while x < 6.0:
        result -= 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    series = f * (1.0 / 12.0 - f * (1.0 / 120.0 - f * (1.0 / 252.0 - f * (1.0 / 240.0 - f / 132.0))))
    return result + np.log(x) - 0.5 / x - series


@helper
def digamma_difference(a, n):
    """digamma(a + n) - digamma(a); for small whole n a sum of 1/(a + i), which does not cancel even for tiny a."""
    if n < 20.0 and n == np.floor(n):
        total = 0.0
        for i in range(int(n)):
            total += 1.0 / (a + i)
        return total
    return digamma(a + n) - digamma(a)


@helper
def log_rise(a, x):
    """log Gamma(a + x) - log Gamma(a), by a product for small whole x."""
    if x <= MANY and x == np.floor(x):
        product = 1.0
        for t in range(int(x)):
            product *= a + t
        return np.log(product)
    return lgamma(a + x) - lgamma(a)


@helper
def trigamma(x):
    """Derivative of digamma for x > 0: recurrence up to 8, then the asymptotic series; relative error below 1e-11."""
    result = 0.0
    while x < 8.0:
        result += 1.0 / (x * x)
        x += 1.0
    f = 1.0 / (x * x)
    series = f * (1.0 / 6.0 - f * (1.0 / 30.0 - f * (1.0 / 42.0 - f * (1.0 / 30.0 - f * 5.0 / 66.0))))
    return result + 1.0 / x + 0.5 * f + series / x


N_DEBYE = 13
_MANY_TERMS = 1e6  # concentration above which the ratio uses a separate formula
_UNIFORM_FROM = 20.0
_LOG_2PI = math.log(2.0 * math.pi)


def _debye_polynomials(n):
    """Coefficients of u_0 ... u_{n-1} in powers of p: u_{k+1} = p^2 (1-p^2) u_k' / 2 + 1/8 int_0^p (1 - 5 t^2) u_k."""
    polynomials = [{0: Fraction(1)}]
    for _ in range(n - 1):
        following = {}
        for power, c in polynomials[-1].items():
            for to, value in (
                (power + 1, c * power / 2 + c / (8 * (power + 1))),
                (power + 3, -c * power / 2 - 5 * c / (8 * (power + 3))),
            ):
                following[to] = following.get(to, Fraction(0)) + value
        polynomials.append(following)
    # u_k has the powers k, k + 2, ..., 3k. Row k omits the common factor p^k and is in powers of p^2.
    table = np.zeros((n, n))
    for k, polynomial in enumerate(polynomials):
        for power, c in polynomial.items():
            table[k, (power - k) // 2] = float(c)
    return table


_DEBYE = _debye_polynomials(N_DEBYE)


@helper
def log_bessel_over_power(nu, x):
    """log[I_nu(x) / x^nu] for nu >= 0 and x >= 0."""
    if nu >= _UNIFORM_FROM:
        root = math.sqrt(nu * nu + x * x)
        p_over_nu = 1.0 / root
        p2 = (nu / root) ** 2
        total = 0.0
        for k in range(N_DEBYE - 1, -1, -1):
            u = 0.0
            for j in range(k, -1, -1):
                u = u * p2 + _DEBYE[k, j]
            total = total * p_over_nu + u
        return root - nu * math.log(nu + root) - 0.5 * (_LOG_2PI + math.log(root)) + math.log(total)
    if x >= max(60.0, nu * nu):
        term, total = 1.0, 1.0
        for k in range(1, 80):
            factor = -(4.0 * nu * nu - (2.0 * k - 1.0) ** 2) / (8.0 * x * k)
            if abs(factor) >= 1.0:
                break
            term *= factor
            total += term
            if abs(term) < 1e-17 * abs(total):
                break
        return x - 0.5 * (_LOG_2PI + math.log(x)) + math.log(total) - nu * math.log(x)
    # (x/2)^(2k) / (k! Gamma(nu + k + 1)) is largest near k = (sqrt(nu^2 + x^2) - nu) / 2.
    quarter = 0.25 * x * x
    peak = math.floor(0.5 * (math.sqrt(nu * nu + x * x) - nu))
    total, term, k = 1.0, 1.0, peak
    while term > 1e-18 * total:
        k += 1.0
        term *= quarter / (k * (nu + k))
        total += term
    term, k = 1.0, peak
    while k > 0.0 and term > 1e-18 * total:
        term *= k * (nu + k) / quarter
        total += term
        k -= 1.0
    log_peak = -math.lgamma(peak + 1.0) - math.lgamma(nu + peak + 1.0)
    if peak > 0.0:
        log_peak += peak * math.log(quarter)
    return log_peak + math.log(total) - nu * math.log(2.0)


@helper
def log_vmf_normaliser(n_dims, kappa):
    """log c_V(kappa): the von Mises-Fisher density on the unit sphere of R^V is c_V(kappa) exp(kappa mu'x)."""
    return -0.5 * n_dims * _LOG_2PI - log_bessel_over_power(0.5 * n_dims - 1.0, kappa)


@helper
def bessel_ratio(n_dims, kappa):
    """A_V(kappa) = I_{V/2}(kappa) / I_{V/2-1}(kappa), the mean length of a von Mises-Fisher distribution.

    The continued fraction 1 / (2(nu+1)/x + 1 / (2(nu+2)/x + ...)) is evaluated backwards. Its start is accurate by
    Amos' bounds, and after enough terms the remaining error vanishes.

    For large kappa, this would take many terms, but A hardly changes with kappa. Then A' = 1 - A^2 - 2 t A with
    t = (V-1) / (2 kappa) is solved, where A' is replaced by the slope of the solution for A' = 0. The relative error is
    of the order 1 / kappa^2 for every V.
    """
    if kappa <= 0.0:
        return 0.0
    if kappa > _MANY_TERMS:
        t = 0.5 * (n_dims - 1.0) / kappa
        root = math.sqrt(1.0 + t * t)
        slope = t / (kappa * root * (t + root))
        return (1.0 - slope) / (t + math.sqrt(t * t + 1.0 - slope))
    nu = 0.5 * n_dims - 1.0
    n_terms = 20 + int(math.sqrt(40.0 * kappa))
    n = nu + n_terms
    ratio = kappa / (n + 1.0 + math.sqrt((n + 1.0) ** 2 + kappa * kappa))
    for i in range(n_terms, 0, -1):
        ratio = 1.0 / (2.0 * (nu + i) / kappa + ratio)
    return ratio


@kernel(I8(F8, F1_IN, F1))
def von_mises_fisher_normalisers(n_dims, kappa, log_normaliser):
    """Write log c_V(kappa) for each kappa."""
    for i in range(kappa.shape[0]):
        log_normaliser[i] = log_vmf_normaliser(n_dims, kappa[i])
    return OK


@kernel(I8(F8, F1_IN, F1, F1, F1))
def von_mises_fisher_table(n_dims, kappa, log_bessel, log_normaliser, ratio):
    """Write log I_{V/2-1}, log c_V and A_V for each kappa."""
    nu = 0.5 * n_dims - 1.0
    for i in range(kappa.shape[0]):
        power = nu * math.log(kappa[i]) if nu > 0.0 else 0.0
        log_bessel[i] = log_bessel_over_power(nu, kappa[i]) + power
        log_normaliser[i] = log_vmf_normaliser(n_dims, kappa[i])
        ratio[i] = bessel_ratio(n_dims, kappa[i])
    return OK
