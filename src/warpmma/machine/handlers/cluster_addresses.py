"""Addresses in the blocks of a cluster: `mapa`. A block is a cluster of its own here, of rank 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import UnsupportedError
from ...operations import ClusterAddress
from ..base import Site
from ..block import Batch, Results
from ..order import CLUSTER_BLOCKS
from .load_store import exactly, fitting


def mapped(batch: Batch, site: Site, row: ClusterAddress, operands: Sequence[Any], lanes: Array) -> Results:
    """Return the address itself, which is that of rank 0; `UnsupportedError` for another rank."""
    where, rank = exactly(site, operands, 2, "an address and a rank")
    width = int(row.type[1:])
    address = fitting(site, batch.operand(where, row.type, row.kind, f"{site.mnemonic}: the address"), width, width)
    number = fitting(site, batch.operand(rank, "u32", "b32", f"{site.mnemonic}: the rank"), 32, 32)
    bits, ranks = batch.read(site, [address, number], [lanes] * 2)
    bad = lanes & (ranks >= CLUSTER_BLOCKS)
    if bad.any():
        block, warp, lane = np.argwhere(bad)[0].tolist()
        other = int(np.broadcast_to(ranks, batch.shape)[block, warp, lane])
        raise UnsupportedError(
            f"{site}: block {batch.blocks.start + block}, warp {warp}, lane {lane} maps an address to rank {other}; "
            "expected 0: clusters of more than one block are not simulated"
        )
    return (batch.made(bits, lanes, site),)
