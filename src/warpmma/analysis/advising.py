"""Advice on tolerances for one product: wrong outputs are computed, compared by a tolerance, and one is recommended.

A wrong output is what a kernel with a certain fault would produce from the same inputs, bit for bit.

Faults are rows: a name, what the faulty kernel does, and a function from the product and its right output to the wrong
one, or to None where these inputs or this instruction cannot show it. Lanes and tiles are those of the instruction.

1. Where an operand is read wrongly, the product is computed again from what the kernel would have read.
2. Where D is written wrongly, elements of the right output change their places, or are zero, as memory was before.
3. A product of another accumulator is one of the instruction that has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._arrays import Array, non_negative
from .._progress import Progressing, Watched
from ..arithmetic import recipe_of
from ..errors import OperandError
from ..formats import FORMATS, FloatFormat, floating
from ..isa import find
from ..layouts import Layout
from ..products import FloatFma, Product, multiply, prepare
from .tolerances import Advice, judge, recommend

Float64 = npt.NDArray[np.float64]


class Fault(NamedTuple):
    """A fault of a kernel: its name, its meaning, and the function that makes its output.

    The function takes a product and its right output, and returns the wrong one, `[batch, m, n]`, or None if this
    product cannot have it.
    """

    name: str
    meaning: str
    make: Callable[[Product, Float64], Float64 | None]


def right_output(product: Product) -> Float64:
    """Values of D."""
    return _decoded(product, multiply(product))


def _decoded(product: Product, codes: Array) -> Float64:
    return product.format.decode(codes).astype(np.float64, copy=False)


# Of D


def _zero(product: Product, right: Float64) -> Float64:
    return np.zeros_like(right)


def _lanes_of_d(product: Product, right: Float64) -> Float64 | None:
    if isinstance(product.chain.instruction, FloatFma):  # one thread computes each element
        return None
    wrong = right.copy()
    layout = product.chain.instruction.layout("D")
    return wrong if len(wrong) and _swap(wrong[0], layout, layout.shape, first=True) else None


def _last_row(product: Product, right: Float64) -> Float64 | None:
    if right.shape[1] < 2:
        return None
    wrong = right.copy()
    wrong[:, -1] = 0
    return wrong


def _swap(matrix: Array, layout: Layout, tile: tuple[int, ...], *, first: bool) -> bool:
    """Swap what lanes 0 and 1 hold, in the first tile of a matrix or in all; return whether there was anything."""
    found = False
    for register in range(layout.registers):
        for one, other in zip(layout.holds(0, register), layout.holds(1, register), strict=True):
            (r, c), (s, d) = (one.row, one.column), (other.row, other.column)
            if one.matrix or max(r, s) >= matrix.shape[0] or max(c, d) >= matrix.shape[1]:
                continue
            height, width = (1, 1) if first else (matrix.shape[i] - max(x) for i, x in enumerate(((r, s), (c, d))))
            x, y = (
                matrix[slice(row, row + height, tile[-2]), slice(column, column + width, tile[-1])]
                for row, column in ((r, c), (s, d))
            )
            x[...], y[...] = y.copy(), x.copy()
            found = True
    return found


# Of operands


def _again(product: Product, **changed: Any) -> Float64:
    """Compute a product with other operands."""
    c = changed.pop("c", product.c)
    return _decoded(product, multiply(replace(product, given=product.given._replace(**changed), c=c)))


def _lanes_of_a(product: Product, right: Float64) -> Float64 | None:
    if isinstance(product.chain.instruction, FloatFma):
        return None
    a = product.given.a.copy()
    layout = product.chain.instruction.layout("A")
    swapped = [_swap(matrix, layout, layout.shape, first=False) for matrix in a]
    return _again(product, a=a) if any(swapped) else None


def _transposed(product: Product, right: Float64) -> Float64:
    b = product.given.b
    return _again(product, b=np.ascontiguousarray(b.reshape(len(b), b.shape[2], b.shape[1]).swapaxes(1, 2)))


def _steps(product: Product) -> list[slice]:
    """Cut k at instructions."""
    step = product.chain.instruction.k
    return [slice(start, min(start + step, product.chain.k)) for start in range(0, product.chain.k, step)]


def _without_last(product: Product, right: Float64) -> Float64 | None:
    steps = _steps(product)
    if len(steps) < 2:
        return None  # all of k: an output of C alone
    a, b = product.given.a.copy(), product.given.b.copy()
    packed = product.chain.packed
    a[..., steps[-1].start // packed :] = 0
    b[:, steps[-1]] = 0
    return _again(product, a=a, b=b)


def _stale(product: Product, right: Float64) -> Float64 | None:
    steps = _steps(product)
    if len(steps) < 2:
        return None
    a, packed = product.given.a.copy(), product.chain.packed
    last, before = (slice(x.start // packed, x.stop // packed) for x in (steps[-1], steps[-2]))
    a[..., last] = a[..., before.start : before.start + last.stop - last.start]
    return _again(product, a=a)


def _without_c(product: Product, right: Float64) -> Float64 | None:
    return _again(product, c=np.zeros_like(product.c)) if product.c.any() else None


def _other_scales(product: Product, right: Float64) -> Float64 | None:
    scales = product.given.scale_a
    return None if scales is None or scales.shape[-1] < 2 else _again(product, scale_a=np.roll(scales, 1, axis=-1))


def _no_scales(product: Product, right: Float64) -> Float64 | None:
    scales, name = product.given.scale_a, product.chain.recipe.scale
    if scales is None:
        return None
    return _again(product, scale_a=np.full_like(scales, int(floating(str(name)).encode(1.0))))


def _other_metadata(product: Product, right: Float64) -> Float64 | None:
    chosen = product.given.chosen
    return None if chosen is None or chosen.shape[1] < 2 else _again(product, chosen=np.roll(chosen, 1, axis=1))


# Of the accumulator


def _half(product: Product, right: Float64) -> Float64 | None:
    chain = product.chain
    i = chain.instruction
    if isinstance(i, FloatFma) or i.d_type != "f32":
        return None
    found = find(
        a=i.a_type, b=i.b_type, c="f16", d="f16", m=i.m, n=i.n, k=i.k, sparse=i.sparse, kind=i.kind,
        block_scale=i.block_scale, target=product.target,
    )  # fmt: skip
    same = [x for x in found if isinstance(x, type(i)) and x.stype == i.stype]
    if not same:
        return None
    other = replace(chain, instruction=same[0], recipe=recipe_of(same[0], product.target), promote=0,
                    slices=(0, chain.whole))  # fmt: skip
    c = FORMATS["f16"].encode(floating(i.c_type).decode(product.c))
    half = replace(product, chain=other, c=c, format=FORMATS["f16"], epilogue=None)
    return FORMATS["f16"].decode(multiply(half))


def _unpromoted(product: Product, right: Float64) -> Float64 | None:
    if not product.chain.promote:
        return None
    return _decoded(product, multiply(replace(product, chain=replace(product.chain, promote=0))))


def _narrowed(product: Product, right: Float64) -> Float64 | None:
    i = product.chain.instruction
    fmt = FORMATS[i.a_type]
    if i.a_type not in ("f16", "tf32") or not isinstance(fmt, FloatFormat):
        return None
    narrow = floating("bf16")

    def rounded(codes: Array) -> Array:
        return fmt.encode(narrow.decode(narrow.encode(fmt.decode(codes))), overflow="saturate")

    return _again(product, a=rounded(product.given.a), b=rounded(product.given.b))


FAULTS = (
    Fault("all zero", "wrote nothing to D", _zero),
    Fault("last row zero", "did not write the last row of D", _last_row),
    Fault("lanes of D", "lanes 0 and 1 swapped fragments, in one tile", _lanes_of_d),
    Fault("lanes of A", "lanes 0 and 1 swapped fragments, in all tiles", _lanes_of_a),
    Fault("order of B", "read B by rows in place of columns", _transposed),
    Fault("last k-step missing", "ended the loop along k an instruction early", _without_last),
    Fault("last k-step stale", "fed the last instruction A of the one before", _stale),
    Fault("C missing", "began the accumulator at zero", _without_c),
    Fault("scales shifted", "took A's scales of the block before", _other_scales),
    Fault("scales missing", "took A's scales as 1", _no_scales),
    Fault("metadata shifted", "took the metadata of the row above", _other_metadata),
    Fault("f16 accumulator", "kept sums in f16 in place of f32", _half),
    Fault("no promotion", "did not promote partial sums to f32", _unpromoted),
    Fault("bf16 operands", "rounded A and B to bf16 before", _narrowed),
)


def advise(
    operands: tuple[Any, Any, Any], options: Mapping[str, Any], name: str, *, expected: Float64,
    results: Mapping[str, Float64], bounds: Float64 | None, rtol: float | None, atol: float | None, progress: Watched,
) -> Advice:  # fmt: skip
    """Judge right and wrong outputs of a product; `operands` and `options` are those of `matmul`.

    `results` are right outputs by name, that of this product among them; `expected` exact results, rounded; `bounds`
    those of the errors of all right outputs.
    """
    rtol, atol = _checked(rtol, atol)
    product = prepare(*operands, **options)
    right = right_output(product).reshape(expected.shape)
    counts = np.isfinite(expected)
    true = expected[counts]
    judged = [
        judge(f"right: {each}", "all as it should be", output[counts], true, differing=0, right=True, rtol=rtol,
              atol=atol)
        for each, output in results.items()
    ]  # fmt: skip
    faulty: dict[str, Float64] = {}
    with Progressing(progress, "faults") as told:
        for done, fault in enumerate(FAULTS, 1):
            if (wrong := fault.make(product, right.reshape(product.flat))) is not None:
                output = wrong.reshape(expected.shape)
                differing = int((~((output == right) | (np.isnan(output) & np.isnan(right))))[counts].sum())
                judged.append(judge(fault.name, fault.meaning, output[counts], true, differing=differing, right=False,
                                    rtol=rtol, atol=atol))  # fmt: skip
                if differing:
                    faulty[fault.name] = output[counts]
            told(done, len(FAULTS))
    needs = [("measured", 2 * np.max([np.abs(output[counts] - true) for output in results.values()], axis=0))]
    if bounds is not None:
        needs.insert(0, ("bound", bounds[counts]))
    recommended, reaches = recommend(true, faulty, needs)
    size = np.abs(true)
    return Advice(
        product=name, rtol=rtol, atol=atol, recommended=recommended,
        judged=tuple(replace(x, reach=reaches.get(x.name, x.reach)) for x in judged),
        largest=float(size.max(initial=0.0)), least=float(size.min(initial=math.inf)) if size.size else 0.0,
    )  # fmt: skip


def _checked(rtol: float | None, atol: float | None) -> tuple[float | None, float | None]:
    """Check a tolerance: two numbers, or none."""
    numbers = [None if x is None else non_negative(name, x) for name, x in (("rtol", rtol), ("atol", atol))]
    if (rtol is None) != (atol is None):
        given, lacking = ("atol", "rtol") if rtol is None else ("rtol", "atol")
        raise OperandError(f"{given} is given without {lacking}; expected both, such as rtol=1e-3, atol=1e-5")
    return numbers[0], numbers[1]
