"""A draw from many weights, computed in vectors of 16.

The weights are in a table whose rows are padded to whole vectors. A row is treated as a matrix with 16 columns, whose
running sums down the columns take one vector addition for 16 weights. First a column is drawn by the sums of the
columns, and then a weight within it. The compiler does not produce such short loops by itself, so they are written
instruction by instruction. All processors make the same operations, in wider or narrower vectors, so results are the
same bit for bit.
"""

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from .._jit import helper

LANES = 16
GROUP = 8 * LANES  # weights whose vectors are searched together
_ONE_BITS = 127.0 * 2.0**23  # the bits of 1.0, as an integer
_LINE = 512  # bits that are read from memory at once

_FLOAT, _INT = ir.FloatType(), ir.IntType(32)
_FLOATS, _INTS = ir.VectorType(_FLOAT, LANES), ir.VectorType(_INT, LANES)
_ZEROS = ir.Constant(_FLOATS, [0.0] * LANES)
# Lane that is added to each lane of a running sum, in four steps; 16 stands for zero.
_SCAN = (
    (16, 0, 1, 2, 16, 4, 5, 6, 16, 8, 9, 10, 16, 12, 13, 14),
    (16, 16, 0, 1, 16, 16, 4, 5, 16, 16, 8, 9, 16, 16, 12, 13),
    (16, 16, 16, 16, 3, 3, 3, 3, 16, 16, 16, 16, 11, 11, 11, 11),
    (16, 16, 16, 16, 16, 16, 16, 16, 7, 7, 7, 7, 7, 7, 7, 7),
)


@helper
def shift_of(power):
    """The argument ``shift`` of `raised` and `weigh_heated` for this power, for which 1 is mapped to 1."""
    return np.float32((1.0 - power) * _ONE_BITS)


@helper
def raised(x, power, shift):
    """Approximation of ``x``^``power`` for float32 ``x`` >= 0 and a power below 1.

    The bits of a float, as an integer, are approximately a linear function of its logarithm. A linear map of the bits
    therefore approximates a power.
    """
    bits = np.float32(np.float32(x).view(np.int32))
    return np.int32(bits * power + shift).view(np.float32)


def padded(n):
    """The smallest width of a row for ``n`` weights: a multiple of 16."""
    return -(-n // LANES) * LANES


def _array(context, builder, signature, args, i):
    return context.make_array(signature.args[i])(context, builder, args[i])


def _width(builder, array):
    return cgutils.unpack_tuple(builder, array.shape)[1]


def _vector(builder, array, i, kind):
    """Pointer to the vector that begins at element i."""
    return builder.bitcast(builder.gep(array.data, [i]), kind.as_pointer())


def _repeated(builder, x, kind):
    """A vector whose 16 entries are x."""
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, x, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(_INTS, [0] * LANES))


def _loop(builder, first, last, step, *values):
    """Begin a loop that runs at least once; returns its counter, its carried values, and a function that ends it."""
    before, body = builder.block, builder.append_basic_block()
    builder.branch(body)
    builder.position_at_end(body)
    counter = builder.phi(last.type)
    counter.add_incoming(ir.Constant(last.type, first), before)
    carried = [builder.phi(value.type) for value in values]
    for phi, value in zip(carried, values, strict=True):
        phi.add_incoming(value, before)

    def again(*values):
        following = builder.add(counter, ir.Constant(last.type, step))
        after = builder.append_basic_block()
        counter.add_incoming(following, builder.block)
        for phi, value in zip(carried, values, strict=True):
            phi.add_incoming(value, builder.block)
        builder.cbranch(builder.icmp_signed("<", following, last), body, after)
        builder.position_at_end(after)

    return counter, carried, again


