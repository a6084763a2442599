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
from .load_store import read


def mapped(batch: Batch, site: Site, row: ClusterAddress, operands: Sequence[Any], lanes: Array) -> Results:
    """Return the address itself, which is that of rank 0; `UnsupportedError` for another rank."""
    bits, ranks = read(batch, site, operands, lanes)
    bad = lanes & (ranks >= CLUSTER_BLOCKS)
    if bad.any():
        block, warp, lane = np.argwhere(bad)[0].tolist()
        other = int(np.broadcast_to(ranks, batch.shape)[block, warp, lane])
        raise UnsupportedError(
            f"{site}: block {batch.blocks.start + block}, warp {warp}, lane {lane} maps an address to rank {other}; "
            "expected 0: clusters of more than one block are not simulated"
        )
    return (batch.made(bits, lanes, site),)
