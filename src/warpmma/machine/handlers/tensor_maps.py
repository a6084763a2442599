"""Tensor maps in memory: `tensormap.replace` and `tensormap.cp_fenceproxy`.

The rules (PTX ISA 9.1, 9.7.9.27; `layouts.tensor_maps.map_fields`):

1. `tensormap.replace` reads and writes all 128 bytes of a map, weakly. A value that no map has is a hazard of the kind
   "bounds".
2. `tensormap.cp_fenceproxy` is one of a whole warp: no lane goes on before all have executed it (`.sync`), and what it
   does, copy and then release at the scope, each lane that executes it has done. Here the first lane copies the 128
   bytes, and the others are ordered behind that, as behind an act of their own: a lane that acquires the map and copies
   with it needs no `__syncwarp()`. What a lane has written to the map in shared memory is published by it, and by the
   others only after a `bar.warp.sync` (A24): "strict" asks for that. Otherwise the copy is ordered behind what lanes of
   its own warp have written there, as it was on a GPU, and behind nothing else that they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import OperandError
from ...layouts import replace_field
from ...operations import MapPublication, MapReplacement
from ..base import Poison, Site, WarpRegister
from ..block import Batch, Results, load, store, touches
from ..order import WARP_BIT, thread_of
from .load_store import address, check_whole, read
from .map_order import release_maps

_BYTES, _ALIGNMENT = 128, 64


def replace(batch: Batch, site: Site, row: MapReplacement, operands: Sequence[Any], lanes: Array) -> Results:
    """Replace a field of maps."""
    where, *more = operands
    at = address(batch, site, where, lanes)
    given = more[-1]
    values = read(batch, site, [given], lanes)[0][lanes].tolist() if isinstance(given, WarpRegister) else None
    of_lane: Array = np.zeros(lanes.shape, object)
    of_lane[lanes] = values if values is not None else int(given)
    ordinal = int(more[0]) if len(more) > 1 else None
    for space, allocation, touch in touches(batch, site, row.space, at, _BYTES, lanes, _ALIGNMENT):
        if not space.writeable(allocation, touch):
            continue
        found, poison = allocation.load(touch, 1)
        good: Array = np.zeros(lanes.shape, bool)
        changed = []
        for lane, encoded in zip(np.argwhere(touch.lanes).tolist(), found, strict=True):
            one: Array = np.zeros(lanes.shape, bool)
            one[tuple(lane)] = True
            try:
                changed.append(_replaced(row, encoded.tobytes(), of_lane[tuple(lane)], ordinal))
                good |= one
            except OperandError as error:
                batch.reporter.report("bounds", site, one, at, str(error))
        if changed:
            some = touch.of(good)
            held = None if poison is None else poison.of(good[touch.lanes])
            allocation.store(some, np.frombuffer(b"".join(changed), np.uint8).reshape(-1, _BYTES), held)
    return ()


def _replaced(row: MapReplacement, encoded: bytes, value: int, ordinal: int | None) -> bytes:
    return replace_field(encoded, row.field, value, ordinal)


def publish(batch: Batch, site: Site, row: MapPublication, operands: Sequence[Any], lanes: Array) -> Results:
    """Copy maps from shared to global memory, and release them."""
    check_whole(batch, site, lanes)
    to, origin, _ = operands
    places = [address(batch, site, x, lanes) for x in (to, origin)]
    first = lanes & (np.cumsum(lanes, axis=-1) == 1)
    for at in places:
        first = first & batch.reporter.aligned(site, at, _ALIGNMENT, first)
    _order_writers(batch, site, places[1], lanes, first)
    data, poison = load(batch, site, "shared", places[1], _BYTES, first, element=1)
    held = None if poison is None else Poison(poison.bits, poison.origin)
    store(batch, site, "global", places[0], data, first, poison=held)
    if batch.reporter.tracking and lanes.any():
        _order_lanes(batch, site, first, lanes)
        release_maps(batch, lanes)
        batch.clocks.fence(lanes, "release", batch.clocks.scopes.of(row.scope))
    return ()


def _order_writers(batch: Batch, site: Site, at: Array, lanes: Array, first: Array) -> None:
    """Order the first lane behind lanes of its warp that wrote the map; if "strict", report those not ordered (A24)."""
    strict = batch.reporter.strict
    if not batch.reporter.tracking:
        return
    for _, allocation, touch in touches(batch, site, "shared", at, _BYTES, lanes if strict else first, _ALIGNMENT):
        if (words := allocation.shadow.writers(touch)) is None:
            continue
        if not strict:
            own = (words >> WARP_BIT) == (touch.who.words >> WARP_BIT)[:, None]
            batch.clocks.observe(np.argwhere(touch.lanes)[np.nonzero(own)[0]], words[own])
            continue
        if (bad := batch.clocks.unordered(words, touch.who, races=False)) is None:
            continue
        lane, grain = np.argwhere(bad)[0]
        other, (warp, its) = batch.clocks.site(words[lane, grain]), thread_of(words[lane, grain])
        where = np.zeros(lanes.shape, bool)
        where[touch.lanes] = bad.any(axis=1)
        line = "" if other is None else f" at {other.what}"
        says = f"lane {its} of warp {warp} wrote the map{line}, and no bar.warp.sync lies between"
        batch.reporter.report("race", site, where, at, says, other, rule="A24")


def _order_lanes(batch: Batch, site: Site, first: Array, lanes: Array) -> None:
    """Order lanes of warps behind what the first lane of each has done (rule 2)."""
    words: Array = np.zeros(lanes.shape, np.uint64)
    words[first] = batch.clocks.who(batch.clocks.tick(site), first, int(np.count_nonzero(first))).words
    of_warp = np.broadcast_to(words.max(axis=-1, keepdims=True), lanes.shape)
    others = lanes & ~first & (of_warp > 0)
    if others.any():
        batch.clocks.observe(np.argwhere(others), of_warp[others])
