"""`torch.compile` for a simulated GPU: Inductor's kernels, which Triton compiles, run on CPU tensors.

The rules:

1. A model is compiled by Dynamo and Inductor as usual, forward and backward; what is replaced for that, and which
   configurations are chosen, `inductor` says. A graph runs with its device active in `warpmma.triton`.
2. Operators for which Inductor has no kernel are PyTorch's, on the CPU; within `products` they have its arithmetic.
3. Without a target the active device is meant, as in `with warpmma.triton.device(...)`; the graph then runs on a device
   of the same targets alone.
4. What Inductor needs a GPU for is an error: CUDA graphs, C++ wrappers, tensors on a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from .._arguments import check_choice, suggestion
from .._tracebacks import end_outside
from ..errors import OperandError, UnsupportedError, WarpmmaError, shown
from .compile_report import CompileReport, calls_in
from .inductor import DEFAULTS, SETTINGS, SimulatedGpu, check_version, compiling_for, traced
from .overriding import Arithmetic
from .tensors import pytorch

if TYPE_CHECKING:
    from ..machine import Device
    from ..triton import ActiveDevice, KernelLaunch, TritonDevice

_MODES: Mapping[str, str] = {
    "reduce-overhead": "CUDA graphs, which are not simulated; the default mode has the same kernels",
    "max-autotune": "CUDA graphs, which are not simulated; mode='max-autotune-no-cudagraphs' has the same kernels",
    "lite": "the user's marks of what is compiled; the default mode compiles all",
}
"""Modes that are refused, and why."""


def compile(
    model: Any = None, *, target: str | Device | TritonDevice | None = None, products: Arithmetic | None = None,
    fullgraph: bool = False, dynamic: bool | None = None, mode: str | None = None,
    options: Mapping[str, Any] | None = None, **of_device: Any,
) -> Any:  # fmt: skip
    """Compile a model as `torch.compile` does, for a simulated GPU.

    Parameters
    ----------
    model : callable or torch.nn.Module, optional
        On the CPU. Without it the result is a decorator.
    target : str, Device or TritonDevice, optional
        Whose bits the kernels have, such as "sm_90"; or a device of `warpmma.triton.device`. By default the device
        that is active.
    products : Arithmetic, optional
        What `warpmma.torch.arithmetic(...)` returns: its arithmetic computes the products that are not compiled.
    fullgraph, dynamic, mode
        As of `torch.compile`, without modes that take CUDA graphs.
    options : mapping, optional
        Of Inductor, as of `torch.compile`, such as {"fallback_random": True}.
    **of_device
        Of every launch, as of `warpmma.triton.device`: `hazards`, `ptx_target`, `limit`, ...

    Returns
    -------
    CompiledModel

    Raises
    ------
    UnsupportedError
        No PyTorch, one of a version that was not tried, or no Triton; a mode or an option that needs a GPU. In a call:
        what Inductor does not compile to kernels of Triton, a tensor on a GPU.
    OperandError
        An unknown option; no target, and no active device.
    TargetError
        No such target.
    """
    check_version()
    settings = _settings(mode, options)
    if products is not None and not isinstance(products, Arithmetic):
        raise OperandError(f"products is {shown(products)}; expected what warpmma.torch.arithmetic(...) returns")
    if model is not None and not callable(model):
        raise OperandError(f"the model is {shown(model)}; expected a function or a torch.nn.Module")
    if model is None:
        given = {"fullgraph": fullgraph, "dynamic": dynamic, "mode": mode, "options": options, **of_device}
        return lambda function: compile(function, target=target, products=products, **given)
    device = _device(target, of_device)
    kept = target is None or device is target
    report = CompileReport(device.target, products.report if products is not None else None)
    backend = GraphCompiler(device, settings, report, products, own=target is not None, kept=kept)
    optimized = pytorch().compile(model, backend=backend, fullgraph=fullgraph, dynamic=dynamic, isolate_recompiles=True)
    return CompiledModel(optimized, device, report, backend)


def named_backend(
    graph: Any, inputs: Sequence[Any], *, mode: str | None = None, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Compile a graph of Dynamo's: the backend of `torch.compile(model, backend="warpmma")`.

    The device is the active one; launches are in its `launches`. `mode` and `options` are those of `compile`.
    """
    check_version()
    return GraphCompiler(_active(), _settings(mode, options), None, None, own=False, kept=True)(graph, inputs)


class CompiledModel:
    """A model that `compile` made: called like the model, it runs on the simulated GPU.

    Other attributes are the model's: `parameters()`, `train()`, ...

    Attributes
    ----------
    device : TritonDevice
    report : CompileReport
        Kernels of all calls, forward and backward.
    """

    def __init__(self, optimized: Any, device: ActiveDevice, report: CompileReport, backend: GraphCompiler) -> None:
        self._optimized, self._backend = optimized, backend
        self.device, self.report = device, report

    @property
    def launches(self) -> list[KernelLaunch]:
        """The launches of the graph that ran last."""
        return self._backend.last

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the model; an error of warpmma's stays what it is, though it happens inside the compiler."""
        __tracebackhide__ = True
        try:
            with self._backend.active() as launches, traced():
                before = len(launches)
                try:
                    return self._optimized(*args, **options)
                finally:
                    self._backend.forget(launches, before)
        except WarpmmaError as error:
            end_outside(error, str(pytorch().__path__[0]))
            raise
        except Exception as error:
            if (cause := _cause(error)) is not None:
                raise cause.with_traceback(None) from None
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimized, name)

    def __repr__(self) -> str:
        return f"<CompiledModel for {self.device.target}: {self.report.launches} launches>"


