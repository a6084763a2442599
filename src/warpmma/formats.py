"""Number formats: one record each, and everything else derived from it.

A *code* is the unsigned integer that a register holds for one element. A `FloatFormat` or an `IntegerFormat` says what
a code means, which code a value gets, and which NumPy or ml_dtypes type holds such elements in a matrix.

Sources: PTX ISA 9.1, section 5.2.3 "Alternate Floating-Point Data Formats" and 9.7.14 (field widths, special values);
IEEE 754-2019 (binary16, 32, 64); OCP 8-bit Floating Point Specification 1.0 and OCP Microscaling Formats 1.0 (biases,
largest values); the `cvt` page of PTX for what overflow does.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from ._arguments import check_choice, is_integer, suggestion
from ._arrays import as_array, frozen
from ._dtypes import dtype_named
from ._records import Record
from ._rounding import Float64, Rounding, check_rounding, on_magnitude, quantize
from .errors import OperandError, shown

__all__ = ["FORMATS", "FloatFormat", "Format", "IntegerFormat", "Number", "floating", "integer"]

Array = npt.NDArray[Any]

# Numbers at a time that are rounded: their temporaries stay in a cache, which makes them three times as fast.
_PART = 1 << 14


@dataclass(frozen=True)
class Number:
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


@cache
def _code_dtype(bits: int) -> np.dtype[Any]:
    """Return the narrowest unsigned dtype that holds `bits` bits."""
    return np.dtype(f"uint{next(w for w in (8, 16, 32, 64) if bits <= w)}")


class _Coded(Record):
    """What follows for every format from its width and the type of its matrices."""

    name: str
    dtype_name: str
    bits: int

    @property
    def mask(self) -> int:
        """All the bits of a code."""
        return (1 << self.bits) - 1

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """NumPy or ml_dtypes type of a matrix of this format."""
        return _dtype(cast("Format", self))

    @cached_property
    def code_dtype(self) -> np.dtype[Any]:
        """Unsigned type of raw codes."""
        return _code_dtype(self.bits)

    def codes(self, array: npt.ArrayLike) -> Array:
        """Raw codes of an array.

        Parameters
        ----------
        array : array_like
            Of this format's dtype; or raw codes of its code dtype, which must fit its width; for integer formats also
            of any integer dtype if the values fit.

        Returns
        -------
        ndarray of unsigned int

        Raises
        ------
        OperandError
            Another dtype, or values that do not fit: a conversion that can lose bits is the caller's to ask for, with
            `encode`.
        """
        return _codes(cast("Format", self), array)

    def array(self, codes: npt.ArrayLike) -> Array:
        """Array of this format's dtype that holds these codes, bit for bit: the inverse of `codes`.

        Parameters
        ----------
        codes : array_like of unsigned int
            Of any integer dtype, if they fit the format's width.

        Returns
        -------
        ndarray
            A view, where the codes are of the code dtype and an element fills its bytes.

        Raises
        ------
        OperandError
            Values, which are for `encode`; or codes that do not fit.

        Examples
        --------
        >>> FORMATS["f16"].array([0x3C00, 0xC000])
        array([ 1., -2.], dtype=float16)
        """
        fmt = cast("Format", self)
        checked = _as_codes(fmt, codes)
        if isinstance(fmt, IntegerFormat) and fmt.bits < 8:  # ml_dtypes keeps them sign-extended, so a view will not do
            return np.asarray(fmt.decode(checked), np.int8 if fmt.signed else np.uint8).astype(fmt.dtype)
        return np.asarray(checked.view(fmt.dtype))


@dataclass(frozen=True, kw_only=True)
class FloatFormat(_Coded):
    """A floating-point format.

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
        What PTX `cvt` makes of a value that is too large. Unless its rounding is to nearest, "infinity" formats
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
        """Whether the format has infinities."""
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

    @property
    def sign_bit(self) -> int:
        """The sign's bit in a code; 0 for an unsigned format."""
        return 1 << (self.bits - 1) if self.signed else 0

    def unpack(self, code: int | np.integer[Any] | Array) -> Number:
        """Decode one code, on Python integers.

        Examples
        --------
        >>> FORMATS["f16"].unpack(0xC000)
        Number(kind='finite', sign=1, significand=1024, exponent=-9)
        """
        code = _one_code(self, code)
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

    def decode(self, codes: npt.ArrayLike) -> Float64:
        """Values of codes, exactly, as float64.

        Parameters
        ----------
        codes : array_like of unsigned int
            Any shape. For f64 the bits are reinterpreted, payloads of NaN included.

        Returns
        -------
        ndarray of float64
            float64 holds every value of every format exactly: at most 53 significand bits, and exponents from
            -149 (f32's least) to 127 but for f64 itself.

        Examples
        --------
        >>> FORMATS["e4m3"].decode([0x38, 0x7E, 0x01, 0xFF])
        array([1.000000e+00, 4.480000e+02, 1.953125e-03,          nan])
        """
        array = _as_codes(self, codes)
        if self.bits == 64:
            return array.view(np.float64)
        if self.bits <= 16:
            return self._table.take(array.astype(np.intp))  # NumPy gathers by its own index type three times as fast
        array = array & self.code_dtype.type(self.mask - (1 << self.padding) + 1)
        values: Float64
        with np.errstate(invalid="ignore"):  # a signalling NaN
            values = array.view(np.float32).astype(np.float64)
        # A machine that some library has told to read subnormals as zero would do so here; integers do not.
        magnitude = array & self.code_dtype.type(self.sign_bit - 1)
        tiny = magnitude < 1 << (self.fraction_bits + self.padding)
        if tiny.any():
            values = np.where(tiny, np.copysign(magnitude * 2.0**-149, values), values)
        return values

    @cached_property
    def _table(self) -> Float64:
        """Value of every code of a format of at most 16 bits."""
        codes = np.arange(1 << self.bits, dtype=np.int64)
        magnitude = codes & ~self.sign_bit
        field, fraction = magnitude >> self.fraction_bits, magnitude & ((1 << self.fraction_bits) - 1)
        hidden = (field > 0) | (not self.subnormals)
        exponent = np.where(hidden, field, 1) - self.bias - self.fraction_bits
        values = np.ldexp((fraction + (hidden << self.fraction_bits)).astype(np.float64), exponent)
        if self.inf_code is not None:
            values[magnitude == self.inf_code] = np.inf
            values[magnitude > self.inf_code] = np.nan
        elif self.nan_code is not None:
            values[magnitude == self.nan_code] = np.nan
        return frozen(np.where(codes & self.sign_bit, -values, values))

    def encode(
        self,
        values: npt.ArrayLike,
        rounding: Rounding = "rn",
        *,
        overflow: Literal["infinity", "saturate"] | None = None,
    ) -> Array:
        """Codes of values, rounded once.

        Parameters
        ----------
        values : array_like of float
            Taken as float64; float32 and narrower values are exact there. f64 itself keeps their bits.
        rounding : {"rn", "rz", "rm", "rp"}
            To nearest even, toward zero, down, up.
        overflow : {"infinity", "saturate"}, optional
            Instead of what PTX `cvt` does for this format. "saturate" gives the largest finite value of that sign;
            "infinity" gives infinity where the rounding leads away from zero, and the largest value elsewhere.

        Returns
        -------
        ndarray of unsigned int
            NaN becomes the canonical NaN, and the largest finite value where the format has no NaN (PTX `cvt`).
            Negative values of an unsigned format become its least value.

        Raises
        ------
        OperandError
            An unknown rounding or overflow, infinity for a format without it, or values that are no numbers or that
            float64 may not hold.

        Examples
        --------
        >>> [hex(c) for c in FORMATS["f16"].encode([1.0, 65519.0, 65520.0, float("nan")])]
        ['0x3c00', '0x7bff', '0x7c00', '0x7fff']
        """
        check_rounding(rounding)
        policy = self.overflow if overflow is None else overflow
        check_choice("overflow", policy, ("infinity", "saturate"))
        values = _numbers(self, values)
        if self.bits == 64:
            return values.view(np.uint64)
        if policy == "infinity" and not self.has_infinity:
            raise OperandError(f"{self.name} has no infinity; overflow can only be 'saturate'")
        codes = np.empty(values.shape, self.code_dtype)
        of, to = values.reshape(-1), codes.reshape(-1)
        for start in range(0, of.size, _PART):
            part = slice(start, start + _PART)
            to[part] = self._encoded(of[part], rounding, policy)
        return codes

    def _encoded(self, values: Float64, rounding: Rounding, policy: str) -> Array:
        """Codes of some values."""
        negative = np.signbit(values)
        magnitude = quantize(np.abs(values), self.fraction_bits, self.emin, on_magnitude(rounding, negative))
        if not self.subnormals:  # exponent field 0 is a normal number, which stands in for everything below it
            magnitude = np.maximum(magnitude - (1 << self.fraction_bits), 0)
        top = self.max_code >> self.padding
        beyond: Array | int = top
        if policy == "infinity":
            away = {"rn": True, "rz": False, "rm": negative, "rp": ~negative}[rounding]
            beyond = np.where(np.isinf(values) | away, top + 1, top)
        magnitude = np.where(magnitude > top, beyond, magnitude)
        if not self.signed:
            magnitude = np.where(negative, 0, magnitude)
        codes = (magnitude << self.padding) + np.where(negative, self.sign_bit, 0)
        canonical = self.max_code if self.nan_code is None else self.nan_code
        return np.where(np.isnan(values), canonical, codes).astype(self.code_dtype)


