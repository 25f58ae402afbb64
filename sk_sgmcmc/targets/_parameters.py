"""Named parameters of a user-defined density: their shapes and constraints."""

import keyword

import numpy as np

from ..kernels.models import named
from ..utils._numbers import is_count

RESERVED = ("rows", "scale", "gradient")  # arguments of a log density that are not parameters


def _shape_of(shape, given):
    """Convert a shape, which may be a whole number, to a tuple; raises if it is invalid."""
    try:
        shape = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    except TypeError:
        shape = (None,)
    if not all(is_count(n) for n in shape):
        raise ValueError(
            f"{given}: the shape must be a tuple of whole numbers of at least 1, such as (), (8,) or (3, 2)."
        )
    return tuple(int(n) for n in shape)


class _Constraint:
    """Base class of constraints: the shape of a parameter, and the set in which its numbers lie."""

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        self.shape = _shape_of(shape, f"{type(self).__name__}({shape!r})")

    def __eq__(self, other):
        return type(self) is type(other) and self.shape == other.shape

    def __hash__(self):
        return hash((type(self), self.shape))

    def __repr__(self):
        shown = self.shape[0] if len(self.shape) == 1 else self.shape
        return f"{type(self).__name__}({shown if self.shape else ''})"


class Positive(_Constraint):
    """Positive numbers, as an entry of ``parameters`` of `sk_sgmcmc.sample`.

    Chains move the logarithms, but write the log density with respect to the numbers themselves.

    Parameters
    ----------
    shape : int or tuple of int, default=()
        Shape of the parameter; a single number by default.

    Examples
    --------
    >>> from sk_sgmcmc.targets import Positive
    >>> Positive(), Positive((3, 2))
    (Positive(), Positive((3, 2)))
    """

    def __init__(self, shape: int | tuple[int, ...] = ()) -> None:
        super().__init__(shape)


class Simplex(_Constraint):
    r"""Positive numbers that sum to 1, as an entry of ``parameters`` of `sk_sgmcmc.sample`.

    Chains move isometric log-ratios of these probabilities. Write the log density with respect to all probabilities but
    one, like that of a Dirichlet distribution.

    Parameters
    ----------
    shape : int or tuple of int
        Number of probabilities. A longer shape sums to 1 along its last axis: ``Simplex((5, 3))`` is five vectors of
        three probabilities.

    Notes
    -----
    :math:`p = \mathrm{softmax}(V z)`, where the columns of :math:`V` are orthonormal, and orthogonal to the vector of
    ones. The volume element is :math:`\sqrt{K} \prod_k p_k`.

    References
    ----------
    Egozcue, Pawlowsky-Glahn, Mateu-Figueras and Barceló-Vidal (2003), Isometric logratio transformations for
    compositional data analysis, Mathematical Geology.

    Examples
    --------
    >>> from sk_sgmcmc.targets import Simplex
    >>> Simplex(4)
    Simplex(4)
    """

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        super().__init__(shape)
        if not self.shape or self.shape[-1] < 2:
            raise ValueError(f"Simplex({shape!r}): a simplex has two probabilities or more, such as Simplex(2).")


class Ordered(_Constraint):
    r"""Increasing numbers, as an entry of ``parameters`` of `sk_sgmcmc.sample`.

    Use them as cut points of an ordinal regression, or as means that give the components of a mixture an order. Chains
    move the first number and the logarithms of the differences. Write the log density with respect to the numbers
    themselves; it need only be correct where they increase.

    Parameters
    ----------
    shape : int or tuple of int
        How many numbers. A longer shape increases along its last axis: ``Ordered((5, 3))`` is five vectors of three
        numbers.

    Notes
    -----
    :math:`x_k = z_1 + \sum_{j=2}^{k} e^{z_j}`, with the volume element :math:`\prod_{j=2}^{K} e^{z_j}`.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import sample
    >>> from sk_sgmcmc.samplers import NUTS
    >>> from sk_sgmcmc.targets import Ordered
    >>> def order_statistics(x):
    ...     return -0.5 * (x**2).sum()
    >>> run = {
    ...     "sampler": NUTS(target_accept=0.95),
    ...     "n_chains": 2,
    ...     "random_state": 0,
    ... }
    >>> draws = sample(
    ...     order_statistics, parameters={"x": Ordered(3)}, **run
    ... ).samples_["x"]
    >>> bool(np.all(np.diff(draws) > 0)), draws.shape
    (True, (2, 1000, 3))
    """

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        super().__init__(shape)
        if not self.shape:
            raise ValueError("Ordered(()): pass the number of increasing numbers, such as Ordered(3).")


_SETS = (Positive, Simplex, Ordered)


def _kind_of(part):
    """The code of a constraint in the kernels. A table at module level would import the kernels with this module."""
    return {Positive: named.POSITIVE, Simplex: named.SIMPLEX, Ordered: named.ORDERED}.get(type(part), named.FREE)


