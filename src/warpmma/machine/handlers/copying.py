"""Instructions that copy from global to shared memory while the thread continues: `cp.async` and its groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import OperandError
from ...operations import Copy, CopyGroup
from ..base import Poison, Site, acting
from ..block import Batch, Results, touches
from ..sync import Groups, Touched
from .load_store import address, read


def copy(batch: Batch, site: Site, row: Copy, operands: Sequence[Any], lanes: Array) -> Results:
    """Begin copies."""
    to, source, size, of_source, *policy = operands
    read(batch, site, policy, lanes)
    where, start = address(batch, site, to, lanes), address(batch, site, source, lanes)
    data: Array = np.zeros((*lanes.shape, size), np.uint8)
    held: Poison | None = None
    sources: list[Touched] = []
    moved = 0
    for part, some in _parts(batch, site, of_source, size, lanes):
        moved += part * int(np.count_nonzero(some))
        for _, allocation, touch in touches(batch, site, "global", start, part, some, size) if part else ():
            loaded, poison = allocation.load(touch, part)
            if poison is not None and poison.origin is not None:
                held = poison.on((touch.lanes, slice(part)), data.shape, held)
            if part == size and len(loaded) == lanes.size:
                data = loaded.reshape(data.shape)
            else:
                data[touch.lanes, :part] = loaded
            sources.append((allocation, touch))
    batch.costs.moved(site, "global", moved)
    batch.costs.shared(site, where, size, lanes)
    targets = ((allocation, touch) for _, allocation, touch in touches(batch, site, "shared", where, size, lanes))
    bits = None if held is None else held.of(lanes)
    batch.async_operations.issue(site, where, targets, acting(data, lanes), lanes, sources, "cp.async", bits)
    return ()


def _parts(batch: Batch, site: Site, register: Any, size: int, lanes: Array) -> list[tuple[int, Array]]:
    """Bytes of the source, and the lanes that copy that many."""
    if register is None:
        return [(size, lanes)]
    (given,) = read(batch, site, [register], lanes)
    if register.kind == "pred":  # ignore-src: nothing comes from the source
        given = np.where(given, 0, size)
    taken = given[lanes]
    if (taken > size).any():
        raise OperandError(f"{site.mnemonic}: a source of {taken.max()} bytes for a copy of {size}")
    first = int(taken[0]) if len(taken) else 0
    if bool((taken == first).all()):
        return [(first, lanes)]
    return [(part, lanes & (given == part)) for part in np.unique(taken).tolist()]


def group(batch: Batch, site: Site, row: CopyGroup, operands: Sequence[Any], lanes: Array) -> Results:
    """Commit or wait."""
    reads = batch.map_reads if row.bulk and "map_reads" in vars(batch) else None
    if row.action == "wait_group":
        (groups,) = operands
        if reads is not None:
            reads.wait(lanes, groups, site if row.read else None)
        batch.async_operations.wait(lanes, groups, _groups(row), read=row.read)
        return ()
    if row.action == "commit":
        if reads is not None:
            reads.commit(lanes)
        batch.async_operations.commit(lanes, _groups(row))
    else:
        batch.async_operations.wait(lanes, -1, "cp.async")
    return ()


def _groups(row: CopyGroup) -> Groups:
    return "cp.async.bulk" if row.bulk else "cp.async"
