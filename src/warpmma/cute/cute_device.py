"""Simulated GPUs as the CuTe DSL's: the context manager, and what it replaces.

The rules:

1. While a device is active, the DSL compiles for it and with lines of the source, its compiler keeps the PTX, its host
   code gets functions that launch that PTX (`compiled_hosts`), `cuda.bindings` answers for the device
   (`python_answers`), and tensors of the CPU are called memory of the GPU (`dlpack`). All is restored afterwards. With
   `cuda="cpu"` the CPU stands for PyTorch's "cuda", too (`_cuda_as_cpu`); then tensors that are not on "cuda" and
   arrays of NumPy are memory of the host, which host code may read and kernels may not.
2. Devices nest; the innermost is active, and gets the launches of all that was compiled with any of them. The DSL is
   one for all threads: only the thread that made a device active may make another one active.
3. From sm_90 on the DSL compiles for the target with its own features: for sm_90, that is sm_90a.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import wraps
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from .._arguments import check_choice
from .._arrays import is_tensor
from .._cuda_as_cpu import check_option, redirected_cuda
from .._cuda_tensors import GENUINE, on_cuda
from .._progress import Watched
from .._sessions import put
from .._tracebacks import end_at_caller
from ..arithmetic import Engine
from ..errors import OperandError, TargetError, UnsupportedError, WarpmmaError, shown
from ..isa import TARGETS, check_known
from ..machine import Device, DeviceArray, HazardWarning, Limit, Policy, Watch
from .active_gpu import ActiveGpu, active, current
from .compiled_hosts import (
    NO_TVM_FFI,
    keeping_ptx,
    only_simulated,
    raising,
    refusing,
    with_functions,
    with_raising_executor,
)
from .counted_benchmarks import counting_functions
from .cute_interface import CuteInterface, find_cute
from .dlpack import as_gpu_memory, described
from .known_memory import storage_of
from .python_answers import replaced_functions

_OLDEST, _FEATURED = 80, 90  # the DSL has no earlier target; from when on targets have features of their own


class CuteDevice(ActiveGpu):
    """A simulated GPU that the CuTe DSL launches kernels on, in a `with`.

    Attributes
    ----------
    target : str
        Whose bits are computed: "sm_90a" for sm_90.
    arch : str
        What the DSL compiles for.
    device : Device
        Its memory.
    launches : list of CuteLaunch
        What ran, in order, with its report.
    options : dict
        Of every launch.
    instructions : int
        How many instructions warps have executed, in all launches.
    """

    def __enter__(self) -> CuteDevice:
        _activate(self)
        return self

    def __exit__(self, *_: object) -> None:
        active.deactivate(self)

    def map(self, array: Any) -> DeviceArray:
        """Place an array of NumPy at the process's own address, for kernels that are given addresses in memory.

        Returns
        -------
        DeviceArray
            It reads and writes the array in place, until its `free()`.

        Raises
        ------
        OperandError
            What comes is not an array of NumPy.
        """
        if not isinstance(array, np.ndarray):
            raise OperandError(f"map: {shown(array)} is not a NumPy array; tensors are found by their addresses")
        return self.device.map(array, array.ctypes.data)


def arch_of(target: str) -> str:
    """Return what the DSL compiles for, for the bits of a target (rule 3).

    Raises
    ------
    TargetError
        No such target, or one for which the DSL does not compile.

    Examples
    --------
    >>> arch_of("sm_80"), arch_of("sm_90")
    ('sm_80', 'sm_90a')
    """
    check_known(target)
    record = TARGETS[target]
    if record.number < _OLDEST:
        raise TargetError(f"the CuTe DSL does not compile for {target}; expected sm_{_OLDEST} or a later target")
    return target if record.features or record.number < _FEATURED else f"{target}a"


def device(
    target: str | Device, *, hazards: Policy | Mapping[str, Policy] = "error", contract: str = "ptxas",
    engine: Engine = "auto", threads: int | None = None, resident: int | None = None, limit: int | Limit | None = None,
    seed: int = 0, progress: Watched = None, watch: Watch | None = None, cuda: Literal["cpu"] | None = None,
) -> CuteDevice:  # fmt: skip
    """Make a simulated GPU, for `with warpmma.cute.device("sm_90"):`.

    Parameters
    ----------
    target : str or Device
        Whose bits are computed; from sm_90 on, with the target's own features. A Device is used itself, with its
        contents.
    hazards, contract, engine, threads, resident, limit, seed, progress, watch
        Of every launch, as of `PtxEntry.launch`.
    cuda : {"cpu"}, optional
        Let the CPU stand for PyTorch's device "cuda", while the device is active, as of `warpmma.triton.device`.
        Tensors on the CPU and arrays of NumPy are the host's memory then, as with a GPU.

    Returns
    -------
    CuteDevice

    Raises
    ------
    UnsupportedError
        The DSL is not installed, or is another version than the one that is known; PyTorch is not, and cuda is given.
    TargetError
        No such target, or one for which the DSL does not compile.
    """
    find_cute()
    check_choice("contract", contract, ("ptxas", "off"))
    check_option(cuda)
    own, name = (target, target.target) if isinstance(target, Device) else (None, target)
    arch = arch_of(name)
    if own is not None and own.target != arch:
        raise TargetError(f"the DSL compiles for {arch}, which a device of {own.target} does not run: Device({arch!r})")
    options = {
        "hazards": hazards, "contract": contract, "engine": engine, "threads": threads, "resident": resident,
        "limit": limit, "seed": seed, "progress": progress, "watch": watch,
    }  # fmt: skip
    return CuteDevice(own or Device(arch), arch, options, cuda_on_cpu=cuda == "cpu")


def _activate(session: CuteDevice) -> None:
    cute = find_cute()

    def replace(replaced: ExitStack) -> None:
        for holder, name, value in _replacements(cute):
            put(replaced, holder, name, value)

    def settle(settings: ExitStack) -> None:
        for dsl in cute.dsls.values():
            put(settings, dsl, "jit_cache", cute.results())
            for name, value in _SETTINGS.items():
                put(settings, dsl.envar, name, value)
            put(settings, dsl.envar, "_arch", session.arch)
        if session.cuda_on_cpu:
            settings.enter_context(redirected_cuda(current))

    active.activate(session, replace, settle)


_SETTINGS: Mapping[str, Any] = MappingProxyType({
    "lineinfo": True, "disable_file_caching": True, "compiler_backend": "legacy", "enable_tvm_ffi": False,
})  # fmt: skip
"""Settings of the DSL while a device is active, beside its architecture."""


def _replacements(cute: CuteInterface) -> Iterator[tuple[Any, str, Any]]:
    """Return what is replaced while a device is active (rule 1)."""
    yield cute.compiler, "compile", keeping_ptx(cute.compiler.compile, cute)
    yield cute.compiler, "jit", with_functions(cute.compiler.jit)
    yield cute.base, "compile_and_jit", refusing(cute.base.compile_and_jit)
    yield cute.base, "_func", _ending_at_caller(cute.base._func, cute.folder)
    compiled = cute.compiled
    yield compiled, "_load_cuda_library", raising(only_simulated(compiled._load_cuda_library), cute.folder)
    yield compiled, "__call__", _ending_at_caller(compiled.__call__, cute.folder)
    yield compiled, "to", with_raising_executor(compiled.to, cute)
    yield compiled, "export_to_c", _not_exported
    yield cute.tensor, "__init__", _told_tensor(cute.tensor.__init__)
    yield cute.pointer, "__init__", _told_pointer(cute.pointer.__init__)
    yield cute.raw_pointer, "__init__", _told_pointer(cute.raw_pointer.__init__)
    yield from replaced_functions(cute)
    yield from counting_functions(cute)


def _not_exported(self: Any, *_: Any, **__: Any) -> None:
    raise UnsupportedError(
        f"{self.function_name}: export_to_c writes machine code for a GPU, and this was compiled for a simulated one: "
        "compile and export it outside of `with warpmma.cute.device(...)`"
    )


def _ending_at_caller(function: Callable[..., Any], folder: str) -> Any:
    """Return a function whose errors end where it was called."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*args, **options)
        except (WarpmmaError, HazardWarning) as error:
            end_at_caller(error, folder)
            raise

    return call


