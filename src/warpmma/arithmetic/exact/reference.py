"""The reference: one dot product at a time, on Python integers, with a full trace of each step.

`trace` computes and records the steps, as records of `sum_steps`; `dot` is the result of the last one.

Specification
-------------
Numbers. An operand's code is `(-1)^s * significand * 2^exponent` (see `formats.Number`); its *nominal exponent* is the
weight of the place before the binary point, `exponent + fraction_bits` of its format. Subnormals are not normalised.

Fused dot-add (F, L, Z):

1. The k products are cut into steps (`units.steps`). A step's accumulator is C in the first step and the rounded
   result of the step before in the others.
2. A product is exact and is not normalised: its significand is the product of the significands, its nominal exponent
   the sum of the nominal exponents.
3. The accumulator is one more addend, with its own format's nominal exponent.
4. The alignment exponent E is the largest nominal exponent of the addends that are not zero, and at least Z.
5. Every addend's magnitude is truncated toward zero to a multiple of 2^(E - F).
6. The addends are added exactly.
7. The sum is rounded once, to `result_bits` fraction bits and D's exponent range, subnormals included: toward zero, or
   to nearest even. A magnitude beyond the largest exponent becomes infinity, in both roundings.
8. If an addend is NaN, or infinity times zero, or two addends are infinities of opposite signs, the result is the
   canonical NaN. Otherwise, if an addend is infinite, the result is that infinity.
9. A result that is zero is +0.

Recipes around it:

10. `convert`: A and B are first converted to another format that holds their values; the nominal exponents are then
    that format's.
11. `accumulate = "after"`: the first step's accumulator is +0, and the last result is added to C by IEEE addition in
    D's format, to nearest even; a NaN is the canonical one.

Block scales. Products 0 to k/S - 1 share the first of the S scales of A's row and of B's column, and so on.

12. A fused dot-add multiplies every product by its two scales: significand by significand, nominal exponent plus
    nominal exponents. C is not scaled. A scale that is NaN makes its products NaN.
13. A grouped dot-add (F, Z, groups of G products) sums the unscaled products of each group exactly and multiplies the
    sum by the significands of the group's two scales. The group is one addend. Its nominal exponent is the sum of those
    of the two scales, whatever the products are; but it does not count for E (rule 4) if all its products are zero, or
    one of its scales is. Rules 3 to 9 hold for groups and C, in one step over all k.

IEEE arithmetic:

14. An operation is computed exactly and rounded once to the format and mode; subnormals are kept; a sum that is exactly
    zero is +0, or -0 in mode rm, unless both addends are zeros of one sign, which it then keeps.
15. Chain in D's format from C: r = C, then r = fma(a, b, r), k ascending. In f32 a NaN is the canonical one. In f64 a
    NaN among the operands is passed on with bit 51 set, sign and payload kept; B's before r's before A's; a NaN that
    the operation makes is 0xFFF8000000000000.
16. Chains in f32 from +0 or from the first product: each step in f32, to nearest even; r = C in f32, then r = r +
    chain, and at the end r is converted to D. A NaN is the canonical one. Products of f16 numbers are exact in f32.

Integers:

17. Sum: exact, plus C; then wrapped to 32 bits, or clamped once.
18. Popcount: ones of A xor B, or of A and B, plus C, wrapped to 32 bits.

Sources: rules 1 to 9, 12 and 13 are those that Xie et al. (arXiv 2511.10909, "T-FDPA") and Khattak and Mikaitis
(arXiv 2512.07004) agree on (12 and 13: the former alone), 1 to 9 measured on an H200; 10, 11 and 16 are the code that
ptxas emits, measured on an H200; 15, 17 and 18 PTX ISA 9.1, 9.7.14.5.14 and 9.7.3, NaN and clamping measured on an
H200.
At more length: docs/specification/numerics.md 1 to 5 and docs/specification/h200.md 1 to 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from ..._rounding import Rounding
from ...formats import FloatFormat, Number, floating, integer
from ..recipes import FloatChains, FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, Recipe, steps
from .exact_numbers import exact_product, exact_sum, rounded
from .sum_steps import Addend, SumStep


def dot(
    recipe: Recipe, a: Sequence[int], b: Sequence[int], c: int, scale_a: Sequence[int] = (), scale_b: Sequence[int] = ()
) -> int:
    """Compute one element of D.

    Parameters
    ----------
    recipe : Recipe
    a, b : sequence of int
        Codes of a row of A and a column of B, k of each.
    c : int
        Code of the element of C.
    scale_a, scale_b : sequence of int
        Codes of the scales of A's row and B's column, S of each; k is a multiple of S. Only where the recipe has
        scales.

    Returns
    -------
    int
        Code of the element of D.

    Examples
    --------
    >>> unit = FusedDotAdd(fraction_bits=25, products=16, floor=-133, result_bits=23, rounding="rz")
    >>> hex(dot(Recipe(d="f32", a="f16", b="f16", c="f32", unit=unit), [0x3C00, 0x4000], [0x3C00, 0x3C00], 0))
    '0x40400000'
    """
    made = trace(recipe, a, b, c, scale_a, scale_b)
    return made[-1].result if made else c


def trace(
    recipe: Recipe, a: Sequence[int], b: Sequence[int], c: int, scale_a: Sequence[int] = (), scale_b: Sequence[int] = ()
) -> tuple[SumStep, ...]:
    """Compute one element of D, with all steps.

    Parameters
    ----------
    recipe, a, b, c, scale_a, scale_b
        As for `dot`.

    Returns
    -------
    tuple of SumStep
        Steps in their order; the last one's result is the element of D. Empty without products, which leaves C
        unchanged.

    Examples
    --------
    >>> unit = FusedDotAdd(fraction_bits=25, products=16, floor=-133, result_bits=23, rounding="rz")
    >>> recipe = Recipe(d="f32", a="f16", b="f16", c="f32", unit=unit)
    >>> step, = trace(recipe, [0x3C00, 0x0001], [0x3C00, 0x3C00], 0)
    >>> step.exponent, step.quantum, [str(addend.lost) for addend in step.addends], hex(step.result)
    (0, -25, ['0', '0', '0'], '0x3f800000')
    >>> step.rounded_off
    Fraction(1, 16777216)
    """
    unit = recipe.unit
    match unit:
        case FusedDotAdd():
            made = _fused(recipe, unit, a, b, c, _scales(recipe, len(a), scale_a, scale_b))
        case GroupedDotAdd():
            made = _grouped(recipe, unit, a, b, c, _scales(recipe, len(a), scale_a, scale_b))
        case FmaChain():
            made = _fma_chain(recipe, unit, a, b, c)
        case FloatChains():
            made = _f32_chains(recipe, unit, a, b, c)
        case IntegerSum() | Popcount():
            made = _integer(recipe, unit, a, b, c)
    return tuple(made)


# Rules 1 to 13


class _Term(NamedTuple):
    """What will be an addend once E is known; `heard`: whether its nominal exponent counts for E."""

    source: str
    products: tuple[int, ...]
    number: Number
    nominal: int
    heard: bool


def _scales(recipe: Recipe, k: int, scale_a: Sequence[int], scale_b: Sequence[int]) -> Sequence[tuple[Number, int]]:
    """Product of the two scales of each of k products, and its nominal exponent; ones without block scales."""
    if recipe.scale is None:
        return [(Number("finite", 0, 1, 0), 0)] * k
    fmt = floating(recipe.scale)
    pairs = [exact_product(fmt.unpack(x), fmt.unpack(y)) for x, y in zip(scale_a, scale_b, strict=True)]
    return [(pair, pair.exponent + 2 * fmt.fraction_bits) for pair in pairs for _ in range(k // len(pairs))]


def _fused(
    recipe: Recipe, unit: FusedDotAdd, a: Sequence[int], b: Sequence[int], c: int, scales: Sequence[tuple[Number, int]]
) -> Iterator[SumStep]:
    after = recipe.accumulate == "after"
    d_format = floating(recipe.d)
    formats = [floating(recipe.convert or name) for name in (recipe.a, recipe.b)]
    rows = [
        [fmt.unpack(rounded(floating(name).unpack(x), fmt, "rn")) if recipe.convert else fmt.unpack(x) for x in codes]
        for name, fmt, codes in zip((recipe.a, recipe.b), formats, (a, b), strict=True)
    ]
    bits = sum(fmt.fraction_bits for fmt in formats)
    around = (*((10,) if recipe.convert else ()), *((11,) if after else ()), *((12,) if recipe.scale else ()))
    source = "accumulator" if after else "C"
    accumulator, accumulator_format = (0, d_format) if after else (c, floating(recipe.c))
    for step in steps(recipe.order, unit.products, len(a)):
        terms = []
        for i in step:
            product, (scale, nominal) = exact_product(rows[0][i], rows[1][i]), scales[i]
            scaled = exact_product(product, scale) if recipe.scale else product
            terms.append(_Term("product", (i,), scaled, product.exponent + bits + nominal, scaled.significand > 0))
        terms.append(_accumulated(source, accumulator, accumulator_format))
        made = _aligned_step("fused", (1, 2, 3, 4, 5, 6, 7), around, unit, terms, d_format)
        yield made
        source, accumulator, accumulator_format = "accumulator", made.result, d_format
    if after:
        of_c, sum_so_far = floating(recipe.c).unpack(c), d_format.unpack(accumulator)
        yield rounded_step("add", (11, 14), (_whole("C", of_c), _whole("accumulator", sum_so_far)), d_format)


def _grouped(
    recipe: Recipe, unit: GroupedDotAdd, a: Sequence[int], b: Sequence[int], c: int,
    scales: Sequence[tuple[Number, int]],
) -> Iterator[SumStep]:  # fmt: skip
    terms = []
    products = [
        exact_product(floating(recipe.a).unpack(x), floating(recipe.b).unpack(y)) for x, y in zip(a, b, strict=True)
    ]
    for first in range(0, len(a), unit.group):
        members, (scale, nominal) = products[first : first + unit.group], scales[first]
        total = Number("finite")
        for product in members:
            total = exact_sum(total, product)
        # A group that cancels is zero and still counts.
        zeros = not any(product.significand for product in members)
        silent = zeros or (scale.kind == "finite" and not scale.significand)
        which = tuple(range(first, first + len(members)))
        terms.append(_Term("group", which, exact_product(total, scale), nominal, not silent))
    terms.append(_accumulated("C", c, floating(recipe.c)))
    yield _aligned_step("grouped", (3, 4, 5, 6, 7), (13,), unit, terms, floating(recipe.d))


def _accumulated(source: str, code: int, fmt: FloatFormat) -> _Term:
    """Rule 3: the accumulator as one more addend."""
    number = fmt.unpack(code)
    return _Term(source, (), number, number.exponent + fmt.fraction_bits, number.significand > 0)


def _aligned_step(
    operation: str, rules: tuple[int, ...], around: tuple[int, ...], unit: FusedDotAdd | GroupedDotAdd,
    terms: Sequence[_Term], d: FloatFormat,
) -> SumStep:  # fmt: skip
    """Rules 4 to 9."""
    infinities = {term.number.sign for term in terms if term.number.kind == "infinity"}
    if infinities or any(term.number.kind == "nan" for term in terms):
        invalid = len(infinities) == 2 or any(term.number.kind == "nan" for term in terms)
        special = Number("nan") if invalid else Number("infinity", infinities.pop())
        return SumStep(
            operation=operation, rules=(*rules[: rules.index(4)], 8, *around),
            addends=tuple(_whole(term.source, term.number, term.products, term.nominal) for term in terms),
            sum=special, format=d.name, bits=unit.result_bits, rounding=unit.rounding, result=rounded(special, d, "rn"),
        )  # fmt: skip
    largest = max([unit.floor, *(term.nominal for term in terms if term.heard)])
    quantum = largest - unit.fraction_bits
    addends, total = [], 0
    for source, products, number, nominal, _ in terms:
        shift = number.exponent - quantum
        magnitude = number.significand << shift if shift >= 0 else number.significand >> -shift
        kept = number if shift >= 0 else Number("finite", number.sign, magnitude, quantum)
        addends.append(Addend(source=source, products=products, number=number, nominal=nominal, kept=kept))
        total += -magnitude if number.sign else magnitude
    exact = Number("finite", int(total < 0), abs(total), quantum)
    code = rounded(exact, d, unit.rounding, bits=unit.result_bits, to_infinity=True)
    zero = code in (0, d.sign_bit)
    return SumStep(
        operation=operation, rules=(*rules, *((9,) if zero else ()), *around), addends=tuple(addends),
        exponent=largest, quantum=quantum, sum=exact, format=d.name, bits=unit.result_bits, rounding=unit.rounding,
        result=0 if zero else code,
    )  # fmt: skip


# Rules 14 to 16


def _whole(source: str, number: Number, products: tuple[int, ...] = (), nominal: int | None = None) -> Addend:
    """Make an addend that loses no bits."""
    return Addend(source=source, products=products, number=number, nominal=nominal, kept=number)


def rounded_step(
    operation: str, rules: tuple[int, ...], addends: tuple[Addend, ...], fmt: FloatFormat, rounding: Rounding = "rn"
) -> SumStep:
    """Rule 14: one or two addends, added exactly and rounded once."""
    exact, *more = (addend.number for addend in addends)
    for number in more:
        exact = exact_sum(exact, number, rounding)
    return SumStep(
        operation=operation, rules=rules, addends=addends, sum=exact, format=fmt.name, bits=fmt.fraction_bits,
        rounding=rounding, result=rounded(exact, fmt, rounding),
    )  # fmt: skip


def _fma_chain(recipe: Recipe, unit: FmaChain, a: Sequence[int], b: Sequence[int], c: int) -> Iterator[SumStep]:
    fmt = floating(recipe.d)
    quiet = 1 << (fmt.fraction_bits - 1)
    result = c
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        operands = [fmt.unpack(code) for code in (x, y, result)]
        ranked = ((y, operands[1]), (result, operands[2]), (x, operands[0]))
        nans = [code for code, number in ranked if number.kind == "nan"]
        product = _whole("product", exact_product(operands[0], operands[1]), (i,))
        addends = (product, _whole("accumulator" if i else "C", operands[2]))
        step = rounded_step("fma", (14, 15), addends, fmt, unit.rounding)
        if step.sum.kind == "nan" and fmt.name == "f64":
            made = fmt.sign_bit | cast(int, fmt.inf_code) | quiet
            step = replace(step, result=nans[0] | quiet if nans else made)
        yield step
        result = step.result


def _f32_chains(recipe: Recipe, unit: FloatChains, a: Sequence[int], b: Sequence[int], c: int) -> Iterator[SumStep]:
    fmt, d_format = floating("f32"), floating(recipe.d)
    products = [
        exact_product(floating(recipe.a).unpack(x), floating(recipe.b).unpack(y)) for x, y in zip(a, b, strict=True)
    ]
    source, total = "C", floating(recipe.c).unpack(c)
    for step in steps("ascending", unit.length, len(a)):
        chain = Number("finite")
        for position, i in enumerate(step):
            product = _whole("product", products[i], (i,))
            if position == 0 and unit.seed == "product":
                made = rounded_step("multiply", (14, 16), (product,), fmt)
            else:
                so_far = _whole("chain", chain, tuple(step[:position]))
                made = rounded_step("fma", (14, 16), (product, so_far), fmt)
            yield made
            chain = made.number
        made = rounded_step("add", (14, 16), (_whole(source, total), _whole("chain", chain, tuple(step))), fmt)
        yield made
        source, total = "accumulator", made.number
    if d_format != fmt or not a:
        yield rounded_step("convert", (14, 16), (_whole(source, total),), d_format)


# Rules 17 and 18


def _integer(
    recipe: Recipe, unit: IntegerSum | Popcount, a: Sequence[int], b: Sequence[int], c: int
) -> Iterator[SumStep]:
    d = integer(recipe.d)
    if isinstance(unit, Popcount):
        values = [x ^ y if unit.operation == "xor" else x & y for x, y in zip(a, b, strict=True)]
    else:
        of_a, of_b = integer(recipe.a), integer(recipe.b)
        values = [of_a.unpack(x) * of_b.unpack(y) for x, y in zip(a, b, strict=True)]
    start = integer(recipe.c).unpack(c)
    total = exact = sum(values, start)
    clamps = isinstance(unit, IntegerSum) and unit.saturate
    if clamps:
        total = min(max(total, d.least), d.greatest)
    yield SumStep(
        operation="popcount" if isinstance(unit, Popcount) else "integer",
        rules=(18,) if isinstance(unit, Popcount) else (17,),
        addends=(
            *(_whole("product", _of_integer(x), (i,)) for i, x in enumerate(values)), _whole("C", _of_integer(start)),
        ),
        sum=_of_integer(exact), format=d.name, bits=0, rounding="clamp" if clamps else "wrap", result=total & d.mask,
    )  # fmt: skip


def _of_integer(value: int) -> Number:
    return Number("finite", int(value < 0), abs(value))
