"""Instructions about caches: `prefetch`, `applypriority`, `discard`, and `createpolicy`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arguments import is_integer
from ..._arrays import Array
from ...errors import OperandError, shown
from ...operations import CacheControl, CachePolicy
from ..base import Site
from ..block import Batch, Results, touches
from .load_store import address, exactly, fitting


def control(batch: Batch, site: Site, row: CacheControl, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute what changes no bit, but of `discard` what is known of them."""
    where, *size = exactly(site, operands, 1 + bool(row.size), "an address" + f" and {row.size}" * bool(row.size))
    if size and (not is_integer(size[0]) or size[0] != row.size):
        raise OperandError(f"{site.mnemonic}: {shown(size[0])} bytes; expected {row.size}")
    at = address(batch, site, row.space, where, lanes)
    if row.size:
        for _, allocation, touch in touches(batch, site, row.space, at, row.size, lanes):
            if row.action == "discard":
                allocation.shadow.forgets(touch)
    return ()


def policy(batch: Batch, site: Site, row: CachePolicy, operands: Sequence[Any], lanes: Array) -> Results:
    """Make a cache policy, a b64 register."""
    if row.by == "cvt":
        (given,) = exactly(site, operands, 1, "a policy")
        register = batch.operand(given, "b64", "b64", f"{site.mnemonic}: the policy")
        (bits,) = batch.read(site, [fitting(site, register, 64, 64)], [lanes])
        return (batch.made(bits, lanes, site),)
    if row.by == "range":
        where, *sizes = exactly(site, operands, 3, "an address and two sizes")
        address(batch, site, "generic", where, lanes)
        registers = [batch.operand(x, "u32", "b32", f"{site.mnemonic}: a size") for x in sizes]
        batch.read(site, [fitting(site, x, 32, 32) for x in registers], [lanes] * 2)
        return (batch.made(np.full(batch.shape, row.bits, np.uint64), lanes, site),)
    fraction = exactly(site, operands or [1.0], 1, "a fraction, or nothing")[0]
    register = batch.operand(fraction, "f32", "b32", f"{site.mnemonic}: the fraction")
    (bits,) = batch.read(site, [fitting(site, register, 32, 32)], [lanes])
    value = np.where(lanes, bits.view(np.float32), np.float32(1))
    if not ((value > 0) & (value <= 1)).all():
        raise OperandError(
            f"{site.mnemonic}: a fraction of {value.min()} to {value.max()}; expected above 0, at most 1"
        )
    parts = np.ceil(value.astype(np.float64) * 16).astype(np.uint64) - np.uint64(1)  # rule 3 of `caches`
    return (batch.made(np.uint64(row.bits) | parts << np.uint64(52), lanes, site),)
