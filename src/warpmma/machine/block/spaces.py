"""State spaces: in which of them the addresses of an access lie, and where there.

The rules (`operations.WINDOWS`):

1. Of a generic address the window says the space; lanes of one access may be in different ones.
2. Constant memory and parameters are read-only pieces at generic addresses; global memory has none in a window.
3. Variables of constant memory lie in memory of the device, as cudaGetSymbolAddress says: where nvcc takes a pointer
   for one to global memory, an argument say, `ld.global` reads them. To write there is a hazard as elsewhere.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ...operations import WINDOWS
from ..base import Site
from .batch import Batch

Part = tuple[str, Array, Array]
"""The space that has the memory, "global", "shared" or "local"; addresses in it; and the lanes that are there."""

_FIRST = min(window.base for window in WINDOWS.values()) >> 32
_CONSTANTS = np.uint64(WINDOWS["const"].base)
_MEMORY = {"shared": "shared", "local": "local", "const": "global", "param": "global"}


def parts(batch: Batch, site: Site, space: str, address: Array, lanes: Array) -> list[Part]:
    """Return where lanes find what they access.

    Parameters
    ----------
    batch : Batch
    site : Site
    space : str
        Of `operations.SPACES`.
    address : ndarray of uint
        `[block, warp, lane]`.
    lanes : ndarray of bool
    """
    if space in ("shared", "local"):
        return [(space, address, lanes)]
    address = address.astype(np.uint64, copy=False)
    if space in ("const", "param"):
        return [("global", address + np.uint64(WINDOWS[space].base), lanes)]
    if (address - np.uint64(_FIRST << 32) >= np.uint64(len(WINDOWS) << 32)).all():
        return [("global", address, lanes)]
    window = (address >> np.uint64(32)) - np.uint64(_FIRST)
    elsewhere = lanes & (window < np.uint64(len(WINDOWS)))
    if not elsewhere.any():
        return [("global", address, lanes)]
    if space == "global":
        elsewhere = elsewhere & ~((address >= _CONSTANTS) & (address < batch.memory.constants_end))
        if not elsewhere.any():
            return [("global", address, lanes)]
        batch.reporter.report("bounds", site, elsewhere, address, _windowed)
        return [("global", address, lanes & ~elsewhere)]
    found: list[Part] = [("global", address, lanes & ~elsewhere)]
    for number, (name, at) in enumerate(WINDOWS.items()):
        some = elsewhere & (window == np.uint64(number))
        memory = _MEMORY[name]
        found.append((memory, address if memory == "global" else address - np.uint64(at.base), some))
    return [part for part in found if part[2].any()]


def _windowed(address: int) -> str:
    name = next(name for name, window in WINDOWS.items() if address in window)
    return f"an address in the window of generic addresses of .{name}, which is none of global memory"
