"""The matrix unit: `mma` on fragments in registers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import MetadataError, OperandError, UnsupportedError, shown
from ...execution import execute
from ...isa import Instruction
from ...layouts import Operand
from ...registers import LANES
from ..base import Site, WarpRegister, several
from ..block import Batch, Results
from .load_store import check_whole


def multiply(batch: Batch, site: Site, row: Instruction, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute an `mma`: fragments of A, B and C, and then what PTX writes after C."""
    check_whole(batch, site, lanes)
    if len(operands) < 3:
        raise OperandError(f"{row} takes fragments of A, B and C; got {len(operands)} operands")
    names: tuple[Operand, ...] = ("A", "B", "C")
    given = {name: _fragment(batch, site, row, name, x, lanes) for name, x in zip(names, operands, strict=False)}
    words, numbers = _words(batch, site, row, operands[3:], lanes)
    # Warps that do not execute it may hold anything, such as metadata that would be refused.
    some = lanes.any(axis=-1)
    whole = bool(some.all())

    def of_warps(x: Array) -> Array:
        return x.reshape(-1, *x.shape[2:]) if whole else x[some]

    extra: dict[str, Any] = {name: of_warps(x) for name, x in words.items()} | numbers
    multiplied = partial(
        execute, row, *(of_warps(given[name]) for name in names), target=batch.target, engine=batch.engine,
        threads=batch.workers, **extra,
    )  # fmt: skip
    try:
        d = multiplied()
    except MetadataError as error:  # in rows of A that are beyond a matrix, say
        batch.reporter.report("metadata", site, lanes, detail=str(error))
        d = multiplied(undefined="hardware")
    if whole:
        d = d.reshape(*some.shape, *d.shape[1:])
    else:
        d, part = np.zeros((*some.shape, *d.shape[1:]), d.dtype), d
        d[some] = part
    if batch.watching is not None:
        registers = {**words, "D": d, **{str(name): x for name, x in given.items()}}
        batch.watching.see(site, row, batch.target, batch.blocks, np.asarray(some), registers, numbers)
    return tuple(batch.made(d[..., i, :], lanes, site) for i in range(d.shape[-2]))


@cache
def _expected(row: Instruction, name: Operand) -> tuple[str, str, int]:
    """PTX type and class of the registers of a fragment, and their number."""
    layout = row.layout(name)
    return several(row.type(name), layout.packing), f"b{layout.packing.width}", layout.registers


def _fragment(batch: Batch, site: Site, row: Instruction, name: Operand, fragment: Any, lanes: Array) -> Array:
    type_, kind, number = _expected(row, name)
    given = fragment if isinstance(fragment, list | tuple) else [fragment]
    registers = [
        x if isinstance(x, WarpRegister) else batch.operand(x, type_, kind, f"{row}: {name}[{i}]")
        for i, x in enumerate(given)
    ]
    if len(registers) != number or any(x.kind != kind for x in registers):
        got = ", ".join(x.kind for x in registers)
        raise OperandError(f"{row}: {name} is {len(registers)} registers ({got}); expected {number} of {kind}")
    return _together(batch.read(site, registers, [lanes] * number))


def _together(registers: Sequence[Array]) -> Array:
    """Return registers `[block, warp, lane]` as a fragment `[block, warp, register, lane]`: as it is, if it lies so.

    Fragments that `mma` and `ldmatrix` have made are parts of one array, register by register.
    """
    first, step = registers[0], registers[0].strides[-1] * LANES
    base, start = first.base, first.__array_interface__["data"][0]
    if base is not None and len(registers) > 1:
        for i, x in enumerate(registers):
            at = x.__array_interface__["data"][0]
            if x.base is not base or x.strides != first.strides or at != start + i * step:
                break
        else:
            shape = (*first.shape[:-1], len(registers), LANES)
            return np.lib.stride_tricks.as_strided(
                first, shape, (*first.strides[:-1], step, first.strides[-1]), writeable=False
            )
    return np.stack(registers, axis=-2)


def _words(
    batch: Batch, site: Site, row: Instruction, operands: Sequence[Any], lanes: Array
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Operands after C, as `execute` names them: registers, and what is the same for all warps."""
    expected = []
    if row.sparse:
        expected += ["metadata", "selector"]
    if row.block_scale:
        expected += ["scale_a", "(byte_id_a, thread_id_a)", "scale_b", "(byte_id_b, thread_id_b)"]
    pairs = [x for name, x in zip(expected, operands, strict=False) if name.startswith("(")]
    if len(operands) != len(expected) or not all(isinstance(x, list | tuple) and len(x) == 2 for x in pairs):
        raise OperandError(f"{row}: after C come {', '.join(expected) or 'no operands'}; got {len(operands)}")
    words: dict[str, Array] = {}
    numbers: dict[str, Any] = {}
    for name, x in zip(expected, operands, strict=True):
        if name.startswith("("):
            numbers |= zip(name[1:-1].split(", "), (_same(batch, site, row, y, lanes) for y in x), strict=True)
        elif name == "selector":
            numbers[name] = x
        else:
            register = batch.operand(x, "u32", "b32", f"{row}: {name}")
            if register.kind != "b32":
                raise OperandError(f"{row}: {name} is a {register.kind} register; expected b32")
            (words[name],) = batch.read(site, [register], [lanes])
    return words, numbers


def _same(batch: Batch, site: Site, row: Instruction, x: Any, lanes: Array) -> Any:
    """Return a number that PTX lets stand in a register, too: the same in all lanes."""
    if not isinstance(x, WarpRegister):
        return x
    (bits,) = batch.read(site, [x], [lanes])
    values = np.unique(bits[lanes])
    if len(values) > 1:
        raise UnsupportedError(f"{row}: lanes have different byte-ids or thread-ids: {shown(values.tolist())}")
    return int(values[0])