def _told_tensor(make: Callable[..., None]) -> Any:
    """Return `_Tensor.__init__` that calls memory of the CPU that of the GPU, and knows it from then on."""

    @wraps(make)
    def made(self: Any, tensor: Any, *args: Any, **options: Any) -> None:
        if options.get("enable_tvm_ffi"):
            raise UnsupportedError(f"enable_tvm_ffi: {NO_TVM_FFI}")
        make(self, tensor, *args, **options)
        session = current()
        on_host = session.cuda_on_cpu and _on_host(tensor)
        found = (described if on_host else as_gpu_memory)(self._dlpack_data)
        if found is not None and (storage := storage_of(tensor, found)) is not None:
            (session.host_memory if on_host else session.memory).tell(self, storage)

    return made


def _on_host(x: Any) -> bool:
    """Return whether an array is one of NumPy, or a tensor of PyTorch that is not on "cuda"."""
    if isinstance(x, np.ndarray):
        return True
    if not is_tensor(x):
        return False
    with GENUINE():
        return not on_cuda(x)


def _told_pointer(make: Callable[..., None]) -> Any:
    """Return `__init__` of a pointer that leads to memory which is known from then on."""

    @wraps(make)
    def made(self: Any, pointer: Any, *args: Any, **options: Any) -> None:
        make(self, pointer, *args, **options)
        session = current()
        if session.device.space.find(int(pointer)) is None:
            session.memory.tell_pointer(self, int(pointer))

    return made
