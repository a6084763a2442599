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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import is_tensor
from ..machine import Device, ProcessMemory, likely_addresses, mapped_memory, memory_of, merged_memory
from .dlpack import DlpackTensor

_MOST_ADDRESSES = 1 << 16
_INTEGERS = ("int64", "uint64")


def storage_of(x: Any, tensor: DlpackTensor) -> ProcessMemory | None:
    """Return the storage of an array that DLPack describes as a tensor (rule 2); None without memory."""
    dtype = str(getattr(x, "dtype", "")).rpartition(".")[2]
    name = f"the array {dtype}{list(tensor.shape)}"
    addresses = dtype in _INTEGERS
    if isinstance(x, np.ndarray):
        found = memory_of(name, x, addresses=addresses)
    else:
        start, stop = tensor.start, tensor.stop
        if is_tensor(x):
            storage = x.untyped_storage()
            start = storage.data_ptr()
            stop = start + storage.nbytes()
        found = ProcessMemory(name=name, start=start, stop=stop, addresses=addresses)
    return found if found.start < found.stop else None


class KnownMemory:
    """The memory that kernels may reach (rule 1)."""

    def __init__(self) -> None:
        self._told: dict[int, tuple[weakref.ref[Any], ProcessMemory]] = {}
        self._pieces: list[ProcessMemory] | None = None

    def __len__(self) -> int:
        return len(self._told)

    def tell(self, owner: Any, storage: ProcessMemory) -> None:
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

    def name_of(self, address: int) -> str:
        """Return the name of the storage at an address; "" if none is known."""
        found = self._into(np.array([address], np.uint64))
        return found[0].name if found else ""

    @contextmanager
    def mapped(self, device: Device, params: bytes) -> Iterator[None]:
        """Map what the parameters of a launch lead to on a device within the context (rule 3)."""
        with mapped_memory(device, self._reached(params)):
            yield

    def _reached(self, params: bytes) -> list[ProcessMemory]:
        words = np.frombuffer(params, np.uint64, len(params) // 8)
        found = self._into(words)
        tables = [np.asarray(x)[: (x.stop - x.start) // 8 * 8] for x in found if x.addresses]
        if not tables:
            return found
        held = np.unique(np.concatenate([x.view(np.uint64)[:_MOST_ADDRESSES] for x in tables]))
        likely = likely_addresses(held)
        return merged_memory([*found, *self._into(likely), *_tensors_at(likely)])

    def _into(self, addresses: npt.NDArray[np.uint64]) -> list[ProcessMemory]:
        """Return the pieces into which addresses lead."""
        if self._pieces is None:
            self._pieces = merged_memory(storage for _, storage in self._told.values())
        pieces = self._pieces
        if not pieces or not len(addresses):
            return []
        starts = np.array([x.start for x in pieces], np.uint64)
        at = np.searchsorted(starts, addresses, side="right").astype(np.int64) - 1
        stops = np.array([x.stop for x in pieces], np.uint64)
        inside = (at >= 0) & (addresses < stops[at])
        return [pieces[i] for i in np.unique(at[inside])]


def _tensors_at(addresses: npt.NDArray[np.uint64]) -> Sequence[ProcessMemory]:
    """Return the storages of the CPU tensors of PyTorch that live at some addresses."""
    torch = sys.modules.get("torch")
    if torch is None or not len(addresses):
        return ()
    plain = (torch.Tensor, torch.nn.Parameter)
    found: dict[int, ProcessMemory] = {}
    with torch._C.DisableTorchFunction():
        for x in gc.get_objects():
            if type(x) in plain and x.device.type == "cpu" and str(x.layout) == "torch.strided":
                storage = x.untyped_storage()
                start, size = storage.data_ptr(), storage.nbytes()
                if size and ((addresses >= start) & (addresses < start + size)).any():
                    dtype = str(x.dtype).rpartition(".")[2]
                    name, stop = f"a tensor {dtype}{list(x.shape)} whose address is an argument", start + size
                    found[start] = ProcessMemory(name=name, start=start, stop=stop, addresses=dtype in _INTEGERS)
    return tuple(found.values())
