"""The parts of the CuTe DSL that are used here, looked up at first use.

They are internal to the DSL, which changes them without notice. So one version is known, and an error names what
another one lacks. `PRIVATE` names them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import UnsupportedError

KNOWN = "4.8.1"
"""The version of nvidia-cutlass-dsl that is known."""

PRIVATE: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "compiler": ("cutlass.base_dsl.compiler", "Compiler"),
    "compile": ("cutlass.base_dsl.compiler", "Compiler", "compile"),
    "jit": ("cutlass.base_dsl.compiler", "Compiler", "jit"),
    "register": ("cutlass._mlir.execution_engine", "ExecutionEngine", "raw_register_runtime"),
    "compiled": ("cutlass.cutlass_dsl.cuda_jit_executor", "CudaDialectJitCompiledFunction"),
    "load": ("cutlass.cutlass_dsl.cuda_jit_executor", "CudaDialectJitCompiledFunction", "_load_cuda_library"),
    "call": ("cutlass.cutlass_dsl.cuda_jit_executor", "CudaDialectJitCompiledFunction", "__call__"),
    "export": ("cutlass.cutlass_dsl.cuda_jit_executor", "CudaDialectJitCompiledFunction", "export_to_c"),
    "bind": ("cutlass.cutlass_dsl.cuda_jit_executor", "CudaDialectJitCompiledFunction", "to"),
    "executor": ("cutlass.base_dsl.jit_executor", "JitExecutor"),
    "execute": ("cutlass.base_dsl.jit_executor", "JitExecutor", "run_compiled_program"),
    "raw_pointer": ("cutlass.base_dsl.jit_executor", "_RuntimePointerArg"),
    "tensor": ("cutlass.cute.runtime", "_Tensor"),
    "pointer": ("cutlass.cute.runtime", "_Pointer"),
    "hardware": ("cutlass.utils.hardware_info", "HardwareInfo"),
    "clusters": ("cutlass.utils.hardware_info", "HardwareInfo", "get_max_active_clusters"),
    "testing": ("cutlass.testing",),
    "former_testing": ("cutlass.cute.testing",),
    "workspaces": ("cutlass.testing", "get_workspace_count"),
    "benchmark": ("cutlass.testing", "benchmark"),
    "tuning": ("cutlass.testing", "_benchmark_for_autotune"),
    "dsl": ("cutlass.cutlass_dsl", "CuTeDSL"),
    "backend": ("cutlass.base_dsl.compile_backend", "LegacyCompilerBackend"),
    "base": ("cutlass.base_dsl.dsl", "BaseDSL"),
    "build": ("cutlass.base_dsl.dsl", "BaseDSL", "compile_and_jit"),
    "direct": ("cutlass.base_dsl.dsl", "BaseDSL", "_func"),
    "dsls": ("cutlass.base_dsl.dsl", "DSLSingletonMeta", "_instances"),
    "results": ("cutlass.base_dsl.cache_helpers", "JitCacheDict"),
    "attribute": ("cutlass._mlir.ir", "StringAttr"),
    "runtime": ("cuda.bindings.runtime",),
    "driver": ("cuda.bindings.driver",),
})  # fmt: skip
"""The parts, by what they are called here: a module, and names in it."""

SETTINGS = ("_arch", "lineinfo", "disable_file_caching", "enable_tvm_ffi", "compiler_backend", "dryrun")
"""Settings of the DSL that are read or changed, of its `envar`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CuteInterface:
    """The parts of the DSL that are used: those of `PRIVATE`, but methods, which are reached through their classes."""

    version: str
    folder: str  # of its modules
    compiler: Any
    base: Any
    compiled: Any
    executor: Any
    raw_pointer: Any
    tensor: Any
    pointer: Any
    hardware: Any
    testing: Any
    former_testing: Any
    results: Any
    attribute: Any
    runtime: Any
    driver: Any
    dsls: Any  # by class, the one object of each


def find_cute() -> CuteInterface:
    """Return these parts; an error if the DSL is not installed, or is another version."""
    return _found()


@cache
def _found() -> CuteInterface:
    if find_spec("cutlass") is None or find_spec("cuda") is None:
        raise UnsupportedError("the CuTe DSL is not installed: pip install 'warpmma[cute]' (Linux)")
    version = installed_version()
    if version != KNOWN:
        raise UnsupportedError(
            f"nvidia-cutlass-dsl {version or 'of no version'} is installed; warpmma.cute knows {KNOWN}: "
            f"pip install 'nvidia-cutlass-dsl=={KNOWN}'"
        )
    parts = {name: private_part(name, version) for name in PRIVATE}
    dsl = parts["dsl"]._get_dsl()
    for setting in SETTINGS:
        if not hasattr(dsl.envar, setting):
            raise lacking(version, f"setting {setting}")
    named = CuteInterface.__dataclass_fields__
    folder = str(Path(import_module("cutlass").__file__ or "").parent)
    return CuteInterface(version=version, folder=folder, **{x: parts[x] for x in parts if x in named})


def installed_version() -> str:
    """Return the version of nvidia-cutlass-dsl; "" if it is not installed."""
    try:
        return metadata.version("nvidia-cutlass-dsl")
    except metadata.PackageNotFoundError:
        return ""


def private_part(name: str, version: str = KNOWN) -> Any:
    """Return a part of `PRIVATE`; an error that names it if the DSL lacks it."""
    module, *names = PRIVATE[name]
    try:
        found: Any = import_module(module)
        for each in names:
            found = getattr(found, each)
    except (ImportError, AttributeError):
        raise lacking(version, ".".join((module, *names))) from None
    return found


def lacking(version: str, what: str) -> UnsupportedError:
    """Return the error for a part that the DSL lacks."""
    return UnsupportedError(
        f"nvidia-cutlass-dsl {version} has no {what}; warpmma.cute knows {KNOWN}: "
        f"pip install 'nvidia-cutlass-dsl=={KNOWN}'"
    )
