"""A block `with t.where(p)` must be left at its end, or by an exception.

The rules:

1. `return`, `break` and `continue` act for all threads, since Python runs once for all of them. Inside such a block
   they would also end the kernel or the loop for lanes that are masked off: they are refused.
2. A helper may return a value from a block that nothing follows: no statement is skipped.
3. Those that the source shows are refused before the kernel runs, if the kernel's threads are passed on by name; and
   everywhere on entering a block whose line in the source is known.
4. Without a source they are refused on leaving a block: the bytecode continues at another place than after an exception
   that was swallowed. Uncertain cases are accepted, and so are those that skip nothing.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from ..errors import UnsupportedError

Escape = ast.Return | ast.Break | ast.Continue
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


# Rules 1 and 2


def _escapes(function: ast.FunctionDef) -> Iterator[tuple[ast.With, Escape]]:
    """Find what leaves blocks of a function and skips statements; functions inside it are not searched."""

    def walk(statements: list[ast.stmt], tail: bool) -> Iterator[tuple[ast.With, Escape]]:
        for i, x in enumerate(statements):
            last = tail and i == len(statements) - 1
            if isinstance(x, ast.With):
                yield from ((x, way) for way in _leaving(x.body) if not (last and _returns_value(way)))
                yield from walk(x.body, last)
            elif not isinstance(x, _SCOPES):
                branches = isinstance(x, ast.If | ast.Match) or (isinstance(x, ast.Try) and not x.orelse)
                for part in _parts(x):
                    yield from walk(part, last and branches)

    return walk(function.body, True)


def _leaving(statements: list[ast.stmt], loop: bool = False) -> Iterator[Escape]:
    """Find what leaves statements; `break` and `continue` of a loop inside them do not."""
    for x in statements:
        if isinstance(x, ast.Return) or (isinstance(x, ast.Break | ast.Continue) and not loop):
            yield x
        elif isinstance(x, ast.For | ast.While):
            yield from _leaving(x.body, True)
            yield from _leaving(x.orelse, loop)
        elif not isinstance(x, _SCOPES):
            for part in _parts(x):
                yield from _leaving(part, loop)


def _parts(x: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Statements inside of a statement."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(x, name, [])
    for inner in (*getattr(x, "handlers", ()), *getattr(x, "cases", ())):
        yield inner.body


def _returns_value(way: Escape) -> bool:
    value = way.value if isinstance(way, ast.Return) else None
    return value is not None and not (isinstance(value, ast.Constant) and value.value is None)


def _error(file: str, block: ast.With, way: Escape) -> UnsupportedError:
    word = type(way).__name__.lower()
    what = "the function" if word == "return" else "the loop" if word == "break" else "this turn of the loop"
    return UnsupportedError(
        f"{Path(file).name}:{way.lineno}: `{word}` inside the block `with t.where(...)` of line {block.lineno} ends "
        f"{what} for all lanes, also those that are masked off. Leave the block at its end, and mask what follows with "
        "the opposite predicate; loop with `while t.any(p): with t.where(p): ...`"
    )


# Rule 3


@lru_cache(maxsize=64)
def _functions(text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """Find the functions of a source text, by name and first line."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {(x.name, min([x.lineno, *(y.lineno for y in x.decorator_list)])): x for x in found}


def _source(code: CodeType, names: dict[str, Any]) -> ast.FunctionDef | None:
    """Return the syntax of the function that some code belongs to; nothing where it cannot be read."""
    linecache.lazycache(code.co_filename, names)
    return _syntax(code)


def _syntax(code: CodeType) -> ast.FunctionDef | None:
    text = "".join(linecache.getlines(code.co_filename))
    return _functions(text).get((code.co_name, code.co_firstlineno))


def check_entry(frame: FrameType) -> bool:
    """Refuse the block that a frame is entering, if something may leave it early; tell whether its source was read."""
    linecache.lazycache(frame.f_code.co_filename, frame.f_globals)
    return _entry(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=4096)
