"""The base class of the records of PTX instructions: `mma`, `wgmma`, fragment moves and operations.

1. `convergence` says which threads must execute an instruction together. `.aligned` requires all lanes of a warp, and
   with `wgmma` and `setmaxnreg` all warps of a warpgroup; `.sync` alone requires the lanes of the membermask. `bar` and
   `barrier`, except `bar.warp`, synchronize the threads of a CTA or cluster. A lane executes any other instruction by
   itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ..._records import Record
from ..gpus import since
from .signatures import Signature, printed
from .vocabulary import Version

Convergence = Literal["none", "mask", "warp", "warpgroup", "cta", "cluster"]
"""Which threads execute an instruction together: each lane by itself, a membermask's lanes, a warp, ..."""


class PtxInstruction(Record):
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

    @property
    def signature(self) -> Signature:
        """Its operands, in the order of PTX's text."""
        raise NotImplementedError

    def statement(self, name: Callable[[str], str] = "%{}".format, comma: str = ", ") -> str:
        """Format it as a statement of PTX, without optional operands; see `printed`.

        Examples
        --------
        >>> from warpmma.isa import parse
        >>> parse("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32").statement(comma=",")
        'mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%d0,%d1}, {%a0}, {%b0}, {%c0,%c1};'
        """
        return f"{self} {printed(self.signature, name, comma)}".rstrip() + ";"

    @cached_property
    def syntax(self) -> str:
        """Operands as PTX writes them: `d0`, ... are results, `a0`, ... are sources, `p` and `q` are addresses."""
        return printed(self.signature)

    @cached_property
    def results(self) -> Signature:
        """Operands that it writes."""
        return tuple(x for x in self.signature if x.role == "result")

    @cached_property
    def sources(self) -> Signature:
        """Operands that it reads, including addresses."""
        return tuple(x for x in self.signature if x.role != "result")


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
