"""Global and shared memory: bytes, who wrote them, and who may read them.

An access names bytes of memory for every lane: addresses `[block, warp, lane]` and how many bytes follow each. All
checks are done on all lanes at once, before a byte moves. Memory and what is known of each byte are arrays of bytes; an
access of 2, 4, 8 or 16 aligned bytes a lane goes through a view of them as words, of 16 as pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import OperandError
from .hazards import Reporter, Site

__all__ = ["GlobalMemory", "SharedMemory"]

Array = npt.NDArray[Any]

# Global allocations begin at multiples of this, as those of cudaMalloc do at least.
_ALIGNMENT = 256
_BASE = 0x7F0000000000
# What is known of a byte of shared memory: the warp that wrote or read it since the last barrier, as its number plus 1.
_NOBODY, _SEVERAL = 0, 0xFF
_GRAIN = 16
_SAYS = {
    "wrote": "wrote it, and no barrier lies between",
    "read": "read it, and no barrier lies between",
    "writes": "writes it in this very access",
}


def get(memory: Array, offset: Array, size: int) -> Array:
    """Bytes `[n, size]` of memory, uint8, from offsets `[n]` on: multiples of the size if that is a power of two."""
    if size not in (1, 2, 4, 8, 16):
        return memory[offset[:, None] + np.arange(size)]
    words = _words(memory, size)
    return np.take(words, offset // size, axis=0).view(np.uint8)


def put(memory: Array, offset: Array, data: Array) -> None:
    """Write bytes `[n, size]`; where offsets are the same, the last."""
    size = data.shape[-1]
    if size not in (1, 2, 4, 8, 16):
        memory[offset[:, None] + np.arange(size)] = data
        return
    words = _words(memory, size)
    words[offset // size] = np.ascontiguousarray(data).view(words.dtype)


def _words(memory: Array, size: int) -> Array:
    width = min(size, 8)
    return memory[: len(memory) // size * size].view(f"u{width}").reshape(-1, size // width)


class GlobalMemory:
    """Arrays of the caller in one address space.

    Parameters
    ----------
    reporter : Reporter
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._data: list[Array] = []
        self._written: list[Array | None] = []  # None: all of it
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, array: Array, name: str, *, written: bool = True) -> int:
        """Place an array, which is read and written in place, and return its address; errors call it by `name`.

        Raises
        ------
        OperandError
            No array, masked, a matrix, not C-contiguous, or not of numbers in the machine's byte order.
        """
        _check_array(array, name)
        array = array.view(np.ndarray)  # of a subclass such as memmap, the array alone
        start = _BASE if not self._ends else -(-(self._ends[-1] + 1) // _ALIGNMENT) * _ALIGNMENT
        self._data.append(array.reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8))
        self._written.append(None if written else np.zeros(array.nbytes, bool))
        self._starts.append(start)
        self._ends.append(start + array.nbytes)
        return start

    def load(
        self, site: Site, address: Array, size: int, active: Array, *, alignment: int = 0
    ) -> Array:  # fmt: skip
        """Bytes `[block, warp, lane, size]`; 0 in lanes that are not active."""
        out = np.zeros((*active.shape, size), np.uint8)
        for number, offset, lanes in self._parts(site, address, size, active, alignment or size):
            if (known := self._written[number]) is not None:
                unwritten = np.zeros(active.shape, bool)
                unwritten[lanes] = (get(known.view(np.uint8), offset, size) == 0).any(axis=1)
                self._reporter.report(
                    "unwritten", site, unwritten, address, f"nobody wrote it: array {number} is an Output"
                )
            out[lanes] = get(self._data[number], offset, size)
        return out

    def store(self, site: Site, address: Array, data: Array, active: Array) -> None:
        """Write bytes `[block, warp, lane, size]`; of lanes that write the same byte, the last."""
        size = data.shape[-1]
        for number, offset, lanes in self._parts(site, address, size, active, size):
            if not self._data[number].flags.writeable:
                self._reporter.report("bounds", site, lanes, address, f"a store to array {number}, which is read-only")
                continue
            put(self._data[number], offset, data[lanes])
            if (known := self._written[number]) is not None:
                put(known.view(np.uint8), offset, np.ones((len(offset), size), np.uint8))

    def _parts(
        self, site: Site, address: Array, size: int, active: Array, alignment: int
    ) -> list[tuple[int, Array, Array]]:  # fmt: skip
        """Allocation, offsets into it `[n]`, and the lanes they belong to."""
        ok = active & _aligned(self._reporter, site, address, alignment, active)
        starts, ends = np.array([0, *self._starts], np.uint64), np.array([0, *self._ends], np.uint64)
        address = address.astype(np.uint64, copy=False)
        number = np.searchsorted(starts, address, "right") - 1  # 0 is no allocation
        inside = address - starts[number]
        room = (ends - starts)[number]
        outside = ok & ((number == 0) | (room < size) | (inside > room - np.uint64(size)))
        self._reporter.report("bounds", site, outside, address, lambda at: self._nearest(at, size))
        number = np.where(ok & ~outside, number, 0) - 1
        parts = []
        for each in np.unique(number[number >= 0]).tolist():
            lanes = number == each
            parts.append((each, inside[lanes].astype(np.int64), lanes))
        return parts

    def _nearest(self, address: int, size: int) -> str:
        """Say where an address outside of all allocations is."""
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


