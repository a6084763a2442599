"""Memory of the process that kernels read and write in place, in pieces that are mapped for a launch."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from .device import Device


@dataclass(frozen=True, kw_only=True)
class ProcessMemory(Shown):
    """A piece of the process's memory, as an array of bytes.

    Attributes
    ----------
    name : str
        In errors.
    start, stop : int
        Addresses of the process.
    writeable : bool
    addresses : bool
        Whether it may hold addresses.
    """

    name: str
    start: int
    stop: int
    writeable: bool = True
    addresses: bool = False

    @property
    def __array_interface__(self) -> dict[str, Any]:
        shape = (self.stop - self.start,)
        return {"version": 3, "typestr": "|u1", "shape": shape, "data": (self.start, not self.writeable)}


_HIGHEST = 1 << 56


@cache
def _lowest() -> int:
    """Return where this process begins.

    Most Pythons lie high. One whose executable has a fixed place, as Debian's, begins at 4 MiB, and its heap is there.
    """
    try:
        return int(Path("/proc/self/maps").read_text(encoding="ascii").partition("-")[0], 16)
    except (OSError, ValueError):
        return mmap.PAGESIZE


def likely_addresses(values: Array) -> Array:
    """Return those of some numbers, uint64, that may be addresses of this process: others are sizes, or indices."""
    return values[(values >= _lowest()) & (values < _HIGHEST)]


def memory_of(name: str, array: Array, *, addresses: bool = False) -> ProcessMemory:
    """Return the memory that an array of NumPy is a view of, as a whole."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    start, stop = np.lib.array_utils.byte_bounds(owner)
    return ProcessMemory(name=name, start=start, stop=stop, writeable=array.flags.writeable, addresses=addresses)


def merged_memory(pieces: Iterable[ProcessMemory]) -> list[ProcessMemory]:
    """Merge pieces that overlap; sorted by address."""
    found: list[ProcessMemory] = []
    for each in sorted(pieces, key=lambda piece: piece.start):
        last = found[-1] if found else None
        if last is None or each.start >= last.stop:
            found.append(each)
        else:
            found[-1] = replace(
                last, stop=max(last.stop, each.stop), writeable=last.writeable or each.writeable,
                addresses=last.addresses or each.addresses,
            )  # fmt: skip
    return found


@contextmanager
def mapped_memory(device: Device, pieces: Iterable[ProcessMemory]) -> Iterator[None]:
    """Map pieces, none of which overlap, on a device within the context, but those that its user has mapped there."""
    with ExitStack() as placed:
        for piece in pieces:
            region = device.space.find(piece.start)
            there = region is not None and region.held.start == region.start and piece.stop <= region.stop
            if not there:
                placed.callback(device.map(np.asarray(piece), piece.start, name=piece.name).free)
        yield
