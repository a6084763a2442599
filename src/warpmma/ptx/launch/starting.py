"""Launching an entry of a PTX module: a grid of blocks, in batches, and a report at the end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..._arguments import is_integer
from ..._progress import Progressing, Watched
from ...arithmetic import Engine, resolve
from ...errors import LimitError, OperandError, PtxError, TargetError, WarpmmaError, shown
from ...isa import TARGETS, check_known
from ...machine import (
    Batch,
    Costs,
    Device,
    DeviceArray,
    GlobalMemory,
    Grid,
    HazardError,
    HazardWarning,
    History,
    Launch,
    Limit,
    Policy,
    Reporter,
    Site,
    Watch,
    Watching,
    retyped,
    run_program,
)
from ..lower import Linked, workspace
from ..text import Function, Module, cluster_size
from .arguments import ArgumentError, parameter_bytes
from .device_functions import DeviceFunctions


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a launch asks for: see `PtxEntry.launch`."""

    grid: int | Sequence[int]
    block: int | Sequence[int]
    args: Sequence[Any]
    names: Sequence[str]
    shared: int
    hazards: Policy | Mapping[str, Policy]
    engine: Engine
    threads: int | None
    resident: int | None
    limit: Limit | None
    seed: int
    progress: Watched
    watch: Watch | None
    index_name: str


def check_device(module: Module, device: object) -> Device:
    """Return a device on which a module runs; raise `TargetError` for one that is older than the module's target."""
    if not isinstance(device, Device):
        raise OperandError(f"device is {shown(device)}; expected a warpmma.Device, such as warpmma.Device('sm_90')")
    fitting_target(module, device.target)
    return device


def own_target(module: Module) -> str:
    """Return the first target that is known and takes a module: its own, or the oldest; `TargetError` for none."""
    oldest = min(TARGETS.values(), key=lambda x: x.number)
    if int(module.target.removeprefix("sm_").rstrip("af")) < oldest.number:
        return oldest.name
    try:
        check_known(module.target)
    except TargetError as error:
        raise TargetError(f"{module.place(module.targeted)}: {error}") from None
    return module.target


def fitting_target(module: Module, target: str) -> None:
    """Raise `TargetError` where PTX of a module's target does not run on a target.

    PTX of a plain target runs on all later ones, that of a family ("f") within it, that of one target ("a") there.
    """
    wants, has = module.target, TARGETS[target]
    number, features = int(wants.removeprefix("sm_").rstrip("af")), wants[len(wants.rstrip("af")) :]
    family = number // 10 == has.number // 10 and bool(has.features)
    fits = wants == has.name if features == "a" else number <= has.number and (family or not features)
    if not fits:
        raise TargetError(
            f"{module.place(module.targeted)}: this is PTX for {wants}, which {target} does not take; compile it for "
            f"{target} or an earlier target (nvcc -arch), or run it on a device of {wants}"
        )


def launch_entry(module: Module, linked: Linked, device: Device, request: Request) -> Launch:
    """Run an entry; what can be wrong is checked first."""
    __tracebackhide__ = True
    function = module.functions[linked.program.name]
    resolve(request.engine)
    _check(request, device)
    tell = Progressing(request.progress, "blocks")
    if linked.problems:
        raise _first(linked.problems)
    extent = _extent(module, linked, device, request)
    reporter, costs, history = Reporter(request.hazards), Costs(), History()
    reporter.extends(extent.blocks, request.index_name)
    memory, functions = GlobalMemory(reporter, device.space), DeviceFunctions()
    limit = Limit() if request.limit is None else request.limit
    watching = None if request.watch is None else Watching(request.watch)
    workers = None if request.threads is None else int(request.threads)
    try:
        tell.begin(extent.total)
        data = _parameters(module, function, request, memory)
        memory.parameters(data)
        resident = request.resident
        if linked.cooperates:
            data, resident = data + workspace(memory), resident or extent.total
        for blocks in _batches(extent, resident):
            batch = Batch(
                blocks=blocks, threads=extent.threads_per_block, target=device.target, memory=memory,
                shared=extent.shared, reporter=reporter, costs=costs, history=history, engine=request.engine,
                workers=workers, seed=request.seed, poison_travels=True, watching=watching,
            )  # fmt: skip
            batch.shared.declare(linked.shared.placed(request.shared))
            run_program(batch, linked.launched, extent, limit=limit, provided=functions.provided, parameters=data)
            functions.flush()
            tell(blocks.stop, extent.total)
        site = Site(module.name, function.position.line, "launch", column=function.position.column)
        for name in memory.unwritten():
            reporter.report_launch("unwritten", site, f"{name} is an Output, and no thread wrote any of it")
        return _report(reporter, costs, memory, functions, linked, watching)
    except (WarpmmaError, HazardWarning) as error:
        if linked.shared.has_dynamic and isinstance(error, HazardError) and "shared memory" in error.hazard.detail:
            error.add_note(_about_shared(request, linked))
        if isinstance(error, LimitError):
            functions.flush()
            error.report = _report(reporter, costs, memory, functions, linked, watching)
        raise
    finally:
        functions.flush()  # what was printed before an error
        memory.end()
        tell.close()


