"""Loads and stores that order memory: `.relaxed`, `.acquire`, `.release`, `.volatile` (see `causality`)."""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ...operations import Access
from ..base import Site
from ..block import Batch, touches


def load_strongly(
    batch: Batch, site: Site, row: Access, space: str, at: Array, lanes: Array
) -> tuple[Array, Array | None]:
    """Load from a space: bytes `[block, warp, lane, size]`, and which elements are poison."""
    data: Array = np.zeros((*lanes.shape, row.size), np.uint8)
    poison: Array | None = None
    for _, allocation, touch in touches(batch, site, space, at, row.size, lanes):
        data[touch.lanes], bad = allocation.load(touch.strong(row.order, row.scope), row.bits // 8)
        if bad is not None:
            poison = np.zeros((*lanes.shape, row.count), bool) if poison is None else poison
            poison[touch.lanes] = bad
    return data, poison


def store_strongly(batch: Batch, site: Site, row: Access, space: str, at: Array, data: Array, lanes: Array) -> None:
    """Store bytes `[block, warp, lane, size]` to a space."""
    for _, allocation, touch in touches(batch, site, space, at, row.size, lanes):
        if allocation.data.flags.writeable:
            allocation.store(touch.strong(row.order, row.scope), data[touch.lanes])
        else:
            batch.reporter.report("bounds", site, touch.lanes, at, "a store to an array that is read-only")
