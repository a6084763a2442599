"""What an explanation holds: how one element of D came about, and how far it is from the exact result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from .. import _views
from .._records import Record
from ..arithmetic import Evidence, Recipe, SumStep
from ..isa import AnyInstruction

__all__ = ["ChainLink", "Explanation", "Parting"]


@dataclass(frozen=True, kw_only=True)
class ChainLink(Record):
    """One link of the chain that makes an element: an instruction, or an addition of partial sums.

    Attributes
    ----------
    name : str
        What it does, in a few words: the mnemonic, or such as "promotion: sum + accumulator".
    k : range
        Which values of the whole product's k it takes; empty for an addition. Products of its steps are counted from
        `k.start`.
    steps : tuple of SumStep
    """

    name: str
    k: range
    steps: tuple[SumStep, ...]


@dataclass(frozen=True, kw_only=True)
class Parting:
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
    instruction : Instruction or WarpgroupInstruction
    target : str
    row, column, matrix : int
        Of the element; `matrix` is 0 but for m8n8k4 of f16.
    a, b : tuple of int
        Codes that were multiplied, k of each: of a sparse A what is stored, and what it meets of B.
    positions : tuple of int
        Which column of A, and row of B, each stands at: 0, 1, 2, ... but for a sparse A.
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
        An a priori bound of the error: docs/specification/bounds.md. None where it says nothing.
    against : Explanation, optional
        The same on another target.
    parting : Parting, optional
        Where the two part; None where they do not.
    """

    instruction: AnyInstruction
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
    against: Explanation | None = None
    parting: Parting | None = None

    @cached_property
    def steps(self) -> tuple[SumStep, ...]:
        """Steps of all links."""
        return tuple(step for link in self.links for step in link.steps)

    @property
    def value(self) -> Fraction | None:
        """The result as a rational number; None for NaN and infinity."""
        return self.steps[-1].value

    @property
    def error(self) -> Fraction | None:
        """The result less the exact one; None where either is not finite."""
        return None if self.value is None or self.exact is None else self.value - self.exact

    @property
    def lost(self) -> Fraction | None:
        """All that the steps lost: `-error`, by another way."""
        losses = [step.lost for step in self.steps]
        known = [loss for loss in losses if loss is not None]
        return sum(known, Fraction(0)) if len(known) == len(losses) else None

    def text(self, *, whole: bool = False, mark: Callable[[str, str], str] | None = None) -> str:
        """Write it as tables of fewer than 120 columns.

        Parameters
        ----------
        whole : bool
            Show all steps and all products; otherwise long chains are folded: the ends are shown, and what lost most.
        mark : callable, optional
            Makes of a kind ("heading", "dim", "kept" bits, "cut" bits) and a text what is written for it: colours.
        """
        return _views.view(self, "text", whole, mark)

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
