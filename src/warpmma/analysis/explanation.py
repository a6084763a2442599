"""What an explanation holds: how one element of D came about, and how far it is from the exact result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from .. import _views
from .._records import Record, Shown
from ..arithmetic import Evidence, Recipe, SumStep, as_fraction, library_note
from ..formats import FORMATS, FloatFormat
from ..products import ChainInstruction, Float32
from .rationals import ulp_at


@dataclass(frozen=True, kw_only=True)
class ChainLink(Record):
    """One link of the chain that makes an element: an instruction, or an addition of partial sums.

    Attributes
    ----------
    name : str
        What it does, in a few words: the mnemonic, or such as "promotion: sum + accumulator".
    k : range
        Which members of the explanation's `a` and `b` it multiplies; empty for an addition. Product i of its steps is
        that of `a[k.start + i]` and `b[k.start + i]`.
    steps : tuple of SumStep
    weight : Fraction, optional
        What its losses count for in the result: 1, and before a tensor scale that scale, None if it is not finite.
    """

    name: str
    k: range
    steps: tuple[SumStep, ...]
    weight: Fraction | None = Fraction(1)


@dataclass(frozen=True, kw_only=True)
class Parting(Shown):
    """The first step in which two targets part.

    Attributes
    ----------
    link, step : int
        Of the first explanation: which link, and which of its steps.
    reason : str
        One sentence: other products in a step, more bits kept, another rounding.
    """

    link: int
    step: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Explanation(Record):
    """How one element of D came about on a target.

    Attributes
    ----------
    instruction : Instruction, WarpgroupInstruction or FloatFma
    target : str
    row, column, matrix : int
        Of the element; `matrix` is 0 but for m8n8k4 of f16.
    a, b : tuple of int
        Codes that were multiplied, as many of each: of a sparse A what is stored, and what it meets of B. Where the
        matrices end before an instruction does, the last are padding, +0.
    positions : tuple of int
        Which column of A, and row of B, each stands at: 0, 1, 2, ... but for a sparse A. Padding stands beyond them.
    scale_a, scale_b : tuple of int
        Codes of the block scales of the row and the column; empty without.
    c : int
        Code of the element of C.
    recipe : Recipe
    evidence : Evidence
    links : tuple of ChainLink
    format : str
        Of the result.
    result : int
        Its code: what `execute` and `matmul` give.
    exact : Fraction, optional
        The exact result of the same codes; None where it is NaN or infinite.
    bound : Fraction, optional
        What the magnitude of the error cannot exceed, known from the magnitudes of the operands alone:
        docs/specification/bounds.md. None where a result may be infinite, or an integer may wrap.
    others : tuple of Explanation
        The same on other targets.
    partings : tuple of (Parting or None)
        For each of these, where the two first differ; None where they do not.
    float32 : {"ieee", "tf32", "tf32-truncated"} or None
        How float32 was multiplied; None of other types. With "tf32" `a` and `b` are rounded: that is no error here.
    site : str
        Of an `mma` in a kernel, where that is, which warp executed it, and when; else empty.
    """

    instruction: ChainInstruction
    target: str
    row: int
    column: int
    matrix: int = 0
    a: tuple[int, ...]
    b: tuple[int, ...]
    positions: tuple[int, ...]
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()
    c: int
    recipe: Recipe
    evidence: Evidence
    links: tuple[ChainLink, ...]
    format: str
    result: int
    exact: Fraction | None
    bound: Fraction | None
    others: tuple[Explanation, ...] = ()
    partings: tuple[Parting | None, ...] = ()
    float32: Float32 | None = None
    site: str = ""

    @property
    def note(self) -> str:
        """What libraries use on the target in place of the instruction, if its sums may have other bits; else empty."""
        return "" if self.site else library_note(self.instruction, self.target)

    @property
    def against(self) -> Explanation | None:
        """The first of `others`, if there is one."""
        return self.others[0] if self.others else None

    @property
    def parting(self) -> Parting | None:
        """Where it and `against` first differ."""
        return self.partings[0] if self.partings else None

    @cached_property
    def steps(self) -> tuple[SumStep, ...]:
        """Steps of all links."""
        return tuple(step for link in self.links for step in link.steps)

    @property
    def value(self) -> Fraction | None:
        """The result as a rational number; None for NaN and infinity."""
        fmt = FORMATS[self.format]
        return (
            as_fraction(fmt.unpack(self.result)) if isinstance(fmt, FloatFormat) else Fraction(fmt.unpack(self.result))
        )

    @property
    def error(self) -> Fraction | None:
        """The result less the exact one; None where either is not finite."""
        return None if self.value is None or self.exact is None else self.value - self.exact

    @property
    def lost(self) -> Fraction | None:
        """All that the steps lost: `-error`, by another way."""
        total = Fraction(0)
        for link in self.links:
            for step in link.steps:
                loss = step.lost
                if loss is None or link.weight is None:
                    return None
                total += loss * link.weight
        return total

    @property
    def ulps(self) -> Fraction | None:
        """Magnitude of the error in ulps of the result's format at the exact result; None where there is no error.

        An ulp is 2^(e - fraction bits), where e is the exponent of the exact result's leading bit, and at least that
        of the format's least normal number; of integers it is 1. A result that is the exact one, correctly rounded, is
        at most half an ulp from it.
        """
        if self.error is None or self.exact is None:
            return None
        return abs(self.error) / ulp_at(FORMATS[self.format], self.exact)

    @property
    def ignored(self) -> Fraction:
        """What bits that the instruction ignores would have added to the exact result: of f32 given as tf32.

        0 where that is nothing, or not finite.
        """
        if "tf32" not in (self.recipe.a, self.recipe.b):
            return Fraction(0)
        whole, used = (
            [[as_fraction(FORMATS[name].unpack(code)) for code in codes] for codes in (self.a, self.b)]
            for name in ("f32", "tf32")
        )
        sums = [
            sum((x * y for x, y in zip(*rows, strict=True) if x is not None and y is not None), Fraction(0))
            for rows in (whole, used)
        ]
        return sums[0] - sums[1]

    def __str__(self) -> str:
        return self.text()

    def text(self, *, whole: bool = False, mark: Callable[[str, str], str] | None = None, width: int = 118) -> str:
        """Write it as tables.

        Parameters
        ----------
        whole : bool
            Show all steps and all products; otherwise long chains are folded: the ends are shown, and what lost most.
        mark : callable, optional
            Makes of a kind ("heading", "dim", "kept" bits, "cut" bits) and a text what is written for it: colours.
        width : int
            Columns that there are, at least 60.
        """
        return _views.view(self, "text", whole, mark, width)

    def json(self) -> str:
        """Write it as a JSON document; rational numbers as strings such as "-3/8"."""
        return _views.view(self, "json")

    def svg(self, theme: str = "auto") -> str:
        """Draw its bits, aligned, with what was cut in another colour.

        Parameters
        ----------
        theme : {"auto", "light", "dark"}
        """
        return _views.view(self, "svg", theme)
