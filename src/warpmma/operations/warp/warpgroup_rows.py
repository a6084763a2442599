"""`wgmma`: rows of its products, for the machine, and of `wgmma.fence`, `wgmma.commit_group` and `wgmma.wait_group`.

1. A `wgmma.mma_async` has two forms, with A in shared memory and with A in registers; its mnemonic does not say which.
   Its accumulators are read and written: the row has them as C and as D.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Literal

from ...isa import PtxInstruction, Signature, WarpgroupInstruction, value
from ..forms import Form
from ..measurements import published
from ..records import InstructionRow


@dataclass(frozen=True, kw_only=True)
class WarpgroupMultiply(PtxInstruction):
    """One `wgmma.mma_async`, for the machine.

    Attributes
    ----------
    record : WarpgroupInstruction
    in_registers : bool
        Whether A is in registers.
    """

    record: WarpgroupInstruction
    in_registers: bool

    convergence = "warpgroup"

    @property
    def mnemonic(self) -> str:  # type: ignore[override]
        """In the order of PTX's grammar."""
        return self.record.mnemonic

    @property
    def targets(self) -> tuple[str, ...]:  # type: ignore[override]
        """Targets that have it."""
        return self.record.targets

    @property
    def ptx(self) -> tuple[int, int]:  # type: ignore[override]
        """First version of PTX that has it."""
        return self.record.ptx

    @cached_property
    def signature(self) -> Signature:
        """Its operands: D, the same registers as C, A, the descriptor of B, and what follows (rule 1)."""
        d, *rest = self.record.signatures[self.in_registers]
        c = replace(d, names=tuple(f"c{i}" for i in range(len(d.names))), role="source", updated=False)
        return (replace(d, updated=False), c, *rest)


@lru_cache(maxsize=256)
def warpgroup_multiply(record: WarpgroupInstruction, in_registers: bool) -> WarpgroupMultiply:
    """Return the row of a `wgmma.mma_async` with A in registers, or in shared memory."""
    return WarpgroupMultiply(record=record, in_registers=in_registers)


@dataclass(frozen=True, kw_only=True)
class WarpgroupGroup(InstructionRow):
    """One `wgmma.fence`, `wgmma.commit_group` or `wgmma.wait_group`."""

    action: Literal["fence", "commit_group", "wait_group"]

    @cached_property
    def signature(self) -> Signature:
        """`wait_group` has how many groups may still be pending."""
        return (value("a0", "imm"),) if self.action == "wait_group" else ()


def _action(words: tuple[str, ...]) -> dict[str, Any]:
    return {"action": words[1]}


_groups = partial(Form, kind=WarpgroupGroup, fields=_action, since="sm_90a", only=("sm_90a",), ptx=(8, 0))

FORMS: tuple[Form, ...] = (
    _groups(spelling="wgmma.fence .sync.aligned", evidence=published("wgmma.fence")),
    _groups(spelling="wgmma.commit_group .sync.aligned", evidence=published("wgmma.commit_group")),
    _groups(spelling="wgmma.wait_group .sync.aligned", evidence=published("wgmma.wait_group")),
)
"""Every form of this module."""
