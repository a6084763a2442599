"""A batch of blocks that run together: their lanes, memory, barriers and copies, and how they read and write registers.

Every array is `[block, warp, lane]`: warps at the same place go together, over all blocks of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...arithmetic import Engine, resolve, runs_elements
from ...errors import OperandError
from ...operations import DTYPES, Operation
from ..base import Lanes, Site, WarpRegister, is_number, literal
from ..memory import GlobalMemory, LocalMemory, SharedMemory
from ..order import Clocks, History
from ..report import Costs, Reporter, Watching
from ..sync import Barriers, ClusterBarrier, Copies, Phases

Results = tuple[WarpRegister, ...]


class Batch:
    """The state of blocks that run together.

    Parameters
    ----------
    blocks : range
        Their numbers in the grid.
    threads : int
        Of each.
    target : str
    memory : GlobalMemory
    shared : int
        Bytes of shared memory of each.
    reporter : Reporter
    costs : Costs
    history : History
    engine, workers
        Of `execute`, for `mma`.
    seed : int
        Who goes first where CUDA leaves it open; 0 is the order of numbers.
    poison_travels : bool
        Whether what nobody wrote travels through operations on registers: rule 2 of `computing`.
    watching : Watching, optional
        Who keeps operands of `mma`.

    Attributes
    ----------
    blocks : range
    loaded_poison : set of Site
        Loads that met memory which nobody wrote, and did not report it.
    lanes : Lanes
    clocks : Clocks
    memory, shared, local : GlobalMemory, SharedMemory, LocalMemory
    copies : Copies
    barriers : Barriers
    cluster : ClusterBarrier
    phases : dict of int to Phases
        Of mbarriers, by where they lie in the shared memory of all blocks.
    """

    def __init__(
        self, *, blocks: range, threads: int, target: str, memory: GlobalMemory, shared: int, reporter: Reporter,
        costs: Costs, history: History, engine: Engine = "auto", workers: int | None = None, seed: int = 0,
        poison_travels: bool = False, watching: Watching | None = None,
    ) -> None:  # fmt: skip
        self.target, self.memory, self.reporter, self.costs = target, memory, reporter, costs
        self.engine, self.workers, self.seed, self.blocks = engine, workers, seed, blocks
        self.poison_travels, self.watching = poison_travels, watching
        self.loaded_poison: set[Site] = set()
        self.native = resolve(engine) == "native" and runs_elements()
        self.lanes = Lanes(len(blocks), threads)
        self.clocks = Clocks(blocks, self.lanes.shape[1], history)
        self.shared = SharedMemory(reporter, self.clocks, len(blocks), shared)
        self.local = LocalMemory(reporter, self.lanes.shape)
        self.copies = Copies(self.shared, reporter)
        self.barriers = Barriers(self.lanes, self.clocks, reporter)
        self.cluster = ClusterBarrier(self.barriers, reporter, self.lanes.shape)
        self.phases: dict[int, Phases] = {}
        reporter.first_block = blocks.start

    @property
    def shape(self) -> tuple[int, int, int]:
        """Blocks, warps and lanes."""
        return self.lanes.shape

    def function(self, row: Operation) -> Callable[..., tuple[Array, ...]]:
        """Return what computes an operation in the batch's engine."""
        return row.compute if row.native is None or not self.native else row.native

    def leave(self, lanes: Array) -> None:
        """End threads."""
        self.copies.exited(lanes)
        self.lanes.exit(lanes)
        self.costs.barrier(self.barriers.exited())

    def finish(self) -> None:
        """End all threads that have not exited."""
        if self.lanes.any_waiting:
            self.barriers.stand(self.lanes.waiting, None)
        if self.lanes.alive.any():
            self.leave(self.lanes.alive)
        self.phases.clear()  # what was not counted holds the batch

    def shuffled(self, number: int) -> Array | None:
        """Return an order of so many turns, by the seed and the time; None for the one that is there."""
        if not self.seed or number < 2:
            return None
        first = (self.seed << 32 ^ self.clocks.now * 0x9E3779B9) % (1 << 63)
        keys = np.arange(number, dtype=np.uint64) + np.uint64(first)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # Vigna's splitmix64
            keys = (keys ^ keys >> np.uint64(shift)) * np.uint64(factor)
        return np.argsort(keys, kind="stable")

    # Registers

    def filled(self, value: Any, kind: str) -> WarpRegister:
        """Return a register with one value, or with those of an array, in every lane."""
        return WarpRegister(np.broadcast_to(np.asarray(value).astype(DTYPES[kind]), self.shape))

    def operand(self, x: Any, type_: str, kind: str, who: str) -> WarpRegister:
        """Return a register as it is, or one with a number in every lane, which is a value of the operand's PTX type.

        Parameters
        ----------
        x : WarpRegister, int, float or bool
        type_ : str
            PTX type of the operand, see `literals`.
        kind : str
            Class of the register that holds it.
        who : str
            Mnemonic and operand, for errors.

        Raises
        ------
        OperandError
            Anything else, or a number that is no value of the type.
        """
        if isinstance(x, WarpRegister):
            return x
        if not is_number(x):
            raise OperandError(f"{who} is {type(x).__name__}; expected a register or a number")
        return WarpRegister(np.broadcast_to(DTYPES[kind](literal(x, type_, kind, who)), self.shape))

    def read(self, site: Site, registers: Sequence[WarpRegister], needed: Sequence[Array]) -> list[Array]:
        """Bits of registers, `[block, warp, lane]`; report needed lanes, of each, that have not been written."""
        for i, (register, lanes) in enumerate(zip(registers, needed, strict=True)):
            if register.defined is not None:
                bad = np.greater(lanes, register.defined)
                if not bad.any():
                    continue
                if register.site in self.loaded_poison:
                    what = f"memory is read that nobody wrote, and it counts at {site.place} ({site.mnemonic})"
                    self.reporter.report("unwritten", register.site, bad, other=site, detail=what)
                    continue
                which = f"; it is number {i} of {len(registers)} here" if len(registers) > 1 else ""
                detail = _origin(register, self.poison_travels) + which
                self.reporter.report("poison", site, bad, other=register.site, detail=detail)
        return [register.bits for register in registers]

    def made(self, bits: Array, lanes: Array, site: Site, poison: Array | None = None) -> WarpRegister:
        """Return a result, written by lanes but for those that are poison."""
        if bits.shape != self.shape:
            bits = np.broadcast_to(bits, self.shape)
        if not self.reporter.tracking:
            return WarpRegister(bits)
        written = None if lanes is self.lanes.alive else lanes
        if poison is not None and poison.any():
            written = ~poison if written is None else written & ~poison
        return WarpRegister(bits, written, None if written is None else site)

    def fragment(self, registers: Array, lanes: Array, site: Site, poison: Array | None = None) -> Results:
        """Return the registers of a fragment, `[block, warp, register, lane]`, as `made` does each."""
        found = []
        for i in range(registers.shape[-2]):
            register = self.made(registers[..., i, :], lanes, site, None if poison is None else poison[..., i, :])
            register.part = registers, i
            found.append(register)
        return tuple(found)

    def read_fragment(self, site: Site, registers: Sequence[WarpRegister], lanes: Array) -> Array:
        """Bits of registers as a fragment, `[block, warp, register, lane]`: the one that they are parts of, if so."""
        bits = self.read(site, registers, [lanes] * len(registers))
        part = registers[0].part
        if part is not None:
            whole, first = part
            parts = (x.part for x in registers)
            if all(x is not None and x[0] is whole and x[1] == first + i for i, x in enumerate(parts)):
                return whole[..., first : first + len(registers), :]
        return np.stack(bits, axis=-2)


def _origin(register: WarpRegister, travels: bool) -> str:
    what = "the lane reads a register that it never wrote"
    what += ", or that comes of such a one" * travels
    if register.site is None:
        return what
    loaded = ", or loading there memory that nobody wrote" * register.site.mnemonic.startswith(("ld", "wmma.load"))
    loaded += ", or given there what another lane never wrote" * register.site.mnemonic.startswith("shfl")
    where = f"being masked off where it was made, at {register.site.place} ({register.site.mnemonic})"
    return f"{what}, {where}{loaded}"
