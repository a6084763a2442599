"""What is changed in kernels: one thing at a time, such as people forget or mistake it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from .syntax import Edit, Function, added, call, combined, number

__all__ = ["EVERYWHERE", "OPERATORS", "edits"]

Operator = Callable[[Function], Iterator[Edit]]
EVERYWHERE = "_everywhere"  # the name under which a mutant finds a context that masks nothing

_BARRIERS, _WAITS = ("bar.", "barrier."), ("cp.async.wait",)
_COMMITS, _COPIES = ("cp.async.commit",), ("cp.async.ca", "cp.async.cg")
_STORES, _ACCESSES = ("st.", "stmatrix."), ("ld.", "st.", "ldmatrix.", "stmatrix.")
_MEMBERS = ("shfl.sync", "vote.sync", "match.", "redux.sync", "bar.warp.sync")
_ROW = 16  # bytes that a lane's address of `ldmatrix` and `stmatrix` stands for, and of most copies
_STAGES = ("step", "tile", "number", "turn", "half", "buffers")


def edits(function: Function) -> Iterator[Edit]:
    """Find all changes of a function."""
    for operator in OPERATORS:
        yield from operator(function)


# What is left out


def _statements(name: str, *beginnings: str) -> Operator:
    def operator(function: Function) -> Iterator[Edit]:
        for body in function.bodies():
            for x in body:
                if function.mnemonic(x).startswith(beginnings):
                    yield function.dropped(name, x)

    return operator


def _masks(function: Function) -> Iterator[Edit]:
    """Let all lanes into a block; and take away what `update` and `selp` would have kept."""
    for x in function.nodes:
        if not isinstance(x, ast.Call):
            continue
        method = x.func.attr if isinstance(x.func, ast.Attribute) else ""
        if method == "where":
            yield function.replaced("mask dropped", x, "", call(EVERYWHERE))
        elif method == "update":
            yield function.replaced("update dropped", x, "", lambda old: old.args[1])
        elif function.mnemonic(x).startswith("selp."):
            yield function.replaced("select dropped", x, "", lambda old: old.args[1])


def _members(function: Function) -> Iterator[Edit]:
    """Take each of its lanes from a membermask."""
    for x, name in function.calls(*_MEMBERS):
        mask = x.args[-1]
        known = function.value(mask)
        for lane in range(32):
            if not isinstance(known, int) or known >> lane & 1:
                without = combined(ast.BitAnd(), number(0xFFFFFFFF ^ 1 << lane))
                yield function.replaced("member dropped", mask, f"without lane {lane} ({name})", without)


def _sources(function: Function) -> Iterator[Edit]:
    """Let a copy read all always."""

    def shorter(old: Any) -> ast.AST:
        return ast.Call(func=old.func, args=old.args[:-1], keywords=[])

    for x, _ in function.calls(*_COPIES):
        if len(x.args) == 5:
            yield function.replaced("size of the source dropped", x, "", shorter)


# What is too little or too much


def _weaker(function: Function) -> Iterator[Edit]:
    for x, _ in function.calls("cp.async.wait_group"):
        yield function.replaced("wait weaker", x.args[1], "+ 1", lambda old: added(old, 1))


def _counts(function: Function) -> Iterator[Edit]:
    """Another number of a named barrier, and more or fewer threads."""
    for x, name in function.calls(*_BARRIERS):
        if name != "bar.warp.sync" and len(x.args) == 3:
            yield function.replaced("barrier's number", x.args[1], f"+ 1 ({name})", lambda old: added(old, 1))
            for more in (32, -32):
                change = lambda old, n=more: added(old, n)  # noqa: E731
                yield function.replaced("barrier's count", x.args[2], f"{more:+} ({name})", change)


def _loops(function: Function) -> Iterator[Edit]:
    """Begin or end a loop a step earlier or later, or go through a list without its first or last."""
    for x in function.nodes:
        loop = x.iter if isinstance(x, ast.For | ast.comprehension) else None
        if isinstance(loop, ast.Call) and isinstance(loop.func, ast.Name) and loop.func.id == "enumerate":
            loop = loop.args[0]
        if isinstance(loop, ast.Call) and isinstance(loop.func, ast.Name) and loop.func.id == "range":
            yield from _ranges(function, loop)
        elif isinstance(loop, ast.Tuple) and len(loop.elts) > 1:
            for which, kept in (("first", loop.elts[1:]), ("last", loop.elts[:-1])):
                yield function.replaced("loop", loop, f"without its {which}", ast.Tuple(list(kept), ast.Load()))


def _ranges(function: Function, loop: ast.Call) -> Iterator[Edit]:
    step = loop.args[2] if len(loop.args) == 3 else number(1)
    for i, what in enumerate(("end",) if len(loop.args) == 1 else ("begin", "end")):
        for operator, sign in ((ast.Add(), "+"), (ast.Sub(), "-")):
            if what == "begin" and sign == "-":
                continue
            how = f"{sign} a step, its {what} in {ast.unparse(loop)}"
            yield function.replaced("loop", loop.args[i], how, combined(operator, step))


_NEIGHBOURS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip


def _comparisons(function: Function) -> Iterator[Edit]:
    for x in function.nodes:
        if isinstance(x, ast.Compare) and len(x.ops) == 1 and (other := _NEIGHBOURS.get(type(x.ops[0]))):
            new = {ast.LtE: "<=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">", ast.NotEq: "!=", ast.Eq: "=="}[other]

            def made(old: Any, o: type[ast.cmpop] = other) -> ast.AST:
                return ast.Compare(left=old.left, ops=[o()], comparators=old.comparators)

            yield function.replaced("comparison", x, new, made)


def _branches(function: Function) -> Iterator[Edit]:
    """Decide always one way what is decided in Python."""
    for x in function.nodes:
        if isinstance(x, ast.If):
            for value in (True, False):
                yield function.replaced("branch", x.test, str(value), ast.Constant(value))


# What is somewhere else


def _addresses(function: Function) -> Iterator[Edit]:
    """Each address an access further, and one nearer."""
    for x, name in function.calls(*_ACCESSES, *_COPIES):
        size = _bytes(name)
        for i in (1, 2) if name.startswith(_COPIES) else (1,):
            if i < len(x.args) and not isinstance(x.args[i], ast.Starred):
                for by in (size, -size):
                    change = lambda old, n=by: added(old, n)  # noqa: E731
                    yield function.replaced("address", x.args[i], f"{by:+} ({name})", change)


def _bytes(mnemonic: str) -> int:
    found = re.search(r"(?:\.v([24]))?\.[busf](8|16|32|64)$", mnemonic)
    if found is None or "matrix" in mnemonic:
        return _ROW
    return int(found[1] or 1) * int(found[2]) // 8


def _lanes(function: Function) -> Iterator[Edit]:
    """Each lane, thread or warp taken for its neighbour, wherever it is named."""
    known = {
        y.id: which for x in function.nodes if isinstance(x, ast.Assign) for target in x.targets
        for y, which in _bound(target, x.value)
    }  # fmt: skip
    for x in function.nodes:
        which = _special(x) or (
            known.get(x.id) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load) else None
        )  # fmt: skip
        if which and not _same_of_neighbours(x, parent := function.parent(x)):
            where = "" if isinstance(parent, ast.stmt | ast.Tuple) else f" in {ast.unparse(parent)[:60]}"
            yield function.replaced(f"{which} swapped", x, f"^ 1{where}", _turned)


def _same_of_neighbours(x: ast.AST, parent: ast.AST) -> bool:
    """Whether an even number and the next one give the same: a quotient, a bit, a side. Nothing would be changed."""
    if not (isinstance(parent, ast.Compare | ast.BinOp) and parent.left is x):
        return False
    other = parent.right if isinstance(parent, ast.BinOp) else parent.comparators[0]
    if not (isinstance(other, ast.Constant) and isinstance(other.value, int)):
        return False
    odd = other.value % 2
    if isinstance(parent, ast.Compare):
        return isinstance(parent.ops[0], ast.Gt | ast.LtE if odd else ast.Lt | ast.GtE)
    return isinstance(parent.op, ast.RShift) or (isinstance(parent.op, ast.FloorDiv | ast.BitAnd) and not odd)


_turned = combined(ast.BitXor(), number(1))


def _special(x: ast.AST) -> str | None:
    """Return what a special register of the threads counts."""
    if isinstance(x, ast.Subscript) and ast.unparse(x) == "t.tid[0]":
        return "threads"
    name = ast.unparse(x) if isinstance(x, ast.Attribute) else ""
    return {"t.laneid": "lanes", "t.warpid": "warps"}.get(name)


def _bound(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, str]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for x, y in zip(target.elts, value.elts, strict=False):
            yield from _bound(x, y)
    elif isinstance(target, ast.Name) and (which := _special(value)):
        yield target, which


def _distances(function: Function) -> Iterator[Edit]:
    for x, name in function.calls("shfl.sync"):
        yield function.replaced("distance", x.args[2], f"^ 1 ({name})", _turned)


def _stages(function: Function) -> Iterator[Edit]:
    """Take the buffer of another stage."""
    for x in function.nodes:
        if isinstance(x, ast.BinOp) and isinstance(x.op, ast.Mod):
            names = {y.id for y in ast.walk(x) if isinstance(y, ast.Name)}
            if names and names <= {*_STAGES}:

                def made(old: Any) -> ast.AST:
                    return ast.BinOp(left=added(old.left, 1), op=old.op, right=old.right)

                yield function.replaced("stage", x, "the next", made)


def _helpers(function: Function) -> Iterator[Edit]:
    """Call a helper of the kernel for another stage or tile, or not at all."""
    own = {x.name for x in function.nodes if isinstance(x, ast.FunctionDef)}
    for x in function.nodes:
        called = x.value if isinstance(x, ast.Expr) else None
        if isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id in own:
            yield function.replaced("call dropped", called, "", ast.Constant(None))
            for i, argument in enumerate(called.args):
                how = f"+ 1, argument {i} of {ast.unparse(called)}"
                yield function.replaced("call", argument, how, lambda old: added(old, 1))


def _order(function: Function) -> Iterator[Edit]:
    """Let a barrier, wait or commit and the statement after or before it change places."""
    for body in function.bodies():
        for i, (x, y) in enumerate(pairwise(body)):
            if any(function.mnemonic(z).startswith((*_BARRIERS, *_WAITS, *_COMMITS)) for z in (x, y)):

                def make(twin: Callable[[Any], Any], body: list[ast.stmt] = body, i: int = i) -> None:
                    those = twin(body)
                    those[i], those[i + 1] = those[i + 1], those[i]

                first = ast.unparse(y).splitlines()[0]
                yield Edit(operator="order", node=x, how=f"after {first[:60]}", make=make)


OPERATORS: tuple[Operator, ...] = (
    _statements("barrier dropped", *_BARRIERS),
    _statements("wait dropped", *_WAITS),
    _statements("commit dropped", *_COMMITS),
    _statements("store dropped", *_STORES),
    _statements("copy dropped", *_COPIES),
    _statements("exit dropped", "exit"),
    _masks, _members, _sources, _weaker, _counts, _loops, _comparisons, _branches, _addresses, _lanes, _distances,
    _stages, _helpers, _order,
)  # fmt: skip
