"""Launching a kernel: a grid of blocks, in batches, and a report at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import is_integer
from .._engines import Engine, resolve
from .._tasks import Progress
from ..errors import OperandError
from ..instructions import check_known
from ..registers import LANES
from . import report
from .costs import Costs
from .hazards import Hazard, Policy, Reporter, Site
from .memory import GlobalMemory
from .registers import Register
from .threads import Threads

__all__ = ["Launch", "Output", "launch"]

Array = npt.NDArray[Any]

# Threads that go through a kernel together, and bytes of shared memory of theirs: enough to hide the cost of a NumPy
# call, few enough that their registers stay in cache and that progress can be seen.
_THREADS, _SHARED = 1 << 15, 1 << 25
_MOST_THREADS = 1024
_MOST_SHARED = 227 * 1024  # of the targets that have most, sm_90 and sm_100


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
        Blocks of the grid; threads of a block, 1024 at most.
    args : sequence
        Arrays are placed in global memory, and the kernel gets their address (a 64-bit register); it writes them in
        place. `Output(array)` is one that holds nothing yet. Integers become 32-bit registers, floats f32, as if they
        were parameters of a real kernel; everything else is passed on as it is. Numbers that the kernel loops over or
        branches on in Python are none of these: bind them, `functools.partial(kernel, tiles=4)`.
    target : str
    shared : int
        Bytes of shared memory of a block.
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
    check_known(target)
    resolve(engine)
    _check_calls(kernel, args, threads, progress)
    extent, each = _extent("grid", grid), _extent("block", block)
    if math.prod(each) > _MOST_THREADS:
        raise OperandError(f"block is {block}: {math.prod(each)} threads; expected {_MOST_THREADS} at most")
    if not is_integer(shared) or not 0 <= shared <= _MOST_SHARED:
        raise OperandError(f"shared is {shared!r}; expected a number of bytes, {_MOST_SHARED} at most")
    reporter, costs = Reporter(hazards), Costs()
    memory = GlobalMemory(reporter)
    placed = [_place(memory, x) for x in args]
    total = math.prod(extent)
    width = -(-math.prod(each) // LANES) * LANES
    batch = max(1, min(_THREADS // width, _SHARED // max(shared, 1)))
    for first in range(0, total, batch):
        blocks = range(first, min(first + batch, total))
        reporter.first_block = first
        t = Threads(
            grid=extent, block=each, blocks=blocks, target=target, memory=memory, shared=shared, reporter=reporter,
            costs=costs, engine=engine, threads=threads,
        )  # fmt: skip
        kernel(t, *(_argument(t, kind, value) for kind, value in placed))
        if progress:
            progress(blocks.stop, total)
    return Launch(reporter.found, costs)


def _check_calls(kernel: object, args: object, threads: object, progress: object) -> None:
    if not callable(kernel):
        raise OperandError(f"kernel is {type(kernel).__name__}; expected a function of threads and arguments")
    if not isinstance(args, list | tuple):
        raise OperandError(f"args is {type(args).__name__}; expected a list or tuple of the kernel's arguments")
    if threads is not None and not (is_integer(threads) and threads > 0):  # type: ignore[operator]
        raise OperandError(f"threads is {threads!r}; expected a positive integer or None")
    if progress is not None and not callable(progress):
        raise OperandError(f"progress is {progress!r}; expected a function of two integers or None")


def _extent(name: str, given: int | Sequence[int]) -> tuple[int, int, int]:
    sizes: tuple[Any, ...] = (given,)
    if isinstance(given, Sequence):
        sizes = tuple(given)
    if not 1 <= len(sizes) <= 3 or not all(is_integer(n) and 0 < n < 1 << 31 for n in sizes):
        raise OperandError(f"{name} is {given!r}; expected one to three positive integers")
    x, y, z = (*sizes, 1, 1)[:3]
    return int(x), int(y), int(z)


def _place(memory: GlobalMemory, argument: Any) -> tuple[str, Any]:
    if isinstance(argument, Output):
        return "b64", memory.add(argument.array, written=False)
    if isinstance(argument, np.ndarray):
        return "b64", memory.add(argument)
    if is_integer(argument) or isinstance(argument, float | np.floating):
        return "b32", argument
    return "", argument


def _argument(t: Threads, kind: str, value: Any) -> Register | Any:
    return t.constant(value, kind) if kind else value
