"""State spaces: in which of them the addresses of an access lie, and accesses by PTX's name of a space.

The rules (`operations.WINDOWS`):

1. The window that holds a generic address names its space; lanes of one access may be in different spaces.
2. Constant memory and parameters are read-only pieces at generic addresses; global memory has no window.
3. `.shared` is the thread's own block, `.shared::cluster` and generic addresses reach all blocks of its cluster.
4. Variables of constant memory lie in the memory of the device, as cudaGetSymbolAddress returns them: if nvcc takes a
   pointer to one, such as an argument, for a pointer to global memory, `ld.global` reads it. Writing there is a hazard
   as elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._arrays import Array
from ...operations import WINDOWS, MemoryOrder, MemoryScope
from ..base import Poison, Site
from ..memory import Allocation, Space, Touch
from .batch import Batch

Part = tuple[Space, Array, Array]
"""A space, addresses in it, and the lanes whose addresses those are."""

_FIRST = min(window.base for window in WINDOWS.values()) >> 32
_WINDOWS_START, _WINDOWS_SIZE = np.uint64(_FIRST << 32), np.uint64(len(WINDOWS) << 32)
_CONSTANTS = np.uint64(WINDOWS["const"].base)


def parts(batch: Batch, site: Site, space: str, address: Array, lanes: Array) -> list[Part]:
    """Return where lanes find the memory that they access.

    Parameters
    ----------
    batch : Batch
    site : Site
    space : str
        One of `operations.SPACES`.
    address : ndarray of uint
        `[block, warp, lane]`.
    """
    if space == "shared":
        return [(batch.shared, address, own(batch, site, address, lanes))]
    if space == "shared::cluster":
        return [(batch.shared, address, lanes)]
    if space == "local":
        return [(batch.local, address, lanes)]
    memory = batch.global_space
    address = address.astype(np.uint64, copy=False)
    if space in ("const", "param"):
        return [(memory, address + np.uint64(WINDOWS[space].base), lanes)]
    if (address - _WINDOWS_START >= _WINDOWS_SIZE).all():
        return [(memory, address, lanes)]
    window = (address >> np.uint64(32)) - np.uint64(_FIRST)
    elsewhere = lanes & (window < np.uint64(len(WINDOWS)))
    if not elsewhere.any():
        return [(memory, address, lanes)]
    if space == "global":
        elsewhere = elsewhere & ~((address >= _CONSTANTS) & (address < batch.memory.constants_end))
        if not elsewhere.any():
            return [(memory, address, lanes)]
        batch.reporter.report("bounds", site, elsewhere, address, _windowed)
        return [(memory, address, lanes & ~elsewhere)]
    found: list[Part] = [(memory, address, lanes & ~elsewhere)]
    for number, (name, at) in enumerate(WINDOWS.items()):
        some = elsewhere & (window == np.uint64(number))
        if name in ("const", "param"):
            found.append((memory, address, some))
        else:
            found.append((batch.shared if name == "shared" else batch.local, address - np.uint64(at.base), some))
    return [part for part in found if part[2].any()]


def in_global(address: Array) -> bool:
    """Whether addresses, uint64, are in no window of another space."""
    return bool((address - _WINDOWS_START >= _WINDOWS_SIZE).all())


def own(batch: Batch, site: Site, address: Array, lanes: Array) -> Array:
    """Return which lanes address the shared memory of their own block; report the others."""
    return lanes if batch.clocks.scopes.cluster == 1 else batch.shared.reached(site, address, lanes, own=True)


def _windowed(address: int) -> str:
    name = next(name for name, window in WINDOWS.items() if address in window)
    return f"an address in the window of generic addresses of .{name}, not of global memory"


def touches(
    batch: Batch, site: Site, space: str, address: Array, size: int, lanes: Array, alignment: int = 0
) -> Iterator[tuple[Space, Allocation, Touch]]:
    """Yield the pieces of memory that lanes access, as `Space.touch` does, and the space of each.

    Parameters
    ----------
    batch, site, space, address, lanes
        As for `parts`.
    size, alignment : int
        Bytes of a lane, and what addresses have to be multiples of; by default the size.
    """
    for memory, at, some in parts(batch, site, space, address, lanes):
        for found in memory.touch(site, at, size, some, alignment or size):
            yield memory, *found


def load(
    batch: Batch, site: Site, space: str, address: Array, size: int, lanes: Array, *, element: int,
    order: MemoryOrder = "weak", scope: MemoryScope = "gpu", travels: bool = False, plain: bool = False,
) -> tuple[Array, Poison | None]:  # fmt: skip
    """Load from wherever lanes' addresses are, and count it, as a plain `ld` or another: see `Space.load`."""
    data: Array | None = None
    poison: Poison | None = None
    for memory, at, some in parts(batch, site, space, address, lanes):
        batch.costs.accessed(site, memory.name, at, size, some, load=plain)
        silent = travels and memory.keeps_poison
        found, bad = memory.load(site, at, size, some, element=element, order=order, scope=scope, travels=silent)
        if data is None:
            data, poison = found, bad
            continue
        data[some] = found[some]
        if bad is not None:
            poison = Poison(bad.bits[some], bad.origin).on(some, data.shape, poison)
    assert data is not None  # there is always a part
    return data, poison


def store(
    batch: Batch, site: Site, space: str, address: Array, data: Array, lanes: Array, *, order: MemoryOrder = "weak",
    scope: MemoryScope = "gpu", poison: Poison | None = None,
) -> None:  # fmt: skip
    """Store bytes `[block, warp, lane, size]` and their poison to wherever lanes' addresses are, and count it."""
    for memory, at, some in parts(batch, site, space, address, lanes):
        batch.costs.accessed(site, memory.name, at, data.shape[-1], some)
        memory.store(site, at, data, some, order=order, scope=scope, poison=poison)
