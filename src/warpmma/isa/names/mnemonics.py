"""Parsers of the mnemonics of `mma` and `wgmma`."""

from __future__ import annotations

from ...errors import TargetError
from ..gpus import check_known
from ..grammar import PtxInstruction, bare
from ..tables import MMA_TABLE, WGMMA_TABLE, Instruction, MatrixInstruction, WarpgroupInstruction
from .name_meanings import explained


def check_target(instruction: str | PtxInstruction, target: str) -> None:
    """Raise `TargetError` unless the target exists and has the instruction: any record, or the name of an `mma`."""
    check_known(target)
    if not isinstance(instruction, PtxInstruction):
        instruction = parse_mma(instruction)
    if target not in instruction.targets:
        raise TargetError(f"{instruction} is not legal on {target}; legal on {', '.join(instruction.targets)}")


def parse_mnemonic(mnemonic: str | MatrixInstruction) -> MatrixInstruction:
    """Read a mnemonic of either kind, or check that a record is an instruction."""
    if isinstance(mnemonic, MatrixInstruction):
        _ = mnemonic.family
        return mnemonic
    return (parse_warpgroup if bare(mnemonic).startswith("wgmma") else parse_mma)(mnemonic)


def parse_mma(mnemonic: str | Instruction) -> Instruction:
    """Read a mnemonic of `mma`; errors are those of `parse`."""
    return MMA_TABLE.parse(mnemonic, explained)


def parse_warpgroup(mnemonic: str | WarpgroupInstruction) -> WarpgroupInstruction:
    """Read the mnemonic of a `wgmma`.

    Parameters
    ----------
    mnemonic : str or WarpgroupInstruction
        Qualifiers in any order after `wgmma.mma_async`, except that the types of D, A and B keep this order, and `.and`
        comes before `.popc`. So does ptxas; but unlike ptxas this refuses a missing `.aligned` and a repeated `.sync`.

    Returns
    -------
    WarpgroupInstruction

    Raises
    ------
    MnemonicError
        Names the part that is unknown, missing or inconsistent with the rest, and the nearest legal mnemonic.

    Examples
    --------
    >>> str(parse_warpgroup("wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.u8.satfinite"))
    'wgmma.mma_async.sync.aligned.m64n32k32.satfinite.s32.s8.u8'
    >>> parse_warpgroup("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8")
    Traceback (most recent call last):
        ...
    warpmma.errors.MnemonicError: wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 is not an instruction:
    n is 40 where 32 is legal. Nearest legal: wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8
    """
    return WGMMA_TABLE.parse(mnemonic, explained)
