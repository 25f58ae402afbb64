"""Updates of the spherical admixture model: proportions by geodesic Monte Carlo, topics by a geodesic sampler."""

import math

import numpy as np
from numba import types

from ..._jit import F1, F1_IN, F2, F2_IN, F3, F8, FLOW, I1_IN, I8, OK, PROJECT, RNG, TRANSITION, helper, kernel
from ...math.arrays import set_to
from ...math.random import TINY
from ...samplers.geodesic import squared_norm
from ...samplers.geometry import flow_simplex_row, project_simplex_row
from .admixture import F3_IN, admixture_gradient, sizes
from .score import trajectory

_TARGET = 0.8  # acceptance rate to which step sizes adapt


@helper
def proportions_gradient(theta, gram, y, alpha, kappa, bent, gradient):
    """Return the log density kappa u'v/|u| + sum (alpha - 1) log theta, and write its gradient."""
    size, along = sizes(theta, gram, y, bent)
    log_density = kappa * along / size
    for k in range(theta.shape[0]):
        gradient[k] = kappa * (y[k] - along * bent[k] / (size * size)) / size
        if alpha[k] != 1.0:
            inside = max(theta[k], 1e-300)
            gradient[k] += (alpha[k] - 1.0) / inside
            log_density += (alpha[k] - 1.0) * math.log(inside)
    return log_density


@helper
def draw_in_logs(x, gram, y, alpha, kappa, log_step, n_burn, n_leapfrog, gain, draws, psi, work, rng):
    """Trajectories in psi = log(theta G), G ~ Gamma(sum alpha), where the density is smooth even if alpha < 1.

    theta is the softmax of psi. G is independent of theta, so it may be drawn for a given theta. Changes ``x`` and
    writes ``draws``; returns the logarithm of the step size.
    """
    total = math.log(max(rng.standard_gamma(alpha.sum()), TINY))
    for k in range(x.shape[0]):
        psi[k] = math.log(max(x[k], TINY)) + total
    for t in range(n_burn + draws.shape[0]):
        chance, _ = trajectory(psi, x, gram, y, alpha, kappa, 1.0, math.exp(log_step), n_leapfrog, work, rng)
        if t < n_burn:
            log_step = min(max(log_step + gain * (chance - _TARGET), -30.0), 0.0)
        else:
            largest, size = psi.max(), 0.0
            for k in range(x.shape[0]):
                x[k] = math.exp(psi[k] - largest)
                size += x[k]
            for k in range(x.shape[0]):
                x[k] /= size
            draws[t - n_burn] = x
    return log_step


