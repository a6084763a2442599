"""Rows of every instruction but `mma` and `wgmma`: the look-up, and records of accesses, copies, barriers, exits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import cache, partial
from typing import Any

import numpy as np

from warpmma import operations
from warpmma.arithmetic import SEQUENCES, SPECIAL_FUNCTIONS, approximate, quotient_factors, special_function
from warpmma.formats import FORMATS
from warpmma.operations import (
    Access,
    AsyncStore,
    Atomic,
    Barrier,
    BulkCopy,
    CacheControl,
    CachePolicy,
    Copy,
    CopyGroup,
    Exit,
    Fence,
    Hint,
    InstructionRow,
    MapPublication,
    MapReplacement,
    Mbarrier,
    Stack,
    TensorCopy,
    Trap,
    WarpgroupGroup,
    WmmaMove,
    WmmaMultiply,
)

from . import legal
from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["ENTRIES", "KINDS", "a_row"]

KINDS: tuple[type[InstructionRow], ...] = (
    Access, AsyncStore, Atomic, Barrier, BulkCopy, CacheControl, CachePolicy, Copy, CopyGroup, Exit,
    Fence, Hint, MapPublication, MapReplacement, Mbarrier, Stack, TensorCopy, Trap, WarpgroupGroup, WmmaMove,
    WmmaMultiply,
)  # fmt: skip
_K, _A = "warpmma.operations", "warpmma.arithmetic"
_ALONE = {"f16", "bf16", "f32", "f64"}


@cache
def _every_row() -> tuple[InstructionRow, ...]:
    return tuple(operations.rows())


@cache
def _rows(kind: Any) -> tuple[InstructionRow, ...]:
    return tuple(row for row in _every_row() if isinstance(row, kind))


def a_row(kind: Any, rng: Rng) -> InstructionRow:
    """Return a row of a kind."""
    return pick(rng, _rows(kind))


def _shuffled(rng: Rng, target: bool) -> dict[str, Any]:
    """Name a row, perhaps with the qualifiers behind the first one in another order, and a target."""
    row = a_row(InstructionRow, rng)
    head, first, *words = [*str(row).split("."), ""]
    if chance(rng, 0.3):
        rng.shuffle(words)
    mnemonic = ".".join(word for word in (head, first, *words) if word)
    return {"mnemonic": mnemonic, **({"target": pick(rng, row.targets)} if target or chance(rng, 0.5) else {})}


def _list(**given: Any) -> list[InstructionRow]:
    return list(operations.rows(**given))


_list.__signature__ = inspect.signature(operations.rows)  # type: ignore[attr-defined]


def _fields(kind: type[InstructionRow], rng: Rng) -> dict[str, Any]:
    row = a_row(kind, rng)
    return {f.name: getattr(row, f.name) for f in fields(row) if f.init}


def _printed(kind: type[InstructionRow]) -> Callable[[Rng], dict[str, Any]]:
    return lambda rng: {"object": a_row(kind, rng)}


@cache
def _of_arrays() -> tuple[operations.Operation, ...]:
    return tuple(row for row in legal.plain_operations() if not row.lanes and not {*row.types} - _ALONE)


def _elementwise(rng: Rng) -> dict[str, Any]:
    row = pick(rng, _of_arrays())
    shape = legal.batch(rng)
    return {
        "mnemonic": row.mnemonic, "*operands": [legal.elements(rng, FORMATS[x], shape) for x in row.types],
        **({"target": pick(rng, row.targets)} if chance(rng, 0.3) else {}),
    }  # fmt: skip


def _words(rng: Rng, bits: int) -> Any:
    return rng.integers(0, 1 << bits, legal.batch(rng), np.dtype(f"uint{bits}"))


def _special(rng: Rng) -> dict[str, Any]:
    function = pick(rng, tuple(SPECIAL_FUNCTIONS.values()))
    return {"name": function.name, "codes": _words(rng, function.bits)}


def _approximate(rng: Rng) -> dict[str, Any]:
    form = pick(rng, tuple(SEQUENCES.values()))
    return {"form": form.form, "*codes": [_words(rng, form.fmt.bits)] * form.operands}


def _division(rng: Rng) -> str:
    return pick(rng, tuple(x.form for x in SEQUENCES.values() if x.dividend))


def _quotient_factors(rng: Rng) -> dict[str, Any]:
    words = _words(rng, 32)
    return {"form": _division(rng), "dividend": words, "divisor": np.flip(words)}


def _text(object: Any) -> str:
    return str(object)


ENTRIES = (
    Entry(
        name=f"{_K}:with_selectors", call=operations.with_selectors,
        make=lambda rng: {
            "mnemonic": pick(rng, ("vadd.u32.s32.u32", "vmad.s32.s32.u32", "vshr.u32.u32.u32.wrap.sat")),
            "selectors": ("", pick(rng, ("", "b0", "h1")), pick(rng, ("", "b3", "h0"))),
        },
    ),
    Entry(
        name=f"{_K}:divided_factors", call=operations.divided_factors,
        make=lambda rng: {"mnemonic": pick(rng, ("div.full.f32", "div.approx.ftz.f32"))}, weight=2,
    ),
    Entry(
        name=f"{_K}:folded_function", call=operations.folded_function,
        make=lambda rng: {"mnemonic": pick(rng, ("div.full.f32", "ex2.approx.ftz.f32", "tanh.approx.f32"))},
    ),
    Entry(
        name=f"{_K}:with_complement", call=operations.with_complement,
        make=lambda rng: {"mnemonic": pick(rng, ("setp.lt.s32", "setp.num.and.f64", "setp.eq.f16x2"))},
    ),
    *(
        Entry(
            name=f"{_K}:{call.__name__}", call=call,
            make=lambda rng: {"type_": pick(rng, ("b32", "b64")), "count": pick(rng, (2, 4))},
        )
        for call in (operations.packing, operations.unpacking)
    ),
    Entry(name=f"{_K}:row", call=operations.row, weight=3, make=partial(_shuffled, target=False)),
    Entry(name=f"{_K}:evidence", call=operations.evidence, weight=2, make=partial(_shuffled, target=True)),
    Entry(
        name=f"{_K}:rows", call=_list, weight=0.3,
        make=lambda rng: {"target": legal.target(rng), "opcode": pick(rng, ("ld", "cvt", "bar", "foo"))},
    ),
    Entry(name=f"{_K}:elementwise", call=operations.elementwise, make=_elementwise, weight=3),
    Entry(name=f"{_A}:special_function", call=special_function, make=_special, weight=2, engines=True),
    Entry(name=f"{_A}:approximate", call=approximate, make=_approximate, weight=2, engines=True),
    Entry(name=f"{_A}:quotient_factors", call=quotient_factors, make=_quotient_factors),
    Entry(name=f"{_K}:divided_factors", call=operations.divided_factors, make=lambda rng: {"mnemonic": _division(rng)}),
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
