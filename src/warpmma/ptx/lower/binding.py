"""Binding: the operands of a statement, read and checked by the signature of its instruction.

The rules:

1. Operands are matched to the signature by position. An optional operand that is missing is None. The carry is a
   register that the text does not name.
2. Registers may be wider if the signature allows it (`ld`, `st`, `cvt`): a value that is read is truncated, a value
   that is written is sign-extended if its type is signed, and zero-extended otherwise. The row is then one for these
   registers (`widened`).
3. An operand in the brackets of an address, such as the coordinates of a tensor, is the one that follows the address.
   There the address has no offset.
4. `setp` with two destinations, and video instructions with bytes, halves and signs, have separate rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ..._text import counted
from ...errors import MnemonicError
from ...isa import OperandSpec, PtxInstruction, present
from ...machine import Slot, StepOperand
from ...operations import DTYPES, Access, Operation, RegisterType, with_complement, with_selectors
from ..text import Negation, Operand, Place, Selection, Statement, Symbol, VectorOf
from .resolving import Resolver, written


@dataclass(frozen=True)
class BoundStatement:
    """An instruction with its operands and results, register by register; None for what is left out.

    Its row takes the registers that are there, which may be wider than those of the table's row.
    """

    row: PtxInstruction
    operands: tuple[StepOperand | None, ...]
    results: tuple[Slot | None, ...] = ()


def bind(names: Resolver, statement: Statement, row: PtxInstruction) -> BoundStatement:
    """Bind the operands of a statement to those of its instruction; raise `PtxError` if its signature refuses them."""
    statement, row = _variant(names, statement, row)
    written_out = _written_out(names, statement, row)
    operands: list[StepOperand | None] = []
    results: list[Slot | None] = []
    for spec, at in _signature(names, statement, row, len(written_out)):
        x = None if at is None else written_out[at]
        slot = names.fitting(x, spec, statement)
        if spec.role == "result":
            results += [slot] if slot is not None else _targets(names, statement, spec, x)
        elif slot is not None and spec.role != "address":
            operands.append(slot)
        else:
            operands += _sources(names, statement, spec, x)
    return BoundStatement(_fitted(names, row, operands, results), tuple(operands), tuple(results))


def _signature(
    names: Resolver, statement: Statement, row: PtxInstruction, count: int
) -> tuple[tuple[OperandSpec, int | None], ...]:
    """Return the signature of an instruction, and which of so many operands each is; None for none (rule 1)."""
    key = id(row), statement.paired, count
    if (known := names.bound.get(key)) is not None:  # it holds the row, whose number is nothing else's therefore
        return known[1]
    specs = [x for x in row.signature if not x.implicit and (statement.paired or not (x.paired and x.optional))]
    there = present(specs, count)
    if there is None or any(x.paired for x in there) != statement.paired:
        expected = row.syntax or "none"
        raise names.fail(statement, f"got {counted(len(statement.operands), 'operand')}; expected {expected}")
    places = {id(spec): at for at, spec in enumerate(there)}
    found = tuple((spec, places.get(id(spec))) for spec in row.signature)
    names.bound[key] = row, found
    return found


def _written_out(names: Resolver, statement: Statement, row: PtxInstruction) -> tuple[Operand, ...]:
    """Return the operands one after the other, those in the brackets of an address behind it (rule 3)."""
    if not any(isinstance(x, Place) and x.more for x in statement.operands) or not any(x.within for x in row.signature):
        return statement.operands
    found: list[Operand] = []
    for x in statement.operands:
        if isinstance(x, Place) and x.more:
            if x.offset:
                raise names.fail(statement, f"{written(x)} has an offset; expected [address, {{coordinates}}]")
            found += [replace(x, more=()), *x.more]
        else:
            found.append(x)
    return tuple(found)


def _variant(names: Resolver, statement: Statement, row: PtxInstruction) -> tuple[Statement, PtxInstruction]:
    """Return a statement without selectors and signs, and the row that has them (rule 4)."""
    if not isinstance(row, Operation) or row.variant is None:
        return statement, row
    try:
        if "pred" in row.outputs:
            return statement, with_complement(str(row)) if statement.paired and len(row.outputs) == 1 else row
        operands: list[Operand] = []
        selectors: list[str] = []
        for given in statement.operands:
            negated = isinstance(given, Negation) and given.sign == "-"
            x = given.operand if isinstance(given, Negation) and negated else given
            selectors.append("-" * negated + (x.selector if isinstance(x, Selection) else ""))
            operands.append(x.register if isinstance(x, Selection) else x)
        if not any(selectors):
            return statement, row
        return replace(statement, operands=tuple(operands)), with_selectors(str(row), selectors)
    except MnemonicError as error:
        raise names.fail(statement, str(error)) from None


# Rule 1


def _targets(names: Resolver, statement: Statement, spec: OperandSpec, x: Operand | None) -> list[Slot | None]:
    """Return where a result goes, register by register; `_` alone stands for all of it."""
    if spec.implicit:
        return [names.slot(name, spec.kind) for name in spec.names]
    if x is None or (spec.sink in ("alone", "only") and isinstance(x, Symbol) and x.name == "_"):
        return [None] * len(spec.names)
    inside = isinstance(x, VectorOf)
    found = [names.target(y, spec, statement, inside=inside) for y in _items(names, statement, spec, x)]
    _check_widths(names, statement, x, found)
    return found


def _sources(names: Resolver, statement: Statement, spec: OperandSpec, x: Operand | None) -> list[StepOperand | None]:
    """Return what is read, register by register."""
    if spec.implicit:
        return [names.slot(name, spec.kind) for name in spec.names]
    if x is None:
        return [None] * len(spec.names)
    if spec.role == "address":
        return [names.place(x, spec, statement)]
    found = [names.source(y, spec, statement) for y in _items(names, statement, spec, x)]
    _check_widths(names, statement, x, found)
    return [*found]


def _check_widths(names: Resolver, statement: Statement, x: Operand, found: Sequence[StepOperand | None]) -> None:
    """Refuse a vector of registers of different widths."""
    kinds = {names.kind(slot): None for slot in found if isinstance(slot, Slot)}
    if len(kinds) > 1:
        raise names.fail(statement, f"{written(x)} has registers of {' and '.join(kinds)}; expected one width")


def _items(names: Resolver, statement: Statement, spec: OperandSpec, x: Operand) -> Sequence[Operand]:
    """Return the registers of an operand, after a check that its signature allows its braces."""
    sink = isinstance(x, Symbol) and x.name == "_"
    items = names.items(x)
    if isinstance(x, VectorOf) and (sums := [y for y in items if isinstance(y, Place)]):
        raise names.fail(statement, f"{written(sums[0])} is a sum in braces; expected a register or a number")
    vector = spec.braces == "always" or (spec.braces == "optional" and len(items) > 1)
    if names.is_vector(x) != vector and not sink and (vector or spec.braces == "never"):
        what = "a vector" if vector else "one register"
        raise names.fail(statement, f"{written(x)} stands where {what} is expected")
    if len(items) != len(spec.names):
        raise names.fail(statement, f"{spec}: got {counted(len(items), 'register')}; expected {len(spec.names)}")
    return items


# Rule 2


def _fitted(
    names: Resolver, row: PtxInstruction, operands: Sequence[StepOperand | None], results: Sequence[Slot | None]
) -> PtxInstruction:
    """Return a row that takes the registers that are there."""
    if isinstance(row, Access) and row.direction == "load":
        kinds = {names.kind(x) for x in results if x is not None} or {row.kind}
        return row if kinds == {row.kind} else replace(row, into=max(kinds))
    if not isinstance(row, Operation) or not row.wider:
        return row
    inputs = tuple(names.kind(x) if isinstance(x, Slot) else kind for x, kind in zip(operands, row.inputs, strict=True))
    outputs = tuple(kind if x is None else names.kind(x) for x, kind in zip(results, row.outputs, strict=True))
    return row if (inputs, outputs) == (row.inputs, row.outputs) else widened(row, inputs, outputs)


@lru_cache(maxsize=1024)
def widened(row: Operation, inputs: tuple[RegisterType, ...], outputs: tuple[RegisterType, ...]) -> Operation:
    """Return an operation on wider registers: inputs are truncated, outputs are extended."""
    signed = row.output_types[0].startswith("s")

    def resizing(function: Callable[..., tuple[Array, ...]], *bits: Any) -> tuple[Array, ...]:
        narrow = [_resized(x, kind, False) for x, kind in zip(bits, row.inputs, strict=True)]
        return tuple(_resized(x, kind, signed) for x, kind in zip(function(*narrow), outputs, strict=True))

    return replace(
        row, inputs=inputs, outputs=outputs, input_types=row.types, compute=partial(resizing, row.compute),
        native=None if row.native is None else partial(resizing, row.native),
    )  # fmt: skip


def _resized(bits: Any, kind: RegisterType, signed: bool) -> Any:
    """Truncate or extend bits to a class of registers."""
    if not isinstance(bits, np.ndarray) or kind in ("pred", "imm"):
        return bits
    source = bits.view(f"i{bits.dtype.itemsize}") if signed else bits
    return source.astype(DTYPES[kind])
