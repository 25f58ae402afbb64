"""Manifolds: projections onto the tangent space and geodesic flows, in the signatures `PROJECT` and `FLOW`.

=========  ==========================================  =======================================
geometry   theta                                       dimension
=========  ==========================================  =======================================
sphere     every row a unit vector of R^width          n_rows (width - 1)
simplex    every row on the flat probability simplex   n_rows (width - 1)
stiefel    the rows orthonormal, n_rows <= width       n_rows width - n_rows (n_rows + 1) / 2
euclidean  any, as a block of a product                n_rows width
product    blocks of the above, one after the other    the sum over its blocks
=========  ==========================================  =======================================

A table specifies a product: ``blocks`` (n_blocks, 3) contains the geometry, the number of rows and the width of each
block. The blocks fill theta in memory order, for any shape of theta. Other geometries do not read the table.

Flows are exact for any time: great circles on the sphere, straight lines with specular reflection inside the plane on
the simplex, and matrix exponentials on the Stiefel manifold. After each flow, the point is projected onto the manifold
and the momentum onto the tangent space, so that rounding errors do not accumulate. The mass is the identity, since
under any other mass these curves would not be geodesics. The table of blocks therefore replaces the argument that is
the inverse mass on flat space.

References
----------
Byrne and Girolami (2013), Geodesic Monte Carlo on embedded manifolds, Scandinavian Journal of Statistics 40,
sections 3.1 and 4.
"""

import math

import numpy as np

from .._jit import FLOW, NOT_FINITE, OK, PROJECT, helper, kernel
from ..math.arrays import set_to, times, times_transposed


@helper
def project_stiefel(X, V):
    """V <- V - (X V' + V X') X / 2, for X with orthonormal rows."""
    across = times_transposed(X, V)
    for i in range(X.shape[0]):
        for j in range(X.shape[0]):
            both = 0.5 * (across[i, j] + across[j, i])
            for k in range(X.shape[1]):
                V[i, k] -= both * X[j, k]


@helper
def _exponential(A):
    """Matrix exponential by scaling and squaring of a Taylor polynomial; overwrites A."""
    n = A.shape[0]
    size = 0.0
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += abs(A[i, j])
        size = max(size, total)
    halvings = 0
    while size > 0.25 and halvings < 60:
        size *= 0.5
        halvings += 1
    result, term = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        result[i, i] = term[i, i] = 1.0
        for j in range(n):
            A[i, j] /= 2.0**halvings
    for k in range(1, 14):
        term = times(term, A)
        for i in range(n):
            for j in range(n):
                term[i, j] /= k
                result[i, j] += term[i, j]
    for _ in range(halvings):
        result = times(result, result)
    return result


@helper
def flow_stiefel(X, V, time):
    """[X V] exp(t [[A, -S], [I, A]]) diag(exp(-tA), exp(-tA)), A = X'V, S = V'V, for columns; here for rows."""
    p = X.shape[0]
    A, S = times_transposed(X, V), times_transposed(V, V)
    block, back = np.zeros((2 * p, 2 * p)), np.empty((p, p))
    for i in range(p):
        block[p + i, i] = time
        for j in range(p):
            block[i, j] = block[p + i, p + j] = time * A[i, j]
            block[i, p + j] = -time * S[i, j]
            back[i, j] = -time * A[i, j]
    both, back = _exponential(block), _exponential(back)
    to_x, to_v = times(both[:, :p], back).T, times(both[:, p:], back).T
    stacked = np.empty((2 * p, X.shape[1]))
    set_to(stacked[:p], X)
    set_to(stacked[p:], V)
    X_new = times(to_x, stacked)
    set_to(V, times(to_v, stacked))
    # A step of Newton's iteration for the polar factor, (3 I - X X') X / 2, projects onto the manifold. It squares the
    # rounding error, which would be too large after a flow through thousands of turns.
    gram = times_transposed(X_new, X_new)
    for i in range(p):
        for j in range(p):
            exact = 1.0 if i == j else 0.0
            if not abs(gram[i, j] - exact) < 1e-7:
                return NOT_FINITE
            gram[i, j] = 1.5 * exact - 0.5 * gram[i, j]
    set_to(X, times(gram, X_new))
    project_stiefel(X, V)
    for i in range(p):
        for j in range(X.shape[1]):
            if not (math.isfinite(X[i, j]) and math.isfinite(V[i, j])):
                return NOT_FINITE
    return OK


