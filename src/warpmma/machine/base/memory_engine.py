"""Memory accesses of all lanes at once, native where the engine is built, otherwise in NumPy.

Both give the same results. `grain_engine` does the same for shadow memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._arrays import Array
from ...registers import LANES

try:
    from ... import _native
except ImportError:  # installed without a compiler
    _native = None  # type: ignore[assignment]


NATIVE: Any = getattr(_native, "memory", None)
"""The native engine's memory; None where NumPy does it all, an installation without a compiler."""

_BANK = 4  # bytes of a lane that shared memory takes at once
_ALIGNED = 16  # bytes up to which an access is aligned to its size
_WORDS = (1, 2, 4, 8, 16, 32)  # bytes of an access that NumPy makes through words; from 16 on, several


def flat(array: Array) -> Array:
    """Return an array of lanes in one dimension."""
    return np.ascontiguousarray(array).reshape(-1)


def acting(data: Array, lanes: Array) -> Array:
    """Return the data, `[n, byte]`, of some lanes; `data` is `[block, warp, lane, byte]`."""
    if data.shape[:-1] == lanes.shape and lanes.all():
        return data.reshape(-1, data.shape[-1])
    return np.asarray(data[lanes])


def spread(data: Array, lanes: Array) -> Array:
    """Return the data, `[n, byte]`, of the lanes that are true in `lanes`, as `[*lanes, byte]`; 0 in the others."""
    size = data.shape[-1]
    if NATIVE is not None:
        out = np.empty(lanes.size * size, np.uint8)
        NATIVE.spread(flat(data), size, flat(lanes), out)
        return out.reshape(*lanes.shape, size)
    every = np.zeros((*lanes.shape, size), np.uint8)
    every[lanes] = data
    return every


def joined(words: Sequence[Array]) -> Array:
    """Concatenate the bytes of several words of each lane, `[...]` each, to `[..., byte]`."""
    first, count = words[0], len(words)
    if count == 1:
        return np.ascontiguousarray(first)[..., None].view(np.uint8)
    if hasattr(NATIVE, "join"):
        out = np.empty(first.size * count * first.itemsize, np.uint8)
        NATIVE.join([flat(x).view(np.uint8) for x in words], first.itemsize, out)
        return out.reshape(*first.shape, count * first.itemsize)
    return np.stack(words, axis=-1).view(np.uint8)


def split(data: Array, dtype: npt.DTypeLike) -> list[Array]:
    """Split the bytes of each lane, `[..., byte]`, into words `[...]`."""
    words = data.view(dtype)
    count = words.shape[-1]
    if count == 1:
        return [words[..., 0]]
    if hasattr(NATIVE, "join"):
        apart = np.empty((count, *data.shape[:-1]), words.dtype)
        NATIVE.split(flat(data), count, words.itemsize, apart.reshape(-1).view(np.uint8))
        return list(apart)
    return [np.ascontiguousarray(words[..., i]) for i in range(count)]


def locate(
    address: Array, lanes: Array, bounds: tuple[Array, Array], size: int, alignment: int
) -> tuple[int, Array] | None:
    """Find the one piece of memory that all lanes access, aligned.

    Parameters
    ----------
    address : ndarray of uint
        Flat, as `lanes`.
    lanes : ndarray of bool
        The lanes that access memory.
    bounds : (ndarray, ndarray) of uint64
        Where pieces begin and end, by address.
    size, alignment : int
        In bytes.

    Returns
    -------
    number : int
        The number of the piece.
    offset : ndarray of int64
        Where each of the lanes accesses it.

    None if no lane accesses memory, several pieces are accessed, or a lane is out of bounds or misaligned.
    """
    starts, ends = bounds
    if NATIVE is not None and address.dtype.kind == "u" and address.dtype.itemsize in (4, 8):
        offset = np.empty(len(address), np.int64)
        number, count = NATIVE.locate(address, lanes, starts, ends, size, alignment, offset)
        return None if number < 0 else (number, offset[:count])
    mine = (address if lanes.all() else address[lanes]).astype(np.uint64, copy=False)
    if not len(mine):
        return None
    number = int(np.searchsorted(starts, mine[0], "right")) - 1
    room = int(ends[number]) - int(starts[number]) if number >= 0 else 0
    if number < 0 or room < size:
        return None
    inside = mine - starts[number]  # an address before the piece wraps to one beyond it
    if (inside > np.uint64(room - size)).any() or (mine % np.uint64(alignment)).any():
        return None
    return number, inside.astype(np.int64)


def alike(rows: Array) -> Array:
    """Return for each row of `[n, m]`, of whole 64 bits, the number of the first equal row, `[n]`."""
    if NATIVE is not None:
        first = np.empty(len(rows), np.int64)
        NATIVE.alike(flat(rows).view(np.int64), rows.shape[1] * rows.itemsize // 8, first)
        return first
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(row.tobytes(), i) for i, row in enumerate(rows)], np.int64)


