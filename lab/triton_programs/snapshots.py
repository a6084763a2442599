"""Launches with all the memory of their device, before and after: what a GPU needs to repeat them one by one.

The rules:

1. Memory is kept once, by the hash of its bytes; what a launch left is kept as a hash alone.
2. A word of eight bytes that is an address inside of a piece is one: where memory is placed elsewhere, it points there.
   An argument of 64 bits, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.programs.launches import Array

from .kept import plain_text
from .launching import Launched

__all__ = ["Piece", "Snapshot", "addresses_in", "left_there", "memory", "moved", "read", "write"]


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A piece of memory: its first address, what was in it, as a hash, and what a launch left there."""

    start: int
    size: int
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A launch: whose it is, its text by hash, its sizes, arguments by type, and the memory of the device."""

    name: str
    text: str
    entry: str
    grid: Sequence[int]
    block: Sequence[int]
    shared: int
    arguments: Sequence[tuple[str, int | float]]
    pieces: Sequence[Piece]


def memory(device: Any) -> dict[int, Array]:
    """Return what lies on a simulated device, by address."""
    return {region.start: np.array(region.data) for region in device.space.regions}


def digest(x: Array | str) -> str:
    """Return a hash."""
    return hashlib.sha256(x.encode() if isinstance(x, str) else x.tobytes()).hexdigest()


def addresses_in(words: Array, starts: Array, sizes: Array) -> tuple[Array, Array]:
    """Return which words are addresses inside of pieces that lie in the order of their addresses, and of which."""
    piece = np.searchsorted(starts, words, side="right") - 1
    inside = (piece >= 0) & (words - starts[piece] < sizes[piece])
    places = np.flatnonzero(inside)
    return places, piece[places]


def moved(data: Array, pieces: Sequence[Piece], to: Mapping[int, int]) -> Array:
    """Return memory whose addresses (rule 2) point into the pieces where these lie now."""
    made = np.array(data)
    words = made[: made.size // 8 * 8].view(np.uint64)
    known = sorted(pieces, key=lambda piece: piece.start)
    starts = np.array([piece.start for piece in known], np.uint64)
    places, which = addresses_in(words, starts, np.array([piece.size for piece in known], np.uint64))
    targets = np.array([to[piece.start] for piece in known], np.uint64)
    words[places] += targets[which] - starts[which]
    return made


def left_there(after: Mapping[int, Array]) -> list[str]:
    """Return size and hash of each piece of memory, sorted, but for pieces that hold addresses."""
    starts = sorted(after)
    sizes = np.array([after[start].size for start in starts], np.uint64)
    found = []
    for x in after.values():
        words = np.ascontiguousarray(x[: x.size // 8 * 8]).view(np.uint64)
        if not len(addresses_in(words, np.array(starts, np.uint64), sizes)[0]):
            found.append(f"{x.size} {digest(x)[:20]}")
    return sorted(found)


def write(path: Path, named: Iterable[tuple[str, Launched]]) -> None:
    """Write launches that were watched with `memory`, under the names that they are given."""
    texts: dict[str, str] = {}
    arrays: dict[str, Array] = {}
    found: list[Snapshot] = []
    for name, one in named:
        text = plain_text(one.text)
        texts[digest(text)] = text
        pieces = []
        for start, data in one.before.items():
            arrays[digest(data)] = data
            pieces.append(Piece(start=start, size=data.size, before=digest(data), after=digest(one.after[start])))
        found.append(Snapshot(
            name=name, text=digest(text), entry=one.entry, grid=one.grid, block=one.block, shared=one.shared,
            arguments=one.arguments, pieces=pieces,
        ))  # fmt: skip
    index = json.dumps({"texts": texts, "launches": [asdict(x) for x in found]}).encode()
    np.savez_compressed(path, index=np.frombuffer(index, np.uint8), **arrays)  # type: ignore[arg-type]


def read(path: Path) -> tuple[list[Snapshot], dict[str, str], Any]:
    """Return launches, texts by hash, and memory by hash."""
    archive = np.load(path)
    index = json.loads(archive["index"].tobytes())
    launches = [Snapshot(**{**one, "pieces": [Piece(**piece) for piece in one["pieces"]]}) for one in index["launches"]]
    return launches, index["texts"], archive
