"""Stochastic-gradient Hamiltonian transitions along geodesics.

The state ``theta`` lies on a manifold (see `geometry`), and ``aux[0]`` is the velocity. ``scalars`` = (1 after the
velocity was drawn, the thermostat xi, the table of blocks of a product). ``signal`` is the gradient of the log density
with respect to the surface measure, as a vector of the surrounding space. ``extra`` = (log density, variance of the
gradient's noise if the model estimates it). A step is the symmetric composition A B O B A:

A  geodesic flow over h/2; xi += (|v|^2 / dimension - 1) h / (2 mass)
B  v <- v exp(-xi h / 2)
O  v <- v + Lambda [h gradient + sqrt(2 sinh(h C) - h^2 V) Z], Lambda the projection onto the tangent space

``advance`` is the first A, so that the model's signal is computed where O needs it. ``step`` is the rest. ``hyper`` =
(h, C, V or minus the factor by which to multiply the model's estimate, xi at the start, 1/mass). With 1/mass = 0 the
thermostat is the constant friction C, which gives SGGMC; any other mass gives gSGNHT. V is the variance of the
gradient's noise, by which the variance of the added noise is reduced.

The paper has 2 h C instead of 2 sinh(h C), which agrees to second order. With 2 h C, however, the temperature is
hC / sinh(hC), so it depends on the friction even without any force.

References
----------
Liu, Zhu and Song (2016), Stochastic gradient geodesic MCMC methods, NeurIPS, section 3 and appendix.
"""

import math

from .._jit import NOT_FINITE, TRANSITION, helper, kernel
from .geometry import (
    PRODUCT,
    SIMPLEX,
    SPHERE,
    STIEFEL,
    dimension,
    move_frames,
    move_product,
    move_simplices,
    move_spheres,
    project_frames,
    project_product,
    project_simplices,
    project_spheres,
)

N_SCALARS = 2  # numbers before the table of blocks


@helper(inline=True)
def blocks_of(scalars):
    """The table of blocks of a product; empty for other geometries."""
    return scalars[N_SCALARS:].reshape(((scalars.shape[0] - N_SCALARS) // 3, 3))


@helper(fast_sums=True)
def squared_norm(v):
    """Sum of squares of a 2-d array."""
    total = 0.0
    for r in range(v.shape[0]):
        for i in range(v.shape[1]):
            total += v[r, i] * v[r, i]
    return total


@helper(inline=True)
def half_flow(geometry, move, theta, velocity, scalars, hyper):
    """A: flow over h/2, and update the thermostat unless its mass is infinite."""
    blocks = blocks_of(scalars)
    status = move(theta, velocity, blocks, 0.5 * hyper[0])
    if hyper[4] > 0.0:
        n = dimension(geometry, theta, blocks)
        if n > 0:  # The sphere in one dimension consists of two points.
            scalars[1] += (squared_norm(velocity) / n - 1.0) * 0.5 * hyper[0] * hyper[4]
        # If the thermostat is so negative that a step multiplies the velocity without bound, the chain has diverged.
        if not abs(scalars[1]) * hyper[0] < 1e3:
            return NOT_FINITE
    else:
        scalars[1] = hyper[1]
    return status


@helper(inline=True)
def first_half(geometry, move, project, theta, aux, scalars, hyper, rng):
    """Draw the velocity at the first step, then A."""
    if scalars[0] == 0.0:
        scalars[0] = 1.0
        scalars[1] = hyper[3]
        for r in range(theta.shape[0]):
            for i in range(theta.shape[1]):
                aux[0, r, i] = rng.standard_normal()
        project(theta, aux[0], blocks_of(scalars))
    return half_flow(geometry, move, theta, aux[0], scalars, hyper)


@helper(inline=True)
def second_half(geometry, move, project, theta, aux, scalars, signal, extra, hyper, rng):
    """B O B A."""
    h = hyper[0]
    noise_variance = hyper[2] if hyper[2] >= 0.0 else -hyper[2] * extra[1]
    # If the gradient is noisier than friction can compensate, no noise is added, and the temperature is above 1.
    noise = math.sqrt(max(2.0 * math.sinh(min(h * hyper[1], 300.0)) - h * h * noise_variance, 0.0))
    damping = h * scalars[1]
    if h * hyper[1] > 300.0:  # Limited like the noise, so that both stay in balance.
        damping -= h * hyper[1] - 300.0
    decay = math.exp(-0.5 * damping)
    velocity = aux[0]
    for r in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            velocity[r, i] = velocity[r, i] * decay + h * signal[r, i] + noise * rng.standard_normal()
    # The velocity is already tangent, so projecting the sum projects only the gradient and the noise.
    project(theta, velocity, blocks_of(scalars))
    for r in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            velocity[r, i] *= decay
    return half_flow(geometry, move, theta, velocity, scalars, hyper)


@kernel(TRANSITION)
def sphere_advance(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """First A on spheres."""
    return first_half(SPHERE, move_spheres, project_spheres, theta, aux, scalars, hyper, rng)


@kernel(TRANSITION)
def sphere_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """B O B A on spheres."""
    return second_half(SPHERE, move_spheres, project_spheres, theta, aux, scalars, signal, extra, hyper, rng)


@kernel(TRANSITION)
def simplex_advance(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """First A on flat simplices."""
    return first_half(SIMPLEX, move_simplices, project_simplices, theta, aux, scalars, hyper, rng)


@kernel(TRANSITION)
def simplex_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """B O B A on flat simplices."""
    return second_half(SIMPLEX, move_simplices, project_simplices, theta, aux, scalars, signal, extra, hyper, rng)


@kernel(TRANSITION)
def stiefel_advance(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """First A on the Stiefel manifold."""
    return first_half(STIEFEL, move_frames, project_frames, theta, aux, scalars, hyper, rng)


@kernel(TRANSITION)
def stiefel_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """B O B A on the Stiefel manifold."""
    return second_half(STIEFEL, move_frames, project_frames, theta, aux, scalars, signal, extra, hyper, rng)


@kernel(TRANSITION)
def product_advance(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """First A on a product."""
    return first_half(PRODUCT, move_product, project_product, theta, aux, scalars, hyper, rng)


@kernel(TRANSITION)
def product_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """B O B A on a product."""
    return second_half(PRODUCT, move_product, project_product, theta, aux, scalars, signal, extra, hyper, rng)


# ``advance`` and ``step`` of each geometry.
TRANSITIONS = {
    "sphere": (sphere_advance, sphere_step),
    "simplex": (simplex_advance, simplex_step),
    "stiefel": (stiefel_advance, stiefel_step),
    "product": (product_advance, product_step),
}
