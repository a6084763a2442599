"""The CUDA driver: kernels compiled and loaded for a device, launches on a stream, memory for operands of the host.

Contexts are the primary ones, which PyTorch, CuPy and the CUDA runtime share. A launch waits for nothing; what is loaded
stays loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from .._arrays import Array
from ..errors import UnsupportedError
from .product_kernel import OPTIONS
from .product_launch import ProductLaunch

_INSTALL = "pip install 'warpmma[cuda]'"
_MOST_BLOCKS = (1 << 31) - 1


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


@contextmanager
def _current(device: int) -> Iterator[None]:
    """Make the primary context of a device current."""
    driver = _driver()
    _done(driver.cuCtxPushCurrent(_context(device)))
    try:
        yield
    finally:
        driver.cuCtxPopCurrent()


@cache
def _context(device: int) -> Any:
    driver = _driver()
    return _done(driver.cuDevicePrimaryCtxRetain(_done(driver.cuDeviceGet(device))))


@cache
def gpu_name(device: int) -> str:
    """Return the name of a device, such as "NVIDIA H200"."""
    driver = _driver()
    return _done(driver.cuDeviceGetName(128, _done(driver.cuDeviceGet(device)))).split(b"\0")[0].decode()


@cache
def capability(device: int) -> tuple[int, int]:
    """Return the compute capability of a device."""
    driver = _driver()
    which, of = _done(driver.cuDeviceGet(device)), driver.CUdevice_attribute
    kinds = (of.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, of.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    major, minor = (int(_done(driver.cuDeviceGetAttribute(kind, which))) for kind in kinds)
    return major, minor


@cache
def _loaded(text: str, name: str, device: int) -> Any:
    """Compile a kernel for a device, and load it."""
    driver = _driver()
    major, minor = capability(device)
    image = _compiled(text, f"sm_{major}{minor}")
    with _current(device):
        module = _done(driver.cuModuleLoadData(image))
        return _done(driver.cuModuleGetFunction(module, name.encode()))


def _compiled(text: str, arch: str) -> bytes:
    """Compile CUDA C++ by NVRTC: machine code."""
    try:
        from cuda.bindings import nvrtc

        _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"product.cu", 0, [], [])
    except Exception as error:
        raise UnsupportedError(f"engine='cuda' needs NVRTC: {_INSTALL} ({type(error).__name__})") from None
    try:
        options = [x.encode() for x in (f"-arch={arch}", *OPTIONS)]
        (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if int(code):
            log = b" " * _size(nvrtc.nvrtcGetProgramLogSize(program))
            nvrtc.nvrtcGetProgramLog(program, log)
            raise UnsupportedError(f"engine='cuda': NVRTC does not compile for {arch}: {log.decode(errors='replace')}")
        image = b" " * _size(nvrtc.nvrtcGetCUBINSize(program))
        nvrtc.nvrtcGetCUBIN(program, image)
        return image
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _size(answer: tuple[Any, Any]) -> int:
    return int(answer[1])


def launch(what: ProductLaunch, device: int, stream: int) -> None:
    """Launch a product on a stream of a device, given by its handle; waits for nothing."""
    if not 0 < what.grid <= _MOST_BLOCKS:
        if what.grid == 0:
            return
        raise UnsupportedError(f"engine='cuda': {what.grid:,} tiles; a launch has at most {_MOST_BLOCKS:,}")
    function = _loaded(what.kernel.text, what.kernel.name, device)
    argument = ctypes.create_string_buffer(what.argument())
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
    with _current(device):
        size = (what.grid, 1, 1, what.threads, 1, 1)
        _done(_driver().cuLaunchKernel(function, *size, 0, stream, ctypes.addressof(pointers), 0))


class HostCopies:
    """Copies of the host's arrays on a device, freed at the end of a `with`."""

    def __init__(self, device: int = 0) -> None:
        self.device = device
        self._held: list[Any] = []

    def __enter__(self) -> HostCopies:
        return self

    def __exit__(self, *_: object) -> None:
        with _current(self.device):
            for address in self._held:
                _driver().cuMemFree(address)

    def empty(self, size: int) -> int:
        """Allocate bytes, and return their address."""
        with _current(self.device):
            address = _done(_driver().cuMemAlloc(max(1, size)))
        self._held.append(address)
        return int(address)

    def put(self, array: Array) -> int:
        """Copy an array, contiguously, and return its address."""
        array = np.ascontiguousarray(array)
        address = self.empty(array.nbytes)
        if array.nbytes:
            with _current(self.device):
                _done(_driver().cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))
        return address

    def get(self, address: int, into: Array) -> None:
        """Wait for the device, and copy to a contiguous array."""
        if into.nbytes:
            with _current(self.device):
                _done(_driver().cuMemcpyDtoH(into.ctypes.data, address, into.nbytes))
