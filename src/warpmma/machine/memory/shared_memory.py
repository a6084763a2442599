"""The shared memory of a batch of blocks: each block has its own.

The rules (PTX ISA 9.1, 5.1.7 and 9.7.9.23; `lab.record.clusters`, measured on an H200):

1. The memory of a block begins at its rank in the cluster times 2**24: so an address names the block, in all blocks of
   a cluster alike. Without a cluster every rank is 0.
2. `.shared::cta`, which `.shared` means, is the thread's own block. `.shared::cluster` and generic addresses reach
   every block of the cluster that has threads left; an H200 fails a launch that reaches for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from ..._arrays import Array, frozen
from ...operations import RANK_BIT
from ...registers import LANES
from ..base import SPARE, Lanes, Site, alike_in_blocks, flat, in_blocks, locate
from ..order import VectorClock, VectorClocks, block_of, thread_of
from ..report import Reporter, element_at
from .access_shadow import AccessShadow
from .accesses import Touch
from .address_space import nearest
from .allocation import Allocation
from .lockstep_touch import LockstepTouch
from .shadow_memory import Look, Watch
from .spaces import Space

Variables = Sequence[tuple[str, range]]
Late = Callable[[range, int, VectorClock], Iterable[tuple[Any, Site]]]

_ALIGNMENT = 16  # of the start of each block's memory
_MBARRIER, _MBARRIERS = 8, 1024  # bytes of one, and numbers of them in a block


@lru_cache(maxsize=8)
def _laid_out(size: int, places: tuple[range, ...] | None) -> tuple[Array | None, tuple[Array, Array]]:
    """Return the bytes from each address to the end of its variable, and where variables begin and end.

    Without variables all is one piece.
    """
    if places is None:
        return None, (frozen(np.zeros(1, np.uint64)), frozen(np.array([size], np.uint64)))
    end = max((place.stop for place in places), default=0)
    room = np.maximum(size - np.arange(size + 1), 0).astype(np.int32)
    room[:end] = 0
    for place in places:
        room[place.start : place.stop] = np.arange(len(place), 0, -1)
    pieces = [*sorted((x.start, x.stop) for x in places if x), *([(end, size)] if size > end else [])]
    starts, ends = np.array(pieces, np.uint64).reshape(-1, 2).T
    return frozen(room), (frozen(starts), frozen(ends))


class SharedMemory(Space):
    """The shared memory of a batch of blocks.

    Parameters
    ----------
    reporter : Reporter
    clocks : VectorClocks
    lanes : Lanes
    size : int
        Bytes of each block.

    Attributes
    ----------
    scope : ThreadScope
        The threads that can access it: those of a block, or of a cluster.
    """

    name = "shared"

    def __init__(self, reporter: Reporter, clocks: VectorClocks, lanes: Lanes, size: int) -> None:
        self.size, self._lanes, self._cluster = size, lanes, clocks.scopes.cluster
        self.scope = clocks.scopes.of("cluster")
        self._stride = -(-size // _ALIGNMENT) * _ALIGNMENT
        self._reporter, self._clocks = reporter, clocks
        self._variables: list[tuple[str, range]] = []
        self._room, self._bounds = _laid_out(size, None)

    @cached_property
    def _all(self) -> Allocation:
        """The memory of all blocks, made at the first access."""
        size = self._lanes.shape[0] * self._stride
        self._piece = SPARE.take(size)
        data = self._piece[:size]
        data[:] = 0
        # Not a method: memory in a reference cycle would stay until the next garbage collection.
        element = partial(_element, self._variables) if self._cluster == 1 else partial(_of_rank, self._variables)
        key = "shared", self._clocks.blocks.start
        return Allocation(
            self._reporter, data, written=False, scope=self.scope, element=element, key=key, block=self._stride
        )

    @cached_property
    def _base(self) -> Array:
        """Where the memory of each block begins, `[block, 1, 1]`."""
        return (np.arange(self._lanes.shape[0], dtype=np.int64) * self._stride)[:, None, None]

    def declare(self, variables: Variables) -> None:
        """Set where variables are: bytes between them are out of bounds, and dynamic shared memory follows the last.

        Parameters
        ----------
        variables : sequence of (str, range)
            Names for hazards, by address.
        """
        self._variables[:] = variables
        self._room, self._bounds = _laid_out(self.size, tuple(place for _, place in variables))

    def contents(self) -> Iterator[Array]:
        """Yield all bytes, if any was accessed."""
        if "_all" in vars(self):
            yield self._all.data

    def end(self) -> None:
        """Give back memory: the batch ends."""
        if "_all" in vars(self):
            self._all.shadow.end()
            SPARE.give_back([self._piece])
            del self._all

    def watches(self, what: str, *, reads: Look, writes: Watch) -> None:
        """Let functions see accesses: see `Shadow.watches`."""
        self._all.shadow.watches(what, reads=reads, writes=writes)

    def of_block(self, place: int) -> Array:
        """Return the bytes of one block of the batch."""
        start = place * self._stride
        return self._all.data[start : start + self.size]

    def touch(
        self, site: Site, address: Array, size: int, lanes: Array, alignment: int
    ) -> Iterator[tuple[Allocation, Touch]]:
        """See `Space.touch`: all blocks' memory is one piece."""
        yield self._all, self._touch(site, address, size, lanes, alignment)

    def _touch(self, site: Site, address: Array, size: int, lanes: Array, alignment: int) -> Touch:
        """Return the access of the lanes whose addresses are valid; report the others."""
        if self._cluster > 1:
            return self._in_cluster(site, address, size, lanes, alignment)
        if self._may_be_alike(lanes) and alike_in_blocks(lanes) and alike_in_blocks(address):
            found = locate(flat(address[:1]), flat(lanes[:1]), self._bounds, size, alignment)
            if found is not None:
                return self._in_lockstep(site, address, size, lanes, found[1] + int(self._bounds[0][found[0]]))
        if (one := locate(flat(address), flat(lanes), self._bounds, size, alignment)) is not None:
            piece, inside = one
            return self._at(site, address, size, lanes, inside, int(self._bounds[0][piece]))
        lanes = self._valid(site, address, address, size, lanes, alignment)
        return self._at(site, address, size, lanes, place=self._base + address.astype(np.int64))

    def _may_be_alike(self, lanes: Array) -> bool:
        """Whether to look if blocks access the same places: of a few lanes of each it does not pay."""
        several = len(lanes) > 1 and int(np.count_nonzero(lanes[0])) >= LANES
        return several and self._all.shadow.in_lockstep

    def _in_lockstep(self, site: Site, address: Array, size: int, lanes: Array, offset: Array) -> Touch:
        """Return an access of the same lanes of each block, at the offsets of those of the first."""
        time = self._clocks.tick(site)
        part = Touch(
            site=site, time=time, clocks=self._clocks, address=address[:1], lanes=lanes[:1], offset=offset, size=size,
            who=self._clocks.who_of_first(time, lanes[:1], len(offset)),
        )  # fmt: skip
        return LockstepTouch(part, lanes=lanes, address=address, blocks=len(lanes), step=self._stride)

    def _valid(
        self, site: Site, address: Array, inside: Array, size: int, lanes: Array, alignment: int
    ) -> Array:  # fmt: skip
        """Return the lanes whose addresses are valid `inside` of a block; report the others."""
        lanes = lanes & self._reporter.aligned(site, address, alignment, lanes)
        outside = lanes & ((inside > self.size) | (inside.astype(np.int64) > self.size - size))
        self._reporter.report("bounds", site, outside, address, self._beyond(size))
        lanes = lanes & ~outside
        if self._room is not None:
            between = lanes & (self._room[np.where(lanes, inside, 0).astype(np.int64)] < size)
            self._reporter.report("bounds", site, between, address, self._nearest(size))
            lanes = lanes & ~between
        return lanes

    def ended(self, block: int, mbarriers: Sequence[int], clock: VectorClock, late: Late | None = None) -> None:
        """Report other blocks' accesses to the memory of a block that nothing orders before its last thread ends (A18).

        Parameters
        ----------
        block : int
            Of the batch.
        mbarriers : sequence of int
            Offsets of mbarriers in the memory of all blocks: what signals these is counted, and needs no order.
        clock : VectorClock
            What the threads of the block know when they end, joined.
        late : callable, optional
            Returns accesses to a range of offsets, in words with their lines, that end later than they were noted.
        """
        if "_all" not in vars(self) or not isinstance(shadow := self._all.shadow, AccessShadow):
            return
        place, number = range(block * self._stride, (block + 1) * self._stride), self._clocks.blocks[block]
        but = [range(at, at + _MBARRIER) for at in mbarriers if at in place]
        for word in shadow.unordered_in(place, but, number, clock):
            if (site := self._clocks.site(word)) is not None:
                report_outlived(self._reporter, self._lanes.shape, word, site, number)
        for word, site in late(place, number, clock) if late is not None else ():
            report_outlived(self._reporter, self._lanes.shape, word, site, number)

    def outlived(self, block: int, words: Array) -> None:
        """Report signals of other blocks, access words, at mbarriers of a block that may have ended before (A18)."""
        number = self._clocks.blocks[block]
        at: dict[Site, Array] = {}
        for word in words:
            if (site := self._clocks.site(word)) is not None:
                lanes = at.setdefault(site, np.zeros(self._lanes.shape, bool))
                lanes[(block_of(word) - self._clocks.blocks.start, *thread_of(word))] = True
        name = self._reporter.block_named(number)
        says = f"at an mbarrier of {name}; no thread of {name} waits for that phase, and nothing else orders the signal"
        for site, lanes in at.items():
            self._reporter.report("race", site, lanes, detail=f"{says} before the last one ends", rule="A18")

    # Rules 1 and 2

    @property
    def _ranks(self) -> Array:
        """The rank of each block, `[block, 1, 1]`."""
        return (np.arange(self._lanes.shape[0], dtype=np.int64) % self._cluster)[:, None, None]

    @property
    def starts(self) -> Array:
        """The address of each block's memory, `[block, 1, 1]`."""
        return self._ranks << RANK_BIT

    def reached(self, site: Site, address: Array, lanes: Array, *, own: bool) -> Array:
        """Return which lanes reach the memory of a block by an address; report the others."""
        rank = _rank(address)
        if own:
            far = lanes & (rank != self._ranks)
            self._reporter.report("bounds", site, far, address, _foreign)
            return np.asarray(lanes & ~far)
        beyond = lanes & (rank >= self._cluster)
        says = f"no block of the cluster, which has the ranks 0 to {self._cluster - 1}, is at this address"
        self._reporter.report("bounds", site, beyond, address, says)
        lanes = lanes & ~beyond
        running = np.asarray(self._lanes.alive.any(axis=(1, 2)))
        gone = lanes & ~running[np.where(lanes, self._blocks_at(rank), 0)]
        self._reporter.report("bounds", site, gone, address, _exited)
        return np.asarray(lanes & ~gone)

    def _blocks_at(self, rank: Array) -> Array:
        """Return the blocks that ranks mean, `[block, warp, lane]`."""
        first = np.arange(self._lanes.shape[0], dtype=np.int64)[:, None, None] // self._cluster * self._cluster
        return np.asarray(first + rank)

    def _in_cluster(self, site: Site, address: Array, size: int, lanes: Array, alignment: int) -> Touch:
        """Return the access of the lanes whose addresses are valid in a block of their cluster."""
        lanes = self.reached(site, address, lanes, own=False)
        rank, inside = _rank(address), (address & address.dtype.type((1 << RANK_BIT) - 1)).astype(np.int64)
        lanes = self._valid(site, address, inside, size, lanes, alignment)
        return self._at(site, address, size, lanes, place=inside + self._blocks_at(rank) * self._stride)

    def _beyond(self, size: int) -> Callable[[int], str]:
        """Describe an address beyond shared memory."""

        def says(address: int) -> str:
            if self._cluster == 1 and address >> RANK_BIT:
                return f"the address of a block of rank {address >> RANK_BIT}, and each block is a cluster of its own"
            text = f"{size} bytes that are not all in shared memory, which has {self.size} bytes"
            return f"{text}; the nearest, {self._near(address, size)}" if self._variables else text

        return says

    def _near(self, address: int, size: int) -> str:
        address = address if self._cluster == 1 else address & (1 << RANK_BIT) - 1
        return nearest(((name, place.start, place.stop) for name, place in self._variables), address, size)

    def _nearest(self, size: int) -> Callable[[int], str]:
        """Describe an address between variables."""

        def says(address: int) -> str:
            near = self._near(address, size)
            return f"{size} bytes that are not all in one variable of shared memory; the nearest, {near}"

        return says

    def named(self, offset: int, size: int) -> tuple[int, str]:
        """Return the block that an offset in the memory of all is in, and the element of so many bytes there."""
        block, address = divmod(offset, self._stride)
        name = _element(self._variables, address, size).removesuffix(f" of {size} bytes")
        return block, name or f"address {address:#x}"

    def blocks_of(self, offset: Array) -> Array:
        """Return the blocks of the batch that offsets in the memory of all are in."""
        return np.asarray(offset // max(self._stride, 1))

    def places_of(self, offset: Array) -> tuple[Array, Array]:
        """Return the blocks of the batch that offsets in the memory of all are in, and the addresses there."""
        block, address = np.divmod(offset, max(self._stride, 1))
        return block, address

    def offsets_of(self, block: Array, address: int) -> Array:
        """Return the offsets in the memory of all of an address in blocks of the batch."""
        return np.asarray(block * self._stride + address)

    def offset_at(self, place: int, address: int) -> int:
        """Return the offset in the memory of all of an address that a thread of a block of the batch names."""
        rank, inside = address >> RANK_BIT, address & (1 << RANK_BIT) - 1
        return (place // self._cluster * self._cluster + rank) * self._stride + inside

    def mbarriers(self, offset: Array) -> Array:
        """Return the numbers of the mbarriers at offsets in the memory of all blocks: see `Agents.completed`."""
        inside = offset % max(self._stride, 1) // _MBARRIER
        return np.asarray(self.blocks_of(offset) * _MBARRIERS + inside % _MBARRIERS)

    def word(self, offset: int) -> int:
        """Return the 64 bits at an offset in the memory of all blocks."""
        return int(self._all.data[offset : offset + 8].view(np.uint64)[0])

    def _at(
        self, site: Site, address: Array, size: int, lanes: Array, inside: Array | None = None, start: int = 0,
        place: Array | None = None,
    ) -> Touch:  # fmt: skip
        """Return the access of lanes.

        `inside` are their offsets from `start` in their block's memory, if known; or `place`, `[block, warp, lane]`,
        has their offsets in the memory of all blocks.
        """
        time = self._clocks.tick(site)
        if inside is not None and len(inside) == lanes.size:
            by_block = inside.reshape(len(self._base), -1)
            by_block += self._base[:, :, 0] + start
            offset = inside
        elif inside is not None:
            offset = in_blocks(inside, lanes, self._stride, start)
        else:
            place = self._base + address.astype(np.int64) if place is None else place
            offset = place.reshape(-1) if lanes.all() else place[lanes]
        who = self._clocks.who(time, lanes, len(offset))
        return Touch(
            site=site, time=time, clocks=self._clocks, address=address, lanes=lanes, offset=offset, size=size, who=who
        )


def report_outlived(reporter: Reporter, shape: tuple[int, int, int], word: Any, site: Site, number: int) -> None:
    """Report an access, a word and its line, to the memory of a block of the grid that may end before it (A18)."""
    at: Array = np.zeros(shape, bool)
    at[(block_of(word) - reporter.first_block, *thread_of(word))] = True
    block = reporter.block_named(number)
    says = f"in the shared memory of {block}, and nothing orders that before the last thread of {block} ends"
    reporter.report("race", site, at, detail=says, rule="A18")


def _rank(address: Array) -> Array:
    """Return the ranks in addresses, unsigned integers, as signed ones."""
    return np.asarray((address >> address.dtype.type(RANK_BIT)).astype(np.int64))


def _foreign(address: int) -> str:
    return (
        f"an address of the block of rank {address >> RANK_BIT} in its cluster, where .shared::cta is the thread's "
        "own; expected .shared::cluster or a generic address"
    )


def _exited(address: int) -> str:
    return f"the block of rank {address >> RANK_BIT} has exited"


def _of_rank(variables: Variables, address: int, size: int) -> str:
    """Name an element in a block of a cluster."""
    name = _element(variables, address & (1 << RANK_BIT) - 1, size)
    return f"{name} of rank {address >> RANK_BIT}" if name else ""


def _element(variables: Variables, address: int, size: int) -> str:
    """Name the element of a variable at an address, in elements of as many bytes as are accessed."""
    for name, place in variables:
        if address in place:
            offset = address - place.start
            return element_at(name, offset) if offset % size else f"{element_at(name, offset, size)} of {size} bytes"
    return ""
