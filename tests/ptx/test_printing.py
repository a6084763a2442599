"""printf: the formats of C."""

from __future__ import annotations

import ctypes
import random
import struct
import sys

import pytest

from warpmma.ptx.launch.printing import conversions, written

FLOATS = [0.0, -0.0, 1.0, 1.5, -2.25, 1e300, 5e-324, 2.5, 0.1, float("inf"), float("-inf"), float("nan")]


def ours(text: bytes, *arguments: int) -> bytes:
    left = list(arguments)
    out = b""
    for x in conversions(text):
        given, left = left[: len(x.sizes)], left[len(x.sizes) :]
        out += written(x, given, lambda address: b"hello world")
    return out


def bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def test_as_c_prints() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("other C libraries write %p in other ways")
    libc = ctypes.CDLL(None)
    draw = random.Random(3)

    def c(text: bytes, argument: object) -> bytes:
        buffer = ctypes.create_string_buffer(1 << 12)
        count = libc.snprintf(buffer, 1 << 12, text, argument)
        return buffer.raw[:count]

    for _ in range(4000):
        kind = draw.choice("diouxXeEfFgGaAcsp")
        legal = {"d": "-+ 0", "i": "-+ 0", "u": "-0", "o": "-#0", "x": "-#0", "X": "-#0"}.get(kind, "-+ #0")
        flags = "".join(x for x in draw.sample("-+ #0", draw.randint(0, 3)) if x in ("-" if kind in "csp" else legal))
        precision = "" if kind in "cp" else draw.choice(["", ".0", ".3", ".", ".8"])
        length = draw.choice(["", "h", "hh", "l", "ll"]) if kind in "diouxX" else ""
        text = f"<%{flags}{draw.choice(['', '5', '12'])}{precision}{length}{kind}>".encode()
        if kind in "eEfFgGaA":
            value = draw.choice([*FLOATS, draw.uniform(-1e6, 1e6)])
            assert ours(text, bits(value)) == c(text, ctypes.c_double(value)), text
        elif kind == "s":
            assert ours(text, 0) == c(text, b"hello world"), text
        else:
            wide = length in ("l", "ll") or kind == "p"
            code = draw.choice([0, 1, 0xFFFFFFFF, 0x80000000, draw.getrandbits(64 if wide else 32)])
            code = code & 0x7F if kind == "c" else code
            assert ours(text, code) == c(text, ctypes.c_uint64(code) if wide else ctypes.c_uint32(code)), text


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        (b"100%%", (), b"100%"),
        (b"%*d|%-*d|%.*f", (5, 42, 5, 42, 1, bits(2.25)), b"   42|42   |2.2"),
        (b"%*d|", (0xFFFFFFFB, 42), b"42   |"),
        (b"%q and %", (), b"%q and %"),
        (b"%lld %llx", (1 << 63, 255), b"-9223372036854775808 ff"),
        (b"%zu %td", (7, (1 << 64) - 7), b"7 -7"),
    ],
)
def test_formats(text: bytes, arguments: tuple[int, ...], expected: bytes) -> None:
    assert ours(text, *arguments) == expected


def test_sizes_of_arguments() -> None:
    found = [x.sizes for x in conversions(b"%d%5.2f%s%hhd%lu%p%*c%%")]
    assert found == [[4], [8], [8], [4], [8], [8], [4, 4], [], []]


def test_a_field_has_an_end() -> None:
    assert len(ours(b"%999999999d", 1)) == 4096
