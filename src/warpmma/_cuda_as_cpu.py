"""`cuda="cpu"`: code that says "cuda" runs on a machine without a GPU, its tensors on the CPU.

Front ends whose kernels take tensors of PyTorch share it. Each says which of its devices answers: the active one.

The rules:

1. Tensors: those of `_cuda_tensors`.
2. The functions of `torch.cuda` and `torch.accelerator` in `_answers` answer; any other function of theirs, and the
   classes in `_REFUSED_CLASSES`, are an error that names the nearest that answers.
3. No answer is invented that could decide a test: memory in use and time are not answered; a device's memory is that of
   the machine.
4. Seeds and states of random numbers are those of the CPU's generator, not of a GPU's.
5. `autocast("cuda")` is the CPU's, in float16 unless a type is given; which functions it casts is the CPU's list.
6. Everything is restored when the device is no longer active; marks of tensors stay, without meaning.

`TorchAnswers` are answers of `torch.cuda` for a simulated GPU without this option:

1. As long as a device is active and PyTorch has no GPU, the functions of `torch.cuda` in `_always` answer.
   `is_available` still returns False: no tensor can be made on "cuda", unless the CPU stands for it.
2. The capability is that of the target that the front end compiles for, since code asks for what the compiler may use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import count
from types import FunctionType, SimpleNamespace
from typing import Any, Protocol

from ._arguments import check_choice, suggestion
from ._cuda_tensors import GENUINE, is_cuda_device, put_on_cuda, tensor_mode
from ._sessions import put
from .errors import OperandError, UnsupportedError
from .isa import TARGETS
from .machine import MULTIPROCESSORS


class AnsweringGpu(Protocol):
    """What answers: an active device of a front end."""

    target: str

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability that the front end compiles for."""

    @property
    def instructions(self) -> int:
        """The number of instructions that warps have executed."""


_events = count(1)
Current = Callable[[], AnsweringGpu]
"""Returns the active device; raises an error without one."""


def has_gpu(torch: Any) -> bool:
    """Return whether PyTorch has a GPU, whatever answers for it."""
    number = getattr(torch._C, "_cuda_getDeviceCount", None)  # a PyTorch for the CPU lacks it
    return number is not None and number() > 0


def machine_memory(device: Any = None) -> tuple[int, int]:
    """Return free and total bytes of this machine's memory, which holds the tensors."""
    page = os.sysconf("SC_PAGE_SIZE")
    return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page


def _properties(gpu: AnsweringGpu) -> SimpleNamespace:
    target = TARGETS[gpu.target]
    major, minor = gpu.capability
    return SimpleNamespace(
        name=f"simulated {target}", major=major, minor=minor, multi_processor_count=MULTIPROCESSORS, warp_size=32,
        max_threads_per_multi_processor=target.threads_per_sm, regs_per_multiprocessor=target.registers_per_block,
        shared_memory_per_block=target.static_shared, shared_memory_per_multiprocessor=target.shared_per_sm,
        shared_memory_per_block_optin=target.shared_per_block, total_memory=machine_memory()[1],
    )  # fmt: skip


def _always(current: Current) -> Mapping[str, Callable[..., Any]]:
    """Return the answers of `torch.cuda` that need no tensor on "cuda"."""
    return {
        "current_device": lambda: 0,
        "device": lambda device=None: nullcontext(),
        "get_device_capability": lambda device=None: current().capability,
        "get_device_name": lambda device=None: f"simulated {current().target}",
        "get_device_properties": lambda device=None: _properties(current()),
        "synchronize": lambda device=None: None,
    }  # fmt: skip


class TorchAnswers:
    """Answers that are installed in `torch.cuda` without the option, and the originals."""

    def __init__(self, current: Current) -> None:
        self._current, self._given, self._replaced = current, False, ExitStack()

    def give(self) -> None:
        """Answer from now on, if PyTorch was imported and has no GPU."""
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        if self._given or cuda is None or has_gpu(torch):
            return
        self._given = True
        for name, answer in _always(self._current).items():
            put(self._replaced, cuda, name, answer)

    def take_back(self) -> None:
        """Put back what was there."""
        self._given = False
        self._replaced.close()


