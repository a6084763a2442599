"""Atomics of many lanes at once: one after another where they meet, all together where they do not.

The rules:

1. Lanes that change one element do so in turns: in the order in which they are given. What each has read, and what is
   there at the end, is what a loop over the lanes would give: `one_by_one`.
2. Elements do not know of each other: the first of each are done together, then the second, and so on. Where an
   operation on integers is associative its turns are a prefix sum over the lanes of an element, in as many steps as
   their number has bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..operations import Atomic

__all__ = ["in_turns", "one_by_one"]

Array = npt.NDArray[Any]
Combine = Callable[..., Array]

_ASSOCIATIVE = frozenset(("and", "or", "xor", "add", "min", "max", "exch"))
_FEW = 8  # turns, which are taken one by one in any case


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
    by_rank = order[np.argsort(rank, kind="stable")]
    ends = np.cumsum(np.bincount(rank, minlength=most)).tolist()
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
