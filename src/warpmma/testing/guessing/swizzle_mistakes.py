"""A shared tile that is swizzled on one side only: when it is stored and not when it is loaded, or the reverse.

A swizzle exchanges chunks of 16 bytes by exclusive or, so that lanes that read a column meet different banks. It is its
own inverse: which of the two sides forgot it cannot be seen. Lines of the matrix are contiguous in memory, its rows or
its columns; a line has `chunks` of them.

1. By the line: chunk c of line r lies at c ^ ((r >> shift) % most), most 8, 4 or 2. Where `chunks` is a multiple of
   `most`, chunks stay within their line.
2. Otherwise the other side reads beyond the end of a line: what follows in memory, or 0 in lines that are padded.
3. By the address, as TMA's swizzles of 128, 64 and 32 bytes and CuTe's Swizzle<3 | 2 | 1, 4, 3> do: chunk n lies at
   n ^ ((n >> 3) % most).
4. A matrix may lie in memory in panels, each with some neighbouring chunks of all lines, 16 at most. That matters to
   rules 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._arrays import Array
from .mistakes import RARE, USUAL

Named = Iterator[tuple[str, Array, int]]

_BITS = 128  # of a chunk
_MOST = (8, 4, 2)  # chunks that are exchanged with each other
_PANEL = 16  # chunks of a line of a panel, at most


def swizzles(shape: tuple[int, int], name: str, words: tuple[tuple[str, str], tuple[str, str]], bits: int) -> Named:
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
    chunks = cut.shape[1]
    said = f"chunks of 16 bytes of {name}"
    for text, places in _within_lines(lines, chunks, line):
        yield f"{said} were exchanged by {text}{_WHY}", _chunks(cut, places), USUAL
    for panel in dict.fromkeys((chunks, *(n for n in range(_PANEL, 1, -1) if chunks % n == 0))):
        of = "" if panel == chunks else f", in panels of {panel * size} {along},"
        for text, places in _beyond_lines(lines, chunks, panel, line, f"{panel * size} {along}"):
            yield f"{said}{of} were exchanged by {text}{_WHY}", _chunks(cut, places), RARE
        for text, places in _by_address(lines, chunks, panel):
            rank = USUAL if panel == chunks else RARE
            yield f"{said}, {order} in memory{of or ','} were exchanged by {text}{_WHY}", _chunks(cut, places), rank


_WHY = ": only the store or only the load was swizzled"
Places = Iterator[tuple[str, Array]]  # a text, and which of all chunks stands at each place, `[line, chunk]`; -1 for 0


def _masks(lines: int, line: str, most: int) -> Places:
    """List what chunks are exchanged by, `[line, 1]`."""
    r = np.arange(lines)[:, None]
    for shift in range(3):
        yield f"({line} >> {shift}) % {most}" if shift else f"{line} % {most}", r >> shift & (most - 1)


def _within_lines(lines: int, chunks: int, line: str) -> Places:
    """Rule 1."""
    r, c = np.indices((lines, chunks))
    for most in (n for n in _MOST if chunks % n == 0):
        for by, mask in _masks(lines, line, most):
            yield by, r * chunks + (c ^ mask)


def _beyond_lines(lines: int, chunks: int, panel: int, line: str, length: str) -> Places:
    """Rule 2."""
    r, c = np.indices((lines, chunks))
    for most in (n for n in _MOST if panel % n and panel > n // 2):
        for by, mask in _masks(lines, line, most):
            to = c % panel ^ mask
            n = r * panel + to
            inside = _of_panels(n, c, chunks, panel)
            yield f"{by}, reading what follows in memory", np.where(n < lines * panel, inside, -1)
            yield f"{by}, reading 0 beyond {length}", np.where(to < panel, inside, -1)


def _by_address(lines: int, chunks: int, panel: int) -> Places:
    """Rule 3."""
    r, c = np.indices((lines, chunks))
    n = r * panel + c % panel
    for most in (x for x in _MOST if lines * panel % x == 0):
        text = f"bits {most.bit_length() + 5}:7 of their addresses" if most > 2 else "bit 7 of their addresses"
        yield text, _of_panels(n ^ (n >> 3 & (most - 1)), c, chunks, panel)


def _of_panels(n: Array, c: Array, chunks: int, panel: int) -> Array:
    """Return which of all chunks is chunk n of the panel of each place."""
    return np.asarray(n // panel * chunks + c // panel * panel + n % panel)


def _chunks(cut: Array, places: Array) -> Array:
    """Return elements of the chunks that stand at each place."""
    taken = cut.reshape(-1, cut.shape[-1])[places.reshape(-1)]
    return np.where(places.reshape(-1, 1) < 0, -1, taken).reshape(-1)
