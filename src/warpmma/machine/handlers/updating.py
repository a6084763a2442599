"""Instructions that read and write memory as if at once: `atom` and `red`.

The rules:

1. Lanes that execute an atomic at once take turns (`atomic_order`) in the order of their numbers or, if the batch has a
   seed, in an order drawn from the seed and the time. So results are a function of the inputs and the seed.
2. CUDA leaves that order open. Where it matters, lanes are counted as hazard "order", and the report of the launch
   names the line: an `atom` of several lanes on one element that one of them changes; an `atom` on an element that
   another thread's atomic changed last, unordered with it; a sum of floats that rounds, of three or more such turns, or
   of two that give other bits in reverse order.
3. Poison is combined like values: an element that is changed by poison, or that holds it, is poison after that, and in
   every lane that changes it at once. What `cas` compares and writes, and finds, decides something.
4. Atomics do not race with each other if the scope of each holds both threads (`happens_before`); they race with
   everything else. What is a load and a store on the memory of another block races with all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array
from ...errors import UnsupportedError
from ...formats import FORMATS, FloatFormat
from ...operations import DTYPES, Atomic
from ..base import Poison, Site, in_turns, joined
from ..block import Batch, Results, touches
from ..memory import Allocation, Space, Taken, Touch, Turns
from .load_store import address, read, stored


def update(batch: Batch, site: Site, row: Atomic, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute an atomic."""
    where, values, given = _operands(batch, site, row, operands, lanes)
    at = address(batch, site, where, lanes)
    found = np.zeros((*lanes.shape, row.size), np.uint8)
    poison: Poison | None = None
    decides = not batch.reporter.follows or row.operation == "cas"
    for space, allocation, touch in _apart(batch, row, touches(batch, site, row.space, at, row.size, lanes)):
        if not space.writeable(allocation, touch):
            continue
        batch.costs.moved(site, space.name, row.size * len(touch.offset))
        turns = partial(taking_turns, batch, row, space.name, [x[touch.lanes] for x in values])
        held = None if given is None else given.of(touch.lanes)
        found[touch.lanes], bad = allocation.update(
            _strong(batch, row, space, touch), row.bits // 8, turns, given=held, decides=decides
        )
        if bad is not None:
            poison = bad.on(touch.lanes, found.shape, poison)
    if not row.returns:
        return ()
    words = found.view(DTYPES[row.kind])
    masks = None if poison is None else poison.bits.view(DTYPES[row.kind])
    return tuple(
        batch.made(
            np.ascontiguousarray(words[..., i]), lanes, site, None if masks is None else masks[..., i],
            None if poison is None else poison.origin,
        )
        for i in range(row.registers)
    )  # fmt: skip


def _foreign(batch: Batch, touch: Touch) -> Array:
    """Return which lanes, bool `[n]`, access the shared memory of another block."""
    return np.asarray(batch.shared.blocks_of(touch.offset) != np.nonzero(touch.lanes)[0])


def _apart(
    batch: Batch, row: Atomic, accesses: Iterable[tuple[Space, Allocation, Touch]]
) -> Iterator[tuple[Space, Allocation, Touch]]:
    """Separate the accesses to other blocks of those that are not atomic there."""
    for space, allocation, touch in accesses:
        if not row.divided or space is not batch.shared or batch.clocks.scopes.cluster == 1:
            yield space, allocation, touch
            continue
        far: Array = np.zeros(touch.lanes.shape, bool)
        far[touch.lanes] = _foreign(batch, touch)
        if row.packed and far.any():
            raise UnsupportedError(
                f"{touch.site}: in the shared memory of another block ptxas 13.0 adds {row.type} as one integer, and "
                f"so an H200 does; expected .{row.type.removesuffix('x2')}, which is added as a float there"
            )
        for some in (touch.lanes & ~far, far):
            if some.any():
                yield space, allocation, touch.of(some)


def _strong(batch: Batch, row: Atomic, space: Space, touch: Touch) -> Touch:
    """Return an access with the order of the instruction; a load and a store are weak."""
    if row.divided and space is batch.shared and _foreign(batch, touch).any():
        return touch
    return touch.strong(row.order, row.scope)