@dataclass(frozen=True, kw_only=True)
class IntegerFormat(_Coded):
    """An integer format; two's complement where signed.

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

    def unpack(self, code: int | np.integer[Any] | Array) -> int:
        """Decode one code, on Python integers.

        Examples
        --------
        >>> FORMATS["s4"].unpack(0xF)
        -1
        """
        code = _one_code(self, code)
        return code - (1 << self.bits) if self.signed and code >> (self.bits - 1) else code

    def decode(self, codes: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Values of codes, as int64."""
        wide = _as_codes(self, codes).astype(np.int64)
        # Sign extension: flipping the sign bit and taking its weight off again.
        return (wide ^ -self.least) + self.least if self.signed else wide

    def encode(self, values: npt.ArrayLike, rounding: Rounding = "rn") -> Array:
        """Codes of values, rounded to integers and clamped to the range as PTX `cvt` does; NaN becomes 0.

        Parameters
        ----------
        values : array_like of int or float
        rounding : {"rn", "rz", "rm", "rp"}
        """
        check_rounding(rounding)
        values = as_array(values, self.name)
        if values.dtype.kind not in "iub":
            values = _numbers(self, values)
            with np.errstate(invalid="ignore"):  # a signalling NaN
                rounded = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}[rounding](values)
            clamped: Array = np.nan_to_num(np.clip(rounded, self.least, self.greatest), nan=0.0)
        else:
            values = values.astype(np.uint8) if values.dtype.kind == "b" else values
            limits = np.iinfo(values.dtype)  # bounds beyond it are no numbers of that type, and nothing is beyond them
            clamped = np.clip(values, max(self.least, limits.min), min(self.greatest, limits.max))
        return (clamped.astype(np.int64) & self.mask).astype(self.code_dtype)


