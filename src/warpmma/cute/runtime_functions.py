"""CUDA's runtime, as the DSL's compiled host code calls it: the functions that a simulated GPU has.

The rules:

1. A function gets the arguments of CUDA's function without the underscore and returns 0, or an error's number. What it
   raises is kept in `failures`, and raised again where the host code has returned; it returns 999 then (unknown error).
2. A library is the PTX of the kernels of one compiled module, whatever machine code is loaded; a kernel is an entry of
   it. Their handles are numbers that are never used twice, and hold nothing alive.
3. Sizes of shared memory and of clusters are checked by each launch. So attributes that allow them are accepted.
4. A cooperative launch of more blocks than the multiprocessors hold by their threads returns CUDA's error 720, which
   the DSL raises, as on a GPU. Registers and shared memory, which may leave room for fewer, are not counted.
5. Attributes of a launch about priority, scheduling, caches and the order of launches are accepted: a launch is over
   before the next one begins.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import count
from math import prod
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from .._arguments import suggestion
from ..errors import OperandError, UnsupportedError
from ..isa import TARGETS
from ..layouts import MAP_BYTES, TensorMap
from ..machine import MULTIPROCESSORS
from ..ptx import PtxEntry, PtxModule
from .active_gpu import current, failures
from .device_attributes import attribute_of
from .launch_configs import launch_config

_UNKNOWN_ERROR, _TOO_LARGE = 999, 720  # cudaErrorUnknown, cudaErrorCooperativeLaunchTooLarge
_handles = count(1 << 20)
_I32, _POINTER = ctypes.c_int32, ctypes.c_void_p


class KernelLibrary:
    """The PTX of one compiled module."""

    def __init__(self, modules: Sequence[PtxModule]) -> None:
        self.modules, self.handle = modules, next(_handles)
        self.kernels: dict[str, Kernel] = {}
        load, types = partial(_load, self.handle), (*[_POINTER] * 4, _I32, *[_POINTER] * 2, _I32)
        self.load = _exported("_cudaLibraryLoadData", load, *types)
        _libraries[self.handle] = self

    def kernel(self, name: str) -> Kernel:
        """Return a kernel, which is made once."""
        if name not in self.kernels:
            module = next((x for x in self.modules if name in x), None)
            if module is None:
                known = [x for module in self.modules for x in module]
                raise OperandError(f"the DSL's PTX has no kernel {name}{suggestion(name, known)}; it has {known}")
            self.kernels[name] = Kernel(module[name])
        return self.kernels[name]


class Kernel:
    """An entry of a library."""

    def __init__(self, entry: PtxEntry) -> None:
        self.entry, self.handle = entry, next(_handles)
        _kernels[self.handle] = self


_libraries: WeakValueDictionary[int, KernelLibrary] = WeakValueDictionary()
_kernels: WeakValueDictionary[int, Kernel] = WeakValueDictionary()


def _load(handle: int, library: int, *_: Any) -> None:
    _store(library, ctypes.c_uint64, handle)


def _get_kernel(kernel: int, library: int, name: int) -> None:
    _store(kernel, ctypes.c_uint64, _libraries[library].kernel(ctypes.string_at(name).decode()).handle)


def _launch_kernel_ex(config: int, kernel: int, args: int) -> int:
    entry = _kernels[kernel].entry
    pointers = (ctypes.c_uint64 * len(entry.parameters)).from_address(args) if entry.parameters else ()
    sizes, target = launch_config(config), TARGETS[current().target]
    at_once = MULTIPROCESSORS * max(1, target.threads_per_sm // max(1, prod(sizes.block)))
    if sizes.cooperative and prod(sizes.grid) > at_once:
        return _TOO_LARGE
    params = bytearray(max((x.offset + x.size for x in entry.parameters), default=0))
    for at, pointer in zip(entry.parameters, pointers, strict=True):
        params[at.offset : at.offset + at.size] = ctypes.string_at(pointer, at.size)
    current().launch(entry, sizes, bytes(params))
    return 0


def _get_device(device: int) -> None:
    _store(device, _I32, 0)


def _device_get_attribute(value: int, attribute: int, device: int) -> None:
    _store(value, _I32, attribute_of(current(), attribute))


def _accepted(*_: Any) -> None:
    """Do nothing: for attributes by rule 3; about the error that a function returned, which is in `failures`."""


_MOST_DIMENSIONS = 5  # of a tensor map
_STATIC_SHARED = 1  # CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES


def _kernel_get_attribute(value: int, attribute: int, kernel: int, device: int) -> None:
    if attribute != _STATIC_SHARED:
        raise UnsupportedError(f"attribute {attribute} of a kernel is not answered; its shared memory is (1)")
    session, entry = current(), _kernels[kernel].entry
    linked = entry.module.linked(entry.name, session.device, session.options["contract"])
    _store(value, _I32, linked.shared.static)


def _tensor_map_encode_tiled(
    map: int, data_type: int, rank: int, address: int, dims: int, strides: int, box: int, steps: int, *modes: int
) -> None:
    """Write a tensor map; `modes` are the interleave, the swizzle, the promotion and the fill."""

    def read(of: Any, start: int, count: int) -> list[int]:
        return list((of * min(max(count, 0), _MOST_DIMENSIONS)).from_address(start))

    made = TensorMap.encode_tiled(
        data_type, rank, address, read(ctypes.c_uint64, dims, rank), read(ctypes.c_uint64, strides, rank - 1),
        read(ctypes.c_uint32, box, rank), read(ctypes.c_uint32, steps, rank), *modes,
    )  # fmt: skip
    ctypes.memmove(map, bytes(made), MAP_BYTES)


FUNCTIONS: Mapping[str, tuple[Callable[..., int | None] | None, tuple[Any, ...]]] = MappingProxyType({
    "_cudaLibraryLoadData": (None, ()),  # of each library
    "_cudaLibraryGetKernel": (_get_kernel, (_POINTER, _POINTER, _POINTER)),
    "_cudaLaunchKernelEx": (_launch_kernel_ex, (_POINTER, _POINTER, _POINTER)),
    "_cudaGetDevice": (_get_device, (_POINTER,)),
    "_cudaDeviceGetAttribute": (_device_get_attribute, (_POINTER, _I32, _I32)),
    "_cudaFuncSetAttribute": (_accepted, (_POINTER, _I32, _I32)),
    "_cudaKernelSetAttributeForDevice": (_accepted, (_POINTER, _I32, _I32, _I32)),
    "_cuKernelGetAttribute": (_kernel_get_attribute, (_POINTER, _I32, _POINTER, _I32)),
    "cuda_dialect_assert_success": (_accepted, (_I32,)),
    "_cuTensorMapEncodeTiled": (_tensor_map_encode_tiled, (_POINTER, _I32, _I32, *[_POINTER] * 5, *[_I32] * 4)),
})  # fmt: skip
"""The functions that there are, with the types of their arguments; all return an i32."""


def given_functions(library: KernelLibrary, declared: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Return names and addresses of what host code may call: of all functions, and of those that a module declares."""
    for name in {*FUNCTIONS, *declared}:
        function = library.load if name == "_cudaLibraryLoadData" else _shared(name)
        yield name, ctypes.cast(function, ctypes.c_void_p)


@cache
def _shared(name: str) -> Any:
    """Return a function for all libraries, which lives for good."""
    function, types = FUNCTIONS.get(name, (None, ()))
    return _exported(name, function or _refused(name), *types)


def _refused(name: str) -> Callable[..., None]:
    def refuse(*_: Any) -> None:
        plain = name.removeprefix("_")
        known = [x.removeprefix("_") for x in FUNCTIONS]
        raise UnsupportedError(
            f"the DSL's host code calls {plain}, which a simulated GPU does not have{suggestion(plain, known)}; it has "
            f"{', '.join(known)}"
        )

    return refuse


def _exported(name: str, function: Callable[..., int | None], *types: Any) -> Any:
    """Return a function as C calls it (rule 1)."""

    def call(*args: Any) -> int:
        __tracebackhide__ = True
        try:
            return function(*(x or 0 for x in args)) or 0
        except BaseException as error:  # of any kind: C cannot pass it on
            failures.append(error)
            return _UNKNOWN_ERROR

    call.__name__ = name
    return ctypes.CFUNCTYPE(_I32, *types)(call)


def _store(address: int, type_: Any, value: int) -> None:
    type_.from_address(address).value = value
