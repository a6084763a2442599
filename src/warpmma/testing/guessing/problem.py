"""The problem: an instruction, its operands and its wrong result, cut into tiles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._arguments import is_integer
from ..._arrays import Array, as_array
from ...errors import OperandError, shown
from ...formats import Format
from ...isa import Instruction
from ...layouts import Operand
from ...registers import LANES
from ...scaling import pack_scales
from ...sparsity import compress, pack_metadata
from ..reading import format_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """A call of an instruction and its wrong result."""

    record: Instruction
    target: str
    operands: Mapping[str, Array]  # as `mistakes` has them; "D" is what was seen
    settings: Mapping[str, Any]  # "record", and what else `execute` is called with that is not an array
    counts: tuple[int, int, int, int]  # warps, rows of tiles, columns of tiles, tiles along k
    result: Format  # of D as it was seen: that of the instruction, or a narrower one to which it was rounded


def tiles_of(record: Instruction, operand: Operand, x: npt.ArrayLike) -> Array:
    """Cut matrices, or take registers: codes `[..., tiles of rows, tiles of columns, elements of a tile]`."""
    array, layout = as_array(x, f"{record}: {operand}"), record.layout(operand)
    packing, rank = layout.packing, len(layout.shape)
    if is_registers(record, operand, array) and array.size:
        codes = packing.split(np.ascontiguousarray(array)).reshape(*array.shape[:-2], -1)
        codes = codes.take(layout.order.reshape(-1), axis=-1)
        return codes.astype(record.format(operand).code_dtype)[..., None, None, :]
    rows, columns = layout.shape[-2:]
    whole = array.ndim >= rank and not array.shape[-2] % rows and not array.shape[-1] % columns
    if not whole or (rank > 2 and array.shape[-rank:] != layout.shape) or not array.size:
        dims = ", ".join(map(str, layout.shape))
        raise OperandError(
            f"{record}: {operand} is {array.dtype} {array.shape}; expected matrices [..., {dims}], whole numbers of "
            f"them, or registers {packing.dtype} [..., {layout.registers}, {LANES}]"
        )
    try:
        codes = format_of(record, operand, array.dtype).codes(array)
    except OperandError as error:
        raise OperandError(f"{record}: {operand}: {error}") from None
    if rank > 2:
        return codes.reshape(*codes.shape[:-rank], 1, 1, -1)
    tiles = cut(codes, rows, columns)
    return tiles.reshape(*tiles.shape[:-2], -1)


def is_registers(record: Instruction, operand: Operand, array: Array) -> bool:
    """Return whether an array is an operand's registers rather than its matrix."""
    layout = record.layout(operand)
    return array.dtype == layout.packing.dtype and array.shape[-2:] == (layout.registers, LANES)


