"""What answers for `cuda.bindings`, which the DSL's Python and its users ask.

The rules:

1. While a device is active, the functions of `cuda.bindings.driver` and `cuda.bindings.runtime` in the tables answer
   for it; any other function of theirs is an error that names the nearest that answers.
2. There is one device, number 0, with one context. Streams are numbers: a launch is over before the next one begins.
3. The time between two events is the number of instructions that warps have executed, in microseconds: there is no
   time.
4. Memory that the runtime allocates is the device's; it is copied and filled at once.
5. Clusters that fit at once are as many as the multiprocessors have room for, a block in each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from typing import Any

from .._arguments import suggestion
from ..errors import OperandError, UnsupportedError, shown
from ..machine import MULTIPROCESSORS
from .active_gpu import current
from .cute_interface import CuteInterface
from .device_attributes import attribute_of

_VERSION = 13000
_handles = count(1)
_PER_MILLISECOND = 1000.0

Answers = dict[str, Callable[..., Any]]


def replaced_functions(cute: CuteInterface) -> Iterator[tuple[Any, str, Any]]:
    """Return what is replaced while a device is active: module, name and function (rule 1)."""
    tables = ((cute.driver, _driver_answers(cute)), (cute.runtime, _runtime_answers(cute)))
    for module, answers in tables:
        for name, refuse in _refusals(module, tuple(answers)):
            yield module, name, answers.get(name, refuse)
    yield cute.hardware, "get_max_active_clusters", _most_clusters


@cache
def _refusals(module: Any, known: tuple[str, ...]) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Return an error for each function of a module, by its name: there are hundreds, which are made once."""
    functions = (name for name in dir(module) if name.startswith("cu") and callable(getattr(module, name)))
    return tuple(
        (name, _refused(module.__name__, name, known))
        for name in functions
        if not isinstance(getattr(module, name), type)
        and not name.endswith(("GetErrorName", "GetErrorString"))  # which ask no GPU
    )


def _refused(module: str, name: str, known: tuple[str, ...]) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise UnsupportedError(
            f"{module}.{name} is not answered by a simulated GPU{suggestion(name, known)}; answered are "
            f"{', '.join(sorted(known))}"
        )

    return refuse


def _most_clusters(self: Any, cluster_size: int, stream: Any = None) -> int:
    """Rule 5."""
    if not 0 < cluster_size <= 32:
        raise OperandError(f"a cluster of {shown(cluster_size)} blocks; expected 1 to 32")
    return max(1, MULTIPROCESSORS // cluster_size)


class _Events:
    """Marks in the count of instructions (rule 3)."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def create(self) -> int:
        number = next(_handles)
        self.counts[number] = current().instructions
        return number

    def record(self, event: Any) -> None:
        self.counts[int(event)] = current().instructions

    def elapsed(self, start: Any, end: Any) -> float:
        for event in (start, end):
            if int(event) not in self.counts:
                raise OperandError(f"event {int(event)} is not known: create it where the device is active")
        return (self.counts[int(end)] - self.counts[int(start)]) / _PER_MILLISECOND

    def destroy(self, event: Any) -> None:
        self.counts.pop(int(event), None)


def _attribute(attribute: Any) -> int:
    return attribute_of(current(), int(attribute))


def _driver_answers(cute: CuteInterface) -> Answers:
    driver, events = cute.driver, _Events()
    ok = driver.CUresult.CUDA_SUCCESS

    def nothing(*_: Any, **__: Any) -> tuple[Any]:
        return (ok,)

    def always(value: Callable[[], Any]) -> Callable[..., tuple[Any, Any]]:
        return lambda *_, **__: (ok, value())

    def record(event: Any, stream: Any = 0) -> tuple[Any]:
        events.record(event)
        return (ok,)

    def destroy(event: Any) -> tuple[Any]:
        events.destroy(event)
        return (ok,)

    return {
        "cuInit": nothing, "cuDriverGetVersion": always(lambda: _VERSION),
        "cuDeviceGetCount": always(lambda: 1), "cuDeviceGet": always(lambda: driver.CUdevice(0)),
        "cuDeviceGetName": always(lambda: f"simulated {current().target}".encode()),
        "cuDeviceGetAttribute": lambda attribute, device=0: (ok, _attribute(attribute)),
        "cuCtxGetCurrent": always(lambda: driver.CUcontext(1)), "cuCtxGetDevice": always(lambda: driver.CUdevice(0)),
        "cuCtxCreate": always(lambda: driver.CUcontext(1)), "cuCtxSetCurrent": nothing, "cuCtxDestroy": nothing,
        "cuDevicePrimaryCtxRetain": always(lambda: driver.CUcontext(1)), "cuDevicePrimaryCtxRelease": nothing,
        "cuCtxSynchronize": nothing,
        "cuStreamCreate": always(lambda: driver.CUstream(next(_handles))), "cuStreamSynchronize": nothing,
        "cuStreamDestroy": nothing, "cuStreamWaitEvent": nothing,
        "cuEventCreate": always(lambda: driver.CUevent(events.create())), "cuEventRecord": record,
        "cuEventSynchronize": nothing, "cuEventDestroy": destroy,
        "cuEventElapsedTime": lambda start, end: (ok, events.elapsed(start, end)),
    }  # fmt: skip


def _runtime_answers(cute: CuteInterface) -> Answers:
    runtime = cute.runtime
    ok, kinds = runtime.cudaError_t.cudaSuccess, runtime.cudaMemcpyKind

    def nothing(*_: Any, **__: Any) -> tuple[Any]:
        return (ok,)

    def free(pointer: Any) -> tuple[Any]:
        if int(pointer):
            current().device.free(int(pointer))
        return (ok,)

    def fill(pointer: Any, value: int, count: int) -> tuple[Any]:
        current().device.write(int(pointer), bytes([value & 0xFF]) * count)
        return (ok,)

    def copy(to: Any, source: Any, count: int, kind: Any) -> tuple[Any]:
        device, (to, source) = current().device, (int(to), int(source))
        if kind not in (kinds.cudaMemcpyHostToDevice, kinds.cudaMemcpyDeviceToHost, kinds.cudaMemcpyDeviceToDevice):
            raise UnsupportedError(f"cudaMemcpy: kind {kind}; expected from host to device, back, or within the device")
        data = ctypes.string_at(source, count) if kind == kinds.cudaMemcpyHostToDevice else device.read(source, count)
        if kind == kinds.cudaMemcpyDeviceToHost:
            ctypes.memmove(to, data, count)
        else:
            device.write(to, data)
        return (ok,)

    return {
        "cudaMalloc": lambda size: (ok, current().device.allocate(size)), "cudaFree": free, "cudaMemset": fill,
        "cudaMemcpy": copy,
        "cudaGetDeviceCount": lambda: (ok, 1), "cudaGetDevice": lambda: (ok, 0), "cudaSetDevice": nothing,
        "cudaDeviceGetAttribute": lambda attribute, device=0: (ok, _attribute(attribute)),
        "cudaDriverGetVersion": lambda: (ok, _VERSION), "cudaRuntimeGetVersion": lambda: (ok, _VERSION),
        "cudaDeviceSynchronize": nothing, "cudaStreamSynchronize": nothing, "cudaGetLastError": nothing,
        "cudaPeekAtLastError": nothing, "cudaLibraryUnload": nothing,
        "cudaStreamCreate": lambda: (ok, runtime.cudaStream_t(next(_handles))), "cudaStreamDestroy": nothing,
    }  # fmt: skip
