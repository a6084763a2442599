"""The scene of an explanation: all that its pictures and tables show, already written as text.

`scene_of` reads an `Explanation`; the renderers of text, SVG and HTML read the scene alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from ..._records import Record
from ..._text import counted
from ...analysis import Explanation, FirstDifference
from ...arithmetic import Addend, Evidence
from ...formats import FORMATS, FloatFormat, Number
from ...products import FLOAT32
from .aligned_bits import BitGrid, BitRow, grid_of
from .exact_text import code_text, in_ulps, number_of, number_text, rational_of, short
from .shown_steps import Item, PlacedStep, chosen_addends, parted, placed
from .step_words import (
    aligned_text,
    chain_text,
    heading,
    how,
    label,
    link_text,
    listed,
    outcome_text,
    rounding_text,
    run_text,
)

_CHAINS = ("fma", "multiply", "add", "convert")  # operations whose steps have few addends: a row for each step
CHAIN_HEAD = ("step", "", "k", "a", "", "b", "", "product", "+", "result", "code", "rounded off")
_HEAD = ("k", "column", "a", "", "b", "", "scales", "product", "exponent", "cut")
_PRODUCT = _HEAD.index("product")


@dataclass(frozen=True)
class Figure(Record):
    """A number, written for people and for programs."""

    number: Number | Fraction

    @cached_property
    def text(self) -> str:
        """For people."""
        return short(self.number) if isinstance(self.number, Fraction) else number_text(self.number)

    @cached_property
    def exact(self) -> str:
        """For programs."""
        return str(self.number) if isinstance(self.number, Fraction) else rational_of(self.number)


class Factors(NamedTuple):
    """The operands of a product: k, the column of a sparse A, values and codes of A and B, and their block scales."""

    k: int
    column: str
    a: str
    a_code: str
    b: str
    b_code: str
    scales: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AddendRow(Record):
    """An addend of a step: `k` are those of its products, in the whole product; `code` is C's."""

    index: int
    source: str
    label: str
    code: str
    k: tuple[int, ...]
    nominal: int | None
    exponent: str
    value: Figure
    kept: Figure
    lost: Figure | None
    factors: tuple[Factors, ...]
    bits: BitRow | None

    @property
    def product(self) -> Factors | None:
        """Its operands, if it is a single product."""
        return self.factors[0] if self.source == "product" and len(self.factors) == 1 else None

    @property
    def scales(self) -> tuple[str, ...]:
        """The block scales of its operands."""
        return self.factors[0].scales if self.factors else ()

    @property
    def cut(self) -> str:
        """The truncated part, for people; empty if there is none."""
        return self.lost.text if self.lost and self.lost.number else ""

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of a table."""
        operands = self.product[1:6] if self.product else ("",) * 5
        name = f"{self.label} {self.code[2:]}" if self.code else self.label
        return (name, *operands, " x ".join(self.scales), self.value.text, self.exponent, self.cut)


@dataclass(frozen=True, kw_only=True)
class SumRow(Record):
    """The sum of a step, or its result, which has a code."""

    name: str
    value: Figure
    code: str = ""
    bits: BitRow | None


class CountedAddends(NamedTuple):
    """Addends that are not shown: how many, their sum, what was cut of it, and their k."""

    number: int
    value: str
    cut: str
    k: str


@dataclass(frozen=True, kw_only=True)
class StepScene(Record):
    """A step that is shown.

    `number` counts all steps, `link` is the number of its link. `ones` are the name and bits of A, B and their
    combination, k ascending from `first_k`. A step of few addends has a `chain_name`, and `chain_cells` are its row
    under `CHAIN_HEAD`; other steps have a `table` of their own.
    """

    number: int
    link: int
    operation: str
    heading: str
    link_text: str
    aligned: str
    rounded: str
    outcome: str
    addends: tuple[AddendRow, ...]
    zeros: str
    others: CountedAddends | None
    grid: BitGrid
    sum: SumRow
    result: SumRow
    rounded_off: Figure | None
    ones: tuple[tuple[str, str], ...]
    first_k: int
    chain_name: str

    @property
    def chain_cells(self) -> tuple[str, ...]:
        """Its row in a table of steps."""
        first, *rest = sorted(self.addends, key=lambda x: x.source != "product")
        return (
            str(self.number + 1), self.chain_name, first.label if first.source == "product" else "", *first.cells[2:6],
            first.value.text, rest[0].value.text if rest else "", self.result.value.text, self.result.code,
            self.rounded_off.text if self.rounded_off and self.rounded_off.number else "",
        )  # fmt: skip

    @property
    def table(self) -> list[tuple[str, ...]]:
        """Its rows: the heading, addends, sum and result; columns without contents are left out."""
        rows = [row.cells for row in self.addends]
        used = [i for i in range(len(_HEAD)) if i in (0, _PRODUCT) or any(row[i] for row in rows)]
        blank = [""] * (len(_HEAD) - 1)
        ends = [(x.name, *blank[: _PRODUCT - 1], x.value.text, *blank[_PRODUCT:]) for x in (self.sum, self.result)]
        return [tuple(row[i] for i in used) for row in (_HEAD, *rows, *ends)]

    def lines_of_ones(self, length: int) -> list[tuple[int, str, str]]:
        """Return its bits in lines of a length: the first k, whose bits they are, and the bits."""
        starts = range(0, len(self.ones[-1][1]), length)
        return [(self.first_k + i, name, bits[i : i + length]) for i in starts for name, bits in self.ones]

    @property
    def ends(self) -> tuple[tuple[str, Figure], ...]:
        """Rows below the bits: addends that are not products, the sum and the result."""
        plain = tuple((x.source, x.value) for x in self.addends if x.source != "product")
        return (*plain, ("sum", self.sum.value), ("result", self.result.value))


class Comparison(NamedTuple):
    """Another target, and the first step in which it differs: its number, and all of it."""

    scene: Scene
    parting: FirstDifference | None
    number: int | None


@dataclass(frozen=True, kw_only=True)
class Scene(Record):
    """The part of an explanation about one target.

    `result` is its code. `summary` has the result, the error, losses and the bound as name, value and remark, `outcome`
    in a sentence. `reading` says how float32 was read, if that lost something. `total` counts all steps; `items` are
    the steps that are shown, and sentences about those between.
    """

    instruction: str
    target: str
    site: str
    how: str
    chain: str
    note: str
    reading: str
    row: int
    column: int
    matrix: int
    evidence: Evidence
    result: str
    summary: tuple[tuple[str, str, str], ...]
    outcome: str
    total: int
    items: tuple[StepScene | str, ...]
    others: tuple[Comparison, ...] = ()

    @property
    def place(self) -> str:
        """The element: "D[0, 3]"."""
        return f"D[{self.row}, {self.column}]"

    @property
    def whole_place(self) -> str:
        """The same, with the number of its matrix."""
        return f"{self.place} of matrix {self.matrix}" if self.matrix else self.place

    @property
    def steps(self) -> tuple[StepScene, ...]:
        """The steps that are shown."""
        return tuple(x for x in self.items if isinstance(x, StepScene))

    def beside(self, other: Scene) -> list[tuple[str, ...]]:
        """Return the rows of two summaries side by side."""
        rows = zip(self.summary, other.summary, strict=True)
        return [("", self.target, "", other.target, ""), *((*mine, *theirs[1:]) for mine, theirs in rows)]


# From an explanation


def scene_of(explanation: Explanation, shown: Sequence[Sequence[Item]], whole: bool = False) -> Scene:
    """Write an explanation: the steps that are shown of it and of each other target, or all addends of a step."""
    x, (items, *theirs) = explanation, shown
    steps = placed(x)
    value = Figure(number_of(x.result, x.format))
    others = tuple(
        Comparison(scene_of(other, [chosen], whole), parting, each.number if each is not None else None)
        for other, chosen, parting in zip(x.others, theirs, x.partings, strict=True)
        for each in [parted(steps, parting)]
    )
    lossy = x.float32 is not None and FLOAT32[x.float32].rounded
    return Scene(
        instruction=str(x.instruction), target=x.target, site=x.site, how=how(x.recipe), chain=chain_text(x),
        note=x.note,
        reading=f"{FLOAT32[x.float32].meaning}; what that lost does not count here" if x.float32 and lossy else "",
        row=x.row, column=x.column, matrix=x.matrix, evidence=x.evidence, result=code_text(x.result, x.format),
        summary=_summary(x, value), outcome=_outcome(x, value), total=len(steps),
        items=tuple(_step(x, each, whole) if isinstance(each, PlacedStep) else run_text(each) for each in items),
        others=others,
    )  # fmt: skip


def _figure(number: Number | Fraction | None) -> Figure | None:
    return None if number is None else Figure(number)


def _step(explanation: Explanation, each: PlacedStep, whole: bool) -> StepScene:
    step, grid = each.step, grid_of(each.step)
    in_chain = step.operation in _CHAINS
    shown, none, others = chosen_addends(step, whole or in_chain)
    addends = tuple(_addend(explanation, each, i, grid) for i in shown)
    zeros = f"{counted(len(none), 'product')} are zero: k {_reach(each, none)}" if none else ""
    code = code_text(step.result, step.format)
    return StepScene(
        number=each.number, link=each.link, operation=step.operation, heading=heading(each, len(explanation.steps)),
        link_text=link_text(each, len(explanation.links)), aligned=aligned_text(each), rounded=rounding_text(each),
        outcome=outcome_text(each), addends=addends, zeros=zeros, others=_counted(each, others), grid=grid,
        sum=SumRow(name="sum", value=Figure(step.sum), bits=grid.sum),
        result=SumRow(name="result", value=Figure(step.number), code=code, bits=grid.result),
        rounded_off=_figure(step.rounded_off), ones=_ones(explanation, each), first_k=each.chain.k.start,
        chain_name=_chain_name(each, addends) if in_chain else "",
    )  # fmt: skip


def _addend(explanation: Explanation, each: PlacedStep, index: int, grid: BitGrid) -> AddendRow:
    addend = each.step.addends[index]
    number, factors = addend.number, _factors(explanation, each, addend)
    meant = addend.nominal is not None and number.kind == "finite" and (number.significand or factors)
    return AddendRow(
        index=index, source=addend.source, label=label(each, addend),
        code=code_text(explanation.c, explanation.recipe.c) if addend.source == "C" and each.link == 0 else "",
        k=tuple(each.chain.k.start + p for p in addend.products), nominal=addend.nominal,
        exponent=str(addend.nominal) if meant else "", value=Figure(number), kept=Figure(addend.kept),
        lost=_figure(addend.lost), factors=factors, bits=grid.addends[index],
    )  # fmt: skip


def _factors(explanation: Explanation, each: PlacedStep, addend: Addend) -> tuple[Factors, ...]:
    """Find the operands of an addend's products; padding of k has none."""
    found, count, recipe = [], len(explanation.a), explanation.recipe
    for k in (each.chain.k.start + p for p in addend.products):
        if k < count:
            a, b = explanation.a[k], explanation.b[k]
            both = (explanation.scale_a, explanation.scale_b)
            scales = [
                _unpacked(codes[k * len(codes) // count], recipe.scale) for codes in both if codes and recipe.scale
            ]
            column = str(explanation.positions[k] if explanation.positions else k)
            found.append(Factors(
                k, column if explanation.instruction.sparse else "", _unpacked(a, recipe.a), code_text(a, recipe.a),
                _unpacked(b, recipe.b), code_text(b, recipe.b), tuple(scales) if len(scales) == 2 else (),
            ))  # fmt: skip
    return tuple(found)


def _unpacked(code: int, fmt: str) -> str:
    """Write the value of a code in 6 digits, because its code is beside it."""
    return number_text(number_of(code, fmt), 6)


def _reach(each: PlacedStep, indices: Sequence[int]) -> str:
    return listed(sorted(each.chain.k.start + p for i in indices for p in each.step.addends[i].products))


def _counted(each: PlacedStep, indices: Sequence[int]) -> CountedAddends | None:
    addends = [each.step.addends[i] for i in indices]
    value, cut = (
        sum((x for x in parts if x is not None), Fraction(0))
        for parts in ([x.value for x in addends], [x.lost for x in addends])
    )
    return CountedAddends(len(indices), short(value), short(cut), _reach(each, indices)) if indices else None


def _ones(explanation: Explanation, each: PlacedStep) -> tuple[tuple[str, str], ...]:
    if each.step.operation != "popcount":
        return ()
    products = [x for x in each.step.addends if x.source == "product"]
    k = [k for x in products for p in x.products if (k := each.chain.k.start + p) < len(explanation.a)]
    a, b = ("".join(str(codes[i]) for i in k) for codes in (explanation.a, explanation.b))
    made = "".join(str(x.number.significand) for x in products)
    return ("A", a), ("B", b), (getattr(explanation.recipe.unit, "operation", ""), made)


def _chain_name(each: PlacedStep, addends: Sequence[AddendRow]) -> str:
    if not len(each.chain.k):
        return each.chain.name
    if any(x.source == "product" for x in addends):
        return each.step.operation
    return f"{each.step.operation} {' + '.join(x.label.removesuffix(' before') for x in addends)}"


# The outcome


def totals_of(x: Explanation) -> dict[str, Fraction | None]:
    """Return the exact result, the error, losses and the bound; None for what is not finite."""
    steps = [(step, link.weight) for link in x.links for step in link.steps]
    cut = _total((addend.lost, weight) for step, weight in steps for addend in step.addends)
    off = _total((step.rounded_off, weight) for step, weight in steps)
    return {
        "exact": x.exact, "error": x.error, "ulps": in_ulps(x.error, x.exact, x.format),
        "lost": None if cut is None or off is None else cut + off, "cut": cut, "rounded_off": off, "bound": x.bound,
    }  # fmt: skip


def _total(parts: Iterable[tuple[Fraction | None, Fraction | None]]) -> Fraction | None:
    """Add losses, each with its weight; None where something is not finite."""
    total = Fraction(0)
    for loss, weight in parts:
        if loss is None or weight is None:
            return None
        total = total + loss * weight if loss else total
    return total


def _ulps_text(error: Fraction | None, x: Explanation) -> str:
    """Write an error in ulps of the result's format: "-0.5 ulp of f32"; nothing for integers."""
    ulps = in_ulps(error, x.exact, x.format) if isinstance(FORMATS[x.format], FloatFormat) else None
    return "" if ulps is None else f"{float(ulps):.{4 if abs(ulps) < 1000 else 6}g} ulp of {x.format}"


def _summary(x: Explanation, value: Figure) -> tuple[tuple[str, str, str], ...]:
    totals = totals_of(x)

    def row(name: str, total: str, none: str) -> tuple[str, str, str]:
        number = totals[total]
        return name, none if number is None else short(number), _ulps_text(number, x) if total != "exact" else ""

    ignored = x.ignored
    return (
        ("result", value.text, code_text(x.result, x.format)),
        row("exact", "exact", "not finite"), row("error", "error", "none: not finite"),
        row("cut by truncation", "cut", "not finite"), row("rounded off", "rounded_off", "not finite"),
        row("lost in all", "lost", "not finite"), row("bound of the error", "bound", "none"),
        *(("ignored bits", short(ignored), "of f32 operands, which tf32 has not"),) * bool(ignored),
    )  # fmt: skip


def _outcome(x: Explanation, value: Figure) -> str:
    words = f"result {value.text} ({code_text(x.result, x.format)})"
    if x.exact is not None:
        words += f"; exact {short(x.exact)}"
    if x.error is not None:
        words += f"; error {_ulps_text(x.error, x) or short(x.error)}"
    return words
