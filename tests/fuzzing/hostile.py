"""Values that no parameter expects: the pool from which the arguments of a fuzzed call are replaced."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import io
import math
import pathlib
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from .broken import broken

__all__ = ["DTYPES", "HUGE", "INTEGERS", "Rng", "chance", "hostile", "pick", "strange_array", "strange_scalar"]

Rng = np.random.Generator
T = TypeVar("T")


def pick(rng: Rng, choices: Sequence[T]) -> T:
    """Choose one, evenly."""
    return choices[int(rng.integers(len(choices)))]


def chance(rng: Rng, probability: float) -> bool:
    """Be true so often."""
    return bool(rng.random() < probability)


class Colour(enum.IntEnum):
    """An integer that is a member of something."""

    RED = 1


class Word(enum.StrEnum):
    """A text that is a member of something."""

    A = "A"


HUGE = 1 << 50
"""A size that no memory holds, so that whoever makes such an array whole fails at once."""

INTEGERS = (
    0, 1, -1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 1023, 1025, 65535, 65536,
    1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 32, (1 << 32) - 1, 1 << 53, 1 << 63, (1 << 63) - 1, -(1 << 63), 1 << 64,
    (1 << 64) - 1, 10**30, -(10**30), 10**5000,
)  # fmt: skip
"""Integers at the ends of types; the last has more digits than Python prints."""

_FLOATS = (0.0, -0.0, 1.0, -1.5, 0.1, 3.0, math.nan, math.inf, -math.inf, 1e308, 5e-324, 2.0**31, 2.0**64)
_TEXTS = (
    "", " ", "3", "0", "-1", "1.0", "a", "A", "B", "C", "D", "E", "AB", "AA", "b", "row", "f32", "f16", "e4m3", "any",
    "bits", "error", "warn", "hardware", "zero", "rn", "auto", "numpy", "native", "sm_90", "sm_9", "SM_90", "sm_90 ",
    "sm_999", "sm_", "H100", "nonsense", "\0", "é", "\ud800", "\n", "{}", "%s", "x" * 5000, "1" * 5000, "..", "mma",
    "mma.", "None", "float32", "<u4", "uint32", "O", "b32", "pred", "shared",
)  # fmt: skip
_DATES = ("datetime64[s]", "timedelta64[s]", "datetime64[ns]", "timedelta64[D]")
_NARROW = (
    "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3", "float8_e3m4", "float8_e4m3fnuz",
    "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4", "uint4", "int2", "uint2",
)  # fmt: skip
DTYPES: tuple[np.dtype[Any], ...] = tuple(
    np.dtype(x)
    for x in (
        *"?bBhHiIlLqQefdgFDG", "S3", "U3", "O", "V4", "i4,f4", *_DATES, ">u4", ">f4", ">u2", ">f2", ">u8", ">f8",
        *(getattr(ml_dtypes, name) for name in _NARROW),
    )
)  # fmt: skip
"""Types of elements, of NumPy and ml_dtypes, and of either byte order."""


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    return np.zeros(shape, dtype)


def strange_scalar(rng: Rng) -> Any:
    """A scalar of NumPy or ml_dtypes, or a number of the standard library."""
    return pick(rng, _SCALARS)()


_SCALARS: tuple[Callable[[], Any], ...] = (
    lambda: np.timedelta64(1, "s"), lambda: np.timedelta64(0, "D"), lambda: np.timedelta64("NaT", "s"),
    lambda: np.timedelta64(1, "Y"), lambda: np.datetime64("2020-01-01"), lambda: np.datetime64("NaT", "s"),
    *(lambda t=t: t(1) for t in (
        np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
        np.float64, np.longdouble, np.complex64, np.bool_, np.str_, np.bytes_, ml_dtypes.bfloat16, ml_dtypes.int4,
        ml_dtypes.uint4, ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn,
    )),
    lambda: np.int8(-1), lambda: np.uint64((1 << 64) - 1), lambda: np.int64(-(1 << 63)), lambda: np.float64("nan"),
    lambda: np.str_("A"), lambda: np.void(b"abc"), lambda: np.zeros(1, "i4,f4")[0], lambda: 1 + 2j,
    lambda: fractions.Fraction(1, 2), lambda: fractions.Fraction(3), lambda: decimal.Decimal("1.5"), lambda: Colour.RED,
    lambda: datetime.timedelta(1),
)  # fmt: skip

_SHAPES: tuple[tuple[int, ...], ...] = (
    (), (0,), (1,), (2,), (32,), (31,), (33,), (64,), (0, 0), (0, 32), (1, 32), (2, 32), (4, 32), (8, 32), (4, 31),
    (32, 4), (16, 16), (16, 8), (8, 16), (16, 32), (32, 8), (3, 4, 32), (0, 4, 32), (2, 16, 16), (4, 8, 4), (1, 1, 1),
    (1,) * 33, (1,) * 64, (*(1,) * 31, 4, 32), (*(1,) * 62, 4, 32), (*(1,) * 40, 16, 16), (2, 0, 3),
)  # fmt: skip


def strange_array(rng: Rng) -> Any:
    """An array of any type and shape, or something that is nearly one."""
    return pick(rng, _ARRAYS)(rng)


def _typed(rng: Rng) -> Any:
    dtype, shape = pick(rng, DTYPES), pick(rng, _SHAPES)
    array = np.zeros(shape, dtype)
    if not dtype.hasobject and dtype.kind not in "UMm?" and array.size:
        array = np.frombuffer(rng.bytes(array.nbytes), dtype).reshape(shape).copy()
        if dtype.name in ("int4", "uint4", "int2", "uint2"):
            array = np.zeros(shape, dtype)
    return array


def _cyclic(rng: Rng) -> Any:
    endless: list[Any] = []
    endless.append(endless)
    return endless


def _deep(rng: Rng) -> Any:
    deep: Any = 1
    for _ in range(pick(rng, (33, 65, 70))):
        deep = [deep]
    return deep


_ARRAYS: tuple[Callable[[Rng], Any], ...] = (
    _typed, _typed, _typed, _typed,
    lambda rng: np.array(pick(rng, (3, 1.5, "a", None, b"a", True))),
    lambda rng: np.zeros(pick(rng, _SHAPES)),
    lambda rng: [[1], [1, 2]], lambda rng: [1, "a"], lambda rng: [None, 1], lambda rng: [1, [2]], lambda rng: [],
    lambda rng: [[]], lambda rng: [10**30], lambda rng: [-1], lambda rng: [1 << 64, -1], lambda rng: [1.5, 2],
    lambda rng: (), lambda rng: ((), ()), lambda rng: [True, False], lambda rng: [1e400], lambda rng: [{}, []],
    lambda rng: [np.timedelta64(1, "s")], lambda rng: ["A", "B"], _cyclic, _deep,
    lambda rng: np.array([1, "a", None], object), lambda rng: np.array([[1, 2], [3, 4]], object),
    lambda rng: np.array([10**30, -1], object), lambda rng: np.full((4, 32), None, object),
    lambda rng: np.ma.masked_array([1, 2, 3], [False, True, False]),
    lambda rng: np.ma.masked_array(np.zeros((16, 16), "f2")),
    lambda rng: np.ma.masked, lambda rng: np.matrix([[1, 2], [3, 4]]),
    lambda rng: np.zeros(3, "i4,f4").view(np.recarray),
    lambda rng: np.broadcast_to(np.uint32(7), (HUGE >> 7, 4, 32)), lambda rng: np.broadcast_to(np.float16(1), (HUGE,)),
    lambda rng: np.broadcast_to(np.uint8(1), (1 << 13, HUGE >> 13)),
    lambda rng: np.array(["a", "b"], np.dtypes.StringDType()),
    lambda rng: np.array(["2020-01-01"], "M8[D]"), lambda rng: np.zeros((4, 32), "m8[s]"),
    lambda rng: memoryview(bytes(128)), lambda rng: np.zeros((4, 32), "u4").data, lambda rng: bytearray(4),
)  # fmt: skip


def _other(rng: Rng) -> Any:
    return pick(rng, _OTHERS)()


_OTHERS: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: None, lambda: True, lambda: False, lambda: ..., lambda: NotImplemented, lambda: b"",
    lambda: b"A", lambda: b"sm_90", lambda: bytearray(b"A"), dict, lambda: {"A": 1}, lambda: {1: 2}, lambda: set(),
    lambda: {1, 2}, lambda: {"A"}, lambda: frozenset({3}), lambda: range(3), lambda: range(0), lambda: iter(()),
    lambda: iter([1, 2]), lambda: (x for x in (1, 2)), lambda: zip((1,), (2,), strict=True),
    lambda: slice(None), lambda: int,
    lambda: str, lambda: np.uint32, lambda: np.ndarray, lambda: np.dtype("f2"), lambda: np, lambda: len,
    lambda: lambda *_: None, lambda: lambda *_: 1, lambda: print, lambda: collections.deque([1, 2]), lambda: object(),
    lambda: collections.Counter("ab"), lambda: types.SimpleNamespace(), lambda: pathlib.Path("/nonexistent"),
    lambda: io.BytesIO(b"PK"), lambda: ValueError("no"), lambda: Word.A, lambda: collections.UserString("A"),
    lambda: collections.UserList([1]), lambda: np.random.default_rng(0), lambda: memoryview(b"abc"),
    lambda: types.MappingProxyType({"race": "warn"}), lambda: array_like(),
)  # fmt: skip


def array_like() -> Any:
    """An object that is no array, but gives one when asked as NumPy asks."""
    return type("Gives", (), {"__array__": lambda self, dtype=None, copy=None: np.arange(32, dtype=np.uint32)})()


def hostile(rng: Rng) -> Any:
    """Return any value at all."""
    where = rng.random()
    if where < 0.12:
        return pick(rng, INTEGERS)
    if where < 0.18:
        return pick(rng, _FLOATS)
    if where < 0.28:
        return pick(rng, _TEXTS)
    if where < 0.42:
        return strange_scalar(rng)
    if where < 0.62:
        return strange_array(rng)
    if where < 0.74:
        return broken(rng)
    return _other(rng)
