"""The record of a number format, and everything that follows from it without NumPy."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from .._arguments import check_choice, is_integer
from .._lazy_numpy import _arrays, np, npt
from .._records import Record, Shown
from ..errors import OperandError, shown


@dataclass(frozen=True)
class Number(Shown):
    """One decoded code: `(-1)**sign * significand * 2**exponent`, or a special value.

    Attributes
    ----------
    kind : {"finite", "infinity", "nan"}
    sign : int
        0 or 1.
    significand : int
        Not normalised: a subnormal keeps the format's least exponent and has no hidden bit.
    exponent : int
        Weight of the significand's last bit.
    """

    kind: Literal["finite", "infinity", "nan"]
    sign: int = 0
    significand: int = 0
    exponent: int = 0


class Facts(Record):
    """Properties of every format that follow from its width and the type of its matrices."""

    name: str
    dtype_name: str
    bits: int

    @cached_property
    def mask(self) -> int:
        """All the bits of a code."""
        return (1 << self.bits) - 1

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """NumPy or ml_dtypes type of a matrix of this format."""
        return _dtype(self)

    @cached_property
    def code_dtype(self) -> np.dtype[Any]:
        """Unsigned type of raw codes: the narrowest that holds them."""
        return np.dtype(f"uint{next(w for w in (8, 16, 32, 64) if self.bits <= w)}")


@dataclass(frozen=True, kw_only=True)
class FloatFacts(Facts):
    """Definition of a floating-point format.

    Attributes
    ----------
    name : str
        PTX's name of the type.
    exponent_bits, fraction_bits, bias : int
        Widths of the fields and the exponent's bias.
    signed : bool
        Whether the top bit is a sign.
    subnormals : bool
        Whether exponent field 0 means a significand below 1 (and so whether there is a zero).
    nan : {"ieee", "ones", "none"}
        Which codes are NaN: exponent all ones with a fraction other than 0; all ones only; none.
        Only "ieee" formats have infinities.
    overflow : {"infinity", "saturate"}
        What PTX `cvt` returns for a value that is too large. Unless its rounding is to nearest, "infinity" formats
        keep their largest finite value.
    dtype_name : str
        The NumPy or ml_dtypes type of matrices of this format.
    padding : int
        Low bits of the code that carry nothing (tf32 has 13).
    source : str
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    signed: bool = True
    subnormals: bool = True
    nan: Literal["ieee", "ones", "none"]
    overflow: Literal["infinity", "saturate"]
    dtype_name: str
    padding: int = 0
    source: str

    def __post_init__(self) -> None:
        check_choice("nan", self.nan, ("ieee", "ones", "none"))
        check_choice("overflow", self.overflow, ("infinity", "saturate"))
        widths = {"exponent_bits": 11, "fraction_bits": 52, "padding": 13}
        _check_fields(self, {**{field: (0, most) for field, most in widths.items()}, "bias": (0, 1023)})
        wide = {32: (8, 127), 64: (11, 1023)}.get(self.bits)
        if self.bits > 16 and ((self.exponent_bits, self.bias) != wide or not (self.signed and self.subnormals)):
            raise OperandError(
                f"{self.name}: {self.bits} bits; expected at most 16, or the exponents of f32 in 32, of f64 in 64"
            )

    @property
    def bits(self) -> int:  # type: ignore[override]
        """Width of a code."""
        return self.signed + self.exponent_bits + self.fraction_bits + self.padding

    @property
    def emin(self) -> int:
        """Exponent of the least normal number, and of every subnormal."""
        return 1 - self.bias if self.subnormals else -self.bias

    @property
    def emax(self) -> int:
        """Exponent of the largest finite number."""
        return self.largest.significand.bit_length() - 1 + self.largest.exponent

    @property
    def largest(self) -> Number:
        """The largest finite number."""
        return self.unpack(self.max_code)

    @cached_property
    def max_code(self) -> int:
        """Code of the largest finite number."""
        magnitudes = 1 << (self.exponent_bits + self.fraction_bits)
        top = {"ieee": magnitudes - (1 << self.fraction_bits), "ones": magnitudes - 1, "none": magnitudes}[self.nan]
        return (top - 1) << self.padding

    @property
    def has_infinity(self) -> bool:
        """True if the format has infinities."""
        return self.nan == "ieee"

    @property
    def inf_code(self) -> int | None:
        """Code of +infinity, if there is one."""
        return self.max_code + (1 << self.padding) if self.has_infinity else None

    @property
    def nan_code(self) -> int | None:
        """The canonical NaN that GPU arithmetic writes: all ones but the sign; None where the format has no NaN.

        Source: NVIDIA's f32 0x7FFFFFFF and f16 0x7FFF, measured on an H200; PTX `cvt` for the 8-bit formats.
        """
        return None if self.nan == "none" else (1 << (self.bits - self.signed)) - 1

    @cached_property
    def sign_bit(self) -> int:
        """The sign's bit in a code; 0 for an unsigned format."""
        return 1 << (self.bits - 1) if self.signed else 0

    def unpack(self, code: int | np.integer[Any] | npt.NDArray[Any]) -> Number:
        """Decode one code, on Python integers.

        Examples
        --------
        >>> from warpmma.formats import FORMATS
        >>> FORMATS["f16"].unpack(0xC000)
        Number(kind='finite', sign=1, significand=1024, exponent=-9)
        """
        code = _one_code(self, code)
        return self._numbers[code] if self.bits <= 8 else self._unpacked(code)

    @cached_property
    def _numbers(self) -> tuple[Number, ...]:
        """Numbers of all codes, where they are few."""
        return tuple(self._unpacked(code) for code in range(1 << self.bits))

    def _unpacked(self, code: int) -> Number:
        sign = int(bool(code & self.sign_bit))
        magnitude = (code & ~self.sign_bit) >> self.padding
        field, fraction = magnitude >> self.fraction_bits, magnitude & ((1 << self.fraction_bits) - 1)
        ones = (1 << self.exponent_bits) - 1
        if self.nan == "ieee" and field == ones:
            return Number("nan" if fraction else "infinity", sign)
        if self.nan == "ones" and magnitude == (ones << self.fraction_bits) + (1 << self.fraction_bits) - 1:
            return Number("nan", sign)
        hidden = field > 0 or not self.subnormals
        exponent = (field if hidden else 1) - self.bias
        return Number("finite", sign, fraction + (hidden << self.fraction_bits), exponent - self.fraction_bits)


