"""Instructions as users write them: a mnemonic, or words that select one, such as "m16n8k16 f32 f16".

Words are separated by blanks, which a mnemonic never contains; `instruction_words` defines what they mean.
"""

from __future__ import annotations

import re
from typing import TypeGuard

from ...errors import MnemonicError, shown
from ..tables import FRAGMENT_OPCODES, FragmentInstruction, Instruction, MatrixInstruction, parse_fragments
from .instruction_words import LONGEST, named
from .mnemonic_words import is_fragment
from .mnemonics import parse_mma, parse_mnemonic

FragmentHolder = MatrixInstruction | FragmentInstruction
"""An instruction whose registers hold fragments."""


def parse(mnemonic: str | Instruction) -> Instruction:
    """Read a mnemonic.

    Parameters
    ----------
    mnemonic : str or Instruction
        Qualifiers in any order, except that the types of D, A, B and C keep this order, and the layout of A precedes
        that of B. Or words, as on the command line: shape, types, and qualifiers that a plain instruction does not
        have. They must give the type of D if there are several; C then has D's type.

    Returns
    -------
    Instruction

    Raises
    ------
    MnemonicError
        Names the part that is unknown, missing or inconsistent with the rest, and the nearest legal mnemonic; for
        words, what would distinguish the remaining instructions.

    Examples
    --------
    >>> str(parse("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e2m1.f32"))
    'mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32'
    >>> str(parse("m16n8k16 f32 f16"))
    'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32'
    >>> parse("mma.sync.aligned.m16n8k61.row.col.f32.f16.f16.f32")
    Traceback (most recent call last):
        ...
    warpmma.errors.MnemonicError: mma.sync.aligned.m16n8k61.row.col.f32.f16.f16.f32:
    unknown qualifier '.m16n8k61', did you mean '.m16n8k16'.
    Nearest legal: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    """
    if _are_words(mnemonic):
        record = named(mnemonic, for_bits=True).instruction
        mnemonic = record if isinstance(record, Instruction) else str(record)  # the error describes the record
    return parse_mma(mnemonic)


def parse_any(mnemonic: str | MatrixInstruction) -> MatrixInstruction:
    """Read a mnemonic of `mma` or `wgmma`, or words that name one, like `parse`.

    Returns
    -------
    Instruction or WarpgroupInstruction

    Raises
    ------
    MnemonicError, UnsupportedError
        See `parse` and `parse_warpgroup`.

    Examples
    --------
    >>> [parse_any(s).m for s in ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    ...                           "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "wgmma m64n8k32 f32 e4m3")]
    [16, 64, 64]
    """
    return named(mnemonic, for_bits=True).instruction if _are_words(mnemonic) else parse_mnemonic(mnemonic)


def plainest(mnemonic: str | MatrixInstruction, target: str | None = None) -> MatrixInstruction:
    """Like `parse_any`, for an answer that names the instruction: words may leave the type of D open.

    Parameters
    ----------
    mnemonic : str, Instruction or WarpgroupInstruction
    target : str, optional
        Its instructions are preferred.

    Examples
    --------
    >>> str(plainest("m16n8k16 f16"))
    'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32'
    """
    return named(mnemonic, target).instruction if _are_words(mnemonic) else parse_mnemonic(mnemonic)


def parse_holder(mnemonic: str | FragmentHolder) -> FragmentHolder:
    """Read a mnemonic of any instruction that has fragments in registers.

    Returns
    -------
    Instruction, WarpgroupInstruction or FragmentInstruction

    Raises
    ------
    MnemonicError, UnsupportedError
        See `parse_any` and `parse_fragments`; words may leave the type of D open.

    Examples
    --------
    >>> parse_holder("movmatrix.sync.aligned.m8n8.trans.b16").operands
    ('A', 'D')
    >>> parse_holder("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16").m
    64
    """
    if isinstance(mnemonic, FragmentInstruction):
        if not isinstance(mnemonic.mnemonic, str):
            raise MnemonicError(f"the mnemonic of an instruction is {shown(mnemonic.mnemonic)}; expected a str")
        return mnemonic
    if isinstance(mnemonic, str) and mnemonic.strip().partition(".")[0] in FRAGMENT_OPCODES:
        return parse_fragments(mnemonic)
    return plainest(mnemonic)


def _are_words(text: object) -> TypeGuard[str]:
    """Whether a text is several words, at least one of which describes an instruction."""
    if not isinstance(text, str) or " " not in text or len(text) > LONGEST:
        return False
    words = re.split(r"[\s;,]+", text.strip())
    return len(words) > 1 and any(map(is_fragment, words))
