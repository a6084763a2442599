"""Copies whose bytes an mbarrier counts, or that join groups in bulk: `cp.async.bulk`, its reductions, `st.async`.

The rules are those of `async_operations` and `mbarriers`; and:

1. A copy reads its source at once, through the async proxy, and writes when it completes: large sources lend their
   bytes (`memory.loans`). Stores that an mbarrier counts are of the generic proxy (A1).
2. A reduction combines when it completes, by strong accesses.
3. A copy to other blocks of the cluster is one operation for each: `.multicast::cluster` copies to the same address in
   the blocks of a mask, by rank. What comes from global memory signals the mbarrier at the operand's address in the
   block where it arrives, as on an H200; what comes from shared memory, that at the operand.
4. A copy from shared to shared memory needs a launch with clusters, if only of one block: otherwise an H200 traps.
   Of reductions that is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array
from ...operations import RANK_BIT, AsyncStore, Atomic, BulkCopy
from ...operations import row as _row
from ..base import Poison, Site, joined
from ..block import Batch, Results, touches
from ..memory import Allocation, Content, Touch, content
from ..sync import Touched
from .load_store import address, read
from .mbarriers import signal
from .updating import taking_turns

_NO_CLUSTER = "a copy from shared to shared memory in a launch without clusters: a GPU traps; pass cluster=1, or more"
_UNIT = 16  # bytes; the size of every copy is a multiple of it


def bulk(batch: Batch, site: Site, row: BulkCopy, operands: Sequence[Any], lanes: Array) -> Results:
    """Begin copies in bulk."""
    to, origin, numbers, barriers = _given(batch, site, row, operands, lanes)
    size = numbers[0]
    if not (row.origin == "global" or row.to == "global" or row.operation or batch.clustered):
        batch.reporter.report("bounds", site, lanes, to, _NO_CLUSTER)
        return ()
    batch.reporter.aligned(site, size, _UNIT, lanes)
    for part in np.unique(size[lanes]).tolist():
        if part % _UNIT == 0:
            mask = numbers[1] if row.multicast else None
            _copied(batch, site, row, (to, origin, barriers), part, lanes & (size == part), mask)
    return ()


def destinations(
    batch: Batch, site: Site, to: Array, barriers: Array, mask: Array | None, lanes: Array
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield where copies from global memory arrive, the mbarriers there, and the lanes of these, for each block.

    Parameters
    ----------
    batch : Batch
    site : Site
    to, barriers : ndarray of uint
        The operands, `[block, warp, lane]`.
    mask : ndarray of uint or None
        The ranks of `.multicast::cluster`, bit by bit; None for one copy, to where `to` is.
    lanes : ndarray of bool
    """
    cluster, kept = batch.clocks.scopes.cluster, to.dtype.type((1 << RANK_BIT) - 1)
    if mask is None:
        yield to, barriers & kept | to & ~kept, lanes
        return
    beyond = lanes & (mask >> mask.dtype.type(cluster) != 0)
    batch.reporter.report("bounds", site, beyond, mask, f"a mask with ranks beyond the cluster, which has {cluster}")
    lanes = lanes & ~beyond
    for rank in range(cluster):
        some = lanes & (mask >> mask.dtype.type(rank) & mask.dtype.type(1) != 0)
        if some.any():
            start = to.dtype.type(rank << RANK_BIT)
            yield to & kept | start, barriers & kept | start, some


def _given(
    batch: Batch, site: Site, row: BulkCopy, operands: Sequence[Any], lanes: Array
) -> tuple[Array, Array, list[Array], Array | None]:
    """Return addresses of both ends, numbers of bytes and whatever else is a number, and addresses of mbarriers."""
    to, origin, *more = operands
    barrier = None if row.grouped else more.pop(1)
    ends = address(batch, site, to, lanes), address(batch, site, origin, lanes)
    numbers = [read(batch, site, [x], lanes)[0] for x in more]
    return *ends, numbers, None if barrier is None else address(batch, site, barrier, lanes)


