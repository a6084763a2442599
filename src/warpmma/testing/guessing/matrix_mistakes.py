"""Mistakes with matrices: rows and columns shifted, exchanged, copied or left out; other orders in memory; values.

Gathers are on the flattened matrix, of a tile or of all tiles together.

A shared tile may be swizzled on one side only: when it is stored and not when it is loaded, or the reverse. A swizzle
exchanges chunks of 16 bytes by exclusive or, so that lanes that read a column hit different banks. It is its own
inverse, so the bits do not show which side lacks it. Lines of the matrix are contiguous in memory, its rows or
its columns; a line has `chunks` of them.

1. By the line: chunk c of line r is at c ^ ((r >> shift) % most), most 8, 4 or 2. Where `chunks` is a multiple of
   `most`, chunks stay within their line.
2. Otherwise the other side reads beyond the end of a line: what follows in memory, or 0 in lines that are padded.
3. By the address, as TMA's swizzles of 128, 64 and 32 bytes and CuTe's Swizzle<3 | 2 | 1, 4, 3> do: chunk n is at
   n ^ ((n >> 3) % most).
4. A matrix may be stored in panels, each with some neighbouring chunks of all lines, 16 at most. That matters to
   rules 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ..._arrays import Array
from ..._text import counted
from ...formats import FloatFormat, Format
from .mistakes import COMMON, RARE, USUAL, Change, Mistake, Step, mistake_of, taken

MOST_NAMED = 64
"""Tiles along k that are left out or used twice one by one."""

# Of operands' arrays: the dimension that runs along k, along rows of D, along its columns.
_ALONG_K = {"A": 2, "B": 1, "metadata": 2, "scale_a": 2, "scale_b": 1}
_ROWS = {"A": 1, "C": 1, "D": 1, "metadata": 1, "scale_a": 1}
_COLUMNS = {"B": 2, "C": 2, "D": 2, "scale_b": 2}
_WITH = {"A": ("A", "metadata", "scale_a"), "B": ("B", "scale_b")}


def mistakes_in_tiles(
    operands: tuple[str, ...], warps: int, rows: int, columns: int, along_k: int
) -> Iterator[Mistake]:
    """List mistakes between the tiles of a product."""
    if along_k > 1:
        yield from _along_k(operands, along_k)
    for count, dims, one, many in (
        (rows, _ROWS, "row of tiles", "rows of tiles"), (columns, _COLUMNS, "column of tiles", "columns of tiles"),
        (warps, dict.fromkeys(("A", "B", "C", "D", "metadata", "scale_a", "scale_b"), 0), "warp", "warps"),
    ):  # fmt: skip
        for text, source, rank in axis_sources(count, one, many):
            for name in ("A", "B", "C", "D", "metadata", "scale_a", "scale_b"):
                if name in dims and name in operands and (source >= 0).all() and rank < RARE:
                    said = text.format(f"of {_said(name)}")
                    yield mistake_of(name, said, partial(np.take, indices=source, axis=dims[name]), whole=True)


def _said(name: str) -> str:
    return {"metadata": "the metadata", "scale_a": "the scales of A", "scale_b": "the scales of B"}.get(name, name)


def _along_k(operands: tuple[str, ...], count: int) -> Iterator[Mistake]:
    x = np.arange(count)
    everything = tuple(name for name in _ALONG_K if name in operands)
    of_a, of_b = (tuple(name for name in _WITH[key] if name in operands) for key in "AB")
    alone = tuple((name,) for name in everything if name not in ("A", "B"))

    def mistake(text: str, names: tuple[str, ...], order: Array, rank: int) -> Mistake:
        changes = {name: partial(np.take, indices=order, axis=_ALONG_K[name]) for name in names}
        steps = tuple(Step(operand=name, change=change, whole=True) for name, change in changes.items())
        return Mistake(text=text, steps=steps, rank=rank)

    for t in range(count)[:MOST_NAMED]:
        left = x[x != t]
        yield mistake(f"k-tile {t} of {count} was left out", everything, left, COMMON)
    last = mistake("accumulators were set back to C at every k-tile: only the last counts", everything, x[-1:], COMMON)
    yield last
    cleared = Step(operand="C", change=np.zeros_like)
    yield replace(
        last, text="accumulators were set back to 0 at every k-tile: only the last counts", steps=(*last.steps, cleared)
    )
    yield mistake("only the first k-tile was used", everything, x[:1], USUAL)
    yield mistake("k-tiles were taken in reverse order", everything, x[::-1], USUAL)
    early, late = np.minimum(x + 1, count - 1), np.maximum(x - 1, 0)
    for names in (everything, of_a, of_b, *alone):
        said = " and ".join(map(_said, names)) if names != everything else "A and B"
        were = "was" if said in ("A", "B") else "were"
        yield mistake(f"{said} {were} one k-tile late, the first used twice", names, late, COMMON)
        yield mistake(f"{said} {were} one k-tile early, the last used twice", names, early, COMMON)
        yield mistake(f"{said} {were} one k-tile early, the first at the end", names, (x + 1) % count, USUAL)
        yield mistake(f"{said} {were} one k-tile late, the last at the beginning", names, (x - 1) % count, USUAL)
        yield mistake(f"every k-tile of {said} was the first", names, x * 0, USUAL)
        yield mistake(f"every k-tile of {said} was the last", names, x * 0 + count - 1, USUAL)
        yield mistake(f"k-tiles of {said} were used twice each: 0, 0, 2, 2, ...", names, x & ~1, USUAL)
        if count % 2 == 0:
            yield mistake(f"k-tiles of {said} were overwritten before use: 1, 1, 3, 3, ...", names, x | 1, USUAL)
            yield mistake(f"k-tiles of {said} were exchanged in pairs", names, x ^ 1, USUAL)
        for t in range(count - 1)[:MOST_NAMED]:
            again, before = np.where(x == t + 1, t, x), np.where(x == t, t + 1, x)
            yield mistake(f"k-tile {t} of {said} was used again in place of k-tile {t + 1}", names, again, COMMON)
            yield mistake(f"k-tile {t + 1} of {said} was used in place of k-tile {t}, too", names, before, USUAL)


Named = Iterator[tuple[str, Array, int]]

_BITS = 128  # of a chunk
_MOST = (8, 4, 2)  # chunks that are exchanged with each other
_PANEL = 16  # chunks of a line of a panel, at most


def swizzles(shape: tuple[int, int], name: str, words: tuple[tuple[str, str], tuple[str, str]], bits: int) -> Named:
    """List gathers of a matrix with elements of `bits` bits; `words` as for `matrix_gathers`."""
    index = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    across, along = words
    yield from _of_lines(index, name, "by rows", across[0], along[1], bits)
    for text, gather, rank in _of_lines(index.T, name, "by columns", along[0], across[1], bits):
        yield text, gather.reshape(shape[::-1]).T.reshape(-1), rank


def _of_lines(index: Array, name: str, order: str, line: str, along: str, bits: int) -> Named:
    """List gathers `[line, element]` of a matrix whose lines are contiguous, as indices of the matrix; -1 for 0."""
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
Places = Iterator[tuple[str, Array]]  # a text, and the number of the chunk at each place, `[line, chunk]`; -1 for 0


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
    """Return the elements of the chunk at each place."""
    taken = cut.reshape(-1, cut.shape[-1])[places.reshape(-1)]
    return np.where(places.reshape(-1, 1) < 0, -1, taken).reshape(-1)


def axis_sources(length: int, one: str, many: str, special: tuple[int, ...] = ()) -> Named:
    """List what may replace each of some rows or columns: text, numbers `[length]`, rank."""
    x = np.arange(length)
    if length < 2:
        return
    half = length // 2
    low, high = _range(0, half), _range(half, length)
    powers = [1 << i for i in range(1, 12)]
    if length % 2 == 0:
        yield f"{many} {low} and {high} {{}} were exchanged", (x + half) % length, COMMON
    shifts = [s for s in dict.fromkeys((1, *special, *powers)) if s < length]
    for shift in shifts:
        rank = COMMON if shift == 1 or shift in special else USUAL
        for s in (shift, -shift):
            text = f"{many} {{}} were shifted by {shift}: {one} i was {one} i {'+' if s > 0 else '-'} {shift}"
            yield f"{text}, round the end", (x + s) % length, rank
            yield f"{text}, 0 beyond the end", np.where((x + s >= 0) & (x + s < length), x + s, -1), USUAL
    for mask in (1 << i for i in range(12) if length % (2 << i) == 0):
        yield f"{many} i and i ^ {mask} {{}} were exchanged", x ^ mask, COMMON if mask == 1 else USUAL
    yield f"{many} {{}} were in reverse order", x[::-1], USUAL
    if length % 2 == 0:
        yield f"{many} {high} {{}} were those of {low}", x % half, USUAL
        yield f"{many} {low} {{}} were those of {high}", x % half + half, USUAL
        yield f"{many} {high} {{}} were 0", np.where(x < half, x, -1), USUAL
        yield f"{many} {low} {{}} were 0", np.where(x >= half, x, -1), USUAL
    yield f"every {one} {{}} was {one} 0", x * 0, USUAL
    yield f"the last {one} {{}} was 0", np.where(x < length - 1, x, -1), RARE


def _range(start: int, stop: int) -> str:
    return f"{start}-{stop - 1}" if stop - start > 1 else str(start)


def matrix_gathers(
    shape: tuple[int, ...], name: str, words: tuple[tuple[str, str], tuple[str, str]], special: int
) -> Named:
    """List what may be wrong with a matrix; `words` name one and many of its rows, and of its columns."""
    *before, rows, columns = shape
    if before:  # several matrices to an instruction
        return
    index = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    if rows == columns:
        yield f"{name} was transposed", index.T.reshape(-1), COMMON
    else:
        text = f"{name}, {{}} in memory, was read as {{}}"
        by_rows, by_columns = "by rows", "by columns"
        yield text.format(by_rows, by_columns), index.reshape(columns, rows).T.reshape(-1), COMMON
        yield text.format(by_columns, by_rows), index.T.reshape(rows, columns).reshape(-1), COMMON
    yield from _addressed(index, name, "by rows")
    yield from (
        (text, gather.reshape(columns, rows).T.reshape(-1), rank) for text, gather, rank in _by_columns(index, name)
    )
    for text, source, rank in axis_sources(rows, *words[0], special=(special,)):
        yield text.format(f"of {name}"), taken(index, source, 0, -1).reshape(-1), rank
    for text, source, rank in axis_sources(columns, *words[1], special=(special,)):
        yield text.format(f"of {name}"), taken(index, source, 1, -1).reshape(-1), rank


def _by_columns(index: Array, name: str) -> Named:
    """List other addresses in a matrix that is stored by columns."""
    turned = index.T
    for text, gather, rank in _addressed(np.arange(turned.size).reshape(turned.shape), name, "by columns"):
        moved = np.where(gather < 0, -1, turned.reshape(-1)[gather])
        yield text, moved.reshape(turned.shape).T.reshape(-1), rank


def _addressed(index: Array, name: str, order: str) -> Named:
    """List other strides and first elements in memory, where lines of the matrix are consecutive; 0 beyond it."""
    lines, length = index.shape
    size, x = index.size, np.arange(index.size)

    def at(places: Array) -> Array:
        return np.where((places >= 0) & (places < size), places, -1)

    for stride in dict.fromkeys((length // 2, length - 1, length + 1, 2 * length, length - 8, length + 8, lines)):
        if stride > 0 and stride != length:
            places = x // length * stride + x % length
            yield f"{name}, {order} in memory, was read with a stride of {stride}, not {length}", at(places), USUAL
    for shift in (1, -1, 2, -2, 8, -8):
        far = f"{counted(abs(shift), 'element')} too {'far' if shift > 0 else 'early'}"
        yield f"{name}, {order} in memory, was read {far}", at(x + shift), USUAL


def value_changes(fmt: Format, name: str, bits_in_slot: int) -> Iterator[tuple[str, Change, int]]:
    """List what may be wrong with every element's value: text, change of codes, rank."""
    yield f"{name} was 0", lambda codes: np.zeros_like(codes), COMMON
    if fmt.bits in (16, 32, 64) and fmt.code_dtype.itemsize * 8 == fmt.bits:
        yield f"the bytes of each element of {name} were in reverse order", lambda codes: codes.byteswap(), USUAL
    if fmt.name == "tf32":
        yield f"{name} was rounded (cvt.rna.tf32.f32)", _rounded_away, COMMON
    if isinstance(fmt, FloatFormat) and fmt.signed:
        sign = fmt.code_dtype.type(fmt.sign_bit)
        yield f"{name} was negated", lambda codes: codes ^ sign, USUAL
    elif not isinstance(fmt, FloatFormat) and fmt.bits > 1:
        top = fmt.code_dtype.type(1 << fmt.bits - 1)
        yield f"the top bits of {name} were flipped", lambda codes: codes ^ top, USUAL
    if bits_in_slot > fmt.bits and fmt.bits < 8:
        mask = fmt.code_dtype.type(fmt.mask)
        for shift in (1, 2, 3, 4):
            for word, moved in (("left", lambda c, s=shift: (c << s) & mask), ("right", lambda c, s=shift: c >> s)):
                yield f"the elements of {name} lay {shift} bits too far {word} in their bytes", moved, USUAL


def _rounded_away(codes: Array) -> Array:
    finite = codes & np.uint32(0x7F80_0000) != 0x7F80_0000
    return np.where(finite, (codes + np.uint32(0x1000)) & np.uint32(0xFFFF_E000), codes).astype(codes.dtype)
