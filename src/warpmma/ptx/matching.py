"""From a statement and its row to a step's operands and results, by class of the row.

The rules:

1. PTX writes results first, then what is read. Of two results the second may be left out (`shfl.sync.idx.b32 d, ...`);
   `setp` with `p|q` is a row of its own.
2. `cvt`, `ld` and `st` take registers that are wider than their types: what is read is cut off, what is written is
   extended, by its sign where its type has one. Others take registers of their own width alone.
3. A carry is a predicate that no text names: the last input, or the last result.
4. A fragment, a vector and a list are what stands in `{ }`; one register needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .._text import counted
from ..errors import MnemonicError
from ..isa import Instruction
from ..layouts import Layout
from ..layouts import Operand as OperandName
from ..machine import Constant, Slot, StepOperand
from ..operations import (
    DTYPES,
    Access,
    Atomic,
    Barrier,
    Control,
    Copy,
    CopyGroup,
    Exit,
    MatrixMove,
    Operation,
    RegisterType,
    Row,
    WmmaMove,
    WmmaMultiply,
    register_type,
    with_complement,
)
from .resolving import Resolver, number
from .syntax import Immediate, Operand, Statement, Symbol, VectorOf

__all__ = ["Matched", "match"]

Array = npt.NDArray[Any]
CARRY = "carry"


@dataclass(frozen=True)
class Matched:
    """A row with its operands and results.

    Attributes
    ----------
    row : Row or Instruction
        One that takes the registers that are there, which may be wider than those of the table's row.
    operands : tuple of StepOperand
    results : tuple of Slot or None
    """

    row: Row | Instruction
    operands: tuple[StepOperand, ...]
    results: tuple[Slot | None, ...] = ()


def match(names: Resolver, statement: Statement, row: Row | Instruction) -> Matched:
    """Return what a step of a statement has.

    Raises
    ------
    PtxError
        Resolver that do not fit the row.
    """
    for kind, way in _WAYS.items():
        if isinstance(row, kind):
            return way(names, statement, row)
    raise names.fail(statement, f"rows of {type(row).__name__} are not simulated from PTX text")


# Registers in, registers out


def _operation(names: Resolver, statement: Statement, row: Operation) -> Matched:
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
    if row.vectors[0] and targets:
        targets = tuple(names.items(targets[0]))
    sources = [y for x in given for y in names.items(x)]
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

    def compute(*bits: Any) -> tuple[Array, ...]:
        narrow = [_resized(x, kind, False) for x, kind in zip(bits, row.inputs, strict=True)]
        return tuple(_resized(x, kind, signed) for x, kind in zip(row.compute(*narrow), outputs, strict=True))

    return replace(row, inputs=inputs, outputs=outputs, input_types=row.types, compute=compute)


def _result_type(mnemonic: str) -> str:
    """Type of the result of a `cvt`."""
    return mnemonic.split(".")[-2]


def _resized(bits: Any, kind: RegisterType, signed: bool) -> Any:
    """Cut bits off, or extend them, to a class of registers."""
    if not isinstance(bits, np.ndarray) or kind in ("pred", "imm"):
        return bits
    source = bits.view(f"i{bits.dtype.itemsize}") if signed else bits
    return source.astype(DTYPES[kind])


# Memory


def _access(names: Resolver, statement: Statement, row: Access) -> Matched:
    first, *rest = _least(names, statement, row, 2)
    policy = [names.source(x, "b64", "b64", statement) for x in rest[1:]]
    if len(policy) != row.hint:
        raise names.fail(statement, f"got {len(statement.operands)} operands; expected {row.syntax}")
    if row.direction == "load":
        items = names.items(first)
        _check_count(names, statement, items, row.count, row.syntax)
        targets = [names.target(x, row.kind, statement, wider=True) for x in items]
        return Matched(_into(names, row, targets), (names.place(rest[0], statement), *policy), tuple(targets))
    items = names.items(rest[0])
    _check_count(names, statement, items, row.count, row.syntax)
    values = [names.source(x, row.kind, row.type, statement, wider=True) for x in items]
    return Matched(row, (names.place(first, statement), *values, *policy))


def _into(names: Resolver, row: Access, targets: Sequence[Slot | None]) -> Access:
    """Return a load into registers that are wider than its elements (rule 2)."""
    kinds = {names.kind(x) for x in targets if x is not None} or {row.kind}
    return row if kinds == {row.kind} else replace(row, into=max(kinds))


def _atomic(names: Resolver, statement: Statement, row: Atomic) -> Matched:
    """Place results first, then the address, the values and the policy."""
    first = int(row.returns)
    expected = first + 1 + row.values + row.hint
    given = _exactly(names, statement, row, expected)
    results: tuple[Slot | None, ...] = ()
    if row.returns:
        results = _all_targets(names, statement, names.items(given[0]), row.kind, row.registers, row.syntax)
    operands: list[StepOperand] = [names.place(given[first], statement)]
    for x in given[first + 1 : first + 1 + row.values]:
        items = names.items(x)
        _check_count(names, statement, items, row.registers, row.syntax)
        operands += [names.source(y, row.kind, row.type, statement) for y in items]
    operands += [names.source(x, "b64", "b64", statement) for x in given[expected - row.hint :]]
    return Matched(row, tuple(operands), results)


def _all_targets(
    names: Resolver, statement: Statement, items: Sequence[Operand], kind: RegisterType, count: int, what: str
) -> tuple[Slot | None, ...]:
    """Return where a vector of results goes; `_` alone stands for all of it."""
    if len(items) == 1 and isinstance(items[0], Symbol) and items[0].name == "_":
        return (None,) * count
    _check_count(names, statement, items, count, what)
    return tuple(names.target(x, kind, statement) for x in items)


def _move(names: Resolver, statement: Statement, row: MatrixMove) -> Matched:
    first, second = _exactly(names, statement, row, 2)
    load = row.direction == "load"
    items = names.items(first if load else second)
    _check_count(names, statement, items, row.registers, row.syntax)
    if load:
        results = tuple(names.target(x, "b32", statement) for x in items)
        return Matched(row, (names.place(second, statement),), results)
    values = [names.source(x, "b32", "b32", statement) for x in items]
    return Matched(row, (names.place(first, statement), *values))


def _copy(names: Resolver, statement: Statement, row: Copy) -> Matched:
    to, source, *rest = _least(names, statement, row, 3)
    operands = [names.place(to, statement), names.place(source, statement), _immediate(names, statement, rest[0])]
    for i, x in enumerate(rest[1:]):
        policy = row.hint and i == len(rest) - 2
        kind: RegisterType = "b64" if policy else "b32"
        slot = names.register(x, statement)
        operands.append(
            slot
            if slot is not None and names.kind(slot) == "pred"
            else names.source(x, kind, f"u{kind[1:]}", statement)
        )
    return Matched(row, tuple(operands))


def _group(names: Resolver, statement: Statement, row: CopyGroup) -> Matched:
    return Matched(row, tuple(_immediate(names, statement, x) for x in statement.operands))


# Threads


def _barrier(names: Resolver, statement: Statement, row: Barrier) -> Matched:
    operands: list[StepOperand] = []
    number = len(row.outputs)
    if len(statement.operands) < 1 + 2 * number:
        raise names.fail(statement, f"got {counted(len(statement.operands), 'operand')}; expected {row.syntax}")
    results = tuple(names.target(x, kind, statement) for x, kind in zip(statement.operands, row.outputs, strict=False))
    for i, x in enumerate(statement.operands[number:], number):
        if number and i == len(statement.operands) - 1:
            operands.append(names.source(x, "pred", "pred", statement))
        elif isinstance(x, Immediate) and row.action != "warp":
            operands.append(Constant(x.value, "imm"))
        else:
            operands.append(names.source(x, "b32", "u32", statement))
    return Matched(row, tuple(operands), results)


def _control(names: Resolver, statement: Statement, row: Control) -> Matched:
    """Place results, then what the row takes, of which the last may be left out."""
    number, most = len(row.outputs), len(row.outputs) + len(row.takes)
    if not most - row.optional <= len(statement.operands) <= most:
        raise names.fail(statement, f"got {counted(len(statement.operands), 'operand')}; expected {row.syntax}")
    results: tuple[Slot | None, ...] = ()
    if number:
        results = _all_targets(names, statement, statement.operands[:number], row.outputs[0], number, row.syntax)
    operands: list[StepOperand] = []
    for x, type_ in zip(statement.operands[number:], row.takes, strict=False):
        if type_ == "address":
            operands.append(names.place(x, statement))
        elif type_ == "imm":
            operands.append(_immediate(names, statement, x))
        else:
            operands.append(names.source(x, register_type(type_), type_, statement))
    return Matched(row, tuple(operands), results)


def _exit(names: Resolver, statement: Statement, row: Exit) -> Matched:
    _exactly(names, statement, row, 0)
    return Matched(row, ())


# Matrices


def _multiply(names: Resolver, statement: Statement, row: Instruction) -> Matched:
    operands, results = _fragments(names, statement, row, row.layout)
    more = statement.operands[4:]
    return Matched(row, (*operands, *(_word(names, statement, x) for x in more)), results)


def _wmma(names: Resolver, statement: Statement, row: WmmaMultiply) -> Matched:
    _exactly(names, statement, row, 4)
    newest = row.targets[-1]  # fragments have as many registers on every target
    operands, results = _fragments(names, statement, row, lambda name: row.layout(name, newest))
    return Matched(row, operands, results)


def _fragments(
    names: Resolver, statement: Statement, row: Instruction | WmmaMultiply, layout: Callable[[OperandName], Layout]
) -> tuple[tuple[StepOperand, ...], tuple[Slot | None, ...]]:
    """Return fragments of A, B and C, and the registers of D."""
    if len(statement.operands) < 4:
        raise names.fail(statement, f"got {len(statement.operands)} operands; expected fragments of D, A, B and C")
    operands: list[StepOperand] = []
    results: tuple[Slot | None, ...] = ()
    for letter, x in zip("DABC", statement.operands, strict=False):
        name = cast(OperandName, letter)
        kind, items = cast(RegisterType, f"b{layout(name).packing.width}"), names.items(x)
        if name == "D":
            results = _all_targets(names, statement, items, kind, layout(name).registers, "D")
        else:
            _check_count(names, statement, items, layout(name).registers, name)
            operands.append(tuple(names.source(y, kind, row.type(name), statement) for y in items))
    return tuple(operands), results


def _wmma_move(names: Resolver, statement: Statement, row: WmmaMove) -> Matched:
    first, second, *more = _least(names, statement, row, 2)
    stride = [names.source(x, "b32", "u32", statement) for x in more]
    if len(stride) > 1:
        raise names.fail(statement, f"got {len(statement.operands)} operands; expected {row.syntax}")
    if row.direction == "load":
        results = _all_targets(names, statement, names.items(first), row.kind, row.registers, row.syntax)
        return Matched(row, (names.place(second, statement), *stride), results)
    items = names.items(second)
    _check_count(names, statement, items, row.registers, row.syntax)
    fragment = tuple(names.source(x, row.kind, row.type, statement) for x in items)
    return Matched(row, (names.place(first, statement), fragment, *stride))


def _word(names: Resolver, statement: Statement, x: Operand) -> StepOperand:
    """Return what follows C: a selector, a register of metadata or scales, or a pair of numbers."""
    if isinstance(x, VectorOf) and len(x.items) == 1:
        (x,) = x.items
    if isinstance(x, VectorOf):
        return tuple(
            _immediate(names, statement, y) if isinstance(y, Immediate) else names.source(y, "b16", "u16", statement)
            for y in x.items
        )
    return _immediate(names, statement, x) if isinstance(x, Immediate) else names.source(x, "b32", "u32", statement)


# What several have


def _immediate(names: Resolver, statement: Statement, x: Operand) -> Constant:
    if not isinstance(x, Immediate) or x.kind not in "su":
        raise names.fail(statement, "an operand that has to be a number in the text is none")
    return Constant(number(x, "imm", "imm"), "imm")


def _least(names: Resolver, statement: Statement, row: Row, least: int) -> tuple[Operand, ...]:
    if len(statement.operands) < least:
        raise names.fail(statement, f"got {len(statement.operands)} operands; expected {row.syntax}")
    return statement.operands


def _exactly(names: Resolver, statement: Statement, row: Row, count: int) -> tuple[Operand, ...]:
    if len(statement.operands) != count:
        expected = row.syntax or "none"
        raise names.fail(statement, f"got {len(statement.operands)} operands; expected {expected}")
    return statement.operands


def _check_count(names: Resolver, statement: Statement, items: Sequence[Operand], count: int, what: str) -> None:
    if len(items) != count:
        raise names.fail(statement, f"{what}: got {len(items)} registers; expected {count}")


_WAYS: Mapping[type, Callable[[Resolver, Statement, Any], Matched]] = {
    Operation: _operation,
    Access: _access,
    Atomic: _atomic,
    MatrixMove: _move,
    Copy: _copy,
    CopyGroup: _group,
    Barrier: _barrier,
    Control: _control,
    Exit: _exit,
    Instruction: _multiply,
    WmmaMove: _wmma_move,
    WmmaMultiply: _wmma,
}
