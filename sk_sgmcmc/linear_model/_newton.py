"""Modes of models with many coefficients, by truncated Newton steps."""

import numpy as np

_MAX_STEPS, _MAX_PRODUCTS = 100, 250  # Newton steps, and products with the Hessian in each
_FORCING = 0.1  # largest relative residual to which conjugate gradients solve for a step
_ARMIJO, _SHORTEST = 1e-4, 1e-10  # share of the expected gain that a step must reach, and its smallest length
_ROUNDING = 1e-13  # relative error of a value


def truncated_newton(at, start, tolerance):
    """Minimum of a strictly convex function, by Newton steps that conjugate gradients solve approximately.

    No matrix is formed. The relative residual of a step is at most the square root of the gradient's length relative
    to the first one, so that convergence is superlinear (Nocedal and Wright, Numerical Optimization, section 7.1).

    Parameters
    ----------
    at : callable
        ``at(u)`` returns the value, the gradient (D,), and a function that multiplies a vector by the Hessian.
    start : ndarray of shape (D,)
    tolerance : float
        The search ends after a step whose expected gain is at most this, relative to 1 + the absolute value.

    Returns
    -------
    u : ndarray of shape (D,)
    """
    u = start
    value, gradient, product = at(u)
    first = np.linalg.norm(gradient)
    for _ in range(_MAX_STEPS):
        size = np.linalg.norm(gradient)
        if not size > 0.0:
            break
        step = conjugate_gradients(product, -gradient, min(_FORCING, np.sqrt(size / first)) * size)
        gain, length = -(gradient @ step), 1.0
        slack = _ROUNDING * (1.0 + abs(value))
        while True:
            new = u + length * step
            found = at(new)
            if found[0] <= value - _ARMIJO * length * gain + slack:
                u, (value, gradient, product) = new, found
                break
            length *= 0.5
            if length < _SHORTEST:
                return u
        if gain <= tolerance * (1.0 + abs(value)):
            break
    return u


def conjugate_gradients(product, right, residual):
    """Approximate solution x of A x = ``right``, whose residual is at most ``residual`` in Euclidean length."""
    x, rest = np.zeros_like(right), right.copy()
    way, square = rest.copy(), rest @ rest
    for _ in range(_MAX_PRODUCTS):
        image = product(way)
        curvature = way @ image
        if not curvature > 0.0:  # rounding dominates
            break
        length = square / curvature
        x += length * way
        rest -= length * image
        square, before = rest @ rest, square
        if square <= residual**2:
            break
        way = rest + (square / before) * way
    return x if x.any() else right
