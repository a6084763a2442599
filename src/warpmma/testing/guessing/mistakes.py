"""Mistakes: changes of an instruction's operands, of how it is called, or of its result.

Operands are codes of tiles: A `[warp, I, T, m * k]`, B `[warp, T, J, k * n]`, C and D `[warp, I, J, m * n]`, where a
product has I x J tiles of D and T of them along k; metadata and words of scales `[..., 32]` in place of the last
dimension. Most mistakes are a *gather* on the last dimension: the element of the tile at each place, -1 for 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

import numpy as np

from ..._arrays import Array, frozen

Change = Callable[[Array], Array]

COMMON, USUAL, RARE = 0, 1, 2
"""Ranks: the first two are tried in pairs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """A change of one operand; of D, from what came out to what was seen.

    A `whole` change needs all tiles of the array; any other acts on the last dimension alone, perhaps as a `gather`.
    """

    operand: str
    change: Change
    whole: bool = False
    gather: Array | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Mistake:
    """A possible mistake: `text` completes "as if", `settings` is how the instruction was called instead."""

    text: str
    steps: tuple[Step, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    rank: int = USUAL


def mistake_of(operand: str, text: str, change: Change | Array, rank: int = USUAL, *, whole: bool = False) -> Mistake:
    """Return a mistake with one operand: a change of it, or a gather."""
    if isinstance(change, np.ndarray):
        step = gathering(operand, change)
    else:
        step = Step(operand=operand, change=change, whole=whole)
    return Mistake(text=text, steps=(step,), rank=rank)


def gathering(operand: str, gather: Array) -> Step:
    """Return the step that gathers the elements of an operand's tiles."""
    kept = frozen(gather)
    change = partial(taken, source=kept) if (kept < 0).any() else lambda codes: codes.take(kept, axis=-1)
    return Step(operand=operand, change=change, gather=kept)


def taken(x: Array, source: Array, axis: int = -1, empty: int = 0) -> Array:
    """Take lines of an array along an axis; `empty` where the source is negative."""
    shape = [1] * x.ndim
    shape[axis] = -1
    return np.where((source < 0).reshape(shape), x.dtype.type(empty), x.take(source, axis=axis))


def inverse(gather: Array) -> Array | None:
    """Return the gather that undoes another; None where elements were lost."""
    kept = np.zeros(gather.size, bool)
    kept[gather[gather >= 0]] = True
    if not kept.all():
        return None
    back = np.empty_like(gather)
    back[gather] = np.arange(gather.size)
    return back


def digest(array: Array) -> bytes:
    """Return a few bytes that differ where arrays of one dtype differ."""
    return blake2b(np.ascontiguousarray(array).data, digest_size=16).digest()


def distinct(*families: Iterable[tuple[str, Array, int]]) -> list[tuple[str, Array, int]]:
    """Keep one text for each gather that changes something, that of the lowest rank.

    Of an earlier family's text a later one's for the same gather follows in brackets, if that is a common mistake.
    """
    found: dict[bytes, tuple[str, Array, int]] = {}
    for named in families:
        own: dict[bytes, tuple[str, Array, int]] = {}
        for text, gather, rank in sorted(named, key=lambda x: x[2]):
            own.setdefault(digest(gather.astype(np.int32)), (text, gather, rank))
        for key, (text, gather, rank) in own.items():
            before = found.get(key)
            if before is None or rank < before[2]:
                found[key] = text, gather, rank
            elif rank == COMMON:
                found[key] = f"{before[0]} ({text})", gather, rank
    kept = (x for x in found.values() if not np.array_equal(x[1], np.arange(x[1].size)))
    return sorted(kept, key=lambda x: x[2])
