"""Programs: an entry and all functions that it can reach, one behind the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from ...errors import PtxError
from ...machine import (
    Branch,
    BranchTable,
    Callee,
    Constant,
    InstructionStep,
    Program,
    Site,
    dead_slots,
    early_stores,
    loads_in_flight,
    product_registers,
)
from ...operations import Hint
from ..contraction import contracted
from ..folding import compared, folded
from ..storage import (
    EntryPlaces,
    ModuleMemory,
    Reach,
    SharedVariables,
    Slots,
    function_addresses,
    local_variables,
    reach,
)
from ..text import Module, registers_at_launch
from .cooperation import cooperates, with_workspace
from .entry_parameters import EntryParameters
from .legacy_syntax import modernized
from .lowering import AnyStep, Body, lower, site_of

MOST_PARAMETERS = 32_764
"""Bytes of parameters that an entry takes, from sm_70 on (PTX ISA 9.1, 4.4.4 and 5.1.6.2)."""

MOST_LOCAL = 512 << 10
"""Bytes of local memory of a thread (CUDA C++ Programming Guide 13, 5.1)."""


@dataclass(frozen=True)
class Linked:
    """An entry, ready to be launched on a device."""

    program: Program
    parameters: int  # bytes
    shared: SharedVariables
    reach: Reach
    problems: tuple[PtxError, ...]  # lines that are not simulated
    undecided: tuple[Site, ...] = ()  # what ptxas may fuse or not, and what it may compute or not

    @cached_property
    def cooperates(self) -> bool:
        """Whether blocks of the grid synchronize: launches add a workspace, whose address follows the parameters."""
        return cooperates(self.program)

    @cached_property
    def launched(self) -> Program:
        """The program as launches run it, with the last reads of registers, which a check does not need."""
        program = with_workspace(self.program, self.parameters) if self.cooperates else self.program
        return replace(
            program,
            dead_slots=dead_slots(program),
            in_flight=loads_in_flight(program),
            early_stores=early_stores(program),
            products=product_registers(program),
        )


def link(module: Module, entry: str, memory: ModuleMemory, target: str, *, contract: bool = True) -> Linked:
    """Lower an entry and what it can reach for a device; `contract` says whether to fuse where ptxas fuses."""
    found = reach(module, entry)
    memory.place(found.functions)
    shared, slots, addresses = SharedVariables.of(module, found), Slots(), function_addresses(module)
    head = module.functions[entry]
    parameters = EntryParameters(head)
    local, start = local_variables(module, found)
    at_entry = {(entry, 0, x): at for x, (at, _) in parameters.places.items()}
    places = EntryPlaces(memory, shared, addresses, at_entry, local)
    steps: list[AnyStep] = []
    callees: dict[str, Callee] = {}
    problems: list[PtxError] = []
    undecided: list[Site] = []
    frame = 0
    recursive = found.recursive
    if parameters.size > MOST_PARAMETERS:
        text = f"{parameters.size} bytes of parameters; there are {MOST_PARAMETERS}"
        problems.append(module.error(text, head.position))
    for name in found.functions:
        first, before = len(steps), len(slots.kinds)
        constants = folded(modernized(module, module.functions[name]))
        function = constants.function
        undecided += (site_of(module, one) for one in constants.open)
        if contract:
            fused = contracted(function, target)
            function = fused.function
            undecided += (site_of(module, one) for one in fused.open)
        function = compared(function, constants.open)
        body = lower(module, function, slots, places, target, start if name == entry else 0)
        steps += [_moved(step, first) for step in body.steps]
        problems += body.problems
        if body.frame.size > MOST_LOCAL:
            what = f"{body.frame.size} bytes of local memory in one function; a thread has {MOST_LOCAL}"
            problems.append(module.error(what, function.position))
        if name == entry:
            frame = body.frame.size
        else:
            registers = range(before, len(slots.kinds))
            callees[name] = _callee(name, body, first, addresses[name], registers, name in recursive)
    program = Program(
        name=entry, steps=tuple(steps), registers=tuple(slots.kinds), names=tuple(slots.names), callees=callees,
        frame=frame, shared=(*(place for _, place in shared.variables), range(shared.dynamic, shared.dynamic)),
        registers_at_launch=_registers(steps, head.directives), checked=True,
    )  # fmt: skip
    return Linked(program, parameters.size, shared, found, tuple(problems), tuple(undecided))


def _registers(steps: Sequence[AnyStep], directives: Mapping[str, tuple[int, ...]]) -> int:
    """Return the registers that a thread begins with, where `setmaxnreg` changes them."""
    set_ = [(x.row.limits, x) for x in steps if isinstance(x, InstructionStep) and isinstance(x.row, Hint)]
    raised = [cast(Constant, x.operands[0]).bits for limits, x in set_ if limits == "inc"]
    return registers_at_launch(directives, raised) if any(limits for limits, _ in set_) else 0


def _callee(name: str, body: Body, first: int, address: int, slots: range, recursive: bool) -> Callee:
    return Callee(
        name=name, first=first, address=address, parameters=body.frame.parameters, results=body.frame.results,
        slots=slots, recursive=recursive, frame=body.frame.size,
    )  # fmt: skip


def _moved(step: AnyStep, first: int) -> AnyStep:
    """Return a step whose branches lead to places of the program."""
    if isinstance(step, Branch):
        return replace(step, to=step.to + first)
    if isinstance(step, BranchTable):
        return replace(step, to=tuple(to + first for to in step.to))
    return step
