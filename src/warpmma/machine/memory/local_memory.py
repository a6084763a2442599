"""Local memory: bytes of each thread, from address 0.

The rules:

1. All threads have the same addresses. Memory is allocated when it is first accessed: at most 512 KiB for a thread, and
   1 GiB for all threads that run together. An access beyond that, or outside of the frames that exist (`reach`), is the
   hazard "stack".
2. Bytes that a thread has not written are unwritten: loading them is a hazard, or poison, as for all memory
   (`access_shadow`). The bytes of a frame that is left become unwritten again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import gcd, prod

import numpy as np

from ..._arrays import Array, all_ones
from ...errors import LimitError
from ...operations import MemoryOrder, MemoryScope
from ..base import Origin, Poison, PoisonBytes, Site
from ..order import ThreadScope
from ..report import Reporter
from .access_shadow import UNWRITTEN
from .accesses import Touch
from .allocation import Allocation
from .shadow_memory import poison_of
from .spaces import Space

MOST_LOCAL = 512 << 10
"""Bytes of a thread's local memory, at most: what a GPU has."""

_CHUNK = 16  # bytes of a thread that are contiguous; chunks of all threads at one place are neighbours
_FIRST = 64  # chunks of the first slab; each slab has as many as all before it
_MOST_BYTES = 1 << 30


