"""The integer operators of registers as rows: both operands are as wide as the wider, and unsigned."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from ..arithmetic import Evidence
from ..operations import Operation, operation, shl, shr

_BITWISE = ("and", "or", "xor", "not", "shl")  # PTX has them as .b32, others as .u32
_SHIFTS = {"shl": shl, "shr": shr}
_EVIDENCE = Evidence(kind="published", source="PTX ISA 9.1, Logic and Shift Instructions")


@cache
def instruction(name: str, kind: str) -> Operation:
    """Return the row that an operator stands for, by the class of its operands.

    A shift's count is as wide as what is shifted, which PTX has of 32 bits alone.

    Examples
    --------
    >>> instruction("add", "b32").mnemonic, instruction("shl", "b64").mnemonic, instruction("and", "pred").mnemonic
    ('add.u32', 'shl.b64', 'and.pred')
    """
    mnemonic = f"{name}.{kind if kind == 'pred' or name in _BITWISE else 'u' + kind[1:]}"
    if name not in _SHIFTS:
        return operation(mnemonic)
    shift, each = _SHIFTS[name], cast(Any, kind)
    return Operation(
        mnemonic=mnemonic, inputs=(each, each), outputs=(each,), compute=lambda a, b: (shift(a, b),), since="sm_70",
        ptx=(1, 0), evidence=_EVIDENCE,
    )  # fmt: skip
