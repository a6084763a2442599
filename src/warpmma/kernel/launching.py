"""Launching a kernel: a grid of blocks, in batches, and a report at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arguments import is_integer
from .._arrays import Array
from .._progress import Watched
from .._records import Shown
from .._tracebacks import end_outside
from ..arithmetic import Engine
from ..errors import OperandError, TargetError, WarpmmaError
from ..isa import check_known
from ..layouts import TensorMap
from ..machine import (
    Batch,
    Device,
    DeviceArray,
    GlobalMemory,
    Grid,
    HazardWarning,
    Launch,
    LaunchOptions,
    Limit,
    Policy,
    Site,
    Watch,
    Work,
    literal,
    run_launch,
)
from .blocks import check_kernel
from .call_sites import caller
from .threads import Threads


@dataclass(frozen=True)
class Output(Shown):
    """An array that a kernel may read only where it has written it."""

    array: Array


def launch(
    kernel: Callable[..., object], grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any], *,
    target: str | Device | None = None, shared: int = 0, cluster: int | Sequence[int] | None = None,
    hazards: Policy | Mapping[str, Policy] = "error",
    engine: Engine = "auto", threads: int | None = None, progress: Watched = None, watch: Watch | None = None,
    timeline: bool | Sequence[int] = False,
) -> Launch:  # fmt: skip
    """Run a kernel written in Python on simulated blocks.

    Parameters
    ----------
    kernel : callable
        Called as `kernel(t, *args)` with the `Threads` of a batch of blocks.
    grid, block : int or sequence of up to 3 int
        Blocks of the grid, threads of a block; at most as many as the target takes (`warpmma.isa.TARGETS`).
    args : sequence
        Arrays are placed in global memory, and the kernel gets their address (a 64-bit register); it writes them in
        place. They hold numbers in the machine's byte order, C-contiguous. `Output(array)` is one without initial
        values. Arrays of a device stay where they are. Of a `TensorMap` it is the address of
        its 128 bytes. Integers become 32-bit registers, floats f32, as if they
        were parameters of a real kernel; everything else is passed on as it is. Numbers that the kernel loops over or
        branches on in Python must not be arguments: bind them, `functools.partial(kernel, tiles=4)`.
    target : str or Device
        Optional if `args` has arrays of a device. On a device the kernel can read everything that the device holds,
        and its writes persist.
    shared : int
        Bytes of shared memory of a block, at most as many as the target has for one.
    cluster : int or sequence of up to 3 int, optional
        Blocks of a cluster along x, y and z. Then shared memory begins at `Threads.shared`, not at 0.
    hazards : "error", "strict", "warn", "count", "off" or dict
        What to do about hazards, or about kinds of them (`hazards.KINDS`): raise `HazardError`, or a `HazardWarning`
        at the kernel's line, once for each kind and line; or only count them, in `Launch.counts`. "off" is faster:
        accesses are not tracked, so races, unwritten memory and poison are not found; addresses are still checked, and
        barriers still work. "strict" is "error" here; in PTX, CUDA C++ and Triton, a read that depends on luck is an
        error only where its value decides something, and with "strict" at once.
    engine
        As for `execute`.
    threads : int, optional
        How many host threads share one execution of `mma` over the blocks that run together; 1 by default. Blocks do
        not run on them: a launch uses one core for everything else, and the native engine does an `mma` of fewer than
        65,536 GPU threads in one piece, so more threads do not make a launch faster. Use processes to run launches on
        several cores. Bits, hazards and costs do not depend on it.
    progress : bool or callable, optional
        Called as `progress(done, total)` with numbers of blocks; True shows a bar on a terminal and in a notebook.
    watch : Watch, optional
        Which executions of `mma` are kept, for `warpmma.explain_launch`.
    timeline : bool or sequence of int
        Whether to record what asynchronous work is issued, signalled, waited for and complete, for `Launch.timeline`:
        of the first block or cluster, or of the blocks with these numbers in the grid.

    Returns
    -------
    Launch

    Raises
    ------
    HazardError
        The first hazard, with the kernel's line, warp, lane and address.
    WarpmmaError
        What the target does not have, or wrong operands.

    Examples
    --------
    >>> def double(t, x):
    ...     at = x + (t.ctaid[0] * 64 + t.tid[0]) * 4
    ...     t("st.global.b32", at, t("ld.global.b32", at) * 2)
    >>> numbers = np.arange(128, dtype=np.uint32)
    >>> report = launch(double, 2, 64, [numbers], target="sm_90")
    >>> numbers[-3:]
    array([250, 252, 254], dtype=uint32)
    """
    __tracebackhide__ = True
    try:
        options = LaunchOptions.given(
            hazards=hazards, engine=engine, threads=threads, progress=progress, watch=watch, timeline=timeline
        )
        _check_calls(kernel, args)
        device = _device(target, args)
        check_kernel(kernel)
        extent = Grid.checked(grid, block, shared, device.target, cluster=cluster)
        return run_launch(_PythonKernel(kernel, args, extent), device, extent, options)
    except (WarpmmaError, HazardWarning) as error:
        end_outside(error)  # at the kernel's line
        raise


class _PythonKernel(Work):
    """A kernel in Python, with its arguments."""

    index_name = "ctaid"

    def __init__(self, kernel: Callable[..., object], args: Sequence[Any], grid: Grid) -> None:
        self._kernel, self._args, self._grid = kernel, args, grid
        self._placed: list[tuple[str, Any]] = []

    @property
    def site(self) -> Site:
        """The line that launches."""
        return caller("launch")

    def place(self, memory: GlobalMemory) -> None:
        self._placed = [_place(memory, x, f"args[{i}]") for i, x in enumerate(self._args)]

    def run(self, batch: Batch, limit: Limit) -> None:
        __tracebackhide__ = True
        t = Threads(batch, self._grid, batch.blocks)
        self._kernel(t, *(t.constant(x, kind) if kind else x for kind, x in self._placed))
        batch.finish()


def _check_calls(kernel: object, args: object) -> None:
    if not callable(kernel):
        raise OperandError(f"kernel is {type(kernel).__name__}; expected a function of threads and arguments")
    if not isinstance(args, list | tuple):
        raise OperandError(f"args is {type(args).__name__}; expected a list or tuple of the kernel's arguments")


def _device(target: object, args: Sequence[Any]) -> Device:
    """Return the device that a launch is on: the one it names, or that of its arrays, or a new one of a target."""
    device = target if isinstance(target, Device) else None
    for i, x in enumerate(args):
        if isinstance(x, DeviceArray):
            device = device or x.device
            if x.device is not device:
                raise OperandError(f"args[{i}] is an array of another device than {device!r}")
    if not isinstance(target, Device | None):
        check_known(target)  # type: ignore[arg-type]
    if device is None and target is None:
        raise TargetError("target is None, and no argument is an array of a device; expected a target or a device")
    if device is None:
        return Device(target)  # type: ignore[arg-type]
    if not isinstance(target, Device | None) and target != device.target:
        raise TargetError(f"target is {target}, and the arrays are of a device of {device.target}")
    return device


def _place(memory: GlobalMemory, argument: Any, name: str) -> tuple[str, Any]:
    """Return the class of register that an argument becomes, "" for none, and what it holds."""
    if isinstance(argument, Output):
        return "b64", memory.add(argument.array, name, written=False)
    if isinstance(argument, DeviceArray):
        memory.call(argument.address, name, argument.shape, argument.dtype)
        return "b64", argument.address
    if isinstance(argument, np.ndarray):
        return "b64", memory.add(argument, name)
    if isinstance(argument, TensorMap):
        return "b64", memory.add(np.frombuffer(bytearray(argument.encoded), np.uint8), name)
    if is_integer(argument):
        return "b32", literal(argument, "b32", "b32", name)
    if isinstance(argument, float | np.floating):
        return "b32", literal(argument, "f32", "b32", name)
    if isinstance(argument, np.timedelta64 | np.datetime64 | np.complexfloating | np.void):
        raise OperandError(f"{name} is a {type(argument).__name__}; expected an integer, a float or an array")
    return "", argument
