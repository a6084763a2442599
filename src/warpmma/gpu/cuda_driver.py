"""The CUDA driver: kernels compiled and loaded for a device, launches on a stream, memory for operands of the host.

Contexts are the primary ones, which PyTorch, CuPy and the CUDA runtime share. A launch waits for nothing; kernels stay
loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, Protocol

import numpy as np

from .._arrays import Array
from ..errors import UnsupportedError
from .product_kernel import OPTIONS

_INSTALL = "pip install 'warpmma[gpu]'"
_MOST_BLOCKS = (1 << 31) - 1
_MOST_NAME = 128
_WORD = 8


@cache
def _driver() -> Any:
    """Load the bindings and start the driver."""
    try:
        from cuda.bindings import driver
    except ImportError:
        raise UnsupportedError(f"engine='cuda' needs cuda-bindings: {_INSTALL}") from None
    try:
        (code,) = driver.cuInit(0)
    except Exception as error:  # whatever a missing library raises
        raise UnsupportedError(f"engine='cuda' needs an NVIDIA GPU and its driver: {error}") from None
    if int(code):
        raise UnsupportedError(f"engine='cuda' needs an NVIDIA GPU and its driver: {_said(driver, code)}")
    return driver


def why_no_gpu() -> str:
    """Return why there is no GPU to compute on; nothing if there is one."""
    try:
        return "" if _done(_driver().cuDeviceGetCount()) else "engine='cuda' needs an NVIDIA GPU: the driver has none"
    except UnsupportedError as error:
        return str(error)


def _said(driver: Any, code: Any) -> str:
    _, text = driver.cuGetErrorString(code)
    return text.decode() if text else str(code)


def _done(answer: tuple[Any, ...]) -> Any:
    """Return what a function of the driver gave, or raise what it said."""
    code, *rest = answer
    if int(code):
        raise UnsupportedError(f"engine='cuda': the driver says: {_said(_driver(), code)}")
    return rest[0] if rest else None


class CudaKernel(Protocol):
    """CUDA C++, the name of its entry, and the target that it is compiled for: "" for the GPU's own."""

    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def arch(self) -> str: ...  # noqa: D102


class CudaLaunch(Protocol):
    """A launch of a kernel that takes one structure: blocks and threads in one dimension."""

    @property
    def kernel(self) -> CudaKernel: ...  # noqa: D102
    @property
    def grid(self) -> int: ...  # noqa: D102
    @property
    def threads(self) -> int: ...  # noqa: D102

    def argument(self) -> bytes:
        """Return the structure."""
        ...


