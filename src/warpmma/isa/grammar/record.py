"""The base class of the records of PTX instructions: `mma`, `wgmma`, fragment moves and operations.

1. `convergence` says which threads must execute an instruction together. `.aligned` requires all lanes of a warp, and
   with `wgmma` and `setmaxnreg` all warps of a warpgroup; `.sync` alone requires the lanes of the membermask. `bar` and
   `barrier`, except `bar.warp`, synchronize the threads of a CTA or cluster. A lane executes any other instruction by
   itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ..._records import Record
from ..gpus import since
from .signatures import Signed
from .vocabulary import Version

Convergence = Literal["none", "mask", "warp", "warpgroup", "cta", "cluster"]
"""Which threads execute an instruction together: each lane by itself, a membermask's lanes, a warp, ..."""


class PtxInstruction(Signed, Record):
    """A PTX instruction.

    Attributes
    ----------
    mnemonic : str
        In the order of PTX's grammar; `str` returns it.
    targets : tuple of str
        Targets that have the instruction, oldest first.
    ptx : (int, int)
        First PTX version that has it.
    convergence : {"none", "mask", "warp", "warpgroup", "cta", "cluster"}
        Which threads must execute it together (rule 1).
    """

    mnemonic: str
    targets: tuple[str, ...]
    ptx: Version
    convergence: Convergence

    def __str__(self) -> str:
        return self.mnemonic


@dataclass(frozen=True, kw_only=True)
class FormInstruction(PtxInstruction):
    """An instruction that a form spells: a line of PTX's grammar.

    Attributes
    ----------
    since : str
        Oldest target that has it. A final "a" or "f" means that feature set, as for `mma`.
    convergence : {"none", "mask", "warp", "warpgroup", "cta", "cluster"}
        Which threads must execute it together; the form sets it.
    """

    mnemonic: str  # in the order of PTX's grammar
    since: str
    only: tuple[str, ...] = ()  # the targets that have it, if `since` would include others
    ptx: Version  # first PTX version
    convergence: Convergence = field(default="none", repr=False, compare=False)

    @cached_property
    def targets(self) -> tuple[str, ...]:  # type: ignore[override]
        """Targets that have it, oldest first."""
        return self.only or since(self.since)


def convergence_of(words: Sequence[str]) -> Convergence:
    """Return which threads must execute an instruction together, from the words of its mnemonic (rule 1).

    Examples
    --------
    >>> [convergence_of(x.split(".")) for x in ("add.u32", "vote.sync.any.pred", "bar.warp.sync", "bar.sync")]
    ['none', 'mask', 'mask', 'cta']
    """
    opcode = words[0]
    if opcode in ("bar", "barrier") and "warp" not in words:
        return "cluster" if "cluster" in words else "cta"
    if "aligned" in words:
        return "warpgroup" if opcode in ("wgmma", "setmaxnreg") else "warp"
    return "mask" if "sync" in words else "none"
