"""Programs of the machine: numbered steps, whose operands are slots of registers.

The rules:

1. The program counter is the number of a step. Of two lanes of a warp, the one at the lower program counter runs first
   (`scheduling`): the code that builds a program orders the steps so that diverged lanes reconverge where their paths
   join, and each loop is contiguous.
2. Each thread has its own copy of a function's registers, frame of local memory and parameters. A call begins a frame
   after the caller's; parameters and results are in frames, and are copied on entry and return.
3. A program is the same in every launch: a launch's parameters are bytes, which steps read (`Argument`).
4. A guard selects the lanes that execute a step; the others continue at the next step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..._records import Shown
from ..._text import counted
from ...errors import OperandError
from ...isa import PtxInstruction, Signature
from ...operations import RegisterType
from ..base import Site


@dataclass(frozen=True, slots=True)
class Slot(Shown):
    """A register, by its number in `Program.registers`."""

    number: int


@dataclass(frozen=True, slots=True)
class Constant(Shown):
    """Bits that are the same in every lane, as a register of class `kind`; "imm" is an immediate int."""

    bits: int
    kind: RegisterType


@dataclass(frozen=True, slots=True)
class SharedAddress(Shown):
    """The address of a byte in the shared memory of the thread's block, plus `base`, as a register of class `kind`."""

    offset: int
    kind: RegisterType
    base: int = 0


@dataclass(frozen=True, slots=True)
class Argument(Shown):
    """An integer from the launch's parameter bytes, the same in every lane, as a register of class `kind`.

    Attributes
    ----------
    offset, size : int
    signed : bool
        Whether it is sign-extended.
    """

    offset: int
    size: int
    signed: bool
    kind: RegisterType


@dataclass(frozen=True, slots=True)
class ReadOnly(Shown):
    """A special register, by PTX's name without %: "tid.x", "clock64", "lanemask_lt"."""

    name: str
    kind: RegisterType


@dataclass(frozen=True, slots=True)
class Inverted(Shown):
    """A predicate that is read inverted: `!p`."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class Frame(Shown):
    """The local address of a byte in the running function's frame: 64 bits, or the lower 32."""

    offset: int
    kind: str = "b64"


@dataclass(frozen=True, slots=True)
class Sum(Shown):
    """An address: a register or a position in the frame, plus an offset in bytes."""

    base: Slot | Frame | ReadOnly
    offset: int


StepOperand = Slot | Constant | SharedAddress | Argument | ReadOnly | Inverted | Frame | Sum


@dataclass(frozen=True, slots=True)
class Guard(Shown):
    """Only lanes whose predicate is true, or false if negated, execute a step."""

    slot: Slot
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionStep(Shown):
    """An instruction: a row, or an `mma`.

    Attributes
    ----------
    operands : tuple of StepOperand or None
        One for each register that the row's signature reads; None for an omitted one.
    results : tuple of Slot or None
        Destination of each result; None for an unused result.
    beside : bool
        Whether it only prepares an `Alternative`: an `Operation` that reports no hazards and is not counted.
    """

    site: Site
    row: PtxInstruction
    operands: tuple[StepOperand | None, ...] = ()
    results: tuple[Slot | None, ...] = ()
    guard: Guard | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative(Shown):
    """A result and alternatives that ptxas may compute instead: reports lanes whose bits differ, changes nothing.

    Attributes
    ----------
    line, column : int
        Position of the result's instruction in the text.
    type : str
        PTX type of the result.
    result : Slot
    others : tuple of (Slot, Slot)
        Alternative results, each with a b32 that is not 0 in lanes that have it.
    """

    site: Site
    line: int
    column: int
    type: str
    result: Slot
    others: tuple[tuple[Slot, Slot], ...]
    guard: Guard | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(Shown):
    """`bra`. `uniform` is `.uni`: all lanes of the group go the same way."""

    site: Site
    to: int
    guard: Guard | None = None
    uniform: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchTable(Shown):
    """`brx.idx`: to one of several targets, selected by a b32 register."""

    site: Site
    index: Slot
    to: tuple[int, ...]
    guard: Guard | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Shown):
    """`call` of a function by name, by the address in a b64 register, or of one that the machine provides ("vprintf").

    Attributes
    ----------
    to : str or Slot
    arguments, results : tuple of (int, int)
        Offset in the caller's frame and size in bytes of each; copied to and from the callee's frame.
    """

    site: Site
    to: str | Slot
    arguments: tuple[tuple[int, int], ...] = ()
    results: tuple[tuple[int, int], ...] = ()
    guard: Guard | None = None
    uniform: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Return(Shown):
    """`ret`: returns to the caller; in an entry, ends the thread."""

    site: Site
    guard: Guard | None = None
    uniform: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee(Shown):
    """A function of a program.

    Attributes
    ----------
    name : str
    parameters, results : tuple of (int, int)
        Offset in its own frame and size in bytes of each.
    slots : range
        Its registers: a call of a function that may be running already saves those of the running call.
    recursive : bool
    """

    name: str
    first: int  # program counter of its first step
    address: int = 0  # for `mov.u64 %rd, name` and calls through a register
    parameters: tuple[tuple[int, int], ...] = ()
    results: tuple[tuple[int, int], ...] = ()
    slots: range = range(0)
    recursive: bool = False
    frame: int = 0  # bytes of its frame


AnyStep = InstructionStep | Branch | BranchTable | Call | Return | Alternative


