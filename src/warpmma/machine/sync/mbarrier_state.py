"""The state of an mbarrier, and what one event does to it.

The rules (PTX ISA 9.1, 9.7.13.15; what a GPU does at a fault was measured on an H200):

1. The state has the pending arrivals of this phase, the arrivals that a phase expects, the pending bytes, which may be
   negative when they come before they are expected, and the parity of the phase.
2. An event changes the bytes first, then what later phases expect (`drops`), then what this phase expects (`raises`),
   then it arrives.
3. The phase is complete when neither arrivals nor bytes are pending, and is looked at after every event. Then the next
   one begins, with the expected arrivals pending. One that expects none stays open until bytes come and go.
4. An event that is a fault changes nothing, except that `.noComplete` completes the phase, as on an H200.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

MOST = (1 << 20) - 1
"""The most arrivals that a phase can expect, and the most bytes."""

VALID_BIT, _EXPECTED, _BYTES, PENDING_BIT, PHASE_BIT = 0, 1, 21, 43, 63
_MOST_BYTES = 2 * MOST + 1


class MbarrierState(NamedTuple):
    """The 64 bits of an mbarrier, whose layout PTX leaves open.

    It is that of an H200, as tokens and `mbarrier.inval` show it: from the highest bit the phase, the pending arrivals,
    the bytes (21 bits) and the expected arrivals, these three as their negatives. Bit 0 is ours: whether there is an
    mbarrier.
    """

    pending: int
    expected: int
    bytes: int
    phase: int
    valid: int

    @classmethod
    def of(cls, word: int) -> MbarrierState:
        """Return the state encoded in a word."""
        bytes_ = -(word >> _BYTES) & _MOST_BYTES
        bytes_ -= (_MOST_BYTES + 1) * (bytes_ > MOST)
        return cls(-(word >> PENDING_BIT) & MOST, -(word >> _EXPECTED) & MOST, bytes_, word >> PHASE_BIT, word & 1)

    @property
    def word(self) -> int:
        """The state as a word."""
        counts = (-self.pending & MOST) << PENDING_BIT | (-self.expected & MOST) << _EXPECTED
        return self.phase << PHASE_BIT | counts | (-self.bytes & _MOST_BYTES) << _BYTES | self.valid << VALID_BIT

    def __str__(self) -> str:
        bytes_ = f", {self.bytes} bytes pending" if self.bytes else ""
        return f"phase {self.phase}: {self.pending} of {self.expected} arrivals pending{bytes_}"


class Event(NamedTuple):
    """What one instruction, or the completion of one operation, does to an mbarrier."""

    arrivals: int = 0
    expects: int = 0  # bytes; negative for those that come
    drops: int = 0
    raises: int = 0
    last: bool = True  # whether it may complete the phase


class Outcome(NamedTuple):
    """The state after an event, whether that completed a phase, and what was wrong: a key of `FAULTS`, or ""."""

    state: MbarrierState
    completed: bool = False
    fault: str = ""


FAULTS: Mapping[str, str] = MappingProxyType({
    "absent": "there is no mbarrier: it was not initialised, or invalidated",
    "count": "more arrivals than the phase still expects; a GPU traps",
    "bytes": f"more than {MOST} pending bytes; a GPU traps",
    "completes": "an arrival with .noComplete completes the phase",
    "init": f"it expects 0 arrivals, or more than {MOST}; a GPU takes the number modulo {MOST + 1}",
    "zero": "an arrival counts 0; a GPU does nothing",
    "again": "it is in use already: mbarrier.inval comes first",
})  # fmt: skip
"""What may be wrong, and what a GPU does then."""


def applied(state: MbarrierState, event: Event) -> Outcome:
    """Return what an event does to a state."""
    if not state.valid:
        return Outcome(state, fault="absent")
    bytes_, pending = state.bytes + event.expects, state.pending + event.raises - event.arrivals
    if abs(bytes_) > MOST:
        return Outcome(state, fault="bytes")
    if pending < 0 or state.pending + event.raises > MOST or event.drops > state.expected:
        return Outcome(state, fault="count")
    after = state._replace(pending=pending, expected=state.expected - event.drops, bytes=bytes_)
    if pending or bytes_:
        return Outcome(after)
    after = after._replace(phase=1 - state.phase, pending=after.expected)
    return Outcome(after, completed=True, fault="" if event.last else "completes")
