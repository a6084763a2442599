"""The table of `ldmatrix`, `stmatrix`, `movmatrix` and `wmma`, and the look-up of a mnemonic in it."""

from __future__ import annotations

from functools import cache

from ...errors import MnemonicError
from ..gpus import check_known
from ..grammar import InstructionTable, bare, near
from .fragment_record import FragmentForm, FragmentInstruction
from .matrix_moves import MATRIX_MOVES, MATRIX_TRANSPOSE
from .wmma_instructions import WMMA_MOVES, WMMA_PRODUCTS

FRAGMENT_FORMS: tuple[FragmentForm, ...] = (*MATRIX_MOVES, MATRIX_TRANSPOSE, *WMMA_MOVES, *WMMA_PRODUCTS)
"""Every row of the table."""

FRAGMENT_OPCODES = tuple(dict.fromkeys(form.spelling.split(".")[0] for form in FRAGMENT_FORMS))
"""Opcodes of the table."""


def parse_fragments(mnemonic: str | FragmentInstruction) -> FragmentInstruction:
    """Read the mnemonic of an `ldmatrix`, `stmatrix`, `movmatrix` or `wmma`.

    Parameters
    ----------
    mnemonic : str or FragmentInstruction
        Qualifiers in any order, except that types, layouts and state spaces keep their relative order.

    Returns
    -------
    FragmentInstruction

    Raises
    ------
    MnemonicError
        Names the nearest legal mnemonic.

    Examples
    --------
    >>> parse_fragments("ldmatrix.sync.aligned.trans.m8n8.x2.b16").operands
    ('D', 'address')
    >>> parse_fragments("ldmatrix.sync.aligned.m8n8.x3.b16")
    Traceback (most recent call last):
        ...
    warpmma.errors.MnemonicError: unknown instruction ldmatrix.sync.aligned.m8n8.x3.b16; the nearest is
    ldmatrix.sync.aligned.m8n8.x1.b16
    """
    if isinstance(mnemonic, FragmentInstruction):
        return mnemonic
    name = bare(mnemonic)
    if (found := _table().find(name)) is not None:
        return found
    nearest = near(name, [x for form in FRAGMENT_FORMS for x in form.mnemonics])
    meant = f"; the nearest is {nearest}" if nearest else f"; expected one of {', '.join(FRAGMENT_OPCODES)}"
    raise MnemonicError(f"unknown instruction {name}{meant}")


@cache
def _table() -> InstructionTable[FragmentForm, FragmentInstruction]:
    return InstructionTable(FRAGMENT_FORMS)  # validated with the rows of `operations`, which have the same spellings


@cache
def _every() -> tuple[FragmentInstruction, ...]:
    return tuple(_table().rows())


def fragment_instructions(target: str | None = None) -> tuple[FragmentInstruction, ...]:
    """List the `ldmatrix`, `stmatrix`, `movmatrix` and `wmma` of a target, or all of them.

    Returns
    -------
    tuple of FragmentInstruction
        In the order of the table, with every state space that PTX spells.

    Raises
    ------
    TargetError
        For an unknown target.

    Examples
    --------
    >>> len(fragment_instructions("sm_75")), len(fragment_instructions("sm_90"))
    (464, 631)
    """
    if target is None:
        return _every()
    check_known(target)
    return tuple(each for each in _every() if target in each.targets)
