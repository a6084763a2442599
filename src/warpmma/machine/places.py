"""Where addresses of an instruction lie: the pieces of memory that lanes touch, whatever the space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy.typing as npt

from .allocation import Allocation, Touch
from .batch import Batch
from .site import Site

__all__ = ["touches"]

Array = npt.NDArray[Any]
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
    if space == "shared":
        yield "shared", *batch.shared.touched(site, address, size, lanes, alignment or size)
        return
    for found in batch.memory.touched(batch.clocks, site, address, size, lanes, alignment or size):
        yield "global", *found
