"""Mistakes with matrices: rows and columns shifted, exchanged, copied or left out; other orders in memory; values.

Gathers are on the flattened matrix, of a tile or of all tiles together.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._arrays import Array
from ..._text import counted
from ...formats import FloatFormat, Format
from .mistakes import COMMON, RARE, USUAL, Change

Named = Iterator[tuple[str, Array, int]]


def axis_sources(length: int, one: str, many: str, special: tuple[int, ...] = ()) -> Named:
    """List what may stand at each of some rows or columns in place of its own: text, numbers `[length]`, rank."""
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
        yield text.format(f"of {name}"), _taken(index, source, 0), rank
    for text, source, rank in axis_sources(columns, *words[1], special=(special,)):
        yield text.format(f"of {name}"), _taken(index, source, 1), rank


def _by_columns(index: Array, name: str) -> Named:
    """Other addresses in a matrix that lies in memory by columns."""
    turned = index.T
    for text, gather, rank in _addressed(np.arange(turned.size).reshape(turned.shape), name, "by columns"):
        moved = np.where(gather < 0, -1, turned.reshape(-1)[gather])
        yield text, moved.reshape(turned.shape).T.reshape(-1), rank


def _addressed(index: Array, name: str, order: str) -> Named:
    """Other strides and other first elements in memory, in which lines of the matrix follow each other; 0 beyond it."""
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


def _taken(index: Array, source: Array, axis: int) -> Array:
    empty = source < 0
    shape = (-1, 1) if axis == 0 else (1, -1)
    return np.where(empty.reshape(shape), -1, index.take(source, axis=axis)).reshape(-1)


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
