"""One transition of NUTS in NumPy, by the recursion of the papers; draws random numbers in the order of the kernel."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Point:
    q: np.ndarray
    p: np.ndarray
    value: float
    slope: np.ndarray


@dataclass
class Tree:
    """Points in the order in which they were visited: its first and last, and what is known of all."""

    first: Point
    last: Point
    total: np.ndarray


class _Stop(Exception):
    pass


class Transition:
    """A transition; ``broken`` names what is left out.

    Parameters
    ----------
    density : callable
        Log density and gradient at q.
    W : ndarray of shape (D, D)
        Inverse mass.
    h : float
    max_depth : int
    rng : Generator
    broken : str
        "weights": points of a doubling are drawn alike, whatever their weight; "half step": a leapfrog step ends
        without its second kick; "square": the state moves by the squares of weights.
    """

    def __init__(self, density, W, h, max_depth, rng, broken=""):
        self.density, self.W, self.h, self.max_depth, self.rng, self.broken = density, W, h, max_depth, rng, broken

    def leapfrog(self, point, step):
        p = point.p + 0.5 * step * point.slope
        q = point.q + step * self.W @ p
        value, slope = self.density(q)
        if self.broken != "half step":
            p = p + 0.5 * step * slope
        return Point(q, p, value, slope)

    def change(self, point):
        return self.energy - 0.5 * point.p @ self.W @ point.p + point.value

    def turns(self, one, two):
        """Whether two neighbouring trees turn, together or each with the nearest point of the other."""
        for start, end, total in (
            (one.first, two.last, one.total + two.total),
            (one.first, two.first, one.total + two.first.p),
            (one.last, two.last, one.last.p + two.total),
        ):
            if not (self.W @ start.p @ total > 0 and self.W @ end.p @ total > 0):
                return True
        return False

    def build(self, point, step, depth):
        """A tree of 2^depth points after a point; raises `_Stop` if it diverges or turns."""
        if depth == 0:
            new = self.leapfrog(point, step)
            change = self.change(new)
            self.n += 1
            if not change > -1000.0:
                self.diverged = True
                raise _Stop
            self.rates += min(1.0, np.exp(change))
            self.weight = np.logaddexp(self.weight, change)
            self.n_new += 1
            share = -np.log(self.n_new) if self.broken == "weights" else change - self.weight
            if np.log(self.rng.random()) < share:
                self.drawn = new
            return Tree(new, new, new.p)
        one = self.build(point, step, depth - 1)
        two = self.build(one.last, step, depth - 1)
        if self.turns(one, two):
            raise _Stop
        return Tree(one.first, two.last, one.total + two.total)

    def __call__(self, q, p):
        """The next position; ``rate``, ``n``, ``depth``, ``diverged`` and ``drawn_...`` are attributes."""
        value, slope = self.density(q)
        state = Point(q, p, value, slope)
        self.energy = 0.5 * p @ self.W @ p - value
        whole, log_weight = Tree(state, state, p), 0.0
        self.rates, self.n, self.depth, self.diverged = 0.0, 0, 0, False
        towards = 1
        for depth in range(self.max_depth):
            side = 1 if self.rng.random() < 0.5 else -1
            if side != towards:
                whole, towards = Tree(whole.last, whole.first, whole.total), side
            self.weight, self.n_new = -np.inf, 0
            try:
                new = self.build(whole.last, side * self.h, depth)
            except _Stop:
                break
            self.depth += 1
            if np.log(self.rng.random()) < (2.0 if self.broken == "square" else 1.0) * (self.weight - log_weight):
                state = self.drawn
            log_weight = np.logaddexp(log_weight, self.weight)
            turned = self.turns(whole, new)
            whole = Tree(whole.first, new.last, whole.total + new.total)
            if turned:
                break
        self.rate = self.rates / self.n
        self.drawn_value, self.drawn_energy = state.value, self.energy - self.change(state)
        return state.q


def chain(density, q, W, h, max_depth, n, rng, broken="", statistics=None):
    """Positions after each of n transitions, with momenta drawn by the root of the mass.

    A list ``statistics`` gets (log density, energy, rate, depth, leapfrog steps, diverged) of each.
    """
    root = np.linalg.cholesky(np.linalg.inv(W))
    transition = Transition(density, W, h, max_depth, rng, broken)
    found = np.empty((n, q.size))
    for t in range(n):
        q = transition(q, root @ rng.standard_normal(q.size))
        found[t] = q
        if statistics is not None:
            of = transition
            statistics.append((of.drawn_value, of.drawn_energy, of.rate, of.depth, of.n, of.diverged))
    return found
