"""Instructions that move registers from and to memory: `ld`, `ldu`, `st`, `ldmatrix` and `stmatrix`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...operations import DTYPES, WINDOWS, Access, MatrixMove
from ...registers import LANES
from ..base import Site, WarpRegister, joined, split
from ..block import Batch, Results, parts, touches

_ORDERED = ("global", "shared")  # other memory is one thread's, or nobody writes it


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
    data, poison = _loaded(batch, site, row, at, lanes)
    per = row.registers // row.count
    words = split(data, row.word)
    dtype = DTYPES[row.kind]  # of 8 bits, 16 are made
    return tuple(
        batch.made(words[i].astype(dtype, copy=False), lanes, site, None if poison is None else poison[..., i // per])
        for i in range(row.registers)
    )


def _loaded(batch: Batch, site: Site, row: Access, at: Array, lanes: Array) -> tuple[Array, Array | None]:
    """Bytes `[block, warp, lane, size]` from wherever lanes' addresses are, and which elements are poison."""
    element = row.bits // 8
    found: list[tuple[Array, Array | None, Array]] = []
    for space, place, some in parts(batch, site, row.space, at, lanes):
        _count(batch, site, space, place, row.size, some)
        if row.order != "weak" and space in _ORDERED:
            data, poison = _load_strongly(batch, site, row, space, place, some)
        elif space == "global":
            data, poison = batch.memory.load(batch.clocks, site, place, row.size, some, element=element)
        else:
            memory = batch.shared if space == "shared" else batch.local
            travels = batch.poison_travels
            data, poison = memory.load(site, place, row.size, some, element=element, travels=travels)
            if travels and poison is not None and poison.any():
                batch.loaded_poison.add(site)
        found.append((data, poison, some))
    data, poison, _ = found[0]
    for more, bad, some in found[1:]:
        data[some] = more[some]
        if bad is not None:
            poison = np.zeros(bad.shape, bool) if poison is None else poison
            poison[some] = bad[some]
    return data, poison


def _store(batch: Batch, site: Site, row: Access, where: Any, values: Sequence[Any], lanes: Array) -> None:
    at = address(batch, site, where, lanes)
    width = min(row.bits, 64)
    data = joined([x.astype(f"u{width // 8}", copy=False) for x in read(batch, site, values, lanes)])
    for space, place, some in parts(batch, site, row.space, at, lanes):
        _count(batch, site, space, place, row.size, some)
        if row.order != "weak" and space in _ORDERED:
            _store_strongly(batch, site, row, space, place, data, some)
        elif space == "global":
            batch.memory.store(batch.clocks, site, place, data, some)
        else:
            (batch.shared if space == "shared" else batch.local).store(site, place, data, some)


def _load_strongly(
    batch: Batch, site: Site, row: Access, space: str, at: Array, lanes: Array
) -> tuple[Array, Array | None]:
    """Load in order (`causality`): bytes `[block, warp, lane, size]`, and which elements are poison."""
    data: Array = np.zeros((*lanes.shape, row.size), np.uint8)
    poison: Array | None = None
    for _, allocation, touch in touches(batch, site, space, at, row.size, lanes):
        data[touch.lanes], bad = allocation.load(touch.strong(row.order, row.scope), row.bits // 8)
        if bad is not None:
            poison = np.zeros((*lanes.shape, row.count), bool) if poison is None else poison
            poison[touch.lanes] = bad
    return data, poison


def _store_strongly(batch: Batch, site: Site, row: Access, space: str, at: Array, data: Array, lanes: Array) -> None:
    """Store bytes `[block, warp, lane, size]` in order."""
    for _, allocation, touch in touches(batch, site, space, at, row.size, lanes):
        if allocation.data.flags.writeable:
            allocation.store(touch.strong(row.order, row.scope), data[touch.lanes])
        else:
            batch.reporter.report("bounds", site, touch.lanes, at, "a store to an array that is read-only")


def address(batch: Batch, site: Site, register: WarpRegister, lanes: Array) -> Array:
    """Addresses `[block, warp, lane]`."""
    return batch.read(site, [register], [lanes])[0]


def _count(batch: Batch, site: Site, space: str, at: Array, size: int, lanes: Array) -> None:
    if space == "shared":
        batch.costs.shared(site, at, size, lanes)
    else:
        batch.costs.moved(site, space, int(np.count_nonzero(lanes)) * size)


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
    if row.direction == "load":
        return _load_rows(batch, site, row, at, lanes_of_rows, lanes)
    rows = row.collect(batch.read_fragment(site, values, lanes))
    data = np.zeros((*lanes.shape, row.row_bytes), np.uint8)
    data[..., : row.address_lanes, :] = rows.reshape(*lanes.shape[:-1], row.address_lanes, row.row_bytes)
    batch.costs.shared(site, at, row.row_bytes, lanes_of_rows)
    batch.shared.store(site, at, data, lanes_of_rows)
    return ()


def _load_rows(batch: Batch, site: Site, row: MatrixMove, at: Array, lanes_of_rows: Array, lanes: Array) -> Results:
    batch.costs.shared(site, at, row.row_bytes, lanes_of_rows)
    data_bytes = (1 << len(row.layout.column)) * row.bits // 8  # the rest of a row is padding
    data, poison = batch.shared.load(site, at, data_bytes, lanes_of_rows, alignment=row.alignment, element=1)
    registers = _distributed(row, data)
    spoilt = None if poison is None else _distributed(row, poison.astype(np.uint8) * np.uint8(0xFF))
    return batch.fragment(registers, lanes, site, None if spoilt is None else spoilt != 0)


def _distributed(row: MatrixMove, rows: Array) -> Array:
    """Make registers of the bytes of rows, which lie at the lanes that bring their addresses."""
    rows = rows[..., : row.address_lanes, :]
    if (padding := row.row_bytes - rows.shape[-1]) > 0:
        rows = np.concatenate([rows, np.zeros((*rows.shape[:-1], padding), np.uint8)], axis=-1)
    return row.distribute(rows.reshape(*rows.shape[:-2], row.matrices, row.rows_per_matrix, row.row_bytes))


def check_whole(batch: Batch, site: Site, lanes: Array) -> None:
    """Report warps of which some lanes act and others do not."""
    if not lanes.all():
        batch.reporter.report(
            "divergent", site, lanes & ~lanes.all(axis=-1, keepdims=True),
            detail="all 32 lanes of a warp execute this together, and some are masked off or are no threads",
        )  # fmt: skip