class _Slab:
    """Some chunks of all threads.

    Attributes
    ----------
    first, count : int
        Chunks of a thread.
    data : ndarray of uint8
        Flat: `[chunk, thread, byte]`.
    written : ndarray of uint16
        A bit for each byte, flat: `[chunk, thread]`.
    """

    poison: PoisonBytes | None = None  # made when poison is stored

    def __init__(self, first: int, count: int, threads: int) -> None:
        self.first, self.count = first, count
        self.data = np.zeros(count * threads * _CHUNK // 8, np.uint64).view(np.uint8)
        self.written = np.zeros(count * threads, np.uint16)


class LocalMemory(Space):
    """The local memory of a batch of blocks.

    Parameters
    ----------
    reporter : Reporter
    shape : (int, int, int)
        Blocks, warps and lanes.
    """

    name = "local"
    scope = ThreadScope.THREAD

    def __init__(self, reporter: Reporter, shape: tuple[int, int, int]) -> None:
        self._reporter, self._shape = reporter, shape
        self._threads = prod(shape)
        self._slabs: list[_Slab] = []
        self._holds_poison = False
        self._reach: Array | int | None = None  # bytes that each thread has, or all have; None for the most

    def begin(self, size: int) -> None:
        """Set how many bytes all threads have."""
        self._reach = size

    def reach(self, lanes: Array, size: int | Array) -> None:
        """Set how many bytes some threads have: the frames of running functions."""
        self._reach = np.where(lanes, size, 0 if self._reach is None else self._reach)

    @cached_property
    def _thread(self) -> Array:
        """The number of each thread, `[block, warp, lane]`."""
        return np.arange(self._threads, dtype=np.int64).reshape(self._shape)

    def contents(self) -> Iterator[Array]:
        """Return the bytes of all threads, as far as they are allocated."""
        return (slab.data for slab in self._slabs)

    def touch(
        self, site: Site, address: Array, size: int, lanes: Array, alignment: int
    ) -> Iterator[tuple[Allocation, Touch]]:
        """Report that threads share nothing here (rule 3 of `spaces`)."""
        self._reporter.report("bounds", site, lanes, address, "an atomic in local memory, which has none")
        return iter(())

    def load(
        self, site: Site, address: Array, size: int, lanes: Array, *, alignment: int = 0, element: int = 0,
        order: MemoryOrder = "weak", scope: MemoryScope = "gpu", travels: bool = False,
    ) -> tuple[Array, Poison | None]:  # fmt: skip
        """See `Space.load`."""
        one = None if self._holds_poison else self._alike(address, size, lanes, alignment or size)
        if one is not None:
            words, written, ones = one
            if not self._reporter.tracking or (written & ones == ones)[lanes.reshape(-1)].all():
                data = np.array(words, order="C").view(np.uint8).reshape(*lanes.shape, size)
                return data if lanes.all() else np.where(lanes[..., None], data, np.uint8(0)), None
        data, held = (np.zeros((*lanes.shape, size), np.uint8) for _ in range(2))
        written, origin = np.zeros((*lanes.shape, size), bool), 0
        lanes = self._checked(site, address, size, lanes, alignment or size)
        width = gcd(size, alignment or size, _CHUNK)
        for begin in range(0, size, width):
            for slab, some, place in self._places(address, begin, lanes):
                bytes_ = _words(slab.data, width)[place // width].view(np.uint8)
                data[some, begin : begin + width] = bytes_.reshape(-1, width)
                bits = slab.written[place // _CHUNK] >> (place % _CHUNK).astype(np.uint16)
                written[some, begin : begin + width] = bits[:, None] >> np.arange(width, dtype=np.uint16) & 1
                if slab.poison is not None and (found := slab.poison.at(place, width, 0)) is not None:
                    held[some, begin : begin + width], origin = found
        poison = self._unwritten(site, address, written, lanes, element or size, travels)
        if origin:
            poison = Poison(held, self._reporter.numbered(origin)).plus(poison)
        return data, poison

    def store(
        self, site: Site, address: Array, data: Array, lanes: Array, *, alignment: int = 0,
        order: MemoryOrder = "weak", scope: MemoryScope = "gpu", poison: Poison | None = None,
    ) -> None:  # fmt: skip
        """See `Space.store`."""
        size = data.shape[-1]
        self._holds_poison = self._holds_poison or poison is not None
        one = None if self._holds_poison else self._alike(address, size, lanes, alignment or size)
        if one is not None:
            words, written, ones = one
            some = slice(None) if lanes.all() else lanes.reshape(-1)
            given = np.ascontiguousarray(data).view(words.dtype).reshape(words.shape)
            words[some], written[some] = given[some], written[some] | ones
            return
        lanes = self._checked(site, address, size, lanes, alignment or size)
        width = gcd(size, alignment or size, _CHUNK)
        for begin in range(0, size, width):
            for slab, some, place in self._places(address, begin, lanes):
                words = _words(slab.data, width)
                given = np.ascontiguousarray(data[some, begin : begin + width])
                words[place // width] = given.view(words.dtype).reshape(-1, words.shape[1])
                shift = (place % _CHUNK).astype(np.uint16)
                slab.written[place // _CHUNK] |= np.uint16((1 << width) - 1) << shift
                if self._holds_poison:
                    bits = None if poison is None else poison.bits[some, begin : begin + width]
                    self._keep(slab, place, width, bits, None if poison is None else poison.origin)

    def _keep(self, slab: _Slab, place: Array, width: int, bits: Array | None, origin: Origin | None) -> None:
        """Replace the poison bits, `[n, width]`, at places of a slab."""
        if bits is None or not bits.any():
            if slab.poison is not None:
                slab.poison.write(place, np.zeros((len(place), width), np.uint8), 0, None, 0)
            return
        if slab.poison is None:
            slab.poison = PoisonBytes(len(slab.data))
        slab.poison.write(place, bits, 0 if origin is None else origin.number, None, 0)

    def copy(self, source: Array, to: Array, size: int, lanes: Array) -> None:
        """Copy bytes and their shadow from one place to another, as for parameters of a call.

        Frames begin at multiples of 16 bytes in all threads.
        """
        if size == 0 or not lanes.any():
            return
        if not self._grow(int(max(source[lanes].max(), to[lanes].max())) + size):
            raise LimitError(
                f"the local memory of {self._threads} threads that run together is beyond {_MOST_BYTES} bytes"
            )
        width = gcd(size, int(source[lanes][0]), int(to[lanes][0]), _CHUNK)
        for begin in range(0, size, width):
            data = np.zeros((*lanes.shape, width), np.uint8)
            written = np.zeros(lanes.shape, np.uint16)
            held, origin = np.zeros((*lanes.shape, width), np.uint8), 0
            ones = np.uint16((1 << width) - 1)
            for slab, some, place in self._places(source, begin, lanes):
                data[some] = _words(slab.data, width)[place // width].view(np.uint8).reshape(-1, width)
                written[some] = slab.written[place // _CHUNK] >> (place % _CHUNK).astype(np.uint16) & ones
                if slab.poison is not None and (found := slab.poison.at(place, width, 0)) is not None:
                    held[some], origin = found
            for slab, some, place in self._places(to, begin, lanes):
                words, shift = _words(slab.data, width), (place % _CHUNK).astype(np.uint16)
                words[place // width] = np.ascontiguousarray(data[some]).view(words.dtype).reshape(-1, words.shape[1])
                kept = slab.written[place // _CHUNK] & ~(ones << shift)
                slab.written[place // _CHUNK] = kept | written[some] << shift
                if self._holds_poison:
                    of = self._reporter.numbered(origin) if origin else None
                    self._keep(slab, place, width, held[some] if origin else None, of)

    def forget(self, lanes: Array, first: int, size: int) -> None:
        """Make bytes from `first` on unwritten: those of frames that are left."""
        thread = self._thread[lanes]
        for slab in self._slabs:
            begin, end = max(first, slab.first * _CHUNK), min(first + size, (slab.first + slab.count) * _CHUNK)
            for chunk in range(begin // _CHUNK, -(-end // _CHUNK)):
                inside = range(max(begin - chunk * _CHUNK, 0), min(end - chunk * _CHUNK, _CHUNK))
                kept = np.uint16(0xFFFF ^ sum(1 << byte for byte in inside))
                slab.written[(chunk - slab.first) * self._threads + thread] &= kept

    def _alike(self, address: Array, size: int, lanes: Array, alignment: int) -> tuple[Array, Array, np.uint16] | None:
        """Return the words `[thread, word]` at the one address of all lanes, or None if they have several.

        Also return the written bits of their chunks, and which of these bits are theirs. None as well if there may be
        something to report.
        """
        at = int(address.flat[0]) if address.size else -1
        if size > _CHUNK or size & (size - 1) or at < 0 or at % max(alignment, size) or not (address == at).all():
            return None
        reach = MOST_LOCAL if self._reach is None else self._reach
        reach = reach if isinstance(reach, int) else int(reach.min(initial=MOST_LOCAL, where=lanes))
        if at > reach - size or not self._grow(at + size):
            return None
        chunk, inside = divmod(at, _CHUNK)
        slab = next(slab for slab in self._slabs if chunk < slab.first + slab.count)
        width = min(size, 8)
        words = slab.data.view(f"u{width}").reshape(slab.count, self._threads, -1)[chunk - slab.first]
        written = slab.written.reshape(slab.count, self._threads)[chunk - slab.first]
        ones = np.uint16(((1 << size) - 1) << inside)
        return words[:, inside // width : (inside + size) // width], written, ones

    def _checked(self, site: Site, address: Array, size: int, lanes: Array, alignment: int) -> Array:
        """Return the lanes whose addresses are valid, with memory allocated for them (rule 1)."""
        lanes = lanes & self._reporter.aligned(site, address, alignment, lanes)
        where = address.astype(np.int64)
        reach = MOST_LOCAL if self._reach is None else self._reach
        outside = lanes & ((where < 0) | (where > reach - size))
        self._reporter.report("stack", site, outside, address, self._says(size))
        lanes = lanes & ~outside
        most = int(np.max(where, initial=-1, where=lanes))
        if most >= 0 and not self._grow(most + size):
            says = f"the local memory of {self._threads} threads that run together grows beyond {_MOST_BYTES} bytes"
            self._reporter.report("stack", site, lanes, address, says)
            return np.zeros_like(lanes)
        return lanes

    def _places(self, address: Array, begin: int, lanes: Array) -> Iterator[tuple[_Slab, Array, Array]]:
        """Yield slabs, the lanes that access each, and where in its flat bytes."""
        where = address.astype(np.int64) + begin
        for slab in self._slabs:
            chunk = where // _CHUNK - slab.first
            some = lanes & (chunk >= 0) & (chunk < slab.count)
            if some.any():
                place = (chunk[some] * self._threads + self._thread[some]) * _CHUNK + where[some] % _CHUNK
                yield slab, some, place

    def _says(self, size: int) -> str:
        if self._reach is None:
            return f"{size} bytes beyond the {MOST_LOCAL} that a thread has"
        return f"{size} bytes that are not all in frames of functions that run"

    def _grow(self, size: int) -> bool:
        """Allocate slabs up to a size; return whether there was room."""
        while (have := sum(slab.count for slab in self._slabs)) * _CHUNK < size:
            count = have or _FIRST
            if (have + count) * self._threads * _CHUNK > _MOST_BYTES:
                return False
            self._slabs.append(_Slab(have, count, self._threads))
        return True

    def _unwritten(
        self, site: Site, address: Array, written: Array, lanes: Array, element: int, travels: bool
    ) -> Poison | None:
        """Return unwritten bytes as poison, or report them (rules 4 and 6 of `access_shadow`)."""
        if not self._reporter.tracking or written[lanes].all():
            return None
        follows = self._reporter.follows
        poison, bad = poison_of(written, 1 if follows else element)
        bits = np.repeat(all_ones(poison & lanes[..., None], np.uint8), 1 if follows else element, axis=-1)
        if travels or follows:
            where = np.asarray(bits.any(axis=-1))
            return Poison(bits, self._reporter.origin("unwritten", site, where, UNWRITTEN, address=address))
        self._reporter.report("unwritten", site, lanes & bad, address, "the thread has not written it")
        return Poison(bits, None)


def _words(data: Array, width: int) -> Array:
    return data.view(f"u{min(width, 8)}").reshape(-1, max(width // 8, 1))
