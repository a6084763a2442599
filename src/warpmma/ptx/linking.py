"""Programs: an entry and all functions that it can reach, one behind the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import PtxError
from ..machine import Branch, BranchTable, Callee, Constant, Program, RowStep, Site, let_go
from .contraction import contracted
from .directives import cluster_problem
from .entry_parameters import Argument, EntryParameters
from .lowering import AnyStep, Body, lower, site_of
from .older_forms import modernised
from .reaching import Reach, reach
from .slots import Slots
from .symbols import EntryPlaces, ModuleMemory, SharedVariables, function_addresses, local_variables
from .syntax import Module

__all__ = ["Linked", "bound", "link"]

MOST_PARAMETERS = 32_764
"""Bytes of parameters that an entry takes, from sm_70 on (PTX ISA 9.1, 4.4.4 and 5.1.6.2)."""

MOST_LOCAL = 512 << 10
"""Bytes of local memory of a thread (CUDA C++ Programming Guide 13, 5.1)."""


@dataclass(frozen=True)
class Linked:
    """An entry, ready to be launched on a device.

    Attributes
    ----------
    program : Program
        Whose steps have an `Argument` where they read parameters.
    reading : tuple of int
        Places of these.
    parameters : int
        Bytes of them.
    shared : SharedVariables
    reach : Reach
    problems : tuple of PtxError
        What is not simulated.
    conditional : tuple of PtxError
        What is refused when it is executed, if its operands say what is not simulated.
    undecided : tuple of Site
        Sums of which it is not known what ptxas fuses them with, if with anything.
    """

    program: Program
    reading: tuple[int, ...]
    parameters: int
    shared: SharedVariables
    reach: Reach
    problems: tuple[PtxError, ...]
    conditional: tuple[PtxError, ...] = ()
    undecided: tuple[Site, ...] = ()

    @cached_property
    def lets_go(self) -> Mapping[int, tuple[int, ...]]:
        """Registers that nobody reads any more, by place: what a launch wants to know, and a check does not."""
        return let_go(self.program)


def link(module: Module, entry: str, memory: ModuleMemory, target: str, *, contract: bool = True) -> Linked:
    """Lower an entry and what it can reach.

    Parameters
    ----------
    module : Module
    entry : str
    memory : ModuleMemory
        Variables of the module on a device.
    target : str
        Of the device.
    contract : bool
        Whether multiplications and additions are fused where ptxas fuses them.
    """
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
    conditional: list[PtxError] = []
    undecided: list[Site] = []
    frame = 0
    recursive = found.recursive
    if parameters.size > MOST_PARAMETERS:
        text = f"{parameters.size} bytes of parameters; there are {MOST_PARAMETERS}"
        problems.append(module.error(text, head.position))
    if says := cluster_problem(head.directives):
        problems.append(module.error(f"{entry}: {says}", head.position))
    for name in found.functions:
        first, before = len(steps), len(slots.kinds)
        function = modernised(module, module.functions[name])
        if contract:
            fused = contracted(function, target)
            function = fused.function
            undecided += (site_of(module, one) for one in fused.open)
        body = lower(module, function, slots, places, target, start if name == entry else 0)
        steps += [_moved(step, first) for step in body.steps]
        problems += body.problems
        conditional += body.conditional
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
    )  # fmt: skip
    reading = tuple(i for i, step in enumerate(steps) if isinstance(step, RowStep) and _argument(step))
    return Linked(
        program, reading, parameters.size, shared, found, tuple(problems), tuple(conditional), tuple(undecided)
    )


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


def _argument(step: RowStep) -> bool:
    return any(isinstance(x, Argument) for x in step.operands)


def bound(linked: Linked, parameters: bytes) -> Program:
    """Return the program of a launch, which knows its parameters."""
    steps = list(linked.program.steps)
    for at in linked.reading:
        step = steps[at]
        assert isinstance(step, RowStep)
        operands = tuple(_value(x, parameters) if isinstance(x, Argument) else x for x in step.operands)
        steps[at] = replace(step, operands=operands)
    return replace(linked.program, steps=tuple(steps), lets_go=linked.lets_go)


def _value(x: Argument, parameters: bytes) -> Constant:
    value = int.from_bytes(parameters[x.offset : x.offset + x.size], "little", signed=x.signed)
    return Constant(value & ((1 << int(x.kind[1:])) - 1), x.kind)
