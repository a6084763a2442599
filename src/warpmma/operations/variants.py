"""Operations that their mnemonics alone do not determine: `setp` with two destinations, video with selectors."""

from __future__ import annotations

from collections.abc import Sequence

from .._arguments import members
from ..errors import MnemonicError, shown
from .records import Operation
from .table import operation


def with_complement(mnemonic: str, target: str | None = None) -> Operation:
    """Return the row of a `setp` with two destinations, `p|q`: the second receives the opposite comparison.

    Parameters
    ----------
    mnemonic : str
        The same as with one destination. A `setp` that always has two, such as that of f16x2, has no other row.

    Returns
    -------
    Operation
        The same object on every call. No table lists it.

    Raises
    ------
    MnemonicError, TargetError
        See `operation`; not a `setp`, or one of f16 or bf16, which have one destination.

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
    """Return the row of a video instruction that selects bytes or halves of registers.

    Parameters
    ----------
    mnemonic : str
    selectors : sequence of str
        For the destination, a, b and, if there is one, c; "" for none: "b0" and "h1" for `vadd` and the like, "b3210"
        and "h02" for `vadd4` and `vadd2`, whose destination has a mask. Those of `vmad` may have the prefix "-".

    Returns
    -------
    Operation
        With c as the last operand if the destination has a selector. No table lists it.

    Raises
    ------
    MnemonicError, TargetError
        See `operation`; not a video instruction, or PTX has no such selectors.

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
