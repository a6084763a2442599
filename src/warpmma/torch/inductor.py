"""Inductor, PyTorch's compiler, with a simulated GPU: the parts of PyTorch that are replaced while it compiles.

The rules:

1. Inductor compiles CPU tensors with its generator of Triton kernels (`cpu_backend = "triton"`), in this process.
2. It asks for the properties of the CPU, and is given those of the simulated GPU, with 132 multiprocessors; the target
   of its kernels is the CPU, and becomes the CUDA target that the device has Triton compile for.
3. No configuration of a kernel is run to measure it. Of those that Inductor lists the first that can be loaded is
   chosen; of the templates of a product the first, ahead of ATen's kernel (`deterministic`). Convolutions are ATen's:
   for the CPU Inductor hands their bias to ATen, and its templates would leave it out.
4. Generated code has a directory of its own for each target and version, since Inductor's caches know neither the
   target nor these rules: inside Inductor's own one. Caches in memory are cleared before and afterwards.
5. What lowers to C++ alone, flex attention, is an error.
6. Dynamo traces kernels of Triton only where a backend "cpu" has a driver: there is one, which compiles nothing.
7. Everything is restored afterwards, after an exception, too.

`REPLACED` lists every private name of PyTorch's that is replaced, with the parameters that it takes in the versions
that were tried: another version has another interface, or none, and is refused by `check_version`.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any

from .._version import __version__
from ..errors import UnsupportedError
from ..isa import TARGETS
from .tensors import pytorch

TRIED = ((2, 13), (2, 13))
"""The first and the last version of PyTorch that was tried."""

_FORMAT = 1  # of generated code: increment when the rules or the replacements change what is generated

SETTINGS: Mapping[str, Any] = MappingProxyType({
    "cpu_backend": "triton", "compile_threads": 1, "deterministic": True, "coordinate_descent_tuning": False,
    "benchmark_kernel": False, "benchmark_fusion": False, "benchmark_epilogue_fusion": False, "cpp_wrapper": False,
    "fx_wrapper": False, "triton.cudagraphs": False, "worker_start_method": "subprocess",
    "autotune_in_subproc": False, "max_autotune_conv_backends": "ATEN",
})  # fmt: skip
"""Settings of Inductor's that are fixed here."""

DEFAULTS: Mapping[str, Any] = MappingProxyType({"max_autotune_gemm_backends": "ATEN,TRITON"})
"""Settings that an option changes: without templates in C++."""


@dataclass(frozen=True, kw_only=True)
class SimulatedGpu:
    """What Inductor is told: the device's target, and the numbers of those that Triton compiles for."""

    target: str
    ptx_numbers: tuple[int, ...]

    @property
    def folder(self) -> str:
        """Name the directory of its generated code."""
        version = re.sub(r"\W", "_", pytorch().__version__)
        written = "_".join(map(str, self.ptx_numbers))
        return f"warpmma-{__version__}-{_FORMAT}-torch-{version}-{self.target}-ptx-{written}"


@dataclass(frozen=True, kw_only=True)
class Replaced:
    """A private name of PyTorch's that is replaced: in a module or a class of it, with the parameters that it takes."""

    module: str
    name: str
    parameters: tuple[str, ...]
    make: Callable[[Any, SimulatedGpu], Any]  # the replacement, from the original

    def holder(self) -> tuple[Any, str]:
        """Return the module or class that has it, and its name there."""
        *path, name = self.name.split(".")
        found: Any = import_module(self.module)
        for part in path:
            found = getattr(found, part)
        return found, name

    def original(self) -> Any:
        """Return what has the name; an `AttributeError` or `ImportError` if nothing has."""
        holder, name = self.holder()
        return getattr(holder, name)

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


def _cuda_target(original: Any, gpu: SimulatedGpu) -> Any:
    """Rule 2."""

    def target(backend: str, arch: Any, warp_size: int) -> Any:
        return original("cuda", gpu.ptx_numbers[0], 32) if backend == "cpu" else original(backend, arch, warp_size)

    return target


def _properties(original: Any, gpu: SimulatedGpu) -> Any:
    """Rule 2."""
    from ..machine import MULTIPROCESSORS

    of_cpu = import_module("torch._inductor.runtime.hints").DeviceProperties(
        type="cpu", index=None, multi_processor_count=MULTIPROCESSORS, cc=gpu.ptx_numbers[0],
        major=gpu.ptx_numbers[0] // 10, regs_per_multiprocessor=TARGETS[gpu.target].registers_per_block,
        max_threads_per_multi_processor=TARGETS[gpu.target].threads_per_sm,
        max_threads_per_block=1024, warp_size=32,
    )  # fmt: skip
    return staticmethod(lambda device: of_cpu if device.type == "cpu" else original(device))


