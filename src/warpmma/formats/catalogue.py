"""Number formats, their table, and look-ups in it.

The casts are in a module that needs NumPy, which is loaded for the first array.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from .._arguments import suggestion
from .._lazy import later
from .._lazy_numpy import Array, Float64, np, npt
from ..errors import OperandError, shown
from .facts import Facts, FloatFacts, IntegerFacts

if TYPE_CHECKING:
    from .._rounding import Rounding
    from . import casts
else:
    casts = later(".casts", __package__)


class _Arrays(Facts):
    """Arrays of every format."""

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
            Another dtype, or values that do not fit: for a conversion that can lose bits, call `encode`.
        """
        return casts.codes_of(self, array)

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
        >>> from warpmma.formats import FORMATS
        >>> FORMATS["f16"].array([0x3C00, 0xC000])
        array([ 1., -2.], dtype=float16)
        """
        return casts.array_of(self, codes)


class FloatFormat(FloatFacts, _Arrays):
    """A floating-point format: its fields, which `FloatFacts` explains, and casts of arrays."""

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
            -149 (f32's least) to 127 except for f64 itself.

        Examples
        --------
        >>> from warpmma.formats import FORMATS
        >>> FORMATS["e4m3"].decode([0x38, 0x7E, 0x01, 0xFF])
        array([1.000000e+00, 4.480000e+02, 1.953125e-03,          nan])
        """
        return casts.float_values(self, codes, self._table if self.bits <= 16 else None)

    @cached_property
    def _table(self) -> Float64:
        return casts.float_table(self)

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
            An unknown rounding or overflow, infinity for a format without it, or values that are not numbers or that
            float64 may not hold.

        Examples
        --------
        >>> from warpmma.formats import FORMATS
        >>> [hex(c) for c in FORMATS["f16"].encode([1.0, 65519.0, 65520.0, float("nan")])]
        ['0x3c00', '0x7bff', '0x7c00', '0x7fff']
        """
        return casts.float_codes(self, values, rounding, overflow)


class IntegerFormat(IntegerFacts, _Arrays):
    """An integer format: its fields, which `IntegerFacts` explains, and casts of arrays."""

    def decode(self, codes: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Values of codes, as int64."""
        return casts.integer_values(self, codes)

    def encode(self, values: npt.ArrayLike, rounding: Rounding = "rn") -> Array:
        """Codes of values, rounded to integers and clamped to the range as PTX `cvt` does; NaN becomes 0.

        Parameters
        ----------
        values : array_like of int or float
        rounding : {"rn", "rz", "rm", "rp"}
        """
        return casts.integer_codes(self, values, rounding)


Format = FloatFormat | IntegerFormat


_IEEE = "IEEE 754-2019"
_PTX = "PTX ISA 9.1, 5.2.3"
_OCP8 = "OCP 8-bit Floating Point Specification 1.0; " + _PTX
_MX = "OCP Microscaling Formats 1.0; " + _PTX
_INTEGER = "PTX ISA 9.1, 5.2.1 and 9.7.14"


def _float(
    name: str, bits: tuple[int, int], bias: int, nan: Any, overflow: Any, dtype: str, source: str, **more: Any
) -> FloatFormat:
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
