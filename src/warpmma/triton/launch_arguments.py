"""Arguments of a compiled kernel, in the form that its PTX expects.

The rules:

1. Triton omits `tl.constexpr` from the parameters, and arguments that it made constants: None, and integers equal to 1.
   The kernel's signature calls these "constexpr"; up to 3.2 its constants name them.
2. A tuple is passed as its elements, in order.
3. A descriptor that the host made is, for targets without TMA: pointer, shape, strides, whether what lies outside is a
   NaN, from 3.7 on whether f32 is rounded to tf32, and shape and strides once more. For targets with TMA it is a tensor
   map, shape and strides (`host_descriptors`).
4. A pointer is what `data_ptr()` returns, an integer or None. A compiled kernel may be given arrays of another type
   than those it was compiled for: elements that contradict it (`machine.contradicts`) are an error, except for bytes
   (i8, u8) and results of `triton.reinterpret`.
5. Integers are never truncated: one that does not fit is an error. fp16 is rounded to nearest, bf16 is truncated from
   fp32, as in Triton's launcher.
6. Pointers to scratch memory follow, one from 3.3 on and two from 3.5 on.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import OperandError, UnsupportedError, shown
from ..machine import contradicts, expected, fits
from ..ptx import Parameter
from .host_descriptors import MAP_TYPE, MappedTensor, mapped_tensor
from .host_memory import HostArray

_ELEMENTS = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2", "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz", "i1": "bool",
    "i16": "int16", "i32": "int32", "i64": "int64", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip
"""Types of the elements that pointers lead to, as NumPy and ml_dtypes name them."""

_FLOATS = frozenset(("fp16", "bf16", "fp32", "f32", "fp64"))

_Records: TypeAlias = Iterator[Mapping[str, Any]] | None


def flat_arguments(
    signature: Mapping[Any, Any],
    constants: Mapping[Any, Any],
    args: Iterable[Any],
    descriptors: Sequence[Mapping[str, Any]] = (),
) -> list[tuple[str, str, Any]]:
    """Return names, types and values of what a kernel takes: one argument for each type of the signature.

    What `constants` names is omitted: the kernel was compiled for its value. `descriptors` are the records of
    `host_descriptors`, none for a target without TMA.
    """
    records = iter(descriptors) if descriptors else None
    found: list[tuple[str, str, Any]] = []
    given = tuple(args)
    if len(given) != len(signature):
        raise OperandError(
            f"a compiled kernel takes {', '.join(map(str, signature))}: {len(given)} arguments are given"
        )
    for (name, type_), x in zip(signature.items(), given, strict=True):
        if name not in constants:
            found.extend(_flat(str(name), type_, x, records))
    return found


def _flat(name: str, type_: Any, x: Any, records: _Records) -> Iterator[tuple[str, str, Any]]:
    if isinstance(type_, tuple):
        for i, (inner, y) in enumerate(zip(type_, x, strict=True)):
            yield from _flat(f"{name}[{i}]", inner, y, records)
    elif type_.startswith("tensordesc"):
        yield from _descriptor(name, type_, x, records)
    elif type_ != "constexpr":
        yield name, type_, HostArray(x) if isinstance(x, np.ndarray) else x


def _descriptor(name: str, type_: str, x: Any, records: _Records) -> Iterator[tuple[str, str, Any]]:
    """Rule 3."""
    pointer = "*" + type_.partition("<")[2].partition("[")[0]
    if not all(hasattr(x, part) for part in ("base", "shape", "strides")):
        raise OperandError(f"{name} is {shown(x)}; expected a TensorDescriptor: the kernel was compiled for {type_}")
    if records is not None:
        address = _pointer(f"{name}.base", pointer, x.base)
        yield name, MAP_TYPE, mapped_tensor(name, x, pointer, address, next(records))
    else:
        yield f"{name}.base", pointer, x.base
        yield from ((f"{name}.shape", "i64", n) for n in x.shape)
        yield from ((f"{name}.strides", "i64", n) for n in x.strides)
        if hasattr(x, "padding"):
            yield f"{name}.padding", "i1", x.padding == "nan"
        if hasattr(x, "round_f32_to_tf32"):
            yield f"{name}.round_f32_to_tf32", "i1", bool(x.round_f32_to_tf32)
    yield from ((f"{name}.shape", "i32", n) for n in x.shape)
    yield from ((f"{name}.strides", "i64", n) for n in x.strides)


def parameter_bytes(arguments: Iterable[tuple[str, str, Any]], parameters: Sequence[Parameter]) -> bytes:
    """Return the bytes of a kernel's parameters, from the name, type and value of each argument."""
    data = bytearray(max((x.offset + x.size for x in parameters), default=0))
    for (name, type_, x), at in zip(arguments, parameters, strict=True):
        value = _encoded(name, type_, x, at.size)
        if len(value) != at.size:
            raise OperandError(f"{name} ({type_}) has {len(value)} bytes; the PTX takes {at.size}")
        data[at.offset : at.offset + at.size] = value
    return bytes(data)


def _encoded(name: str, type_: str, x: Any, size: int) -> bytes:
    if isinstance(x, MappedTensor):
        return x.map.encoded
    if type_ == MAP_TYPE:
        raise UnsupportedError(
            f"{name} is a tensor map that is passed by itself; expected a TensorDescriptor of triton.tools"
        )
    if type_ in _FLOATS:
        if not isinstance(x, int | float | np.floating):
            raise OperandError(f"{name} is {shown(x)}; expected a float ({type_})")
        return _float(name, type_, float(x))
    try:
        value = _pointer(name, type_, x) if type_[0] == "*" else operator.index(x)
    except TypeError:
        raise OperandError(f"{name} is {shown(x)}; expected an integer ({type_})") from None
    if not fits(value, 8 * size):
        raise OperandError(f"{name} is {shown(value)}; expected an integer of {8 * size} bits ({type_})")
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _float(name: str, type_: str, x: float) -> bytes:
    """Rule 5."""
    if type_ == "fp16":
        try:
            return struct.pack("<e", x)
        except OverflowError:
            raise OperandError(f"{name} is {x}, too large for fp16") from None
    with np.errstate(over="ignore"):
        data = (np.float64 if type_ == "fp64" else np.float32)(x).tobytes()
    return data[2:] if type_ == "bf16" else data


def _pointer(name: str, type_: str, x: Any) -> int:
    """Rule 4."""
    if x is None:
        return 0
    held, declared = str(getattr(x, "dtype", "")).rpartition(".")[2], _ELEMENTS.get(type_.lstrip("*k"), "")
    if contradicts(declared, held):
        raise OperandError(f"{name} is an array of {held}; the kernel was compiled for {type_}: {expected(declared)}")
    if hasattr(x, "data_ptr"):
        x = x.data_ptr()
    try:
        return operator.index(x)
    except TypeError:
        raise OperandError(f"{name} is {shown(x)}; expected a tensor, an array, an address or None") from None
