"""Order of tensor maps: which copies use a map that the launch has changed, and that their thread has not acquired.

The rules (A19 to A21 of `report.asynchronous_rules`):

1. A copy reads its map through a proxy of its own. What threads of the launch have written to a map in global memory
   crosses to that proxy by `fence.proxy.tensormap::generic.acquire` at the address of the map: all that the thread of
   the fence knows by then. Synchronization passes it on. Maps that the launch has not written need nothing.
2. Before the acquire comes a release: `tensormap.cp_fenceproxy` or `fence.proxy.tensormap::generic.release` by a thread
   that knows the write. An acquire lets cross what its thread knows to be released.
3. Both fences also order other accesses, as `fence.acquire` and `fence.release` of their scope do.
4. What a copy in bulk has written to a map crosses in the same way, once the thread of the acquire has observed that
   the copy is complete.
5. A map must not change while a copy may still read it: `sync.map_reads`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._arrays import Array
from ..base import Site
from ..block import Batch
from ..memory import Allocation, Touch
from ..order import asynchronous, thread_of
from ..sync import Signal, Touched

_RELEASED = "released maps"


def _acquired(at: int) -> str:
    return f"map {at:#x}"


def _after_release(at: int) -> str:
    return f"released map {at:#x}"


def release_maps(batch: Batch, lanes: Array) -> None:
    """Note that lanes, bool `[block, warp, lane]`, release what they know of maps (rule 2)."""
    if batch.reporter.tracking and lanes.any():
        batch.clocks.fence_proxy(lanes, [_RELEASED])


def acquire_maps(batch: Batch, at: Array, lanes: Array) -> None:
    """Let lanes, bool `[block, warp, lane]`, acquire maps at the addresses of lanes (rules 1 and 2)."""
    for place in np.unique(at[lanes]).tolist():
        some = lanes & (at == place)
        batch.clocks.fence_proxy(some, [_acquired(place)])
        if batch.reporter.tracking:
            batch.clocks.cross_further(some, _RELEASED, _after_release(place))


def check_map(batch: Batch, site: Site, allocation: Allocation, touch: Touch, at: Array) -> None:
    """Report copies whose map, 128 bytes at `at[block, warp, lane]`, has not been acquired since it was written."""
    words = allocation.shadow.writers(touch)
    if words is None or not words.any():
        return
    places = at[touch.lanes]
    lane_of = np.argwhere(touch.lanes)
    for place in np.unique(places).tolist():
        which = np.flatnonzero(places == place)
        for rule, key, says in (
            ("A19", _acquired(place), "fence.proxy.tensormap::generic.acquire at this map"),
            ("A20", _after_release(place), "release of tensor maps before the acquire"),
        ):
            operations = rule == "A19"  # a release is one of threads' writes
            bad = touch.clocks.uncrossed(words[which], touch.who.some(which), key, operations=operations)
            if bad is None:
                continue
            lane, grain = np.argwhere(bad)[0]
            word = words[which][lane, grain]
            other = touch.clocks.site(word)
            where = np.zeros(touch.lanes.shape, bool)
            where[tuple(lane_of[which[bad.any(axis=1)]].T)] = True
            line = "" if other is None else f" at {other}"
            whose = "a copy in bulk" if asynchronous(word) else f"warp {thread_of(word)[0]}"
            detail = f"{whose} changed the tensor map{line}, and no {says} lies on the way to this copy"
            batch.reporter.report("proxy", site, where, at, detail, other, rule=rule)


def note_reads(batch: Batch, maps: Sequence[Touched], signals: list[Signal], lanes: Array) -> None:
    """Note that copies of lanes, which signal mbarriers or join groups, read maps that a kernel can write (rule 5)."""
    if not batch.reporter.tracking:
        return
    for allocation, touch in maps:
        if allocation.data.flags.writeable and len((some := touch.of(lanes)).offset):
            batch.map_reads.note(allocation, some, signals)
