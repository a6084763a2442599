"""Tensor maps in memory: `tensormap.replace` and `tensormap.cp_fenceproxy`.

The rules (PTX ISA 9.1, 9.7.9.27; `layouts.tensor_maps.map_fields`):

1. `tensormap.replace` reads and writes all 128 bytes of a map, weakly. A value that no map has is a hazard of the kind
   "bounds".
2. `tensormap.cp_fenceproxy` is one of a whole warp: no lane goes on before all have executed it (`.sync`), and what it
   does, copy and then release at the scope, each lane that executes it has done. Here the first lane copies the 128
   bytes, and the others are ordered behind that, as behind an act of their own: a lane that acquires the map and copies
   with it needs no `__syncwarp()`. Nothing else that lanes did is ordered among them.
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
    data, poison = load(batch, site, "shared", places[1], _BYTES, first, element=1)
    held = None if poison is None else Poison(poison.bits, poison.origin)
    store(batch, site, "global", places[0], data, first, poison=held)
    if batch.reporter.tracking and lanes.any():
        _order_lanes(batch, site, first, lanes)
        release_maps(batch, lanes)
        batch.clocks.fence(lanes, "release", batch.clocks.scopes.of(row.scope))
    return ()


def _order_lanes(batch: Batch, site: Site, first: Array, lanes: Array) -> None:
    """Order lanes of warps behind what the first lane of each has done (rule 2)."""
    words: Array = np.zeros(lanes.shape, np.uint64)
    words[first] = batch.clocks.who(batch.clocks.tick(site), first, int(np.count_nonzero(first))).words
    of_warp = np.broadcast_to(words.max(axis=-1, keepdims=True), lanes.shape)
    others = lanes & ~first & (of_warp > 0)
    if others.any():
        batch.clocks.observe(np.argwhere(others), of_warp[others])
