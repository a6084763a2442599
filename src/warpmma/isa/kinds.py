"""Instructions of any kind: `mma` or `wgmma`; and these with what moves fragments."""

from __future__ import annotations

from typing import Protocol

from ..errors import TargetError
from .fragment_record import FragmentInstruction
from .fragment_table import FRAGMENT_OPCODES, parse_fragments
from .grammar import bare
from .known import check_known
from .mma import Instruction, parse
from .wgmma import WarpgroupInstruction, parse_warpgroup

__all__ = ["AnyInstruction", "FragmentHolder", "check_target", "parse_any", "parse_holder"]

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
        instruction = parse(instruction)  # type: ignore[arg-type]
    if target not in instruction.targets:
        raise TargetError(f"{instruction} is not legal on {target}; legal on {', '.join(instruction.targets)}")


def parse_any(mnemonic: str | AnyInstruction) -> AnyInstruction:
    """Read a mnemonic of either kind, `mma` or `wgmma`.

    Parameters
    ----------
    mnemonic : str, Instruction or WarpgroupInstruction

    Returns
    -------
    Instruction or WarpgroupInstruction

    Raises
    ------
    MnemonicError, UnsupportedError
        As `parse` and `parse_warpgroup` do.

    Examples
    --------
    >>> [parse_any(s).m for s in ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    ...                           "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")]
    [16, 64]
    """
    if isinstance(mnemonic, Instruction):
        return parse(mnemonic)
    if isinstance(mnemonic, WarpgroupInstruction) or bare(mnemonic).startswith("wgmma"):
        return parse_warpgroup(mnemonic)
    return parse(mnemonic)


def parse_holder(mnemonic: str | FragmentHolder) -> FragmentHolder:
    """Read a mnemonic of any instruction that has fragments in registers.

    Parameters
    ----------
    mnemonic : str, Instruction, WarpgroupInstruction or FragmentInstruction

    Returns
    -------
    Instruction, WarpgroupInstruction or FragmentInstruction

    Raises
    ------
    MnemonicError, UnsupportedError
        As of `parse`, `parse_warpgroup` and `parse_fragments`.

    Examples
    --------
    >>> parse_holder("movmatrix.sync.aligned.m8n8.trans.b16").operands
    ('A', 'D')
    >>> parse_holder("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16").m
    64
    """
    if isinstance(mnemonic, FragmentInstruction):
        return mnemonic
    if isinstance(mnemonic, str) and mnemonic.strip().partition(".")[0] in FRAGMENT_OPCODES:
        return parse_fragments(mnemonic)
    return parse_any(mnemonic)
