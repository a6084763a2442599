"""Global and shared memory: bytes, who wrote them, and who may read them.

An access names bytes of memory for every lane: addresses `[block, warp, lane]` and how many bytes follow each. All
checks are done on all lanes at once, before a byte moves. Memory and what is known of each byte are arrays of bytes; an
access of 2, 4, 8 or 16 aligned bytes a lane goes through a view of them as words, of 16 as pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
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
_GRAIN = 16
_WORDS = (1, 2, 4, 8, 16, 32)  # bytes of an access that go through views as words; 32 of what is known of 16 bytes
_NOBODY = 0
_MOST_SITES = 0xFFFF  # lines that are told apart


def get(memory: Array, offset: Array, size: int) -> Array:
    """Bytes `[n, size]` of memory, uint8, from offsets `[n]` on: multiples of the size if that is a power of two."""
    if size not in _WORDS:
        return memory[offset[:, None] + np.arange(size)]
    words = _words(memory, size)
    return np.take(words, offset // size, axis=0).view(np.uint8)


def put(memory: Array, offset: Array, data: Array) -> None:
    """Write bytes `[n, size]`; where offsets are the same, the last."""
    size = data.shape[-1]
    if size not in _WORDS:
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


@dataclass(frozen=True, kw_only=True)
class _Access:
    """What lanes access at a line.

    Attributes
    ----------
    site : Site
    address : ndarray of int
        `[block, warp, lane]`.
    lanes : ndarray of bool
        Which of these count, n in all.
    offset, own : ndarray of int
        Where their bytes begin `[n]`, and their warps' numbers plus 1 `[n, 1]`.
    size : int
        Bytes of each.
    """

    site: Site
    address: Array
    lanes: Array
    offset: Array
    own: Array
    size: int


class _Record:
    """Which warp did something to each byte of shared memory, and where: it begins with nobody.

    Attributes
    ----------
    warp : ndarray of uint8
        Numbers plus 1.
    site : ndarray of uint16
        Of a line in a list of them; it means nothing where there is no warp.
    """

    def __init__(self, size: int) -> None:
        self.warp, self.site = (np.zeros(size * width // 8, np.uint64).view(f"u{width}") for width in (1, 2))

    def get(self, access: _Access) -> Array:
        """Warps `[n, size]`."""
        return get(self.warp, access.offset, access.size)

    def note(self, access: _Access, site: int, which: Array | None = None) -> None:
        """Note an access's warps at these of its bytes, bool `[n, size]`, or at all."""
        offset, own = access.offset, access.own
        if which is not None and not which.all():
            whole = np.asarray(which.all(axis=1))
            part = which.any(axis=1) & ~whole
            if part.any():
                lane, byte = np.nonzero(which & part[:, None])
                at = offset[lane] + byte
                self.warp[at], self.site[at] = own[lane, 0], site
            offset, own = offset[whole], own[whole]
        shape = (len(offset), access.size)
        put(self.warp, offset, np.broadcast_to(own, shape))
        put(self.site.view(np.uint8), 2 * offset, np.full(shape, site, np.uint16).view(np.uint8))