class SharedMemory:
    """Shared memory of a batch of blocks, with a record of accesses since the last barrier.

    Parameters
    ----------
    reporter : Reporter
    blocks, warps, size : int
        `size` in bytes for each block.
    """

    def __init__(self, reporter: Reporter, blocks: int, warps: int, size: int) -> None:
        self._reporter = reporter
        self.size = size
        self._blocks = blocks
        stride = -(-size // _GRAIN) * _GRAIN
        self._data, self._written, self._pending, self._writer, self._reader = (
            np.zeros(blocks * stride // 8, np.uint64).view(np.uint8) for _ in range(5)
        )
        self._base = (np.arange(blocks, dtype=np.int64) * stride)[:, None, None]
        self._own = np.arange(1, warps + 1, dtype=np.uint8)[None, :, None]

    def load(self, site: Site, address: Array, size: int, active: Array, *, alignment: int = 0) -> Array:
        """Bytes `[block, warp, lane, size]`; 0 in lanes that are not active."""
        offset, lanes, own = self._place(site, address, size, active, alignment or size)
        self._check(site, "pending", lanes, address, get(self._pending, offset, size) != 0)
        self._check(site, "unwritten", lanes, address, get(self._written, offset, size) == 0)
        self._check_others(site, lanes, address, get(self._writer, offset, size), own, "wrote")
        reader = get(self._reader, offset, size)
        put(self._reader, offset, np.where((reader == _NOBODY) | (reader == own), own, _SEVERAL))
        # Of several warps that read a byte in this very access, one was noted; it was not alone.
        reader = get(self._reader, offset, size)
        alone = (reader == own) | (reader == _SEVERAL)
        if not alone.all():
            crowd = ~alone.all(axis=1)
            put(self._reader, offset[crowd], np.where(alone[crowd], reader[crowd], np.uint8(_SEVERAL)))
        data = get(self._data, offset, size)
        if lanes.all():
            return data.reshape(*active.shape, size)
        out = np.zeros((*active.shape, size), np.uint8)
        out[lanes] = data
        return out

    def store(self, site: Site, address: Array, data: Array, active: Array) -> None:
        """Write bytes `[block, warp, lane, size]`."""
        size = data.shape[-1]
        offset, lanes, own = self._place(site, address, size, active, size)
        self._claim(site, lanes, address, offset, own, size)
        self._write(site, lanes, address, offset, data[lanes])

    def reserve(self, site: Site, address: Array, size: int, active: Array) -> Array:
        """Announce bytes that a `cp.async` will write, from now on; return the lanes that may."""
        offset, lanes, own = self._place(site, address, size, active, size)
        self._claim(site, lanes, address, offset, own, size)
        put(self._pending, offset, np.ones((len(offset), size), np.uint8))
        return lanes

    def complete(self, site: Site, address: Array, data: Array, lanes: Array) -> None:
        """Write what the `cp.async` of a line has brought: what has been reserved."""
        size = data.shape[-1]
        offset, own = (self._base + address)[lanes], np.broadcast_to(self._own, lanes.shape)[lanes][:, None]
        put(self._pending, offset, np.zeros((len(offset), size), np.uint8))
        put(self._writer, offset, np.broadcast_to(own, (len(offset), size)))
        self._write(site, lanes, address, offset, data[lanes])

    def barrier(self, blocks: Array) -> None:
        """All threads of blocks have met; bool `[block]`."""
        for record in (self._writer, self._reader):
            record.reshape(self._blocks, -1)[blocks] = _NOBODY

    def _claim(self, site: Site, lanes: Array, address: Array, offset: Array, own: Array, size: int) -> None:
        """Check that nobody else touches bytes, and note who writes them."""
        self._check(site, "pending", lanes, address, get(self._pending, offset, size) != 0)
        self._check_others(site, lanes, address, get(self._writer, offset, size), own, "wrote")
        self._check_others(site, lanes, address, get(self._reader, offset, size), own, "read")
        put(self._writer, offset, np.broadcast_to(own, (len(offset), size)))
        self._check_others(site, lanes, address, get(self._writer, offset, size), own, "writes")

    def _write(self, site: Site, lanes: Array, address: Array, offset: Array, data: Array) -> None:
        size = data.shape[-1]
        put(self._data, offset, data)
        put(self._written, offset, np.ones((len(offset), size), np.uint8))
        self._check(
            site, "race", lanes, address, get(self._data, offset, size) != data,
            "another lane of the warp writes something else there in this very access",
        )  # fmt: skip

    def _place(
        self, site: Site, address: Array, size: int, active: Array, alignment: int
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Offsets of lanes that may act `[n]`, the mask of these lanes, and their warps' numbers plus 1 `[n, 1]`."""
        lanes = active & _aligned(self._reporter, site, address, alignment, active)
        outside = lanes & ((address > self.size) | (address.astype(np.int64) > self.size - size))
        self._reporter.report(
            "bounds", site, outside, address,
            f"{size} bytes that are not all in shared memory, which has {self.size} bytes",
        )  # fmt: skip
        lanes = lanes & ~outside
        offset, own = self._base + address.astype(np.int64), np.broadcast_to(self._own, lanes.shape)
        if lanes.all():
            return offset.reshape(-1), lanes, own.reshape(-1, 1)
        return offset[lanes], lanes, own[lanes][:, None]

    def _check_others(self, site: Site, lanes: Array, address: Array, who: Array, own: Array, did: str) -> None:
        """Report bytes that another warp has written, or read, since the last barrier."""
        bad = (who != _NOBODY) & (who != own)
        if bad.any():
            first = int(who[bad][0])
            named = "several warps" if first == _SEVERAL else f"warp {first - 1}"
            self._check(site, "race", lanes, address, bad, f"{named} {_SAYS[did]}")

    def _check(self, site: Site, kind: str, lanes: Array, address: Array, bad: Array, detail: str = "") -> None:
        if bad.any():
            where = np.zeros(lanes.shape, bool)
            where[lanes] = bad.any(axis=1)
            self._reporter.report(kind, site, where, address, detail)


def _aligned(reporter: Reporter, site: Site, address: Array, alignment: int, active: Array) -> Array:
    """Which addresses are aligned; report those of active lanes that are not."""
    aligned: Array = address % address.dtype.type(alignment) == 0
    reporter.report("misaligned", site, active & ~aligned, address, f"expected a multiple of {alignment} bytes")
    return aligned


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
