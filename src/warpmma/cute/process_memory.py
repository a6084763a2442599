"""Memory of the process that a kernel reads and writes in place: NumPy's arrays and CPU tensors.

The rules:

1. Known is the memory of every array that the DSL was given through DLPack while a device was active, as long as the
   DSL's tensor lives; of CPU tensors of PyTorch whose address was made a pointer; and what `CuteDevice.map` placed.
2. The whole storage of an array is mapped, not only the view of it, at its address in the process. Overlapping storages
   are mapped as one.
3. For a launch, that storage is mapped into which a word of 64 bits of the parameters points; and that into which one
   of the first 65,536 words of such a storage points, if its elements are integers of 64 bits, as tables of addresses
   have. There, CPU tensors of PyTorch are found that the DSL was not given.
4. Earlier writes of the process are not tracked: all of the memory counts as written.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..machine import Device
from .dlpack import DlpackTensor

_LOWEST, _HIGHEST = 1 << 32, 1 << 56  # other numbers, such as sizes, are not searched for
_MOST_ADDRESSES = 1 << 16
_INTEGERS = ("int64", "uint64")


@dataclass(frozen=True, kw_only=True)
class MemoryPiece:
    """A piece of the process's memory; `addresses` says whether it may hold some."""

    name: str
    start: int
    stop: int
    writeable: bool = True
    addresses: bool = False

    @property
    def __array_interface__(self) -> dict[str, Any]:
        shape = (self.stop - self.start,)
        return {"version": 3, "typestr": "|u1", "shape": shape, "data": (self.start, not self.writeable)}


def storage_of(x: Any, tensor: DlpackTensor) -> MemoryPiece | None:
    """Return the storage of an array that DLPack describes as a tensor (rule 2); None without memory."""
    dtype = str(getattr(x, "dtype", "")).rpartition(".")[2]
    name = f"the array {dtype}{list(tensor.shape)}"
    start, stop, writeable = tensor.start, tensor.stop, True
    if isinstance(x, np.ndarray):
        owner = x
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        (start, stop), writeable = np.lib.array_utils.byte_bounds(owner), x.flags.writeable
    elif _is_tensor(x):
        storage = x.untyped_storage()
        start = storage.data_ptr()
        stop = start + storage.nbytes()
    addresses = dtype in _INTEGERS
    if stop <= start:
        return None
    return MemoryPiece(name=name, start=start, stop=stop, writeable=writeable, addresses=addresses)


def _is_tensor(x: Any) -> bool:
    """Return whether it is a tensor of PyTorch, which is not imported to find that out."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and issubclass(type(x), torch.Tensor)


class KnownMemory:
    """The memory that kernels may reach (rule 1)."""

    def __init__(self) -> None:
        self._told: dict[int, tuple[weakref.ref[Any], MemoryPiece]] = {}
        self._pieces: list[MemoryPiece] | None = None

    def __len__(self) -> int:
        return len(self._told)

    def tell(self, owner: Any, storage: MemoryPiece) -> None:
        """Know a storage as long as an object lives."""
        number = id(owner)

        def forget(died: weakref.ref[Any]) -> None:
            if number in self._told and self._told[number][0] is died:
                del self._told[number]
                self._pieces = None

        self._told[number] = weakref.ref(owner, forget), storage
        self._pieces = None

    def tell_pointer(self, owner: Any, address: int) -> None:
        """Know the storage of the CPU tensor of PyTorch to which an address leads, as long as the pointer lives."""
        if self._into(np.array([address], np.uint64)):
            return
        for storage in _tensors_at(np.array([address], np.uint64)):
            self.tell(owner, storage)

    @contextmanager
    def mapped(self, device: Device, params: bytes) -> Iterator[None]:
        """Map what the parameters of a launch lead to on a device within the context (rule 3)."""
        with ExitStack() as placed:
            for piece in self._reached(params):
                if not _lies_there(device, piece):
                    placed.callback(device.map(np.asarray(piece), piece.start, name=piece.name).free)
            yield

    def _reached(self, params: bytes) -> list[MemoryPiece]:
        words = np.frombuffer(params, np.uint64, len(params) // 8)
        found = self._into(words)
        tables = [np.asarray(x)[: (x.stop - x.start) // 8 * 8] for x in found if x.addresses]
        if not tables:
            return found
        held = np.unique(np.concatenate([x.view(np.uint64)[:_MOST_ADDRESSES] for x in tables]))
        likely = held[(held >= _LOWEST) & (held < _HIGHEST)]
        return merged([*found, *self._into(likely), *_tensors_at(likely)])

    def _into(self, addresses: npt.NDArray[np.uint64]) -> list[MemoryPiece]:
        """Return the pieces into which addresses lead."""
        if self._pieces is None:
            self._pieces = merged(storage for _, storage in self._told.values())
        pieces = self._pieces
        if not pieces or not len(addresses):
            return []
        starts = np.array([x.start for x in pieces], np.uint64)
        at = np.searchsorted(starts, addresses, side="right").astype(np.int64) - 1
        stops = np.array([x.stop for x in pieces], np.uint64)
        inside = (at >= 0) & (addresses < stops[at])
        return [pieces[i] for i in np.unique(at[inside])]


def merged(pieces: Iterable[MemoryPiece]) -> list[MemoryPiece]:
    """Merge overlapping storages (rule 2); sorted by address."""
    found: list[MemoryPiece] = []
    for each in sorted(pieces, key=lambda piece: piece.start):
        last = found[-1] if found else None
        if last is None or each.start >= last.stop:
            found.append(each)
        else:
            found[-1] = replace(
                last, stop=max(last.stop, each.stop), writeable=last.writeable or each.writeable,
                addresses=last.addresses or each.addresses,
            )  # fmt: skip
    return found


def _lies_there(device: Device, piece: MemoryPiece) -> bool:
    """Return whether the caller has already mapped it at its address in the process."""
    region = device.space.find(piece.start)
    return region is not None and region.held.start == region.start and piece.stop <= region.stop


def _tensors_at(addresses: npt.NDArray[np.uint64]) -> Sequence[MemoryPiece]:
    """Return the storages of the CPU tensors of PyTorch that live at some addresses."""
    torch = sys.modules.get("torch")
    if torch is None or not len(addresses):
        return ()
    plain = (torch.Tensor, torch.nn.Parameter)
    found: dict[int, MemoryPiece] = {}
    with torch._C.DisableTorchFunction():
        for x in gc.get_objects():
            if type(x) in plain and x.device.type == "cpu" and str(x.layout) == "torch.strided":
                storage = x.untyped_storage()
                start, size = storage.data_ptr(), storage.nbytes()
                if size and ((addresses >= start) & (addresses < start + size)).any():
                    dtype = str(x.dtype).rpartition(".")[2]
                    name = f"a tensor {dtype}{list(x.shape)} whose address is an argument"
                    found[start] = MemoryPiece(name=name, start=start, stop=start + size, addresses=dtype in _INTEGERS)
    return tuple(found.values())