@intrinsic
def prefetch_row(context, table, row):
    """Prefetch a row of a table that is needed soon."""

    def generate(target, builder, signature, args):
        table = _array(target, builder, signature, args, 0)
        width = _width(builder, table)
        start = builder.mul(args[1], width)

        def fetch(k):
            place = builder.gep(table.data, [builder.add(start, k)])
            place = builder.bitcast(place, ir.IntType(8).as_pointer())
            kind = ir.FunctionType(ir.VoidType(), [place.type, _INT, _INT, _INT])
            prefetch = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
            read, keep, data = (ir.Constant(_INT, flag) for flag in (0, 3, 1))
            builder.call(prefetch, [place, read, keep, data])

        k, _, again = _loop(builder, 0, width, _LINE // signature.args[0].dtype.bitwidth)
        fetch(k)
        again()
        fetch(builder.sub(width, ir.Constant(width.type, 1)))
        return target.get_dummy_value()

    return types.void(table, types.int64), generate


def _numbers(builder, counts, place, dtype):
    """The vector of a table that begins at ``place``, as float32."""
    bits = dtype.bitwidth
    kind = ir.VectorType(ir.DoubleType() if isinstance(dtype, types.Float) else ir.IntType(bits), LANES)
    n = builder.load(_vector(builder, counts, place, kind), align=bits // 8)
    if isinstance(dtype, types.Float):
        return builder.fptrunc(n, _FLOATS)
    return builder.sitofp(builder.zext(n, _INTS) if bits < 32 else n, _FLOATS)


def _weighing(context, builder, signature, args, prior_at, first_output, power=lambda weights, k: weights):
    """Code of all functions that weigh.

    ``prior_at`` maps the position in a row to the vector that is added to the counts. ``first_output`` is the index of
    the argument ``running``. ``power`` transforms the vector of weights at a position.
    """
    places = 0, 2, first_output, first_output + 1
    counts, factor, running, ends = (_array(context, builder, signature, args, i) for i in places)
    width = _width(builder, counts)
    start = builder.mul(args[1], width)
    left_out = _repeated(builder, builder.trunc(args[first_output - 1], _INT), _INTS)
    numbers = ir.Constant(_INTS, list(range(LANES)))
    k, (sums, number), again = _loop(builder, 0, width, LANES, _ZEROS, numbers)
    n = _numbers(builder, counts, builder.add(start, k), signature.args[0].dtype)
    c = builder.load(_vector(builder, factor, k, _FLOATS), align=4)
    weights = power(builder.fmul(c, builder.fadd(n, prior_at(k))), k)
    weights = builder.select(builder.icmp_signed("==", number, left_out), _ZEROS, weights)
    total = builder.fadd(sums, weights)
    builder.store(total, _vector(builder, running, k, _FLOATS), align=4)
    again(total, builder.add(number, ir.Constant(_INTS, [LANES] * LANES)))
    for step in _SCAN:
        moved = builder.shuffle_vector(total, _ZEROS, ir.Constant(_INTS, step))
        total = builder.fadd(total, moved)
    zero = ir.Constant(width.type, 0)
    builder.store(total, _vector(builder, ends, zero, _FLOATS), align=4)
    return builder.extract_element(total, ir.Constant(_INT, LANES - 1))


def _row_of(target, builder, signature, args, i):
    """Code that maps a position to the vector there, in row ``args[4]`` of the table ``args[i]``."""
    table = _array(target, builder, signature, args, i)
    start = builder.mul(args[4], _width(builder, table))
    return lambda k: builder.load(_vector(builder, table, builder.add(start, k), _FLOATS), align=4)


@intrinsic
def weigh(context, counts, row, factor, beta, left_out, running, ends):
    """Sum of the weights factor (counts[row] + beta) without the weight of index ``left_out``.

    Parameters
    ----------
    counts : (n_rows, width) int32, uint16 or float64, ``width`` a multiple of 16
    factor : (width,) float32, zero beyond the last weight
    beta : float32
    running : (width,) float32 or longer, set to the running sums down each column
    ends : (16,) float32, set to the running sums of the sums of the columns
    """

    def generate(target, builder, signature, args):
        beta = _repeated(builder, args[3], _FLOATS)
        return _weighing(target, builder, signature, args, lambda k: beta, 5)

    return types.float32(counts, types.int64, factor, types.float32, types.int64, running, ends), generate


@intrinsic
def weigh_heated(context, counts, row, factor, beta, left_out, running, ends, power, shift):
    """`weigh` with every weight `raised` to ``power``; ``shift`` is ``shift_of(power)``.

    Beyond the last weight, this turns 0 into a positive number, which is below 1e-25 for powers above 2/3.
    """

    def generate(target, builder, signature, args):
        beta, power, shift = (_repeated(builder, args[i], _FLOATS) for i in (3, 7, 8))

        def heated(weights, k):
            bits = builder.sitofp(builder.bitcast(weights, _INTS), _FLOATS)
            return builder.bitcast(builder.fptosi(builder.fadd(builder.fmul(bits, power), shift), _INTS), _FLOATS)

        return _weighing(target, builder, signature, args, lambda k: beta, 5, heated)

    signature = types.float32(
        counts, types.int64, factor, types.float32, types.int64, running, ends, types.float32, types.float32
    )
    return signature, generate


@intrinsic
def weigh_under(context, counts, row, factor, prior, row_of_prior, left_out, running, ends):
    """`weigh` with a row of ``prior``, (n_rows_of_prior, width) float32, in place of one number."""

    def generate(target, builder, signature, args):
        return _weighing(target, builder, signature, args, _row_of(target, builder, signature, args, 3), 6)

    return types.float32(counts, types.int64, factor, prior, types.int64, types.int64, running, ends), generate


@intrinsic
def weigh_scaled(context, counts, row, factor, prior, row_of_prior, scale, left_out, running, ends):
    """`weigh_under` with every weight multiplied by its entry of row ``row_of_prior`` of ``scale``."""

    def generate(target, builder, signature, args):
        prior_at = _row_of(target, builder, signature, args, 3)
        scale_at = _row_of(target, builder, signature, args, 5)
        return _weighing(
            target, builder, signature, args, prior_at, 7, lambda weights, k: builder.fmul(weights, scale_at(k))
        )

    signature = types.float32(counts, types.int64, factor, prior, types.int64, scale, types.int64, running, ends)
    return signature, generate


@intrinsic
def pick(context, running, ends, width, target, u):
    """Index of a weight, drawn from the outputs of `weigh` with ``target`` uniform on [0, sum) and ``u`` on [0, 1).

    The index is at least ``width`` if all weights are 0.

    Parameters
    ----------
    running : float32, infinite from ``width`` to a multiple of 128
    """

    def generate(context, builder, signature, args):
        running, ends = (_array(context, builder, signature, args, i) for i in (0, 1))
        width, target, u = args[2:]

        def number(x):
            return ir.Constant(width.type, x)

        def passed(place):
            """Whether a running sum is at most the target, 0 or 1."""
            sum_there = builder.load(builder.gep(running.data, [place]), align=4)
            return builder.zext(builder.fcmp_ordered("<=", sum_there, target), width.type)

        columns = builder.load(_vector(builder, ends, number(0), _FLOATS), align=4)
        below = builder.fcmp_ordered("<=", columns, _repeated(builder, target, _FLOATS))
        lane = builder.zext(builder.ctpop(builder.bitcast(below, ir.IntType(LANES))), width.type)
        lane = builder.select(builder.icmp_signed("<", lane, number(LANES - 1)), lane, number(LANES - 1))
        last = builder.add(builder.sub(width, number(LANES)), lane)
        target = builder.fmul(u, builder.load(builder.gep(running.data, [last]), align=4))
        # The running sum in the last vector of each group shows whether the weight lies beyond the group.
        before, search, within = builder.block, builder.append_basic_block(), builder.append_basic_block()
        several = builder.icmp_signed(">", width, number(GROUP))
        builder.cbranch(several, search, within)
        builder.position_at_end(search)
        k, (first,), again = _loop(builder, GROUP, width, GROUP, lane)
        place = builder.add(builder.add(k, lane), number(-LANES))
        found = builder.add(first, builder.mul(passed(place), number(GROUP)))
        again(found)
        after = builder.block
        builder.branch(within)
        builder.position_at_end(within)
        first = builder.phi(width.type)
        first.add_incoming(lane, before)
        first.add_incoming(found, after)
        # The comparisons are unrolled, because a loop would be slower.
        counted = [passed(builder.add(first, number(k))) for k in range(0, GROUP - LANES, LANES)]
        while len(counted) > 1:
            counted = [builder.add(*pair) for pair in zip(counted[::2], counted[1::2], strict=False)] + (
                counted[-1:] if len(counted) % 2 else []
            )
        return builder.add(first, builder.mul(counted[0], number(LANES)))

    return types.int64(running, ends, types.int64, types.float32, types.float32), generate


def _prefetch_of_python(table, row):
    """The same as `prefetch_row` in Python, since intrinsics need the compiler."""


def _weigh_of_python(counts, row, factor, beta, left_out, running, ends, power=None, shift=None):
    """The same as `weigh`, or with a power as `weigh_heated`, in Python."""
    weights = factor * (counts[row].astype(np.float32) + beta)
    if power is not None:
        weights = (weights.view(np.int32).astype(np.float32) * power + shift).astype(np.int32).view(np.float32)
    return _summed_of_python(weights, left_out, running, ends)


def _summed_of_python(weights, left_out, running, ends):
    weights[left_out] = 0.0
    weights = np.cumsum(weights.reshape(-1, LANES), axis=0, dtype=np.float32)
    running[: weights.size] = weights.ravel()
    total = weights[-1]
    for step in _SCAN:
        total = total + np.append(total, np.float32(0.0))[list(step)]
    ends[:] = total
    return total[-1]


def _weigh_under_of_python(counts, row, factor, prior, row_of_prior, left_out, running, ends):
    """The same as `weigh_under` in Python."""
    return _weigh_of_python(counts, row, factor, prior[row_of_prior], left_out, running, ends)


def _weigh_scaled_of_python(counts, row, factor, prior, row_of_prior, scale, left_out, running, ends):
    """The same as `weigh_scaled` in Python."""
    weights = factor * (counts[row].astype(np.float32) + prior[row_of_prior]) * scale[row_of_prior]
    return _summed_of_python(weights, left_out, running, ends)


def _pick_of_python(running, ends, width, target, u):
    """The same as `pick` in Python."""
    lane = min(int(np.sum(ends <= target)), LANES - 1)
    column = running[lane::LANES]
    target = u * column[width // LANES - 1]
    group = int(np.sum(column[7 : width // LANES - 1 : 8] <= target))
    return lane + GROUP * group + LANES * int(np.sum(column[8 * group : 8 * group + 7] <= target))


if config.DISABLE_JIT:
    prefetch_row, pick = _prefetch_of_python, _pick_of_python
    weigh = weigh_heated = _weigh_of_python
    weigh_under, weigh_scaled = _weigh_under_of_python, _weigh_scaled_of_python