def get(memory: Array, offset: Array, size: int, phase: int = 0) -> Array:
    """Return bytes `[n, size]` of memory, uint8, at offsets `[n]`.

    Offsets plus `phase` are multiples of the size if that is a power of two up to 16.
    """
    if NATIVE is not None:
        out = np.empty((len(offset), size), np.uint8)
        NATIVE.gather(memory, offset, size, out.reshape(-1))
        return out
    if not _by_words(offset, size, phase):
        return memory[offset[:, None] + np.arange(size)]
    words = _as_words(memory, size)
    return np.take(words, offset // size, axis=0).view(np.uint8)


def put(memory: Array, offset: Array, data: Array, phase: int = 0) -> None:
    """Write bytes `[n, size]`, as `get` reads them; of equal offsets, the last wins."""
    size = data.shape[-1]
    if NATIVE is not None:
        NATIVE.scatter(memory, offset, size, np.ascontiguousarray(data).reshape(-1))
        return
    if not _by_words(offset, size, phase):
        memory[offset[:, None] + np.arange(size)] = data
        return
    words = _as_words(memory, size)
    words[offset // size] = np.ascontiguousarray(data).view(words.dtype)


def move(memory: Array, offset: Array, to: Array, at: Array, size: int) -> None:
    """Move bytes of lanes from offsets `[n]` in one piece of memory to offsets in another."""
    if NATIVE is not None:
        NATIVE.move(memory, offset, to, at, size)
        return
    for origin, target in zip(offset.tolist(), at.tolist(), strict=True):
        to[target : target + size] = memory[origin : origin + size]


def bounds(offset: Array, size: int, block: int) -> tuple[int, int]:
    """Return between which offsets accesses `[n]` of a size are, counted from the start of each block of so many bytes.

    With `block` 0 there are no blocks.
    """
    if not len(offset):
        return 0, 0
    if NATIVE is not None:
        least, most = NATIVE.bounds(offset, block)
        return least, most + size
    first = offset % block if block else offset
    return int(first.min()), int(first.max()) + size


def words_of_lanes(keys: Array, lanes: Array, count: int, time: int, bit: int, touched: Array) -> Array:
    """Return the access words of the `count` lanes that are true in `lanes`; their warps are `touched` at the time.

    Parameters
    ----------
    keys : ndarray of uint64
        Words without a time, `[block, warp, lane]`.
    lanes : ndarray of bool
    count, time, bit : int
        The lowest bit of the time in a word.
    touched : ndarray of int64
        `[block, warp]`, written.
    """
    if NATIVE is not None:
        out = np.empty(count, np.uint64)
        NATIVE.who(flat(keys), flat(lanes), time, time << bit, touched.reshape(-1), lanes.shape[-1], out)
        return out
    touched[lanes.any(axis=-1)] = time
    return np.asarray(keys[lanes] | np.uint64(time) << np.uint64(bit))


def in_blocks(offset: Array, lanes: Array, stride: int, start: int) -> Array:
    """Return offsets `[n]`, from `start` in each lane's block, as those in the memory of all blocks.

    `lanes`, `[block, warp, lane]`, are those n; the memory of a block has `stride` bytes.
    """
    if NATIVE is not None:
        NATIVE.in_blocks(offset, flat(lanes), lanes.size // len(lanes), stride, start)
        return offset
    return np.asarray(offset + np.nonzero(lanes)[0] * stride + start)


def new_pages(flags: Array, offset: Array, size: int, bits: int) -> Array:
    """Set the flags of pages in which accesses at offsets `[n]` are; return where those begin that had none.

    Parameters
    ----------
    flags : ndarray of bool
        `[page]`.
    offset : ndarray of int64
    size : int
        Bytes of an access.
    bits : int
        Of an offset within a page.
    """
    if NATIVE is not None:
        found = np.empty(len(offset) * ((size >> bits) + 2), np.int64)
        return found[: NATIVE.pages(flags, offset, size, bits, found)]
    starts, ends = offset >> bits, (offset + (size - 1)) >> bits
    pages = np.unique(np.concatenate([np.minimum(starts + i, ends) for i in range(int((ends - starts).max()) + 1)]))
    pages = pages[~flags[pages]]
    flags[pages] = True
    return np.asarray(pages << bits)


def store(memory: Array, offset: Array, data: Array, lanes: Array, phase: int = 0) -> None:
    """Write bytes `[n, size]` of the n lanes that are true in `lanes`, bool `[..., lane]`, as `get` reads them.

    Where lanes of a warp store to one address, the data of one of them stay, as on an H200
    (docs/specification/h200.md, 11): a warp stores in parts, of 32, 16 or 8 lanes for up to 4, 8 or 16 bytes each; the
    last part stays, and of its lanes the lowest. PTX leaves this open. Of several warps, the last stays.
    """
    size = data.shape[-1]
    if NATIVE is not None:
        NATIVE.store(memory, offset, size, flat(data), flat(lanes), _part(size))
        return
    order = store_order(lanes, size)
    put(memory, offset[order], data[order], phase)


def store_order(lanes: Array, size: int) -> Array:
    """Return the order, `[n]`, in which the n lanes that are true in `lanes` store so many bytes each (`store`)."""
    part = np.flatnonzero(lanes) // _part(size)
    return np.lexsort((-np.arange(len(part)), part))


def _part(size: int) -> int:
    """Return how many lanes of a warp store so many bytes each at once."""
    return LANES // max(1, size // _BANK)


def _by_words(offset: Array, size: int, phase: int) -> bool:
    """Whether NumPy can make an access through words. Copies in bulk of 32 bytes are multiples of 16 only."""
    return size in _WORDS and phase % size == 0 and (size <= _ALIGNED or not (offset % size).any())


def _as_words(memory: Array, size: int) -> Array:
    width = min(size, 8)
    return memory[: len(memory) // size * size].view(f"u{width}").reshape(-1, size // width)