def _choosing(original: Any, gpu: SimulatedGpu) -> Any:
    """Rule 3."""
    heuristics: Any = import_module(_TRITON)

    class First(heuristics.CachingAutotunerPlugin):  # type: ignore[misc]
        """Chooses the first configuration of a kernel that can be loaded."""

        def pre_compile(self, tuner: Any) -> Any:
            failure: RuntimeError | None = None
            for configuration in tuner.configs or ():
                tuner.configs, tuner.compile_results = [configuration], []
                try:
                    tuner._precompile_worker()
                    tuner._make_launchers()
                except RuntimeError as error:
                    if "No valid triton configs" not in str(error):
                        raise
                    failure = error
                else:
                    return None  # it is compiled
            if failure is not None:
                raise failure
            return heuristics.DEFER

    return lambda tuner: [First(), *original(tuner)]


def _template(original: Any, gpu: SimulatedGpu) -> Any:
    """Rule 3."""
    extern = import_module("torch._inductor.select_algorithm").ExternKernelCaller
    return lambda self, choices: next((x for x in choices if not isinstance(x, extern)), choices[0])


def _unmeasured(original: Any, gpu: SimulatedGpu) -> Any:
    """Rule 3: whatever else would be measured takes the same time; the first of equals is chosen."""
    return lambda self, fn, *args, **options: 1.0


def _system(original: Any, gpu: SimulatedGpu) -> Any:
    """Rule 4: the name of the system in the keys of caches."""
    return staticmethod(lambda: {"device": {"name": gpu.target}, "version": {}, "hash": gpu.folder})


def _no_flex_attention(original: Any, gpu: SimulatedGpu) -> Any:
    """Rule 5."""

    def refused(*_: Any) -> Any:
        raise UnsupportedError(
            "flex_attention: on CPU tensors Inductor lowers it to C++, not to a kernel of Triton; "
            "torch.nn.functional.scaled_dot_product_attention with a mask, or softmax(q @ k + bias) @ v, compiles"
        )

    return refused


_TRITON = "torch._inductor.runtime.triton_heuristics"
REPLACED: tuple[Replaced, ...] = (
    Replaced(module=_TRITON, name="GPUTarget", parameters=("backend", "arch", "warp_size"), make=_cuda_target),
    Replaced(module=_TRITON, name="get_caching_autotuner_plugins", parameters=("autotuner",), make=_choosing),
    Replaced(
        module="torch._inductor.runtime.triton_helpers", name="set_driver_to_cpu", parameters=(),
        make=lambda original, gpu: lambda: None,  # the driver is the device's
    ),
    Replaced(
        module="torch._inductor.runtime.hints", name="DeviceProperties.create", parameters=("cls", "device"),
        make=_properties,
    ),
    Replaced(
        module="torch._inductor.runtime.benchmarking", name="Benchmarker.benchmark",
        parameters=("self", "fn", "fn_args", "fn_kwargs", "device", "kwargs"), make=_unmeasured,
    ),
    Replaced(
        module="torch._inductor.select_algorithm", name="AlgorithmSelectorCache.pick_deterministic_choice",
        parameters=("self", "choices"), make=_template,
    ),
    Replaced(module="torch._inductor.codecache", name="CacheBase.get_system", parameters=(), make=_system),
    Replaced(
        module="torch._inductor.kernel.flex.flex_attention", name="lower_cpu",
        parameters=("query", "key", "value", "subgraph", "block_mask", "scale", "kernel_options",
                    "score_mod_other_buffers", "mask_mod_other_buffers"),
        make=_no_flex_attention,
    ),
)  # fmt: skip
"""Every private name that is replaced while Inductor compiles."""

_HAS_TRITON = "torch.utils._triton.has_triton"
CLEARED = (
    "torch._inductor.utils.clear_caches", f"{_HAS_TRITON}.cache_clear",
    "torch.utils._triton.triton_backend.cache_clear", "torch.utils._triton.triton_hash_with_backend.cache_clear",
)  # fmt: skip
"""Functions that forget what was found out for another device; called before and afterwards."""

_SKIPPED = "torch._dynamo.trace_rules.add"
CALLED: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "torch._inductor.compile_fx.compile_fx": (
        "model_", "example_inputs_", "inner_compile", "config_patches", "decompositions", "ignore_shape_env",
        "compile_region_name",
    ),
    "torch._inductor.compile_fx.compile_fx_inner": ("gm", "example_inputs", "compile_region_name", "kwargs"),
    "torch._inductor.runtime.cache_dir_utils.default_cache_dir": (),
    _SKIPPED: ("import_name",),
    "torch._inductor.list_options": (),
    "torch._inductor.list_mode_options": ("mode", "dynamic"),
    _TRITON + ".CachingAutotunerPlugin.pre_compile": ("self", "autotuner"),
    _TRITON + ".CachingAutotuner._precompile_worker": ("self",),
    _TRITON + ".CachingAutotuner._make_launchers": ("self",),
})  # fmt: skip
"""Functions of PyTorch's that are called or overridden, and their parameters."""

