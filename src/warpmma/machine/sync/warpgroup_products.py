"""Products of warpgroups that are not complete: their groups, and who may touch what they read and write.

The rules (PTX ISA 9.1, 9.7.15; measured on an H200):

1. A product reads its tiles in shared memory, as the async proxy does, until it is complete: until a warp of the
   warpgroup has waited for its group. The wait of one warp is enough for the operands of all four (measured: 660,000
   products, none wrong). The reads are those of an agent, the groups of the warpgroup; a thread that waits is ordered
   behind it.
2. Its D is computed when it is issued; the registers of a warp are pending until this warp waits. A product may
   accumulate into pending registers, and copies of them are pending too; any other use of them is an error where it
   decides something, and what is computed from them stays poison after the wait.
   The shadow of a register knows its product (rule 4 of `warp_register`); front ends settle registers after a wait.
3. `wgmma.commit_group` makes a group of the warp's products that are in none yet; `wgmma.wait_group n` waits for all
   groups of the warp but the last n. A product that is in no group is never complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..._arrays import Array
from ...isa import WarpgroupInstruction
from ...registers import LANES
from ..base import Fragment, Origin, Site, WarpRegister, of_warpgroups
from ..memory import Allocation, Touch
from ..order import Completes, VectorClocks
from ..report import Reporter
from .async_operations import Touched, report_overwritten

_PENDING = "a register of D is used, and its warp has not waited for the product with wgmma.wait_group"


@dataclass(eq=False, kw_only=True)
class WarpgroupProduct:
    """A product of some warpgroups.

    Attributes
    ----------
    active : ndarray of bool
        Warps that have not waited for it, `[block, warp]`.
    reading : ndarray of bool
        Warps of warpgroups none of which has waited.
    committed : ndarray of int
        How many groups a warp has committed since the product's own; -1 before that.
    words : ndarray of uint64
        Of the reads, by warp, once they are over.
    columns : ndarray of int
        Columns of D of all products that a warp has issued, this one included, `[block, warp]`.
    """

    site: Site
    step: int  # of the program; -1 outside of one, and where warps come from several steps
    origin: Origin | None
    active: Array
    reading: Array
    committed: Array
    sources: list[Touched] = field(default_factory=list)
    words: Array
    columns: Array


class WarpgroupProducts:
    """The products of a batch of blocks.

    Parameters
    ----------
    reporter : Reporter
    clocks : VectorClocks
    """

    def __init__(self, reporter: Reporter, clocks: VectorClocks) -> None:
        self._reporter, self._clocks = reporter, clocks
        self._pending: list[WarpgroupProduct] = []
        self.step = -1  # of the program, that issues products
        self._last: tuple[WarpgroupInstruction, Fragment, Array] | None = None
        self.issued: Array = np.zeros((1, 1), np.int64)  # columns of D of a warp's products, `[block, warp]`
        self.complete: Array = np.zeros((1, 1), np.int64)  # those that it has waited for: its first ones

    @property
    def pending(self) -> list[WarpgroupProduct]:
        """The products that some warp has not waited for."""
        return self._pending

    def issue(
        self, site: Site, lanes: Array, sources: Sequence[Touched], columns: int, *, marked: bool
    ) -> WarpgroupProduct | None:
        """Begin a product of whole warpgroups, bool `[block, warp, lane]`.

        Parameters
        ----------
        site : Site
        lanes : ndarray of bool
        sources : sequence of (Allocation, Touch)
            What it reads.
        columns : int
            Of its D.
        marked : bool
            Whether its registers are pending.

        Returns
        -------
        WarpgroupProduct or None
            Whose `active` warps have not waited for it; its `origin` is that of the poison that its registers are
            meanwhile. None if hazards are off.
        """
        if not self._reporter.tracking:
            return None
        warps = np.asarray(lanes.any(axis=-1))
        self.issued = self.issued + columns * warps
        origin = self._reporter.origin("pending", site, lanes, _PENDING) if marked else None
        product = WarpgroupProduct(
            site=site, step=self.step, origin=origin, active=warps, reading=warps, committed=np.full(warps.shape, -1),
            sources=[*sources], words=np.zeros(warps.shape, np.uint64), columns=self.issued,
        )  # fmt: skip
        for allocation, touch in product.sources:
            allocation.shadow.will_read(touch, partial(report_overwritten, self._reporter))
        self._pending.append(product)
        return product

    def computed(self, record: WarpgroupInstruction, registers: Fragment | None, codes: Array) -> None:
        """Note the D of the last product, as registers, of all warps, and as codes: mostly it is the C of the next."""
        self._last = None if registers is None else (record, registers, codes)

    def accumulated(self, record: WarpgroupInstruction, registers: Sequence[WarpRegister]) -> Array | None:
        """Return the codes `[n, row, column]` of C in all warps, if its registers are the D of the last product."""
        if self._last is None:
            return None
        of, last, codes = self._last
        if of.format("D") != record.format("C") or of.layout("D") != record.layout("C"):
            return None
        parts = enumerate(x.part for x in registers)
        return codes if all(x is not None and x[0] is last and x[1] == i for i, x in parts) else None

    # Rule 3

    def commit(self, lanes: Array) -> None:
        """Make a group of each warp's products that are not in one yet."""
        warps = lanes.any(axis=-1)
        for product in self._pending:
            product.committed = product.committed + warps

    def wait(self, lanes: Array, last: int) -> None:
        """Complete all but the last groups of each warp."""
        warps = np.asarray(lanes.any(axis=-1))
        observed: Array = np.zeros(warps.shape, np.uint64)  # the last of each warp: that orders the earlier ones, too
        for product in self._pending:
            done = product.active & warps & (product.committed >= last) & (product.committed >= 0)
            if not done.any():
                continue
            self._end_reading(product, done)
            np.maximum(observed, product.words, out=observed, where=done)
            product.active = product.active & ~done
            self.complete = np.where(done, np.maximum(self.complete, product.columns), self.complete)
            if product.origin is not None:
                self._reporter.settled(product.origin, LANES * int(np.count_nonzero(done)))
        self._pending = [x for x in self._pending if x.active.any()]
        if observed.any():
            self._clocks.observe_of_warps(lanes, observed)

    def _end_reading(self, product: WarpgroupProduct, done: Array) -> None:
        """Rule 1."""
        over = product.reading & of_warpgroups(done)
        if not over.any():
            return
        product.reading = product.reading & ~over
        left: list[tuple[Allocation, Touch]] = []
        for allocation, touch in product.sources:
            ended, rest = touch.of(np.broadcast_to(over[..., None], touch.lanes.shape)), touch
            if ended.number:
                by = ended.completed(Completes.WARPGROUP)
                allocation.shadow.has_read(by)
                ended.mark(product.words, by)
                rest = touch.of(~over[..., None] & touch.lanes)
                allocation.shadow.still_to_read(touch, rest)
            if rest.number:
                left.append((allocation, rest))
        product.words = np.where(over, of_warpgroups(product.words, np.maximum), product.words)
        product.sources = left

    def exited(self, lanes: Array) -> None:
        """Report threads that exit before they have waited for their products."""
        for product in self._pending:
            left = lanes & product.active[..., None]
            says = "the thread exits without waiting for its product with wgmma.wait_group"
            self._reporter.report("pending", product.site, left, detail=says)
