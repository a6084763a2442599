"""Watching the matrix unit: operands and results of `mma`, `wmma.mma` and `wgmma` that a launch keeps.

1. A launch with a `Watch` keeps the operands and results of each product that matches it; without one it keeps nothing.
2. Executions are counted for each site, block and warp from 0, whether they are kept or not: these are a loop's
   iterations. A warpgroup is counted by its first warp, and matches a `Watch` of any of its four.
3. A launch keeps the first `most` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from ..._arguments import is_integer
from ..._arrays import Array, frozen
from ..._records import Shown
from ...errors import OperandError, shown
from ...isa import Instruction, WarpgroupInstruction, WmmaProduct
from ...layouts import Layout, Operand
from ...registers import WARPS
from ..base import Site


@dataclass(frozen=True, kw_only=True)
class Watch(Shown):
    """The executions of `mma`, `wmma.mma` and `wgmma` that a launch keeps; None matches all.

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
    shared : bool
        Whether the shared memory of the block is kept with each `wgmma`, too, for `warpmma.testing.guess_launch`.

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
    shared: bool = False

    def __post_init__(self) -> None:
        for name in ("line", "block", "warp", "occurrence", "most"):
            value = getattr(self, name)
            if not (value is None and name != "most") and not (is_integer(value) and value >= 0):
                raise OperandError(f"watch: {name} is {shown(value)}; expected a number from 0 on")
        if not isinstance(self.shared, bool):
            raise OperandError(f"watch: shared is {shown(self.shared)}; expected a bool")
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
class WatchedTile(Shown):
    """A matrix that a `wgmma` read in shared memory.

    Attributes
    ----------
    word : int
        The matrix descriptor, 64 bits.
    transposed : bool
        Whether it was read M-major or N-major (`imm-trans`).
    codes : ndarray
        What was read: of A `[m, k]` (stored elements of a sparse one), of B `[n, k]`; of single bits words of 32.
    """

    word: int
    transposed: bool
    codes: Array = field(repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class WatchedProduct(Shown):
    """The operands and results of one execution of a product by one warp, or of a `wgmma` by four.

    Attributes
    ----------
    site : Site
    instruction : Instruction, WmmaProduct or WarpgroupInstruction
    target : str
    block, warp : int
        Of a warpgroup its first warp.
    occurrence : int
        How often the warp executed the site before.
    registers : mapping from str to ndarray
        "A", "B", "C" and "D", `[register, 32]`, of a warpgroup `[register, 128]`; "metadata", "scale_a", "scale_b",
        `[32]` or `[128]`, where it has them. What lies in shared memory is in `tiles`.
    numbers : mapping from str to int
        "selector", "byte_id_a", of a `wgmma` "scale_d", "imm_a" and "imm_b", and so on.
    tiles : mapping from str to WatchedTile
        Operands of a `wgmma` in shared memory, "A" and "B".
    shared : ndarray of uint8, optional
        The block's shared memory when a `wgmma` was issued, if the `Watch` asks for it.
    """

    site: Site
    instruction: Instruction | WmmaProduct | WarpgroupInstruction
    target: str
    block: int
    warp: int
    occurrence: int
    registers: Mapping[str, Array] = field(repr=False)
    numbers: Mapping[str, int] = field(default_factory=dict)
    tiles: Mapping[str, WatchedTile] = field(default_factory=dict)
    shared: Array | None = field(default=None, repr=False)

    @property
    def lines(self) -> tuple[int, ...]:
        """Its lines: in the source, and in the text that was compiled from it."""
        return lines_of(self.site)

    def layout(self, operand: Operand) -> Layout:
        """Return the layout of an operand in registers."""
        i = self.instruction
        return i.layout(operand, self.target) if isinstance(i, WmmaProduct) else i.layout(operand)

    @property
    def warps(self) -> range:
        """The warps that executed it."""
        return range(self.warp, self.warp + (WARPS if isinstance(self.instruction, WarpgroupInstruction) else 1))

    @property
    def place(self) -> str:
        """Where, by which warp and when: "gemm.py:31, block 0, warp 1, occurrence 3"."""
        warps = f"warp {self.warp}" if len(self.warps) == 1 else f"warps {self.warps[0]}-{self.warps[-1]}"
        return f"{self.site.place}, block {self.block}, {warps}, occurrence {self.occurrence}"


class Watching:
    """Keeps executions for a launch, whose batches report every product."""

    def __init__(self, watch: Watch) -> None:
        if not isinstance(watch, Watch):
            raise OperandError(f"watch is {shown(watch)}; expected a Watch, such as Watch(line=31, block=0, warp=1)")
        self._watch = watch
        self.kept: list[WatchedProduct] = []
        self._counts: dict[tuple[Site, int, int], int] = {}

    def see(
        self, site: Site, row: Instruction | WmmaProduct, target: str, blocks: Sequence[int], some: Array,
        registers: Mapping[str, Array], numbers: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Keep one execution by warps, if it is watched.

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
        if not self._watch.fits(site):
            return
        plain = MappingProxyType({name: int(x) for name, x in numbers.items()})
        for b, w in np.argwhere(some).tolist():
            if (turn := self._turn(site, blocks[b], range(w, w + 1))) is not None:
                kept = MappingProxyType({name: frozen(x[b, w]) for name, x in registers.items()})
                self.kept.append(
                    WatchedProduct(
                        site=site, instruction=row, target=target, block=blocks[b], warp=w, occurrence=turn,
                        registers=kept, numbers=plain,
                    )
                )  # fmt: skip

    def see_warpgroups(
        self, site: Site, row: WarpgroupInstruction, target: str, places: Sequence[tuple[int, int, int]],
        registers: Mapping[str, Array], numbers: Mapping[str, Any], tiles: Mapping[str, tuple[Array, bool, Array]],
        shared: Callable[[int], Array],
    ) -> None:  # fmt: skip
        """Keep one execution by warpgroups, if it is watched.

        Parameters
        ----------
        site, row, target
        places : sequence of (int, int, int)
            Of each warpgroup: its block in the grid, the same in the batch, its first warp.
        registers : mapping from str to ndarray
            `[warpgroup, ...]`.
        numbers : mapping from str to int or ndarray
            The same for all warpgroups, or `[warpgroup]`.
        tiles : mapping from str to (ndarray, bool, ndarray)
            Descriptors, `[warpgroup]`, whether they are transposed, and codes, `[warpgroup, row, column]`.
        shared : function
            Returns the shared memory of a block of the batch.
        """
        if not self._watch.fits(site):
            return
        for i, (block, place, first) in enumerate(places):
            if (turn := self._turn(site, block, range(first, first + WARPS))) is None:
                continue
            read = {
                name: WatchedTile(word=int(words[i]), transposed=bool(transposed), codes=frozen(codes[i]))
                for name, (words, transposed, codes) in tiles.items()
            }
            plain = {name: int(x[i] if isinstance(x, np.ndarray) else x) for name, x in numbers.items()}
            self.kept.append(
                WatchedProduct(
                    site=site, instruction=row, target=target, block=block, warp=first, occurrence=turn,
                    registers=MappingProxyType({name: frozen(x[i]) for name, x in registers.items()}),
                    numbers=MappingProxyType(plain), tiles=MappingProxyType(read),
                    shared=frozen(shared(place)) if self._watch.shared else None,
                )
            )  # fmt: skip

    def _turn(self, site: Site, block: int, warps: range) -> int | None:
        """Count an execution; return its number if it is kept (rules 2 and 3)."""
        watch = self._watch
        if watch.block not in (None, block) or not (watch.warp is None or watch.warp in warps):
            return None
        turn = self._counts.get((site, block, warps[0]), 0)
        self._counts[site, block, warps[0]] = turn + 1
        return turn if watch.occurrence in (None, turn) and len(self.kept) < watch.most else None
