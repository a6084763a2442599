"""Memory of the process that a kernel reads and writes in place: CPU tensors of PyTorch, and NumPy's arrays.

The rules:

1. The whole storage of a tensor or an array is mapped on the device for the launch, at its address in the process:
   so addresses that are stored in tensors stay valid. Overlapping storages are mapped as one.
2. Earlier writes of the process are not tracked: all of the memory counts as written.
3. If an argument is an address, or a tensor of 64-bit integers among whose first 65,536 are addresses inside a live CPU
   tensor, that tensor's storage is mapped, too. NumPy's arrays are not searched for: use `TritonDevice.map`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import is_tensor
from .._cuda_tensors import GENUINE
from ..errors import OperandError
from ..machine import Device, ProcessMemory, likely_addresses, mapped_memory, memory_of, merged_memory

_MOST_ADDRESSES = 1 << 16
_NONE = np.zeros(0, np.uint64)
_NONE.flags.writeable = False
_POINTED_AT = "a tensor whose address is an argument"


class HostArray:
    """An array of NumPy, as Triton takes tensors: it has `data_ptr`, and everything that the array has."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array, self.dtype = array, array.dtype

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def __array__(self, *args: Any, **options: Any) -> npt.NDArray[Any]:
        return np.asarray(self.array, *args, **options)

    def data_ptr(self) -> int:
        """Return the process's address of its first element."""
        return self.array.ctypes.data

    def zero_(self) -> None:
        """Write zeros, as `reset_to_zero` of an autotuned kernel asks."""
        self.array[...] = 0

    def clone(self) -> HostArray:
        """Copy it, as `restore_value` asks."""
        return HostArray(self.array.copy())

    def copy_(self, other: HostArray) -> None:
        """Write what a copy holds."""
        self.array[...] = other.array


def _genuinely(function: Any) -> Any:
    """Return a function within which tensors answer as PyTorch has them, whatever stands for "cuda"."""

    @wraps(function)
    def genuine(*args: Any) -> Any:
        __tracebackhide__ = True
        if "torch" not in sys.modules:
            return function(*args)
        with GENUINE():
            return function(*args)

    return genuine


def _wrapped(x: Any) -> Any:
    """Return the tensor in what `triton.reinterpret` returns."""
    while hasattr(x, "data_ptr") and hasattr(x, "base") and not isinstance(x, HostArray) and not is_tensor(x):
        x = x.base
    return x


@_genuinely
def storage_of(name: str, x: Any) -> ProcessMemory | None:
    """Return the storage of a tensor or array; None if it has no storage in the memory of this process."""
    x = _wrapped(x)
    if isinstance(x, HostArray):
        return memory_of(name, x.array) if x.array.size else None
    if not is_tensor(x) or x.device.type != "cpu":
        return None
    storage = x.untyped_storage()
    start = storage.data_ptr()
    return ProcessMemory(name=name, start=start, stop=start + storage.nbytes()) if start else None


@contextmanager
def mapped_for_launch(device: Device, args: Sequence[tuple[str, str, Any]]) -> Iterator[None]:
    """Map the storages of arguments on a device within the context; of each argument name, type and value."""
    found = [y for name, _, x in args if (y := storage_of(name, x)) is not None]
    with mapped_memory(device, merged_memory([*found, *_pointed_at(args)])):
        yield


@_genuinely
def _pointed_at(args: Sequence[tuple[str, str, Any]]) -> list[ProcessMemory]:
    """Rule 3."""
    addresses = np.unique(np.concatenate([_NONE, *(_addresses(type_, x) for _, type_, x in args)]))
    pieces = {y.start: y for x in _living_tensors() if (y := storage_of(_POINTED_AT, x))} if len(addresses) else {}
    bounds = ((x, *np.searchsorted(addresses, np.array([x.start, x.stop], np.uint64))) for x in pieces.values())
    return [piece for piece, first, behind in bounds if first < behind]


def _living_tensors() -> Iterator[Any]:
    torch = sys.modules.get("torch")
    plain = () if torch is None else (torch.Tensor, torch.nn.Parameter)  # others need have no memory
    return (x for x in gc.get_objects() if type(x) in plain and str(x.layout) == "torch.strided")


def _addresses(type_: str, x: Any) -> npt.NDArray[np.uint64]:
    """Return what may be addresses."""
    if type_ in ("i64", "u64") or (type_[0] == "*" and isinstance(x, int)):
        values = np.array([int(x) % (1 << 64)], np.uint64)
    elif type_.lstrip("*k") not in ("i64", "u64"):
        return _NONE
    elif isinstance(x, HostArray):
        values = x.array.reshape(-1)[:_MOST_ADDRESSES].astype(np.uint64)
    elif is_tensor(x):
        values = x.detach().reshape(-1)[:_MOST_ADDRESSES].numpy().astype(np.uint64)
    else:
        return _NONE
    return likely_addresses(values)


@_genuinely
def check_place(name: str, x: Any) -> None:
    """Refuse a tensor that is not in this process's memory."""
    x = _wrapped(x)
    if not is_tensor(x):
        return
    if x.device.type != "cpu":
        raise OperandError(f"{name} is a tensor on {x.device}; kernels are simulated on the CPU: give {name}.cpu()")
    if str(x.layout) != "torch.strided":
        raise OperandError(f"{name} is a tensor of layout {x.layout}; expected torch.strided")
