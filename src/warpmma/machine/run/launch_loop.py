"""The launch loop: one for every front end.

The rules:

1. A launch is a grid of blocks, what one batch of them runs (`Work`), parameter bytes and memory by address. What a
   front end places for the launch alone is removed when the launch ends, however it ends.
2. Blocks run in batches, in the order of their numbers. The blocks of a batch are resident together and may wait for
   each other: all blocks of a cooperative launch, unless `resident` says how many; always whole clusters.
3. A launch of a program that has late writes (`order.late_writes`) is undone and runs once more: memory, costs, counts,
   limits, progress, what is watched and what is printed begin again, and nothing is warned of or printed twice.
4. All batches share one report. A launch that reaches its limit has the report of what ran until then in its error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from operator import is_
from types import MappingProxyType
from typing import Any

from ..._arguments import is_integer, members
from ..._progress import Progressing, Watched
from ..._records import Shown
from ...arithmetic import Engine, resolve
from ...errors import LimitError, OperandError, shown
from ..base import Site
from ..block import Batch, Grid
from ..memory import Device, GlobalMemory, Undoing, float_sites, retyped
from ..order import LateWrites
from ..program import Program
from ..report import Costs, Policy, Reporter, Watch, Watching
from ..sync import TimelineRecorder
from .calling import RuntimeCall
from .executor import Limit, run_program
from .outcome import Launch


@dataclass(frozen=True, kw_only=True)
class LaunchOptions(Shown):
    """Options of a launch, for all front ends. Only `resident` and `seed` can change a result.

    Attributes
    ----------
    hazards : "error", "strict", "warn", "count", "off" or mapping of str to "error", "warn" or "count"
        What to do about hazards, or about kinds of them; "strict" is "error" without rule 5 of `hazards`.
    engine : str
        Of `mma`.
    threads : int or None
        Host threads that share one execution of `mma`.
    resident : int or None
        Blocks of a batch, in whole clusters; a number that fits the grid if None.
    limit : int, Limit or None
        Instructions of warps, or a `Limit`.
    seed : int
        Selects an order where CUDA leaves it open.
    progress : bool, callable or None
    watch : Watch or None
    timeline : bool or sequence of int
        Whether a timeline is recorded: of the first cluster, or of the blocks with these numbers in the grid.

    Raises
    ------
    OperandError
        A value of another type, or out of range.
    """

    hazards: Policy | Mapping[str, Policy] = "error"
    engine: Engine = "auto"
    threads: int | None = None
    resident: int | None = None
    limit: int | Limit | None = None
    seed: int = 0
    progress: Watched = None
    watch: Watch | None = None
    timeline: bool | Sequence[int] = False

    @classmethod
    def given(cls, **options: Any) -> LaunchOptions:
        """Return options as a caller gives them: the default ones are made and checked once."""
        if all(map(is_, map(_DEFAULTS.get, options), options.values())):
            return _DEFAULT
        return cls(**options)

    def __post_init__(self) -> None:
        resolve(self.engine)
        for name in ("threads", "resident"):
            value = getattr(self, name)
            if value is not None and not (is_integer(value) and value > 0):
                raise OperandError(f"{name} is {shown(value)}; expected a positive integer or None")
        if not isinstance(self.timeline, bool):
            numbers = members(self.timeline, _MOST_BLOCKS)
            if not numbers or not all(is_integer(x) and x >= 0 for x in numbers):
                raise OperandError(
                    f"timeline is {shown(self.timeline)}; expected True, or numbers of blocks such as [0, 5]"
                )
            object.__setattr__(self, "timeline", tuple(int(x) for x in numbers))
        if not is_integer(self.seed) or self.seed < 0:
            raise OperandError(f"seed is {shown(self.seed)}; expected an integer from 0 on")
        if self.limit is not None and not isinstance(self.limit, Limit):
            object.__setattr__(self, "limit", Limit(instructions=self.limit))


class Work:
    """What a launch runs: the base class of front ends.

    Attributes
    ----------
    index_name : str
        What the front end's language calls the index of a block.
    poison_travels : bool
        As of `Batch`.
    """

    index_name = "blockIdx"
    poison_travels = False

    @property
    def site(self) -> Site:
        """Where hazards of the launch as a whole are reported."""
        raise NotImplementedError

    def place(self, memory: GlobalMemory) -> None:
        """Place global memory that only this launch uses, and the parameters."""

    def run(self, batch: Batch, limit: Limit) -> None:
        """Run one batch to its end."""
        raise NotImplementedError

    def findings(self, memory: GlobalMemory) -> dict[str, Any]:
        """Return fields of the report that only this front end knows."""
        return {}

    def begin_again(self) -> None:
        """Forget what was run: the launch was undone, and runs once more."""


class ProgramWork(Work):
    """A program with the bytes of its parameters."""

    poison_travels = True

    def __init__(
        self,
        program: Program,
        grid: Grid,
        parameters: bytes,
        runtime_calls: Mapping[str, RuntimeCall] = MappingProxyType({}),
    ) -> None:
        self.program, self.grid, self.parameters, self.runtime_calls = program, grid, parameters, runtime_calls

    @property
    def site(self) -> Site:
        """The program, without a line."""
        return Site(self.program.name, 0, "launch")

    @property
    def float_sites(self) -> Mapping[int, str]:
        """As of `float_sites`."""
        return float_sites(self.program.steps)

    def place(self, memory: GlobalMemory) -> None:
        """Place the parameters."""
        memory.parameters(self.parameters)

    def run(self, batch: Batch, limit: Limit) -> None:
        """Run the program on one batch."""
        run_program(
            batch, self.program, self.grid, limit=limit, runtime_calls=self.runtime_calls, parameters=self.parameters
        )

    def findings(self, memory: GlobalMemory) -> dict[str, Any]:
        """Return the arrays that it accessed as another type."""
        return {"retyped": retyped(memory, self.float_sites)}


def launch_program(
    program: Program, device: Device, grid: Grid, parameters: bytes = b"", options: LaunchOptions | None = None
) -> Launch:
    """Run a program on all blocks of a grid: a launch as bytes.

    Parameters
    ----------
    program : Program
    device : Device
        Its memory is all that the program finds, by address.
    grid : Grid
        `Grid.checked` makes one; its `shared` is all shared memory of a block, the program's variables included.
    parameters : bytes
        What the program's `Argument` operands read, by offset, and its loads from `.param`.
    options : LaunchOptions, optional

    Returns
    -------
    Launch

    Raises
    ------
    HazardError
        The first hazard.
    WarpmmaError
        Operands that do not fit, a limit that is reached.
    """
    return run_launch(ProgramWork(program, grid, parameters), device, grid, options)


def run_launch(work: Work, device: Device, grid: Grid, options: LaunchOptions | None = None) -> Launch:
    """Run what a front end prepared on all blocks of a grid, and report."""
    __tracebackhide__ = True
    options = _DEFAULT if options is None else options
    tell = Progressing(options.progress, "blocks")
    limit = options.limit if isinstance(options.limit, Limit) else Limit()
    used = limit.executed, limit.steps
    try:
        reporter = Reporter(options.hazards, program=work.poison_travels)
        reporter.late = LateWrites() if reporter.follows else None
        first = _run(work, device, grid, options, limit, tell, reporter)
        if not isinstance(first, Undoing):
            return first
        first.undo()
        work.begin_again()
        limit.executed, limit.steps = used
        again = Reporter(options.hazards, program=work.poison_travels)
        again.late, again.known, again.told = LateWrites(), reporter.late, reporter.told
        second = _run(work, device, grid, options, limit, tell, again)
        assert isinstance(second, Launch)
        return second
    finally:
        tell.close()


def _run(
    work: Work, device: Device, grid: Grid, options: LaunchOptions, limit: Limit, tell: Progressing, reporter: Reporter
) -> Launch | Undoing:
    """Run all blocks; return what undoes that where the launch has to run once more (rule 3)."""
    __tracebackhide__ = True
    costs = Costs()
    reporter.extends(grid.blocks, work.index_name, grid.linear if grid.ranks > 1 else None)
    memory = GlobalMemory(reporter, device.space)
    watching = None if options.watch is None else Watching(options.watch)
    timeline = _recorder(options, grid)
    workers = None if options.threads is None else int(options.threads)

    def report() -> Launch:
        return Launch(
            hazards=reporter.found, harmless=MappingProxyType(reporter.harmless), costs=costs,
            counts=MappingProxyType(dict(reporter.counts)), order=MappingProxyType(dict(reporter.order)),
            joined=MappingProxyType(dict(reporter.joined)), unpredicted=reporter.comparisons.differing,
            watched=() if watching is None else tuple(watching.kept),
            timeline=None if timeline is None else timeline.found(), **work.findings(memory),
        )  # fmt: skip

    try:
        tell.begin(grid.total)
        work.place(memory)
        for blocks in grid.batches(options.resident):
            batch = Batch(
                blocks=blocks, cluster=grid.ranks, clustered=grid.cluster is not None, threads=grid.threads_per_block,
                target=device.target, memory=memory,
                shared=grid.shared, reporter=reporter, costs=costs, history=reporter.history, engine=options.engine,
                workers=workers, seed=options.seed, poison_travels=work.poison_travels, watching=watching,
                timeline=timeline,
            )  # fmt: skip
            work.run(batch, limit)
            tell(blocks.stop, grid.total)
        if reporter.late and reporter.known is None and (undoing := memory.kept()) is not None:
            return undoing
        memory.report_left()
        for name in memory.unwritten():
            reporter.report_launch("unwritten", work.site, f"{name} is an Output, and no thread wrote any of it")
        return report()
    except LimitError as error:
        error.report = report()
        raise
    finally:
        memory.end()
        reporter.end()


def _recorder(options: LaunchOptions, grid: Grid) -> TimelineRecorder | None:
    """Return what records the timeline, if one is asked for."""
    if options.timeline is False:
        return None
    if isinstance(options.timeline, bool):
        return TimelineRecorder([grid.linear(x) for x in range(grid.ranks)] if grid.ranks > 1 else [0])
    if beyond := [x for x in options.timeline if x >= grid.total]:
        raise OperandError(f"timeline has block {beyond[0]}; the grid has {grid.total}, 0 to {grid.total - 1}")
    return TimelineRecorder(options.timeline)


_MOST_BLOCKS = 64
_DEFAULT = LaunchOptions()
_DEFAULTS = {field.name: field.default for field in fields(LaunchOptions)}
