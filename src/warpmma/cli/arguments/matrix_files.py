"""Matrices of the command line: files, and values that are written out.

1. A text that ends in ".npy" is a file: of the operand's type, or of codes (unsigned integers, or what NumPy wrote of
   types that it does not know) as wide.
2. Any other is values, separated by blanks or commas: decimal numbers, `2^-24`, `3*2^-24`, `1/3`, `0x1.8p-3`, `inf`,
   `nan`; `0x3c00` is a code. `16x0.5` is sixteen of them. Values are rounded to the operand's type, to nearest even;
   values out of its range are an error.
"""

from __future__ import annotations

import argparse
import math
import re
import struct
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..._text import counted
from ...errors import OperandError, printable, shown
from ...formats import FORMATS, FloatFormat, Format

_MOST = 1 << 20  # values that are written out
_HELP = "expected numbers such as 0.5, 2^-24, 3*2^-24, 1/3, inf, codes such as 0x3c00, 16x0 for sixteen, or FILE.npy"


def add_matrices(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how files are read, and those of block scales."""
    add = parser.add_argument
    add("--cast", action="store_true", help="round floats and signed integers to the operands' types")
    add("--scale-a", metavar="FILE", help="block scales of A, [..., m, S]; --scale-b of B, [..., S, n]")
    add("--scale-b", metavar="FILE", help=argparse.SUPPRESS)


def add_chain(parser: argparse.ArgumentParser) -> None:
    """Add the options of whole products."""
    add = parser.add_argument
    add("--indices", metavar="FILE", help="of a sparse A's stored elements, [..., m, groups, 2]")
    add_slices(parser)
    add("--threads", type=int, help="that share the work")


def add_slices(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a chain along k is cut, and what becomes of D."""
    add = parser.add_argument
    add("--split-k", type=int, metavar="SLICES", help="slices of k, added to C one after the other in f32")
    add("--promote-every", type=int, metavar="K", help="cut the chain every so much of k, add outside the unit")
    add("--epilogue", metavar="TYPE", help="round D to a type such as bf16")


def given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the options that were given, by name."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def words_and_files(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate the words of an instruction from the two or three files; any other number is an `OperandError`."""
    files = [word for word in words if is_file(word)]
    if len(files) not in (2, 3):
        raise OperandError(f"{counted(len(files), 'file')} *.npy; expected those of A, B and, if there is one, C")
    return [word for word in words if not is_file(word)], files


def is_file(text: str) -> bool:
    """Rule 1."""
    return text.strip().endswith(".npy")


def read_npy(path: str, who: str) -> Any:
    """Read the array of a file; one that cannot be read, or is not an .npy file of numbers, is an `OperandError`."""
    try:
        with Path(path).open("rb") as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
    except OSError as error:
        raise OperandError(f"{who}: {printable(path)}: {error.strerror or error}") from None
    except (ValueError, EOFError, MemoryError) as error:
        raise OperandError(
            f"{who}: {printable(path)} is not an .npy file of numbers: {shown(str(error), str)}"
        ) from None
    return np.ascontiguousarray(array)


def matrix_file(path: str, fmt: Format, who: str) -> Any:
    """Read a matrix of a format; what NumPy wrote of a type that it does not know is taken by its bytes."""
    array = read_npy(path.strip(), who)
    if array.dtype.kind == "V" and array.dtype.itemsize == fmt.dtype.itemsize:
        return array.view(fmt.dtype)
    return array


def scale_file(path: str, stype: str | None, who: str) -> Any:
    """Read block scales of a format; of an instruction without scales, any numbers, which the product refuses."""
    return read_npy(path, who) if stype is None else matrix_file(path, FORMATS[stype], who)


def operand_file(path: str, name: str, fmt: Format, cast: bool = False) -> Any:
    """Read a matrix; floats and signed integers of another type are rounded to nearest even, or refused."""
    array = matrix_file(path, fmt, name)
    if array.dtype.kind in "if" and array.dtype != fmt.dtype:
        if cast:
            return fmt.array(fmt.encode(array))
        if array.dtype.kind == "f" or isinstance(fmt, FloatFormat):
            expected = f"{fmt.dtype}, or --cast, which rounds to {fmt.name}"
            raise OperandError(f"{name}: {printable(path)} is {array.dtype}; expected {expected}")
    return array


def codes_of(text: str, fmt: Format, who: str) -> list[int]:
    """Read values that are written out (rule 2).

    Examples
    --------
    >>> from warpmma.formats import FORMATS
    >>> [hex(code) for code in codes_of("1 2^-24, 2x0 0xbc00", FORMATS["f16"], "--a")]
    ['0x3c00', '0x1', '0x0', '0x0', '0xbc00']
    """
    codes: list[int] = []
    for word in re.split(r"[\s,;]+", text.strip(" \t\n,;[]()")):
        if not word:
            continue
        count, number = 1, word
        if (repeated := re.fullmatch(r"(\d{1,7})x(.+)", word)) and word[:2].lower() != "0x":
            count, number = int(repeated[1]), repeated[2]
        if count + len(codes) > _MOST:
            raise OperandError(f"{who}: more than {_MOST:,} values; put them into a file .npy")
        codes += [_code(number, fmt, who)] * count
    return codes


def _code(word: str, fmt: Format, who: str) -> int:
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", word):
        code = int(word, 16)
        if code > fmt.mask:
            raise OperandError(f"{who}: {shown(word)} is not a code of {fmt.name}, which has {fmt.bits} bits")
        return code
    value = _value(word)
    if value is None:
        raise OperandError(f"{who}: {shown(word)} is not a number; {_HELP}")
    if isinstance(fmt, FloatFormat):
        return _rounded(value, word, fmt, who)
    least, greatest = fmt.least, fmt.greatest
    finite = not isinstance(value, float) or math.isfinite(value)  # a fraction may be more than any float
    if not finite or value != int(value) or not least <= value <= greatest:
        raise OperandError(
            f"{who}: {shown(word)} is not a value of {fmt.name}; expected a whole number from {least} to {greatest}"
        )
    return int(value) & fmt.mask


def _rounded(value: Fraction | float, word: str, fmt: FloatFormat, who: str) -> int:
    special = isinstance(value, float) and not math.isfinite(value)
    try:
        near = float(value)
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    largest = float(fmt.decode([fmt.max_code])[0])
    if math.isnan(near):
        held = fmt.nan_code is not None
    elif special:
        held = fmt.has_infinity
    else:
        held = math.isfinite(near) and (abs(near) <= largest or fmt.overflow == "infinity")
    if held and math.isfinite(near) and fmt.bits < 64:
        near = _to_odd(value, near)
    code = None
    if held and math.isinf(near):  # `encode` would saturate what PTX's cvt does
        code = (fmt.inf_code or 0) | (fmt.sign_bit if near < 0 else 0)
    elif held and (fmt.signed or not near < 0):
        code = int(fmt.encode([near])[0])
    if code is None or (not special and fmt.unpack(code).kind != "finite"):
        least = f"{-largest:g}" if fmt.signed else "0"
        raise OperandError(
            f"{who}: {shown(word)} is out of range of {fmt.name}, which goes from {least} to {largest:g}"
        )
    return code


def _to_odd(value: Fraction | float, near: float) -> float:
    """Return the value if it is a float, else its neighbour with an odd last bit: rounding again is then exact."""
    if value == near or struct.pack(">d", near)[7] & 1:
        return near
    return math.nextafter(near, math.inf if value > near else -math.inf)


def _value(word: str) -> Fraction | float | None:
    """Return an exact number, or a float that is not finite; None if the text is not a number."""
    text = word.strip().lower().replace("**", "^")
    if not text.isascii():
        return None
    if found := re.fullmatch(r"([-+]?)(?:(.+?)\*)?2\^\(?([-+]?\d{1,5})\)?", text):
        factor = _value(found[2]) if found[2] else Fraction(1)
        if not isinstance(factor, Fraction):
            return None
        return (-1 if found[1] == "-" else 1) * factor * Fraction(2) ** int(found[3])
    if re.fullmatch(r"[-+]?(inf|infinity|nan)", text):
        return float(text)
    if re.fullmatch(r"[-+]?0x[0-9a-f.]+p[-+]?\d{1,4}", text):
        try:
            return Fraction(float.fromhex(text))
        except (ValueError, OverflowError):
            return None
    if re.fullmatch(r"[-+]?(\d+/\d+|(\d+\.?\d*|\.\d+)(e[-+]?\d{1,4})?)", text) and len(text) < 400:
        try:
            value = Fraction(text)
        except (ValueError, ZeroDivisionError):
            return None
        return -0.0 if not value and text.startswith("-") else value
    return None
