"""Instructions that move registers from and to memory: `ld`, `ldu`, `st`, `ldmatrix` and `stmatrix`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import OperandError
from ...operations import DTYPES, WINDOWS, Access, MatrixMove
from ...registers import LANES
from ..base import Site, WarpRegister, joined, several, split
from ..block import Batch, Results, load, store


def access(batch: Batch, site: Site, row: Access, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute a load or a store."""
    if row.direction == "load":
        where, *hint = exactly(site, operands, 1 + row.hint, "an address" + _policy(row.hint))
        check_policy(batch, site, hint, lanes)
        return _load(batch, site, row, where, lanes)
    what = f"an address and {row.registers} value{'s' * (row.registers > 1)}"
    where, *values = exactly(site, operands, 1 + row.registers + row.hint, what + _policy(row.hint))
    if row.hint:
        check_policy(batch, site, [values.pop()], lanes)
    _store(batch, site, row, where, values, lanes)
    return ()


def _policy(hint: bool) -> str:
    return " and a cache policy" * hint


def check_policy(batch: Batch, site: Site, policies: Sequence[Any], lanes: Array) -> None:
    """Check the cache policy, if there is one: a b64 register, which changes no bit."""
    for x in policies:
        register = batch.operand(x, "b64", "b64", f"{site.mnemonic}: the cache policy")
        batch.read(site, [fitting(site, register, 64, 64)], [lanes])


def _load(batch: Batch, site: Site, row: Access, where: Any, lanes: Array) -> Results:
    at = address(batch, site, row.space, where, lanes)
    data, poison = load(
        batch, site, row.space, at, row.size, lanes, element=row.bits // 8, order=row.order, scope=row.scope,
        travels=batch.poison_travels,
    )  # fmt: skip
    per = row.registers // row.count
    words = split(data, row.word)
    dtype = DTYPES[row.kind]  # of 8 bits, 16 are made
    return tuple(
        batch.made(words[i].astype(dtype, copy=False), lanes, site, None if poison is None else poison[..., i // per])
        for i in range(row.registers)
    )


def _store(batch: Batch, site: Site, row: Access, where: Any, values: Sequence[Any], lanes: Array) -> None:
    at = address(batch, site, row.space, where, lanes)
    width = min(row.bits, 64)
    type_ = "b64" if row.bits == 128 else row.type
    registers = [
        fitting(site, batch.operand(x, type_, row.kind, f"{site.mnemonic}: value {i}"), width)
        for i, x in enumerate(values)
    ]
    bits = batch.read(site, registers, [lanes] * len(registers))
    data = joined([x.astype(f"u{width // 8}", copy=False) for x in bits])
    store(batch, site, row.space, at, data, lanes, order=row.order, scope=row.scope)


def address(batch: Batch, site: Site, space: str, x: Any, lanes: Array) -> Array:
    """Addresses `[block, warp, lane]` in a space."""
    width = 64 if space in ("global", "generic") else 32
    register = x
    if not isinstance(x, WarpRegister):
        register = batch.operand(x, f"u{width}", f"b{width}", f"{site.mnemonic}: the address")
    if register.kind not in ("b32", "b64"):
        raise OperandError(f"{site.mnemonic}: an address is a b32 or b64 register; got {register.kind}")
    return batch.read(site, [register], [lanes])[0]


# Matrices


def move(batch: Batch, site: Site, row: MatrixMove, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute an `ldmatrix` or `stmatrix`."""
    check_whole(batch, site, lanes)
    number = row.registers if row.direction == "store" else 0
    what = f"an address and {number} register{'s' * (number > 1)}" if number else "an address"
    where, *values = exactly(site, operands, 1 + number, what)
    lanes_of_rows = lanes & (np.arange(LANES) < row.address_lanes)
    at = address(batch, site, "shared", where, lanes_of_rows)
    if at.dtype == np.uint64 and ".shared" not in str(row):  # a generic one
        window = WINDOWS["shared"]
        at = np.where(at - np.uint64(window.base) < np.uint64(window.size), at - np.uint64(window.base), at)
    if row.direction == "load":
        return _load_rows(batch, site, row, at, lanes_of_rows, lanes)
    packing = row.layout.packing
    type_ = several(f"b{packing.slot}", packing)
    registers = [batch.operand(x, type_, "b32", f"{site.mnemonic}: register {i}") for i, x in enumerate(values)]
    bits = batch.read(site, [fitting(site, x, 32, 32) for x in registers], [lanes] * number)
    rows = row.collect(np.stack(bits, axis=-2))
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
    return tuple(
        batch.made(registers[..., i, :], lanes, site, None if spoilt is None else spoilt[..., i, :] != 0)
        for i in range(row.registers)
    )


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


# Operands


def exactly(site: Site, operands: Sequence[Any], number: int, what: str) -> Sequence[Any]:
    """Check how many operands there are; a sequence of them counts as so many."""
    flat = [y for x in operands for y in (x if isinstance(x, list | tuple) else (x,))]
    if len(flat) != number:
        raise OperandError(f"{site.mnemonic} takes {what}; got {len(flat)} operand{'s' * (len(flat) != 1)}")
    return flat


def fitting(site: Site, register: WarpRegister, least: int, most: int = 64) -> WarpRegister:
    """Return a register whose width is right; a store may use the low bits of a wider one."""
    if register.kind == "pred" or not least <= int(register.kind[1:]) <= most:
        expected = f"b{least}" if least == most else f"{max(least, 16)} bits or more"
        raise OperandError(f"{site.mnemonic}: a register is {register.kind}; expected {expected}")
    return register
