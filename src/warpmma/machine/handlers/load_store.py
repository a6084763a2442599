"""Instructions that move registers from and to memory: `ld`, `ldu`, `st`, `ldmatrix` and `stmatrix`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...operations import DTYPES, WINDOWS, Access, MatrixMove
from ...registers import LANES
from ..base import Site, WarpRegister, joined, split
from ..block import Batch, Carried, Results, load, own, store


def access(batch: Batch, site: Site, row: Access, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute a load or a store."""
    where, *values = operands
    if row.hint:
        read(batch, site, [values.pop()], lanes)
    if row.direction == "load":
        return _load(batch, site, row, where, lanes)
    _store(batch, site, row, where, values, lanes)
    return ()


def read(batch: Batch, site: Site, registers: Sequence[WarpRegister], lanes: Array) -> list[Array]:
    """Return the bits of registers that all these lanes read."""
    return batch.read(site, registers, [lanes] * len(registers))


def _load(batch: Batch, site: Site, row: Access, where: Any, lanes: Array) -> Results:
    at = address(batch, site, where, lanes)
    data, poison = load(
        batch, site, row.space, at, row.size, lanes, element=row.bits // 8, order=row.order, scope=row.scope,
        travels=batch.poison_travels, plain=True,
    )  # fmt: skip
    words = split(data, row.word)
    dtype = DTYPES[row.kind]  # of 8 bits, 16 are made
    masks, origin = [None] * len(words) if poison is None else split(poison.bits, row.word), poison and poison.origin
    return tuple(
        batch.made(
            word.astype(dtype, copy=False), lanes, site, None if mask is None else mask.astype(dtype, copy=False),
            origin,
        )
        for word, mask in zip(words, masks, strict=True)
    )  # fmt: skip


def _store(batch: Batch, site: Site, row: Access, where: Any, values: Sequence[Any], lanes: Array) -> None:
    at = address(batch, site, where, lanes)
    dtype = np.dtype(f"u{min(row.bits, 64) // 8}")
    words, found = stored(batch, site, values, lanes)
    data = joined([x.astype(dtype, copy=False) for x in words])
    poison = None if found is None else batch.held(joined([x.astype(dtype) for x in found.masks]), found)
    store(batch, site, row.space, at, data, lanes, order=row.order, scope=row.scope, poison=poison)


def stored(
    batch: Batch, site: Site, values: Sequence[WarpRegister], lanes: Array
) -> tuple[list[Array], Carried | None]:
    """Return the bits of registers that memory takes, and their poison, which is reported if it is not followed."""
    if batch.reporter.follows:
        return [x.bits for x in values], batch.carried(values, site, lanes)
    return read(batch, site, values, lanes), None


def address(batch: Batch, site: Site, register: WarpRegister, lanes: Array) -> Array:
    """Addresses `[block, warp, lane]`."""
    return batch.read(site, [register], [lanes])[0]


# Matrices


def move(batch: Batch, site: Site, row: MatrixMove, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute an `ldmatrix` or `stmatrix`."""
    check_whole(batch, site, lanes)
    where, *values = operands
    lanes_of_rows = lanes & (np.arange(LANES) < row.address_lanes)
    at = address(batch, site, where, lanes_of_rows)
    if at.dtype == np.uint64 and row.space == "generic":
        window = WINDOWS["shared"]
        at = np.where(at - np.uint64(window.base) < np.uint64(window.size), at - np.uint64(window.base), at)
    lanes_of_rows = own(batch, site, at, lanes_of_rows)
    if row.direction == "load":
        return _load_rows(batch, site, row, at, lanes_of_rows, lanes)
    data = _collected(row, batch.read_fragment(site, values, lanes), lanes)
    poison = None
    if batch.reporter.follows and (found := batch.carried(values, site, lanes)) is not None:
        poison = batch.held(_collected(row, np.stack(found.masks, axis=-2), lanes), found)
    batch.costs.shared(site, at, row.row_bytes, lanes_of_rows)
    batch.shared.store(site, at, data, lanes_of_rows, poison=poison)
    return ()


def _collected(row: MatrixMove, registers: Array, lanes: Array) -> Array:
    """Make rows of registers, at the lanes that bring their addresses."""
    rows = row.collect(registers)
    data = np.zeros((*lanes.shape, row.row_bytes), np.uint8)
    data[..., : row.address_lanes, :] = rows.reshape(*lanes.shape[:-1], row.address_lanes, row.row_bytes)
    return data


def _load_rows(batch: Batch, site: Site, row: MatrixMove, at: Array, lanes_of_rows: Array, lanes: Array) -> Results:
    batch.costs.shared(site, at, row.row_bytes, lanes_of_rows)
    data_bytes = (1 << len(row.layout.column)) * row.bits // 8  # the rest of a row is padding
    data, poison = batch.shared.load(site, at, data_bytes, lanes_of_rows, alignment=row.alignment, element=1)
    registers = _distributed(row, data)
    if poison is None:
        return batch.fragment(registers, lanes, site)
    bits = _distributed(row, poison.bits)
    return batch.fragment(registers, lanes, site, bits if batch.reporter.follows else bits != 0, poison.origin)


def _distributed(row: MatrixMove, rows: Array) -> Array:
    """Make registers of the bytes of rows, which lie at the lanes that bring their addresses."""
    rows = rows[..., : row.address_lanes, :]
    if (padding := row.row_bytes - rows.shape[-1]) > 0:
        rows = np.concatenate([rows, np.zeros((*rows.shape[:-1], padding), np.uint8)], axis=-1)
    return row.distribute(rows.reshape(*rows.shape[:-2], row.matrices, row.rows_per_matrix, row.row_bytes))


def check_whole(batch: Batch, site: Site, lanes: Array) -> None:
    """Report warps in which some lanes are active and others are not."""
    if not lanes.all():
        batch.reporter.report(
            "divergent", site, lanes & ~lanes.all(axis=-1, keepdims=True),
            detail="all 32 lanes of a warp execute this together, and some are masked off or are not threads",
        )  # fmt: skip
