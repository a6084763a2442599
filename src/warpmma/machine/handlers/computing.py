"""Instructions on registers alone.

The rules:

1. An operation reads a register in the lanes where its value counts (`needed`). An unwritten value there is poison, and
   reported.
2. Where poison propagates (`Batch.poison_travels`, and the rows that say so) the result is poison instead: compilers
   let all lanes compute on values that only some have loaded, and use only the results in these lanes. Poison is
   reported where it decides something: as an address, a guard or a mask, in a store to memory, or where lanes or
   fragments are combined.
3. Poison names the line that made it first, or the last line that moved it to another lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array, frozen
from ...operations import DTYPES, UNDEFINED, Operation
from ...registers import LANES
from ..base import Site, WarpRegister
from ..block import Batch, Results


def compute(batch: Batch, site: Site, row: Operation, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute an operation."""
    bits = [x.bits if isinstance(x, WarpRegister) else x for x in operands]
    registers = [x for x in operands if isinstance(x, WarpRegister)]
    poison = _poison(batch, site, row, registers, bits, lanes)
    made = site if poison is None or row.passes is not None else _made_at(registers, site)
    results = _together(batch, site, row, bits, lanes) if row.lanes else batch.function(row)(*bits)
    return tuple(
        batch.made(np.asarray(x, DTYPES[kind]), lanes, made, None if i and row.passes else poison)
        for i, (x, kind) in enumerate(zip(results, row.outputs, strict=True))
    )


def _poison(
    batch: Batch, site: Site, row: Operation, registers: list[WarpRegister], bits: list[Any], lanes: Array
) -> Array | None:
    """Report needed lanes that hold poison, or return the lanes to which poison propagates."""
    if not batch.reporter.tracking or all(x.defined is None for x in registers):
        return None
    needed = [lanes] * len(registers)
    if row.travels or (batch.poison_travels and not row.lanes):
        if row.needed is not None:
            needed = [lanes & some for some in row.needed(*bits)]
        poison = np.zeros(batch.shape, bool)
        for x, some in zip(registers, needed, strict=True):
            poison |= False if x.defined is None else some & ~x.defined
        for i, value in row.decisive if poison.any() else ():
            decided = bits[i] == value
            poison &= ~(decided if registers[i].defined is None else decided & registers[i].defined)
        return poison
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


def _made_at(registers: list[WarpRegister], site: Site) -> Site:
    """Rule 3."""
    return next((x.site for x in registers if x.defined is not None and x.site is not None), site)


def _together(batch: Batch, site: Site, row: Operation, bits: list[Any], lanes: Array) -> tuple[Array, ...]:
    """Compute an operation across lanes: lanes that have exited or have no thread are in no membermask."""
    alive = batch.lanes.alive
    if row.membermask and not alive.all():
        words = np.bitwise_or.reduce(np.where(alive, _BITS, np.uint32(0)), axis=-1, keepdims=True)
        bits = [*bits[:-1], bits[-1] & words]
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


_BITS = frozen(np.uint32(1) << np.arange(LANES, dtype=np.uint32))
