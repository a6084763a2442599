"""The formats of C's `printf`, as kernels use them.

The rules (CUDA Programming Guide, Formatted Output; ISO C 7.23.6.1):

1. A conversion is `%[flags][width][.precision][h|hh|l|ll|z|t|j]type`. Types are those of C except `n`; anything
   else is written unchanged.
2. Arguments are stored one after the other, each aligned to its size: 8 bytes for floats, pointers and `l`, 4 for
   others.
3. Numbers are written as in C where Python differs: `%#o`, `%#x` of 0, `%a`, `%p`, a NaN with its sign.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_CONVERSION = re.compile(rb"%([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?(hh|h|ll|l|z|t|j|L)?([diouxXeEfFgGaAcsp%])")
_LONG = (b"l", b"ll", b"z", b"t", b"j")
_MOST = 4096  # characters of a field


@dataclass(frozen=True)
class Conversion:
    """A conversion and the text before it; the type is "" if no conversion follows the text."""

    text: bytes
    flags: str = ""
    width: int | str | None = None
    precision: int | str | None = None
    length: str = ""
    type: str = ""

    @property
    def sizes(self) -> list[int]:
        """Bytes of each argument that it takes."""
        stars = [4] * ((self.width == "*") + (self.precision == "*"))
        if self.type in ("", "%"):
            return stars
        long = self.type in "eEfFgGaAsp" or self.length.encode() in _LONG
        return [*stars, 8 if long else 4]


def conversions(text: bytes) -> Iterator[Conversion]:
    """Split a format into conversions.

    Examples
    --------
    >>> [(x.text, x.type, x.sizes) for x in conversions(b"a %5d, %lld%%")]
    [(b'a ', 'd', [4]), (b', ', 'd', [8]), (b'', '%', []), (b'', '', [])]
    """
    at = 0
    for match in _CONVERSION.finditer(text):
        flags, width, precision, length, type_ = match.groups()
        yield Conversion(
            text[at : match.start()], flags.decode(), _number(width), _number(precision, 0), (length or b"").decode(),
            type_.decode(),
        )  # fmt: skip
        at = match.end()
    yield Conversion(text[at:])


def _number(text: bytes | None, empty: int | None = None) -> int | str | None:
    if text is None:
        return None
    if text == b"*":
        return "*"
    return min(int(text), _MOST) if text else empty


def written(x: Conversion, arguments: list[int], text: Callable[[int], bytes]) -> bytes:
    """Write a conversion of arguments that are given as bits; `text` returns the string at an address, for `%s`.

    Examples
    --------
    >>> [x] = [x for x in conversions(b"%+.2e") if x.type]
    >>> written(x, [0x4005BF0A8B145769], lambda address: b"")
    b'+2.72e+00'
    """
    if x.type in ("", "%"):
        return x.text + x.type.encode()
    given = list(arguments)
    width = _signed(given.pop(0), 32) if x.width == "*" else x.width
    precision = _signed(given.pop(0), 32) if x.precision == "*" else x.precision
    flags = x.flags
    if isinstance(width, int) and width < 0:
        flags, width = flags + "-", -width
    width = min(int(width or 0), _MOST)
    precision = None if precision is None or int(precision) < 0 else min(int(precision), _MOST)
    return x.text + _padded(_value(x, given[0], flags, precision, text), x, flags, width, precision)


def _value(x: Conversion, bits: int, flags: str, precision: int | None, text: Callable[[int], bytes]) -> bytes:
    """Format a value without padding: sign, prefix and digits."""
    if x.type == "s":
        return text(bits)[: _MOST if precision is None else precision]
    if x.type == "c":
        return bytes([bits & 0xFF])
    if x.type == "p":
        return b"(nil)" if bits == 0 else b"%#x" % bits
    if x.type in "eEfFgGaA":
        return _float(x, bits, flags, precision)
    size = {"hh": 8, "h": 16}.get(x.length, 64 if x.length.encode() in _LONG else 32)
    value = _signed(bits, size) if x.type in "di" else bits & ((1 << size) - 1)
    digits = (
        "" if value == 0 and precision == 0 else format(abs(value), {"o": "o", "x": "x", "X": "X"}.get(x.type, "d"))
    )
    digits = digits.rjust(precision or 0, "0")
    if "#" in flags and x.type == "o" and not digits.startswith("0"):
        digits = f"0{digits}"
    prefix = f"0{x.type}" if "#" in flags and x.type in "xX" and value else ""
    return (_sign(value < 0, flags if x.type in "di" else "") + prefix + digits).encode()


def _sign(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _signed(bits: int, size: int) -> int:
    bits &= (1 << size) - 1
    return bits - (bits >> (size - 1) << size)


def _float(x: Conversion, bits: int, flags: str, precision: int | None) -> bytes:
    (value,) = struct.unpack("<d", bits.to_bytes(8, "little"))
    sign, magnitude = _sign(bits >> 63 == 1, flags), abs(value)
    upper = x.type.isupper()
    if magnitude != magnitude or magnitude == float("inf"):
        digits = "nan" if magnitude != magnitude else "inf"
    elif x.type in "aA":
        digits = _hexadecimal(bits & ((1 << 63) - 1), precision, "#" in flags)
    else:
        digits = f"%{'#' if '#' in flags else ''}.{6 if precision is None else precision}{x.type}" % magnitude
    return (sign + (digits.upper() if upper else digits)).encode()


def _hexadecimal(bits: int, precision: int | None, point: bool) -> str:
    """Format like `%a`: the digit before the point is 1, or 0 for subnormals and zero."""
    exponent, fraction = bits >> 52, bits & ((1 << 52) - 1)
    lead, power = (1, exponent - 1023) if exponent else (0, -1022 if fraction else 0)
    if precision is not None and precision < 13:
        shift = 4 * (13 - precision)
        whole = lead << 52 | fraction
        half, kept = 1 << (shift - 1), whole >> shift
        rest = whole & ((1 << shift) - 1)
        kept += rest > half or (rest == half and kept & 1)
        lead, fraction = kept >> (4 * precision), kept & ((1 << (4 * precision)) - 1)
        digits = f"{fraction:0{precision}x}" if precision else ""
    else:
        digits = f"{fraction:013x}"
        digits = digits.rstrip("0") if precision is None else digits.ljust(precision, "0")
    return f"0x{lead}{'.' if digits or point else ''}{digits}p{power:+d}"


def _padded(value: bytes, x: Conversion, flags: str, width: int, precision: int | None) -> bytes:
    if "-" in flags:
        return value.ljust(width)
    whole = x.type in "diouxX"
    if (
        "0" not in flags
        or x.type in "csp"
        or (whole and precision is not None)
        or (value[-1:] in b"fFnN" and not whole)
    ):
        return value.rjust(width)
    head = re.match(rb"[-+ ]?(?:0[xX])?", value)
    sign = b"" if head is None or (whole and "#" not in flags and head[0][-1:] in b"xX") else head[0]
    return sign + value[len(sign) :].rjust(width - len(sign), b"0")
