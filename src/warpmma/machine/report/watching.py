"""Watching the matrix unit: operands and results of `mma` that a launch keeps, to be explained.

1. A launch with a `Watch` keeps the operands and results of each `mma` that matches it; without one it keeps nothing.
2. Executions are counted for each site, block and warp from 0, whether they are kept or not: these are a loop's
   iterations.
3. A launch keeps the first `most` of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from ..._arguments import is_integer
from ..._arrays import Array, frozen
from ..._records import Shown
from ...errors import OperandError, shown
from ...isa import Instruction
from ..base import Site


@dataclass(frozen=True, kw_only=True)
class Watch(Shown):
    """The executions of `mma` that a launch keeps; None matches all.

    Attributes
    ----------
    line : int, optional
        Of the kernel in Python, of the PTX text, or of the source that the text names (`.loc`).
    mnemonic : str, optional
        Part of the mnemonic.
    block, warp : int, optional
        The block's number in the grid, the warp's in its block.
    occurrence : int, optional
        How often the warp executed the line before.
    most : int
        The most executions that are kept.

    Raises
    ------
    OperandError
        A field that is not an integer from 0, or a mnemonic that is not a string.
    """

    line: int | None = None
    mnemonic: str | None = None
    block: int | None = None
    warp: int | None = None
    occurrence: int | None = None
    most: int = 4096

    def __post_init__(self) -> None:
        for name in ("line", "block", "warp", "occurrence", "most"):
            value = getattr(self, name)
            if not (value is None and name != "most") and not (is_integer(value) and value >= 0):
                raise OperandError(f"watch: {name} is {shown(value)}; expected a number from 0 on")
        if self.mnemonic is not None and not isinstance(self.mnemonic, str):
            raise OperandError(f"watch: mnemonic is {shown(self.mnemonic)}; expected a part of one, such as 'm16n8k16'")

    def fits(self, site: Site) -> bool:
        """Whether a site is watched."""
        if self.mnemonic is not None and self.mnemonic not in site.mnemonic:
            return False
        return self.line is None or self.line in lines_of(site)


def lines_of(site: Site) -> tuple[int, ...]:
    """Return the lines of a site: in the source, and in the text that was compiled from it."""
    number = site.text.rsplit(":", 2)[-2:-1]
    return (site.line, *(int(x) for x in number if x.isdigit()))


@dataclass(frozen=True, kw_only=True, eq=False)
class WatchedProduct(Shown):
    """The operands and results of one execution of an `mma` by one warp.

    Attributes
    ----------
    site : Site
    instruction : Instruction
    target : str
    block, warp : int
    occurrence : int
        How often the warp executed the site before.
    registers : mapping from str to ndarray
        "A", "B", "C" and "D", `[register, 32]`; "metadata", "scale_a", "scale_b", `[32]`, where it has them.
    numbers : mapping from str to int
        "selector", "byte_id_a" and so on.
    """

    site: Site
    instruction: Instruction
    target: str
    block: int
    warp: int
    occurrence: int
    registers: Mapping[str, Array] = field(repr=False)
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def lines(self) -> tuple[int, ...]:
        """Its lines: in the source, and in the text that was compiled from it."""
        return lines_of(self.site)

    @property
    def place(self) -> str:
        """Where, by which warp and when: "gemm.py:31, block 0, warp 1, occurrence 3"."""
        return f"{self.site.place}, block {self.block}, warp {self.warp}, occurrence {self.occurrence}"


class Watching:
    """Keeps executions for a launch, whose batches report every `mma`."""

    def __init__(self, watch: Watch) -> None:
        if not isinstance(watch, Watch):
            raise OperandError(f"watch is {shown(watch)}; expected a Watch, such as Watch(line=31, block=0, warp=1)")
        self._watch = watch
        self.kept: list[WatchedProduct] = []
        self._counts: dict[tuple[Site, int, int], int] = {}

    def see(
        self, site: Site, row: Instruction, target: str, blocks: Sequence[int], some: Array,
        registers: Mapping[str, Array], numbers: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Keep one execution, if it is watched.

        Parameters
        ----------
        site, row, target
        blocks : sequence of int
            Numbers in the grid of those of the batch.
        some : ndarray of bool
            `[block, warp]`: the warps that execute it.
        registers : mapping from str to ndarray
            `[block, warp, ...]`.
        """
        watch = self._watch
        if not watch.fits(site):
            return
        for b, w in np.argwhere(some).tolist():
            block = blocks[b]
            if watch.block not in (None, block) or watch.warp not in (None, w):
                continue
            turn = self._counts.get((site, block, w), 0)
            self._counts[site, block, w] = turn + 1
            if watch.occurrence in (None, turn) and len(self.kept) < watch.most:
                kept = {name: frozen(x[b, w]) for name, x in registers.items()}
                plain = {name: int(x) for name, x in numbers.items()}
                product = WatchedProduct(
                    site=site, instruction=row, target=target, block=block, warp=w, occurrence=turn,
                    registers=MappingProxyType(kept), numbers=MappingProxyType(plain),
                )  # fmt: skip
                self.kept.append(product)
