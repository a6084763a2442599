"""An a priori bound of the error of one element, in rational numbers, by the lemmas of docs/specification/bounds.md.

It depends on the magnitudes of products and of C, not on their signs. `product_bounds` does the same for whole
matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, cast

import numpy as np

from ..arithmetic import (
    FloatChains,
    FmaChain,
    FusedDotAdd,
    GroupedDotAdd,
    IntegerSum,
    Popcount,
    Recipe,
    as_fraction,
    exact_product,
    fused_steps,
)
from ..formats import FloatFormat, Number, floating, integer
from ..products import Chain
from .chain_of_element import ElementCodes, along_k
from .explanation import exponent_of

_F32 = floating("f32")


class _Unbounded(Exception):  # noqa: N818  # not an error: there is no bound
    """Something may be infinite, or wrap."""


class _Term(NamedTuple):
    """Magnitude of an addend that is not zero, its nominal exponent, and the largest power of two that divides it."""

    reach: Fraction
    nominal: int
    grid: int


class _Sum(NamedTuple):
    """Bounds of a sum: its maximum error, its maximum magnitude, and the exponent of a power of two that divides it.

    The grid is None where the sum is zero; `bits` are the fraction bits to which it was rounded.
    """

    error: Fraction
    reach: Fraction
    grid: int | None
    fmt: FloatFormat
    bits: int

    @property
    def nominal(self) -> int:
        return max(exponent_of(self.reach), self.fmt.emin)


def element_bound(element: ElementCodes) -> Fraction | None:
    """Bound the magnitude of an element's error; None where the result may be infinite, or an integer may wrap."""
    product, recipe = element.product, element.product.chain.recipe
    try:
        if isinstance(recipe.unit, IntegerSum | Popcount):
            return _integers(element)
        total = along_k(
            product.chain, _of_number(floating(recipe.c), element.c), _nothing(floating(recipe.d)),
            lambda number, accumulator: _instruction(element, number, accumulator), lambda _, x, y: _added(_F32, x, y),
        )  # fmt: skip
        if element.alpha is not None:
            total = _scaled(element, total)
        if product.epilogue is not None:
            total = _rounded(total, total.reach, total.grid, floating(product.epilogue))
    except _Unbounded:
        return None
    return total.error


def _nothing(fmt: FloatFormat) -> _Sum:
    return _Sum(Fraction(0), Fraction(0), None, fmt, fmt.fraction_bits)


def _of_number(fmt: FloatFormat, code: int) -> _Sum:
    term = _term(fmt.unpack(code), 0)
    return _nothing(fmt) if term is None else _nothing(fmt)._replace(reach=term.reach, grid=term.grid)


def _term(number: Number, nominal: int) -> _Term | None:
    """Return the known facts of an addend; None for a zero."""
    value = as_fraction(number)
    if value is None:
        raise _Unbounded
    if not value:
        return None
    low = (number.significand & -number.significand).bit_length() - 1
    return _Term(abs(value), nominal, number.exponent + low)


# Instructions


def _instruction(element: ElementCodes, number: int, accumulator: _Sum) -> _Sum:
    chain, recipe = element.product.chain, element.product.chain.recipe
    terms = _terms(element, chain, number)
    match recipe.unit:
        case FusedDotAdd():
            return _fused(recipe, recipe.unit, terms, accumulator)
        case GroupedDotAdd():
            return _grouped(recipe, recipe.unit, terms, accumulator)
        case FmaChain():
            for term in terms:
                accumulator = _fma(accumulator, term, floating(recipe.d), recipe.unit.rounding)
        case FloatChains():
            for step in fused_steps("ascending", recipe.unit.length, len(terms)):
                run = _nothing(_F32)
                for i in step:
                    run = _fma(run, terms[i], _F32, "rn")
                accumulator = _added(_F32, accumulator, run)
            if recipe.d != _F32.name:
                accumulator = _rounded(accumulator, accumulator.reach, accumulator.grid, floating(recipe.d))
    return accumulator


def _terms(element: ElementCodes, chain: Chain, number: int) -> list[_Term | None]:
    """Products of an instruction, times their scales; a zero is None."""
    recipe, record = chain.recipe, chain.instruction
    each, blocks = record.k // chain.packed, record.scales_per_row
    of_a, of_b = floating(recipe.a), floating(recipe.b)
    nominal_a, nominal_b = (floating(recipe.convert or name) for name in (recipe.a, recipe.b))
    start = number * each
    terms: list[_Term | None] = []
    for i in range(start, start + each):
        x, y = of_a.unpack(element.a[i]), of_b.unpack(element.b[i])
        product, nominal = exact_product(x, y), _nominal(x, nominal_a) + _nominal(y, nominal_b)
        if recipe.scale:
            fmt, block = floating(recipe.scale), number * blocks + (i - start) * blocks // each
            pair = [fmt.unpack(codes[block]) for codes in (element.scale_a, element.scale_b)]
            product = exact_product(product, exact_product(*pair))
            of_scale = sum(_nominal(scale, fmt) for scale in pair)
            nominal = of_scale if isinstance(recipe.unit, GroupedDotAdd) else nominal + of_scale
        terms.append(_term(product, nominal))
    return terms


def _nominal(number: Number, fmt: FloatFormat) -> int:
    """Nominal exponent of a nonzero number: for a subnormal, that of the format's least normal number."""
    return max(number.significand.bit_length() - 1 + number.exponent, fmt.emin)


