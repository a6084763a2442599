"""What an entry needs, and what of it is not simulated, before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..._records import Shown
from ..._views import view
from ...errors import PtxError
from ...isa import check_known
from ...machine import InstructionStep, Program
from ...operations import Hint
from ..contraction import is_hidden
from ..lower import Linked, link
from ..storage import ModuleMemory
from ..text import Module, Statement
from .entry_launch import fitting_target


@dataclass(frozen=True, kw_only=True)
class EntryNeeds(Shown):
    """The resources that an entry needs.

    Attributes
    ----------
    name : str
    """

    name: str
    functions: tuple[str, ...]  # functions that it may call
    shared: int  # bytes of static shared memory
    dynamic: bool  # whether it also uses dynamic shared memory
    local: int  # bytes of a thread's frame, without the frames of the functions that it calls
    parameters: int  # bytes
    registers: Mapping[str, int]  # number by class, as named in the text: ptxas uses fewer
    instructions: Mapping[str, int]  # how often each mnemonic occurs in the code that may run
    problems: tuple[PtxError, ...]  # lines that are not simulated, or that are refused at run time for some operands
    ignored: tuple[str, ...] = ()  # what ptxas ignores in it, and why


@dataclass(frozen=True, kw_only=True)
class ModuleNeeds(Shown):
    """What the entries of a module need.

    Attributes
    ----------
    name, target : str
        The target that was asked about.
    """

    name: str
    target: str
    version: tuple[int, int]  # of PTX
    compiled: str  # the target that the text names
    entries: tuple[EntryNeeds, ...]

    @property
    def problems(self) -> int:
        """How many lines are not simulated."""
        return len({str(x) for entry in self.entries for x in entry.problems})

    def text(self) -> str:
        """Tables of what each entry needs, and the lines that are not simulated."""
        return view(self, "text")

    def json(self) -> str:
        """Return the same as JSON."""
        return view(self, "json")


def module_needs(module: Module, entries: Sequence[str], target: str) -> ModuleNeeds:
    """Say what entries need on a target.

    Raises
    ------
    TargetError
        No such target, or one that the module does not run on.
    """
    check_known(target)
    fitting_target(module, target)
    memory = ModuleMemory(module, None)
    return ModuleNeeds(
        name=module.name, target=target, version=module.version, compiled=module.target,
        entries=tuple(_needs(module, name, memory, target) for name in entries),
    )  # fmt: skip


def _needs(module: Module, name: str, memory: ModuleMemory, target: str) -> EntryNeeds:
    try:
        linked = link(module, name, memory, target)
    except PtxError as error:  # what cannot be read at all
        return EntryNeeds(
            name=name, functions=(), shared=0, dynamic=False, local=0, parameters=0, registers={}, instructions={},
            problems=(error,),
        )  # fmt: skip
    return EntryNeeds(
        name=name, functions=tuple(linked.reach.functions[1:]), shared=linked.shared.static,
        dynamic=linked.shared.has_dynamic, local=linked.program.frame, parameters=linked.parameters,
        registers=_registers(linked.program), instructions=_counts(module, linked),
        problems=linked.problems, ignored=_ignored(module.functions[name].directives, linked.program),
    )  # fmt: skip


def _registers(program: Program) -> dict[str, int]:
    """Count what the text names, by class."""
    named = zip(program.registers, program.names, strict=True)
    return dict(Counter(kind for kind, name in named if not is_hidden(name)))


def _counts(module: Module, linked: Linked) -> dict[str, int]:
    found = Counter(
        x.mnemonic for name in linked.reach.functions for x in module.functions[name].body if isinstance(x, Statement)
    )
    return dict(found.most_common())


def _ignored(directives: Collection[str], program: Program) -> tuple[str, ...]:
    """Say what ptxas 13.0 ignores in an entry: `setmaxnreg`, where it does not know how many registers that has."""
    known = "maxnreg" in directives or ("minnctapersm" in directives and {"maxntid", "reqntid"} & {*directives})
    rows = (step.row for step in program.steps if isinstance(step, InstructionStep))
    if known or not any(isinstance(row, Hint) and row.limits for row in rows):
        return ()
    return ("setmaxnreg, unless it is told -maxrregcount: the entry has no .maxnreg, nor .minnctapersm with .maxntid",)
