"""What a campaign compares, in pieces of work, and what a piece finds for one instruction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from ..._records import Shown
from .rooms import Room

__all__ = ["ComparedGroup", "Found", "LaneDifference", "MatrixDifference", "PlaceDifference", "Refused"]


@dataclass(frozen=True, kw_only=True)
class MatrixDifference(Shown):
    """One output of a matrix instruction that differs: operands and results as codes.

    Attributes
    ----------
    a, b : tuple of int
        A row of A, and the elements of B that they meet; of a sparse A of what is stored.
    c, gpu, model : int
    rows : tuple of int or None
        Of B, that stored elements of A meet.
    scale_a, scale_b : tuple of int or None
    style : str
        Of the operands.
    variant : str
        Immediate operands.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    gpu: int
    model: int
    rows: tuple[int, ...] | None = None
    scale_a: tuple[int, ...] | None = None
    scale_b: tuple[int, ...] | None = None
    style: str = ""
    variant: str = ""

    def facts(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class LaneDifference(Shown):
    """A lane of an operation that differs: inputs, and outputs of the GPU and of the model, as codes."""

    immediates: tuple[int, ...]
    given: tuple[int, ...]
    gpu: tuple[int, ...]
    model: tuple[int, ...]

    def facts(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class PlaceDifference(LaneDifference):
    """An element of an array that a kernel wrote and that differs.

    `array` is its name, `immediates` its place, which begins with the block; `given` has the operands there, if an
    operand belongs to each place.
    """

    array: str


@dataclass(frozen=True, kw_only=True)
class Found(Shown):
    """Outputs of one instruction.

    Attributes
    ----------
    outputs, differences : int
    sampled, wrong : int
        Expected results that the CPU engine computed as well, and those that differ.
    first : MatrixDifference, LaneDifference or None
    """

    outputs: int
    differences: int
    sampled: int = 0
    wrong: int = 0
    first: MatrixDifference | LaneDifference | None = None


@dataclass(frozen=True, kw_only=True)
class Refused(Shown):
    """Why an instruction cannot be compared."""

    why: str


class ComparedGroup(Protocol):
    """Comparisons that share their operands."""

    @property
    def kind(self) -> str:
        """Under which the report has its counts."""

    @property
    def names(self) -> Sequence[str]:
        """Its instructions."""

    def wanted(self, outputs: int) -> int:
        """Return how many outputs of each there should be."""

    def run(self, room: Room, number: int, done: int) -> Iterator[tuple[str, Found | Refused]]:
        """Do piece of work `number`, after so many outputs."""
