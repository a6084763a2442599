"""State spaces, and their windows of generic addresses.

The rules (PTX ISA 9.1, 5.1 and 9.7.9.24):

1. A generic address of global memory is its address there. Shared, local, constant and parameter memory each have a
   window of generic addresses, in which address `a` of the space is `base + a`.
2. A thread finds its own local memory in the window: all have the same addresses. The window of shared memory reaches
   all blocks of the thread's cluster, at different addresses; `.shared` is the own block, `.shared::cluster` are all.
3. Addresses outside all windows are global memory. The parameters of an entry are constant memory of one launch.

PTX leaves the bases undefined. These are addresses at which processes usually have no memory, because a device may map
a process's memory at its own addresses; and no space begins at the generic address 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from .._records import Shown

Space = Literal["generic", "global", "shared", "shared::cluster", "local", "const", "param"]

SPACES: tuple[Space, ...] = ("generic", "global", "shared", "shared::cluster", "local", "const", "param")
"""State space of an access; a "generic" address may be in any of the others."""


def space_of(words: Iterable[str]) -> Space:
    """Return the state space that the words of a mnemonic name; "generic" if none does.

    Examples
    --------
    >>> space_of(["st", "shared::cta", "b32"]), space_of(["st", "shared::cluster", "b32"]), space_of(["st", "b32"])
    ('shared', 'shared::cluster', 'generic')
    """
    for word in words:
        name = word if word == "shared::cluster" else word.partition("::")[0]
        for space in SPACES:
            if name == space:
                return space
    return "generic"


@dataclass(frozen=True, slots=True)
class Window(Shown):
    """Generic addresses of a space."""

    base: int
    size: int = 1 << 32

    def __contains__(self, address: int) -> bool:
        return self.base <= address < self.base + self.size


RANK_BIT = 24
"""The lowest bit of the rank in an address of shared memory: the rank of the block in its cluster."""

RANKS = 0xFF
"""The mask of a rank."""

_BASE = 1 << 44

WINDOWS: Mapping[str, Window] = MappingProxyType(
    {space: Window(_BASE + (i << 32)) for i, space in enumerate(("shared", "local", "const", "param"))}
)
"""The window of each space that has one, one after the other."""


def window_of(address: int) -> Space:
    """Return the space in which a generic address lies.

    Examples
    --------
    >>> window_of(WINDOWS["local"].base + 8), window_of(0x7F0000000000)
    ('local', 'global')
    """
    number = (address - _BASE) >> 32
    return tuple(WINDOWS)[number] if 0 <= number < len(WINDOWS) else "global"  # type: ignore[return-value]