class _Stream:
    """A stream: launches end before they return."""

    cuda_stream = stream_id = device_index = priority = 0

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> _Stream:
        return self

    def query(self) -> bool:
        return True

    __exit__ = wait_stream = wait_event = synchronize = lambda self, *_: None


class InstructionEvent:
    """A mark in the count of instructions that warps execute: an event, for which there is no time.

    The least time between two is 100, so that what calls a function until some time is over calls one without launches
    a few times. `cuda_event` is a number of its own, for code that hands an event to CUDA.
    """

    def __init__(self, current: Current) -> None:
        self._current, self.count, self.cuda_event = current, 0, next(_events)

    def record(self, stream: Any = None) -> None:
        """Mark now."""
        self.count = self._current().instructions

    def synchronize(self) -> None:
        """Do nothing: launches end before they return."""

    def elapsed_time(self, end: InstructionEvent) -> float:
        """Return instructions of warps until another mark, at least 100."""
        return float(max(100, end.count - self.count))

    def query(self) -> bool:
        return True

    def wait(self, stream: Any = None) -> None:
        """Do nothing."""


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def _answers(torch: Any, current: Current) -> Mapping[str, Mapping[str, Any]]:
    """Return what answers, by the module whose name it takes (rule 2)."""

    class Event(InstructionEvent):
        def __init__(self, *_: Any, **__: Any) -> None:
            super().__init__(current)

    class Stream(_Stream):
        def record_event(self, event: Any = None) -> Any:
            event = event or Event()
            event.record(self)
            return event

    def stream(device: Any = None) -> Any:
        return Stream()

    def number(device: Any = None) -> int:
        return 0

    random = {
        "manual_seed": torch.default_generator.manual_seed, "manual_seed_all": torch.default_generator.manual_seed,
        "seed": torch.default_generator.seed, "seed_all": torch.default_generator.seed,
        "initial_seed": torch.default_generator.initial_seed,
        "get_rng_state": lambda device=None: torch.default_generator.get_state(),
        "set_rng_state": lambda state, device=None: torch.default_generator.set_state(state),
        "get_rng_state_all": lambda: [torch.default_generator.get_state()],
        "set_rng_state_all": lambda states: torch.default_generator.set_state(next(iter(states))),
    }  # fmt: skip
    cuda = {
        **_always(current), **random,
        "is_available": lambda: True, "is_initialized": lambda: True, "init": _nothing, "device_count": lambda: 1,
        "set_device": _nothing, "device_of": lambda x=None: nullcontext(),
        "Stream": Stream, "Event": Event, "stream": lambda stream: stream or Stream(), "current_stream": stream,
        "default_stream": stream, "set_stream": _nothing, "is_current_stream_capturing": lambda: False,
        "empty_cache": _nothing, "ipc_collect": _nothing, "reset_peak_memory_stats": _nothing,
        "mem_get_info": machine_memory, "get_arch_list": lambda: [current().target],
        "is_bf16_supported": lambda including_emulation=True: TARGETS[current().target].number >= 80,
        "is_tf32_supported": lambda: TARGETS[current().target].number >= 80,
    }  # fmt: skip
    accelerator = {
        "is_available": lambda: True, "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "device_count": lambda: 1, "current_device_index": number, "current_device_idx": number,
        "set_device_index": _nothing, "set_device_idx": _nothing, "synchronize": _nothing, "empty_cache": _nothing,
        "current_stream": stream, "get_device_capability": torch.accelerator.get_device_capability,
    }  # fmt: skip
    return {"cuda": cuda, "accelerator": accelerator}


def check_option(cuda: str | None) -> None:
    """Raise an error for an option that there is not, or unless PyTorch is installed and has no GPU."""
    if cuda is None:
        return
    check_choice("cuda", cuda, ("cpu",))
    try:
        import torch
    except ImportError:
        raise UnsupportedError("cuda='cpu' is for PyTorch, which is not installed: pip install torch") from None
    if has_gpu(torch):
        raise OperandError("cuda='cpu' is for machines without a GPU, and PyTorch has one here: leave it out")


