"""Instructions of any kind: `mma` or `wgmma`; and these with what moves fragments."""

from __future__ import annotations

from ..errors import TargetError
from .fragment_record import FragmentInstruction
from .grammar import bare
from .instruction_record import PtxInstruction
from .known import check_known
from .mma import parse_mma
from .record import MatrixInstruction
from .wgmma import parse_warpgroup

AnyInstruction = MatrixInstruction
"""An `mma` or a `wgmma`."""
FragmentHolder = AnyInstruction | FragmentInstruction


def check_target(instruction: str | PtxInstruction, target: str) -> None:
    """Raise `TargetError` unless the target exists and has the instruction, a record of any kind or an `mma`'s name."""
    check_known(target)
    if not isinstance(instruction, PtxInstruction):
        instruction = parse_mma(instruction)
    if target not in instruction.targets:
        raise TargetError(f"{instruction} is not legal on {target}; legal on {', '.join(instruction.targets)}")


def parse_mnemonic(mnemonic: str | AnyInstruction) -> AnyInstruction:
    """Read a mnemonic of either kind, or check that a record is an instruction."""
    if isinstance(mnemonic, MatrixInstruction):
        _ = mnemonic.family
        return mnemonic
    return (parse_warpgroup if bare(mnemonic).startswith("wgmma") else parse_mma)(mnemonic)