SPHERE, SIMPLEX, STIEFEL, EUCLIDEAN, PRODUCT = range(5)


# ------------------------------------------------------------------------------------------------------------ sphere


@helper(fast_sums=True)
def _dot(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@helper
def project_sphere_row(x, v):
    """v <- (I - x x') v."""
    along = _dot(x, v)
    for i in range(x.shape[0]):
        v[i] -= along * x[i]


@helper
def flow_sphere_row(x, v, time):
    """x <- x cos(at) + (v/a) sin(at), v <- its derivative, a = |v|; returns a status."""
    speed = math.sqrt(_dot(v, v))
    angle = speed * time
    cos, sin = math.cos(angle), math.sin(angle)
    over_speed = sin / speed if speed > 1e-150 else time
    size = 0.0
    for i in range(x.shape[0]):
        old = x[i]
        x[i] = old * cos + v[i] * over_speed
        v[i] = v[i] * cos - old * speed * sin
        size += x[i] * x[i]
    if not (math.isfinite(speed) and size > 0.0):
        return NOT_FINITE
    size = 1.0 / math.sqrt(size)
    for i in range(x.shape[0]):
        x[i] *= size
    project_sphere_row(x, v)
    return OK


# ----------------------------------------------------------------------------------------------------------- simplex


@helper
def project_simplex_row(v):
    """v <- v - mean(v)."""
    mean = 0.0
    for i in range(v.shape[0]):
        mean += v[i]
    mean /= v.shape[0]
    for i in range(v.shape[0]):
        v[i] -= mean


@helper
def flow_simplex_row(x, v, time):
    """Straight line, reflected at each face x_j = 0 along the face's normal inside the plane sum(x) = 1."""
    n = x.shape[0]
    left = time
    for _ in range(10_000):
        first, face = left, -1
        for i in range(n):
            if v[i] < 0.0:
                reached = max(-x[i] / v[i], 0.0)
                if reached < first:
                    first, face = reached, i
        for i in range(n):
            x[i] = max(x[i] + first * v[i], 0.0)
        if face < 0:
            total = 0.0
            for i in range(n):
                total += x[i]
            if not (math.isfinite(total) and total > 0.0):
                return NOT_FINITE
            for i in range(n):
                x[i] /= total
            project_simplex_row(v)
            return OK
        # The face's unit normal in the plane is (e_j - 1/n) sqrt(n / (n - 1)); v_j = v . e_j since sum(v) = 0.
        x[face] = 0.0
        push = 2.0 * v[face] / (n - 1.0)
        for i in range(n):
            v[i] += push
        v[face] -= push * n
        left -= first
    return NOT_FINITE


# -------------------------------------------------------------------------------------------------------- flat space


@helper
def flow_euclidean(x, v, time):
    """x += time v, for a block without constraint; returns a status."""
    for r in range(x.shape[0]):
        for i in range(x.shape[1]):
            x[r, i] += time * v[r, i]
            if not math.isfinite(x[r, i]):
                return NOT_FINITE
    return OK


# ----------------------------------------------------------------------------------------------- one for each geometry

# Each geometry has two helpers, `move_...` and `project_...`, with the same arguments. The halves of a step take them
# as arguments, so that each kernel contains only the code of its own geometry, and compiles ten times faster.


@helper
def move_spheres(theta, momentum, blocks, time):
    """Move along great circles; returns a status."""
    for r in range(theta.shape[0]):
        status = flow_sphere_row(theta[r], momentum[r], time)
        if status != OK:
            return status
    return OK


@helper
def project_spheres(theta, vector, blocks):
    """Project onto the tangent spaces of spheres."""
    for r in range(theta.shape[0]):
        project_sphere_row(theta[r], vector[r])


@helper
def move_simplices(theta, momentum, blocks, time):
    """Move along straight lines with specular reflection; returns a status."""
    for r in range(theta.shape[0]):
        status = flow_simplex_row(theta[r], momentum[r], time)
        if status != OK:
            return status
    return OK


@helper
def project_simplices(theta, vector, blocks):
    """Project onto rows that sum to 0."""
    for r in range(theta.shape[0]):
        project_simplex_row(vector[r])


@helper(inline=True)
def move_frames(theta, momentum, blocks, time):
    """Move along geodesics of the embedded metric between orthonormal frames; returns a status."""
    return flow_stiefel(theta, momentum, time)


@helper(inline=True)
def project_frames(theta, vector, blocks):
    """Project onto the tangent space of orthonormal frames."""
    project_stiefel(theta, vector)


@helper
def _block(theta, blocks, b, at):
    """Block ``b`` of a product as a matrix, which begins at position ``at`` in memory; and the position after it."""
    end = at + int(blocks[b, 1] * blocks[b, 2])
    return theta.reshape(theta.size)[at:end].reshape((int(blocks[b, 1]), int(blocks[b, 2]))), end


@helper(inline=True)
def move_product(theta, momentum, blocks, time):
    """Move every block along its own geodesic; returns a status."""
    at = 0
    for b in range(blocks.shape[0]):
        x, _ = _block(theta, blocks, b, at)
        v, at = _block(momentum, blocks, b, at)
        geometry = int(blocks[b, 0])
        if geometry == SPHERE:
            status = move_spheres(x, v, blocks, time)
        elif geometry == SIMPLEX:
            status = move_simplices(x, v, blocks, time)
        elif geometry == STIEFEL:
            status = flow_stiefel(x, v, time)
        else:
            status = flow_euclidean(x, v, time)
        if status != OK:
            return status
    return OK


@helper(inline=True)
def project_product(theta, vector, blocks):
    """Project every block onto its own tangent space."""
    at = 0
    for b in range(blocks.shape[0]):
        x, _ = _block(theta, blocks, b, at)
        v, at = _block(vector, blocks, b, at)
        geometry = int(blocks[b, 0])
        if geometry == SPHERE:
            project_spheres(x, v, blocks)
        elif geometry == SIMPLEX:
            project_simplices(x, v, blocks)
        elif geometry == STIEFEL:
            project_stiefel(x, v)


@helper
def _dimension_of_one(geometry, n_rows, width):
    if geometry == STIEFEL:
        return float(n_rows * width) - 0.5 * n_rows * (n_rows + 1.0)
    return n_rows * (width if geometry == EUCLIDEAN else width - 1.0)


@helper
def dimension(geometry, theta, blocks):
    """Dimension of the manifold, which is the number of squared standard normals in |momentum|^2."""
    if geometry != PRODUCT:
        return _dimension_of_one(geometry, theta.shape[0], theta.shape[1])
    total = 0.0
    for b in range(blocks.shape[0]):
        total += _dimension_of_one(int(blocks[b, 0]), blocks[b, 1], blocks[b, 2])
    return total


@kernel(FLOW)
def sphere_flow(theta, momentum, blocks, time):
    """Move along great circles."""
    return move_spheres(theta, momentum, blocks, time)


@kernel(PROJECT)
def sphere_project(theta, momentum, blocks):
    """Project onto the tangent spaces of spheres."""
    project_spheres(theta, momentum, blocks)
    return OK


@kernel(FLOW)
def simplex_flow(theta, momentum, blocks, time):
    """Move along straight lines with specular reflection."""
    return move_simplices(theta, momentum, blocks, time)


@kernel(PROJECT)
def simplex_project(theta, momentum, blocks):
    """Project onto rows that sum to 0."""
    project_simplices(theta, momentum, blocks)
    return OK


@kernel(FLOW)
def stiefel_flow(theta, momentum, blocks, time):
    """Move along geodesics of the embedded metric between orthonormal frames."""
    return move_frames(theta, momentum, blocks, time)


@kernel(PROJECT)
def stiefel_project(theta, momentum, blocks):
    """Project onto the tangent space of orthonormal frames."""
    project_frames(theta, momentum, blocks)
    return OK


@kernel(FLOW)
def product_flow(theta, momentum, blocks, time):
    """Move every block along its own geodesic."""
    return move_product(theta, momentum, blocks, time)


@kernel(PROJECT)
def product_project(theta, momentum, blocks):
    """Project every block onto its own tangent space."""
    project_product(theta, momentum, blocks)
    return OK


# Flow and projection of each geometry.
MOTIONS = {
    "sphere": (sphere_flow, sphere_project),
    "simplex": (simplex_flow, simplex_project),
    "stiefel": (stiefel_flow, stiefel_project),
    "product": (product_flow, product_project),
}