Format = FloatFormat | IntegerFormat


def _check_fields(fmt: Format, ranges: dict[str, tuple[int, int]]) -> None:
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


def _dtype(fmt: Format) -> np.dtype[Any]:
    """Return the type of a format's matrices, which must be as wide as its codes."""
    dtype: np.dtype[Any] | None = None
    with suppress(Exception):  # NumPy has many for what is no type
        dtype = dtype_named(fmt.dtype_name)
    if dtype is None or dtype.hasobject or dtype.itemsize != fmt.code_dtype.itemsize:
        raise OperandError(
            f"{fmt.name}: dtype_name is {shown(fmt.dtype_name)}; expected a type of NumPy or ml_dtypes of "
            f"{fmt.code_dtype.itemsize} bytes, as its codes have"
        )
    return dtype


def _codes(fmt: Format, array: npt.ArrayLike) -> Array:
    array = as_array(array, fmt.name)
    if array.dtype == object:
        raise OperandError(f"{fmt.name}: object arrays hold no bits; give {fmt.dtype} or {fmt.code_dtype} codes")
    if array.dtype == fmt.dtype and array.dtype.kind not in "iub":
        if isinstance(fmt, FloatFormat):
            codes = np.ascontiguousarray(array).view(_code_dtype(8 * array.dtype.itemsize)).reshape(array.shape)
            return codes & fmt.code_dtype.type(fmt.mask) if fmt.bits % 8 else codes
        return (array.astype(np.int8).view(np.uint8) & fmt.mask).astype(fmt.code_dtype)  # 4-bit ml_dtypes
    if array.dtype == fmt.code_dtype:
        return _checked(fmt, array, 0, fmt.mask).astype(fmt.code_dtype, copy=False)
    if isinstance(fmt, IntegerFormat) and array.dtype.kind in "iub":
        low, high = (0, fmt.mask) if array.dtype.kind == "u" and fmt.bits < 8 else (fmt.least, fmt.greatest)
        wide = _checked(fmt, array, low, high)
        cut: Array = wide.astype(fmt.code_dtype) & fmt.code_dtype.type(fmt.mask)  # two's complement, cut to the width
        return cut
    raise OperandError(
        f"{fmt.name}: got dtype {array.dtype}; expected {fmt.dtype}, or raw codes as {fmt.code_dtype}"
        + (f" (to round values, use warpmma.FORMATS[{fmt.name!r}].encode)" if array.dtype.kind == "f" else "")
    )


