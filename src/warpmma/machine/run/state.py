"""The state of a program that runs: registers by slot, who stands where, how often each place was executed.

Registers of a program, its constants and special registers are in one list; an operand is an index into it. A value
that must be recomputed at every read (an address with an offset, an inverted predicate, a clock) has a function, which
the step calls before it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._arrays import Array, everywhere
from ..._text import counted
from ...errors import OperandError
from ...operations import DTYPES
from ..base import Lanes, RegisterShadow, Site, WarpRegister, merged_shadow
from ..block import SPECIAL, Batch, Grid, special_bits
from ..program import Argument, Constant, Frame, Inverted, Program, ReadOnly, SharedAddress, Slot, StepOperand, Sum
from .groups import Group
from .scheduling import Scheduler

Refresh = Callable[[], None]


class State:
    """The state of a program in a batch of blocks: between `begin` and `end`.

    Steps are prepared with a state, and may be used for other batches of its shape, one after another: they read what
    belongs to a batch from the state when they run (`state.batch`). The lists here are never replaced.

    Parameters
    ----------
    program : Program
    lanes : Lanes
        Of any batch of the shape.
    keep : bool
        Whether registers of threads that have exited are kept.

    Attributes
    ----------
    batch : Batch
    grid : Grid
    shape : (int, int, int)
        Blocks, warps and lanes.
    registers : list of WarpRegister
        The program's slots, followed by constants and special registers.
    unwritten : list of WarpRegister
        By slot, what a register is that no lane has written.
    dead_slots : mapping of int to tuple of int
        By place, registers that are dead after it.
    counts : list of int
        By place, how often warps executed it.
    now : int
        Steps executed so far.
    stack : WarpRegister
        Where each thread's frame begins, b64.
    scheduler : Scheduler
    last_guard : list
        What `branching` chose last.
    seen : dict
        By place, what steps that observe other threads saw last.
    """

    batch: Batch
    grid: Grid
    stack: WarpRegister
    scheduler: Scheduler

    def __init__(self, program: Program, lanes: Lanes, keep: bool) -> None:
        self.program, self.shape, self._keep = program, lanes.shape, keep
        missing = np.broadcast_to(~lanes.exists[:1], lanes.shape)  # of all blocks the same; rule 4 of `groups`
        self._none = {kind: WarpRegister(self._everywhere(0, kind), RegisterShadow(missing)) for kind in DTYPES}
        self.unwritten = [self._none[kind] for kind in program.registers]
        self.registers: list[Any] = self.unwritten.copy()
        self.dead_slots = {} if keep else program.dead_slots
        self.counts = [0] * len(program.steps)
        self.now = 0
        self.last_guard: list[Any] = [None] * 4
        self.seen: dict[int, tuple[WarpRegister, ...]] = {}
        self._parameters = self._given = b""  # of this batch, and of the one whose `Argument`s are in registers
        self._where: tuple[Grid, range, str] | None = None  # that special registers hold
        self._known: dict[StepOperand, int] = {}
        self._spare: list[int] = []
        self._stack = WarpRegister(self._everywhere(0, "b64"))

    def begin(self, batch: Batch, grid: Grid, began: int, parameters: bytes) -> None:
        """Begin a batch of a grid; `began` is how many steps the launch ran before it, for its clock."""
        self.batch, self.grid, self.now, self._parameters = batch, grid, began, parameters
        self.stack = self._stack
        self.scheduler = Scheduler(batch.lanes, len(self.program.steps) + 2, batch.seed, self._keep)
        where = grid, batch.blocks, batch.target
        given, placed = parameters != self._given, where != self._where
        for x, at in self._known.items() if given or placed else ():
            if (given and isinstance(x, Argument)) or (placed and isinstance(x, ReadOnly | SharedAddress)):
                self.registers[at] = self._made(x)
        self._given, self._where = parameters, where

    def end(self) -> None:
        """Drop everything that belongs to a batch."""
        del self.batch, self.grid, self.stack, self.scheduler
        self._parameters = b""
        self.registers[: len(self.unwritten)] = self.unwritten
        for at in self._spare:
            self.registers[at] = None
        self.counts[:] = [0] * len(self.counts)
        self.last_guard[:] = [None] * len(self.last_guard)
        self.seen.clear()

    def _everywhere(self, bits: int, kind: str) -> Array:
        return everywhere(DTYPES[kind](bits), self.shape)

    def forget(self, slots: range, group: Group) -> None:
        """Reset registers to unwritten in the lanes of a group."""
        for slot in slots:
            none = self._none[self.program.registers[slot]]
            held = self.registers[slot]
            if held is not none:
                self.registers[slot] = group.merged(held, none, held.site)

    def put(self, slot: int, new: WarpRegister, group: Group, site: Site) -> None:
        """Write a register in the lanes of a group."""
        old = self.registers[slot]
        if new.kind != old.kind:
            raise OperandError(
                f"{site.mnemonic}: {self.program.names[slot]} is .{old.kind}; got a value of .{new.kind}"
            )
        self.registers[slot] = new if group.full else group.merged(old, new, site)

    def spoil(self, slots: list[int], lanes: Array, by: WarpRegister) -> None:
        """Make poison of registers in some lanes, as of another register."""
        assert by.shadow is not None
        for slot in slots:
            old = self.registers[slot]
            new = RegisterShadow(~lanes, by.shadow.site, origin=by.shadow.origin)
            shadow = merged_shadow(old.shadow, new, lanes, dtype=old.bits.dtype)
            self.registers[slot] = WarpRegister(old.bits, shadow)

    def write(self, slot: int, bits: Array, group: Group, site: Site) -> None:
        """Write bits that fit a register."""
        new = WarpRegister(bits)
        self.registers[slot] = new if group.full else group.merged(self.registers[slot], new, site)

    def shaped(self, bits: Any, dtype: np.dtype[Any]) -> Array:
        """Return a result as the bits of a register, of its dtype and shape."""
        bits = np.asarray(bits, dtype)
        return bits if bits.shape == self.shape else np.broadcast_to(bits, self.shape)

    # Operands

    def dtype(self, kind: str) -> np.dtype[Any]:
        """NumPy type of a class of registers."""
        made: np.dtype[Any] = np.dtype(DTYPES[kind])
        return made

    def place(self, x: StepOperand | None, refresh: list[Refresh]) -> Any:
        """Return an operand's index in the list of registers, or None; append what recomputes it to `refresh`."""
        if x is None:
            return None
        if isinstance(x, Slot):
            return x.number
        if isinstance(x, Inverted | Frame | Sum) or (isinstance(x, ReadOnly) and self._moves(x)):
            at = self._another(len(refresh))
            refresh.append(self._refresh(x, at))
            return at
        if x not in self._known:
            made = self._made(x)
            self._known[x] = len(self.registers)
            self.registers.append(made)
        return self._known[x]

    def _another(self, used: int) -> int:
        """Return the index for a step's next recomputed operand, after `used` others; all steps share these."""
        if used == len(self._spare):
            self._spare.append(len(self.registers))
            self.registers.append(None)
        return self._spare[used]

    def _moves(self, x: ReadOnly) -> bool:
        return x.name in SPECIAL and SPECIAL[x.name].moves

    def _made(self, x: StepOperand) -> Any:
        if isinstance(x, Constant):
            return _Immediate(x.bits) if x.kind == "imm" else WarpRegister(self._everywhere(x.bits, x.kind))
        if isinstance(x, Argument):
            given = self._parameters[x.offset : x.offset + x.size]
            if len(given) != x.size:
                raise OperandError(
                    f"{self.program.name} reads bytes {x.offset} to {x.offset + x.size - 1} of its parameters; the "
                    f"launch has {counted(len(self._parameters), 'byte')} of them"
                )
            bits = int.from_bytes(given, "little", signed=x.signed) & ((1 << int(x.kind[1:])) - 1)
            return WarpRegister(self._everywhere(bits, x.kind))
        if isinstance(x, SharedAddress):
            address = (self.batch.shared.starts + (x.offset + x.base)).astype(DTYPES[x.kind])
            return WarpRegister(np.broadcast_to(address, self.shape))
        assert isinstance(x, ReadOnly)
        return self._read_only(x)

    def _read_only(self, x: ReadOnly) -> WarpRegister:
        static = max((x.stop for x in self.program.shared), default=0)
        return WarpRegister(special_bits(x.name, x.kind, self.batch, self.grid, static, self.now))

    def _refresh(self, x: Inverted | Frame | Sum | ReadOnly, at: int) -> Refresh:
        registers = self.registers
        if isinstance(x, ReadOnly):

            def look() -> None:
                registers[at] = self._read_only(x)

            return look
        if isinstance(x, Frame):
            dtype = DTYPES[x.kind]

            def frame() -> None:
                registers[at] = WarpRegister((self.stack.bits + np.uint64(x.offset)).astype(dtype, copy=False))

            return frame
        if isinstance(x, Inverted):
            slot = x.slot.number

            def invert() -> None:
                held = registers[slot]
                registers[at] = WarpRegister(~held.bits, held.shadow)

            return invert
        return self._add(x, at)

    def _add(self, x: Sum, at: int) -> Refresh:
        registers = self.registers
        if isinstance(x.base, Frame):
            offset = np.uint64((x.base.offset + x.offset) & _MOST)

            def in_frame() -> None:
                registers[at] = WarpRegister(self.stack.bits + offset)

            return in_frame
        base = self.place(x.base, [])
        kind = x.base.kind if isinstance(x.base, ReadOnly) else self.program.registers[base]
        dtype = DTYPES[kind]
        more = dtype(x.offset & np.iinfo(dtype).max)

        def add() -> None:
            held = registers[base]
            registers[at] = WarpRegister(held.bits + more, held.shadow)

        return add


class _Immediate:
    """An immediate int among registers."""

    __slots__ = ("bits",)
    shadow = None

    def __init__(self, bits: int) -> None:
        self.bits = bits


_MOST = (1 << 64) - 1
