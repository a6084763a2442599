"""Elements of any NumPy or ml_dtypes type: their bits, their order, and their values in few digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Array
from ..errors import OperandError
from ..formats import FORMATS, FloatFormat, Format
from ..isa import Instruction
from ..layouts import Operand

Order = tuple[Array, npt.NDArray[np.bool_]]
"""Places as int64 or uint64, and which are NaN."""

_EXACT = 1 << 24  # integers below it are written out


@dataclass(frozen=True, kw_only=True)
class Reader:
    """How to read elements of one type."""

    name: str
    bits: int  # width of a code
    floating: bool
    codes: Callable[[Array], Array]  # from an array to the codes of its elements, unsigned
    order: Callable[[Array], Order]  # from codes to places in the order of values, neighbours one apart; and to NaN
    show: Callable[[int], str]  # from a code to its value, in the fewest digits that are unique
    values: Callable[[Array], Array]  # from codes to float64; wide integers are rounded
    rounded: Callable[[Array], Array] | None = None  # from float64 to the nearest codes; None of integers


def format_of(record: Instruction, operand: Operand, dtype: np.dtype[Any]) -> Format:
    """Return the format of an operand's matrix: its own, but that a kernel may store an f32 D in half as many bits."""
    own = record.format(operand)
    if operand == "D" and own.name == "f32":
        return next((FORMATS[name] for name in ("f16", "bf16") if FORMATS[name].dtype == dtype), own)
    return own


def distance(x: Array, y: Array) -> npt.NDArray[np.uint64]:
    """Return |x - y| of int64 or uint64 numbers, which is below 2**64 though it may not fit int64."""
    # A subtraction modulo 2**64 of numbers less than 2**64 apart.
    a, b = np.where(x >= y, x, y).astype(np.uint64), np.where(x >= y, y, x).astype(np.uint64)
    return np.asarray(a - b)


def reader_of(dtype: np.dtype[Any]) -> Reader:
    """Return the reader of a dtype; `OperandError` for one whose elements are not numbers with bits of their own."""
    for fmt in FORMATS.values():
        if fmt.dtype == dtype and fmt.name not in ("tf32", "ue4m3", "b1"):
            return reader(fmt)
    if dtype.kind in "iub":
        return _wide_integers(dtype)
    known: Any = None
    if dtype.kind in "Vf" and not dtype.names and dtype.itemsize <= 2:
        import ml_dtypes  # an array of such a dtype implies that it is imported

        for info in (ml_dtypes.finfo, ml_dtypes.iinfo):
            try:
                known = info(dtype)
            except (TypeError, ValueError):
                continue
            return _narrow_integers(dtype, known.bits) if info is ml_dtypes.iinfo else _other_floats(dtype, known.bits)
    raise OperandError(f"{dtype} has no bits to compare; expected a NumPy or ml_dtypes type of up to 64 bits")


@cache
def reader(fmt: Format) -> Reader:
    """Return the reader of a format."""
    if not isinstance(fmt, FloatFormat):
        return _integers(fmt.name, fmt.bits, fmt.codes, fmt.decode, lambda code: str(fmt.unpack(code)))
    top = (fmt.max_code if fmt.inf_code is None else fmt.inf_code) >> fmt.padding

    def order(codes: Array) -> Order:
        wide = codes.astype(np.uint64)
        magnitude = ((wide & np.uint64(fmt.mask & ~fmt.sign_bit)) >> np.uint64(fmt.padding)).astype(np.int64)
        negative = wide & np.uint64(fmt.sign_bit) != 0
        return np.where(negative, -magnitude, magnitude), magnitude > top

    return Reader(
        name=fmt.name, bits=fmt.bits, floating=True, codes=fmt.codes, order=order, show=lambda code: _show(fmt, code),
        values=lambda codes: fmt.decode(codes).astype(np.float64), rounded=fmt.encode,
    )  # fmt: skip


@lru_cache(4096)
def _show(fmt: FloatFormat, code: int) -> str:
    """Write a value in the fewest digits that round to it."""
    number = fmt.unpack(code)
    sign = "-" if number.sign else ""
    if number.kind != "finite":
        return sign + {"infinity": "inf", "nan": "nan"}[number.kind]
    kept = code & fmt.mask & ~fmt.sign_bit & -(1 << fmt.padding)
    value, most = (float(fmt.decode(np.array(code, fmt.code_dtype))) for code in (kept, fmt.max_code))
    # What is larger than all numbers may be clamped to the largest; that does not make it one.
    return sign + _shortest(value, lambda near: near <= most and int(fmt.encode(near)) == kept)


def _shortest(value: float, same: Callable[[float], bool]) -> str:
    """Write a number that is not negative, in the fewest digits that give it again; integers in full."""
    if value.is_integer() and value < _EXACT:
        return str(int(value))
    return next((text for digits in range(1, 17) if same(float(text := f"{value:.{digits}g}"))), repr(value))


def _integers(
    name: str, bits: int, codes: Callable[[Array], Array], value: Callable[[Array], Array], show: Callable[[int], str]
) -> Reader:
    return Reader(
        name=name, bits=bits, floating=False, codes=codes, show=show,
        order=lambda codes: (value(codes), np.zeros(codes.shape, bool)),
        values=lambda codes: value(codes).astype(np.float64),
    )  # fmt: skip


def _wide_integers(dtype: np.dtype[Any]) -> Reader:
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    own = np.dtype(np.uint8) if dtype.kind == "b" else dtype
    wide = np.dtype(np.int64) if dtype.kind == "i" else np.dtype(np.uint64)

    def value(codes: Array) -> Array:
        return codes.astype(unsigned).view(own).astype(wide)

    return _integers(
        str(dtype), 8 * dtype.itemsize, lambda array: np.ascontiguousarray(array).view(unsigned).reshape(array.shape),
        value, lambda code: str(value(np.array(code)).astype(dtype)),
    )  # fmt: skip


def _narrow_integers(dtype: np.dtype[Any], bits: int) -> Reader:
    """Integers of ml_dtypes narrower than a byte, other than the formats of 4 bits."""
    sign = 1 << (bits - 1) if str(dtype).startswith("int") else 0

    def value(codes: Array) -> Array:
        return np.asarray((codes.astype(np.int64) ^ sign) - sign)

    return _integers(
        str(dtype), bits, lambda array: array.astype(np.int8).view(np.uint8) & np.uint8((1 << bits) - 1), value,
        lambda code: str(value(np.array(code))),
    )  # fmt: skip


def _other_floats(dtype: np.dtype[Any], bits: int) -> Reader:
    """Floats of ml_dtypes that no instruction takes; all are a sign and a magnitude."""
    sign = 1 << (bits - 1)
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")

    def values(codes: Array) -> Array:
        return codes.astype(unsigned).view(dtype).astype(np.float64)

    def order(codes: Array) -> Order:
        magnitude = (codes & (sign - 1)).astype(np.int64)
        return np.where(codes & sign, -magnitude, magnitude), np.isnan(values(codes))

    def show(code: int) -> str:
        value = float(values(np.array(code)))
        if np.isnan(value) or np.isinf(value):
            return str(value)
        sign = "-" if np.signbit(value) else ""
        return sign + _shortest(abs(value), lambda near: float(np.float64(near).astype(dtype)) == abs(value))

    return Reader(
        name=str(dtype), bits=bits, floating=True,
        codes=lambda array: np.ascontiguousarray(array).view(unsigned).reshape(array.shape), order=order, show=show,
        values=values, rounded=lambda values: values.astype(dtype).view(unsigned),
    )  # fmt: skip
