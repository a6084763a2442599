"""The reference: one dot product at a time, on Python integers.

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
    sum by the significands of the group's two scales. The group is one addend. Its nominal exponent is the sum of
    those of the two scales, whatever the products are; but it has no say in E (rule 4) if all its products are zero,
    or one of its scales is. Rules 3 to 9 hold for groups and C, in one step over all k.

IEEE arithmetic:

14. An operation is computed exactly and rounded once to the format and mode; subnormals are kept; a sum that is exactly
    zero is +0, or -0 in mode rm, unless both addends are zeros of one sign, which it then keeps.
15. Chain in f64 from C: r = C, then r = fma(a, b, r), k ascending. A NaN among the operands is passed on with bit 51
    set, sign and payload kept; B's before r's before A's. A NaN that the operation makes is 0xFFF8000000000000.
16. Chains in f32 from +0 or from the first product: each step in f32, to nearest even; r = C in f32, then r = r +
    chain, and at the end r is converted to D. A NaN is the canonical one. Products of f16 numbers are exact in f32.

Integers:

17. Sum: exact, plus C; then wrapped to 32 bits, or clamped once.
18. Popcount: ones of A xor B, or of A and B, plus C, wrapped to 32 bits.

Sources: rules 1 to 9, 12 and 13 are those that Xie et al. (arXiv 2511.10909, "T-FDPA") and Khattak and Mikaitis
(arXiv 2512.07004) agree on (12 and 13: the former alone), 1 to 9 measured on an H200; 10, 11 and 16 are the code that
ptxas emits, measured on an H200; 15, 17 and 18 PTX ISA 9.1, 9.7.14.5.14, NaN and clamping measured on an H200.
At more length: docs/specification/numerics.md 1 to 5 and docs/specification/h200.md 1 to 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from .._rounding import Rounding
from ..formats import FloatFormat, Number, floating, integer
from .units import FloatChains, FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, Recipe, steps

__all__ = ["dot"]

Terms = Sequence[tuple[Number, int]]  # an addend and its nominal exponent


def dot(
    recipe: Recipe, a: Sequence[int], b: Sequence[int], c: int,
    scale_a: Sequence[int] = (), scale_b: Sequence[int] = (),
) -> int:  # fmt: skip
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
    unit = recipe.unit
    match unit:
        case FusedDotAdd():
            return _fused(recipe, unit, a, b, c, _scales(recipe, len(a), scale_a, scale_b))
        case GroupedDotAdd():
            return _grouped(recipe, unit, a, b, c, _scales(recipe, len(a), scale_a, scale_b))
        case FmaChain():
            return _f64_chain(unit, a, b, c)
        case FloatChains():
            return _f32_chains(recipe, unit, a, b, c)
        case IntegerSum() | Popcount():
            return _integer(recipe, unit, a, b, c)


# Exact numbers: a `Number` with as many significand bits as it takes.


def exact_product(x: Number, y: Number) -> Number:
    sign = x.sign ^ y.sign
    if "nan" in (x.kind, y.kind):
        return Number("nan")
    if "infinity" in (x.kind, y.kind):
        zero = any(n.kind == "finite" and not n.significand for n in (x, y))
        return Number("nan") if zero else Number("infinity", sign)
    return Number("finite", sign, x.significand * y.significand, x.exponent + y.exponent)


def exact_sum(x: Number, y: Number, rounding: Rounding = "rn") -> Number:
    """Exact sum; rule 14 for its sign when it is zero."""
    if "nan" in (x.kind, y.kind) or (x.kind == y.kind == "infinity" and x.sign != y.sign):
        return Number("nan")
    if "infinity" in (x.kind, y.kind):
        return x if x.kind == "infinity" else y
    exponent = min(x.exponent, y.exponent)
    total = sum((-1) ** n.sign * n.significand << (n.exponent - exponent) for n in (x, y))
    if total:
        return Number("finite", int(total < 0), abs(total), exponent)
    both = x.significand == y.significand == 0 and x.sign == y.sign
    return Number("finite", x.sign if both else int(rounding == "rm"), 0, exponent)


def rounded(
    x: Number, fmt: FloatFormat, rounding: Rounding, *, bits: int | None = None, to_infinity: bool = False
) -> int:
    """Round to a code of `fmt` and `bits` fraction bits; what is too large becomes what IEEE has it, or infinity."""
    bits = fmt.fraction_bits if bits is None else bits
    sign = x.sign * fmt.sign_bit
    if x.kind == "nan":
        return cast(int, fmt.nan_code)
    infinity = cast(int, fmt.inf_code)
    if x.kind == "infinity":
        return sign | infinity
    if not x.significand:
        return sign
    # The grid near x: multiples of 2^unit.
    unit = max(x.exponent + x.significand.bit_length() - 1, fmt.emin) - bits
    drop = unit - x.exponent
    kept, rest = (x.significand << -drop, 0) if drop <= 0 else divmod(x.significand, 1 << drop)
    half = 1 << (drop - 1) if drop > 0 else 1
    away = {
        "rn": rest > half or (rest == half and kept % 2 == 1),
        "rz": False,
        "rm": x.sign == 1 and rest > 0,
        "rp": x.sign == 0 and rest > 0,
    }[rounding]
    kept += away
    # Exponent and fraction fields ascend as one integer, so a carry out of the fraction needs no care.
    magnitude = ((unit + bits - fmt.emin) << bits) + kept
    magnitude <<= fmt.fraction_bits - bits
    if magnitude >= infinity:
        outward = to_infinity or rounding == "rn" or rounding == ("rm" if x.sign else "rp")
        magnitude = infinity if outward else fmt.max_code
    return sign | magnitude


# Rules 1 to 13


def _scales(recipe: Recipe, k: int, scale_a: Sequence[int], scale_b: Sequence[int]) -> Sequence[tuple[Number, int]]:
    """Product of the two scales of each of k products, and its nominal exponent; ones without block scales."""
    if recipe.scale is None:
        return [(Number("finite", 0, 1, 0), 0)] * k
    fmt = floating(recipe.scale)
    pairs = [exact_product(fmt.unpack(x), fmt.unpack(y)) for x, y in zip(scale_a, scale_b, strict=True)]
    return [(pair, pair.exponent + 2 * fmt.fraction_bits) for pair in pairs for _ in range(k // len(pairs))]


def _fused(
    recipe: Recipe, unit: FusedDotAdd, a: Sequence[int], b: Sequence[int], c: int, scales: Terms
) -> int:  # fmt: skip
    after = recipe.accumulate == "after"
    d_format = floating(recipe.d)
    formats = [floating(recipe.convert or name) for name in (recipe.a, recipe.b)]
    rows = [
        [fmt.unpack(rounded(floating(name).unpack(x), fmt, "rn")) if recipe.convert else fmt.unpack(x) for x in codes]
        for name, fmt, codes in zip((recipe.a, recipe.b), formats, (a, b), strict=True)
    ]
    bits = sum(fmt.fraction_bits for fmt in formats)
    accumulator_format = d_format if after else floating(recipe.c)
    accumulator = 0 if after else c
    for step in steps(recipe.order, unit.products, len(a)):
        products = [(exact_product(rows[0][i], rows[1][i]), scales[i]) for i in step]
        terms = [(exact_product(p, scale), p.exponent + bits + nominal) for p, (scale, nominal) in products]
        start = accumulator_format.unpack(accumulator)
        terms.append((start, start.exponent + accumulator_format.fraction_bits))
        accumulator = _fused_step(unit, terms, d_format)
        accumulator_format = d_format
    if not after:
        return accumulator
    return rounded(exact_sum(floating(recipe.c).unpack(c), d_format.unpack(accumulator)), d_format, "rn")


def _grouped(
    recipe: Recipe, unit: GroupedDotAdd, a: Sequence[int], b: Sequence[int], c: int, scales: Terms
) -> int:  # fmt: skip
    c_format = floating(recipe.c)
    start = c_format.unpack(c)
    terms = [(start, start.exponent + c_format.fraction_bits)]
    products = [
        exact_product(floating(recipe.a).unpack(x), floating(recipe.b).unpack(y)) for x, y in zip(a, b, strict=True)
    ]
    for first in range(0, len(a), unit.group):
        members, (scale, nominal) = products[first : first + unit.group], scales[first]
        total = Number("finite")
        for product in members:
            total = exact_sum(total, product)
        # A group that cancels is zero and still has its say, so its exponent is kept beside a zero.
        zeros = not any(product.significand for product in members)
        silent = zeros or (scale.kind == "finite" and not scale.significand)
        terms.append((exact_product(total, scale), unit.floor if silent else nominal))
    nominals = [nominal for _, nominal in terms[1:]] + ([terms[0][1]] if start.significand else [])
    return _aligned_sum(unit, terms, floating(recipe.d), nominals)


def _fused_step(unit: FusedDotAdd, terms: Terms, d: FloatFormat) -> int:
    return _aligned_sum(unit, terms, d, [nominal for term, nominal in terms if term.significand])


def _aligned_sum(unit: FusedDotAdd | GroupedDotAdd, terms: Terms, d: FloatFormat, nominals: Sequence[int]) -> int:
    """Rules 4 to 9, given the nominal exponents that have a say in E."""
    infinities = {term.sign for term, _ in terms if term.kind == "infinity"}
    if any(term.kind == "nan" for term, _ in terms) or len(infinities) == 2:
        return cast(int, d.nan_code)
    if infinities:
        return rounded(Number("infinity", infinities.pop()), d, "rn")
    largest = max([unit.floor, *nominals])
    quantum = largest - unit.fraction_bits
    total = 0
    for term, _ in terms:
        shift = term.exponent - quantum
        magnitude = term.significand << shift if shift >= 0 else term.significand >> -shift
        total += -magnitude if term.sign else magnitude
    exact = Number("finite", int(total < 0), abs(total), quantum)
    code = rounded(exact, d, unit.rounding, bits=unit.result_bits, to_infinity=True)
    return code if code != d.sign_bit else 0


# Rules 14 to 16


def _f64_chain(unit: FmaChain, a: Sequence[int], b: Sequence[int], c: int) -> int:
    fmt = floating("f64")
    quiet = 1 << (fmt.fraction_bits - 1)
    result = c
    for x, y in zip(a, b, strict=True):
        operands = [fmt.unpack(code) for code in (x, y, result)]
        ranked = ((y, operands[1]), (result, operands[2]), (x, operands[0]))
        nans = [code for code, number in ranked if number.kind == "nan"]
        if nans:
            result = nans[0] | quiet
            continue
        exact = exact_sum(exact_product(operands[0], operands[1]), operands[2], unit.rounding)
        made = fmt.sign_bit | cast(int, fmt.inf_code) | quiet
        result = made if exact.kind == "nan" else rounded(exact, fmt, unit.rounding)
    return result


def _f32_chains(recipe: Recipe, unit: FloatChains, a: Sequence[int], b: Sequence[int], c: int) -> int:
    fmt = floating("f32")
    products = [
        exact_product(floating(recipe.a).unpack(x), floating(recipe.b).unpack(y)) for x, y in zip(a, b, strict=True)
    ]
    total = floating(recipe.c).unpack(c)
    for step in steps("ascending", unit.length, len(a)):
        chain = Number("finite")
        for position, i in enumerate(step):
            first = position == 0 and unit.seed == "product"
            exact = products[i] if first else exact_sum(products[i], chain)
            chain = fmt.unpack(rounded(exact, fmt, "rn"))
        total = fmt.unpack(rounded(exact_sum(total, chain), fmt, "rn"))
    return rounded(total, floating(recipe.d), "rn")


# Rules 17 and 18


def _integer(recipe: Recipe, unit: IntegerSum | Popcount, a: Sequence[int], b: Sequence[int], c: int) -> int:
    d = integer(recipe.d)
    total = integer(recipe.c).unpack(c)
    for x, y in zip(a, b, strict=True):
        if isinstance(unit, Popcount):
            total += x ^ y if unit.operation == "xor" else x & y
        else:
            total += integer(recipe.a).unpack(x) * integer(recipe.b).unpack(y)
    if isinstance(unit, IntegerSum) and unit.saturate:
        total = min(max(total, d.least), d.greatest)
    return total & d.mask
