"""A priori bounds of the errors of whole products: docs/specification/bounds.md, over arrays and rounded up.

The lemmas are those of `element_bounds`, which is tighter because it knows the single addends; these are never below
it:

1. The grid of an element is one power of two that divides all of its products and C, derived from the lowest bits of a
   row of A and a column of B, not of each product.
2. All addends of a step count as truncated, unless the grid shows that none is.

Numbers are float64s that are never below the exact value. A matrix product of magnitudes is off by less than 2^-40 of
itself (of at most 2^12 addends, each rounded to 2^-53), and is enlarged by that. What a step adds to the magnitude is
rounded up likewise, as exponents are taken of it. Errors are sums of at most 2^22 terms that are powers of two or
products of these numbers; they are enlarged by 2^-30 once at the end. A product of f64 may underflow: then 2^-1074
covers what is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from .._arrays import Array
from ..arithmetic import FloatChains, FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, fused_steps
from ..formats import FORMATS, FloatFormat, floating, integer
from ..products import Product
from ..sparsity import sparse_a
from .chain_of_element import along_k

Float64 = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

_F32 = floating("f32")
_NOTHING = -8192  # the exponent of a zero; twice it is an int16
_ELEMENTS = 1 << 16  # of D at once, so that what is computed stays in cache
_UP = 1 + 2.0**-51
_TINY = 2.0**-1074


def bounds(product: Product, matrix: int = 0, rows: slice = slice(None)) -> Float64:
    """Bound the magnitudes of the errors of some rows of one matrix of a product.

    Parameters
    ----------
    product : Product
    matrix : int
        Of the batch, which is flat.
    rows : slice

    Returns
    -------
    ndarray of float64
        `[rows, n]`; infinity where a result may be infinite or NaN, or an integer may wrap.
    """
    m, n = product.flat[1:]
    start, stop, _ = rows.indices(m)
    each = max(1, _ELEMENTS // max(1, n))
    made = [_Tile(product, matrix, slice(at, min(at + each, stop))).bounds() for at in range(start, stop, each)]
    return np.concatenate(made) if made else np.empty((0, n))


class _Sums(NamedTuple):
    """Of partial sums: errors and magnitudes that they cannot exceed, `[rows, n]`; and their format."""

    error: Float64
    reach: Float64
    fmt: FloatFormat
    bits: int


@dataclass(frozen=True, eq=False)
class _Tile:
    product: Product
    matrix: int
    rows: slice

    def bounds(self) -> Float64:
        """Bound the errors of the tile."""
        recipe, chain = self.product.chain.recipe, self.product.chain
        with np.errstate(all="ignore"):
            if isinstance(recipe.unit, IntegerSum | Popcount):
                return self._integers()
            c = floating(recipe.c)
            zeros = np.zeros_like(self._c)
            total = along_k(
                chain, _Sums(zeros, self._c, c, c.fraction_bits), self._nothing(recipe.d), self._instruction,
                lambda _, x, y: self._added(_F32, x, y),
            )  # fmt: skip
            grid = self._grid
            if self.product.alpha is not None:
                total, grid = self._scaled(total)
            if self.product.epilogue is not None:
                total = self._rounded(total, total.reach, floating(self.product.epilogue), grid=grid)
            return np.where(np.isnan(total.error), np.inf, total.error * (1 + 2.0**-30))

    # Operands

    @cached_property
    def _part(self) -> Any:
        chain = self.product.chain
        part = self.product.given.of(slice(self.matrix, self.matrix + 1))
        part = part.part(self.rows, slice(None), 0, chain.k, chain)
        return chain.padded(part, chain.whole) if chain.whole > chain.k else part

    @cached_property
    def _c(self) -> Float64:
        return _magnitudes(self.product.chain.recipe.c, self.product.c[self.matrix, self.rows])

    @cached_property
    def _a(self) -> Float64:
        """Magnitudes of A, `[rows, k]`, a sparse one spread to where it stands, with block scales."""
        return self._spread(_magnitudes(self.product.chain.recipe.a, self._part.a[0]), 0.0) * self._scale("a")

    @cached_property
    def _b(self) -> Float64:
        return _magnitudes(self.product.chain.recipe.b, self._part.b[0]) * self._scale("b")

    def _scale(self, operand: str) -> Float64:
        codes, name = getattr(self._part, f"scale_{operand}"), self.product.chain.recipe.scale
        if codes is None or name is None:
            return np.ones(())
        values = _magnitudes(name, codes[0])
        return np.repeat(values, self.product.chain.block, axis=1 if operand == "a" else 0)

    @cached_property
    def _nominals(self) -> tuple[Array, Array]:
        """Nominal exponents of A's elements, or of a group's scale, and of B's; `_NOTHING` of zeros."""
        recipe = self.product.chain.recipe
        found = []
        for operand, name, values in (("a", recipe.a, self._a), ("b", recipe.b, self._b)):
            scale = self._scale(operand)
            fmt = floating(recipe.convert or name)
            own = np.maximum(_exponents(values / scale), fmt.emin)
            if recipe.scale:
                of_scale = np.maximum(_exponents(scale), floating(recipe.scale).emin)
                own = of_scale if isinstance(recipe.unit, GroupedDotAdd) else own + of_scale
            found.append(np.where(values != 0, own, _NOTHING).astype(np.int16))
        return found[0], found[1]

    def _spread(self, x: Array, fill: float) -> Array:
        """Put stored elements of a sparse A where they stand."""
        chain, chosen = self.product.chain, self._part.chosen
        if chosen is None:
            return x
        first = np.arange(x.shape[-1]) // (chain.instruction.k // 2) * chain.instruction.k
        dense = np.full((len(x), chain.whole), fill, x.dtype)
        np.put_along_axis(dense, first + chosen[0].astype(np.intp), x, -1)
        return dense

    @cached_property
    def _grid(self) -> Int:
        """Rule 1."""
        of_a, of_b = _lowest(self._a).min(axis=1, initial=1 << 14), _lowest(self._b).min(axis=0, initial=1 << 14)
        return cast(Int, np.minimum(of_a[:, None] + of_b, _lowest(self._c)))

    # Instructions

    @cached_property
    def _steps(self) -> list[Any]:
        """List the values of k of an instruction that each step uses; for a sparse A, the possible stored places."""
        chain, unit = self.product.chain, self.product.chain.recipe.unit
        if isinstance(unit, GroupedDotAdd):
            return [np.arange(chain.instruction.k)]
        stored = fused_steps(chain.recipe.order, cast(FusedDotAdd, unit).products, chain.instruction.k // chain.packed)
        if chain.packed == 1:
            return [np.array(step) for step in stored]
        law = sparse_a(chain.instruction).pattern
        return [np.unique(np.array(step)[:, None] // law.kept * law.width + np.arange(law.width)) for step in stored]

    def _instruction(self, number: int, total: _Sums) -> _Sums:
        recipe, k = self.product.chain.recipe, self.product.chain.instruction.k
        start, d = number * k, floating(recipe.d)
        match recipe.unit:
            case FusedDotAdd() | GroupedDotAdd():
                c = total
                total = self._nothing(recipe.d) if recipe.accumulate == "after" else total
                for step in self._steps:
                    total = self._step(recipe.unit, start + step, total, d)
                return self._added(d, c, total) if recipe.accumulate == "after" else total
            case FmaChain():
                for i in range(start, start + k):
                    total = self._fma(total, i, d, recipe.unit.rounding)
            case FloatChains():
                for step in fused_steps("ascending", recipe.unit.length, k):
                    run = self._nothing("f32")
                    for i in step:
                        run = self._fma(run, start + i, _F32, "rn")
                    total = self._added(_F32, total, run)
                if d != _F32:
                    total = self._rounded(total, total.reach, d)
        return total

    def _nothing(self, name: str) -> _Sums:
        fmt, zeros = floating(name), np.zeros_like(self._c)
        return _Sums(zeros, zeros, fmt, fmt.fraction_bits)

    def _step(self, unit: FusedDotAdd | GroupedDotAdd, where: Array, total: _Sums, d: FloatFormat) -> _Sums:
        """Lemma 3."""
        a, b = self._a[:, where], self._b[where]
        products = a @ b * (1 + 2.0**-40)
        of_a, of_b = (x.take(where, axis=axis) for x, axis in zip(self._nominals, (1, 0), strict=True))
        packed = self.product.chain.packed
        apart = unit.group * packed if isinstance(unit, GroupedDotAdd) else 1
        if apart > 1:  # a group's nominal exponent is that of one of its members, and at least one member is nonzero
            of_a = of_a.reshape(len(of_a), -1, apart).max(axis=2)
            of_b = of_b.reshape(-1, apart, of_b.shape[-1]).max(axis=1)
        largest = np.full(total.reach.shape, unit.floor, np.int16)
        for x, y in zip(of_a.T, of_b, strict=True):
            np.maximum(largest, x[:, None] + y, out=largest)
        nominal = np.where(total.reach > 0, np.maximum(_exponents(total.reach), total.fmt.emin), _NOTHING)
        quantum = np.maximum(largest, nominal) - unit.fraction_bits
        reach = (total.reach + products) * _UP
        addends = (len(of_b) if apart > 1 else len(of_b) // packed) + 1
        cut = np.where(self._grid >= quantum, 0.0, np.minimum(addends * _power(quantum), reach))
        made = self._rounded(total, reach, d, unit.rounding, unit.result_bits)
        error = made.error + cut
        if total.bits > min(unit.result_bits, unit.fraction_bits):
            return made._replace(error=error)
        still = products == 0
        return made._replace(error=np.where(still, total.error, error), reach=np.where(still, total.reach, made.reach))

    def _fma(self, total: _Sums, i: int, fmt: FloatFormat, rounding: str) -> _Sums:
        """Lemma 4, of a product."""
        x, y = self._a[:, i, None], self._b[i]
        still = (x == 0) | (y == 0)
        made = self._rounded(total, (total.reach + x * y * _UP) * _UP + _TINY, fmt, rounding)
        return made._replace(
            error=np.where(still, total.error, made.error), reach=np.where(still, total.reach, made.reach)
        )

    def _added(self, fmt: FloatFormat, x: _Sums, y: _Sums) -> _Sums:
        """Lemma 4, of two sums."""
        both = x._replace(error=x.error + y.error)
        made = self._rounded(both, (x.reach + y.reach) * _UP, fmt)
        if x.fmt != fmt or y.fmt != fmt:
            return made
        still = (x.reach == 0) | (y.reach == 0)
        return made._replace(
            error=np.where(still, both.error, made.error), reach=np.where(still, x.reach + y.reach, made.reach)
        )

    def _rounded(
        self, before: _Sums, reach: Float64, fmt: FloatFormat, rounding: str = "rn", bits: int | None = None,
        grid: Int | None = None,
    ) -> _Sums:  # fmt: skip
        """Lemma 2."""
        bits = fmt.fraction_bits if bits is None else bits
        grid = self._grid if grid is None else grid
        last = np.maximum(_exponents(reach), fmt.emin) - bits
        off = _power(last - (rounding == "rn"))
        off = np.where((last <= grid) | (reach == 0), 0.0, off)
        error = np.where(reach <= fmt.decode(np.array(fmt.max_code)), before.error + off, np.inf)
        return _Sums(error, reach if rounding == "rz" else (reach + off) * _UP, fmt, bits)

    def _scaled(self, total: _Sums) -> tuple[_Sums, Int]:
        """Lemma 5."""
        product = self.product
        exact = np.ones(())
        for x in product.tensor_scales:
            exact = exact * np.broadcast_to(x, product.shape[:-2]).reshape(-1)[self.matrix].astype(np.float64)
        used = abs(cast(Array, product.alpha)[self.matrix])
        exact = abs(exact)
        grid = self._grid + _lowest(used)
        before = total._replace(error=total.error * exact + total.reach * abs(exact - used))
        return self._rounded(before, total.reach * used * _UP, total.fmt, grid=grid), grid

    def _integers(self) -> Float64:
        """Lemma 6."""
        chain = self.product.chain
        unit, d = chain.recipe.unit, integer(chain.recipe.d)
        error, reach = np.zeros_like(self._c), self._c
        for start in range(0, chain.whole, chain.instruction.k):
            where = slice(start, start + chain.instruction.k)
            if isinstance(unit, Popcount):
                reach = reach + self._a[:, where].sum(axis=1)[:, None] + self._b[where].sum(axis=0)
            else:
                reach = reach + self._a[:, where] @ self._b[where]  # integers below 2^53
            over = np.maximum(reach - d.greatest, 0.0)
            if not (isinstance(unit, IntegerSum) and unit.saturate):
                over = np.where(over > 0, np.inf, 0.0)
            error, reach = error + over, np.minimum(reach, -d.least)
        return error


def _magnitudes(name: str, codes: Array) -> Float64:
    return np.abs(FORMATS[name].decode(codes).astype(np.float64, copy=False))


def _exponents(x: Float64) -> Int:
    """Exponents of leading bits; of zeros and subnormal float64s less than that of any number."""
    return (x.view(np.int64) >> 52) - 1023


def _power(exponent: Int) -> Float64:
    """Powers of two; those below the range of float64 are its least number."""
    if exponent.min(initial=0) < -1022:
        return np.ldexp(1.0, np.maximum(exponent, -1074))
    return ((exponent + 1023) << 52).view(np.float64)


def _lowest(x: Float64) -> Int:
    """Exponents of the lowest bits that are set, large ones of zero and of what is not finite."""
    fraction, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    significand = (fraction * 2.0**53).astype(np.int64)
    low = np.frexp((significand & -significand).astype(np.float64))[1] - 1
    return np.where(significand != 0, exponent - 53 + low, 1 << 14).astype(np.int64)
