"""Steps of rows on registers alone.

The rules:

1. PTX writes results first, then what is read. Of two results the second may be left out (`shfl.sync.idx.b32 d, ...`).
2. `cvt` takes registers that are wider than its types: what is read is cut off, what is written is extended, by its
   sign where its type has one. Others take registers of their own width alone.
3. A carry is a predicate that no text names: the last input, or the last result.
4. Video instructions pick bytes and halves of registers (`%r1.b0`) and negate (`-%r2`); both are their rows'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ..._text import counted
from ...errors import MnemonicError
from ...machine import Slot, StepOperand
from ...operations import DTYPES, Operation, RegisterType, with_complement, with_selectors
from ..text import Negation, Operand, Selection, Statement
from .matched import Matched, vector
from .resolving import Resolver

CARRY = "carry"


def _selected(names: Resolver, statement: Statement, row: Operation) -> tuple[Statement, Operation]:
    """Return a statement without selectors and signs, and the row that has them (rule 4)."""
    operands: list[Operand] = []
    selectors: list[str] = []
    for given in statement.operands:
        negated = isinstance(given, Negation) and given.sign == "-"
        x = given.operand if isinstance(given, Negation) and negated else given
        selectors.append("-" * negated + (x.selector if isinstance(x, Selection) else ""))
        operands.append(x.register if isinstance(x, Selection) else x)
    if not any(selectors):
        return statement, row
    try:
        return replace(statement, operands=tuple(operands)), with_selectors(str(row), selectors)
    except MnemonicError as error:
        raise names.fail(statement, str(error)) from None


def operation_step(names: Resolver, statement: Statement, row: Operation) -> Matched:
    """Return what an operation on registers has."""
    if statement.mnemonic.startswith("v"):
        statement, row = _selected(names, statement, row)
    if statement.paired and len(row.outputs) == 1 and statement.mnemonic.startswith("setp."):
        try:
            row = with_complement(str(row))
        except MnemonicError as error:
            raise names.fail(statement, str(error)) from None
    reads, writes = row.reads_carry, row.writes_carry
    inputs, types = row.inputs[: len(row.inputs) - reads], row.types
    outputs = row.outputs[: len(row.outputs) - writes]
    written = min(len(outputs), 1 + statement.paired)
    targets, given = statement.operands[:written], statement.operands[written:]
    if targets:
        items = vector(names, statement, targets[0], bool(row.vectors[0]))
        targets = tuple(items) if row.vectors[0] else targets
    sources = [y for x in given for y in vector(names, statement, x, bool(row.vectors[1]))]
    whole = len(targets) == written or (row.vectors[0] and len(targets) == len(outputs))
    if not whole or len(sources) != len(inputs) or (statement.paired and len(outputs) < 2):
        raise names.fail(statement, f"got {counted(len(statement.operands), 'operand')}; expected {row.syntax}")
    wider = statement.mnemonic.startswith("cvt.")
    results = [names.target(x, kind, statement, wider=wider) for x, kind in zip(targets, outputs, strict=False)]
    results += [None] * (len(outputs) - len(results))
    operands = [
        names.source(x, kind, type_, statement, wider=wider)
        for x, kind, type_ in zip(sources, inputs, types, strict=False)
    ]
    if reads:
        operands.append(names.slot(CARRY, "pred"))
    if writes:
        results.append(names.slot(CARRY, "pred"))
    if wider:
        row = _fitted(names, row, operands, results)
    return Matched(row, tuple(operands), tuple(results))


def _fitted(
    names: Resolver, row: Operation, operands: Sequence[StepOperand], results: Sequence[Slot | None]
) -> Operation:
    """Return a row that takes the registers that are there (rule 2)."""
    inputs = tuple(names.kind(x) if isinstance(x, Slot) else kind for x, kind in zip(operands, row.inputs, strict=True))
    outputs = tuple(kind if x is None else names.kind(x) for x, kind in zip(results, row.outputs, strict=True))
    return row if (inputs, outputs) == (row.inputs, row.outputs) else widened(row, inputs, outputs)


@lru_cache(maxsize=1024)
def widened(row: Operation, inputs: tuple[RegisterType, ...], outputs: tuple[RegisterType, ...]) -> Operation:
    """Return an operation on wider registers: those that are read are cut off, those that are written extended."""
    signed = _result_type(row.mnemonic).startswith("s")

    def resizing(function: Callable[..., tuple[Array, ...]], *bits: Any) -> tuple[Array, ...]:
        narrow = [_resized(x, kind, False) for x, kind in zip(bits, row.inputs, strict=True)]
        return tuple(_resized(x, kind, signed) for x, kind in zip(function(*narrow), outputs, strict=True))

    return replace(
        row, inputs=inputs, outputs=outputs, input_types=row.types, compute=partial(resizing, row.compute),
        native=None if row.native is None else partial(resizing, row.native),
    )  # fmt: skip


def _result_type(mnemonic: str) -> str:
    """Type of the result of a `cvt`."""
    return mnemonic.split(".")[-2]


def _resized(bits: Any, kind: RegisterType, signed: bool) -> Any:
    """Cut bits off, or extend them, to a class of registers."""
    if not isinstance(bits, np.ndarray) or kind in ("pred", "imm"):
        return bits
    source = bits.view(f"i{bits.dtype.itemsize}") if signed else bits
    return source.astype(DTYPES[kind])
