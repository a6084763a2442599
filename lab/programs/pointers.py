"""Pointers in recorded memory: which words are addresses inside an allocation, and how they are relocated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .launches import Array

__all__ = ["Allocation", "addresses_in", "moved"]


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """An allocation: its first address, and its bytes."""

    start: int
    size: int


def addresses_in(words: Array, starts: Array, sizes: Array) -> tuple[Array, Array]:
    """Return which words are addresses inside allocations, sorted by address, and of which allocation."""
    piece = np.searchsorted(starts, words, side="right") - 1
    inside = (piece >= 0) & (words - starts[piece] < sizes[piece])
    places = np.flatnonzero(inside)
    return places, piece[places]


def moved(data: Array, pieces: Sequence[Allocation], to: Mapping[int, int]) -> Array:
    """Return memory with its pointers relocated: words of 64 bits that are addresses inside an allocation.

    Parameters
    ----------
    data : ndarray of uint8
    pieces : sequence of Allocation
        They do not overlap.
    to : mapping of int to int
        The new first address of each, by the recorded one.
    """
    made = np.array(data)
    words = made[: made.size // 8 * 8].view(np.uint64)
    known = sorted(pieces, key=lambda piece: piece.start)
    starts = np.array([piece.start for piece in known], np.uint64)
    places, which = addresses_in(words, starts, np.array([piece.size for piece in known], np.uint64))
    targets = np.array([to[piece.start] for piece in known], np.uint64)
    words[places] += targets[which] - starts[which]
    return made