class SharedMemory:
    """Shared memory of a batch of blocks, with a record of accesses since the last barrier.

    Of each byte it knows the warp that wrote it last, two different warps that have read it, and the warp whose
    `cp.async` is still to fill it: enough to find every race, and to name the other warp and its line.

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
        self._data, self._written = (np.zeros(blocks * stride // 8, np.uint64).view(np.uint8) for _ in range(2))
        self._writer, self._reader, self._second, self._pending = (_Record(blocks * stride) for _ in range(4))
        self._sites: list[Site | None] = [None]
        self._numbers: dict[Site, int] = {}
        self._base = (np.arange(blocks, dtype=np.int64) * stride)[:, None, None]
        self._own = np.arange(1, warps + 1, dtype=np.uint8)[None, :, None]

    def load(self, site: Site, address: Array, size: int, active: Array, *, alignment: int = 0) -> Array:
        """Bytes `[block, warp, lane, size]`; 0 in lanes that are not active."""
        access = self._place(site, address, size, active, alignment or size)
        offset, lanes = access.offset, access.lanes
        self._check_pending(access)
        self._check(access, "unwritten", get(self._written, offset, size) == 0)
        self._check_others(access, "wrote", self._writer)
        self._note_readers(access)
        data = get(self._data, offset, size)
        if lanes.all():
            return data.reshape(*active.shape, size)
        out = np.zeros((*active.shape, size), np.uint8)
        out[lanes] = data
        return out

    def store(self, site: Site, address: Array, data: Array, active: Array) -> None:
        """Write bytes `[block, warp, lane, size]`."""
        access = self._place(site, address, data.shape[-1], active, data.shape[-1])
        self._claim(access)
        self._write(access, data[access.lanes])

    def reserve(self, site: Site, address: Array, size: int, active: Array) -> Array:
        """Announce bytes that a `cp.async` will write, from now on; return the lanes that may."""
        access = self._place(site, address, size, active, size)
        self._claim(access)
        self._pending.note(access, self._line(site))
        return access.lanes

    def complete(self, site: Site, address: Array, data: Array, lanes: Array) -> None:
        """Write what the `cp.async` of a line has brought: what has been reserved."""
        access = self._access(site, address, lanes, data.shape[-1])
        put(self._pending.warp, access.offset, np.zeros((len(access.offset), access.size), np.uint8))
        self._writer.note(access, self._line(site))
        self._write(access, data[lanes])

    def barrier(self, blocks: Array) -> None:
        """All threads of blocks have met; bool `[block]`."""
        chosen = slice(None) if blocks.all() else blocks
        for record in (self._writer, self._reader, self._second):
            record.warp.reshape(self._blocks, -1)[chosen] = _NOBODY

    def _note_readers(self, access: _Access) -> None:
        reader = self._reader.get(access)
        free = reader == _NOBODY
        if free.any():
            self._reader.note(access, self._line(access.site), free)
            reader = self._reader.get(access)  # of several warps that read a byte in this very access, one was noted
        another = reader != access.own
        if another.any():
            another &= self._second.get(access) == _NOBODY
            if another.any():
                self._second.note(access, self._line(access.site), another)

    def _claim(self, access: _Access) -> None:
        """Check that nobody else touches bytes, and note who writes them."""
        self._check_pending(access)
        self._check_others(access, "wrote", self._writer)
        self._check_others(access, "read", self._reader, self._second)
        self._writer.note(access, self._line(access.site))
        self._check_others(access, "writes", self._writer)

    def _write(self, access: _Access, data: Array) -> None:
        put(self._data, access.offset, data)
        put(self._written, access.offset, np.ones((len(access.offset), access.size), np.uint8))
        self._check(
            access, "race", get(self._data, access.offset, access.size) != data,
            "another lane of the warp writes something else there in this very access",
        )  # fmt: skip

    def _place(self, site: Site, address: Array, size: int, active: Array, alignment: int) -> _Access:
        """Take the lanes that may act."""
        lanes = active & _aligned(self._reporter, site, address, alignment, active)
        outside = lanes & ((address > self.size) | (address.astype(np.int64) > self.size - size))
        self._reporter.report(
            "bounds", site, outside, address,
            f"{size} bytes that are not all in shared memory, which has {self.size} bytes",
        )  # fmt: skip
        return self._access(site, address, lanes & ~outside, size)

    def _access(self, site: Site, address: Array, lanes: Array, size: int) -> _Access:
        offset, own = self._base + address.astype(np.int64), np.broadcast_to(self._own, lanes.shape)
        every = lanes.all()
        return _Access(
            site=site, address=address, lanes=lanes, size=size, offset=offset.reshape(-1) if every else offset[lanes],
            own=(own.reshape(-1) if every else own[lanes])[:, None],
        )  # fmt: skip

    def _line(self, site: Site) -> int:
        """Return a line's number; 0, which says nothing, for those that are too many."""
        number = self._numbers.get(site, 0)
        if not number and len(self._sites) <= _MOST_SITES:
            number = self._numbers[site] = len(self._sites)
            self._sites.append(site)
        return number

    def _check_others(self, access: _Access, did: str, *records: _Record) -> None:
        """Report bytes that another warp has written, or read, since the last barrier."""
        who = records[0].get(access)
        if not who.any():
            return
        for record in records[1:]:
            who = np.where(who == access.own, record.get(access), who)
        bad = (who != _NOBODY) & (who != access.own)
        if bad.any():
            warp, other = self._first(access, bad, *records)
            when = "in this very access" if did == "writes" else f"{_at(other)}, and no barrier lies between"
            self._check(access, "race", bad, f"{warp} {did} it {when}", other)

    def _check_pending(self, access: _Access) -> None:
        bad = self._pending.get(access) != _NOBODY
        if bad.any():
            warp, other = self._first(access, bad, self._pending)
            says = f"the cp.async of {warp} {_at(other)} is still to fill it, and was not waited for"
            self._check(access, "pending", bad, says, other)

    def _first(self, access: _Access, bad: Array, *records: _Record) -> tuple[str, Site | None]:
        """Return the warp of a record, not its own, at the first bad byte; and its line."""
        lane, byte = np.argwhere(bad)[0]
        at, own = access.offset[lane] + byte, access.own[lane, 0]
        record = next((r for r in records if r.warp[at] != own), records[0])
        return f"warp {record.warp[at] - 1}", self._sites[record.site[at]]

    def _check(self, access: _Access, kind: str, bad: Array, detail: str = "", other: Site | None = None) -> None:
        if bad.any():
            where = np.zeros(access.lanes.shape, bool)
            where[access.lanes] = bad.any(axis=1)
            self._reporter.report(kind, access.site, where, access.address, detail, other)


def _aligned(reporter: Reporter, site: Site, address: Array, alignment: int, active: Array) -> Array:
    """Which addresses are aligned; report those of active lanes that are not."""
    aligned: Array = address % address.dtype.type(alignment) == 0
    reporter.report("misaligned", site, active & ~aligned, address, f"expected a multiple of {alignment} bytes")
    return aligned


def _at(site: Site | None) -> str:
    return f"at {site.place} ({site.mnemonic})" if site else "at a line that was not noted"


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
