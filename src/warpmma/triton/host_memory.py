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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import OperandError
from ..machine import Device
from .cuda_tensors import GENUINE

_LOWEST, _HIGHEST = 1 << 32, 1 << 56  # other numbers, such as indices, are not searched for
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


@dataclass(frozen=True, kw_only=True)
class Storage:
    """A piece of the process's memory."""

    name: str
    start: int
    stop: int
    writeable: bool

    @property
    def __array_interface__(self) -> dict[str, Any]:
        shape = (self.stop - self.start,)
        return {"version": 3, "typestr": "|u1", "shape": shape, "data": (self.start, not self.writeable)}


def is_tensor(x: Any) -> bool:
    """Return whether it is a tensor of PyTorch, which is not imported to find that out."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and issubclass(type(x), torch.Tensor)


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
def storage_of(name: str, x: Any) -> Storage | None:
    """Return the storage of a tensor or array; None if it has no storage in the memory of this process."""
    x = _wrapped(x)
    if isinstance(x, HostArray):
        owner = x.array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        start, stop = np.lib.array_utils.byte_bounds(owner)
        return Storage(name=name, start=start, stop=stop, writeable=x.array.flags.writeable) if x.array.size else None
    if not is_tensor(x) or x.device.type != "cpu":
        return None
    storage = x.untyped_storage()
    start = storage.data_ptr()
    return Storage(name=name, start=start, stop=start + storage.nbytes(), writeable=True) if start else None


@contextmanager
def mapped_for_launch(device: Device, args: Sequence[tuple[str, str, Any]]) -> Iterator[None]:
    """Map the storages of arguments on a device within the context; of each argument name, type and value."""
    found = [y for name, _, x in args if (y := storage_of(name, x)) is not None]
    with ExitStack() as placed:
        for piece in _merged([*found, *_pointed_at(args)]):
            if not _lies_there(device, piece):
                placed.callback(device.map(np.asarray(piece), piece.start, name=piece.name).free)
        yield


def _merged(pieces: list[Storage]) -> list[Storage]:
    """Rule 1: merge overlapping storages."""
    merged: list[Storage] = []
    for each in sorted(pieces, key=lambda piece: piece.start):
        last = merged[-1] if merged else None
        if last is None or each.start >= last.stop:
            merged.append(each)
        else:
            writeable = last.writeable or each.writeable
            merged[-1] = replace(last, stop=max(last.stop, each.stop), writeable=writeable)
    return merged


def _lies_there(device: Device, piece: Storage) -> bool:
    """Return whether the caller has already mapped it at its address in the process."""
    region = device.space.find(piece.start)
    return region is not None and region.held.start == region.start and piece.stop <= region.stop


@_genuinely
def _pointed_at(args: Sequence[tuple[str, str, Any]]) -> list[Storage]:
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
    return values[(values > _LOWEST) & (values < _HIGHEST)]


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
