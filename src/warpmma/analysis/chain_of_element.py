"""One element of a product: the codes of its row and column, and the links of the chain that makes it.

The chain is that of `products.Chain`: instructions along k; partial sums where k is split or sums are promoted, which
begin at +0 and are added in f32; a tensor scale; an epilogue. The reference traces each instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ..arithmetic import Addend, Popcount, SumStep, as_fraction, exact_product, reference_trace, rounded_step
from ..formats import FORMATS, FloatFormat, Number, floating
from ..products import Chain, Operands, Product, finish
from .explanation import ChainLink

T = TypeVar("T")

_F32 = floating("f32")


@dataclass(frozen=True, kw_only=True)
class ElementCodes:
    """Codes that one element of D is made of, padded to whole instructions.

    As many of `a` as of `b`: of a sparse A the stored ones, and what each meets of B. `positions` are the rows of B
    that they meet; from the product's k on it is padding. `factors` are codes of f32, of the tensor scales, and `alpha`
    is their product, rounded to f32.
    """

    product: Product
    a: tuple[int, ...]
    b: tuple[int, ...]
    positions: tuple[int, ...]
    scale_a: tuple[int, ...]
    scale_b: tuple[int, ...]
    c: int
    factors: tuple[int, ...]
    alpha: float | None

    @classmethod
    def of(cls, product: Product, row: int, column: int, matrix: int = 0) -> ElementCodes:
        """Take one element of a product whose batch is flat."""
        chain = product.chain
        part = product.given.of(slice(matrix, matrix + 1))
        part = part.part(slice(row, row + 1), slice(column, column + 1), 0, chain.k, chain)
        if chain.whole > chain.k:
            part = chain.padded(part, chain.whole)
        a, positions = part.a[0, 0], _positions(part, chain.instruction.k)
        return cls(
            product=product, a=_codes(a), b=_codes(part.b[0, positions, 0]), positions=_codes(positions),
            scale_a=() if part.scale_a is None else _codes(part.scale_a[0, 0]),
            scale_b=() if part.scale_b is None else _codes(part.scale_b[0, :, 0]),
            c=int(product.c[matrix, row, column]),
            factors=tuple(int(_F32.codes(x).reshape(-1)[0]) for x in product.tensor_scales),
            alpha=None if product.alpha is None else float(product.alpha[matrix]),
        )  # fmt: skip

    @cached_property
    def scale_product(self) -> Number:
        """Exact product of the tensor scales; one without."""
        total = Number("finite", 0, 1, 0)
        for code in self.factors:
            total = exact_product(total, _F32.unpack(code))
        return total


def _positions(part: Operands, k: int) -> Any:
    if part.chosen is None:
        return np.arange(part.a.shape[-1])
    chosen = part.chosen[0, 0].astype(np.intp)
    return chosen + np.arange(len(chosen)) // (k // 2) * k  # `chosen` counts within its instruction


def _codes(array: Any) -> tuple[int, ...]:
    return tuple(array.tolist())


def exact_result(element: ElementCodes) -> Fraction | None:
    """Exact result of an element's codes; None where an operand is NaN or infinite."""
    recipe, k = element.product.chain.recipe, len(element.a)
    a, b, (c,), scale_a, scale_b = (
        _numbers(name, codes)
        for name, codes in (
            (recipe.a, element.a), (recipe.b, element.b), (recipe.c, (element.c,)),
            (recipe.scale, element.scale_a), (recipe.scale, element.scale_b),
        )
    )  # fmt: skip
    if isinstance(recipe.unit, Popcount):
        combine = int.__xor__ if recipe.unit.operation == "xor" else int.__and__
        addends = [Number("finite", 0, combine(x.significand, y.significand)) for x, y in zip(a, b, strict=True)]
    else:
        addends = [exact_product(x, y) for x, y in zip(a, b, strict=True)]
    if recipe.scale:
        each = k // len(scale_a)
        pairs = [exact_product(x, y) for x, y in zip(scale_a, scale_b, strict=True)]
        addends = [exact_product(x, pairs[i // each]) for i, x in enumerate(addends)]
    addends.append(c)
    scale = as_fraction(element.scale_product)
    if scale is None or any(x.kind != "finite" for x in addends):
        return None
    lowest = min(x.exponent for x in addends)
    total = sum((-x.significand if x.sign else x.significand) << (x.exponent - lowest) for x in addends)
    return total * scale * Fraction(2) ** lowest


def _numbers(name: str | None, codes: tuple[int, ...]) -> list[Number]:
    if name is None:
        return []
    fmt = FORMATS[name]
    if isinstance(fmt, FloatFormat):
        return [fmt.unpack(code) for code in codes]
    values = [fmt.unpack(code) for code in codes]
    return [Number("finite", int(x < 0), abs(x)) for x in values]


def links(element: ElementCodes) -> tuple[tuple[ChainLink, ...], int]:
    """Follow the chain that makes an element; return its links and the code of the result."""
    made, code = _along_k(element)
    record, epilogue = element.product.chain.instruction, element.product.epilogue
    if element.alpha is not None:
        weight = as_fraction(element.scale_product)
        made = [ChainLink(name=x.name, k=x.k, steps=x.steps, weight=weight) for x in made]
        link, code = _scaled(element, code)
        made.append(link)
    if epilogue is not None:
        last = floating(record.d_type).unpack(code)
        code = int(finish(record, np.array([code], FORMATS[record.d_type].code_dtype), epilogue)[0])
        step = _step("convert", Addend(source="accumulator", number=last, kept=last), epilogue, code)
        made.append(ChainLink(name=f"epilogue: to {epilogue}", k=range(0), steps=(step,)))
    return tuple(made), code


def _scaled(element: ElementCodes, code: int) -> tuple[ChainLink, int]:
    """Multiply by the tensor scale: an exact product, part of which is lost when the scale is rounded."""
    record = element.product.chain.instruction
    fmt, d = floating(record.d_type), floating(record.d_type).unpack(code)
    alpha = np.array(element.alpha)
    used = _F32.unpack(int(_F32.encode(alpha)))
    result = int(finish(record, np.array([code], fmt.code_dtype), None, alpha)[0])
    addend = Addend(source="accumulator", number=exact_product(d, element.scale_product), kept=exact_product(d, used))
    return ChainLink(name="tensor scale", k=range(0), steps=(_step("multiply", addend, fmt.name, result),)), result


def _step(operation: str, addend: Addend, name: str, result: int) -> SumStep:
    return SumStep(
        operation=operation, rules=(14,), addends=(addend,), sum=addend.kept, format=name,
        bits=floating(name).fraction_bits, rounding="rn", result=result,
    )  # fmt: skip


def _along_k(element: ElementCodes) -> tuple[list[ChainLink], int]:
    """Return the links along k, and the code that they come to."""
    made: list[ChainLink] = []
    chain, record = element.product.chain, element.product.chain.instruction
    each, scales = record.k // chain.packed, record.scales_per_row

    def instruction(number: int, accumulator: int) -> int:
        stored, blocks = slice(number * each, (number + 1) * each), slice(number * scales, (number + 1) * scales)
        steps = reference_trace(
            chain.recipe, element.a[stored], element.b[stored], accumulator, element.scale_a[blocks],
            element.scale_b[blocks],
        )  # fmt: skip
        made.append(ChainLink(name=str(record), k=range(stored.start, stored.stop), steps=steps))
        return steps[-1].result

    def add(sum_of: str, first: int, second: int) -> int:
        made.append(_added(sum_of, first, second))
        return made[-1].steps[-1].result

    return made, along_k(chain, element.c, 0, instruction, add)


SLICE, TOTAL = "promotion: sum + chain", "sum of a slice added to the others"


def along_k(chain: Chain, c: T, zero: T, instruction: Callable[[int, T], T], add: Callable[[str, T, T], T]) -> T:
    """Follow a chain along k, with any representation of an accumulator; `c` and `zero` are those of C and of +0.

    `instruction` takes the number of an instruction and an accumulator to the next one. `add` takes `SLICE` (the chains
    of a slice) or `TOTAL` (C and the slices) and two sums to their sum.
    """
    if not chain.partial:
        for number in range(chain.whole // chain.instruction.k):
            c = instruction(number, c)
        return c
    number, of_slice = 0, None
    for end, ends_slice in chain.ends if chain.whole else ():
        accumulator = zero
        while number * chain.instruction.k < end:
            accumulator = instruction(number, accumulator)
            number += 1
        of_slice = accumulator if of_slice is None else add(SLICE, of_slice, accumulator)
        if ends_slice:
            c, of_slice = add(TOTAL, c, of_slice), None
    return c


def _added(sum_of: str, first: int, second: int) -> ChainLink:
    """Add two sums in f32, to nearest even."""
    numbers = _F32.unpack(first), _F32.unpack(second)
    addends = tuple(
        Addend(source=source, number=number, kept=number)
        for source, number in zip(("accumulator", "chain"), numbers, strict=True)
    )
    return ChainLink(name=sum_of, k=range(0), steps=(rounded_step("add", (14,), addends, _F32),))
