"""Bytes from and to an array of bytes, in the native engine or through a view as words.

Where there is no native engine, accesses of 2, 4, 8 or 16 aligned bytes a lane go through words.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from . import memory_engine

_WORDS = (1, 2, 4, 8, 16, 32)  # bytes of an access; from 16 on, several words


def get(memory: Array, offset: Array, size: int, phase: int = 0) -> Array:
    """Bytes `[n, size]` of memory, uint8, from offsets `[n]` on.

    With the `phase`, offsets are multiples of the size if that is a power of two.
    """
    if memory_engine.NATIVE is not None:
        out = np.empty((len(offset), size), np.uint8)
        memory_engine.NATIVE.gather(memory, offset, size, out.reshape(-1))
        return out
    if size not in _WORDS or phase % size:
        return memory[offset[:, None] + np.arange(size)]
    words = _words(memory, size)
    return np.take(words, offset // size, axis=0).view(np.uint8)


def put(memory: Array, offset: Array, data: Array, phase: int = 0) -> None:
    """Write bytes `[n, size]`, as `get` reads them; where offsets are the same, the last."""
    size = data.shape[-1]
    if memory_engine.NATIVE is not None:
        memory_engine.NATIVE.scatter(memory, offset, size, np.ascontiguousarray(data).reshape(-1))
        return
    if size not in _WORDS or phase % size:
        memory[offset[:, None] + np.arange(size)] = data
        return
    words = _words(memory, size)
    words[offset // size] = np.ascontiguousarray(data).view(words.dtype)


def _words(memory: Array, size: int) -> Array:
    width = min(size, 8)
    return memory[: len(memory) // size * size].view(f"u{width}").reshape(-1, size // width)
