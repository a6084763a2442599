"""Instructions by which threads wait for each other, and end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import KernelError, OperandError
from ...operations import Barrier, Exit, Fence, Hint, Stack, Trap
from ..base import Site, WarpRegister
from ..block import Batch, Results
from ..sync import Awaited
from .load_store import address, check_whole, read
from .map_order import acquire_maps, release_maps


def barrier(batch: Batch, site: Site, row: Barrier, operands: Sequence[Any], lanes: Array) -> Results:
    """Arrive at a barrier of the block or of the warp."""
    if row.action == "warp":
        (bits,) = read(batch, site, operands, lanes)
        batch.barriers.warp(site, lanes, bits)
        return ()
    if row.cluster:
        if row.action == "arrive":
            batch.costs.barrier(batch.cluster.arrive(site, lanes, aligned=row.aligned, releases=row.orders))
        else:
            batch.cluster.wait(site, lanes)
        return ()
    if not lanes.any():
        return _results(batch, site, row, None, lanes)
    predicate, awaited = None, None
    if row.action == "red":
        *operands, last = operands
        (predicate,) = read(batch, site, [last], lanes)
        awaited = Awaited(row.reduction or "popc", lanes)
    met = 0
    for number, threads, some in _numbers(batch, site, [x for x in operands if x is not None], lanes):
        met += batch.barriers.arrive(
            site, some, number, threads, wait=row.action != "arrive", aligned=row.aligned, awaited=awaited,
            predicate=predicate,
        )  # fmt: skip
    batch.costs.barrier(met)
    return _results(batch, site, row, awaited, lanes)


def _results(batch: Batch, site: Site, row: Barrier, awaited: Awaited | None, lanes: Array) -> Results:
    """Return the result of `red`: poison in lanes that still wait, which get the result when they continue."""
    if row.reduction is None:
        return ()
    if awaited is None:
        return (batch.filled(0, row.outputs[0]),)
    batch.barriers.late = awaited if awaited.lanes.any() else None
    return (batch.made(awaited.bits, lanes, site, ~awaited.there),)


def _numbers(batch: Batch, site: Site, operands: Sequence[Any], lanes: Array) -> list[tuple[int, int | None, Array]]:
    """Numbers of barriers and of their threads, and which lanes name them; of several, the lowest first."""
    if not any(isinstance(x, WarpRegister) for x in operands):  # as nearly always
        first, *more = (min(x, 1 << 62) for x in operands)
        return [(first, more[0] if more else None, lanes)]
    columns = []
    for x in operands:
        if isinstance(x, WarpRegister):
            columns.append(read(batch, site, [x], lanes)[0].astype(np.int64))
        else:
            columns.append(np.broadcast_to(np.int64(min(x, 1 << 62)), lanes.shape))
    named = np.unique(np.stack([x[lanes] for x in columns], axis=1), axis=0).tolist()
    if len(named) == 1:
        (only,) = named
        return [(only[0], only[1] if len(only) > 1 else None, lanes)]
    return [
        (each[0], each[1] if len(each) > 1 else None,
         lanes & np.all([x == n for x, n in zip(columns, each, strict=True)], axis=0))
        for each in named
    ]  # fmt: skip


def fence(batch: Batch, site: Site, row: Fence, operands: Sequence[Any], lanes: Array) -> Results:
    """Order earlier accesses of threads before later ones."""
    if row.maps == "release":  # the fence passes it on
        release_maps(batch, lanes)
    if row.order != "weak" and batch.reporter.tracking:
        batch.clocks.fence(lanes, row.order, batch.clocks.scopes.of(row.scope))
    if row.crosses and batch.reporter.tracking and lanes.any():
        batch.clocks.fence_proxy(lanes, row.crosses)
    if row.maps == "acquire" and batch.reporter.tracking and lanes.any():
        acquire_maps(batch, address(batch, site, operands[0], lanes), lanes)
    return ()


def hint(batch: Batch, site: Site, row: Hint, operands: Sequence[Any], lanes: Array) -> Results:
    """Change nothing; check that warps and warpgroups set their registers as a whole."""
    if row.limits:
        check_whole(batch, site, lanes)
        batch.register_limits.note(site, row, int(operands[0]), lanes)
    return ()


def trap(batch: Batch, site: Site, row: Trap, operands: Sequence[Any], lanes: Array) -> Results:
    """End the launch."""
    if not lanes.any():
        return ()
    block, warp, lane = np.argwhere(lanes)[0].tolist()
    more = int(np.count_nonzero(lanes)) - 1
    others = f" (and {more} more thread{'s' * (more > 1)})" if more else ""
    block = batch.reporter.running(block)
    raise KernelError(f"{site}: block {block}, warp {warp}, lane {lane}{others} ended the kernel")


def stack(batch: Batch, site: Site, row: Stack, operands: Sequence[Any], lanes: Array) -> Results:
    """Refuse what programs have, whose functions have frames."""
    raise OperandError(
        f"{site.mnemonic}: threads of a kernel in Python have no stack; local memory is addressed as .local"
    )


def leave(batch: Batch, site: Site, row: Exit, operands: Sequence[Any], lanes: Array) -> Results:
    """End threads."""
    batch.leave(lanes)
    return ()
