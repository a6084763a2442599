"""Copies whose bytes an mbarrier counts, or that join groups in bulk: `cp.async.bulk`, its reductions, `st.async`.

The rules are those of `async_operations` and `mbarriers`; and:

1. A copy reads its source at once. It writes when somebody waits for the phase of the mbarrier that counts it, or for
   its group: until then the destination is pending for everyone who accesses it, and the source for everyone who writes
   it.
2. A reduction changes its elements at once, as strong accesses of its thread; so threads that see the phase complete,
   or that are ordered after its thread, find them changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array
from ...operations import DTYPES, AsyncStore, Atomic, BulkCopy, register_type, row
from ..base import Site, joined
from ..block import Batch, Results, touches
from ..order import CLUSTER_BLOCKS
from ..sync import Groups, Pending, Touched
from .load_store import address, exactly, fitting
from .mbarriers import transacted
from .updating import taking_turns

_UNIT = 16  # bytes, of which all that is copied is a multiple
_ALL_BLOCKS = (1 << CLUSTER_BLOCKS) - 1  # of a cluster, as a mask
_UNPROVIDED = "a block is a cluster of its own, of rank 0 alone"


def bulk(batch: Batch, site: Site, row: BulkCopy, operands: Sequence[Any], lanes: Array) -> Results:
    """Begin copies in bulk."""
    given = exactly(site, operands, len(row.takes), row.syntax)
    to, origin = (address(batch, site, space, x, lanes) for space, x in zip((row.to, row.origin), given, strict=False))
    numbers = [
        batch.read(site, [fitting(site, batch.operand(x, type_, register_type(type_), f"{site.mnemonic}: a number"),
                                  int(type_[1:]))], [lanes])[0]
        for x, type_ in zip(given[2:], row.takes[2:], strict=True) if type_ != "address"
    ]  # fmt: skip
    size = numbers[0]
    if row.multicast:
        others = lanes & (numbers[1] != _ALL_BLOCKS)
        batch.reporter.report("bounds", site, others, numbers[1], f"a mask of blocks, not 1: {_UNPROVIDED}")
        lanes = lanes & ~others
    batch.reporter.aligned(site, size, _UNIT, lanes)
    barriers = None if row.grouped else address(batch, site, "shared", given[3], lanes)
    for part in np.unique(size[lanes]).tolist():
        if part % _UNIT == 0:
            _copied(batch, site, row, (to, origin, barriers), part, lanes & (size == part))
    return ()


def _copied(
    batch: Batch, site: Site, row: BulkCopy, where: tuple[Array, Array, Array | None], size: int, lanes: Array
) -> None:
    """Begin copies of so many bytes."""
    to, origin, barriers = where
    found: Array = np.zeros((int(np.count_nonzero(lanes)), size), np.uint8)
    sources: list[Touched] = []
    for _, allocation, touch in touches(batch, site, row.origin, origin, size, lanes, _UNIT) if size else ():
        found[touch.lanes[lanes]], _ = allocation.load(touch, 1)
        sources.append((allocation, touch))
    for space in (row.origin, row.to):
        batch.costs.moved(site, space, found.size)
    if row.operation:
        _combine(batch, site, row, to, found, lanes)
        copies = Pending(lanes, [])
    else:
        groups: Groups | None = "cp.async.bulk" if row.grouped else None
        copies = _begin(batch, site, row.to, to, found, lanes, sources, groups)
    if barriers is not None:
        transacted(batch, site, barriers, np.full(lanes.shape, size), lanes, copies)


def _begin(
    batch: Batch, site: Site, space: str, to: Array, data: Array, lanes: Array,
    sources: list[Touched], groups: Groups | None, alignment: int = _UNIT,
) -> Pending:  # fmt: skip
    """Reserve what lanes, of which data is, will write (rule 1)."""
    pieces = touches(batch, site, space, to, data.shape[1], lanes, alignment) if data.size else ()
    targets = ((allocation, touch) for _, allocation, touch in pieces)
    return batch.async_operations.issue(site, to, targets, data, lanes, sources, groups)


def _combine(batch: Batch, site: Site, reduction: BulkCopy | AsyncStore, to: Array, data: Array, lanes: Array) -> None:
    """Combine what is there with data of lanes (rule 2)."""
    atomic = cast(Atomic, row(reduction.red))
    element = atomic.bits // 8
    space = reduction.to if isinstance(reduction, BulkCopy) else "shared"
    alignment = _UNIT if isinstance(reduction, BulkCopy) else element
    for memory, allocation, touch in touches(batch, site, space, to, data.shape[1], lanes, alignment):
        words = np.ascontiguousarray(data[touch.lanes[lanes]]).view(f"u{element}")
        turns = partial(taking_turns, batch, atomic, memory.name, [words])
        allocation.update(touch.strong("relaxed", "gpu"), element, turns)


def store_counted(batch: Batch, site: Site, row: AsyncStore, operands: Sequence[Any], lanes: Array) -> Results:
    """Store registers that an mbarrier counts, or combine them with what is there."""
    to, *values, barrier = exactly(site, operands, 2 + row.count, row.syntax)
    at, counter = (address(batch, site, "shared", x, lanes) for x in (to, barrier))
    registers = [
        fitting(site, batch.operand(x, row.type, row.kind, f"{site.mnemonic}: value {i}"), row.bits)
        for i, x in enumerate(values)
    ]
    bits = batch.read(site, registers, [lanes] * len(registers))
    data = joined([x.astype(DTYPES[row.kind], copy=False) for x in bits])[lanes]
    batch.costs.shared(site, at, row.size, lanes)
    if row.operation:
        _combine(batch, site, row, at, data, lanes)
        copies = Pending(lanes, [])
    else:
        copies = _begin(batch, site, "shared", at, data, lanes, [], None, row.size)
    transacted(batch, site, counter, np.full(lanes.shape, row.size), lanes, copies)
    return ()