@contextmanager
def redirected_cuda(current: Current) -> Iterator[None]:
    """Make the CPU stand in for "cuda" within the context, in which a device is active."""
    import torch

    overrides: Any = torch.overrides
    with ExitStack() as replaced:
        for holder, name, value in _replacements(torch, current):
            put(replaced, holder, name, value)
        mode = tensor_mode()
        if not any(isinstance(x, mode) for x in overrides._get_current_function_mode_stack()):
            replaced.enter_context(mode())  # once: the inner one of two would take the outer one's answers for genuine
        yield


def _replacements(torch: Any, current: Current) -> Iterator[tuple[Any, str, Any]]:
    """Yield replacements: the owner, the attribute's name, and the temporary value."""
    for module, answers in _answers(torch, current).items():
        holder = getattr(torch, module)
        yield from ((holder, name, _one(answer)) for name, answer in answers.items())
        for name in holder.__all__:
            if name not in answers and isinstance(getattr(holder, name, None), FunctionType):
                yield holder, name, _refused(f"torch.{module}", name, list(answers))
    known = list(_answers(torch, current)["cuda"])
    for name in _REFUSED_CLASSES:
        if hasattr(torch.cuda, name):
            yield torch.cuda, name, type(name, (), {"__new__": _refused("torch.cuda", name, known)})
    yield torch, "Generator", _generator(torch.Generator)
    yield torch.autograd, "has_torch_function", lambda _: False  # else `grad` and `backward` run outside the mode
    function = torch.autograd.function.BackwardCFunction
    yield function, "apply", _given_on_cuda(function.apply)
    yield from _casts(torch)


_REFUSED_CLASSES = ("CUDAGraph", "CUDAPluggableAllocator", "ExternalStream", "GreenContext", "MemPool", "graph")
"""Classes of `torch.cuda` that nothing stands in for."""


def _one(answer: Any) -> Any:
    """Return a function of its own for each name: `torch.compile` keeps a table by function, and refuses one twice."""
    return answer if isinstance(answer, type) else lambda *args, **options: answer(*args, **options)


def _refused(module: str, name: str, known: list[str]) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise UnsupportedError(
            f"{module}.{name} is not answered where cuda='cpu'{suggestion(name, known)}; answered are "
            f"{', '.join(sorted(known))}"
        )

    return refuse


def _generator(original: Any) -> Any:
    class Either(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, original)

    class Generator(original, metaclass=Either):  # type: ignore[misc]
        """A generator of random numbers, the CPU's in place of one of CUDA (rule 4)."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return original("cpu" if is_cuda_device(device) else device)

    return Generator


def _given_on_cuda(apply: Callable[..., Any]) -> Callable[..., Any]:
    """Return a runner of a backward function that marks its results (rule 6 of tensors)."""

    def marked(self: Any, *gradients: Any) -> Any:
        with GENUINE():
            for x in gradients:
                if hasattr(x, "untyped_storage"):
                    put_on_cuda(x)
        return apply(self, *gradients)

    return marked


def _casts(torch: Any) -> Iterator[tuple[Any, str, Any]]:
    """Rule 5."""
    autocast = torch.amp.autocast_mode.autocast
    make, enabled, dtype = autocast.__init__, torch.is_autocast_enabled, torch.get_autocast_dtype

    def made(self: Any, device_type: str, dtype: Any = None, *args: Any, **options: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.float16
        make(self, device_type, dtype, *args, **options)

    def cpu_for(device: str) -> str:
        return "cpu" if device == "cuda" else device

    yield autocast, "__init__", made
    yield torch, "is_autocast_enabled", lambda device="cuda": enabled(cpu_for(device))
    yield torch, "get_autocast_dtype", lambda device: dtype(cpu_for(device))
    yield torch, "get_autocast_gpu_dtype", lambda: dtype("cpu")
