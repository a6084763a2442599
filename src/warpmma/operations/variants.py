"""Operations that their mnemonics alone do not name: `setp` with two destinations, video with bytes and halves."""

from __future__ import annotations

from collections.abc import Sequence

from .._arguments import members
from ..errors import MnemonicError, shown
from .records import Operation
from .table import operation


def with_complement(mnemonic: str, target: str | None = None) -> Operation:
    """Return the row of a `setp` with two destinations, `p|q`: the second has the result of the opposite comparison.

    Parameters
    ----------
    mnemonic : str
        That of one destination, which is the same. A `setp` that always has two, as that of f16x2, has no other row.

    Returns
    -------
    Operation
        The same one whenever it is asked for. No table lists it.

    Raises
    ------
    MnemonicError, TargetError
        As of `operation`; no `setp`, or one of f16 or bf16, which have one destination.

    Examples
    --------
    >>> with_complement("setp.lt.and.s32").syntax
    'd0|d1, a0, a1, a2'
    """
    row = operation(mnemonic, target)
    found = None if row.variant is None else row.variant(row, ())
    if found is None:
        raise MnemonicError(f"{mnemonic} has no second destination; setp has two, p|q, except for f16 and bf16")
    return found


def with_selectors(mnemonic: str, selectors: Sequence[str], target: str | None = None) -> Operation:
    """Return the row of a video instruction that picks bytes or halves of registers.

    Parameters
    ----------
    mnemonic : str
    selectors : sequence of str
        Of the destination, a, b and, if there is one, c; "" where there is none: "b0" and "h1" of `vadd` and its like,
        "b3210" and "h02" of `vadd4` and `vadd2`, whose destination has a mask. Those of `vmad` may have the prefix "-".

    Returns
    -------
    Operation
        With c as the last operand wherever the destination has a selector. No table lists it.

    Raises
    ------
    MnemonicError, TargetError
        As of `operation`; no video instruction, or PTX has no such selectors.

    Examples
    --------
    >>> with_selectors("vadd.s32.s32.u32.sat", ("b1", "h0", "")).syntax
    'd0.b1, a0.h0, a1, a2'
    >>> with_selectors("vmad.s32.u32.u32", ("", "b0", "b1", "-")).syntax
    'd0, a0.b0, a1.b1, -a2'
    """
    row, given = operation(mnemonic, target), members(selectors, 4)
    found = None
    if given is not None and len(given) in (3, 4) and all(type(x) is str for x in given) and row.variant is not None:
        found = row.variant(row, (*given, "")[:4])
    if found is None:
        raise MnemonicError(f"{mnemonic} has no selectors {shown(selectors)}: those of the destination, a, b and c")
    return found
