"""A GPU as `warpmma.gpu` knows it, whose kernels a simulated device runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from arrays import Array
from dlpack_cases import Exported

import warpmma as wm
from warpmma import cuda
from warpmma.gpu import OPTIONS

_SHORT = (*OPTIONS, "-DUNROLLED=1")


class SimulatedGpu:
    """Compiles by NVRTC and launches on a simulated device, with hazards; memory is that of the device."""

    name = "simulated"
    capability = (9, 0)

    def __init__(self, hazards: Any = "error", target: str = "sm_90", options: tuple[str, ...] = ()) -> None:
        self.device, self.hazards, self.options = wm.Device(target), hazards, options
        self.launches: list[tuple[Any, int]] = []
        self.waits = 0

    def launch(self, what: Any, stream: int = 0) -> None:
        self.launches.append((what, stream))
        if what.grid:
            kernel = _compiled(what.kernel.text, what.kernel.arch or "sm_90", self.options)[what.kernel.name]
            kernel.launch(self.device, what.grid, what.threads, [what.argument()], hazards=self.hazards)

    def fetch(self, address: int, into: Array, stream: int = 0) -> None:
        self.waits += 1
        if into.nbytes:
            into.reshape(-1).view(np.uint8)[...] = np.frombuffer(self.device.read(address, into.nbytes), np.uint8)

    @contextmanager
    def copies(self) -> Iterator[_Copies]:
        yield _Copies(self.device)


@lru_cache(maxsize=16)  # a kernel has 10,000 objects, which Python would look through until the tests end
def _compiled(text: str, arch: str, options: tuple[str, ...]) -> cuda.CudaModule:
    return cuda.load(text, arch=arch, options=(*_SHORT, *options), compiler="nvrtc", name="product.cu")


class _Copies:
    def __init__(self, device: wm.Device) -> None:
        self._device = device
        self._held: dict[int, Any] = {}

    def put(self, array: Array) -> int:
        there = self._device.array(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        self._held[there.address] = there
        return there.address

    def empty(self, size: int) -> int:
        return self.put(np.full(max(1, size), 0xA5, np.uint8))

    def get(self, address: int, into: Array) -> None:
        into[...] = self._held[address].numpy()[: into.nbytes].view(into.dtype).reshape(into.shape)


class GpuArray:
    """An array of a library that has its memory on a simulated GPU: it exports DLPack, and names its library.

    The library has NumPy's own types, and no others. `streams` lists for which streams memory was exported; `number` is
    that of the GPU.
    """

    def __init__(self, memory: Any, like: Array, number: int = 0) -> None:
        self._memory, self._like = memory, like  # `like` has the shape, strides and place of this view in zeros
        self.shape, self.dtype, self.device, self.streams = like.shape, like.dtype, "gpu", list[object]()
        self._exported, self.number = list[object](), number

    @classmethod
    def of(cls, device: wm.Device, x: Array, number: int = 0) -> GpuArray:
        """Copy an array to the device."""
        return cls(device.array(np.ascontiguousarray(x).reshape(-1)), np.zeros(x.shape, x.dtype), number)

    def __getitem__(self, key: Any) -> GpuArray:
        return self._view(self._like[key])

    @property
    def mT(self) -> GpuArray:
        return self._view(self._like.swapaxes(-1, -2))

    def _view(self, like: Array) -> GpuArray:
        view = GpuArray(self._memory, like, self.number)
        view.streams = self.streams
        return view

    @property
    def _offset(self) -> int:
        base = self._like
        while isinstance(base.base, np.ndarray):
            base = base.base
        return self._like.ctypes.data - base.ctypes.data

    def numpy(self) -> Array:
        """Copy to the host."""
        whole = self._memory.numpy().reshape(-1)
        return np.ndarray(self.shape, self.dtype, whole, self._offset, self._like.strides)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.number

    def __dlpack__(self, *, stream: object, max_version: object = None) -> object:
        self.streams.append(stream)
        kinds = {"f": 2, "u": 1, "i": 0}
        place = SimpleNamespace(data=self._memory.address + self._offset)
        like = SimpleNamespace(
            ndim=len(self.shape), shape=self.shape, strides=self._like.strides, itemsize=self.dtype.itemsize,
            size=max(1, self._like.size), ctypes=place,
        )  # fmt: skip
        bits, device = 8 * self.dtype.itemsize, 2 | self.number << 32
        capsule = Exported(like, kinds[self.dtype.kind], bits, device=device)._export()  # type: ignore[arg-type]
        self._exported.append(capsule)  # its destructor is Python's, which must not run while an error is raised
        return capsule

    def __array_namespace__(self) -> object:
        def empty(shape: tuple[int, ...], dtype: Any, device: str) -> GpuArray:
            return GpuArray.of(self._memory.device, np.full(shape, 7, dtype), self.number)

        names = ("float16", "float32", "float64", "int32", "uint8", "uint16", "uint32")
        return SimpleNamespace(empty=empty, **{name: np.dtype(name) for name in names})
