"""Numbers of a text as bits of registers."""

from __future__ import annotations

import numpy as np

from ...isa import RegisterType
from .syntax import Immediate


def number(x: Immediate, type_: str, kind: RegisterType) -> int:
    """Bits of a number as an operand of a PTX type in a register of a class (rule 2 of `lower.resolving`).

    Examples
    --------
    >>> hex(number(Immediate(-1), "s32", "b32")), hex(number(Immediate(0x3FF8 << 48, "f64"), "f32", "b32"))
    ('0xffffffff', '0x3fc00000')
    """
    if kind == "pred":
        return int(x.value != 0)
    if kind == "imm":
        return x.value
    bits = int(kind[1:])
    if x.kind in ("f32", "f64") and x.kind != f"f{bits}" and bits in (32, 64) and type_[0] in "fb":
        return _converted(x, bits)
    return x.value & ((1 << bits) - 1)


def _converted(x: Immediate, bits: int) -> int:
    source, out = (np.float32, np.float64) if bits == 64 else (np.float64, np.float32)
    code = np.array(x.value, f"u{np.dtype(source).itemsize}").view(source)
    with np.errstate(all="ignore"):
        return int(code.astype(out).view(f"u{bits // 8}"))
