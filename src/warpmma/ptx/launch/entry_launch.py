"""Launching an entry of a PTX module: which device takes it, its grid, and what it runs on a batch of blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

from ..._arguments import is_integer
from ...errors import OperandError, TargetError, shown
from ...isa import TARGETS, check_known
from ...machine import (
    Batch,
    Device,
    GlobalMemory,
    Grid,
    HazardError,
    Limit,
    ProgramWork,
    Site,
    float_sites,
    plain_sizes,
    sizes_of,
)
from ..lower import Linked, workspace
from ..text import Module, cluster_problem, cluster_size
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


_MOST_GRIDS = 64
"""Grids of an entry that are kept."""


class PreparedEntry:
    """An entry on a device: what all of its launches there have in common.

    Parameters
    ----------
    module : Module
    linked : Linked
    target : str
        Of the device.
    """

    def __init__(self, module: Module, linked: Linked, target: str) -> None:
        self.module, self.linked, self.target = module, linked, target
        self.function = module.functions[linked.program.name]
        self._grids: dict[tuple[Any, ...], Grid] = {}
        self._sizes = [
            (name, says, (*self.function.directives[name], 1, 1)[:3])
            for name, says in (("maxntid", "at most"), ("reqntid", "exactly"))
            if name in self.function.directives
        ]

    @cached_property
    def float_sites(self) -> dict[int, str]:
        """As of `machine.float_sites`."""
        return float_sites(self.linked.program.steps)

    def check(self) -> None:
        """Raise the error of the first line that is not simulated: a copy, since problems are kept."""
        if problems := self.linked.problems:
            error = copy(problems[0]).with_traceback(None)
            if more := len(problems) - 1:
                error.add_note(f"and {more} more lines that are not simulated: `warpmma ptx check` lists them")
            raise error

    def grid(
        self, grid: int | Sequence[int], block: int | Sequence[int], shared: int,
        cluster: int | Sequence[int] | None, cooperative: bool,
    ) -> Grid:  # fmt: skip
        """Check the grid against the target and the entry's directives; return it with all shared memory."""
        whole = type(grid) is int or (type(grid) is tuple and {*map(type, grid)} == {int})
        if not (whole and type(block) is type(shared) is int and cluster is None and cooperative is False):
            return self._grid(grid, block, shared, cluster, cooperative)
        if (found := self._grids.get((grid, block, shared))) is None:  # plain integers are what they are equal to
            if len(self._grids) >= _MOST_GRIDS:
                self._grids.clear()
            found = self._grids[grid, block, shared] = self._grid(grid, block, shared, cluster, cooperative)
        return found

    def _grid(
        self, grid: int | Sequence[int], block: int | Sequence[int], shared: int,
        cluster: int | Sequence[int] | None, cooperative: bool,
    ) -> Grid:  # fmt: skip
        function, target = self.function, self.target
        static, room = self.linked.shared.static, TARGETS[target].shared_per_block
        if static > room:
            says = f"{function.name} declares {static} bytes of shared memory; a block has {room} on {target}"
            raise self.module.error(says, function.position)
        given = Grid.checked(grid, block, 0, target, cooperative=cooperative)
        given = self._in_clusters(given, None if cluster is None else sizes_of("cluster", cluster))
        if not is_integer(shared) or not 0 <= shared <= room - static:
            raise self._refused(
                f"shared is {shown(shared)}; on {target} expected a number of bytes, {room - static} at most beyond "
                f"the {static} that {function.name} declares"
            )
        for name, says, sizes in self._sizes:
            if given.threads != sizes if name == "reqntid" else given.threads_per_block > math.prod(sizes):
                wanted = ", ".join(map(str, function.directives[name]))
                raise self._refused(
                    f"block is {shown(block)}; {function.name} declares .{name} {wanted}: {says} "
                    f"{math.prod(sizes)} threads"
                )
        return Grid(
            given.blocks, given.threads, self.linked.shared.size(int(shared)), given.cluster,
            given.cooperative or self.linked.cooperates,
        )  # fmt: skip

    def _in_clusters(self, grid: Grid, given: tuple[int, int, int] | None) -> Grid:
        """Return a grid with the clusters that the launch gives or the entry declares (rule 2 of `directives`)."""
        directives = self.function.directives
        if says := cluster_problem(directives, given):
            wanted = "no cluster is given" if given is None else f"cluster is {plain_sizes(given)}"
            raise self._refused(f"{wanted}; {self.function.name} {says}")
        sizes = given or cluster_size(directives)
        if sizes is None:
            return grid
        if "blocksareclusters" in directives:
            x, y, z = (n * by for n, by in zip(grid.blocks, sizes, strict=True))
            grid = replace(grid, blocks=(x, y, z))
        try:
            return grid.in_clusters(sizes, self.target)
        except OperandError as error:
            raise self._refused(str(error)) from None

    def _refused(self, says: str) -> OperandError:
        return OperandError(f"{self.module.place(self.function.position)}: {says}")


class EntryWork(ProgramWork):
    """An entry with its arguments.

    Parameters
    ----------
    prepared : PreparedEntry
    grid : Grid
    encode : callable
        Returns the bytes of its parameters, and places in memory what they point to.
    shared : int
        Bytes of dynamic shared memory.
    index_name : str
    """

    def __init__(
        self, prepared: PreparedEntry, grid: Grid, encode: Callable[[GlobalMemory], bytes], shared: int, index_name: str
    ) -> None:
        self._functions = DeviceFunctions()
        super().__init__(prepared.linked.launched, grid, b"", self._functions.runtime_calls)
        self._prepared, self._encode, self._shared, self.index_name = prepared, encode, shared, index_name

    @property
    def site(self) -> Site:
        """The entry's line."""
        at = self._prepared.function.position
        return Site(self._prepared.module.name, at.line, "launch", column=at.column)

    @property
    def float_sites(self) -> dict[int, str]:
        """As of the entry."""
        return self._prepared.float_sites

    def place(self, memory: GlobalMemory) -> None:
        """Encode the arguments; blocks that meet read the address of their workspace behind them."""
        self.parameters = self._encode(memory)
        super().place(memory)
        if self._prepared.linked.cooperates:
            self.parameters += workspace(memory)

    def begin_again(self) -> None:
        """Forget what was printed."""
        self._functions.begin_again()

    def run(self, batch: Batch, limit: Limit) -> None:
        """Run the entry on one batch, and print what it printed."""
        shared = self._prepared.linked.shared
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
        return {**super().findings(memory), "printed": printed, "undecided": self._prepared.linked.undecided}
