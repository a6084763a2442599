"""Numbers as operands: the bits of a Python number, by the PTX type of the operand.

The rules:

1. A number is a value of the operand's type, never bits of the same width. A number that the type cannot represent is
   an error. `Threads.constant` makes registers from bits.
2. Integer types, and b8 to b64, take integers that fit their bits, signed or unsigned: -1 and 4294967295 are the same
   in 32 bits.
3. f32 and f64 take floats and round them to nearest, as PTX and C round their decimals (0.1), but not to infinity or
   zero. Floats of other formats have to be representable. The integer 0 is +0; other integers are errors, because in
   PTX they are bits.
4. In b32 and b64, which hold bits of any type, a float is an f32 or an f64.
5. A register of several elements, such as f16x2 and the fragments of `mma`, takes only 0.
6. Predicates take only bools, and only predicates do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arguments import is_integer
from ...errors import OperandError, shown
from ...operations import float_code

_ANY = {"b32": "f32", "b64": "f64"}


def is_number(x: object) -> bool:
    """Whether this is an integer, a float or a bool, of Python or NumPy."""
    return isinstance(x, bool | np.bool_ | float | np.floating) or is_integer(x)


def fits(value: int, bits: int) -> bool:
    """Whether an integer fits a number of bits, signed or unsigned."""
    return -(1 << (bits - 1)) <= value < 1 << bits


def literal(x: Any, type_: str, kind: str, who: str) -> int:
    """Return the bits of a number that stands for a register.

    Parameters
    ----------
    x : int, float or bool
    type_ : str
        PTX type of the operand: "pred", "s32", "b16", "bf16", "f16x2", ...
    kind : str
        Class of the register: "b16", "b32", "b64" or "pred".
    who : str
        Mnemonic and operand, for errors.

    Raises
    ------
    OperandError
        A number that the type cannot represent exactly.

    Examples
    --------
    >>> hex(literal(-1, "s16", "b16", "add.s16: operand 1")), hex(literal(1.5, "f16", "b16", "add.f16: operand 1"))
    ('0xffff', '0x3e00')
    """
    if isinstance(x, bool | np.bool_) or type_ == "pred":
        if isinstance(x, bool | np.bool_) and type_ == "pred":
            return int(x)
        raise OperandError(
            f"{who}: {shown(x)} is not a value of a {type_} operand; predicates are True, False or registers"
        )
    element, _, count = type_.partition("x")
    if count:
        if x == 0 and not np.signbit(np.float64(x)):
            return 0
        raise OperandError(
            f"{who} is a register of {count} elements of {element}; as a number it takes 0 alone, got {shown(x)}. "
            f"Use {_by_bits(x, kind)}"
        )
    whole = element[0] in "bsu" and element[1:].isdigit()
    if is_integer(x):
        return _integer(int(x), element, kind, who) if whole else _zero(int(x), element, kind, who)
    if whole and element not in _ANY:
        raise OperandError(f"{who}: {shown(x)} is a float; .{element} takes integers")
    return float_code(_ANY.get(element, element), float(x), who)


def _integer(x: int, type_: str, kind: str, who: str) -> int:
    """Rule 2."""
    bits = int(type_[1:])
    if not fits(x, bits):
        range_ = f"{-(1 << (bits - 1))} to {(1 << bits) - 1}"
        raise OperandError(f"{who}: {shown(x)} is not a value of {type_}; expected an integer of {range_}")
    return x & ((1 << int(kind[1:])) - 1)


def _zero(x: int, type_: str, kind: str, who: str) -> int:
    """Rule 3, for integers."""
    if x == 0:
        return 0
    try:
        write = f"write {float(x)}, or "
    except OverflowError:
        write = ""
    raise OperandError(f"{who}: {shown(x)} is an integer, and .{type_} takes floats; {write}{_by_bits(x, kind)}")


def _by_bits(x: object, kind: str) -> str:
    """Return the call that makes a register from bits."""
    bits = int(x) if is_integer(x) and fits(int(x), int(kind[1:])) else "bits"
    return f"t.constant({bits}{'' if kind == 'b32' else f', {kind!r}'}) for its bits"