def _fused(recipe: Recipe, unit: FusedDotAdd, terms: Sequence[_Term | None], c: _Sum) -> _Sum:
    d = floating(recipe.d)
    total = _nothing(d) if recipe.accumulate == "after" else c
    for step in fused_steps(recipe.order, unit.products, len(terms)):
        total = _step(unit, [x for i in step if (x := terms[i]) is not None], total, d)
    return _added(d, c, total) if recipe.accumulate == "after" else total


def _grouped(recipe: Recipe, unit: GroupedDotAdd, terms: Sequence[_Term | None], c: _Sum) -> _Sum:
    groups = []
    for first in range(0, len(terms), unit.group):
        members = [x for x in terms[first : first + unit.group] if x is not None]
        if members:
            reach = sum((x.reach for x in members), Fraction(0))
            groups.append(_Term(reach, members[0].nominal, min(x.grid for x in members)))
    return _step(unit, groups, c, floating(recipe.d))


def _step(unit: FusedDotAdd | GroupedDotAdd, terms: list[_Term], total: _Sum, d: FloatFormat) -> _Sum:
    """Lemma 3: a step of aligned addends."""
    if not terms and total.bits <= min(unit.result_bits, unit.fraction_bits):
        return total  # what is in the result's format stays as it is
    start = [] if total.grid is None else [_Term(total.reach, total.nominal, total.grid)]
    addends = [*terms, *start]
    quantum = max([unit.floor, *(x.nominal for x in addends)]) - unit.fraction_bits
    cut = sum((_cut(x, quantum) for x in addends), Fraction(0))
    reach = sum((x.reach for x in addends), Fraction(0))
    grid = min((x.grid for x in addends), default=None)
    made = _rounded(total, reach, grid, d, unit.rounding, unit.result_bits)
    return made._replace(error=made.error + cut)


def _cut(term: _Term, quantum: int) -> Fraction:
    """Lemma 1: what truncation to multiples of 2^quantum can take."""
    if term.grid >= quantum:
        return Fraction(0)
    return min(term.reach, Fraction(2) ** quantum - Fraction(2) ** term.grid)


def _fma(total: _Sum, term: _Term | None, fmt: FloatFormat, rounding: str) -> _Sum:
    """Lemma 4: a product added and rounded once."""
    if term is None:
        return total
    grid = term.grid if total.grid is None else min(term.grid, total.grid)
    return _rounded(total, total.reach + term.reach, grid, fmt, rounding)


def _added(fmt: FloatFormat, x: _Sum, y: _Sum) -> _Sum:
    """Lemma 4: two sums added and rounded once, to nearest even."""
    if x.grid is None or y.grid is None:
        zero, other = (x, y) if x.grid is None else (y, x)
        if other.fmt != fmt:
            other = _rounded(other, other.reach, other.grid, fmt)
        return other._replace(error=other.error + zero.error)
    made = _rounded(x, x.reach + y.reach, min(x.grid, y.grid), fmt)
    return made._replace(error=made.error + y.error)


def _rounded(
    before: _Sum, reach: Fraction, grid: int | None, fmt: FloatFormat, rounding: str = "rn", bits: int | None = None
) -> _Sum:
    """Lemma 2: a sum of so much at most, of multiples of 2^grid, is rounded."""
    bits = fmt.fraction_bits if bits is None else bits
    if grid is None or not reach:
        return before._replace(fmt=fmt, bits=bits)
    if reach > cast(Fraction, as_fraction(fmt.largest)):
        raise _Unbounded
    last = max(exponent_of(reach), fmt.emin) - bits
    if last <= grid:
        off = Fraction(0)
    elif rounding == "rn":
        off = Fraction(2) ** (last - 1)
    else:
        off = Fraction(2) ** last - Fraction(2) ** grid
    outward = Fraction(0) if rounding == "rz" else off
    return _Sum(before.error + off, reach + outward, grid, fmt, bits)


def _scaled(element: ElementCodes, total: _Sum) -> _Sum:
    """Lemma 5: the sum times a tensor scale."""
    exact = as_fraction(element.scale_product)
    used = _term(_F32.unpack(int(_F32.encode(np.array(element.alpha)))), 0)
    if exact is None:
        raise _Unbounded
    scale = Fraction(0) if used is None else Fraction(np.float64(element.alpha).item())
    error = total.error * abs(exact) + total.reach * abs(exact - scale)
    if used is None or total.grid is None:
        return _nothing(total.fmt)._replace(error=error)
    return _rounded(total._replace(error=error), total.reach * used.reach, total.grid + used.grid, total.fmt)


# Integers


def _integers(element: ElementCodes) -> Fraction:
    """Lemma 6: nothing is lost, unless the magnitudes leave room for a sum beyond 32 bits."""
    chain, recipe = element.product.chain, element.product.chain.recipe
    unit, d = cast(IntegerSum | Popcount, recipe.unit), integer(recipe.d)
    of_a, of_b = integer(recipe.a), integer(recipe.b)
    each, error, reach = chain.instruction.k // chain.packed, 0, abs(integer(recipe.c).unpack(element.c))
    for start in range(0, len(element.a), each):
        for x, y in zip(element.a[start : start + each], element.b[start : start + each], strict=True):
            reach += max(x, y) if isinstance(unit, Popcount) else abs(of_a.unpack(x) * of_b.unpack(y))
        over = max(0, reach - d.greatest)
        if over and not (isinstance(unit, IntegerSum) and unit.saturate):
            raise _Unbounded
        error, reach = error + over, min(reach, -d.least)
    return Fraction(error)
