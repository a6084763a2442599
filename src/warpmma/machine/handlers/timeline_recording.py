"""Handlers that tell a timeline what they execute; in use only where a launch records one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...isa import PtxInstruction
from ...operations import WINDOWS, Barrier, CopyGroup, Fence, Mbarrier, WarpgroupGroup, WarpgroupMultiply
from ..base import Site, WarpRegister
from ..block import Batch, Results
from ..sync import TimelineRecorder, groups_of

Handler = Callable[[Batch, Site, Any, Sequence[Any], Array], Results]


def recorded(handle: Handler, clock: Callable[[], int]) -> Handler:
    """Return a handler that executes the same, and tells the batch's timeline about it; `clock` is its instants."""

    def recording(batch: Batch, site: Site, row: PtxInstruction, operands: Sequence[Any], lanes: Array) -> Results:
        timeline, note = batch.timeline, _NOTES.get(type(row))
        if timeline is None:
            return handle(batch, site, row, operands, lanes)
        timeline.now = clock()
        if note is None or not timeline.warps(lanes):
            return handle(batch, site, row, operands, lanes)
        after = note(timeline, batch, site, row, operands, lanes)
        results = handle(batch, site, row, operands, lanes)
        if after is not None:
            after(results)
        return results

    return recording


_After = Callable[[Results], None] | None


def _barrier(
    timeline: TimelineRecorder, batch: Batch, site: Site, row: Barrier, operands: Sequence[Any], lanes: Array
) -> _After:
    if row.action != "warp":
        for place, warp in timeline.warps(lanes):
            timeline.note("barrier", site, place, warp)
    return None


def _fence(
    timeline: TimelineRecorder, batch: Batch, site: Site, row: Fence, operands: Sequence[Any], lanes: Array
) -> _After:
    if row.crosses:
        for place, warp in timeline.warps(lanes):
            timeline.note("fence", site, place, warp)
    return None


def _copies(
    timeline: TimelineRecorder, batch: Batch, site: Site, row: CopyGroup, operands: Sequence[Any], lanes: Array
) -> _After:
    groups = "cp.async.bulk" if row.bulk else "cp.async"
    for place, warp in timeline.warps(lanes):
        timeline.note("commit" if row.action == "commit" else "pass", site, place, warp, groups_of(groups, warp))
    return None


def _products(
    timeline: TimelineRecorder, batch: Batch, site: Site, row: WarpgroupGroup, operands: Sequence[Any], lanes: Array
) -> _After:
    kinds: Mapping[str, Any] = {"fence": "fence", "commit_group": "commit", "wait_group": "pass"}
    for place, warp in timeline.warps(lanes):
        timeline.note(kinds[row.action], site, place, warp)
    if row.action == "commit_group":
        timeline.commit(lanes)
    elif row.action == "wait_group":
        timeline.waited(lanes, int(operands[0]))
    return None


def _product(
    timeline: TimelineRecorder, batch: Batch, site: Site, row: WarpgroupMultiply, operands: Sequence[Any], lanes: Array
) -> _After:
    timeline.product(site, lanes)
    return None


_DOES = {"init": "init", "arrive": "arrive", "expect_tx": "expect", "copy": "arrive"}


def _mbarrier(
    timeline: TimelineRecorder, batch: Batch, site: Site, row: Mbarrier, operands: Sequence[Any], lanes: Array
) -> _After:
    if row.action == "wait":
        looks = list(_mbarriers(timeline, batch, operands[0], lanes))

        def after(results: Results) -> None:
            for place, warp, agent, some in looks:
                done = bool(np.asarray(results[0].bits)[place, warp][some].all())
                timeline.note("pass" if done else "wait", site, place, warp, agent)

        return after
    if (kind := _DOES.get(row.action)) is not None:
        for place, warp, agent, _ in _mbarriers(timeline, batch, operands[0], lanes):
            timeline.note(kind, site, place, warp, agent)  # type: ignore[arg-type]
    return None


def _mbarriers(
    timeline: TimelineRecorder, batch: Batch, at: WarpRegister, lanes: Array
) -> Iterator[tuple[int, int, str, Array]]:
    """Yield places of warps, the mbarriers at which they are, and the lanes there."""
    addresses, window = np.asarray(at.bits), WINDOWS["shared"]
    for place, warp in timeline.warps(lanes):
        given = addresses[place, warp].astype(np.uint64)
        inside = np.where(given >= window.base, given - np.uint64(window.base), given)
        for address in np.unique(inside[lanes[place, warp]]).tolist():
            offset = batch.shared.offset_at(place, int(address))
            yield place, warp, timeline.mbarrier(offset), lanes[place, warp] & (inside == address)


_NOTES: Mapping[type, Callable[..., _After]] = {
    Barrier: _barrier, Fence: _fence, CopyGroup: _copies, WarpgroupGroup: _products, WarpgroupMultiply: _product,
    Mbarrier: _mbarrier,
}  # fmt: skip
