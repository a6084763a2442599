"""Shared memory of a batch of blocks: each has its own, from address 0 on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .allocation import Allocation, Touch
from .clocks import Clocks
from .hazards import Reporter
from .site import Site

__all__ = ["SharedMemory"]

Array = npt.NDArray[Any]

_ALIGNMENT = 16  # of what a block's memory begins at, and so of every access


class SharedMemory:
    """Shared memory.

    Parameters
    ----------
    reporter : Reporter
    clocks : Clocks
    blocks, size : int
        `size` in bytes for each block.
    """

    def __init__(self, reporter: Reporter, clocks: Clocks, blocks: int, size: int) -> None:
        self.size = size
        stride = -(-size // _ALIGNMENT) * _ALIGNMENT
        data = np.zeros(blocks * stride // 8, np.uint64).view(np.uint8)
        self._all = Allocation(reporter, data, written=False, private=True)
        self._base = (np.arange(blocks, dtype=np.int64) * stride)[:, None, None]
        self._reporter, self._clocks = reporter, clocks

    def load(
        self, site: Site, address: Array, size: int, lanes: Array, *, alignment: int = 0, element: int = 0
    ) -> tuple[Array, Array | None]:
        """Load bytes.

        Parameters
        ----------
        site : Site
        address : ndarray of uint
            `[block, warp, lane]`.
        size : int
            Bytes a lane.
        lanes : ndarray of bool
        alignment, element : int
            What addresses are multiples of, and bytes of an element; the size if nothing is said.

        Returns
        -------
        data : ndarray of uint8
            `[block, warp, lane, size]`; 0 in other lanes.
        poison : ndarray of bool or None
            `[block, warp, lane, elements]`: what nobody wrote.
        """
        touch = self._touch(site, address, size, lanes, alignment or size)
        data, poison = self._all.load(touch, element or size)
        return _spread(data, touch.lanes), None if poison is None else _spread(poison, touch.lanes)

    def store(self, site: Site, address: Array, data: Array, lanes: Array) -> None:
        """Write bytes `[block, warp, lane, size]`."""
        size = data.shape[-1]
        touch = self._touch(site, address, size, lanes, size)
        self._all.store(touch, data[touch.lanes])

    def reserve(self, site: Site, address: Array, size: int, lanes: Array) -> Array:
        """Announce bytes that a `cp.async` writes from now on; return the lanes that may."""
        touch = self._touch(site, address, size, lanes, size)
        self._all.reserve(touch)
        return touch.lanes

    def complete(self, site: Site, address: Array, data: Array, lanes: Array) -> None:
        """Write what the `cp.async` of a line has brought: what has been reserved."""
        self._all.complete(self._at(site, address, data.shape[-1], lanes), data[lanes])

    def touched(self, site: Site, address: Array, size: int, lanes: Array, alignment: int) -> tuple[Allocation, Touch]:
        """Return the memory, and what of it lanes touch."""
        return self._all, self._touch(site, address, size, lanes, alignment)

    def _touch(self, site: Site, address: Array, size: int, lanes: Array, alignment: int) -> Touch:
        """Take the lanes that may act."""
        lanes = lanes & self._reporter.aligned(site, address, alignment, lanes)
        outside = lanes & ((address > self.size) | (address.astype(np.int64) > self.size - size))
        self._reporter.report(
            "bounds", site, outside, address,
            f"{size} bytes that are not all in shared memory, which has {self.size} bytes",
        )  # fmt: skip
        return self._at(site, address, size, lanes & ~outside)

    def _at(self, site: Site, address: Array, size: int, lanes: Array) -> Touch:
        time = self._clocks.tick(site)
        offset = (self._base + address.astype(np.int64))[lanes]
        return Touch(
            site=site, time=time, clocks=self._clocks, address=address, lanes=lanes, offset=offset, size=size,
            who=self._clocks.who(time, lanes),
        )  # fmt: skip


def _spread(values: Array, lanes: Array) -> Array:
    """Put `[n, m]` where lanes are, with zeros elsewhere."""
    if len(values) == lanes.size:
        return values.reshape(*lanes.shape, values.shape[-1])
    out = np.zeros((*lanes.shape, values.shape[-1]), values.dtype)
    out[lanes] = values
    return out
