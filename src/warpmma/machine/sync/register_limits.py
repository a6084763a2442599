"""Limits of registers: `setmaxnreg`, which all warps of a warpgroup execute alike.

The rules (PTX ISA 9.1, 9.7.19, `setmaxnreg`):

1. All threads of a warpgroup execute the same `setmaxnreg`. When a batch of blocks ends, warps of a warpgroup that
   executed other ones than its first warp, or more or fewer, are the hazard "divergent". What is compared is the
   mnemonic and the number: compilers may copy an instruction.
2. No registers are counted: the pool of a block is not simulated. Where ptxas ignores `setmaxnreg`, because it does not
   know with how many registers the entry begins, `warpmma ptx check` says so (`ptx.launch.checking`).
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ...registers import WARPS
from ..base import Site
from ..report import Reporter


class RegisterLimits:
    """The `setmaxnreg` that each warp of a batch of blocks has executed."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._of: dict[tuple[int, int], list[tuple[str, int, Site]]] = {}
        self._shape: tuple[int, ...] = ()

    def note(self, site: Site, mnemonic: str, number: int, lanes: Array) -> None:
        """Note that the warps of lanes, bool `[block, warp, lane]`, set a number of registers."""
        self._shape = lanes.shape
        for block, warp in np.argwhere(lanes.any(axis=-1)).tolist():
            self._of.setdefault((block, warp), []).append((mnemonic, number, site))

    def finish(self) -> None:
        """Report warps that differ from the first one of their warpgroup (rule 1)."""
        for block, group in dict.fromkeys((block, warp // WARPS) for block, warp in self._of):
            warps = range(group * WARPS, min((group + 1) * WARPS, self._shape[1]))
            first = self._of.get((block, warps[0]), [])
            for warp in warps[1:]:
                self._compare(block, warps[0], first, warp, self._of.get((block, warp), []))

    def _compare(
        self, block: int, one: int, first: list[tuple[str, int, Site]], warp: int, own: list[tuple[str, int, Site]]
    ) -> None:
        for i in range(max(len(first), len(own))):
            its, mine = (x[i] if i < len(x) else None for x in (first, own))
            site = (mine or its or first[0])[2]
            if its is not None and mine is not None and its[:2] == mine[:2]:
                continue
            where = np.zeros(self._shape, bool)
            where[block, warp] = True
            other = its[2] if its is not None and mine is not None else None
            says = f"warp {warp} executes {_shown(mine)}, and warp {one} of its warpgroup {_shown(its)}"
            detail = f"all warps of a warpgroup execute the same setmaxnreg: {says}"
            self._reporter.report("divergent", site, where, detail=detail, other=other)
            return


def _shown(one: tuple[str, int, Site] | None) -> str:
    return "none" if one is None else f"{one[0]} {one[1]}"