def _about_shared(request: Request, linked: Linked) -> str:
    return (
        f"shared memory of {linked.program.name}: {linked.shared.static} bytes that it declares, and "
        f"{request.shared} that the launch gave it by shared={request.shared}"
    )


def _report(
    reporter: Reporter, costs: Costs, memory: GlobalMemory, functions: DeviceFunctions, linked: Linked,
    watching: Watching | None,
) -> Launch:  # fmt: skip
    return Launch(
        reporter.found, costs, MappingProxyType(dict(reporter.counts)),
        MappingProxyType(dict(reporter.lines["order"])), "".join(functions.printed), reporter.comparisons.differing,
        linked.undecided, () if watching is None else tuple(watching.kept),
        retyped=retyped(memory, linked.program.steps), joined=MappingProxyType(dict(reporter.joined)),
    )  # fmt: skip


def _first(problems: Sequence[PtxError]) -> PtxError:
    """Make the error of the first problem anew: programs are kept, and so are their problems."""
    error = copy(problems[0]).with_traceback(None)
    if len(problems) > 1:
        error.add_note(f"and {len(problems) - 1} more lines that are not simulated: `warpmma ptx check` lists them")
    return error


def _check(request: Request, device: Device) -> None:
    if not isinstance(request.args, list | tuple):
        what = "a list or tuple of the entry's arguments, or a mapping by their names"
        raise OperandError(f"args is {type(request.args).__name__}; expected {what}")
    for i, x in enumerate(request.args):
        if isinstance(x, DeviceArray) and x.device is not device:
            raise OperandError(f"args[{i}] is {x!r}, an array of another device than {device!r}")
    for name in ("threads", "resident"):
        value = getattr(request, name)
        if value is not None and not (is_integer(value) and value > 0):
            raise OperandError(f"{name} is {shown(value)}; expected a positive integer or None")
    if not is_integer(request.seed) or request.seed < 0:
        raise OperandError(f"seed is {shown(request.seed)}; expected an integer from 0 on")


def _parameters(module: Module, function: Function, request: Request, memory: GlobalMemory) -> bytes:
    try:
        return parameter_bytes(function, request.args, memory, request.names)
    except ArgumentError as error:
        raise ArgumentError(f"{module.place(error.position)}: {error}", error.position) from None


def _extent(module: Module, linked: Linked, device: Device, request: Request) -> Grid:
    """Check the grid against the device, and what the entry says of it; return the grid with all shared memory."""
    function = module.functions[linked.program.name]
    limits, shared, declared = TARGETS[device.target], request.shared, module.place(function.position)
    if (static := linked.shared.static) > (room := limits.shared_per_block):
        says = f"{function.name} declares {static} bytes of shared memory; a block has {room} on {device.target}"
        raise module.error(says, function.position)
    given = Grid.checked(request.grid, request.block, 0, device.target)
    most = room - static
    if not is_integer(shared) or not 0 <= shared <= most:
        raise OperandError(
            f"{declared}: shared is {shown(shared)}; on {device.target} expected a number of bytes, {most} at most "
            f"beyond the {static} that {function.name} declares"
        )
    for name, says in (("maxntid", "at most"), ("reqntid", "exactly")):
        if (wanted := function.directives.get(name)) is None:
            continue
        sizes = (*wanted, 1, 1)[:3]
        bad = given.threads != sizes if name == "reqntid" else given.threads_per_block > math.prod(sizes)
        if bad:
            raise OperandError(
                f"{declared}: block is {shown(request.block)}; {function.name} declares .{name} "
                f"{', '.join(map(str, wanted))}: {says} {math.prod(sizes)} threads"
            )
    size = linked.shared.size(int(shared))
    return Grid(given.blocks, given.threads, size, clustered=cluster_size(function.directives) is not None)


def _batches(extent: Grid, resident: int | None) -> Any:
    if resident is None:
        return extent.batches()
    return (range(at, min(at + resident, extent.total)) for at in range(0, extent.total, resident))
