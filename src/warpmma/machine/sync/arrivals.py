"""What an mbarrier is: its 64 bits, and what is known of those who arrived at it (rules in `mbarriers`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..order import VectorClock
from .copies import Bound

_COUNT = 20  # bits
_LOW = (1 << _COUNT) - 1
MOST = _LOW
"""Of arrivals, and of bytes to come."""

PHASE_BIT, VALID_BIT = 61, 62


class MbarrierState(NamedTuple):
    """What the 64 bits say: PTX leaves open where."""

    pending: int
    expected: int
    bytes: int
    phase: int
    valid: int

    @classmethod
    def of(cls, word: int) -> MbarrierState:
        """Read it."""
        bytes_ = (word >> 2 * _COUNT & (2 * _LOW + 1)) - MOST
        return cls(word & _LOW, word >> _COUNT & _LOW, bytes_, word >> PHASE_BIT & 1, word >> VALID_BIT)

    @property
    def word(self) -> int:
        """Write it."""
        counts = self.pending | self.expected << _COUNT | (self.bytes + MOST) << 2 * _COUNT
        return counts | self.phase << PHASE_BIT | self.valid << VALID_BIT


@dataclass(eq=False)
class Phases:
    """What is known of a barrier: by those who have arrived in this phase, and in those that are complete.

    Attributes
    ----------
    now, done : VectorClock or None
    copies : list of Bound
        Those that this phase waits for.
    counts : list of callable
        Each counts what a copy has brought.
    """

    now: VectorClock | None = None
    done: VectorClock | None = None
    copies: list[Bound] = field(default_factory=list)
    counts: list[Callable[[], None]] = field(default_factory=list)
