"""Limits of registers: `setmaxnreg`, which all warps of a warpgroup execute alike.

The rules (PTX ISA 9.1, 9.7.19, `setmaxnreg`):

1. All threads of a warpgroup execute the same `setmaxnreg`. When a batch of blocks ends, warps of a warpgroup that
   executed other ones than its first warp, or more or fewer, are the hazard "divergent". What is compared is the
   mnemonic and the number: compilers may copy an instruction.
2. The warps of a block begin with as many registers as ptxas chose, where that is known
   (`ptx.text.registers_at_launch`). `setmaxnreg.dec` gives registers to a pool, `setmaxnreg.inc` takes some, and waits
   until there are enough; each does nothing if the warp has as few, or as many, already. A block has four pools: warps
   w, w + 4 and so on have one, as they share a quarter of the multiprocessor (measured: where each of four warps gives
   64, not one of four others takes 104). Each warp takes as soon as it can; other blocks do not help; the registers of
   threads that have exited are not given back, what they gave before stays (measured:
   `tests/data/h200_register_limits.json`). Where warps wait when the batch ends, in the order in which they have
   executed these, a GPU hangs: the hazard "deadlock".
3. Nothing waits here. Where ptxas ignores `setmaxnreg`, because it does not know with how many registers the entry
   begins, no pool is looked at, and `warpmma ptx check` says so (`ptx.launch.checking`).
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ...operations import Hint
from ...registers import WARPS
from ..base import Site
from ..report import Reporter


class RegisterLimits:
    """The `setmaxnreg` that each warp of a batch of blocks has executed.

    Parameters
    ----------
    reporter : Reporter
    at_launch : int
        Registers that a thread begins with; 0 if they are not known.
    """

    def __init__(self, reporter: Reporter, at_launch: int = 0) -> None:
        self._reporter, self._at_launch = reporter, at_launch
        self._noted: dict[int, list[tuple[int, Hint, int, Site]]] = {}  # by block: warp, row, number and line
        self._shape: tuple[int, ...] = ()

    def note(self, site: Site, row: Hint, number: int, lanes: Array) -> None:
        """Note that the warps of lanes, bool `[block, warp, lane]`, set a number of registers."""
        self._shape = lanes.shape
        for block, warp in np.argwhere(lanes.any(axis=-1)).tolist():
            self._noted.setdefault(block, []).append((warp, row, number, site))

    def finish(self) -> None:
        """Report warps that differ from the first one of their warpgroup, and those that wait (rules 1 and 2)."""
        for block, noted in self._noted.items():
            of: dict[int, list[tuple[Hint, int, Site]]] = {}
            for warp, row, number, site in noted:
                of.setdefault(warp, []).append((row, number, site))
            for group in dict.fromkeys(warp // WARPS for warp in of):
                one, *others = range(group * WARPS, min((group + 1) * WARPS, self._shape[1]))
                for warp in others:
                    self._compare(block, one, of.get(one, []), warp, of.get(warp, []))
        for block in self._noted if self._at_launch else ():
            self._check_pools(block)

    def _check_pools(self, block: int) -> None:
        """Report warps of a block that wait for registers (rule 2)."""
        held, pools = [self._at_launch] * self._shape[1], [0] * WARPS  # registers a thread, of warps and for one warp
        waiting: dict[int, list[tuple[Hint, int, Site]]] = {}  # what each warp has still to execute
        for warp, what, asked, line in self._noted[block]:
            waiting.setdefault(warp, []).append((what, asked, line))
            moved = True
            while moved:
                moved = False
                for its, (row, number, _) in [(x, queue[0]) for x, queue in waiting.items() if queue]:
                    taken = number - held[its] if (row.limits == "inc") == (number > held[its]) else 0
                    if taken <= pools[its % WARPS]:
                        pools[its % WARPS] -= taken
                        held[its], moved = held[its] + taken, True
                        waiting[its].pop(0)
        heads = {warp: queue[0] for warp, queue in waiting.items() if queue}
        if not heads:
            return
        warp, (_, number, site) = next(iter(heads.items()))
        where: Array = np.zeros(self._shape, bool)
        where[block, [x for x, (_, _, line) in heads.items() if line == site]] = True
        quarter = warp % WARPS
        detail = (
            f"warp {warp} has {held[warp]} registers a thread and waits for {number}: all begin with "
            f"{self._at_launch}, and what setmaxnreg.dec of warps {quarter}, {quarter + WARPS} and so on has given and "
            f"none of them has taken is {pools[quarter]} for one warp"
        )
        self._reporter.report("deadlock", site, where, detail=detail)

    def _compare(
        self, block: int, one: int, first: list[tuple[Hint, int, Site]], warp: int, own: list[tuple[Hint, int, Site]]
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


def _shown(one: tuple[Hint, int, Site] | None) -> str:
    return "none" if one is None else f"{one[0].mnemonic} {one[1]}"
