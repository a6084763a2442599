"""What arithmetic and conversions share: types, elements of registers, clamps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

import numpy as np

from .._arrays import Array
from ..errors import OperandError, shown
from ..formats import FORMATS, FloatFormat, IntegerFormat
from .records import RegisterType, register_type


@dataclass(frozen=True, kw_only=True)
class RegisterOf:
    """A PTX type of an operand: elements of one format in a register."""

    name: str  # PTX's name
    fmt: FloatFormat | IntegerFormat  # of each element
    count: int = 1  # element 0 is in the low bits
    slot: int  # bits from one element to the next

    @property
    def register(self) -> RegisterType:
        """The register that holds it. Types narrower than 16 bits occupy the low bits of a 16-bit register."""
        return cast(RegisterType, f"b{max(16, self.count * self.slot)}")

    def split(self, word: Array) -> list[Array]:
        """Codes of the elements of a register."""
        dtype, mask = self.fmt.code_dtype, word.dtype.type(self.fmt.mask)
        if self.count == 1:
            return [(word & mask).astype(dtype, copy=False)]
        return [((word >> word.dtype.type(i * self.slot)) & mask).astype(dtype) for i in range(self.count)]

    def join(self, codes: Sequence[Array]) -> Array:
        """Pack the codes of elements into a register; a single integer is sign-extended."""
        dtype = np.dtype(f"uint{self.register[1:]}")
        if isinstance(self.fmt, IntegerFormat) and self.count == 1 and self.fmt.bits < 16:
            return self.fmt.decode(codes[0]).astype(dtype)
        word = codes[0].astype(dtype)
        for i, code in enumerate(codes[1:], 1):
            word = word | (code.astype(dtype) << dtype.type(i * self.slot))
        return word


def _integer(name: str) -> IntegerFormat:
    known = FORMATS.get(name)
    if isinstance(known, IntegerFormat):
        return known
    bits, signed = int(name[1:]), name[0] == "s"
    return IntegerFormat(
        name=name, bits=bits, signed=signed, dtype_name=f"{'' if signed else 'u'}int{bits}", source="PTX ISA 9.1, 5.2.1"
    )


def _types() -> dict[str, RegisterOf]:
    types = [RegisterOf(name=n, fmt=FORMATS[n], slot=FORMATS[n].bits) for n in ("f16", "bf16", "tf32", "f32", "f64")]
    packed = {"f16": 16, "bf16": 16, "f32": 32, "e4m3": 8, "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 4, "ue8m0": 8}
    types += [RegisterOf(name=f"{n}x2", fmt=FORMATS[n], count=2, slot=slot) for n, slot in packed.items()]
    integers = [_integer(f"{sign}{bits}") for sign in "su" for bits in (8, 16, 32, 64)]
    return {t.name: t for t in (*types, *(RegisterOf(name=i.name, fmt=i, slot=i.bits) for i in integers))}


def _stands_for(letter: str, type_: str) -> str:
    if letter == "W":
        return f"{type_[0]}{2 * int(type_[1:])}"
    return type_ if letter == "T" else letter


def operands(text: str, words: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return a row's operand fields from their types, inputs before the arrow and outputs after it.

    T stands for the last word of the mnemonic, W for that type with twice the bits.

    Examples
    --------
    >>> operands("T T -> W", ("mul", "wide", "s32"))
    {'inputs': ('b32', 'b32'), 'input_types': ('s32', 's32'), 'outputs': ('b64',)}
    """
    types, results = (tuple(_stands_for(x, words[-1]) for x in side.split()) for side in text.split("->"))
    return {
        "inputs": tuple(register_type(x) for x in types), "input_types": types,
        "outputs": tuple(register_type(x) for x in results),
    }  # fmt: skip


TYPES: Mapping[str, RegisterOf] = MappingProxyType(_types())
"""Types of operands, by their PTX names."""


def by_element(
    function: Callable[..., Array], sources: Sequence[RegisterOf], out: RegisterOf, *x: Array
) -> tuple[Array]:
    """Apply a function of elements to registers."""
    codes = [source.split(word) for source, word in zip(sources, x, strict=True)]
    return (out.join([function(*each) for each in zip(*codes, strict=True)]),)


def signs(fmt: FloatFormat, codes: Array) -> Array:
    """Return the sign bits of codes, in place."""
    result: Array = codes & fmt.code_dtype.type(fmt.sign_bit)
    return result


def magnitude(fmt: FloatFormat, codes: Array) -> Array:
    """Return codes without their signs."""
    result: Array = codes & fmt.code_dtype.type(fmt.mask & ~fmt.sign_bit)
    return result


def is_nan(fmt: FloatFormat, codes: Array) -> Array:
    """Return which codes of an IEEE format are NaN."""
    result: Array = magnitude(fmt, codes) > fmt.code_dtype.type(cast(int, fmt.inf_code))
    return result


def quieted(fmt: FloatFormat, codes: Array) -> Array:
    """Set the top bit of the fraction: a NaN becomes quiet and keeps its sign and the rest of its payload."""
    result: Array = codes | fmt.code_dtype.type(1 << (fmt.fraction_bits - 1))
    return result


def float_code(type_: str, x: float, who: str) -> int:
    """Return the code of a number: f32 and f64 round it to nearest, but not to infinity or zero.

    Raises
    ------
    OperandError
        It is out of their range, or not a value of another type.

    Examples
    --------
    >>> hex(float_code("f32", 0.1, "add.f32: operand 1")), hex(float_code("f16", 1.5, "add.f16: operand 1"))
    ('0x3dcccccd', '0x3e00')
    """
    fmt = cast(FloatFormat, FORMATS[type_])
    decimal = type_ in ("f32", "f64")
    if decimal and math.isnan(x):
        return int(np.asarray(x, fmt.dtype).view(fmt.code_dtype))
    (code,) = fmt.encode([x])
    (value,) = fmt.decode(code[None]).tolist()
    if decimal:
        if (math.isinf(value) and not math.isinf(x)) or (value == 0 and x != 0):
            raise OperandError(f"{who}: {shown(x)} is beyond the range of {type_}, where it would be {value}")
    elif value != x and not (math.isnan(value) and math.isnan(x)):
        raise OperandError(f"{who}: {shown(x)} is not a value of {type_}; the nearest is {value!r}")
    return int(code)


def flushed(fmt: FloatFormat, codes: Array) -> Array:
    """Flush subnormal numbers to zeros of the same sign: `.ftz`."""
    subnormal = magnitude(fmt, codes) < fmt.code_dtype.type(1 << (fmt.fraction_bits + fmt.padding))
    return np.where(subnormal, signs(fmt, codes), codes)


def clamped(fmt: FloatFormat, codes: Array) -> Array:
    """Clamp to [0, 1], with +0 for NaN and -0: `.sat`."""
    zero, one = fmt.code_dtype.type(0), fmt.code_dtype.type(fmt.bias << fmt.fraction_bits)
    result: Array = np.where((signs(fmt, codes) != 0) | is_nan(fmt, codes), zero, np.minimum(codes, one))
    return result


def rectified(fmt: FloatFormat, codes: Array) -> Array:
    """Return +0 for negative numbers and -0: `.relu`. A NaN, canonical here, is positive and unchanged."""
    return np.where(signs(fmt, codes) != 0, fmt.code_dtype.type(0), codes)
