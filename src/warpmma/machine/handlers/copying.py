"""Instructions that copy from global to shared memory while the thread goes on: `cp.async` and its groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arguments import is_integer
from ..._arrays import Array
from ...errors import OperandError, shown
from ...operations import Copy, CopyGroup
from ..base import Site, acting
from ..block import Batch, Results, touches
from ..sync import Groups, Touched
from .load_store import address, check_policy, exactly, fitting


def copy(batch: Batch, site: Site, row: Copy, operands: Sequence[Any], lanes: Array) -> Results:
    """Begin copies."""
    least = 3 + row.hint
    if len(operands) not in (least, least + 1):
        raise OperandError(
            f"{site.mnemonic} with {len(operands)} operands; expected two addresses, the size and perhaps the size of "
            f"the source{', and a cache policy' * row.hint}"
        )
    to, source, size, *rest = operands
    if row.hint:
        check_policy(batch, site, [rest.pop()], lanes)
    if not is_integer(size) or size not in row.sizes:
        raise OperandError(
            f"{site.mnemonic}: a copy of {shown(size)} bytes; expected {' or '.join(map(str, row.sizes))}"
        )
    size = int(size)
    where, start = address(batch, site, "shared", to, lanes), address(batch, site, "global", source, lanes)
    data = np.zeros((*lanes.shape, size), np.uint8)
    sources: list[Touched] = []
    moved = 0
    for part, some in _parts(batch, site, rest, size, lanes):
        moved += part * int(np.count_nonzero(some))
        for _, allocation, touch in touches(batch, site, "global", start, part, some, size) if part else ():
            loaded, _ = allocation.load(touch, part)
            if part == size and len(loaded) == lanes.size:
                data = loaded.reshape(data.shape)
            else:
                data[touch.lanes, :part] = loaded
            sources.append((allocation, touch))
    batch.costs.moved(site, "global", moved)
    batch.costs.shared(site, where, size, lanes)
    targets = ((allocation, touch) for _, allocation, touch in touches(batch, site, "shared", where, size, lanes))
    batch.async_operations.issue(site, where, targets, acting(data, lanes), lanes, sources, "cp.async")
    return ()


def _parts(batch: Batch, site: Site, rest: Sequence[Any], size: int, lanes: Array) -> list[tuple[int, Array]]:
    """Bytes of the source, and the lanes that take so many."""
    if not rest:
        return [(size, lanes)]
    register = batch.operand(rest[0], "u32", "b32", f"{site.mnemonic}: the size of the source")
    if register.kind == "pred":  # ignore-src: nothing comes from the source
        (ignored,) = batch.read(site, [register], [lanes])
        given: Array = np.where(ignored, 0, size)
    else:
        (given,) = batch.read(site, [fitting(site, register, 32, 32)], [lanes])
    taken = given[lanes]
    if (taken > size).any():
        raise OperandError(f"{site.mnemonic}: a source of {taken.max()} bytes for a copy of {size}")
    first = int(taken[0]) if len(taken) else 0
    if bool((taken == first).all()):
        return [(first, lanes)]
    return [(part, lanes & (given == part)) for part in np.unique(taken).tolist()]


def group(batch: Batch, site: Site, row: CopyGroup, operands: Sequence[Any], lanes: Array) -> Results:
    """Commit or wait."""
    if row.action == "wait_group":
        (groups,) = exactly(site, operands, 1, "a number of groups")
        if not is_integer(groups) or groups < 0:
            raise OperandError(f"{site.mnemonic} {shown(groups)}; expected a number of groups, a Python integer")
        batch.async_operations.wait(lanes, int(groups), _groups(row), read=row.read)
        return ()
    exactly(site, operands, 0, "no operands")
    if row.action == "commit":
        batch.async_operations.commit(lanes, _groups(row))
    else:
        batch.async_operations.wait(lanes, -1, "cp.async")
    return ()


def _groups(row: CopyGroup) -> Groups:
    return "cp.async.bulk" if row.bulk else "cp.async"