def _copied(
    batch: Batch, site: Site, row: BulkCopy, where: tuple[Array, Array, Array | None], size: int, lanes: Array,
    mask: Array | None,
) -> None:  # fmt: skip
    """Begin copies of so many bytes."""
    to, origin, barriers = where
    number = int(np.count_nonzero(lanes))
    found: Content | None = None
    held: Poison | None = None
    sources: list[Touched] = []
    for _, allocation, touch in touches(batch, site, row.origin, origin, size, lanes, _UNIT) if size else ():
        data, poison = allocation.lend(touch.in_async_proxy())
        if len(data) < number:  # some lanes reach nothing, or another piece of memory
            found = np.zeros((number, size), np.uint8) if found is None else content(found)
            found[touch.lanes[lanes]] = content(data)
        else:
            found = data if mask is None and not row.operation else content(data)
        if poison is not None and poison.origin is not None:
            held = poison.on(touch.lanes[lanes], found.shape, held)
        sources.append((allocation, touch))
    found = np.zeros((number, size), np.uint8) if found is None else found
    for space in (row.origin, row.to):
        batch.costs.moved(site, space.partition("::")[0], number * size)
    if held is not None and row.operation:
        batch.decide(site, held.on(lanes, (*lanes.shape, size)), lanes)
    if barriers is None or row.origin != "global":
        _begin(batch, site, row, to, found, lanes, sources, barriers, held)
        return
    for at, counter, some in destinations(batch, site, to, barriers, mask, lanes):
        if some is lanes:
            _begin(batch, site, row, at, found, lanes, sources, counter, held)
            continue
        which = some[lanes]
        mine = [(allocation, of) for allocation, touch in sources if len((of := touch.of(some)).offset)]
        _begin(batch, site, row, at, content(found)[which], some, mine, counter, held and held.of(which))


def _begin(
    batch: Batch, site: Site, row: BulkCopy | AsyncStore, to: Array, data: Content, lanes: Array,
    sources: list[Touched], barriers: Array | None, poison: Poison | None,
) -> None:  # fmt: skip
    """Issue an operation that brings `data` to addresses."""
    bulk = isinstance(row, BulkCopy)
    space, alignment = (row.to, _UNIT) if isinstance(row, BulkCopy) else ("shared::cluster", row.size)
    combine = partial(_combined, batch, row, space.partition("::")[0]) if row.operation else None
    pieces = touches(batch, site, space, to, data.shape[1], lanes, alignment) if data.nbytes else ()
    targets = ((allocation, touch.in_async_proxy() if bulk else touch) for _, allocation, touch in pieces)
    if barriers is None:
        batch.async_operations.issue(site, to, targets, data, lanes, sources, "cp.async.bulk", poison, combine=combine)
        return
    for found in signal(batch, site, barriers, np.full(lanes.shape, data.shape[1]), lanes):
        batch.async_operations.issue(
            site, to, targets, data, lanes, sources, None, poison, signal=found, combine=combine
        )


def _combined(
    batch: Batch, row: BulkCopy | AsyncStore, space: str, memory: Allocation, touch: Touch, data: Array
) -> None:  # fmt: skip
    """Combine data with the current elements (rule 2). Sums of f32 keep subnormals, as `red` of shared memory does."""
    atomic, space = cast(Atomic, _row(row.red)), "shared" if row.type == "f32" else space
    element = atomic.bits // 8
    words = np.ascontiguousarray(data).view(f"u{element}")
    turns = partial(taking_turns, batch, atomic, space, [words])
    memory.update(touch.strong("relaxed", "gpu"), element, turns)


def store_counted(batch: Batch, site: Site, row: AsyncStore, operands: Sequence[Any], lanes: Array) -> Results:
    """Store registers that an mbarrier counts, or combine them with the current elements."""
    to, *values, barrier = operands
    at, counter = (address(batch, site, x, lanes) for x in (to, barrier))
    data = joined(read(batch, site, values, lanes))[lanes]
    batch.costs.shared(site, at, row.size, lanes)
    _begin(batch, site, row, at, data, lanes, [], counter, None)
    return ()
