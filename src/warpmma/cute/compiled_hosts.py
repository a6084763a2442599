"""What the DSL compiles while a device is active: the host code, and the PTX of its kernels.

The rules:

1. The DSL's compiler makes machine code of a kernel, which is not run, and host code with it. It is asked to leave the
   PTX in a folder, too, which is read and removed; if its user keeps PTX, the files that it wrote there are read. The
   PTX becomes an attribute of the compiled module, so that it goes where the module goes.
2. The host code calls functions of CUDA's runtime by name. The engine that runs it is given the functions of
   `runtime_functions` by these names; of all others that the module declares, it is given ones that are an error.
3. Nothing that was compiled without a device is used with one, and the other way around: the DSL's cache of results is
   another one within the `with`, and its cache of files is off.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from functools import wraps
from glob import escape
from pathlib import Path
from typing import Any

from .._tracebacks import end_at_caller
from ..errors import OperandError, UnsupportedError, WarpmmaError
from ..ptx import load
from .active_gpu import failures
from .cute_interface import CuteInterface
from .runtime_functions import KernelLibrary, given_functions

_TEXT = "warpmma_ptx"  # an attribute without a dialect, which the verifier leaves alone
_KEPT = re.compile(r"\bdump-ptx-path='([^']*)'")
_OPTIONS = re.compile(r"\bcute-to-nvvm\{")
_MARK = "warpmma_library"
NO_TVM_FFI = "functions for TVM FFI are not supported; expected the DSL's own, without enable_tvm_ffi"


def keeping_ptx(compile_module: Any, cute: CuteInterface) -> Any:
    """Return `Compiler.compile` that keeps the PTX in the module (rule 1)."""

    @wraps(compile_module)
    def compiled(self: Any, module: Any, pipeline: str, *args: Any, **options: Any) -> Any:
        with tempfile.TemporaryDirectory(prefix="warpmma_") as folder:
            kept = _KEPT.search(pipeline)
            prefix = Path(kept[1]) if kept else Path(folder) / "kernels"
            if not kept:
                pipeline, count = _OPTIONS.subn(lambda found: f"{found[0]}dump-ptx-path='{prefix}' ", pipeline, count=1)
                if not count:
                    raise UnsupportedError(
                        f"the DSL compiles by the passes {pipeline}, which leave no PTX; expected cute-to-nvvm"
                    )
            former = _written(prefix)
            made = compile_module(self, module, pipeline, *args, **options)
            texts = [path.read_text() for path, at in _written(prefix).items() if former.get(path) != at]
        if texts:
            with module.context:
                module.operation.attributes[_TEXT] = cute.attribute.get("\0".join(texts))
        return made

    return compiled


def _written(prefix: Path) -> dict[Path, int]:
    """Return the files of PTX whose names begin with a prefix, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in sorted(prefix.parent.glob(f"{escape(prefix.name)}.*ptx"))}


def refusing(compile_and_jit: Any) -> Any:
    """Return the DSL's `compile_and_jit` that raises errors of this package as they are, not as the DSL's own."""

    @wraps(compile_and_jit)
    def compiled(self: Any, *args: Any, **options: Any) -> Any:
        if self.compile_options.enable_tvm_ffi:
            raise UnsupportedError(f"--enable-tvm-ffi: {NO_TVM_FFI}")
        try:
            return compile_and_jit(self, *args, **options)
        except Exception as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, WarpmmaError):
                raise cause from None
            raise

    return compiled


def with_functions(make_engine: Any) -> Any:
    """Return `Compiler.jit` whose engines have the functions of a simulated GPU (rule 2)."""

    @wraps(make_engine)
    def jit(self: Any, module: Any, *args: Any, **options: Any) -> Any:
        engine = make_engine(self, module, *args, **options)
        attributes = module.operation.attributes
        texts = attributes[_TEXT].value.split("\0") if _TEXT in attributes else []
        library = KernelLibrary([load(text, "the DSL's PTX") for text in texts])
        for name, address in given_functions(library, list(_declared(module))):
            engine.raw_register_runtime(name, address)
        setattr(engine, _MARK, library)  # the functions live as long as what calls them
        return engine

    return jit


def only_simulated(load_library: Any) -> Any:
    """Return what loads the kernels of a compiled function, an error for one that was compiled for a real GPU."""

    @wraps(load_library)
    def load_simulated(self: Any) -> Any:
        if not hasattr(self.engine, _MARK):
            raise OperandError(
                f"{self.function_name} was compiled outside of `with warpmma.cute.device(...)`: call cute.compile in it"
            )
        return load_library(self)

    return load_simulated


def raising(function: Callable[..., Any], folder: str) -> Any:
    """Return a function that runs host code, and raises what was raised in what that calls."""

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        failures.clear()
        try:
            result = function(*args, **options)
        except Exception:
            if not failures:
                raise
        if failures:
            error = failures[0]  # host code may go on after an error, and make others of it
            failures.clear()
            end_at_caller(error, folder)
            raise error from None
        return result

    return run


def with_raising_executor(bind: Any, cute: CuteInterface) -> Any:
    """Return what makes the executor of a compiled function, whose errors are those of the launch.

    It is of a class of its own, which stays when the device is no longer active.
    """
    run = cute.executor.run_compiled_program
    simulated = type("SimulatedExecutor", (cute.executor,), {"run_compiled_program": raising(run, cute.folder)})

    @wraps(bind)
    def bound(self: Any, *args: Any, **options: Any) -> Any:
        executor = bind(self, *args, **options)
        executor.__class__ = simulated
        return executor

    return bound


def _declared(module: Any) -> Iterator[str]:
    """Return the functions of CUDA that a module declares, and does not define."""
    for each in module.body.operations:
        operation = each.operation
        if operation.name == "llvm.func" and not list(operation.regions[0].blocks):
            name = operation.attributes["sym_name"].value
            if name.startswith(("_cu", "cuda_dialect_")):
                yield name
