"""The part of the CUDA driver that launches of PTX need: a GPU's results for exactly this PTX, without a compiler."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Driver", "DriverError", "Function", "printed"]

Array = npt.NDArray[Any]
_ERROR_LOG, _ERROR_LOG_SIZE, _DYNAMIC_SHARED = 5, 6, 8  # of CUjit_option and CUfunction_attribute
_LOG = 1 << 14
_CLUSTER_DIMENSION = 4  # of CUlaunchAttributeID
_NOT_READY = 600  # of CUresult
_STACK_SIZE, _STACK = 0, 16 << 10  # of CUlimit; bytes of a thread


class DriverError(RuntimeError):
    """A call of the driver failed."""


class Function:
    """A kernel of a loaded module."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self.handle = handle


class _Attribute(ctypes.Structure):
    """`CUlaunchAttribute`: of its union of 64 bytes a cluster's size takes three words."""

    _fields_ = (("id", ctypes.c_int), ("padding", ctypes.c_char * 4), ("value", ctypes.c_uint * 16))


class _Config(ctypes.Structure):
    """`CUlaunchConfig`."""

    _fields_ = (
        ("sizes", ctypes.c_uint * 6),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


class Driver:
    """The first GPU, through its primary context."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", 0)
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self.attach()
        # ptxas cannot tell how much stack recursion needs; beyond the default of 1 KiB a thread writes out of bounds.
        self._call("cuCtxSetLimit", _STACK_SIZE, ctypes.c_size_t(_STACK))

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(status, ctypes.byref(text))
            raise DriverError(f"{name}: {status} {(text.value or b'').decode()}")

    def attach(self) -> None:
        """Make the context this thread's: each thread that calls the driver does this once."""
        self._call("cuCtxSetCurrent", self._context)

    @staticmethod
    def about() -> dict[str, str]:
        """GPU and driver."""
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        shown = subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()[0].split(", ")
        return {"gpu": shown[0], "driver": shown[1]}

    def load(self, text: str | bytes, names: Sequence[str]) -> dict[str, Function]:
        """Assemble and load a text, or load machine code; its kernels by name. It stays loaded."""
        log = ctypes.create_string_buffer(_LOG)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG)
        module, data = ctypes.c_void_p(), ctypes.create_string_buffer(text.encode() if isinstance(text, str) else text)
        try:
            self._call("cuModuleLoadDataEx", ctypes.byref(module), data, 2, options, values)
        except DriverError as error:
            raise DriverError(f"{error}: {log.value.decode(errors='replace')}") from None
        found = {}
        for name in names:
            handle = ctypes.c_void_p()
            self._call("cuModuleGetFunction", ctypes.byref(handle), module, name.encode())
            found[name] = Function(handle)
        return found

    def place(self, array: Array) -> int:
        """Copy an array to memory of the GPU and return its address."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 1)))
        self.put(address.value, array)
        return address.value

    def put(self, address: int, array: Array) -> None:
        """Copy an array to memory that `place` allocated."""
        if array.nbytes:
            bits = np.ascontiguousarray(array)
            size = ctypes.c_size_t(bits.nbytes)
            self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), bits.ctypes.data_as(ctypes.c_void_p), size)

    def fetch(self, address: int, like: Array) -> Array:
        """Copy memory of the GPU into a new array."""
        made = np.empty_like(like, order="C")
        if made.nbytes:
            to, size = made.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(made.nbytes)
            self._call("cuMemcpyDtoH_v2", to, ctypes.c_uint64(address), size)
        return made

    def free(self, address: int) -> None:
        """Free what `place` allocated."""
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def launch(
        self, function: Function, grid: Sequence[int], block: Sequence[int], arguments: Sequence[bytes],
        shared: int = 0, cluster: int | Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """Begin a launch, in clusters of this many blocks; each argument is its bytes."""
        kept = [ctypes.create_string_buffer(x, len(x)) for x in arguments]
        pointers = (ctypes.c_void_p * max(len(kept), 1))(*(ctypes.addressof(x) for x in kept))
        if shared > 48 << 10:
            self._call("cuFuncSetAttribute", function.handle, _DYNAMIC_SHARED, shared)
        sizes = [*grid, *[1] * (3 - len(grid)), *block, *[1] * (3 - len(block))]
        attribute = _Attribute(_CLUSTER_DIMENSION)
        wide = [cluster] if isinstance(cluster, int) else [*(cluster or [])]
        attribute.value[:3] = [*wide, 1, 1, 1][:3]
        attributes = ctypes.pointer(attribute)
        config = _Config((ctypes.c_uint * 6)(*sizes), shared, None, attributes, cluster is not None)
        self._call("cuLaunchKernelEx", ctypes.byref(config), function.handle, pointers, None)

    def synchronise(self, seconds: float = 60) -> None:
        """Wait for all launches; `DriverError` on a timeout, after which the process cannot use the GPU any more."""
        until = time.monotonic() + seconds
        while self._cuda.cuStreamQuery(None) == _NOT_READY:
            if time.monotonic() > until:
                raise DriverError(f"a launch has not ended after {seconds:g} s")
            time.sleep(1e-4)
        self._call("cuCtxSynchronize")


@contextmanager
def printed(lines: list[str]) -> Iterator[None]:
    """Append what kernels print to `lines`; wait for the GPU before this ends."""
    flush = ctypes.CDLL(None).fflush
    sys.stdout.flush()
    flush(None)
    kept = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            flush(None)
            os.dup2(kept, 1)
            os.close(kept)
            file.seek(0)
            lines += file.read().decode().splitlines()


def argument_bytes(addresses: Mapping[str, int], argument: Any) -> bytes:
    """Return an argument's bytes: of an array's name, a number, or an object that packs itself."""
    if isinstance(argument, str):
        return addresses[argument].to_bytes(8, "little")
    return argument.packed(addresses.__getitem__) if hasattr(argument, "packed") else bytes(argument.tobytes())
