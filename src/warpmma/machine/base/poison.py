"""Poison: bits whose value depends on luck, where they come from, and the ones that memory holds.

The rules:

1. A mask has 1 for each poison bit: of a register in its dtype, of memory as bytes.
2. An origin is the line that read unwritten bytes, what a pending copy writes, or what a racing write changes, or the
   line that overwrote what a pending copy reads; the other party; and the kind of the hazard. One origin is kept for
   a register, and one for each byte of memory: of several, one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array
from .memory_engine import get, put, store
from .site import Site


@dataclass(frozen=True, eq=False)
class Origin:
    """Where poison comes from.

    Attributes
    ----------
    number : int
        Among all of a launch, from 1 on.
    kind : str
        Of the hazard that it is, where it decides something.
    site : Site
        The line that read it, or overwrote it.
    detail : str
        What was found.
    other : Site or None
        The line of the other party: the write of a race, the pending copy.
    rule : str
        The rule of asynchronous order that is broken; "" for others.
    """

    number: int
    kind: str
    site: Site
    detail: str
    other: Site | None = None
    rule: str = ""


class Poison(NamedTuple):
    """Poison bits of bytes.

    Attributes
    ----------
    bits : ndarray of uint8
        `[..., byte]`.
    origin : Origin or None
        None where the line that reads them reports what it reads.
    """

    bits: Array
    origin: Origin | None

    def of(self, some: Array) -> Poison | None:
        """Return the poison of some accesses, bool or int; None if they have none."""
        bits = self.bits[some]
        return Poison(bits, self.origin) if bits.any() else None

    def plus(self, other: Poison | None) -> Poison:
        """Return this poison and that of the same bytes from elsewhere."""
        return self if other is None else Poison(self.bits | other.bits, self.origin or other.origin)

    def on(self, where: Any, shape: tuple[int, ...], known: Poison | None = None) -> Poison:
        """Return poison of a shape `[..., byte]` with this one at some places, added to what is `known` of others."""
        found = Poison(np.zeros(shape, np.uint8), self.origin) if known is None else known
        found.bits[where] = self.bits
        return found


class PoisonBytes:
    """The poison bits of a piece of memory, and the number of the origin of each byte's."""

    def __init__(self, size: int) -> None:
        self._bits, self._origin = np.zeros(size, np.uint8), np.zeros(size, np.uint16)
        self._loaded = np.zeros(size, bool)  # since they were stored

    def at(self, offset: Array, size: int, phase: int) -> tuple[Array, int] | None:
        """Return the poison bits of accesses, `[n, size]`, and the number of one origin; None if there are none."""
        bits = get(self._bits, offset, size, phase)
        if not bits.any():
            return None
        lane, byte = np.nonzero(bits)
        where = offset[lane] + byte
        self._loaded[where] = True
        return bits, int(self._origin[where[0]])

    def write(self, offset: Array, bits: Array, origin: int, lanes: Array | None, phase: int) -> None:
        """Replace the poison bits of accesses, `[n, size]`; of several to one place, as `store` or `put` do it."""
        if lanes is None:
            put(self._bits, offset, bits, phase)
        else:
            store(self._bits, offset, bits, lanes, phase)
        if origin:
            lane, byte = np.nonzero(bits)
            where = offset[lane] + byte
            self._origin[where], self._loaded[where] = origin, False

    def left(self) -> tuple[Array, Array]:
        """Return the bytes with poison that were not loaded since, and the numbers of their origins, `[n]` each."""
        where = np.flatnonzero((self._bits != 0) & ~self._loaded)
        return where, self._origin[where]
