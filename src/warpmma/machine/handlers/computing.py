"""Instructions on registers alone.

The rules:

1. An operation reads a register in the lanes where its value counts (`needed`). An unwritten value there is poison, and
   reported.
2. Where poison is followed (rule 5 of `hazards`), the poison bits of the results are those of `operations.carriage`:
   compilers let all lanes compute on values that only some have loaded, and use only the results in these lanes. `shfl`
   gives a lane the poison bits of its source. What else combines lanes gives poison to all of a membermask if one lane
   of it brings poison; a poisoned membermask, or source lane, is reported.
3. With "strict", poison propagates through operations of one lane, and in kernels in Python through rows that say so.
4. Poison names the line that made it first, or the last line that moved it to another lane.
5. A copy of a register that an asynchronous instruction writes is complete when that is (rule 4 of `warp_register`);
   whatever else is computed from it stays poison.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array, all_ones, frozen
from ...operations import DTYPES, UNDEFINED, Operation
from ...registers import LANES
from ..base import Site, WarpRegister
from ..block import Batch, Carried, Results


def compute(batch: Batch, site: Site, row: Operation, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute an operation."""
    bits = [x.bits if isinstance(x, WarpRegister) else x for x in operands]
    registers = [x for x in operands if isinstance(x, WarpRegister)]
    if batch.reporter.follows:
        return _followed(batch, site, row, operands, bits, lanes)
    poison = _poison(batch, site, row, operands, bits, lanes)
    made, origin = site, None
    if poison is not None:
        shadows = [x.shadow for x in registers if x.shadow is not None]
        origin = next((x.origin for x in shadows if x.origin is not None), None)
        if row.passes is None:
            made = next((x.site for x in shadows if x.site is not None), site)
    results = _together(batch, site, row, bits, lanes) if row.lanes else batch.function(row)(*bits)
    found = tuple(
        batch.made(np.asarray(x, DTYPES[kind]), lanes, made, None if i and row.passes else poison, origin)
        for i, (x, kind) in enumerate(zip(results, row.outputs, strict=True))
    )
    return _pending(row, registers, found) if poison is not None else found


def _followed(
    batch: Batch, site: Site, row: Operation, operands: Sequence[Any], bits: list[Any], lanes: Array
) -> Results:
    """Execute an operation, and follow the poison of its operands (rule 2)."""
    registers = [x for x in operands if isinstance(x, WarpRegister)]
    if row.lanes:
        steering = registers[-1:] if row.passes is None else registers[1:]
        batch.read(site, steering, [lanes] * len(steering))
    found = batch.carried(registers, site, lanes)
    results = _together(batch, site, row, bits, lanes) if row.lanes else batch.function(row)(*bits)
    poison: list[Array | None] = [None] * len(row.outputs)
    made = site
    if found is not None:
        masks = _masks(operands, found)
        dtypes = [DTYPES[kind] for kind in row.outputs]
        if not any(mask is not None for mask in masks):
            pass
        elif row.passes is not None:
            source = np.broadcast_to(row.passes(*bits), batch.shape)
            poison[0] = None if masks[0] is None else np.take_along_axis(masks[0], source, axis=-1)
        elif row.lanes:
            poison = list(_of_groups(masks[0], bits[-1], batch.shape, dtypes))
        else:
            poison = list(row.carriage(row.compute, bits, masks, dtypes))
            made = found.site
    made_of = tuple(
        batch.made(np.asarray(x, DTYPES[kind]), lanes, made, mask, None if found is None else found.origin)
        for x, kind, mask in zip(results, row.outputs, poison, strict=True)
    )
    return _pending(row, registers, made_of) if found is not None else made_of


def _pending(row: Operation, registers: Sequence[WarpRegister], results: Results) -> Results:
    """Return results; what is pending in a register is pending in its copy (rule 5)."""
    if row.travels:
        pending = tuple(each for x in registers if x.shadow is not None for each in x.shadow.pending)
        for x in results:
            if x.shadow is not None:
                x.shadow.pending = pending
    return results


def _masks(operands: Sequence[Any], found: Carried) -> list[Array | None]:
    """Return the poison bits of each operand; None for one without."""
    masks = (mask if mask.any() else None for mask in found.masks)
    return [next(masks) if isinstance(x, WarpRegister) else None for x in operands]


def _of_groups(mask: Array | None, members: Array, shape: tuple[int, ...], dtypes: Sequence[Any]) -> list[Array]:
    """Return poison in all lanes of the membermasks in which one lane brings poison."""
    bad = np.zeros(shape, bool) if mask is None else np.broadcast_to(mask != 0, shape)
    some = np.broadcast_to(members & _words(bad) != 0, shape)
    return [all_ones(some, dtype) for dtype in dtypes]


def _poison(
    batch: Batch, site: Site, row: Operation, operands: Sequence[Any], bits: list[Any], lanes: Array
) -> Array | None:
    """Report needed lanes that hold poison, or return the lanes to which poison propagates (rule 3)."""
    registers = [x for x in operands if isinstance(x, WarpRegister)]
    if not batch.reporter.tracking or all(x.defined is None for x in registers):
        return None
    needed = [lanes] * len(registers)
    if row.travels or (batch.poison_travels and not row.lanes):
        found = batch.carried(registers, site, lanes)
        if found is None:
            return None
        masks = _masks(operands, found)
        results = row.carriage(row.compute, bits, masks, [DTYPES[kind] for kind in row.outputs])
        return np.asarray(np.logical_or.reduce([x != 0 for x in results]))
    if row.passes is not None:
        needed[0] = np.zeros_like(lanes)
        batch.read(site, registers, needed)
        defined = registers[0].defined
        if defined is None:
            return None
        source = np.broadcast_to(row.passes(*bits), batch.shape)
        return np.asarray(~np.take_along_axis(np.broadcast_to(defined, batch.shape), source, axis=-1))
    if row.needed is not None:
        needed = [lanes & some for some in row.needed(*bits)]
    batch.read(site, registers, needed)
    return None


def _together(batch: Batch, site: Site, row: Operation, bits: list[Any], lanes: Array) -> tuple[Array, ...]:
    """Compute an operation across lanes: lanes that have exited or have no thread are in no membermask."""
    alive = batch.lanes.alive
    if row.membermask and not alive.all():
        bits = [*bits[:-1], bits[-1] & _words(alive)]
    arguments = [*(np.broadcast_to(x, batch.shape) if isinstance(x, np.ndarray) else x for x in bits), lanes]
    results = row.for_target(batch.target).compute(*arguments)
    shuffles = row.passes is not None  # what these give then is known (rule 2 of `operations.collectives`)
    if row.undefined is not None and (batch.reporter.tracking or not shuffles):
        bad = row.undefined(*arguments)
        if bad.any():
            why = f"the result is undefined: {UNDEFINED}"
            batch.reporter.report("divergent", site, lanes & bad, detail=why)
        if bad.any() and not shuffles:
            results = tuple(np.where(bad, np.zeros_like(x), x) for x in results)
    return results


def _words(lanes: Array) -> Array:
    """Return the lanes of each warp as a mask, uint32 `[block, warp, 1]`."""
    return np.asarray(np.bitwise_or.reduce(np.where(lanes, _BITS, np.uint32(0)), axis=-1, keepdims=True))


_BITS = frozen(np.uint32(1) << np.arange(LANES, dtype=np.uint32))
