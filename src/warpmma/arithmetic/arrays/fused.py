"""The fused and the grouped dot-add over arrays: rules 1 to 13 of `reference`, in float64.

Why float64 is exact here. Every operand value is a float64. A product has at most 24 significant bits (32 with the
significands of two scales) and lies in 2^±600, and scaling it by a power of two keeps it there and exact: float64 has
53 bits and reaches from 2^-1022 to 2^1023. The scaled addend is below 2^(F + 2) in magnitude, since a nominal
exponent is at most one below that of the value; `trunc` cuts it at the binary point, which is rule 5. At most 65 such
integers, with F at most 35, stay below 2^44 < 2^53, so their sum is exact in any order, NumPy's pairwise addition
included. A group of 16 e2m1 products is an integer of at most 12 bits over 4; with its scales it has at most 20
bits and is below 2^(F + 12), and five of them are below 2^50. Infinities and NaN follow rule 8 because IEEE addition
and multiplication do.

Products are taken in runs of k that fit in cache: both passes over a sum of products may cut k anywhere, since a
maximum and an exact sum do not depend on it. So temporaries stay small for any number of outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import cast

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, frozen
from ..._rounding import Float64, to_grid
from ...formats import FloatFormat, floating
from ..recipes import FusedDotAdd, GroupedDotAdd, Recipe, steps

# Products in flight: as float64 they take 1 MiB, which second-level caches hold.
_RUN = 1 << 17


def take_rows(b: Array, chosen: Array | None) -> Array:
    """Choose rows of `b`, `[k, ..., n]`, or take all of it.

    `chosen` has the shape `[k of a, ..., 1]`, and the dimensions between broadcast: all n values of a row go together,
    which costs a fraction of choosing each.
    """
    if chosen is None:
        return b
    between = b.shape[1:-1]
    each = int(np.prod(between))
    index = chosen[..., 0] * each + np.arange(each).reshape(between)
    return b.reshape(-1, b.shape[-1]).take(index, axis=0)


class Pairs:
    """Rows of A and of B that are multiplied in one step, under several aspects (values, exponents).

    `part` says which of A's rows these `k` are; of B's too, unless `chosen` says which row of B each row of A is
    multiplied by, `[k of a, ..., 1]` (see `take_rows`). `a` and `b` have an array `[k, ...]` for each aspect; what
    follows k broadcasts.
    """

    def __init__(
        self, k: int, part: slice | list[int], a: tuple[Array, ...], b: tuple[Array, ...], chosen: Array | None = None
    ) -> None:
        self._a = tuple(x[part] for x in a)
        self._b = tuple(x[part] for x in b) if chosen is None else b
        self._chosen = None if chosen is None else chosen[part]
        shape = b[0].shape[1:] if chosen is None else np.broadcast_shapes(b[0].shape[1:], chosen.shape[1:])
        outputs = int(np.prod(np.broadcast_shapes(a[0].shape[1:], shape)))
        size = max(1, _RUN // max(1, outputs))
        self._runs = [slice(i, i + size) for i in range(0, k, size)]

    def runs(self, aspect: int) -> Iterator[tuple[Array, Array]]:
        """Yield rows of A and the rows of B that they meet, run by run."""
        a, b = self._a[aspect], self._b[aspect]
        for run in self._runs:
            yield a[run], b[run] if self._chosen is None else take_rows(b, self._chosen[run])


_F64 = floating("f64")

# A zero does not affect the largest exponent: this is below every floor, even as one of four summands, and four of it
# fit 16 bits.
_NO_EXPONENT = -8192


def fused_dot_add(
    recipe: Recipe, a: Array, b: Array, c: Array, chosen: Array | None = None,
    scale_a: Array | None = None, scale_b: Array | None = None,
) -> Array:  # fmt: skip
    """Compute D for arrays of dot products, as `dispatch.compute` does; `chosen` is intp, `[k of a, ..., 1]`."""
    unit = cast(FusedDotAdd, recipe.unit)
    d = floating(recipe.d)
    a_values, a_exponents = _operand(recipe, recipe.a, a, scale_a)
    b_values, b_exponents = _operand(recipe, recipe.b, b, scale_b)
    c_values = floating(recipe.c).decode(c)
    after = recipe.accumulate == "after"
    accumulator, least = (np.zeros(()), d.emin) if after else (c_values, floating(recipe.c).emin)
    codes: Array = np.zeros((), d.code_dtype)
    for number, step in enumerate(steps(recipe.order, unit.products, len(a))):
        if number:
            accumulator, least = d.decode(codes), d.emin
        part = _slice(step)
        pairs = Pairs(len(step), part, (a_values, a_exponents), (b_values, b_exponents), chosen)
        codes = _step(unit, d, pairs, accumulator, least)
    return ieee_add(d, c_values, d.decode(codes)) if after else codes


def grouped_dot_add(
    recipe: Recipe, a: Array, b: Array, c: Array, chosen: Array | None = None,
    scale_a: Array | None = None, scale_b: Array | None = None,
) -> Array:  # fmt: skip
    """Compute D by groups (rule 13); parameters and result as for `fused_dot_add`, with a `GroupedDotAdd`."""
    unit = cast(GroupedDotAdd, recipe.unit)
    scale_format = floating(cast(str, recipe.scale))
    a_values, b_values = floating(recipe.a).decode(a), floating(recipe.b).decode(b)
    scales = [scale_format.decode(s) for s in (cast(Array, scale_a), cast(Array, scale_b))]
    exponents = [nominal_exponents(s, scale_format.emin) for s in scales]
    # The sum of exponents is below every floor where a scale is zero; where all products are, it is put there.
    factor, nominal = scales[0] * scales[1], exponents[0] + exponents[1]
    addends, says = [], []
    for first in range(0, len(a), unit.group):
        members = slice(first, first + unit.group)
        runs = Pairs(unit.group, members, (a_values,), (b_values,), chosen).runs(0)
        sums, alive = zip(*((p.sum(axis=0), p.any(axis=0)) for p in (x * y for x, y in runs)), strict=True)
        block = first * len(factor) // len(a)
        addends.append(sum(sums) * factor[block])
        says.append(np.where(np.any(alive, axis=0), nominal[block], np.int16(_NO_EXPONENT)))
    c_format = floating(recipe.c)
    c_values = c_format.decode(c)
    largest = np.maximum(nominal_exponents(c_values, c_format.emin), unit.floor)
    for exponent in says:
        largest = np.maximum(largest, exponent)
    largest = largest.astype(np.int64)
    scale = _power(unit.fraction_bits - largest)
    total = np.trunc(c_values * scale)
    for addend in addends:
        total = total + np.trunc(addend * scale)
    return _result(unit, floating(recipe.d), total * _power(largest - unit.fraction_bits))


def ieee_add(fmt: FloatFormat, x: Float64, y: Float64) -> Array:
    """Add values of a format and return the code of the sum, to nearest even.

    Exact for f16, whose sums have at most 42 bits. For f32 the sum is rounded to 53 bits and then to 24, which is the
    same as once: 53 >= 2 * 24 + 2 (Figueroa, "When is double rounding innocuous?", 1995), and a subnormal sum is
    exact.
    """
    return fmt.encode(x + y, "rn", overflow="infinity")


def _slice(step: Sequence[int]) -> slice | list[int]:
    """Return a run of indices as a slice, which copies nothing."""
    run = slice(step[0], step[-1] + 1)
    return run if len(step) == run.stop - run.start else list(step)


def _operand(recipe: Recipe, name: str, codes: Array, scales: Array | None) -> tuple[Float64, Array]:
    """Return values and nominal exponents of codes, scaled; the exponents of the format that they are converted to."""
    fmt = floating(name)
    values = fmt.decode(codes)
    if fmt.bits > 16:
        exponents = nominal_exponents(values, fmt.emin)
    else:
        exponents = _exponent_table(name, recipe.convert or name).take(codes.astype(np.intp))
    if scales is not None:
        scale_format = floating(cast(str, recipe.scale))
        each = len(codes) // len(scales)
        scale_values = scale_format.decode(scales)
        values = values * np.repeat(scale_values, each, axis=0)
        exponents = exponents + np.repeat(nominal_exponents(scale_values, scale_format.emin), each, axis=0)
    return values, exponents


@cache
def _exponent_table(name: str, converted: str) -> npt.NDArray[np.int16]:
    """Nominal exponent of every code of a format of at most 16 bits."""
    codes = np.arange(1 << floating(name).bits)
    return frozen(nominal_exponents(floating(name).decode(codes), floating(converted).emin))


def nominal_exponents(values: Float64, emin: int) -> npt.NDArray[np.int16]:
    """Exponents of values, at least `emin`; of zero, one that never is the largest; of infinity and NaN, any."""
    bits = values.view(np.int64)
    field = bits >> _F64.fraction_bits & (1 << _F64.exponent_bits) - 1
    # Any exponent will do for infinities and NaN; 128 keeps the scale that follows from it finite.
    exponents = np.clip(field - _F64.bias, emin, 128).astype(np.int16)
    return np.where(bits << 1 == 0, np.int16(_NO_EXPONENT), exponents)


def _step(unit: FusedDotAdd, d: FloatFormat, pairs: Pairs, accumulator: Float64, least: int) -> Array:
    """One step: rules 2 to 9."""
    largest = np.maximum(nominal_exponents(accumulator, least), unit.floor)
    for a, b in pairs.runs(1):
        largest = np.maximum(largest, (a + b).max(axis=0))
    largest = largest.astype(np.int64)
    scale = _power(unit.fraction_bits - largest)
    total = np.trunc(accumulator * scale)
    for a, b in pairs.runs(0):
        addends = a * b
        addends *= scale
        total += np.trunc(addends, out=addends).sum(axis=0)
    total *= _power(largest - unit.fraction_bits)
    return _result(unit, d, total)


def _result(unit: FusedDotAdd | GroupedDotAdd, d: FloatFormat, total: Float64) -> Array:
    """Rules 7 to 9."""
    infinity, nan = cast(int, d.inf_code), cast(int, d.nan_code)
    codes = to_grid(np.abs(total), unit.result_bits, d.emin, unit.rounding) << (d.fraction_bits - unit.result_bits)
    codes = np.minimum(codes, infinity) + ((total < 0) & (codes != 0)) * d.sign_bit
    return np.where(np.isnan(total), nan, codes).astype(d.code_dtype)


def _power(exponent: npt.NDArray[np.int64]) -> Float64:
    """2 to an exponent between -1022 and 1023."""
    return ((exponent + _F64.bias) << _F64.fraction_bits).view(np.float64)
