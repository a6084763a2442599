"""The report on two arrays that differ: which elements, by how much, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Array, as_array
from ..errors import OperandError, shown
from ..isa import Instruction
from ..layouts import Operand
from .compared import Compared, RegisterPlace, by_element
from .criteria import Rule
from .element_places import describe_places


@dataclass(frozen=True, kw_only=True)
class View:
    """How a report shows elements: see `assert_same_bits`."""

    record: Instruction | None
    operand: Operand
    names: tuple[str, str]
    limit: int
    tile: tuple[int, ...]


def describe_difference(actual: npt.ArrayLike, expected: npt.ArrayLike, rule: Rule, view: View) -> str:
    """Say how two arrays differ; nothing if no element is wrong."""
    names, record = view.names, view.record
    x, y = (as_array(z, name) for z, name in zip((actual, expected), names, strict=True))
    others: list[tuple[str, Any, Any]] = [("shapes", x.shape, y.shape)] if x.shape != y.shape else []
    others += [] if rule.compares(x.dtype, y.dtype) else [("dtypes", x.dtype, y.dtype)]
    if others:
        return "\n".join(f"{word} differ: {names[0]} {a}, {names[1]} {b}" for word, a, b in others)
    found = by_element(np.atleast_1d(x), np.atleast_1d(y), record, view.operand)
    if len(view.tile) > len(found.shape):
        raise OperandError(
            f"tile is {shown(view.tile)}; expected sides along at most {len(found.shape)} axes: {found.shape}"
        )
    at = rule.wrong(found)
    if not at[0].size:
        return ""
    index, place = found.locate(at)
    return "\n".join(
        [
            _headline(found, at[0].size, rule, view),
            *_table(found, at, index, place, rule, view),
            *describe_places(found, index, place, view.tile),
            *rule.extent(found, at, index),
        ]
    )


def _headline(found: Compared, count: int, rule: Rule, view: View) -> str:
    of = "" if view.record is None else f" of {view.operand}"
    types = " and ".join(dict.fromkeys(read.name for read in found.reads))
    what = ", ".join(str(x) for x in (types, view.record) if x is not None)
    size = found.bits[0].size
    said = f"; {rule.said}" if rule.said else ""
    return f"{count:,} of {size:,} element{'s' * (size > 1)}{of} {rule.verbs[count > 1]} ({what}{said})"


def _table(
    found: Compared,
    at: tuple[Array, ...],
    index: tuple[Array, ...],
    place: RegisterPlace | None,
    rule: Rule,
    view: View,
) -> list[str]:
    """List the first of the wrong elements."""
    count, some = at[0].size, tuple(i[: view.limit] for i in at)
    listed = range(min(view.limit, count))
    columns = [["index", *(str([int(i[n]) for i in index]) for n in listed)]]
    for name, read, codes in zip(view.names, found.reads, found.codes, strict=True):
        columns.append([name, *(read.show(int(code)) for code in codes[some])])
    columns += rule.columns(found, some, view.names)
    if place and found.packing:
        slot, packed = found.packing.slot, found.packing.per_register > 1
        lows = [int(place.position[n]) * slot for n in listed]
        bits = [f", bits {low + slot - 1}:{low}" if packed else "" for low in lows]
        columns.append(["lane", *(str(place.lane[n]) for n in listed)])
        columns.append(["register", *(f"{place.register[n]}{bits[n]}" for n in listed)])
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    lines = ["  " + "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    more = [f"  and {count - view.limit:,} more"] if count > view.limit else []
    return (lines if view.limit else []) + more