def _one_code(fmt: Format, code: Any) -> int:
    """Return a code as Python's integer, with which NumPy's does not mix."""
    if isinstance(code, np.ndarray) and not code.ndim:
        code = code[()]
    if not is_integer(code):
        raise OperandError(f"{fmt.name}: a code is an integer; got {shown(code)}")
    if not 0 <= code <= fmt.mask:
        raise OperandError(f"{fmt.name}: code {shown(code)} does not fit {fmt.bits} bits")
    return int(code)


def _numbers(fmt: Format, values: npt.ArrayLike) -> Float64:
    """Values to be rounded, as float64; integers only where that is exact, for they would be rounded twice."""
    array = as_array(values, fmt.name)
    if array.dtype.kind not in "iufbV" or issubclass(array.dtype.type, np.void):
        raise OperandError(f"{fmt.name}: cannot encode dtype {array.dtype}; give an integer or a float dtype")
    if array.dtype.itemsize > 8 or (
        array.dtype.kind in "iu" and array.size and max(abs(int(array.min())), int(array.max())) > 1 << 53
    ):
        raise OperandError(f"{fmt.name}: {array.dtype} values that float64 may not hold; round them to float64 first")
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return array.astype(np.float64)


def _as_codes(fmt: Format, codes: npt.ArrayLike) -> Array:
    """Check codes that are to be decoded: any integers within the format's width."""
    array = as_array(codes, fmt.name)
    if array.dtype == fmt.code_dtype and fmt.bits == 8 * array.dtype.itemsize:
        return array
    if array.dtype.kind not in "iu":
        raise OperandError(f"{fmt.name}: codes are unsigned integers such as {fmt.code_dtype}; got dtype {array.dtype}")
    return _checked(fmt, array, 0, fmt.mask).astype(fmt.code_dtype)


def _checked(fmt: Format, array: Array, low: int, high: int) -> Array:
    """Return `array` if all of it lies in [low, high]; name the first that does not."""
    if not array.size or (int(array.min()) >= low and int(array.max()) <= high):
        return array
    bad = (array.astype(object) < low) | (array.astype(object) > high)
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    raise OperandError(f"{fmt.name}: {int(array[place])} at {list(place)} does not fit; expected {low} to {high}")


_IEEE = "IEEE 754-2019"
_PTX = "PTX ISA 9.1, 5.2.3"
_OCP8 = "OCP 8-bit Floating Point Specification 1.0; " + _PTX
_MX = "OCP Microscaling Formats 1.0; " + _PTX
_INTEGER = "PTX ISA 9.1, 5.2.1 and 9.7.14"


def _float(
    name: str, bits: tuple[int, int], bias: int, nan: Any, overflow: Any, dtype: str, source: str, **more: Any
) -> FloatFormat:  # fmt: skip
    return FloatFormat(
        name=name, exponent_bits=bits[0], fraction_bits=bits[1], bias=bias, nan=nan, overflow=overflow,
        dtype_name=dtype, source=source, **more,
    )  # fmt: skip


