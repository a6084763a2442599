"""Where the lanes of a batch of blocks are, in a sentence: what reports of deadlocks and limits say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._arrays import Array
from ..._text import ranges
from .meetings import Meetings
from .state import State

_MOST = 8  # places that are named


def where_lanes_are(state: State, meetings: Meetings) -> str:
    """Say where lanes run, and where they wait, and for what.

    Examples
    --------
    "Of block 0, 32 lanes of warp 1 wait at kernel.cu:3 (bar.sync); 64 lanes of warps 2-3 run at kernel.cu:7 (bra)".
    """
    found = sorted(_found(state, meetings), key=lambda x: (x[0], x[1]))
    said = [f"{_who(state, bits)} {what} at {_site(state, place)}" for place, what, bits in found[:_MOST]]
    if len(found) > _MOST:
        said.append(f"others are at {len(found) - _MOST} more places")
    return "; ".join(said)


def _found(state: State, meetings: Meetings) -> Iterator[tuple[int, str, Array]]:
    scheduler = state.scheduler
    for groups in (scheduler.ready, scheduler.late):
        for key, group in groups.items():
            yield scheduler.place(key)[0], "are", group.bits
    for place, bits in meetings.waiting():
        yield place.number, "wait for lanes of their warp", bits
    for key, bits in scheduler.waiting.items():
        yield scheduler.place(key)[0] - 1, "wait for threads of their block", bits


def _site(state: State, place: int) -> str:
    steps = state.program.steps
    return "the end" if place >= len(steps) else f"{steps[place].site.place} ({steps[place].site.mnemonic})"


def _who(state: State, bits: Array) -> str:
    """Name lanes by their block if that is one, and by their warps."""
    count = int(np.count_nonzero(bits))
    blocks = np.flatnonzero(bits.any(axis=(1, 2)))
    lanes = f"{count} lane{'s' * (count != 1)}"
    if len(blocks) > 1:
        return f"{lanes} of {len(blocks)} blocks"
    warps = np.flatnonzero(bits[blocks[0]].any(axis=-1)).tolist()
    block = state.batch.reporter.block_named(state.batch.blocks[int(blocks[0])])
    return f"{lanes} of {block}, warp{'s' * (len(warps) != 1)} {ranges(warps)},"