def cut(array: Array, rows: int, columns: int) -> Array:
    """Cut `[..., M, K]` into `[..., I, T, rows, columns]`."""
    *batch, m, k = array.shape
    return array.reshape(*batch, m // rows, rows, k // columns, columns).swapaxes(-3, -2)


_SETTINGS = ("selector", "byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b")


def posed(
    record: Instruction, target: str, a: Any, b: Any, c: Any, got: Any, *, metadata: Any = None, scale_a: Any = None,
    scale_b: Any = None, **given: Any,
) -> Problem:  # fmt: skip
    """Check the arguments of `guess`; of `given`, which are settings, those that are absent are 0."""
    settings: dict[str, Any] = {name: given.get(name, 0) for name in _SETTINGS}
    for name, value in settings.items():
        if not is_integer(value):
            raise OperandError(f"{record}: {name} is {shown(value)}; expected an integer")
    settings["record"] = record
    arrays: dict[str, Array] = {}
    a = as_array(a, f"{record}: A")
    if record.sparse and metadata is None:
        a, metadata = _compressed(record, a, settings["selector"])
    arrays["A"], arrays["B"] = tiles_of(record, "A", a), tiles_of(record, "B", b)
    rows, along_k = arrays["A"].shape[-3:-1]
    columns = arrays["B"].shape[-2]
    if arrays["B"].shape[-3] != along_k:
        k = [arrays["A"].shape[-2] * record.k, arrays["B"].shape[-3] * record.k]
        raise OperandError(f"{record}: A has {k[0]} of k, and B {k[1]}")
    nothing = np.zeros((rows, columns, record.layout("C").flat.size), record.format("C").code_dtype)
    arrays["C"] = nothing if c is None else tiles_of(record, "C", c)
    got = as_array(got, f"{record}: D")
    arrays["D"], result = tiles_of(record, "D", got), format_of(record, "D", got.dtype)
    for name in ("C", "D"):
        if arrays[name].shape[-3:-1] != (rows, columns):
            came = (arrays[name].shape[-3] * record.m, arrays[name].shape[-2] * record.n)
            raise OperandError(f"{record}: {name} is {came}; expected {(rows * record.m, columns * record.n)}")
    if along_k > 1 and record.c_type != record.d_type:
        raise OperandError(f"{record}: its D does not fit its C, so {along_k} tiles along k cannot be chained")
    words = {"metadata": metadata, "scale_a": scale_a, "scale_b": scale_b}
    arrays |= _words(record, words, (rows, columns, along_k), settings)
    batches = {name: x.shape[:-3] for name, x in arrays.items()}
    try:
        batch = np.broadcast_shapes(*batches.values())
    except ValueError:
        raise OperandError(f"{record}: batches do not broadcast: {batches}") from None
    if not math.prod(batch):
        raise OperandError(f"{record}: the batch is {batch}: there is nothing to guess")
    flat = {name: np.broadcast_to(x, (*batch, *x.shape[-3:])).reshape(-1, *x.shape[-3:]) for name, x in arrays.items()}
    counts = (len(flat["D"]), rows, columns, along_k)
    return Problem(record=record, target=target, operands=flat, settings=settings, counts=counts, result=result)


def _compressed(record: Instruction, a: Array, selector: int) -> tuple[Array, Array]:
    """Return stored elements of a dense A, and metadata of its tiles `[..., I, T, 32]`."""
    whole = a.ndim >= 2 and a.size and not a.shape[-1] % record.k and not a.shape[-2] % record.m
    if is_registers(record, "A", a) or not whole:
        raise OperandError(
            f"{record}: A is {a.dtype} {a.shape} without metadata; expected [..., {record.m}, {record.k}]"
        )
    stored, indices = compress(a, record)
    groups = indices.shape[-2] // (a.shape[-1] // record.k)
    *batch, rows, along, _ = indices.shape
    tiled = indices.reshape(*batch, rows // record.m, record.m, along // groups, groups, 2).swapaxes(-4, -3)
    return stored, pack_metadata(tiled, record, selector=selector)


def _words(
    record: Instruction, given: Mapping[str, Any], counts: tuple[int, int, int], settings: Mapping[str, Any]
) -> dict[str, Array]:
    """Return words of metadata and scales by tile: `[..., tiles, tiles, 32]`."""
    rows, columns, along_k = counts
    needed = {"metadata": record.sparse, "scale_a": record.block_scale, "scale_b": record.block_scale}
    found = {}
    for name, needs in needed.items():
        if needs != (given[name] is not None):
            raise OperandError(f"{record} {'needs' if needs else 'takes no'} {name}")
        if not needs:
            continue
        array = as_array(given[name], f"{record}: {name}")
        tiles = (along_k, columns) if name == "scale_b" else (rows, along_k)
        if array.dtype != np.uint32 and name != "metadata":
            array = _packed(record, "A" if name == "scale_a" else "B", array, tiles, settings)
        of_lanes = array.dtype == np.uint32 and array.shape[-1:] == (LANES,)
        if of_lanes and tiles == (1, 1) and array.shape[-3:-1] != (1, 1):
            array = array[..., None, None, :]
        if array.dtype != np.uint32 or array.shape[-3:] != (*tiles, LANES):
            expected = f"[..., {tiles[0]}, {tiles[1]}, {LANES}]" if tiles != (1, 1) else f"[..., {LANES}]"
            raise OperandError(f"{record}: {name} is {array.dtype} {array.shape}; expected uint32 {expected}")
        found[name] = array
    return found


def _packed(
    record: Instruction, operand: Operand, scales: Array, tiles: tuple[int, int], settings: Mapping[str, Any]
) -> Array:
    per = record.scales_per_row
    shape = (record.m, per) if operand == "A" else (per, record.n)
    expected = (shape[0] * tiles[0], shape[1] * tiles[1])
    if scales.shape[-2:] != expected:
        raise OperandError(
            f"{record}: scales of {operand} are {scales.shape}; expected [..., {expected[0]}, {expected[1]}]"
        )
    ids = {name: settings[f"{name}_{operand.lower()}"] for name in ("byte_id", "thread_id")}
    return pack_scales(np.ascontiguousarray(cut(scales, *shape)), record, operand, **ids)
