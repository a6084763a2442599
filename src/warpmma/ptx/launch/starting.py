"""Launching an entry of a PTX module: which device takes it, its grid, and what it runs on a batch of blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from ..._arguments import is_integer
from ...errors import OperandError, PtxError, TargetError, shown
from ...isa import TARGETS, check_known
from ...machine import Batch, Device, GlobalMemory, Grid, HazardError, Limit, ProgramWork, Site
from ..lower import Linked, workspace
from ..text import Module, cluster_size
from .device_functions import DeviceFunctions


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


class EntryWork(ProgramWork):
    """An entry with its arguments.

    Parameters
    ----------
    module : Module
    linked : Linked
    grid : Grid
    encode : callable
        Returns the bytes of its parameters, and places in memory what they point to.
    shared : int
        Bytes of dynamic shared memory.
    index_name : str
    """

    def __init__(
        self, module: Module, linked: Linked, grid: Grid, encode: Callable[[GlobalMemory], bytes], shared: int,
        index_name: str,
    ) -> None:  # fmt: skip
        at = module.functions[linked.program.name].position
        self._functions = DeviceFunctions()
        super().__init__(
            linked.launched, grid, b"", Site(module.name, at.line, "launch", column=at.column),
            self._functions.provided,
        )  # fmt: skip
        self._linked, self._encode, self._shared, self.index_name = linked, encode, shared, index_name

    def place(self, memory: GlobalMemory) -> None:
        """Encode the arguments; blocks that meet read the address of their workspace behind them."""
        self.parameters = self._encode(memory)
        super().place(memory)
        if self._linked.cooperates:
            self.parameters += workspace(memory)

    def run(self, batch: Batch, limit: Limit) -> None:
        """Run the entry on one batch, and print what it printed."""
        shared = self._linked.shared
        batch.shared.declare(shared.placed(self._shared))
        try:
            super().run(batch, limit)
        except HazardError as error:
            if shared.has_dynamic and "shared memory" in error.hazard.detail:
                error.add_note(
                    f"shared memory of {self.program.name}: {shared.static} bytes that it declares, and {self._shared} "
                    f"that the launch gave it by shared={self._shared}"
                )
            raise
        finally:
            self._functions.flush()  # what was printed before an error, too

    def findings(self, memory: GlobalMemory) -> dict[str, Any]:
        """Return what PTX text adds to the report."""
        printed = "".join(self._functions.printed)
        return {**super().findings(memory), "printed": printed, "undecided": self._linked.undecided}


def first_problem(problems: Sequence[PtxError]) -> PtxError:
    """Make the error of the first problem anew: programs are kept, and so are their problems."""
    error = copy(problems[0]).with_traceback(None)
    if len(problems) > 1:
        error.add_note(f"and {len(problems) - 1} more lines that are not simulated: `warpmma ptx check` lists them")
    return error


def entry_grid(
    module: Module, linked: Linked, target: str, grid: int | Sequence[int], block: int | Sequence[int], shared: int,
    cluster: int | Sequence[int] | None, cooperative: bool,
) -> Grid:  # fmt: skip
    """Check the grid against the target, and what the entry says of it; return the grid with all shared memory."""
    function = module.functions[linked.program.name]
    limits, declared = TARGETS[target], module.place(function.position)
    if (static := linked.shared.static) > (room := limits.shared_per_block):
        says = f"{function.name} declares {static} bytes of shared memory; a block has {room} on {target}"
        raise module.error(says, function.position)
    given = Grid.checked(grid, block, 0, target, cluster=cluster, cooperative=cooperative)
    most = room - static
    if not is_integer(shared) or not 0 <= shared <= most:
        raise OperandError(
            f"{declared}: shared is {shown(shared)}; on {target} expected a number of bytes, {most} at most "
            f"beyond the {static} that {function.name} declares"
        )
    for name, says in (("maxntid", "at most"), ("reqntid", "exactly")):
        if (wanted := function.directives.get(name)) is None:
            continue
        sizes = (*wanted, 1, 1)[:3]
        bad = given.threads != sizes if name == "reqntid" else given.threads_per_block > math.prod(sizes)
        if bad:
            raise OperandError(
                f"{declared}: block is {shown(block)}; {function.name} declares .{name} "
                f"{', '.join(map(str, wanted))}: {says} {math.prod(sizes)} threads"
            )
    size = linked.shared.size(int(shared))
    if cluster is None and cluster_size(function.directives) is not None:
        given = replace(given, cluster=(1, 1, 1))
    return replace(given, shared=size, cooperative=given.cooperative or linked.cooperates)
