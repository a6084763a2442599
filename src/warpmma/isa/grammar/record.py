"""The base of every record that is an instruction of PTX: `mma`, `wgmma`, what moves fragments, and the operations.

1. `convergence` says who must execute an instruction together. `.aligned` asks for all lanes of a warp, of `wgmma` and
   `setmaxnreg` for all warps of a warpgroup; `.sync` alone for the lanes that the membermask names. At `bar` and
   `barrier`, but `bar.warp`, threads of several warps meet: those of a CTA, or of a cluster. Other instructions a lane
   executes by itself.
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
"""Who executes an instruction together: each lane by itself, a membermask's lanes, a warp, ..."""


class PtxInstruction(Signed, Record):
    """What PTX calls an instruction.

    Attributes
    ----------
    mnemonic : str
        In the order of PTX's grammar; `str` returns it.
    targets : tuple of str
        Targets that have the instruction, oldest first.
    ptx : (int, int)
        First PTX version that has it.
    convergence : {"none", "mask", "warp", "warpgroup", "cta", "cluster"}
        Who must execute it together (rule 1).
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
        Oldest target that has it. "a" or "f" at its end means that feature set, as of `mma`.
    convergence : {"none", "mask", "warp", "warpgroup", "cta", "cluster"}
        Who must execute it together; the form sets it.
    """

    mnemonic: str  # in the order of PTX's grammar
    since: str
    only: tuple[str, ...] = ()  # the targets that have it, where `since` says too much
    ptx: Version  # first PTX version
    convergence: Convergence = field(default="none", repr=False, compare=False)

    @cached_property
    def targets(self) -> tuple[str, ...]:  # type: ignore[override]
        """Targets that have it, oldest first."""
        return self.only or since(self.since)


def convergence_of(words: Sequence[str]) -> Convergence:
    """Return who must execute an instruction together, by the words of its mnemonic (rule 1).

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
