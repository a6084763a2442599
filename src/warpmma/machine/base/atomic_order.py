"""Atomics of many lanes at once: one after another on one element, together on different elements.

The rules:

1. Lanes that change one element do so in turns, in the order in which they are given. What each reads, and the final
   value, equal those of a loop over the lanes: `one_by_one`.
2. Elements are independent: the first turns of all elements are computed together, then the second, and so on. If the
   operation is associative on integers, the turns are a prefix sum over the lanes of an element, which takes as many
   steps as their number has bits.
3. Floats that many lanes add to one element are added by NumPy, one after another, if that equals the row's addition:
   no NaN results, and nothing is subnormal where subnormals count as zero.
4. Of many lanes that compare and swap, only those matter that find the value they compare with: between two of them,
   all lanes read the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np

from ..._arrays import Array
from ...formats import FORMATS, FloatFormat
from ...operations import Atomic

Combine = Callable[..., Array]

_ASSOCIATIVE = frozenset(("and", "or", "xor", "add", "min", "max", "exch"))
_FEW, _MANY = 8, 64  # turns that are always taken one by one, and the most that are


def one_by_one(row: Atomic, space: str, place: Array, start: Array, operands: list[Array]) -> tuple[Array, Array]:
    """Take turns, by rule 1.

    Parameters
    ----------
    row : Atomic
    space : {"global", "shared"}
    place : ndarray of int
        The element that each lane changes, `[lane]`.
    start : ndarray of unsigned int
        Their values, `[element]`; `[element, 2]` for 128 bits.
    operands : list of ndarray
        `[lane]` each, or `[lane, 2]`.

    Returns
    -------
    found, left : ndarray
        The value that each lane has read, `[lane]`, and the final values, `[element]`.
    """
    left, found = start.copy(), np.empty((len(place), *start.shape[1:]), start.dtype)
    for lane, where in enumerate(place.tolist()):
        found[lane] = left[where]
        left[where] = row.combine(space, left[where : where + 1], *(x[lane : lane + 1] for x in operands))[0]
    return found, left


def in_turns(row: Atomic, space: str, place: Array, start: Array, operands: list[Array]) -> tuple[Array, Array]:
    """Take turns, as `one_by_one` does, by rule 2."""
    combine = partial(row.combine, space)
    order = np.argsort(place, kind="stable")
    held = place[order]
    first = np.flatnonzero(np.diff(held, prepend=-1))
    lengths = np.diff(first, append=len(place))
    rank = np.arange(len(place)) - np.repeat(first, lengths)
    most = int(lengths.max(initial=0))
    if row.operation in _ASSOCIATIVE and not row.floating and most > _FEW:
        return _together(combine, place, start, operands[0], order, first, lengths, rank)
    left, found = start.copy(), np.empty((len(place), *start.shape[1:]), start.dtype)
    if most > _MANY and row.bits < 128 and (row.floating or row.operation == "cas"):
        taken = _added(row, space, place, left, found, operands[0], order, first, lengths)
        if row.operation == "cas":
            taken = _swapped(place, left, found, operands, order, first, lengths)
        if taken.all():
            return found, left
        keep = ~np.repeat(taken, lengths)
        order, rank = order[keep], rank[keep]
    by_rank = order[np.argsort(rank, kind="stable")]
    ends = np.cumsum(np.bincount(rank)).tolist()
    for begin, end in zip([0, *ends], ends, strict=False):
        lanes = by_rank[begin:end]
        where = place[lanes]
        found[lanes] = now = left[where]
        left[where] = combine(now, *(x[lanes] for x in operands))
    return found, left


def _together(
    combine: Combine, place: Array, start: Array, values: Array, order: Array, first: Array, lengths: Array, rank: Array
) -> tuple[Array, Array]:
    """Combine the values with the operands of all earlier lanes, by a prefix sum."""
    sums, step = values[order], 1
    while step < lengths.max():
        far = np.flatnonzero(rank >= step)
        sums[far] = combine(sums[far - step], sums[far])
        step *= 2
    before = start[place[order]]
    after = combine(before, sums)
    found, left = np.empty_like(after), start.copy()
    begins = (rank == 0).reshape(-1, *[1] * (start.ndim - 1))
    found[order] = np.where(begins, before, np.roll(after, 1, axis=0))
    last = first + lengths - 1
    left[place[order[last]]] = after[last]
    return found, left


def _added(
    row: Atomic, space: str, place: Array, left: Array, found: Array, values: Array, order: Array, first: Array,
    lengths: Array,
) -> Array:  # fmt: skip
    """Rule 3: add at elements that many lanes change; return which of all `first` these are."""
    done = np.zeros(len(first), bool)
    if not row.floating:
        return done
    fmt = cast(FloatFormat, FORMATS[row.type.removesuffix("x2")])
    flushes = row.type == "f32" and space == "global"
    for i in np.flatnonzero(lengths > _MANY).tolist():
        lanes = order[first[i] : first[i] + lengths[i]]
        at = place[lanes[0]]
        codes = np.concatenate([left[at : at + 1], values[lanes]])
        terms = codes.view(fmt.dtype).reshape(len(codes), -1)
        with np.errstate(all="ignore"):
            sums = np.add.accumulate(terms, axis=0, dtype=terms.dtype)
            size = np.abs(np.concatenate([terms, sums]))
            low = flushes and bool(((size != 0) & (size < np.finfo(np.float32).tiny)).any())
            numbers = bool((size == size).all())  # comparing NaN warns for ml_dtypes
        if low or not numbers:
            continue
        held = np.ascontiguousarray(sums).view(codes.dtype).reshape(-1)
        found[lanes], left[at] = held[:-1], held[-1]
        done[i] = True
    return done


def _swapped(
    place: Array, left: Array, found: Array, operands: list[Array], order: Array, first: Array, lengths: Array
) -> Array:
    """Rule 4: compare and swap at elements where many lanes do; return which of all `first` these are."""
    done = np.zeros(len(first), bool)
    equal, new = operands
    for i in np.flatnonzero(lengths > _MANY).tolist():
        lanes = order[first[i] : first[i] + lengths[i]]
        at, wanted, begin = place[lanes[0]], equal[lanes], 0
        now = left[at]
        while begin < len(lanes):
            hits = np.flatnonzero(wanted[begin:] == now)
            end = begin + int(hits[0]) + 1 if len(hits) else len(lanes)
            found[lanes[begin:end]] = now
            if len(hits):
                now = new[lanes[end - 1]]
            begin = end
        left[at], done[i] = now, True
    return done
