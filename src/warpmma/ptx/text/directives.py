"""Directives of functions, on registers, threads and clusters, as numbers.

The rules (PTX ISA 9.1, 11.4 to 11.6; what ptxas 13.0 takes):

1. A directive belongs to entries, or to functions and prototypes, and follows the parameters. Directives that are
   not in `_KNOWN` are errors.
2. `reqntid` and `maxntid` bound a launch. `reqnctapercluster` is the size of a cluster, which a launch may repeat but
   not change; a size of 0 has no effect. `maxclusterrank` bounds the size that a launch gives, `explicitcluster`
   requires one. With `blocksareclusters` the grid counts clusters (`python -m lab.record.clusters`).
3. `maxnreg`, and `minnctapersm` with a bound of the threads, say how many registers a thread begins with, if the entry
   has `setmaxnreg` (`registers_at_launch`).
4. All other directives are ignored on purpose: they tell ptxas how many registers to use, or what a call preserves, and
   do not change results. Strings of `.pragma`, except those of a loop, and attributes of variables and functions are
   ignored, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from .tokens import Cursor, Token

FunctionKind = Literal["entry", "func"]


class _Directive(NamedTuple):
    """How few and how many numbers follow, whose it is, and the first target and the versions of PTX that have it."""

    least: int
    most: int
    of: FunctionKind = "entry"
    since: int = 0
    ptx: tuple[int, int] = (1, 0)
    until: tuple[int, int] = (99, 0)


_KNOWN: Mapping[str, _Directive] = {
    "maxntid": _Directive(1, 3),
    "reqntid": _Directive(1, 3, ptx=(2, 1)),
    "reqnctapercluster": _Directive(1, 3, since=90, ptx=(7, 8)),
    "explicitcluster": _Directive(0, 0, since=90, ptx=(7, 8)),
    "maxclusterrank": _Directive(1, 1, since=90, ptx=(7, 8)),
    "blocksareclusters": _Directive(0, 0, since=90, ptx=(9, 0)),
    "minnctapersm": _Directive(1, 1, ptx=(2, 0)),
    "maxnctapersm": _Directive(1, 1, until=(2, 0)),
    "maxnreg": _Directive(1, 1),
    "noreturn": _Directive(0, 0, "func", ptx=(6, 4)),
    "abi_preserve": _Directive(1, 1, "func", ptx=(9, 0)),
    "abi_preserve_control": _Directive(1, 1, "func", ptx=(9, 0)),
}

_ATTRIBUTES = (".managed", ".unified")
_EITHER = (("maxntid", "reqntid"), ("maxclusterrank", "reqnctapercluster"))
"""Directives that an entry has at most once."""


def read_directives(cursor: Cursor, kind: FunctionKind) -> dict[str, tuple[int, ...]]:
    """Read the directives behind the parameters of an entry, or of a function or prototype (rule 1)."""
    found: dict[str, tuple[int, ...]] = {}
    while cursor.kind == Token.DOTTED:
        name, start = cursor.token[1:], cursor.start
        if name == "pragma" and kind == "entry":
            cursor.advance()
            pragmas(cursor)
            continue
        known = _KNOWN.get(name)
        if known is None:
            break
        if known.of != kind:
            whose = {"entry": "entries", "func": "functions"}
            cursor.fail(f".{name} is a directive of {whose[known.of]}, not of {whose[kind]}")
        if cursor.source.version > known.until:
            cursor.fail(f".{name} ended with PTX {known.until[0]}.{known.until[1]}")
        cursor.requires(f".{name}", known.ptx, known.since)
        cursor.advance()
        found[name] = _numbers(cursor, known.least, known.most)
        if name.endswith("ntid") and 0 in found[name]:
            cursor.fail(f".{name} takes positive numbers, not 0", start)
    for one, other in _EITHER:
        if one in found and other in found:
            cursor.fail(f".{one} and .{other} exclude each other")
    if "blocksareclusters" in found and not {"reqntid", "reqnctapercluster"} <= set(found):
        cursor.fail(".blocksareclusters requires .reqntid and .reqnctapercluster")
    return found


def cluster_size(directives: Mapping[str, tuple[int, ...]]) -> tuple[int, int, int] | None:
    """Return the blocks of an entry's clusters along x, y and z; None where no size is declared (rule 2).

    Examples
    --------
    >>> cluster_size({"reqnctapercluster": (2, 2)}), cluster_size({"maxclusterrank": (8,)})
    ((2, 2, 1), None)
    """
    x, y, z = (*directives.get("reqnctapercluster", (0,)), 1, 1)[:3]
    return (x, y, z) if x * y * z else None


def cluster_problem(directives: Mapping[str, tuple[int, ...]], given: tuple[int, int, int] | None) -> str:
    """Say why no launch has clusters of a given size, or of none, with an entry's directives; "" if one may (rule 2).

    Examples
    --------
    >>> cluster_problem({"reqnctapercluster": (2,)}, (4, 1, 1))
    'declares .reqnctapercluster 2: no other size'
    >>> cluster_problem({"explicitcluster": ()}, None)
    'declares .explicitcluster: a launch has to give a size'
    """
    declared, most = cluster_size(directives), directives.get("maxclusterrank", (0,))[0]
    if declared is not None and given not in (None, declared):
        return f"declares .reqnctapercluster {', '.join(map(str, directives['reqnctapercluster']))}: no other size"
    if declared is None and given is None and "explicitcluster" in directives:
        return "declares .explicitcluster: a launch has to give a size"
    if most and given is not None and math.prod(given) > most:
        return f"declares .maxclusterrank {most}: that many blocks at most"
    return ""


_REGISTERS, _MOST_REGISTERS, _WARPGROUP = 1 << 16, 256, 128  # of a multiprocessor, of a thread; threads


def registers_at_launch(directives: Mapping[str, tuple[int, ...]], raised: Sequence[int]) -> int:
    """Return how many registers each thread of an entry with `setmaxnreg` begins with; 0 where ptxas does not know.

    That is what all `setmaxnreg.inc` together need, `raised`, or all that there are, as far as the directives allow;
    in units of 8, and for whole warpgroups (ptxas 13.0).

    Examples
    --------
    >>> [registers_at_launch({"maxntid": (n,), "minnctapersm": (1,)}, [232]) for n in (256, 320, 384, 640)]
    [232, 168, 168, 96]
    >>> registers_at_launch({"maxnreg": (100,)}, [232]), registers_at_launch({"maxntid": (256,)}, [232])
    (104, 0)
    """
    threads, blocks = directives.get("reqntid") or directives.get("maxntid"), directives.get("minnctapersm")
    most = [_MOST_REGISTERS, *directives.get("maxnreg", ())]
    if threads and blocks:
        groups = -(-math.prod(threads) // _WARPGROUP)
        most.append(_REGISTERS // (max(blocks[0], 1) * groups * _WARPGROUP) // 8 * 8)
    if len(most) == 1:
        return 0
    return -(-min(*most, max(raised, default=_MOST_REGISTERS)) // 8) * 8


def pragmas(cursor: Cursor) -> tuple[str, ...]:
    """Read what follows `.pragma`."""
    found = [cursor.string("a string")]
    while cursor.skip(","):
        found.append(cursor.string("a string"))
    cursor.take(";")
    return tuple(found)


def _numbers(cursor: Cursor, least: int, most: int) -> tuple[int, ...]:
    found: list[int] = []
    while len(found) < most and (cursor.token == "," if found else least):
        if found:
            cursor.advance()
        found.append(cursor.integer("a number"))
    return tuple(found)


def attributes(cursor: Cursor) -> tuple[str, ...]:
    """Read `(.managed, .unified(1, 2))`: what a driver may move, or identify, changes no bits (rule 3)."""
    cursor.take("(")
    found: list[str] = []
    while not found or cursor.skip(","):
        if cursor.token not in _ATTRIBUTES:
            cursor.expected(f"an attribute, {' or '.join(_ATTRIBUTES)}")
        found.append(cursor.token)
        cursor.advance()
        if found[-1] == ".unified":
            cursor.take("(")
            cursor.integer("a number")
            cursor.take(",")
            cursor.integer("a number")
            cursor.take(")")
    cursor.take(")")
    return tuple(found)