@kernel(I8(F2_IN, F2_IN, F1_IN, F8, I1_IN, F2, F1, I8, I8, I8, F8, F3, RNG))
def draw_proportions(
    gram, products, alpha, kappa, docs, theta, step_sizes, n_burn, n_keep, n_leapfrog, adapts, draws, rng
):
    """Geodesic Monte Carlo on the simplex for each of the documents ``docs``, from its present state.

    If an alpha is below 1, the density is infinite at faces of the simplex. Trajectories then use logarithms.

    Parameters
    ----------
    gram, products : (n_topics, n_topics), (n_batch, n_topics), see `admixture`
    alpha, kappa : parameter of the Dirichlet prior, concentration of the documents
    theta, step_sizes : (n_docs, n_topics), (n_docs,), changed in place
    n_burn, n_keep, n_leapfrog : trajectories to discard, trajectories to keep, leapfrog steps of each
    adapts : gain by which the logarithm of a step size adapts to the acceptance rate, in the first ``n_burn``
        trajectories; 0 for fixed step sizes. A chain that adapts forever need not leave the target invariant.
    draws : (n_batch, n_keep, n_topics), written
    """
    n_topics = gram.shape[0]
    x, old = np.empty(n_topics), np.empty(n_topics)
    v, bent = np.empty(n_topics), np.empty(n_topics)
    gradient, old_gradient = np.empty(n_topics), np.empty(n_topics)
    in_logs = alpha.min() < 1.0
    work = np.empty((4, n_topics))
    for s in range(docs.shape[0]):
        set_to(x, theta[docs[s]])
        log_step = math.log(step_sizes[docs[s]])
        if in_logs:
            log_step = draw_in_logs(
                x, gram, products[s], alpha, kappa, log_step, n_burn, n_leapfrog, adapts, draws[s], v, work, rng
            )
            theta[docs[s]] = x
            step_sizes[docs[s]] = math.exp(log_step)
            continue
        log_density = proportions_gradient(x, gram, products[s], alpha, kappa, bent, gradient)
        for t in range(n_burn + n_keep):
            # The step size is random, so that trajectories do not resonate with a period of the target.
            h = math.exp(log_step) * (0.8 + 0.4 * rng.random())
            for k in range(n_topics):
                v[k] = rng.standard_normal()
            project_simplex_row(v)
            energy = log_density
            for k in range(n_topics):
                energy -= 0.5 * v[k] * v[k]
                old[k] = x[k]
                old_gradient[k] = gradient[k]
            now, status = log_density, OK
            for _ in range(n_leapfrog):
                for k in range(n_topics):
                    v[k] += 0.5 * h * gradient[k]
                project_simplex_row(v)
                status = flow_simplex_row(x, v, h)
                if status != OK:
                    break
                now = proportions_gradient(x, gram, products[s], alpha, kappa, bent, gradient)
                for k in range(n_topics):
                    v[k] += 0.5 * h * gradient[k]
                project_simplex_row(v)
            gain = now - energy
            for k in range(n_topics):
                gain -= 0.5 * v[k] * v[k]
            chance = 0.0 if status != OK or not gain > -1e300 else math.exp(min(gain, 0.0))
            if rng.random() < chance:
                log_density = now
            else:
                set_to(x, old)
                set_to(gradient, old_gradient)
            if t < n_burn:
                log_step = min(max(log_step + adapts * (chance - _TARGET), -30.0), 0.0)
            else:
                draws[s, t - n_burn] = x
        theta[docs[s]] = x
        step_sizes[docs[s]] = math.exp(log_step)
    return OK


@helper
def held_noise(n_steps, damping):
    """Ratio of the velocity variances under noise held for ``n_steps`` steps and noise redrawn at each step.

    A step is v <- a v + xi, a = exp(-damping). Let xi be the same for m steps, and let variances be in units of the
    variance of xi. At the end of such a group of steps, the variance is b^2 / (1 - a^2m), b = (1 - a^m) / (1 - a).
    After j steps of the next group, it is a^2j times this plus ((1 - a^j) / (1 - a))^2. The mean over a group is
    divided by 1 / (1 - a^2). The ratio is between 1 (strong damping) and m (weak damping).
    """
    if damping < 1e-8:
        return float(n_steps)
    once = -math.expm1(-damping)
    whole = -math.expm1(-n_steps * damping) / once
    at_end = whole * whole / -math.expm1(-2.0 * n_steps * damping)
    mean = 0.0
    for j in range(1, n_steps + 1):
        since = -math.expm1(-j * damping) / once
        mean += (math.exp(-2.0 * j * damping) * at_end + since * since) / n_steps
    return mean * -math.expm1(-2.0 * damping)


_DATA = (I1_IN, I1_IN, F1_IN, I1_IN, F3_IN, F1_IN, F1_IN, F8, F2_IN, F2_IN, F2_IN, F2_IN, F8)
_RUN_TOPICS = I8(
    F2, F3, F1, *_DATA, F2_IN, F1, types.FunctionType(TRANSITION), types.FunctionType(TRANSITION), RNG
)  # fmt: skip