class CudaGpu:
    """A GPU, by its number in the driver: kernels loaded for it, launches, copies of the host's arrays.

    Attributes
    ----------
    name : str
        Such as "NVIDIA H200".
    capability : (int, int)
        Compute capability.
    driver : int
        Version of CUDA that the driver has, such as 13000.
    """

    def __init__(self, number: int) -> None:
        driver = _driver()
        which = _done(driver.cuDeviceGet(number))
        self.name = _done(driver.cuDeviceGetName(_MOST_NAME, which)).partition(b"\0")[0].decode()
        of = driver.CUdevice_attribute
        kinds = (of.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, of.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        major, minor = (int(_done(driver.cuDeviceGetAttribute(kind, which))) for kind in kinds)
        self.capability = major, minor
        self.driver: int = _done(driver.cuDriverGetVersion())
        self._context = _done(driver.cuDevicePrimaryCtxRetain(which))
        self._functions: dict[str, Any] = {}
        self._loading: dict[str, Lock] = {}

    @contextmanager
    def current(self) -> Iterator[Any]:
        """Make the primary context current; gives the driver's functions."""
        driver = _driver()
        _done(driver.cuCtxPushCurrent(self._context))
        try:
            yield driver
        finally:
            driver.cuCtxPopCurrent()

    def free_memory(self) -> int:
        """Return how many bytes of memory are free."""
        with self.current() as driver:
            return int(_done(driver.cuMemGetInfo()))

    def loaded(self, kernel: CudaKernel) -> Any:
        """Compile a kernel and load it into this GPU's context, once; threads that want it too wait, others do not."""
        with self._loading.setdefault(kernel.text, Lock()):
            if kernel.text not in self._functions:
                image = _compiled(kernel.text, kernel.arch or "sm_{}{}".format(*self.capability))
                with self.current() as driver:
                    module = _done(driver.cuModuleLoadData(image))
                    self._functions[kernel.text] = _done(driver.cuModuleGetFunction(module, kernel.name.encode()))
        return self._functions[kernel.text]

    def launch(self, what: CudaLaunch, stream: int = 0) -> None:
        """Launch a kernel on a stream of this GPU, given by its handle; waits for nothing."""
        if what.grid > _MOST_BLOCKS:
            raise UnsupportedError(f"engine='cuda': {what.grid:,} tiles; a launch has at most {_MOST_BLOCKS:,}")
        if not what.grid:
            return
        function = self.loaded(what.kernel)
        argument = ctypes.create_string_buffer(what.argument())
        # The driver reads as many as there are parameters: one structure, or words of 64 bits.
        words = range(0, len(argument), _WORD)
        pointers = (ctypes.c_void_p * len(words))(*(ctypes.addressof(argument) + word for word in words))
        with self.current() as driver:
            size = (what.grid, 1, 1, what.threads, 1, 1)
            _done(driver.cuLaunchKernel(function, *size, 0, stream, ctypes.addressof(pointers), 0))

    def fetch(self, address: int, into: Array, stream: int = 0) -> None:
        """Wait for a stream, and copy from the GPU to a contiguous array."""
        with self.current() as driver:
            if int(_done(driver.cuStreamIsCapturing(stream))):
                raise UnsupportedError(
                    "engine='cuda': the stream is being captured, and the check of a sparse A waits for it; multiply "
                    "by dense instructions in a graph"
                )
            _done(driver.cuMemcpyDtoHAsync(into.ctypes.data, address, into.nbytes, stream))
            _done(driver.cuStreamSynchronize(stream))

    @contextmanager
    def copies(self) -> Iterator[HostCopies]:
        """Give room for copies of the host's arrays, which is freed at the end."""
        held = HostCopies(self)
        try:
            yield held
        finally:
            held.free()


class HostCopies:
    """Copies of the host's arrays on a GPU."""

    def __init__(self, gpu: CudaGpu) -> None:
        self._gpu = gpu
        self._held: list[Any] = []

    def empty(self, size: int) -> int:
        """Allocate bytes, and return their address."""
        with self._gpu.current() as driver:
            self._held.append(_done(driver.cuMemAlloc(max(1, size))))
        return int(self._held[-1])

    def put(self, array: Array) -> int:
        """Copy an array, contiguously, and return its address."""
        address = self.empty(array.nbytes)
        self.write(address, array)
        return address

    def write(self, address: int, array: Array) -> None:
        """Copy an array, contiguously, to an address."""
        array = np.ascontiguousarray(array)
        if array.nbytes:
            with self._gpu.current() as driver:
                _done(driver.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))

    def clear(self, address: int, size: int) -> None:
        """Write zeros; waits for nothing."""
        if size:
            with self._gpu.current() as driver:
                _done(driver.cuMemsetD8(address, 0, size))

    def get(self, address: int, into: Array) -> None:
        """Wait for the GPU, and copy to a contiguous array."""
        if into.nbytes:
            with self._gpu.current() as driver:
                _done(driver.cuMemcpyDtoH(into.ctypes.data, address, into.nbytes))

    def free(self) -> None:
        """Free all copies."""
        with self._gpu.current() as driver:
            for address in self._held:
                driver.cuMemFree(address)
        self._held.clear()


@cache
def gpu(number: int = 0) -> CudaGpu:
    """Return a GPU; `UnsupportedError` without one, or without cuda-bindings."""
    return CudaGpu(number)


def alike(one: CudaGpu) -> dict[int, CudaGpu]:
    """Return the GPUs of this machine that have the name and the capability of one, by their numbers."""
    every = {number: gpu(number) for number in range(_done(_driver().cuDeviceGetCount()))}
    return {n: each for n, each in every.items() if (each.name, each.capability) == (one.name, one.capability)}


def _compiled(text: str, arch: str) -> bytes:
    """Compile CUDA C++ by NVRTC: machine code; PTX, which the driver compiles, is only closed by a zero."""
    if text.startswith(".version"):
        return text.encode() + b"\0"
    try:
        from cuda.bindings import nvrtc

        _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"product.cu", 0, [], [])
    except Exception as error:
        raise UnsupportedError(f"engine='cuda' needs NVRTC: {_INSTALL} ({type(error).__name__})") from None
    try:
        options = [x.encode() for x in (f"-arch={arch}", *OPTIONS)]
        (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if int(code):
            log = _filled(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
            raise UnsupportedError(f"engine='cuda': NVRTC does not compile for {arch}: {log}")
        return _filled(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _filled(size_of: Any, read: Any, program: Any) -> bytes:
    """Return what NVRTC writes: into bytes of its own, never into the one object of a single byte."""
    size = int(size_of(program)[1])
    data = bytes(size + 16)
    read(program, data)
    return data[:size]