_FloatName = Literal["f64", "f32", "tf32", "f16", "bf16", "e5m2", "e4m3", "e3m2", "e2m3", "e2m1", "ue8m0", "ue4m3"]
_IntegerName = Literal["s32", "s8", "u8", "s4", "u4", "b1"]

if TYPE_CHECKING:

    class _Formats(Mapping[str, Format]):
        """Formats by name, such that a name written out has a type of its own."""

        @overload
        def __getitem__(self, name: _FloatName) -> FloatFormat: ...
        @overload
        def __getitem__(self, name: _IntegerName) -> IntegerFormat: ...
        @overload
        def __getitem__(self, name: str) -> Format: ...
        def __getitem__(self, name: str) -> Format:
            raise NotImplementedError


class _UnknownFormatError(OperandError, KeyError):
    """A name that no format has: an error of ours, and such as mappings raise."""

    __str__ = OperandError.__str__


class _ByName(dict[str, Format]):
    def __missing__(self, name: object) -> Format:
        raise _UnknownFormatError(f"no format {shown(name)}; expected one of {', '.join(self)}{suggestion(name, self)}")


FORMATS: _Formats = cast(
    "_Formats",
    MappingProxyType(
        _ByName(
            (f.name, f)
            for f in (
                _float("f64", (11, 52), 1023, "ieee", "infinity", "float64", _IEEE),
                _float("f32", (8, 23), 127, "ieee", "infinity", "float32", _IEEE),
                _float("tf32", (8, 10), 127, "ieee", "infinity", "float32", _PTX, padding=13),
                _float("f16", (5, 10), 15, "ieee", "infinity", "float16", _IEEE),
                _float("bf16", (8, 7), 127, "ieee", "infinity", "bfloat16", _PTX),
                _float("e5m2", (5, 2), 15, "ieee", "saturate", "float8_e5m2", _OCP8),
                _float("e4m3", (4, 3), 7, "ones", "saturate", "float8_e4m3fn", _OCP8),
                _float("e3m2", (3, 2), 3, "none", "saturate", "float6_e3m2fn", _MX),
                _float("e2m3", (2, 3), 1, "none", "saturate", "float6_e2m3fn", _MX),
                _float("e2m1", (2, 1), 1, "none", "saturate", "float4_e2m1fn", _MX),
                _float("ue8m0", (8, 0), 127, "ones", "saturate", "float8_e8m0fnu", _MX, signed=False, subnormals=False),
                _float("ue4m3", (4, 3), 7, "ones", "saturate", "uint8", _PTX, signed=False),
                IntegerFormat(name="s32", bits=32, signed=True, dtype_name="int32", source=_INTEGER),
                IntegerFormat(name="s8", bits=8, signed=True, dtype_name="int8", source=_INTEGER),
                IntegerFormat(name="u8", bits=8, signed=False, dtype_name="uint8", source=_INTEGER),
                IntegerFormat(name="s4", bits=4, signed=True, dtype_name="int4", source=_INTEGER),
                IntegerFormat(name="u4", bits=4, signed=False, dtype_name="uint4", source=_INTEGER),
                IntegerFormat(name="b1", bits=1, signed=False, dtype_name="uint8", source=_INTEGER),
            )
        )
    ),
)
"""Every format of a matrix operand or a scale, by its PTX name; read-only."""


def floating(name: str) -> FloatFormat:
    """Return a floating-point format by its PTX name; any other name is an `OperandError`.

    Examples
    --------
    >>> floating("bf16").fraction_bits
    7
    """
    return _of(FloatFormat, name)


def integer(name: str) -> IntegerFormat:
    """Return an integer format by its PTX name; any other name is an `OperandError`.

    Examples
    --------
    >>> integer("s8").greatest
    127
    """
    return _of(IntegerFormat, name)


_Kind = TypeVar("_Kind", FloatFormat, IntegerFormat)


def _of(kind: type[_Kind], name: str) -> _Kind:
    if not isinstance(name, str):
        raise OperandError(f"a format is named by a string; got {shown(name)}")
    fmt = FORMATS[name]
    if not isinstance(fmt, kind):
        came = "floating-point" if isinstance(fmt, FloatFormat) else "integer"
        names = ", ".join(known for known, other in FORMATS.items() if isinstance(other, kind))
        raise OperandError(f"{name} is of the {came} formats; expected one of {names}")
    return fmt