def _entry(code: CodeType, at: int) -> bool:
    function, places = _syntax(code), list(code.co_positions())
    if function is None or at // 2 >= len(places):
        return False
    blocks = [x for x in ast.walk(function) if isinstance(x, ast.With)]
    # Entering has the place of the statement, or of its expression in later versions of Python.
    entered = [x for x in blocks if places[at // 2] in [_place(x), *(_place(item.context_expr) for item in x.items)]]
    for block, way in _escapes(function):
        if block in entered:
            raise _error(code.co_filename, block, way)
    return bool(entered)


def _place(x: ast.expr | ast.With) -> tuple[int, int | None, int, int | None]:
    return x.lineno, x.end_lineno, x.col_offset, x.end_col_offset


def check_kernel(kernel: Callable[..., object]) -> None:
    """Refuse a kernel, before it runs, if it or a function that it calls may leave a block early."""
    todo = [_unwrapped(kernel)]
    seen = set()
    while todo:
        function, position = todo.pop()
        if not isinstance(function, FunctionType) or (function, position) in seen:
            continue
        seen.add((function, position))
        code = function.__code__
        syntax = _source(code, function.__globals__)
        if syntax is not None and position < code.co_argcount:
            escapes, calls = _read(syntax, code.co_varnames[position])
            for block, way in escapes:
                raise _error(code.co_filename, block, way)
            known = {**function.__globals__, **dict(zip(code.co_freevars, _held(function), strict=True))}
            todo += [(_found(known, *names), place) for names, place in calls]


def _unwrapped(kernel: Any) -> tuple[Any, int]:
    """Return the function behind a callable, and which of its parameters the threads are."""
    position = 0
    while not isinstance(kernel, FunctionType):
        call = type(kernel).__call__ if callable(kernel) else None
        if isinstance(kernel, functools.partial):
            kernel, position = kernel.func, position + len(kernel.args)
        elif isinstance(kernel, MethodType):
            kernel, position = kernel.__func__, position + 1
        elif isinstance(call, FunctionType):
            kernel, position = call, position + 1
        else:
            break
    return getattr(kernel, "__wrapped__", kernel), position


def _held(function: FunctionType) -> Iterator[Any]:
    """Return the values of the free variables of a function; None for those without a value yet."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            yield None


def _found(known: dict[str, Any], holder: str, attribute: str | None) -> Any:
    """Return what a name means, or an attribute of a module of that name."""
    found = known.get(holder)
    if attribute is None:
        return found
    return getattr(found, attribute, None) if isinstance(found, ModuleType) else None


@lru_cache(maxsize=1024)
def _read(function: ast.FunctionDef, name: str) -> tuple[list[tuple[ast.With, Escape]], list[Any]]:
    """Find how blocks of the threads that have a name are left early, and which functions get the threads where.

    Nothing is found where a name may mean something else: the threads', where it is bound more than once; that of a
    function, where it is bound at all.
    """
    nodes = list(ast.walk(function))
    bound = Counter(filter(None, map(_bound, nodes)))
    if bound[name] != 1:
        return [], []
    scopes = [x for x in nodes if isinstance(x, ast.FunctionDef)]
    escapes = [
        (block, way) for scope in scopes for block, way in _escapes(scope)
        if any(_masks(item.context_expr, name) for item in block.items)
    ]  # fmt: skip
    calls = []
    for x in (x for x in nodes if isinstance(x, ast.Call)):
        if places := [i for i, y in enumerate(x.args) if _is_name(y, name)]:
            attribute = x.func.attr if isinstance(x.func, ast.Attribute) else None
            holder = x.func.value if isinstance(x.func, ast.Attribute) else x.func
            if isinstance(holder, ast.Name) and not bound[holder.id]:
                calls.append(((holder.id, attribute), places[0]))
    return escapes, calls


def _bound(x: ast.AST) -> str | None:
    """Return the name that a node binds, if any."""
    if isinstance(x, ast.Name):
        return None if isinstance(x.ctx, ast.Load) else x.id
    return x.arg if isinstance(x, ast.arg) else getattr(x, "name", None)


def _is_name(x: ast.expr, name: str) -> bool:
    return isinstance(x, ast.Name) and x.id == name


def _masks(x: ast.expr, name: str) -> bool:
    """Whether an expression is `t.where(...)` of the threads that have a name."""
    where = x.func if isinstance(x, ast.Call) else None
    return isinstance(where, ast.Attribute) and where.attr == "where" and _is_name(where.value, name)
