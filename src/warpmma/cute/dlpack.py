"""DLPack's record of a tensor in a capsule, and where it says that the tensor lies.

The DSL compiles accesses to memory of the host otherwise than those to memory of a GPU, and refuses copies from there.
So what lies on the CPU is called memory of the GPU, in the capsule that the DSL alone was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from .._arrays import DlpackRecord, capsule_address
from ..errors import OperandError

_CPU, _CUDA = 1, 2  # DLDeviceType
_UNVERSIONED = b"dltensor"  # the one kind of capsule that the DSL takes


@dataclass(frozen=True)
class DlpackTensor:
    """A tensor as DLPack describes it: the bytes from `start` to `stop` that its elements take, and its shape."""

    start: int
    stop: int
    shape: tuple[int, ...]


def as_gpu_memory(capsule: Any) -> DlpackTensor | None:
    """Call a tensor of the CPU one of the GPU, and describe it; None for what is not a capsule of DLPack.

    Raises
    ------
    OperandError
        It lies elsewhere.
    """
    if (record := _record(capsule)) is None:
        return None
    if record.device_type != _CPU:
        raise OperandError(
            f"a tensor lies on device {record.device_id} of DLPack's type {record.device_type}; expected an array of "
            "NumPy or a tensor on the CPU"
        )
    record.device_type = _CUDA
    return _described(record)


def described(capsule: Any) -> DlpackTensor | None:
    """Describe a tensor, wherever it lies; None for what is not a capsule of DLPack."""
    record = _record(capsule)
    return None if record is None else _described(record)


def _record(capsule: Any) -> DlpackRecord | None:
    address = capsule_address(capsule, _UNVERSIONED)
    return None if address is None else DlpackRecord.from_address(address)


def _described(record: DlpackRecord) -> DlpackTensor:
    shape = tuple(record.shape[i] for i in range(record.ndim))
    start = (record.data or 0) + record.byte_offset
    bits = record.bits * record.lanes  # of an element, which may be less than a byte
    if not prod(shape):
        return DlpackTensor(start, start, shape)
    if not record.strides:
        return DlpackTensor(start, start + -(-bits * prod(shape) // 8), shape)
    steps = [(n - 1) * record.strides[i] * bits for i, n in enumerate(shape)]
    below, above = sum(x for x in steps if x < 0), sum(x for x in steps if x > 0)
    return DlpackTensor(start + below // 8, start + -(-(above + bits) // 8), shape)
