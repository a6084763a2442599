"""Unpredicted results: places where it is unknown whether a GPU has these bits or others, and where that matters.

For each place the report has how often a lane had bits to compare, how often they differed, and the first lane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...formats import FORMATS, FloatFormat
from ..base import Site
from ..program import Alternative


@dataclass(frozen=True, kw_only=True)
class Unpredicted(Shown):
    """A place where a GPU may have other bits.

    Attributes
    ----------
    site : Site
    line, column : int
        Position of the instruction in the text.
    type : str
        PTX type of the result.
    lanes : int
        How often the bits of a lane would differ.
    executions : int
        How often a lane executed it with other bits to compare.
    block, warp, lane : int
        The first lane whose bits would differ: block of the grid (linear), warp of the block.
    bits, other : int
        Its result here, and the other result.
    """

    site: Site
    line: int
    column: int
    type: str
    lanes: int = 0
    executions: int = 0
    block: int = 0
    warp: int = 0
    lane: int = 0
    bits: int = 0
    other: int = 0

    def __str__(self) -> str:
        return (
            f"{self.site}: other bits in {self.lanes:,} of {self.executions:,} executions by lanes; first in "
            f"block {self.block}, warp {self.warp}, lane {self.lane}: {self.value} here, {self.other_value} otherwise"
        )

    @property
    def value(self) -> str:
        """The result here, as bits and numbers."""
        return _written(self.type, self.bits)

    @property
    def other_value(self) -> str:
        """The other result, as bits and numbers."""
        return _written(self.type, self.other)


def _written(type_: str, bits: int) -> str:
    packed = type_.endswith("x2")
    fmt = cast(FloatFormat, FORMATS[type_.removesuffix("x2")])
    codes = [bits & fmt.mask, bits >> fmt.bits] if packed else [bits]
    digits = 17 if type_ == "f64" else 9
    values = ", ".join(f"{x:.{digits}g}" for x in fmt.decode(np.array(codes, fmt.code_dtype)).tolist())
    return f"0x{bits:0{fmt.bits * len(codes) // 4}x} ({values})"


class Comparisons:
    """The comparisons of a launch, by line and column of the text."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, int], Unpredicted] = {}
        self._counts: dict[tuple[int, int], list[int]] = {}

    @property
    def differing(self) -> tuple[Unpredicted, ...]:
        """Places where bits differed, in the order of the text."""
        return tuple(
            replace(self._first[key], lanes=self._counts[key][0], executions=self._counts[key][1])
            for key in sorted(self._first)
        )

    def count(
        self, step: Alternative, number: Callable[[int], int], looked: Array, differs: Array, bits: tuple[Array, Array]
    ) -> None:  # fmt: skip
        """Count lanes `[block, warp, lane]` that were compared and those that differ; `bits` are both results.

        `number` returns the number of a block in the grid, by its place.
        """
        key, lanes = (step.line, step.column), int(np.count_nonzero(differs))
        counts = self._counts.setdefault(key, [0, 0])
        counts[0] += lanes
        counts[1] += int(np.count_nonzero(looked))
        if lanes and key not in self._first:
            block, warp, lane = at = tuple(int(x) for x in np.argwhere(differs)[0])
            here, other = (int(np.broadcast_to(x, differs.shape)[at]) for x in bits)
            self._first[key] = Unpredicted(
                site=step.site, line=step.line, column=step.column, type=step.type, block=number(block),
                warp=warp, lane=lane, bits=here, other=other,
            )  # fmt: skip