class GraphCompiler:
    """A backend of Dynamo's: compiles graphs with Inductor for a device, and runs them on it.

    `own` says whether the device is active in each run of a graph, and otherwise is outside of it; `kept` whether its
    list of launches is the caller's, or has those of the last run of a graph alone.
    """

    __name__ = "warpmma"

    def __init__(
        self, device: ActiveDevice, settings: Mapping[str, Any], report: CompileReport | None,
        products: Arithmetic | None, *, own: bool, kept: bool,
    ) -> None:  # fmt: skip
        self._device, self._settings, self._report, self._products = device, dict(settings), report, products
        self._own, self._kept, self._graphs = own, kept, count()
        self.last: list[KernelLaunch] = []

    def __call__(self, graph: Any, inputs: Sequence[Any], **_: Any) -> Callable[..., Any]:
        """Compile a graph."""
        torch = pytorch()
        _check_places(torch, inputs)
        number = next(self._graphs)
        inductor = import_module("torch._inductor.compile_fx")
        gpu = SimulatedGpu(target=self._device.target, ptx_numbers=self._device.ptx_numbers)

        def inner_compile(part: Any, given: Any, **more: Any) -> Any:
            with self.active(), compiling_for(gpu):
                compiled = inductor.compile_fx_inner(part, given, **more)
            named = f"{'backward' if more.get('is_backward') else 'forward'} {number}"
            call = compiled.current_callable
            called = calls_in(getattr(compiled, "source_code", None) or "")
            compiled.current_callable = lambda args: self._run(named, called, call, args)
            return compiled

        # Its cache would return graphs without calling `inner_compile`.
        with import_module("torch._functorch.config").patch(enable_autograd_cache=False):
            found: Callable[..., Any] = inductor.compile_fx(
                graph, inputs, inner_compile=inner_compile, config_patches=self._settings
            )
        return found

    @contextmanager
    def active(self) -> Iterator[list[KernelLaunch]]:
        """Make the device active, unless another of the same targets is; return the launches of that which is."""
        if self._own:
            with cast("TritonDevice", self._device):
                yield self._device.launches
            return
        active = _active()
        if active.number != self._device.number:
            raise OperandError(
                f"the graph was compiled for {self._device!r}, and {active!r} is active: torch._dynamo.reset() lets "
                f"it be compiled again; warpmma.torch.compile(model, target=...) keeps targets apart"
            )
        yield active.launches

    def _run(self, named: str, called: Counter[str], call: Callable[[Any], Any], args: Any) -> Any:
        __tracebackhide__ = True
        with self.active() as launches, self._products or nullcontext():
            before = len(launches)
            try:
                return call(args)
            finally:
                new = launches[before:]
                if self._report is not None:
                    self._report.add(named, new, called)
                self.last = new
                self.forget(launches, before)

    def forget(self, launches: list[KernelLaunch], before: int) -> None:
        """Shorten a list of launches to what it had before, unless it is the caller's."""
        if not self._kept:
            del launches[before:]


def _settings(mode: str | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return Inductor's settings for a mode and options."""
    inductor = import_module("torch._inductor")
    modes = [name for name in inductor.list_mode_options() if name not in _MODES]
    if mode is not None and mode in _MODES:
        raise UnsupportedError(f"mode={mode!r} needs {_MODES[mode]}")
    if mode is not None:
        check_choice("mode", mode, modes)
    known = inductor.list_options()
    for name, value in (options or {}).items():
        if name not in known:
            raise OperandError(f"{shown(name)} is not an option of Inductor's{suggestion(name, known)}")
        if name in SETTINGS and value != SETTINGS[name]:
            raise UnsupportedError(f"the option {name}={shown(value)} is not supported; it is {SETTINGS[name]!r} here")
    return {**DEFAULTS, **inductor.list_mode_options(mode or "default"), **(options or {}), **SETTINGS}


def _device(target: Any, of_device: Mapping[str, Any]) -> Any:
    from ..triton import ActiveDevice, device

    if target is None and not of_device:
        return _active()
    if isinstance(target, ActiveDevice):
        if of_device:
            raise OperandError(f"{', '.join(of_device)}: the device has its options; give them to triton.device")
        return target
    if target is None:
        raise OperandError(f"{', '.join(of_device)} without a target; expected target='sm_90', or another")
    return device(target, **of_device)


def _active() -> ActiveDevice:
    """Return the active device."""
    from ..triton import current

    return current()


def _check_places(torch: Any, inputs: Sequence[Any]) -> None:
    """Rule 4."""
    for x in inputs:
        if isinstance(x, torch.Tensor) and x.device.type != "cpu":
            raise UnsupportedError(
                f"a tensor of the graph is on {x.device}; kernels are simulated on the CPU: model.cpu(), x.cpu()"
            )


def _cause(error: BaseException | None) -> WarpmmaError | None:
    """Return the error of warpmma's that an error of Dynamo's was made of."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if isinstance(each, WarpmmaError):
            return each
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        waiting += [each.__cause__, each.__context__, getattr(each, "inner_exception", None)]
    return None
