"""Neighbours in another order: of two statements in a row, one of which synchronises, the first comes last.

Neighbours are in one basic block, of which the loop of a wait is a part. The first one moves behind the second, or,
where a register or a scope forbids that, the second before the first. A wait that moves is written anew, with its loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from warpmma.ptx.text.syntax import Label, Statement, Symbol

from .text_places import Body, Edit, Unit, Written, symbols

__all__ = ["orders"]

_SYNCHRONISE = {"init", "inval", "arrive", "expect", "wait", "group", "commit", "fence", "barrier"}
_ACCESS = {"copy", "load", "store", "product", "map"}


def orders(body: Body, kind: Callable[[Statement], str]) -> Iterator[tuple[Written, Written, tuple[Edit, ...]]]:
    """Yield pairs of neighbours, and how to swap them."""
    units = [
        body.unit(i, kind(w.statement) == "wait")
        for i, w in body.written.items() if kind(w.statement) in _SYNCHRONISE | _ACCESS
    ]  # fmt: skip
    for first, second in pairwise(units):
        a, b = body.written[first.at], body.written[second.at]
        kinds = {kind(a.statement), kind(b.statement)}
        if len(kinds) == 2 and kinds & _SYNCHRONISE and _together(body, first, second):
            edits = _swapped(body, first, second, kind)
            if edits:
                yield a, b, edits


def _together(body: Body, first: Unit, second: Unit) -> bool:
    """Return whether no label and no branch lies between two units."""
    between = body.items[first.last + 1 : second.first]
    return first.last < second.first and not any(
        isinstance(x, Label) or x.opcode in ("bra", "ret", "exit", "call") for x in between
    )


def _swapped(body: Body, first: Unit, second: Unit, kind: Callable[[Statement], str]) -> tuple[Edit, ...]:
    a, b = body.written[first.at], body.written[second.at]
    between = [body.written[i] for i in range(first.last + 1, second.first) if i in body.written]
    waits = kind(a.statement) == "wait", kind(b.statement) == "wait"
    rest = _names(between) | b.names
    if _movable(a) and not a.names & (_defined(between) | b.defined) and (waits[0] or not a.defined & rest):
        place = body.after(second)
        return (a.start, a.end, _left(a, waits[0])), (place, place, f" {_moved(a, waits[0])}")
    needed = _needed(b, between)
    others = [a, *(x for x in between if x not in needed)]
    moved = [*needed, b]
    if not all(_movable(x) for x in moved) or _repeats(needed):
        return ()
    if _names(moved) & _defined(others) or _defined(moved[: len(needed) + (not waits[1])]) & _names(others):
        return ()
    place = body.before(first)
    text = " ".join([*(x.again() for x in needed), _moved(b, waits[1]), ""])
    return (place, place, text), (b.start, b.end, _left(b, waits[1]))


def _names(those: Iterable[Written]) -> set[Symbol]:
    return {x for written in those for x in written.names}


def _defined(those: Iterable[Written]) -> set[Symbol]:
    return {x for written in those for x in written.defined}


def _needed(last: Written, between: Sequence[Written]) -> list[Written]:
    """Return the statements that make the registers of the last one, which move with it."""
    wanted, found = set(last.names), list[Written]()
    for x in reversed(between):
        if x.defined & wanted:
            found.insert(0, x)
            wanted |= x.names
    return found


def _repeats(those: Sequence[Written]) -> bool:
    """Return whether statements that run twice make other values: a register is read before it is written."""
    made: set[Symbol] = set()
    for x in those:
        if (x.names - x.defined) & (_defined(those) - made) or (x.defined & _read(x)) - made:
            return True
        made |= x.defined
    return False


def _read(written: Written) -> set[Symbol]:
    """Return the registers that a statement reads, behind its first operand."""
    return {x for operand in written.statement.operands[1:] for x in symbols(operand)}


def _movable(written: Written) -> bool:
    """Return whether no name of a statement is of an inner scope; the predicate of a wait is written anew."""
    return all(x.scope <= 0 for x in written.names - written.defined)


def _left(written: Written, waits: bool) -> str:
    """Write what stays where a statement stood: of a wait, whose loop is still there, its success."""
    return f"{written.guard}setp.eq.u32 {written.operands[0]}, 0, 0;" if waits else ""


def _moved(written: Written, waits: bool) -> str:
    """Write a statement elsewhere, with its loop if it waits."""
    if not waits:
        return written.again()
    wait = written.again(operands=["mutant", *written.operands[1:]])
    return f"{{ .reg .pred mutant; MUTANT: {wait} @!mutant bra MUTANT; }}"
