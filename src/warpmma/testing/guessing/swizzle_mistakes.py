"""A shared tile that is swizzled on one side only: when it is stored and not when it is loaded, or the reverse.

A swizzle exchanges chunks of 16 bytes by exclusive or, so that lanes that read a column meet different banks. It is its
own inverse: which of the two sides forgot it cannot be seen. Lines of the matrix are contiguous in memory, its rows or
its columns; a line has `chunks` of them.

1. By the line: chunk c of line r lies at c ^ ((r >> shift) % most), most 8, 4 or 2. Where `chunks` is a multiple of
   `most`, chunks stay within their line. Otherwise the other side reads beyond its end: what follows in memory, or 0 in
   lines that are padded.
2. By the address, as TMA's swizzles of 128, 64 and 32 bytes and CuTe's Swizzle<3 | 2 | 1, 4, 3> do: chunk n of a panel
   lies at n ^ ((n >> 3) % most). A panel has all lines, and a power of two of chunks of each, or whole lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .mistakes import RARE, USUAL

__all__ = ["swizzles"]

Array = npt.NDArray[Any]
Named = Iterator[tuple[str, Array, int]]

_BITS = 128  # of a chunk
_MOST = (8, 4, 2)  # chunks that are exchanged with each other


def swizzles(
    shape: tuple[int, int], name: str, words: tuple[tuple[str, str], tuple[str, str]], bits: int
) -> Named:  # fmt: skip
    """List gathers of a matrix of elements of so many bits; `words` as of `matrix_gathers`."""
    index = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    across, along = words
    yield from _of_lines(index, name, "by rows", across[0], along[1], bits)
    for text, gather, rank in _of_lines(index.T, name, "by columns", along[0], across[1], bits):
        yield text, gather.reshape(shape[::-1]).T.reshape(-1), rank


def _of_lines(index: Array, name: str, order: str, line: str, along: str, bits: int) -> Named:
    """Gathers `[line, element]` of a matrix whose lines are contiguous, as indices of the matrix; -1 for 0."""
    lines, length = index.shape
    size = _BITS // bits
    if length % size or length < 2 * size:
        return
    cut = index.reshape(lines, -1, size)
    said = f"chunks of 16 bytes of {name}"
    for text, places, rank in _by_line(lines, cut.shape[1], line, f"{length} {along}"):
        yield f"{said} were exchanged by {text}{_WHY}", _chunks(cut, places), rank
    for panel, text, places, rank in _by_address(lines, cut.shape[1]):
        panels = "" if panel == cut.shape[1] else f" in panels of {panel * size} {along},"
        yield f"{said}, {order} in memory,{panels} were exchanged by {text}{_WHY}", _chunks(cut, places), rank


_WHY = ": only the store or only the load was swizzled"


def _by_line(lines: int, chunks: int, line: str, length: str) -> Named:
    """Rule 1: text, where each chunk comes from `[line, chunk]` in all of them, rank."""
    r, c = np.indices((lines, chunks))
    for shift in range(3):
        for most in _MOST:
            by = f"({line} >> {shift}) % {most}" if shift else f"{line} % {most}"
            to = c ^ ((r >> shift) & (most - 1))
            n = r * chunks + to
            if chunks % most == 0:
                yield by, n, USUAL
            elif chunks > most // 2:
                yield f"{by}, reading what follows in memory", np.where(n < lines * chunks, n, -1), RARE
                yield f"{by}, reading 0 beyond {length}", np.where(to < chunks, n, -1), RARE


def _by_address(lines: int, chunks: int) -> Iterator[tuple[int, str, Array, int]]:
    """Rule 2: chunks of a panel's line, and what `_by_line` yields."""
    r, c = np.indices((lines, chunks))
    powers = [1 << i for i in range(1, chunks.bit_length()) if chunks % (1 << i) == 0]
    for panel in dict.fromkeys((chunks, *powers)):
        n = r * panel + c % panel
        for most in _MOST:
            if lines * panel % most == 0:
                to = n ^ ((n >> 3) & (most - 1))
                text = f"bits {most.bit_length() + 5}:7 of their addresses" if most > 2 else "bit 7 of their addresses"
                yield panel, text, to // panel * chunks + c // panel * panel + to % panel, _rank(panel, chunks)


def _rank(panel: int, chunks: int) -> int:
    return USUAL if panel == chunks else RARE


def _chunks(cut: Array, places: Array) -> Array:
    """Return elements of the chunks that stand at each place."""
    taken = cut.reshape(-1, cut.shape[-1])[places.reshape(-1)]
    return np.where(places.reshape(-1, 1) < 0, -1, taken).reshape(-1)
