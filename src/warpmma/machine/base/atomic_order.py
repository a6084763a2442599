"""Atomics of many lanes at once: one after another where they meet, all together where they do not.

The rules:

1. Lanes that change one element do so in turns: in the order in which they are given. What each has read, and what is
   there at the end, is what a loop over the lanes would give: `one_by_one`.
2. Elements do not know of each other: the first of each are done together, then the second, and so on. Where an
   operation on integers is associative its turns are a prefix sum over the lanes of an element, in as many steps as
   their number has bits.
3. Floats that many lanes add to one element are added by NumPy, one after another, where that is what the row does: no
   NaN comes of it, and nothing subnormal where that counts as zero.
4. Of many lanes that compare and swap only those count who find what they look for: between two of these all find the
   same.
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
_FEW, _MANY = 8, 64  # turns that are taken one by one in any case, and at most


def one_by_one(row: Atomic, space: str, place: Array, start: Array, operands: list[Array]) -> tuple[Array, Array]:
    """Take turns, by rule 1.

    Parameters
    ----------
    row : Atomic
    space : {"global", "shared"}
    place : ndarray of int
        Which element each lane changes, `[lane]`.
    start : ndarray of unsigned int
        What is there, `[element]`; of 128 bits `[element, 2]`.
    operands : list of ndarray
        `[lane]` each, or `[lane, 2]`.

    Returns
    -------
    found, left : ndarray
        What each lane has read, `[lane]`, and what is there at the end, `[element]`.
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
    """Combine what is there with what all before a lane bring, which is associative."""
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
    """Rule 3: add at elements that many lanes change; return which these are, of all `first`."""
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
            numbers = bool((size == size).all())  # comparing NaN warns for types of ml_dtypes
        if low or not numbers:
            continue
        held = np.ascontiguousarray(sums).view(codes.dtype).reshape(-1)
        found[lanes], left[at] = held[:-1], held[-1]
        done[i] = True
    return done


def _swapped(
    place: Array, left: Array, found: Array, operands: list[Array], order: Array, first: Array, lengths: Array
) -> Array:
    """Rule 4: compare and swap at elements where many lanes do; return which these are, of all `first`."""
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
