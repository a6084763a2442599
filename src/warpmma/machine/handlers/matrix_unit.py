"""The matrix unit: `mma` on fragments in registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array
from ...errors import MetadataError, UnsupportedError, shown
from ...execution import Execution, Ids, Undefined
from ...isa import Instruction
from ...registers import LANES
from ...sparsity import UNDEFINED_MEASURED
from ..base import Origin, Site, WarpRegister
from ..block import Batch, Results
from .load_store import check_whole, read, stored
from .product_poison import legal_rows, poison_of_mma, rows_of, undefined_rows


def multiply(batch: Batch, site: Site, row: Instruction, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute an `mma`: fragments of A, B and C, and then what PTX writes after C."""
    check_whole(batch, site, lanes)
    given, numbers, found = _given(batch, site, row, operands, lanes)
    # Warps that do not execute it may hold anything, such as metadata that would be refused.
    some = np.asarray(lanes.any(axis=-1))
    whole = bool(some.all())
    registers = {name: x.reshape(-1, *x.shape[2:]) if whole else x[some] for name, x in given.items()}
    selector = numbers.get("selector", 0)
    ids: Ids = {"A": _ids(numbers, "a"), "B": _ids(numbers, "b")}

    def multiplied(undefined: Undefined) -> Array:
        call = Execution.of(row, registers, batch.target, selector, undefined, ids, batch.engine)
        return call.run(batch.workers)

    rows = None
    if found is not None and row.sparse and found.by_name["metadata"].any():  # whatever it reads, its rows are poison
        bad = rows_of(row, found.by_name["metadata"], selector)
        clean = legal_rows(row, given["metadata"], bad, selector)
        registers["metadata"] = clean.reshape(-1, LANES) if whole else clean[some]
    try:
        d = multiplied("error")
    except MetadataError as error:  # in rows of A that are beyond a matrix, say
        if batch.reporter.follows:
            bad = undefined_rows(row, registers["metadata"], selector, batch.target)
            rows = _everywhere(bad, some)
            found = _undefined(batch, site, given, rows, lanes, str(error), found)
        else:
            batch.reporter.report("metadata", site, lanes, detail=str(error))
        known = not batch.reporter.follows or batch.target in UNDEFINED_MEASURED
        if not known:
            registers["metadata"] = legal_rows(row, registers["metadata"], bad, selector)
        d = multiplied("hardware" if known else "error")
    d = d.reshape(*some.shape, *d.shape[1:]) if whole else _everywhere(d, some)
    if batch.watching is not None:
        blocks = [batch.reporter.running(place) for place in range(len(batch.blocks))]
        batch.watching.see(site, row, batch.target, blocks, np.asarray(some), {"D": d, **given}, numbers)
    if found is None:
        return batch.fragment(d, lanes, site)
    poison = poison_of_mma(row, found.by_name, selector, ids, rows)
    return batch.fragment(d, lanes, found.site, poison, found.origin)


def _everywhere(of_some: Array, some: Array) -> Array:
    """Return what is known of the warps that execute an instruction, `[n, ...]`, as that of all, 0 elsewhere."""
    found = np.zeros((*some.shape, *of_some.shape[1:]), of_some.dtype)
    found[some] = of_some
    return found


def _undefined(
    batch: Batch, site: Site, given: dict[str, Array], rows: Array, lanes: Array, says: str, found: _Found | None
) -> _Found:
    """Return the poison of an instruction that reads undefined metadata in some rows: they are the origin of more."""
    origin = batch.reporter.origin("metadata", site, lanes & rows.any(axis=-1, keepdims=True), says)
    if found is None:
        return _Found({name: np.zeros_like(x) for name, x in given.items()}, site, origin)
    return found._replace(origin=found.origin or origin)


def _ids(numbers: dict[str, Any], operand: str) -> dict[str, int]:
    return {word: numbers.get(f"{word}_{operand}", 0) for word in ("byte_id", "thread_id")}


class _Found(NamedTuple):
    """The poison of an instruction's fragments and words."""

    by_name: dict[str, Array]
    site: Site
    origin: Origin | None


def _given(
    batch: Batch, site: Site, row: Instruction, operands: Sequence[Any], lanes: Array
) -> tuple[dict[str, Array], dict[str, Any], _Found | None]:
    """Return the inputs by name: fragments and words in registers, and values that are the same for all warps.

    Also return the poison of fragments and words, if it is followed and there is any.
    """
    given: dict[str, Array] = {}
    numbers: dict[str, Any] = {}
    read_from: dict[str, list[WarpRegister]] = {}
    items = iter(operands)
    for i, spec in enumerate(row.sources):
        registers = [next(items) for _ in spec.names]
        if i < 3:
            given["ABC"[i]] = batch.read_fragment(site, registers, lanes)
            read_from["ABC"[i]] = registers
        elif spec.kind == "imm" or spec.literal:
            numbers |= {n: _same(batch, site, row, x, lanes) for n, x in zip(spec.names, registers, strict=True)}
        else:
            read_from[spec.names[0]] = registers
            (given[spec.names[0]],), _ = stored(batch, site, registers, lanes)
    if not batch.reporter.follows:
        return given, numbers, None
    found = batch.carried([x for registers in read_from.values() for x in registers], site, lanes)
    if found is None:
        return given, numbers, None
    masks = iter(found.masks)
    by_name = {
        name: np.stack([next(masks) for _ in of], axis=-2) if name in "ABC" else next(masks)
        for name, of in read_from.items()
    }
    return given, numbers, _Found(by_name, found.site, found.origin)


def _same(batch: Batch, site: Site, row: Instruction, x: Any, lanes: Array) -> Any:
    """Return an operand that PTX accepts as an immediate or in a register: the same number in all lanes."""
    if not isinstance(x, WarpRegister):
        return x
    (bits,) = read(batch, site, [x], lanes)
    values = np.unique(bits[lanes])
    if len(values) > 1:
        raise UnsupportedError(f"{row}: lanes have different byte-ids or thread-ids: {shown(values.tolist())}")
    return int(values[0])