@dataclass(frozen=True)
class LoadsInFlight:
    """The steps that have to do with loads that may be in flight at a signal: see `loads_in_flight`.

    Attributes
    ----------
    loads : mapping of int to int
        The number of each such load, by program counter.
    uses : mapping of int to tuple of int
        By program counter, which of them a step uses.
    delays : mapping of int to tuple of int
        By program counter, which of them may have returned where a step waits for a product, if they are few.
    signals : frozenset of int
        Program counters of the signals at which one is in flight.
    """

    loads: Mapping[int, int] = field(default_factory=dict)
    uses: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    delays: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    signals: frozenset[int] = frozenset()

    def concerns(self, pc: int) -> bool:
        """Whether a step is one of these."""
        return pc in self.loads or pc in self.uses or pc in self.delays or pc in self.signals


class ProductRegister(NamedTuple):
    """What a step does to a register that a product of a warpgroup has, see `product_registers`.

    Attributes
    ----------
    earlier : int
        The step whose time matters: a product, or for a missing fence an access; -1 for the start of the program.
    slot : int
    operand : "A" or "D"
        Which operand of a product the register belongs to.
    """

    earlier: int
    slot: int
    operand: Literal["A", "D"]


@dataclass(frozen=True)
class ProductRegisters:
    """The steps that have to do with registers of products that are not complete: see `product_registers`.

    Attributes
    ----------
    writes : mapping of int to tuple of ProductRegister
        By program counter, registers of products that a step writes and that may be pending.
    overlaps : mapping of int to tuple of ProductRegister
        By product, registers of D that an earlier product has at another place, and perhaps no fence between.
    unfenced : mapping of int to tuple of ProductRegister
        By product, registers that an earlier step accesses, and perhaps no fence between.
    products, fences, timed : frozenset of int
        The products and the fences, and the steps whose time matters to `overlaps` and `unfenced`; empty if these are.
    """

    writes: Mapping[int, tuple[ProductRegister, ...]] = field(default_factory=dict)
    overlaps: Mapping[int, tuple[ProductRegister, ...]] = field(default_factory=dict)
    unfenced: Mapping[int, tuple[ProductRegister, ...]] = field(default_factory=dict)
    products: frozenset[int] = frozenset()
    fences: frozenset[int] = frozenset()
    timed: frozenset[int] = frozenset()

    def concerns(self, pc: int) -> bool:
        """Whether a step is one of these."""
        return pc in self.writes or pc in self.products or pc in self.fences or pc in self.timed


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(Shown):
    """What a launch runs.

    Attributes
    ----------
    name : str
        Of the entry.
    steps : tuple
        By program counter. The entry begins at 0.
    registers : tuple of RegisterType
        Class of every slot.
    names : tuple of str
        Name of every slot, for reports.
    callees : mapping of str to Callee
        Functions that can be called, by name.
    frame : int
        Bytes of the entry's frame of local memory.
    shared : tuple of range
        Variables in shared memory; bytes between them are unused. Dynamic shared memory follows the last.
    dead_slots : mapping of int to tuple of int
        By program counter, slots that are dead after the step: see `liveness`.
    in_flight : LoadsInFlight
        Loads that may be in flight at a signal, and the steps that have to do with them.
    early_stores : frozenset of (Site, Site)
        Lines of waits for reading, and of stores that ptxas may move in front of them: see `early_stores`.
    registers_at_launch : int
        Of a thread, where `setmaxnreg` changes them; 0 if they are not known.
    products : ProductRegisters
        The steps that have to do with registers of products of warpgroups.
    checked : bool
        Whether the operands are known to fit their rows, as in PTX, which checks them on loading; otherwise `check`
        does.
    kept : dict
        Compiled steps for batches of a shape, by what they depend on: used by `executor`.
    """

    name: str
    steps: tuple[AnyStep, ...]
    registers: tuple[RegisterType, ...]
    names: tuple[str, ...]
    callees: Mapping[str, Callee] = field(default_factory=dict)
    frame: int = 0
    shared: tuple[range, ...] = ()
    dead_slots: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    in_flight: LoadsInFlight = field(default_factory=LoadsInFlight, repr=False, compare=False)
    early_stores: frozenset[tuple[Site, Site]] = field(default=frozenset(), repr=False, compare=False)
    registers_at_launch: int = field(default=0, repr=False, compare=False)
    products: ProductRegisters = field(default_factory=ProductRegisters, repr=False, compare=False)
    checked: bool = field(default=False, repr=False, compare=False)
    kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def check(self) -> None:
        """Raise `OperandError` where operands or results do not fit their rows."""
        for step in self.steps:
            if isinstance(step, InstructionStep):
                self._check(step.row, step.row.sources, step.operands, "takes", "operand")
                self._check(step.row, step.row.results, step.results, "gives", "result")

    def _check(
        self, row: PtxInstruction, signature: Signature, given: Sequence[StepOperand | None], does: str, what: str
    ) -> None:
        specs = [(spec, name) for spec in signature for name in spec.names]
        if len(specs) != len(given):
            raise OperandError(f"{row} {does} {counted(len(specs), what)} ({row.syntax}); got {len(given)}")
        for (spec, name), x in zip(specs, given, strict=True):
            if x is None and not (spec.optional or what == "result"):
                raise OperandError(f"{row}: {what} {name} of {row.syntax} is missing")
            if x is not None and not spec.accepts(kind := self._kind(x)):
                register = f"{self.names[x.number]}, " if isinstance(x, Slot) else ""
                raise OperandError(
                    f"{row}: {what} {name} of {row.syntax} is {register}{kind}; expected {spec.expected}"
                )

    def _kind(self, x: StepOperand) -> str:
        """Class of an operand."""
        if isinstance(x, Inverted):
            return "pred"
        if isinstance(x, Slot):
            return self.registers[x.number]
        return self._kind(x.base) if isinstance(x, Sum) else x.kind
