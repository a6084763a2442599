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
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array

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


class Events(NamedTuple):
    """The same of n instructions or operations, each an array `[n]`."""

    arrivals: Array
    expects: Array
    drops: Array
    raises: Array
    last: bool = True

    @classmethod
    def of(cls, number: int, *, arrivals: Any = 0, expects: Any = 0, drops: Any = 0, raises: Any = 0,
           last: bool = True) -> Events:  # fmt: skip
        """Return n events, given what each, or all, do."""
        return cls(_of_all(number, arrivals), _of_all(number, expects), _of_all(number, drops),
                   _of_all(number, raises), last)  # fmt: skip

    def at(self, place: int) -> Event:
        """Return one of them."""
        arrivals, expects, drops, raises = (int(x[place]) for x in self[:4])
        return Event(arrivals, expects, drops, raises, self.last)


def _of_all(number: int, given: Any) -> Array:
    """Return what each of n events does, int64 `[n]`, given that or what all do."""
    if isinstance(given, int):
        return np.full(number, given, np.int64) if given else np.zeros(number, np.int64)
    found = np.asarray(given, np.int64)
    return found if len(found.shape) else np.full(number, found)


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
    "nothing": "there is no mbarrier to invalidate",
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


def applied_to_all(words: Array, events: Events) -> tuple[Array, Array] | None:
    """Return what n events do to as many states, words `[n]`: the words, and which phases that completes.

    None if one of them is a fault or does nothing: then `applied` tells.
    """
    pending = pending_of(words)
    left, awaited = pending + events.raises - events.arrivals, bytes_of(words) + events.expects
    expects = expected_of(words) - events.drops
    wrong = (words >> np.uint64(VALID_BIT) & np.uint64(1) == 0) | (np.abs(awaited) > MOST) | (left < 0) | (expects < 0)
    nothing = (events.arrivals == 0) & (events.expects == 0) & (events.raises == 0)
    completed = (left == 0) & (awaited == 0)
    if (wrong | nothing | (pending + events.raises > MOST) | (completed & (not events.last))).any():
        return None
    phase = words >> np.uint64(PHASE_BIT) ^ completed.astype(np.uint64)
    counts = _field(np.where(completed, expects, left), PENDING_BIT, MOST) | _field(expects, _EXPECTED, MOST)
    valid = np.uint64(1 << VALID_BIT)
    return phase << np.uint64(PHASE_BIT) | counts | _field(awaited, _BYTES, _MOST_BYTES) | valid, completed


def pending_of(words: Array) -> Array:
    """Return the pending arrivals of states."""
    return _number(words, PENDING_BIT)


def expected_of(words: Array) -> Array:
    """Return the arrivals that the phases of states expect."""
    return _number(words, _EXPECTED)


def bytes_of(words: Array) -> Array:
    """Return the pending bytes of states."""
    bytes_ = -(words >> np.uint64(_BYTES)).astype(np.int64) & _MOST_BYTES
    return np.asarray(bytes_ - (_MOST_BYTES + 1) * (bytes_ > MOST))


def _number(words: Array, bit: int) -> Array:
    return np.asarray(-(words >> np.uint64(bit)).astype(np.int64) & MOST)


def _field(numbers: Array, bit: int, most: int) -> Array:
    return np.asarray((-numbers & most).astype(np.uint64) << np.uint64(bit))
