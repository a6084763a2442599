"""Where addresses of an instruction lie: the pieces of memory that lanes touch, whatever the space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ..._arrays import Array
from ..base import Site
from ..memory import Allocation, Touch
from .batch import Batch
from .spaces import parts

Place = tuple[Literal["global", "shared"], Allocation, Touch]


def touches(
    batch: Batch, site: Site, space: str, address: Array, size: int, lanes: Array, alignment: int = 0
) -> Iterator[Place]:
    """Pieces of memory that lanes touch, and what of each.

    Parameters
    ----------
    batch : Batch
    site : Site
    space : {"generic", "global", "shared"}
    address : ndarray of uint
        `[block, warp, lane]`.
    size : int
        Bytes of a lane.
    lanes : ndarray of bool
    alignment : int
        What addresses are multiples of; the size if nothing is said.
    """
    for memory, where, some in parts(batch, site, space, address, lanes):
        if memory == "shared":
            yield "shared", *batch.shared.touched(site, where, size, some, alignment or size)
        elif memory == "local":
            batch.reporter.report("bounds", site, some, where, "an atomic in local memory, which has none")
        else:
            for found in batch.memory.touched(batch.clocks, site, where, size, some, alignment or size):
                yield "global", *found