class Layout:
    """Positions of the parameters in the vector of free coordinates and in the vector of constrained numbers.

    Parameters
    ----------
    parameters : dict of str to tuple, int, Positive, Simplex or Ordered
    """

    def __init__(self, parameters):
        if not isinstance(parameters, dict) or not parameters:
            raise ValueError(
                f'parameters={parameters!r} must be a dict of names to shapes, such as {{"mu": (), "tau": Positive(), '
                '"eta": (8,)}.'
            )
        parts = []
        for name, part in parameters.items():
            if not (isinstance(name, str) and name.isidentifier()) or keyword.iskeyword(name) or name in RESERVED:
                raise ValueError(
                    f"parameters has the name {name!r}: give names of arguments, other than {', '.join(RESERVED)}."
                )
            if isinstance(part, np.ndarray):
                raise ValueError(f"parameters[{name!r}] is an array; give its shape, {part.shape}, and values in init.")
            if isinstance(part, type) and part in _SETS:
                raise ValueError(f"parameters[{name!r}] is a class; write {part.__name__}(...) with its shape.")
            kind = _kind_of(part)
            shape = _shape_of(part, f"parameters[{name!r}]={part!r}") if kind == named.FREE else part.shape
            width = shape[-1] if kind in (named.SIMPLEX, named.ORDERED) else 1
            parts.append((name, shape, kind, int(np.prod(shape)) // width, width))
        self.parts = tuple(parts)
        self.names = [part[0] for part in parts]
        self.table, self.n_free, self.n_numbers = named.table_of(self.parts)

    def blocks(self):
        """Name, shape, kind, copies and width of each parameter, and its slices of free coordinates and of numbers."""
        for part, (kind, lo, out, copies, width) in zip(self.parts, self.table.tolist(), strict=True):
            free = copies * (width - 1 if kind == named.SIMPLEX else width)
            yield (*part, slice(lo, lo + free), slice(out, out + copies * width))

    def labels(self):
        """A name for each free coordinate."""
        found = []
        for name, shape, kind, _, _, _free, _ in self.blocks():
            inner = (*shape[:-1], shape[-1] - 1) if kind == named.SIMPLEX else shape
            for index in np.ndindex(inner):
                found.append(_label(name, kind, index))
        return found

    def constrained(self, theta):
        """Convert free coordinates (..., n_free) to a dict of the parameters."""
        found, lead = {}, theta.shape[:-1]
        for name, shape, kind, copies, width, free, _ in self.blocks():
            value = theta[..., free]
            if kind == named.POSITIVE:
                value = np.exp(value)
            elif kind == named.SIMPLEX:
                value = inverse_ilr(value.reshape(*lead, copies, width - 1))
            elif kind == named.ORDERED:
                value = value.reshape(*lead, copies, width)
                value = np.concatenate([value[..., :1], np.exp(value[..., 1:])], axis=-1).cumsum(axis=-1)
            found[name] = value.reshape((*lead, *shape))
        return found

    def free(self, values):
        """Convert the dict ``init`` of parameters to free coordinates (n_free,), NaN for parameters not in it."""
        theta = np.full(self.n_free, np.nan)
        for name, _shape, kind, copies, width, free, _ in self.blocks():
            if name not in values:
                continue
            value = np.asarray(values[name], dtype=float)
            if not np.all(np.isfinite(value)):
                raise ValueError(f"init[{name!r}] holds NaN or infinity; give finite numbers, or leave it out.")
            if kind == named.POSITIVE:
                if not np.all(value > 0):
                    raise ValueError(f"init[{name!r}] holds {value.min():g}; give positive numbers.")
                value = np.log(value)
            elif kind == named.SIMPLEX:
                sums = value.sum(axis=-1)
                if not (np.all(value > 0) and np.allclose(sums, 1.0, atol=1e-6)):
                    raise ValueError(
                        f"init[{name!r}] must hold positive probabilities that sum to 1; they sum to {sums}."
                    )
                value = ilr(value.reshape(copies, width))
            elif kind == named.ORDERED:
                gaps = np.diff(value, axis=-1)
                if not np.all(gaps > 0):
                    raise ValueError(f"init[{name!r}] must increase along its last axis; got {value}.")
                value = np.concatenate([value[..., :1], np.log(gaps)], axis=-1)
            theta[free] = value.ravel()
        return theta


def _label(name, kind, index):
    """The name of a free coordinate."""
    at = f"[{', '.join(map(str, index))}]" if index else ""
    if kind == named.ORDERED and index[-1] > 0:
        before = f"[{', '.join(map(str, (*index[:-1], index[-1] - 1)))}]"
        return f"log({name}{at} - {name}{before})"
    of = {named.POSITIVE: "log({})", named.SIMPLEX: "logratio({})"}.get(kind, "{}")
    return of.format(name + at)


def _basis(width):
    """Orthonormal columns (width, width - 1) that are orthogonal to the vector of ones."""
    basis = np.zeros((width, width - 1))
    for k in range(width - 1):
        basis[: k + 1, k] = 1.0
        basis[k + 1, k] = -(k + 1.0)
        basis[:, k] /= np.sqrt((k + 1.0) * (k + 2.0))
    return basis


def inverse_ilr(z):
    """Convert isometric log-ratios to probabilities, along the last axis."""
    y = z @ _basis(z.shape[-1] + 1).T
    cells = np.exp(y - y.max(axis=-1, keepdims=True))
    return cells / cells.sum(axis=-1, keepdims=True)


def ilr(cells):
    """Convert probabilities to isometric log-ratios, along the last axis."""
    return np.log(cells) @ _basis(cells.shape[-1])
