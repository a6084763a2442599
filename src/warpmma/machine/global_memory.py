"""Global memory: arrays of the caller in one address space."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import OperandError
from .allocation import Allocation, Touch
from .clocks import Clocks
from .hazards import Reporter
from .site import Site

__all__ = ["GlobalMemory"]

Array = npt.NDArray[Any]

# Global allocations begin at multiples of this, as those of cudaMalloc do at least.
_ALIGNMENT = 256
_BASE = 0x7F0000000000


class GlobalMemory:
    """Arrays of the caller in one address space.

    Parameters
    ----------
    reporter : Reporter
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._allocations: list[Allocation] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._held: list[range] = []  # where the caller has them

    def add(self, array: Array, name: str, *, written: bool = True) -> int:
        """Place an array, which is read and written in place, and return its address; errors call it by `name`.

        An array that was placed before, or a part of one, is the same memory.

        Raises
        ------
        OperandError
            No array, one that shares memory with another in part, masked, a matrix, not C-contiguous, or not of numbers
            in the machine's byte order.
        """
        _check_array(array, name)
        array = array.view(np.ndarray)  # of a subclass such as memmap, the array alone
        begin = int(array.__array_interface__["data"][0])
        for number, held in enumerate(self._held):
            if array.nbytes and begin in held and begin + array.nbytes <= held.stop:  # the same memory, or a part of it
                return self._starts[number] + begin - held.start
            if array.nbytes and max(begin, held.start) < min(begin + array.nbytes, held.stop):
                raise OperandError(f"{name} shares a part of its memory with an array before it; give the whole once")
        start = _BASE if not self._ends else -(-(self._ends[-1] + 1) // _ALIGNMENT) * _ALIGNMENT
        data = array.reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8)
        says = f"nobody wrote it: array {len(self._ends)} is an Output"
        self._allocations.append(Allocation(self._reporter, data, written=written, private=False, nobody=says))
        self._starts.append(start)
        self._ends.append(start + array.nbytes)
        self._held.append(range(begin, begin + array.nbytes))
        return start

    def unwritten(self) -> list[int]:
        """Numbers of the arrays that nobody has written, and that hold nothing else."""
        known = [allocation.grains.written for allocation in self._allocations]
        return [number for number, x in enumerate(known) if x is not None and x.size and not x.any()]

    def load(
        self, clocks: Clocks, site: Site, address: Array, size: int, lanes: Array, *, alignment: int = 0,
        element: int = 0,
    ) -> tuple[Array, Array | None]:  # fmt: skip
        """Load bytes, as `SharedMemory.load` does."""
        data, poison = np.zeros((*lanes.shape, size), np.uint8), None
        for allocation, touch in self.touched(clocks, site, address, size, lanes, alignment or size):
            data[touch.lanes], some = allocation.load(touch, element or size)
            if some is not None:
                poison = np.zeros((*lanes.shape, some.shape[-1]), bool) if poison is None else poison
                poison[touch.lanes] = some
        return data, poison

    def store(self, clocks: Clocks, site: Site, address: Array, data: Array, lanes: Array) -> None:
        """Write bytes `[block, warp, lane, size]`."""
        size = data.shape[-1]
        for allocation, touch in self.touched(clocks, site, address, size, lanes, size):
            if allocation.data.flags.writeable:
                allocation.store(touch, data[touch.lanes])
            else:
                number = self._allocations.index(allocation)
                says = f"a store to array {number}, which is read-only"
                self._reporter.report("bounds", site, touch.lanes, address, says)

    def touched(
        self, clocks: Clocks, site: Site, address: Array, size: int, lanes: Array, alignment: int
    ) -> Iterator[tuple[Allocation, Touch]]:
        """Allocations that are touched, and by which of the lanes."""
        ok = lanes & self._reporter.aligned(site, address, alignment, lanes)
        starts, ends = np.array([0, *self._starts], np.uint64), np.array([0, *self._ends], np.uint64)
        address = address.astype(np.uint64, copy=False)
        number = np.searchsorted(starts, address, "right") - 1  # 0 is no allocation
        inside = address - starts[number]
        room = (ends - starts)[number]
        outside = ok & ((number == 0) | (room < size) | (inside > room - np.uint64(size)))
        self._reporter.report("bounds", site, outside, address, self._nearest(size))
        number = np.where(ok & ~outside, number, 0) - 1
        time = clocks.tick(site)
        for each in np.unique(number[number >= 0]).tolist():
            some = number == each
            yield self._allocations[each], Touch(
                site=site, time=time, clocks=clocks, address=address, lanes=some, size=size,
                offset=inside[some].astype(np.int64), who=clocks.who(time, some),
            )  # fmt: skip

    def _nearest(self, size: int) -> Callable[[int], str]:
        """Say where an address outside of all allocations is."""

        def says(address: int) -> str:
            if not self._starts:
                return "no array is in global memory"

            def away(number: int) -> int:
                return max(self._starts[number] - address, address + size - self._ends[number])

            number = min(range(len(self._starts)), key=away)
            start, end = self._starts[number], self._ends[number]
            early = address + size - end
            off = f"begins {start - address} bytes later" if address < start else f"ends {early} bytes too early"
            array = f"array {number} ({end - start} bytes from {start:#x})"
            return f"{size} bytes outside of all arrays; the nearest, {array}, {off}"

        return says


def _check_array(array: object, name: str) -> None:
    """Refuse what memory cannot hold as a kernel sees it."""
    if isinstance(array, np.ma.MaskedArray):
        raise OperandError(f"{name} is a masked array, and memory has no masks: fill it first")
    if isinstance(array, np.matrix):
        raise OperandError(f"{name} is a np.matrix, whose slices stay matrices: use np.asarray")
    if not isinstance(array, np.ndarray):
        raise OperandError(f"{name} is {type(array).__name__}; in global memory lie C-contiguous ndarrays of numbers")
    if bad := _no_number(array.dtype):
        raise OperandError(f"{name} is an array of {array.dtype}; in global memory lie numbers: {bad}")
    if not array.flags.c_contiguous:
        raise OperandError(
            f"{name} is {array.dtype} {array.shape}, not contiguous; in global memory lie C-contiguous ndarrays of "
            "numbers. Use np.ascontiguousarray, and copy back what the kernel has written"
        )


def _no_number(dtype: np.dtype[Any]) -> str:
    """Say what to do about elements that no GPU knows as numbers; nothing about those that one does."""
    if dtype.names is not None:
        return next((bad for name in dtype.names if (bad := _no_number(dtype[name].base))), "")
    if dtype.kind in "OSUT":
        return "texts and Python objects are none"
    if dtype.kind in "mM":
        return "give a time as an integer, array.view(np.int64)"
    if not dtype.isnative:
        return "a GPU is little-endian; convert with array.astype(array.dtype.newbyteorder('=')), and back"
    if dtype.type is np.void or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        return "of at most 64 bits, or complex ones of two such"
    return ""
