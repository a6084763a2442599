"""Video instructions of one value: `vadd`, `vsub`, `vabsdiff`, `vmin`, `vmax`, `vshl`, `vshr`, `vset`, `vmad`.

The rules (PTX ISA 9.1: Scalar Video Instructions). GPUs do not implement them: ptxas expands them into other
instructions. Where its CUDA 13.0 code differs from PTX's text (rules 3 to 7), the rules give the bits of a GPU.

1. Operands a and b are words, or a byte or half of one (`.b0` to `.b3`, `.h0`, `.h1`), signed or not by their types.
2. The result is exact: sum, difference, distance, minimum or maximum; a shifted by min(b, 32) (`.clamp`) or b mod 32
   (`.wrap`); 1 or 0 for a comparison. Its low 32 bits are returned.
3. With a third operand c: `.add`, `.min` and `.max` combine the result with it; or the low byte or half of the result
   replaces the part of c that the destination names. But `.h1` receives the result's upper half.
4. `.sat` clamps to the range of the destination's type, but leaves values above an unsigned range unchanged. Shifts
   are first truncated to 34 bits, signed, and clamped at both ends.
5. `.sat` into a byte or half: if the result is negative or greater than the greatest number of that size and sign, it
   becomes that number. Shifts are clamped as into a word.
6. `.min` and `.max` compare 64 bits, unsigned if the destination is: c extended by its type, the result unchanged.
   In `vadd`, `vsub` and shifts with `.sat`, the low 32 bits of the result are sign-extended first.
7. `vmad` multiplies as signed words (bytes and halves have been extended by their types), in 64 bits; `-a` or `-b`
   subtracts the product, `-c` the addend, `.po` adds 1. Then follow `.shr7` or `.shr15`, and `.sat` with the
   signedness of the operands: signed if a or b is, or if one of them or c is negated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ..elements import operands
from ..forms import Form
from ..measurements import OPERATIONS, VARIANTS, measured
from ..records import Operation
from ..value_forms import Words

Selectors = tuple[str, ...]

SELECTORS = ("", "b0", "b1", "b2", "b3", "h0", "h1")
EMULATED = "the code that ptxas emits for video instructions, on which results beyond 32 bits depend,"
_SIZES = {"b": 8, "h": 16, "": 32}
_SHIFTS = ("vshl", "vshr")
_SECONDARY = ("add", "min", "max")
_LOW = np.uint64(0xFFFFFFFF)


def part(word: Array, selector: str, signed: bool) -> Array:
    """Rule 1: int64 of a word, or of a byte or half of it."""
    bits = _SIZES[selector[:1]]
    at = int(selector[1:]) * bits if selector else 0
    code = (word >> np.uint32(at)).astype(f"uint{bits}")
    return (code.view(f"int{bits}") if signed else code).astype(np.int64)


def _wrapped(x: Array) -> Array:
    """Sign-extend the low 32 bits of int64."""
    return x.astype(np.uint32).view(np.int32).astype(np.int64)


def _shift(words: Words, a: Array, b: Array) -> Array:
    count = np.minimum(b, 32) if "clamp" in words else b & 31
    return a << count if words[0] == "vshl" else a >> count


_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _exact(words: Words, a: Array, b: Array) -> Array:
    """Rule 2."""
    match words[0]:
        case "vadd":
            return a + b
        case "vsub":
            return a - b
        case "vabsdiff":
            return np.maximum(a, b) - np.minimum(a, b)
        case "vmin":
            return np.minimum(a, b)
        case "vmax":
            return np.maximum(a, b)
        case "vset":
            return _COMPARE[words[3]](a, b).astype(np.int64)
    return _shift(words, a, b)


def _clamped(x: Array, signed: bool) -> Array:
    """Rule 4, into a word."""
    return np.clip(x, -(1 << 31), (1 << 31) - 1) if signed else np.clip(x, 0, (1 << 32) - 1)


def _saturated(words: Words, x: Array, selector: str) -> Array:
    """Rules 4 and 5."""
    signed = words[1][0] == "s"
    if words[0] in _SHIFTS:
        return _clamped((x << 30) >> 30, signed)
    if not selector:
        return _clamped(x, True) if signed else np.maximum(x, 0)
    most = (1 << (_SIZES[selector[0]] - signed)) - 1
    return np.where((x < 0) | (x > most), most, x)


def _combined(words: Words, x: Array, c: Array) -> Array:
    """Rules 3 and 6: the secondary operation."""
    if words[-1] == "add":
        return x + c.astype(np.int64)
    signed = words[1][0] == "s"
    if words[0] in ("vadd", "vsub") or (words[0] in _SHIFTS and "sat" in words):
        x = _wrapped(x)
    other = c.view(np.int32).astype(np.int64) if signed else c.astype(np.int64)
    chosen = np.minimum if words[-1] == "min" else np.maximum
    return chosen(x, other) if signed else chosen(x.view(np.uint64), other.view(np.uint64)).view(np.int64)


def _merged(x: Array, selector: str, c: Array) -> Array:
    """Rule 3: the low bits of the result at their position in c, or its upper half."""
    bits = _SIZES[selector[0]]
    at, ones = np.uint32(int(selector[1:]) * bits), np.uint32((1 << bits) - 1)
    moved = x.astype(np.uint32) << (np.uint32(0) if selector == "h1" else at)
    return (c & ~(ones << at)) | (moved & (ones << at))


def _compute(words: Words, selectors: Selectors, *x: Array) -> tuple[Array]:
    types = words[1:3] if words[0] == "vset" else words[2:4]
    a, b = (part(v, s, t[0] == "s") for v, s, t in zip(x, selectors[1:3], types, strict=False))
    result = _exact(words, a, b)
    if "sat" in words:
        result = _saturated(words, result, selectors[0])
    if words[-1] in _SECONDARY:
        result = _combined(words, result, x[2])
    return (_merged(result, selectors[0], x[2]) if selectors[0] else result.astype(np.uint32),)


def _multiply(words: Words, selectors: Selectors, *x: Array) -> tuple[Array]:
    """Rule 7."""
    negative = [s.startswith("-") for s in selectors[1:]]
    a, b = (
        part(v, s.removeprefix("-"), t[0] == "s") for v, s, t in zip(x[:2], selectors[1:3], words[2:4], strict=True)
    )
    if words[2][0] == "u" or words[3][0] == "u":  # unsigned words are multiplied as signed ones
        a, b = _wrapped(a), _wrapped(b)
    c = x[2].view(np.int32).astype(np.int64)
    turned = negative[0] != negative[1]
    signed = words[2][0] == "s" or words[3][0] == "s" or turned or negative[2]
    result = (~(a * b) if turned else a * b) + (~c if negative[2] and not turned else c)
    result = result + (turned or negative[2] or "po" in words)
    shift = 7 if "shr7" in words else 15 if "shr15" in words else 0
    result = result >> shift if signed else (result.view(np.uint64) >> np.uint64(shift)).view(np.int64)
    return ((_clamped(result, signed) if "sat" in words else result).astype(np.uint32),)


def _fields(words: Words) -> dict[str, Any]:
    """Return the fields of a row that the words of a mnemonic determine without selectors."""
    third = words[0] == "vmad" or words[-1] in _SECONDARY
    types = words[1:3] if words[0] == "vset" else words[2:4]
    given = operands(f"{types[0]} {types[1]}{' u32' * third} -> b32", words)
    return {
        **given,
        "compute": partial(_multiply if words[0] == "vmad" else _compute, words, ("",) * 4),
        "variant": partial(_selected, words),
    }


@cache
def _selected(words: Words, row: Operation, selectors: Selectors) -> Operation | None:
    """Return the row with selectors of the destination, a, b and c; None if PTX has none."""
    if not selectors:
        return None
    plain = [s.removeprefix("-") for s in selectors]
    if not set(plain) <= set(SELECTORS) or plain[3]:
        return None
    negated = any(s.startswith("-") for s in selectors)
    if words[0] == "vmad":
        if selectors[0] or (negated and "po" in words):
            return None
        return replace(row, compute=partial(_multiply, words, selectors), native=None, selectors=selectors)
    third = words[-1] in _SECONDARY
    if negated or (selectors[0] and third):
        return None
    inputs, types = row.inputs, row.input_types
    if selectors[0]:
        inputs, types = (*inputs, "b32"), (*types, "u32")
    return replace(
        row, inputs=inputs, input_types=types, compute=partial(_compute, words, selectors), selectors=selectors
    )


_T = ".<u32 s32>"
_form = partial(
    Form, kind=Operation, fields=_fields, ptx=(2, 0), left_open=EMULATED,
    evidence=measured("Scalar Video Instructions", f"{OPERATIONS}, {VARIANTS}"),
)  # fmt: skip
_AND = "{.<add min max>}"

FORMS = (
    _form(spelling=f"<vadd vsub vabsdiff vmin vmax>{_T}{_T}{_T}{{.sat}}{_AND}"),
    _form(spelling=f"<vshl vshr>{_T}{_T}.u32{{.sat}}.<clamp wrap>{_AND}"),
    _form(spelling=f"vset{_T}{_T}.<{' '.join(_COMPARE)}>{_AND}"),
    _form(spelling=f"vmad{_T}{_T}{_T}{{.po}}{{.sat}}{{.<shr7 shr15>}}"),
)
"""Every form of this module."""
