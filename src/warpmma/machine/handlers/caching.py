"""Instructions about caches: `prefetch`, `applypriority`, `discard`, and `createpolicy`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import OperandError
from ...operations import CacheControl, CachePolicy
from ..base import Site
from ..block import Batch, Results, touches
from .load_store import address, read


def control(batch: Batch, site: Site, row: CacheControl, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute what changes no bit, but of `discard` what is known of them."""
    at = address(batch, site, operands[0], lanes)
    if row.size:
        for _, allocation, touch in touches(batch, site, row.space, at, row.size, lanes):
            if row.action == "discard":
                allocation.shadow.forgets(touch)
    return ()


def policy(batch: Batch, site: Site, row: CachePolicy, operands: Sequence[Any], lanes: Array) -> Results:
    """Make a cache policy, a b64 register."""
    if row.by == "cvt":
        return (batch.made(read(batch, site, operands, lanes)[0], lanes, site),)
    if row.by == "range":
        where, *sizes = operands
        address(batch, site, where, lanes)
        read(batch, site, sizes, lanes)
        return (batch.made(np.full(batch.shape, row.bits, np.uint64), lanes, site),)
    given = [x.view(np.float32) for x in read(batch, site, [x for x in operands if x is not None], lanes)]
    value = np.where(lanes, given[0], np.float32(1)) if given else np.ones(batch.shape, np.float32)
    if not ((value > 0) & (value <= 1)).all():
        raise OperandError(
            f"{site.mnemonic}: a fraction of {value.min()} to {value.max()}; expected above 0, at most 1"
        )
    parts = np.ceil(value.astype(np.float64) * 16).astype(np.uint64) - np.uint64(1)  # rule 3 of `caches`
    return (batch.made(np.uint64(row.bits) | parts << np.uint64(52), lanes, site),)
