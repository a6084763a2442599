"""Launches with all the memory of their device, before and after: what a GPU needs to repeat them one by one.

The rules:

1. Memory is stored once, by the hash of its bytes; memory after a launch is stored as a hash only.
2. A word of eight bytes, or a 64-bit argument, whose value is an address inside an allocation is a pointer: it is
   relocated with the memory. So are the words of arguments of bytes: the first of a tensor map is its address.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.programs.launches import Array
from lab.programs.pointers import Allocation, addresses_in

from .kept import plain_text
from .launching import Launched

__all__ = ["Piece", "Snapshot", "about", "left_there", "memory", "parsed", "read", "write"]


@dataclass(frozen=True, kw_only=True)
class Piece(Allocation):
    """An allocation, with hashes of its content before and after a launch."""

    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A launch: its origin, its PTX by hash, its sizes, arguments by type, and the memory of the device."""

    name: str
    text: str
    entry: str
    grid: Sequence[int]
    block: Sequence[int]
    shared: int
    arguments: Sequence[tuple[str, int | float | str]]
    pieces: Sequence[Piece]
    cluster: Sequence[int] | None = None


def memory(device: Any) -> dict[int, Array]:
    """Return the memory of a simulated device, by address."""
    return {region.start: np.array(region.data) for region in device.space.regions}


def digest(x: Array | str) -> str:
    """Return a hash."""
    return hashlib.sha256(x.encode() if isinstance(x, str) else x.tobytes()).hexdigest()


def left_there(after: Mapping[int, Array]) -> list[str]:
    """Return size and hash of each allocation, sorted, except those that hold addresses."""
    starts = sorted(after)
    sizes = np.array([after[start].size for start in starts], np.uint64)
    found = []
    for x in after.values():
        words = np.ascontiguousarray(x[: x.size // 8 * 8]).view(np.uint64)
        if not len(addresses_in(words, np.array(starts, np.uint64), sizes)[0]):
            found.append(f"{x.size} {digest(x)[:20]}")
    return sorted(found)


def write(path: Path, named: Iterable[tuple[str, Launched]], version: str = "", **of: str) -> None:
    """Write launches that were watched with `memory`, under given names, and what they were recorded on.

    `version` replaces the `.version` of their texts, for a driver that takes no newer one.
    """
    texts: dict[str, str] = {}
    arrays: dict[str, Array] = {}
    found: list[Snapshot] = []
    for name, one in named:
        text = _versioned(plain_text(one.text), version)
        texts[digest(text)] = text
        pieces = []
        for start, data in one.before.items():
            arrays[digest(data)] = data
            pieces.append(Piece(start=start, size=data.size, before=digest(data), after=digest(one.after[start])))
        found.append(Snapshot(
            name=name, text=digest(text), entry=one.entry, grid=one.grid, block=one.block, shared=one.shared,
            arguments=one.arguments, pieces=pieces, cluster=one.cluster,
        ))  # fmt: skip
    index = json.dumps({"texts": texts, "launches": [asdict(x) for x in found], "about": of}).encode()
    np.savez_compressed(path, index=np.frombuffer(index, np.uint8), **arrays)  # type: ignore[arg-type]


def _versioned(text: str, version: str) -> str:
    return re.sub(r"^\.version .*$", f".version {version}", text, count=1, flags=re.MULTILINE) if version else text


def read(path: Path) -> tuple[list[Snapshot], dict[str, str], Any]:
    """Return launches, texts by hash, and memory by hash."""
    archive = np.load(path)
    return *parsed(json.loads(archive["index"].tobytes())), archive


def parsed(index: Any) -> tuple[list[Snapshot], dict[str, str]]:
    """Return launches, and texts by hash, of a stored index."""
    launches = [Snapshot(**{**one, "pieces": [Piece(**piece) for piece in one["pieces"]]}) for one in index["launches"]]
    return launches, index["texts"]


def about(path: Path) -> Any:
    """Return what launches were recorded on."""
    return json.loads(np.load(path)["index"].tobytes()).get("about", {})