_ENVIRONMENT = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def versions() -> str:
    """Name the versions of PyTorch that were tried."""
    first, last = (".".join(map(str, version)) for version in TRIED)
    return first if first == last else f"{first} to {last}"


@cache
def check_version() -> None:
    """Raise `UnsupportedError` unless PyTorch is of a version that was tried, with every name of the tables.

    Afterwards Dynamo never traces code of this package, which runs between the graphs of a model; only what makes a
    product an operator.
    """
    torch = pytorch()
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if found is None or not TRIED[0] <= (int(found[1]), int(found[2])) <= TRIED[1]:
        raise _refused("is not supported")
    if missing := lacking():
        raise _refused(f"has another {missing[0]}")
    for name in _untraced():
        _at(_SKIPPED)(name)


def _untraced() -> list[str]:
    """List the packages and modules that Dynamo does not trace: all but `product_function`."""
    own, room = __package__.partition(".")[0], __package__
    rooms, modules = (iter_modules(import_module(x).__path__, f"{x}.") for x in (own, room))
    traced = {room, f"{room}.product_function"}
    return [each.name for each in (*rooms, *modules) if each.name not in traced]


def lacking() -> list[str]:
    """List what PyTorch lacks of the tables, or has with other parameters."""
    found = [str(each) for each in REPLACED if _parameters(str(each)) != each.parameters]
    found += [path for path, parameters in CALLED.items() if _parameters(path) != parameters]
    found += [path for path in CLEARED if not callable(_at(path))]
    known = set(import_module("torch._inductor").list_options())
    return found + [f"torch._inductor.config.{name}" for name in {**SETTINGS, **DEFAULTS} if name not in known]


def _refused(why: str) -> UnsupportedError:
    return UnsupportedError(
        f"PyTorch {pytorch().__version__} {why}: warpmma.torch.compile takes {versions()}, whose Inductor it knows; "
        f"pip install 'torch=={'.'.join(map(str, TRIED[1]))}.*'"
    )


def _at(path: str) -> Any:
    """Return what has a dotted name, or None."""
    parts = path.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:i]))
        except ImportError:
            continue
        for part in parts[i:]:
            found = getattr(found, part, None)
        return found
    return None


def _parameters(path: str) -> tuple[str, ...] | None:
    """Return the names of the parameters of what has a dotted name; None if nothing has it."""
    try:
        return tuple(inspect.signature(inspect.unwrap(_at(path))).parameters)
    except (TypeError, ValueError):
        return None


def folder_of(gpu: SimulatedGpu) -> str:
    """Return the directory of generated code (rule 4)."""
    outer = os.environ.get(_ENVIRONMENT[0]) or _at("torch._inductor.runtime.cache_dir_utils.default_cache_dir")()
    return str(Path(outer).absolute() / gpu.folder)


class _NoCompiler:
    """Compiles for no target."""

    @staticmethod
    def supports_target(target: Any) -> bool:
        return False


@contextmanager
def traced() -> Iterator[None]:
    """Let Dynamo trace kernels of Triton within the context, in which a device is active (rule 6)."""
    backends = import_module("triton.backends").backends
    asked = _at(_HAS_TRITON)
    before, nvidia = dict(backends), backends["nvidia"]
    try:
        driver = type(import_module("triton.runtime.driver").driver.active)
        backends["cpu"] = type(nvidia)(compiler=_NoCompiler, driver=driver)
        asked.cache_clear()
        yield
    finally:
        asked.cache_clear()
        backends.clear()
        backends.update(before)


@contextmanager
def compiling_for(gpu: SimulatedGpu) -> Iterator[None]:
    """Let Inductor compile for a simulated GPU within the context."""
    folder = folder_of(gpu)
    with traced(), ExitStack() as stack:
        for path in CLEARED:
            stack.callback(_at(path))
        for name, value in zip(_ENVIRONMENT, (folder, str(Path(folder) / "triton")), strict=True):
            stack.callback(_set_variable, name, os.environ.get(name))
            os.environ[name] = value
        for each in REPLACED:
            holder, name = each.holder()
            stack.callback(setattr, holder, name, inspect.getattr_static(holder, name))
            setattr(holder, name, each.make(getattr(holder, name), gpu))
        for path in CLEARED:
            _at(path)()
        yield


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
