"""Instructions of any kind: `mma` or `wgmma`; and these with what moves fragments."""

from __future__ import annotations

from typing import Protocol

from ..errors import TargetError
from .fragment_record import FragmentInstruction
from .grammar import bare
from .known import check_known
from .mma import Instruction, parse_mma
from .wgmma import WarpgroupInstruction, parse_warpgroup

AnyInstruction = Instruction | WarpgroupInstruction
FragmentHolder = AnyInstruction | FragmentInstruction


class _Targeted(Protocol):
    """An instruction of any kind: it prints its mnemonic."""

    @property
    def targets(self) -> tuple[str, ...]: ...


def check_target(instruction: str | _Targeted, target: str) -> None:
    """Raise `TargetError` unless the target exists and has the instruction, a record of any kind or an `mma`'s name."""
    check_known(target)
    if isinstance(instruction, str) or getattr(type(instruction), "targets", None) is None:
        instruction = parse_mma(instruction)  # type: ignore[arg-type]
    if target not in instruction.targets:
        raise TargetError(f"{instruction} is not legal on {target}; legal on {', '.join(instruction.targets)}")


def parse_mnemonic(mnemonic: str | AnyInstruction) -> AnyInstruction:
    """Read a mnemonic of either kind, or check that a record is an instruction."""
    if isinstance(mnemonic, Instruction):
        return parse_mma(mnemonic)
    if isinstance(mnemonic, WarpgroupInstruction) or bare(mnemonic).startswith("wgmma"):
        return parse_warpgroup(mnemonic)
    return parse_mma(mnemonic)
