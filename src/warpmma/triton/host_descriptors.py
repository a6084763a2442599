"""Descriptors that the host makes, for kernels that Triton compiles for TMA.

The rules:

1. The compiler's metadata has one record for each descriptor of the signature, in order, those in tuples too. A kernel
   without such records takes no tensor maps (rule 3 of `launch_arguments`).
2. A descriptor is a tensor map, the shape and the strides: 128 bytes, i32 and i64.
3. The map has the address of the tensor, the shape, the strides in bytes and the fill of the descriptor; the element
   type, the box and the swizzle of the compiler's record, which splits a block that is wider than its swizzle; steps of
   1, no interleave, and 128 bytes of promotion. An f32 that is to be rounded has the type tf32.
4. Elements of fp4 in padded rows and im2col need types and records that sm_90 or Triton's language do not have: they
   are refused.

Source: the launcher of Triton 3.9 for NVIDIA's GPUs; its element types are those of `tensormap.replace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import OperandError, UnsupportedError, shown
from ..layouts import TensorMap

MAP_TYPE = "nvTmaDesc"
"""What Triton's launcher calls the type of a parameter that is a tensor map."""

_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32")
_SWIZZLES = (0, 32, 64, 128)
_PROMOTION = 128


@dataclass(frozen=True)
class MappedTensor:
    """A tensor, the type of a pointer to it, and the tensor map that a kernel takes in its place."""

    base: Any
    type: str
    map: TensorMap


def mapped_tensor(name: str, descriptor: Any, type_: str, address: int, record: Mapping[str, Any]) -> MappedTensor:
    """Return what a kernel takes for a descriptor (rules 3 and 4).

    Raises
    ------
    OperandError
        The driver refuses such a map, or the record has another number of dimensions.
    UnsupportedError
        Elements of fp4, im2col, and types that are not simulated.
    """
    if record.get("fp4_padded") or record.get("is_im2col") or not 0 <= record["elem_type"] < len(_TYPES):
        what = "im2col" if record.get("is_im2col") else f"elements of fp4 or of type {record['elem_type']}"
        raise UnsupportedError(f"{name} is a descriptor with {what}; expected tiles of elements of at least 8 bits")
    box, shape, strides = record["block_size"], tuple(descriptor.shape), tuple(descriptor.strides)
    if not len(box) == len(shape) == len(strides):
        raise OperandError(
            f"{name} has the shape {shown(shape)} and the strides {shown(strides)}; expected {len(box)} of each: the "
            f"kernel was compiled for that rank"
        )
    kind = "tf32" if getattr(descriptor, "round_f32_to_tf32", False) else _TYPES[record["elem_type"]]
    try:
        encoded = TensorMap(
            address, tuple(box), type=kind, shape=shape, strides=tuple(record["elem_size"] * n for n in strides[:-1]),
            swizzle=_SWIZZLES[record["swizzle"]], l2_promotion=_PROMOTION,
            fill=getattr(descriptor, "padding", "zero"),
        )  # fmt: skip
    except OperandError as error:
        raise OperandError(f"{name}: its tensor map is not legal: {error}") from None
    return MappedTensor(descriptor.base, type_, encoded)


def in_memory(arguments: Iterable[tuple[str, str, Any]]) -> list[tuple[str, str, Any]]:
    """Return the arguments with the tensors of tensor maps in their place: what lies in memory."""
    return [
        (f"{name}.base", x.type, x.base) if isinstance(x, MappedTensor) else (name, type_, x)
        for name, type_, x in arguments
    ]