@dataclass(frozen=True, kw_only=True)
class IntegerFacts(Facts):
    """Definition of an integer format; two's complement if signed.

    Attributes
    ----------
    name : str
        PTX's name of the type.
    bits : int
        Width of a code.
    signed : bool
    dtype_name : str
        The NumPy or ml_dtypes type of matrices of this format.
    source : str
    """

    name: str
    bits: int
    signed: bool
    dtype_name: str
    source: str

    def __post_init__(self) -> None:
        _check_fields(self, {"bits": (1, 64)})

    @property
    def least(self) -> int:
        """The least value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def greatest(self) -> int:
        """The greatest value."""
        return self.least + self.mask

    def unpack(self, code: int | np.integer[Any] | npt.NDArray[Any]) -> int:
        """Decode one code, on Python integers.

        Examples
        --------
        >>> from warpmma.formats import FORMATS
        >>> FORMATS["s4"].unpack(0xF)
        -1
        """
        code = _one_code(self, code)
        return code - (1 << self.bits) if self.signed and code >> (self.bits - 1) else code


def _check_fields(fmt: Facts, ranges: dict[str, tuple[int, int]]) -> None:
    """Raise `OperandError` unless a record's texts are text, and its numbers in their ranges; make these Python's."""
    for field in ("name", "dtype_name", "source"):
        if not isinstance(text := getattr(fmt, field), str) or not text.isprintable():
            raise OperandError(f"{field} of a format is {shown(text)}; expected text")
    for field in ("signed", "subnormals"):
        if not isinstance(getattr(fmt, field, True), bool):
            raise OperandError(f"{fmt.name}: {field} is {shown(getattr(fmt, field))}; expected True or False")
    for field, (least, most) in ranges.items():
        if not is_integer(value := getattr(fmt, field)) or not least <= value <= most:
            raise OperandError(f"{fmt.name}: {field} is {shown(value)}; expected {least} to {most}")
        object.__setattr__(fmt, field, int(value))  # NumPy's integers would overflow in what follows


def _dtype(fmt: Facts) -> np.dtype[Any]:
    """Return the type of a format's matrices, which must be as wide as its codes."""
    dtype: np.dtype[Any] | None = None
    with suppress(Exception):  # NumPy raises many kinds for an invalid type
        dtype = _arrays.dtype_named(fmt.dtype_name)
    if dtype is None or dtype.hasobject or dtype.itemsize != fmt.code_dtype.itemsize:
        raise OperandError(
            f"{fmt.name}: dtype_name is {shown(fmt.dtype_name)}; expected a type of NumPy or ml_dtypes of "
            f"{fmt.code_dtype.itemsize} bytes, as its codes have"
        )
    return dtype


def _one_code(fmt: Facts, code: Any) -> int:
    """Return a code as Python's integer, with which NumPy's does not mix."""
    if type(code) is int and 0 <= code <= fmt.mask:  # the usual case
        return code
    numpy = sys.modules.get("numpy")  # a NumPy array implies that NumPy is loaded
    if numpy is not None and isinstance(code, numpy.ndarray) and not code.ndim:
        code = code[()]
    if not is_integer(code):
        raise OperandError(f"{fmt.name}: a code is an integer; got {shown(code)}")
    if not 0 <= code <= fmt.mask:
        raise OperandError(f"{fmt.name}: code {shown(code)} does not fit {fmt.bits} bits")
    return int(code)