@kernel(_RUN_TOPICS)
def run_topics(
    beta,
    aux,
    scalars,
    ptr,
    words,
    values,
    docs,
    draws,
    prior,
    center,
    scale,
    others,
    others_across,
    before,
    terms,
    lag,
    hypers,
    extra,
    advance,
    step,
    rng,
):
    """Steps of a geodesic sampler on the topics, at fixed draws of the documents' proportions; returns a status.

    Parameters
    ----------
    beta, aux, scalars : state of the sampler, changed in place; beta (n_topics, n_words) has unit rows
    ptr, words, values : the documents, CSR
    docs, draws : (n_batch,) the minibatch, (n_batch, n_draws, n_topics) its proportions
    prior, center, scale : (kappa0, kappa1, sigma), the prior's mean direction, N/n
    others, others_across, before, terms, lag : terms of the other documents, see `admixture_gradient`
    hypers : (n_steps, n_hyper)
    extra : written by `admixture_gradient`; the variance of the noise is converted to noise that is redrawn in each
        step
    """
    n_topics = beta.shape[0]
    gram, across = np.empty((n_topics, n_topics)), np.empty((n_topics, n_topics))
    products, share = np.empty((docs.shape[0], n_topics)), np.empty((docs.shape[0], n_topics))
    signal, rows = np.empty_like(beta), np.arange(n_topics)
    status = OK
    for t in range(hypers.shape[0]):
        status = advance(beta, aux, scalars, signal, extra, hypers[t], rows, rng)
        if status != OK:
            return status
        admixture_gradient(
            beta, ptr, words, values, docs, draws, prior, center, scale, others, others_across, before, terms, lag,
            gram, products, share, across, signal, extra,
        )  # fmt: skip
        if extra[1] > 0.0:
            extra[1] *= held_noise(hypers.shape[0], hypers[t, 0] * hypers[t, 1])
        status = step(beta, aux, scalars, signal, extra, hypers[t], rows, rng)
        if status != OK:
            return status
    return status


_RUN_METROPOLIS = F8(
    F2, *_DATA, F8, F8, I8, I8, types.FunctionType(FLOW), types.FunctionType(PROJECT), RNG
)  # fmt: skip


@kernel(_RUN_METROPOLIS)
def run_topic_trajectories(
    beta,
    ptr,
    words,
    values,
    docs,
    draws,
    prior,
    center,
    scale,
    others,
    others_across,
    before,
    terms,
    lag,
    step_size,
    jitter,
    n_leapfrog,
    n_trajectories,
    flow,
    project,
    rng,
):
    """Metropolis trajectories on the topics at fixed draws of the proportions; returns the mean acceptance rate."""
    n_topics = beta.shape[0]
    gram, across = np.empty((n_topics, n_topics)), np.empty((n_topics, n_topics))
    products, share = np.empty((docs.shape[0], n_topics)), np.empty((docs.shape[0], n_topics))
    gradient, extra, unit = np.empty_like(beta), np.zeros(2), np.ones((1, 1))
    momentum, old, accepted = np.empty_like(beta), np.empty_like(beta), 0.0
    for _ in range(n_trajectories):
        admixture_gradient(
            beta, ptr, words, values, docs, draws, prior, center, scale, others, others_across, before, terms, lag,
            gram, products, share, across, gradient, extra,
        )  # fmt: skip
        for k in range(n_topics):
            for w in range(beta.shape[1]):
                momentum[k, w] = rng.standard_normal()
        project(beta, momentum, unit)
        h = step_size
        if jitter > 0.0:
            h *= 1.0 + jitter * (2.0 * rng.random() - 1.0)
        set_to(old, beta)
        energy = extra[0] - 0.5 * squared_norm(momentum)
        status = OK
        for _ in range(n_leapfrog):
            momentum += 0.5 * h * gradient
            project(beta, momentum, unit)
            status = flow(beta, momentum, unit, h)
            if status != OK:
                break
            admixture_gradient(
                beta, ptr, words, values, docs, draws, prior, center, scale, others, others_across, before, terms,
                lag, gram, products, share, across, gradient, extra,
            )  # fmt: skip
            momentum += 0.5 * h * gradient
            project(beta, momentum, unit)
        gain = extra[0] - 0.5 * squared_norm(momentum) - energy
        chance = 0.0 if status != OK or not gain > -1e300 else math.exp(min(gain, 0.0))
        accepted += chance
        if not rng.random() < chance:
            set_to(beta, old)
    return accepted / n_trajectories