def _operands(
    batch: Batch, site: Site, row: Atomic, operands: Sequence[Any], lanes: Array
) -> tuple[Any, list[Array], Poison | None]:
    """Return the address, each value as `[block, warp, lane, register]` of an element's bits, or 64, and their poison.

    What `cas` compares and writes decides something.
    """
    where, *given = operands
    if row.hint:
        read(batch, site, [given.pop()], lanes)
    dtype = np.dtype(f"u{min(row.bits, 64) // 8}")
    if row.operation == "cas":
        words, carried = read(batch, site, given, lanes), None
    else:
        words, carried = stored(batch, site, given, lanes)
    words = [x.astype(dtype) for x in words]
    values = [np.stack(words[i : i + row.registers], axis=-1) for i in range(0, len(words), row.registers)]
    if carried is None:
        return where, values, None
    return where, values, batch.held(joined([x.astype(dtype) for x in carried.masks]), carried)


def taking_turns(batch: Batch, row: Atomic, space: str, values: list[Array], turns: Turns) -> Taken:
    """Let lanes take their turns at elements."""
    shape = (-1, 2) if row.bits == 128 else (-1,)
    operands = [x.reshape(shape) for x in values]
    start = turns.held.view(operands[0].dtype).reshape(shape)
    order = batch.shuffled(len(turns.place))
    place, *given = (turns.place, *operands) if order is None else (x[order] for x in (turns.place, *operands))
    taken, left = in_turns(row, space, place, start, given)
    found = taken
    if order is not None:
        found = np.empty_like(taken)
        found[order] = taken
    wrote = np.ones(len(found), bool)
    if row.operation == "cas":
        wrote = (found == operands[0]).reshape(len(found), -1).all(axis=1)
    open_ = np.zeros(len(found), bool)
    if batch.reporter.tracking:
        open_ = _open(row, space, turns, start, found, left, operands)
    size = row.bits // 8
    return Taken(found.view(np.uint8).reshape(-1, size), left.view(np.uint8).reshape(-1, size), wrote, open_, order)


# Rule 2


def _open(
    row: Atomic, space: str, turns: Turns, start: Array, found: Array, left: Array, operands: list[Array]
) -> Array:
    """Return which turns depended on their order."""
    place, number = turns.place, np.bincount(turns.place, minlength=len(turns.held))
    several = (number > 1) | turns.contested
    if not several.any() or not (row.returns or row.floating or row.operation in ("inc", "dec")):
        return np.zeros(len(place), bool)
    if row.returns:
        changed = (left != start).reshape(len(number), -1).any(axis=1)
        np.logical_or.at(changed, place, (found != start[place]).reshape(len(place), -1).any(axis=1))
        matters = turns.contested | ((number > 1) & changed)
    else:
        _, backwards = in_turns(row, space, place[::-1], start, [x[::-1] for x in operands])
        matters = several & (backwards != left)
        if row.floating:
            rounds = np.zeros(len(number), bool)
            np.logical_or.at(rounds, place, _rounds(row, found, operands[0]))
            matters |= rounds & ((number > 2) | turns.contested)
    return np.asarray(matters[place])


def _rounds(row: Atomic, found: Array, value: Array) -> Array:
    """Return which sums are not exact; of a packed element, if one of both is not."""
    fmt = cast(FloatFormat, FORMATS[row.type.removesuffix("x2")])
    halves = [x.view(fmt.code_dtype).reshape(len(x), -1) for x in (found, np.ascontiguousarray(value))]
    a, b = (fmt.decode(x).astype(np.float64) for x in halves)
    with np.errstate(all="ignore"):
        total = a + b
        back = total - a
        error = (a - (total - back)) + (b - back)
        held = total if fmt.name == "f64" else fmt.decode(fmt.encode(total, overflow="infinity")).astype(np.float64)
    return np.asarray(((error != 0) | (held != total)).any(axis=1))
