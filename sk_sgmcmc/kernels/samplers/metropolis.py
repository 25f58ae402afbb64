"""Flow and projection for Metropolis trajectories on flat space."""

from .._jit import FLOW, OK, PROJECT, kernel


@kernel(FLOW)
def flat_flow(theta, momentum, inverse_mass, time):
    """theta += time W p; W is (1, 1) for a multiple of the identity, of theta's shape if diagonal, else (D, D)."""
    D = theta.size
    width = theta.shape[1]
    if inverse_mass.size == 1:
        for r in range(theta.shape[0]):
            for k in range(width):
                theta[r, k] += time * inverse_mass[0, 0] * momentum[r, k]
    elif inverse_mass.size == D:
        for r in range(theta.shape[0]):
            for k in range(width):
                theta[r, k] += time * inverse_mass[r, k] * momentum[r, k]
    else:
        for i in range(D):
            total = 0.0
            for j in range(D):
                total += inverse_mass[i, j] * momentum[j // width, j % width]
            theta[i // width, i % width] += time * total
    return OK


@kernel(PROJECT)
def flat_project(theta, momentum, inverse_mass):
    """The tangent space of flat space is all of it."""
    return OK
