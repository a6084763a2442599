"""Launching a kernel: a grid of blocks, in batches, and a report at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._arguments import is_integer
from .._tasks import Progress
from .._tracebacks import end_outside
from ..arithmetic.engines import Engine, resolve
from ..errors import OperandError, WarpmmaError, shown
from ..isa import TARGETS, Target, check_known
from ..machine.costs import Costs
from ..machine.hazards import Hazard, HazardWarning, Policy, Reporter, Site
from ..machine.memory import GlobalMemory
from ..registers import LANES
from ..show import launches as report
from .blocks import check_kernel
from .literals import literal
from .threads import Threads
from .values import Register

__all__ = ["Launch", "Output", "launch"]

Array = npt.NDArray[Any]

# Threads that go through a kernel together, and bytes of shared memory of theirs: enough to hide the cost of a NumPy
# call, few enough that their registers stay in cache and that progress can be seen.
_THREADS, _SHARED = 1 << 15, 1 << 24


@dataclass(frozen=True)
class Output:
    """An array that a kernel may read only where it has written it."""

    array: Array


@dataclass(frozen=True)
class Launch:
    """What a launch found.

    Attributes
    ----------
    hazards : list of Hazard
        Those that were asked to be warnings: of each kind and line, the first.
    costs : Costs
    """

    hazards: list[Hazard]
    costs: Costs

    def text(self) -> str:
        """Tables of instructions, bytes moved, accesses to shared memory with their conflicts, and hazards."""
        return report.text(self.costs, self.hazards)

    def json(self) -> str:
        """All of it, by line, as a JSON document."""
        return report.json(self.costs, self.hazards)

    def svg(self, site: Site | int) -> str:
        """Picture which lanes meet in which bank, at a line that accesses shared memory; see `report.svg`."""
        return report.svg(self.costs, site)


def launch(
    kernel: Callable[..., object], grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any], *,
    target: str, shared: int = 0, hazards: Policy | Mapping[str, Policy] = "error", engine: Engine = "auto",
    threads: int | None = None, progress: Progress | None = None,
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
        place. They hold numbers in the machine's byte order, C-contiguous. `Output(array)` is one that holds nothing
        yet. Integers become 32-bit registers, floats f32, as if they
        were parameters of a real kernel; everything else is passed on as it is. Numbers that the kernel loops over or
        branches on in Python are none of these: bind them, `functools.partial(kernel, tiles=4)`.
    target : str
    shared : int
        Bytes of shared memory of a block, at most as many as the target has for one.
    hazards : "error", "warn" or dict
        What to do about hazards, or about kinds of them (`hazards.KINDS`): raise `HazardError`, or a `HazardWarning`
        at the kernel's line, once for each kind and line.
    engine, threads
        As for `execute`.
    progress : callable, optional
        Called as `progress(done, total)` with numbers of blocks.

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
    check_known(target)
    resolve(engine)
    _check_calls(kernel, args, threads, progress)
    check_kernel(kernel)
    limits = TARGETS[target]
    extent, each = _extent("grid", grid, limits), _extent("block", block, limits)
    shared = _shared(shared, limits)
    reporter, costs = Reporter(hazards), Costs()
    memory = GlobalMemory(reporter)
    placed = [_place(memory, x, f"args[{i}]") for i, x in enumerate(args)]
    total = math.prod(extent)
    width = -(-math.prod(each) // LANES) * LANES
    batch = max(1, min(_THREADS // width, _SHARED // max(shared, 1)))
    for first in range(0, total, batch):
        blocks = range(first, min(first + batch, total))
        reporter.first_block = first
        t = Threads(
            grid=extent, block=each, blocks=blocks, target=target, memory=memory, shared=shared, reporter=reporter,
            costs=costs, engine=engine, threads=None if threads is None else int(threads),
        )  # fmt: skip
        given = [_argument(t, kind, value) for kind, value in placed]
        try:
            kernel(t, *given)
        except (WarpmmaError, HazardWarning) as error:
            end_outside(error)  # at the kernel's line
            raise
        if progress:
            progress(blocks.stop, total)
    return Launch(reporter.found, costs)


def _check_calls(kernel: object, args: object, threads: object, progress: object) -> None:
    if not callable(kernel):
        raise OperandError(f"kernel is {type(kernel).__name__}; expected a function of threads and arguments")
    if not isinstance(args, list | tuple):
        raise OperandError(f"args is {type(args).__name__}; expected a list or tuple of the kernel's arguments")
    if threads is not None and not (is_integer(threads) and threads > 0):
        raise OperandError(f"threads is {shown(threads)}; expected a positive integer or None")
    if progress is not None and not callable(progress):
        raise OperandError(f"progress is {shown(progress)}; expected a function of two integers or None")


def _extent(name: Literal["grid", "block"], given: int | Sequence[int], target: Target) -> tuple[int, int, int]:
    """Check the size of a grid or block against what its target has."""
    sizes = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not 1 <= len(sizes) <= 3 or not all(is_integer(n) and n > 0 for n in sizes):
        raise OperandError(f"{name} is {shown(given)}; expected one to three positive integers")
    x, y, z = (int(n) for n in (*sizes, 1, 1)[:3])
    for axis, n, most in zip("xyz", (x, y, z), getattr(target, name), strict=True):
        if n > most:
            raise OperandError(
                f"{name} is {shown(given)}: {shown(n)} along {axis}; on {target} expected {most} at most"
            )
    if name == "block" and x * y * z > target.threads_per_block:
        raise OperandError(f"block is {shown(given)}: {x * y * z} threads; expected {target.threads_per_block} at most")
    return x, y, z


def _shared(given: object, target: Target) -> int:
    most = target.shared_per_block
    if not is_integer(given) or not 0 <= given <= most:
        raise OperandError(f"shared is {shown(given)}; on {target} expected a number of bytes, {most} at most")
    return int(given)


def _place(memory: GlobalMemory, argument: Any, name: str) -> tuple[str, Any]:
    """Return the class of register that an argument becomes, "" for none, and what it holds."""
    if isinstance(argument, Output):
        return "b64", memory.add(argument.array, name, written=False)
    if isinstance(argument, np.ndarray):
        return "b64", memory.add(argument, name)
    if is_integer(argument):
        return "b32", literal(argument, "b32", "b32", name)
    if isinstance(argument, float | np.floating):
        return "b32", literal(argument, "f32", "b32", name)
    if isinstance(argument, np.timedelta64 | np.datetime64 | np.complexfloating | np.void):
        raise OperandError(f"{name} is a {type(argument).__name__}; expected an integer, a float or an array")
    return "", argument


def _argument(t: Threads, kind: str, bits: Any) -> Register | Any:
    return t.constant(bits, kind) if kind else bits
