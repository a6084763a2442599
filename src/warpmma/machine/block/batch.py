"""A batch of blocks that run together: lanes, memory, barriers, asynchronous operations, and access to registers.

Every array is `[block, warp, lane]`: warps at the same place run together, over all blocks of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array, everywhere
from ...arithmetic import Engine, resolve, runs_elements
from ...errors import OperandError
from ...operations import DTYPES, Access, MatrixMove, Operation, WmmaMove
from ..base import (
    Fragment,
    FragmentRegister,
    Lanes,
    Origin,
    Poison,
    RegisterShadow,
    Site,
    WarpRegister,
    is_number,
    literal,
)
from ..memory import GlobalMemory, GlobalSpace, LocalMemory, SharedMemory
from ..order import History, ThreadScopes, VectorClock, VectorClocks, joined
from ..report import Costs, Reporter, Watching
from ..sync import (
    AsyncOperations,
    Barriers,
    ClusterBarrier,
    LateReads,
    MapReads,
    MbarrierPhases,
    ProductTimes,
    RegisterLimits,
    TimelineRecorder,
    WarpgroupProducts,
)

Results = tuple[WarpRegister, ...]


class Carried(NamedTuple):
    """The poison of registers that an instruction reads."""

    masks: list[Array]  # the poison bits of each
    site: Site  # the line that made the poison of one
    origin: Origin | None  # None if lanes have not written it


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
    cluster : int
        Blocks of a cluster: a batch has whole clusters.
    clustered : bool
        Whether the launch or the entry says what a cluster is; otherwise each block is one.
    reporter : Reporter
    costs : Costs
    history : History
    engine, workers
        Of `execute`, for `mma`.
    seed : int
        Which thread goes first where CUDA leaves it open; 0 is the order of numbers.
    poison_travels : bool
        Whether poison travels through operations on registers: rule 2 of `computing`.
    watching : Watching, optional
        Keeps operands of `mma`.
    timeline : TimelineRecorder, optional
        Records asynchronous work.

    Attributes
    ----------
    blocks : range
    """

    def __init__(
        self, *, blocks: range, threads: int, target: str, memory: GlobalMemory, shared: int, reporter: Reporter,
        costs: Costs, history: History, cluster: int = 1, clustered: bool = False,
        engine: Engine = "auto", workers: int | None = None,
        seed: int = 0, poison_travels: bool = False, watching: Watching | None = None,
        timeline: TimelineRecorder | None = None,
    ) -> None:  # fmt: skip
        self.target, self.memory, self.reporter, self.costs = target, memory, reporter, costs
        self.engine, self.workers, self.seed, self.blocks = engine, workers, seed, blocks
        self.poison_travels, self.watching, self.clustered = poison_travels, watching, clustered
        self.native = resolve(engine) == "native" and runs_elements()
        self.lanes = Lanes(len(blocks), threads)
        scopes = ThreadScopes(cluster)
        self.clocks = VectorClocks(blocks, self.lanes.shape[1], history, tracking=reporter.tracking, scopes=scopes)
        self.shared = SharedMemory(reporter, self.clocks, self.lanes, shared)
        self.local = LocalMemory(reporter, self.lanes.shape)
        self.global_space = GlobalSpace(memory, self.clocks, reporter)
        self.registers_at_launch = 0  # of a thread; 0 if they are not known
        self.early_stores: frozenset[tuple[Site, Site]] = frozenset()
        self._at_exit: dict[int, VectorClock | None] = {}  # what threads knew that have exited, by block
        reporter.first_block = blocks.start
        self.timeline = timeline
        if timeline is not None:
            timeline.begin([reporter.running(place) for place in range(len(blocks))], self.shared)

    # Made at their first use: most batches need few of them.

    @cached_property
    def async_operations(self) -> AsyncOperations:
        """Asynchronous operations of its threads."""
        made = AsyncOperations(self.reporter, self.clocks, self.seed)
        made.told = None if self.timeline is None else self.timeline.operation
        return made

    @cached_property
    def register_limits(self) -> RegisterLimits:
        """The `setmaxnreg` of its warps."""
        return RegisterLimits(self.reporter, self.registers_at_launch)

    @cached_property
    def late_reads(self) -> LateReads | None:
        """Loads that may be in flight when threads signal; None where no hazards are looked for."""
        if not self.reporter.tracking:
            return None
        late = LateReads(self.reporter, self.clocks, self.warpgroups, self.lanes.shape)
        self.shared.watches("late reads", reads=late.read, writes=late.written)
        return late

    @cached_property
    def map_reads(self) -> MapReads:
        """Reads of tensor maps in global memory by its copies."""
        return MapReads(self.reporter, self.clocks, self.lanes.shape, self.early_stores)

    @cached_property
    def warpgroups(self) -> WarpgroupProducts:
        """Products of its warpgroups."""
        return WarpgroupProducts(self.reporter, self.clocks)

    @cached_property
    def product_times(self) -> ProductTimes:
        """What its warps have done with registers of products."""
        return ProductTimes(self.reporter, self.warpgroups, self.lanes.shape)

    @cached_property
    def barriers(self) -> Barriers:
        """The barriers of its blocks."""
        return Barriers(self.lanes, self.clocks, self.reporter)

    @cached_property
    def cluster(self) -> ClusterBarrier:
        """The barriers of its clusters."""
        return ClusterBarrier(self.lanes, self.clocks, self.reporter)

    @cached_property
    def phases(self) -> MbarrierPhases:
        """The phases of its mbarriers."""
        made = MbarrierPhases(self.clocks, self.shared, self.lanes.shape)
        made.told = None if self.timeline is None else self.timeline.phase
        return made

    @property
    def shape(self) -> tuple[int, int, int]:
        """Blocks, warps and lanes."""
        return self.lanes.shape

    def function(self, row: Operation) -> Callable[..., tuple[Array, ...]]:
        """Return what computes an operation on the batch's target, in its engine."""
        row = row.for_target(self.target)
        return row.compute if row.native is None or not self.native else row.native

    def leave(self, lanes: Array) -> None:
        """End threads."""
        made = vars(self)
        if "async_operations" in made:
            self.async_operations.exited(lanes)
        if "warpgroups" in made:
            self.warpgroups.exited(lanes)
        if self.clocks.scopes.cluster > 1 and self.reporter.tracking:
            self._know_at_exit(lanes)
        self.lanes.exit(lanes)
        if "barriers" in made:
            self.costs.barrier(self.barriers.exited())
        if "cluster" in made:
            self.costs.barrier(self.cluster.exited())

    def _know_at_exit(self, lanes: Array) -> None:
        """Join what threads of clusters know when they exit; look at what others did in blocks whose last one exits."""
        left = np.asarray((self.lanes.alive & ~lanes).any(axis=(1, 2)))
        for block in np.flatnonzero(lanes.any(axis=(1, 2))).tolist():
            warps = np.flatnonzero(lanes[block].any(axis=-1)).tolist()
            moment = self.clocks.moment()
            of = [moment.of(block, warp, np.flatnonzero(lanes[block, warp]).tolist()) for warp in warps]
            known = joined([self._at_exit.get(block), *of])
            if left[block] or known is None:
                self._at_exit[block] = known
            else:
                late = None if "late_reads" not in vars(self) or self.late_reads is None else self.late_reads.at_end
                self.shared.ended(block, self.phases.known_at, known, late)
                self.shared.outlived(block, self.phases.unheard(block, known))
                if "async_operations" in vars(self):
                    self.shared.outlived(block, self.async_operations.outlived(block, self.shared.blocks_of))

    def hasten(self, rounds: int) -> bool:
        """Complete asynchronous operations after rounds of polls without success; False if there are none."""
        return "async_operations" in vars(self) and self.async_operations.hasten(rounds, self.phases.numbers)

    def stand(self, lanes: Array, acts: Site | None, where: str = "") -> None:
        """Report and release threads that wait at barriers for others that never arrive: `Barriers.stand`."""
        self.barriers.stand(lanes, acts, where)
        if "cluster" in vars(self):
            self.cluster.stand(lanes, acts, where)

    def finish(self) -> None:
        """End all threads that have not exited."""
        if self.lanes.any_waiting:
            self.stand(self.lanes.waiting, None)
        if self.lanes.alive.any():
            self.leave(self.lanes.alive)
        if "async_operations" in vars(self):
            self.async_operations.finish()
        if "register_limits" in vars(self):
            self.register_limits.finish()
        if "map_reads" in vars(self):
            self.map_reads.finish()
        self.shared.end()

    def shuffled(self, number: int) -> Array | None:
        """Return an order for a number of turns, drawn from the seed and the time; None for the given order."""
        if not self.seed or number < 2:
            return None
        first = (self.seed << 32 ^ self.clocks.now * 0x9E3779B9) % (1 << 63)
        keys = np.arange(number, dtype=np.uint64) + np.uint64(first)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # Vigna's splitmix64
            keys = (keys ^ keys >> np.uint64(shift)) * np.uint64(factor)
        return np.argsort(keys, kind="stable")

    # Registers

    def filled(self, value: Any, kind: str) -> WarpRegister:
        """Return a register with one value, or the values of an array, in every lane."""
        bits = np.asarray(value).astype(DTYPES[kind])
        return WarpRegister(np.broadcast_to(bits, self.shape) if bits.ndim else everywhere(bits[()], self.shape))

    def operand(self, x: Any, type_: str, kind: str, who: str) -> WarpRegister:
        """Return a register as it is, or one with a number in every lane.

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
            Anything else, or a number that the type cannot represent.
        """
        if isinstance(x, WarpRegister):
            return x
        if not is_number(x):
            raise OperandError(f"{who} is {type(x).__name__}; expected a register or a number")
        return WarpRegister(everywhere(DTYPES[kind](literal(x, type_, kind, who)), self.shape))

    def read(self, site: Site, registers: Sequence[WarpRegister], needed: Sequence[Array]) -> list[Array]:
        """Return the bits of registers, `[block, warp, lane]`; report the needed lanes of each that hold poison."""
        self.check(site, registers, needed)
        return [register.bits for register in registers]

    def check(self, site: Site, registers: Sequence[WarpRegister], needed: Sequence[Array]) -> None:
        """Report the needed lanes of registers that hold poison."""
        for i, (register, lanes) in enumerate(zip(registers, needed, strict=True)):
            if register.shadow is not None:
                bad = register.shadow.poison(lanes)
                if not bad.any():
                    continue
                if register.shadow.origin is not None:
                    self.reporter.decides(register.shadow.origin, site, bad)
                    continue
                which = f"; it is number {i} of {len(registers)} here" if len(registers) > 1 else ""
                detail = _origin(register.site, self.poison_travels) + which
                self.reporter.report("poison", site, bad, other=register.site, detail=detail)

    def decide(self, site: Site, poison: Poison | None, lanes: Array) -> None:
        """Report the lanes whose bytes, `[block, warp, lane, byte]`, hold poison: it decides something."""
        if poison is not None and poison.origin is not None:
            bad = lanes & poison.bits.any(axis=-1)
            if bad.any():
                self.reporter.decides(poison.origin, site, bad)

    def carried(self, registers: Sequence[WarpRegister], site: Site, lanes: Array) -> Carried | None:
        """Return the poison of registers in some lanes, which a line reads; None if there is none."""
        of: dict[int, bool] = {}  # registers of a fragment share a shadow

        def spoilt(x: RegisterShadow | None) -> bool:
            if x is not None and id(x) not in of:
                of[id(x)] = not x.clean(lanes)
            return x is not None and of[id(x)]

        bad = [spoilt(x.shadow) for x in registers]
        if not any(bad):
            return None
        shadows = [x.shadow for x, some in zip(registers, bad, strict=True) if some and x.shadow is not None]
        if len(shadows) > 1:  # one origin is kept: that of most lanes
            shadows.sort(key=lambda x: -np.count_nonzero(x.poison(lanes)))
        masks = []
        for x in registers:
            mask = np.zeros(self.shape, x.bits.dtype) if x.shadow is None else x.shadow.mask(x.bits.dtype)
            masks.append(np.where(lanes, mask, x.bits.dtype.type(0)))
        origin = next((x.origin for x in shadows if x.origin is not None), None)
        made = next((x.site for x in shadows if x.site is not None), site)
        return Carried(masks, made, origin)

    def held(self, bits: Array, found: Carried) -> Poison:
        """Return poison of registers as that of bytes, `[block, warp, lane, byte]`, which memory can hold."""
        origin = found.origin
        if origin is None:
            says = _origin(found.site, travels=True)
            origin = self.reporter.origin("poison", found.site, np.asarray(bits.any(axis=-1)), says)
        return Poison(bits, origin)

    def made(
        self, bits: Array, lanes: Array, site: Site, poison: Array | None = None, origin: Origin | None = None
    ) -> WarpRegister:
        """Return a result that lanes have written, except those that hold poison.

        Parameters
        ----------
        bits : ndarray
        lanes : ndarray of bool
        site : Site
        poison : ndarray, optional
            Its poison bits, of its dtype; or bool, for all bits of lanes.
        origin : Origin, optional
            Of the poison.
        """
        if bits.shape != self.shape:
            bits = np.broadcast_to(bits, self.shape)
        return WarpRegister(bits, self._shadow(lanes, site, poison, origin))

    def _shadow(
        self, lanes: Array, site: Site, poison: Array | None, origin: Origin | None
    ) -> RegisterShadow | None:  # fmt: skip
        """Return the shadow of a result: see `made`."""
        if not self.reporter.tracking:
            return None
        written, mask = None if lanes is self.lanes.alive else lanes, None
        if poison is not None and poison.any():
            clean = ~poison if poison.dtype == np.bool_ else poison == 0
            written = clean if written is None else written & clean
            if poison.dtype != np.bool_:
                mask = np.where(lanes, poison, ~poison.dtype.type(0))
        return None if written is None else RegisterShadow(written, site, mask, origin)

    def fragment(
        self, registers: Array | Fragment, lanes: Array, site: Site, poison: Array | None = None,
        origin: Origin | None = None,
    ) -> Results:  # fmt: skip
        """Return the registers of a fragment, `[block, warp, register, lane]`, as `made` does each.

        With bool poison, `[block, warp, lane]`, all of them hold poison there, and share a shadow.
        """
        numbers = range(registers.shape[-2])
        if poison is None or poison.ndim < len(registers.shape):
            shadows = [self._shadow(lanes, site, poison, origin)] * len(numbers)
        else:
            shadows = [self._shadow(lanes, site, poison[..., i, :], origin) for i in numbers]
        if isinstance(registers, Fragment):
            return tuple(FragmentRegister(registers, i, x) for i, x in enumerate(shadows))
        return tuple(WarpRegister(registers[..., i, :], x, (registers, i)) for i, x in enumerate(shadows))

    def read_fragment(self, site: Site, registers: Sequence[WarpRegister], lanes: Array) -> Array:
        """Bits of registers as a fragment, `[block, warp, register, lane]`: the one that they are parts of, if so.

        Poison is reported, unless it is followed.
        """
        if not self.reporter.follows:
            self.read(site, registers, [lanes] * len(registers))
        return self.together(registers)

    @staticmethod
    def together(registers: Sequence[WarpRegister]) -> Array:
        """Bits of registers as a fragment: the one that they are parts of, if so, as after `fragment`."""
        part = registers[0].part
        if part is not None:
            whole, first = part
            parts = (x.part for x in registers)
            if all(x is not None and x[0] is whole and x[1] == first + i for i, x in enumerate(parts)):
                every = whole.registers if isinstance(whole, Fragment) else whole
                return every[..., first : first + len(registers), :]
        return np.stack([x.bits for x in registers], axis=-2)


def _origin(site: Site | None, travels: bool) -> str:
    what = "the lane reads a register that it never wrote"
    what += ", or that was computed from one" * travels
    if site is None:
        return what
    made, loaded = site.instruction, ""
    if isinstance(made, Access | MatrixMove | WmmaMove) and made.direction == "load":
        loaded = ", or loading there memory that was never written"
    if isinstance(made, Operation) and made.passes is not None:
        loaded = ", or given there what another lane never wrote"
    where = f"being masked off where it was made, at {site.what}"
    return f"{what}, {where}{loaded}"
