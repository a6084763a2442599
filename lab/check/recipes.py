"""Dot products of every recipe, in every style, explained and compared with the engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.generators import operands, styles
from warpmma.analysis.chain_of_element import ElementCodes, exact_result, links
from warpmma.analysis.element_bounds import element_bound
from warpmma.arithmetic import Recipe, as_fraction, compute, engines, product, recipe
from warpmma.formats import FloatFormat
from warpmma.isa import MatrixInstruction, instructions, warpgroup_instructions
from warpmma.products import Chain, Operands, Product

__all__ = ["Case", "Faults", "cases", "examined", "recipe_faults"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A recipe, and instructions with targets that have it: one for each k and number of scales."""

    recipe: Recipe
    uses: tuple[tuple[MatrixInstruction, str], ...]

    def __str__(self) -> str:
        instruction, target = self.uses[0]
        return f"{target} {instruction}"


@dataclass
class Faults:
    """Results: numbers of rows, finite errors, bounds and bounds of 0; the largest ratio of error to bound."""

    rows: int = 0
    finite: int = 0
    bounded: int = 0
    exact: int = 0
    tightest: Fraction = Fraction(0)
    faults: list[str] = field(default_factory=list)

    def add(self, found: Faults) -> None:
        """Add other results."""
        self.rows += found.rows
        self.finite += found.finite
        self.bounded += found.bounded
        self.exact += found.exact
        self.tightest = max(self.tightest, found.tightest)
        self.faults += found.faults


def cases() -> list[Case]:
    """List every recipe once."""
    found: dict[Recipe, dict[tuple[int, int], tuple[MatrixInstruction, str]]] = {}
    every: list[MatrixInstruction] = [*instructions(), *warpgroup_instructions()]
    for instruction in every:
        for target in instruction.targets:
            uses = found.setdefault(recipe(instruction, target), {})
            uses.setdefault((stored(instruction), instruction.scales_per_row), (instruction, target))
    return [Case(how, tuple(uses.values())) for how, uses in found.items()]


def stored(instruction: MatrixInstruction) -> int:
    """Products of a row."""
    return instruction.k // 2 if instruction.sparse else instruction.k


def recipe_faults(case: Case, rows: int, seed: int) -> Faults:
    """Draw dot products of a recipe, explain each, and compare."""
    found, names = Faults(), list(styles(case.recipe))
    shares = [(use, style) for use in case.uses for style in names]
    for number, (use, style) in enumerate(shares):
        count = rows // len(shares) + (number < rows % len(shares))
        if count:
            for element, bits in _drawn(case.recipe, use, style, count, np.random.default_rng([seed, number])):
                found.rows += 1
                fault = examined(element, bits, found)
                if fault:
                    found.faults.append(f"{use[1]} {use[0]}, {style}: {fault}")
    return found


def _drawn(
    how: Recipe, use: tuple[MatrixInstruction, str], style: str, count: int, rng: np.random.Generator
) -> Iterator[tuple[ElementCodes, list[int]]]:
    """Draw dot products, and compute them with each engine."""
    instruction, target = use
    k, blocks = stored(instruction), instruction.scales_per_row
    given = operands(how, k, count, style, rng, blocks)
    bits = [compute(how, **given)]
    if "native" in engines() and instruction.a_type != "b1":
        turned = {name: np.ascontiguousarray(x.T) for name, x in given.items() if name != "c"}
        scale_a, scale_b = turned.get("scale_a"), turned.get("scale_b")
        made = product(
            how, turned["a"][:, None], turned["b"][:, :, None], given["c"].reshape(-1, 1, 1), k=k, engine="native",
            scale_a=None if scale_a is None else scale_a[:, None], scales=blocks,
            scale_b=None if scale_b is None else scale_b[:, :, None],
        )  # fmt: skip
        bits.append(made.reshape(-1))
    chain = Chain(
        instruction=instruction, recipe=how, engine="numpy", k=instruction.k, slices=(0, instruction.k)
    )  # fmt: skip
    nothing = np.zeros((1, 1, 1), np.uint8)
    whole = Product(
        chain=chain, target=target, shape=(1, 1), given=Operands(nothing, nothing), c=nothing, tensor_scales=(),
        alpha=None, epilogue=None, format=instruction.format("D"),
    )  # fmt: skip
    for j in range(count):
        codes: dict[str, Any] = {
            name: tuple(given[name][:, j].tolist()) if name in given else ()
            for name in ("a", "b", "scale_a", "scale_b")
        }
        element = ElementCodes(
            product=whole, positions=tuple(range(k)), c=int(given["c"][j]), factors=(), alpha=None, **codes
        )  # fmt: skip
        yield element, [int(x[j]) for x in bits]


def examined(element: ElementCodes, bits: list[int], found: Faults, bound: Fraction | None = None) -> str:
    """Explain an element; count it, and say what is wrong, or nothing.

    `bound` must not be below the element's own bound.
    """
    made, code = links(element)
    if any(code != each for each in bits):
        return f"the trace ends in {code:#x}, the engines give {', '.join(map(hex, bits))}: {_shown(element)}"
    fmt, exact, own = element.product.format, exact_result(element), element_bound(element)
    value = as_fraction(fmt.unpack(code)) if isinstance(fmt, FloatFormat) else Fraction(fmt.unpack(code))
    if own is not None and (value is None or exact is None):
        return f"bounded, and not finite: {_shown(element)}"
    if bound is not None and own is not None and bound < own:
        return f"a bound of {float(bound)} is below the element's own, {float(own)}: {_shown(element)}"
    if value is None or exact is None:
        return ""
    found.finite += 1
    losses = [(step.lost, link.weight) for link in made for step in link.steps]
    if any(x is None or y is None for x, y in losses):
        if element.product.epilogue is not None and fmt.name == "e4m3":  # it turns infinity into its largest number
            return ""
        return f"finite, and a loss is not: {_shown(element)}"
    if sum((x * y for x, y in losses), Fraction(0)) != exact - value:  # type: ignore[operator]
        return f"the losses are not the error: {_shown(element)}"
    if own is None:
        return ""
    found.bounded += 1
    found.exact += not own
    if abs(value - exact) > own:
        return f"an error of {float(value - exact)} exceeds its bound {float(own)}: {_shown(element)}"
    found.tightest = max(found.tightest, abs(value - exact) / own if own else Fraction(0))
    return ""


def _shown(element: ElementCodes) -> str:
    given = {name: getattr(element, name) for name in ("a", "b", "c", "scale_a", "scale_b", "factors")}
    return ", ".join(f"{name} {x}" for name, x in given.items() if x != ())
