"""The table of formats, and look-ups in it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from .._arguments import suggestion
from ..errors import OperandError, shown
from .number_formats import FloatFormat, Format, IntegerFormat

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
