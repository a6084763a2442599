"""Rows of every instruction but `mma` and `wgmma`: the look-up, and records of accesses, copies, barriers, exits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import cache, partial
from typing import Any

from warpmma import operations
from warpmma.operations import Access, Barrier, Copy, CopyGroup, Exit, Row

from . import legal
from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["ENTRIES", "KINDS", "a_row"]

KINDS: tuple[type[Row], ...] = (Access, Barrier, Copy, CopyGroup, Exit)
_K = "warpmma.operations"


@cache
def _rows(kind: Any) -> tuple[Row, ...]:
    return tuple(row for row in operations.rows() if isinstance(row, kind))


def a_row(kind: Any, rng: Rng) -> Row:
    """Return a row of a kind."""
    return pick(rng, _rows(kind))


def _shuffled(rng: Rng, target: bool) -> dict[str, Any]:
    """Name a row, perhaps with the qualifiers behind the first one in another order, and a target."""
    row = a_row(Row, rng)
    head, first, *words = [*str(row).split("."), ""]
    if chance(rng, 0.3):
        rng.shuffle(words)
    mnemonic = ".".join(word for word in (head, first, *words) if word)
    return {"mnemonic": mnemonic, **({"target": pick(rng, row.targets)} if target or chance(rng, 0.5) else {})}


def _list(**given: Any) -> list[Row]:
    return list(operations.rows(**given))


_list.__signature__ = inspect.signature(operations.rows)  # type: ignore[attr-defined]


def _fields(kind: type[Row], rng: Rng) -> dict[str, Any]:
    row = a_row(kind, rng)
    return {f.name: getattr(row, f.name) for f in fields(row) if f.init}


def _printed(kind: type[Row]) -> Callable[[Rng], dict[str, Any]]:
    return lambda rng: {"object": a_row(kind, rng)}


def _text(object: Any) -> str:
    return str(object)


ENTRIES = (
    Entry(name=f"{_K}:row", call=operations.row, weight=3, make=partial(_shuffled, target=False)),
    Entry(name=f"{_K}:evidence", call=operations.evidence, weight=2, make=partial(_shuffled, target=True)),
    Entry(
        name=f"{_K}:rows", call=_list, weight=0.3,
        make=lambda rng: {"target": legal.target(rng), "opcode": pick(rng, ("ld", "cvt", "bar", "foo"))},
    ),
    *(
        entry
        for kind in KINDS
        for entry in (
            Entry(name=f"{_K}:{kind.__name__}", call=kind, make=partial(_fields, kind), weight=0.3),
            Entry(
                name=f"{_K}:{kind.__name__}.__str__", call=_text, make=_printed(kind), weight=0.1, fixed=("object",)
            ),
        )
    ),
)  # fmt: skip
