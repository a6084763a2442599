"""The table of all rows, and the look-up of a mnemonic in it."""

from __future__ import annotations

import copyreg
import re
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, cast

from ..errors import MnemonicError
from ..isa import Door, Instruction, bare, check_known, check_target, explained, near, parse
from .matrices import MatrixMove, moves
from .records import Access, Barrier, Copy, CopyGroup, Direction, Exit, Operation, Row, known

__all__ = ["matrix_move", "matrix_moves", "operation", "operations", "row", "rows"]

_MODULES = ("comparisons", "floats", "conversions", "integers", "collectives", "matrices")


@cache
def _operations() -> dict[str, Operation]:
    rows = (row for name in _MODULES for row in import_module(f".{name}", __package__).OPERATIONS)
    return {row.mnemonic: row for row in rows}


@cache
def _sorted() -> dict[tuple[str, ...], Row]:
    """Operations and moves of matrices by their words in any order, but that types keep theirs."""
    return {tuple(sorted(name.split("."))): move for name, move in moves().items()}


# Memory, copies, barriers and exits

_HINT = r"(?:\.L2::cache_hint)?"
_PREFETCH = r"(?:\.L2::(?:64|128|256)B)?"
_EVICT = r"(?:\.L1::(?:evict_normal|evict_unchanged|evict_first|evict_last|no_allocate))?"
_ELEMENTS = r"(?:\.v([248]))?\.([bsu](?:8|16|32|64)|f(?:32|64))"
_ACCESSES = [
    re.compile(pattern)
    for pattern in (
        rf"ld(?:\.weak)?\.(global)(?:{_EVICT}|\.c[agsv]|\.lu){_HINT}{_PREFETCH}{_ELEMENTS}",
        rf"ld\.(global)(?:\.c[ags])?\.nc{_HINT}{_PREFETCH}{_ELEMENTS}",
        rf"ld\.(global)\.nc{_EVICT}{_HINT}{_PREFETCH}{_ELEMENTS}",
        rf"ld(?:\.weak)?\.(shared)(?:::cta)?(?:\.c[agsv]|\.lu)?{_ELEMENTS}",
        rf"st(?:\.weak)?\.(global)(?:{_EVICT}|\.w[bt]|\.c[gs]){_HINT}{_ELEMENTS}",
        rf"st(?:\.weak)?\.(shared)(?:::cta)?(?:\.w[bt]|\.c[gs])?{_ELEMENTS}",
    )
]
_COPY = re.compile(rf"cp\.async\.(ca|cg)\.shared(?:::cta)?\.global{_HINT}{_PREFETCH}")
_GROUP = re.compile(r"cp\.async\.(?:(commit)_group|(wait_group|wait_all))")
_BARRIER = re.compile(r"(bar)(?:\.cta)?\.(sync|arrive)|barrier(?:\.cta)?\.(sync|arrive)(\.aligned)?|bar\.(warp)\.sync")


def _access(name: str) -> Access | None:
    found = next((match for pattern in _ACCESSES if (match := pattern.fullmatch(name))), None)
    if found is None:
        return None
    space, count, type_ = found.groups()
    direction: Direction = "load" if name[:2] == "ld" else "store"
    access = Access(
        mnemonic=name, direction=direction, space=cast(Any, space), count=int(count or 1), type=type_,
        nc=".nc." in name, hint="cache_hint" in name, since="sm_70", ptx=(2, 0), evidence=known("PTX ISA 9.1, ld, st"),
    )  # fmt: skip
    return access if access.size <= 16 else None


def _control(name: str) -> Row | None:
    """Return the row of a copy, a barrier or an exit."""
    if found := _COPY.fullmatch(name):
        sizes = (16,) if found[1] == "cg" else (4, 8, 16)
        return Copy(
            mnemonic=name, sizes=sizes, hint="cache_hint" in name, since="sm_80", ptx=(7, 0),
            evidence=known("PTX ISA 9.1, cp.async"),
        )  # fmt: skip
    if found := _GROUP.fullmatch(name):
        return CopyGroup(
            mnemonic=name, action=cast(Any, found[1] or found[2]), since="sm_80", ptx=(7, 0),
            evidence=known("PTX ISA 9.1, cp.async"),
        )  # fmt: skip
    if found := _BARRIER.fullmatch(name):
        return Barrier(
            mnemonic=name, action=cast(Any, found[2] or found[3] or found[5]),
            aligned=bool(found[1] or found[4]), since="sm_70", ptx=(6, 0),
            evidence=known("PTX ISA 9.1, Parallel Synchronization and Communication Instructions"),
        )  # fmt: skip
    if name == "exit":
        return Exit(mnemonic=name, since="sm_70", ptx=(1, 0), evidence=known("PTX ISA 9.1, exit"))
    return None


# The look-up


def row(mnemonic: str, target: str | None = None) -> Row | Instruction:
    """Return the row of a mnemonic, and check that a target has it; of an `mma` its record.

    Raises
    ------
    MnemonicError
        Names the nearest that there is, or says what else the name is.
    TargetError
        The target has no such instruction.

    Examples
    --------
    >>> access = row("ld.global.nc.L1::no_allocate.L2::128B.v4.u32")
    >>> access.space, access.size, access.kind, access.syntax
    ('global', 16, 'b32', '{d0, d1, d2, d3}, [p]')
    """
    if type(mnemonic) is str and (target is None or type(target) is str):
        return _found(mnemonic, target)
    return _found(bare(mnemonic), target) if target is None else _checked(_found(bare(mnemonic), None), target)


@lru_cache(maxsize=4096)
def _found(mnemonic: str, target: str | None) -> Row | Instruction:
    name = bare(mnemonic)
    if target is not None:
        return _checked(_found(name, None), target)
    if name.partition(".")[0] == "mma":
        return parse(name)
    found = _operations().get(name) or _sorted().get(tuple(sorted(name.split("."))))
    found = found or _access(name) or _control(name)
    if found is None:
        raise unknown(name, [*_operations(), *moves()], "operation", "instruction")
    return found


def _checked(found: Row | Instruction, target: str) -> Row | Instruction:
    check_target(found, target)
    return found


def rows(target: str | None = None, opcode: str | None = None) -> Iterator[Row]:
    """List the rows of a target and an opcode, or all: one of those that differ in what changes no bit.

    Raises
    ------
    TargetError
        For an unknown target.
    """
    if target is not None:
        check_known(target)
    names = ("exit", "bar.sync", "bar.arrive", "bar.warp.sync", "barrier.sync", "barrier.arrive",
             "cp.async.ca.shared.global", "cp.async.cg.shared.global", "cp.async.commit_group", "cp.async.wait_group",
             "cp.async.wait_all")  # fmt: skip
    every = (*_operations().values(), *moves().values(), *(cast(Row, _control(name)) for name in names))
    return (
        x for x in every if (target is None or target in x.targets) and opcode in (None, x.mnemonic.partition(".")[0])
    )


def operations(target: str | None = None) -> tuple[Operation, ...]:
    """List the operations of a target, or all of them."""
    if target is None:
        return tuple(_operations().values())
    check_known(target)
    return tuple(row for row in _operations().values() if target in row.targets)


def operation(mnemonic: str, target: str | None = None) -> Operation:
    """Return the operation of a mnemonic, and check that a target has it.

    Raises
    ------
    MnemonicError
        Names the nearest that there is, or says what else the name is.
    TargetError
        The target has no such operation.
    """
    name = bare(mnemonic)
    row = _operations().get(name)
    if row is None:
        raise unknown(name, _operations(), "operation", "operation")
    if target is not None:
        check_target(row, target)
    return row


def matrix_moves(target: str | None = None) -> tuple[MatrixMove, ...]:
    """List the `ldmatrix` and `stmatrix` of a target, or all; each with `.shared`, `.shared::cta` and neither."""
    if target is None:
        return tuple(moves().values())
    check_known(target)
    return tuple(move for move in moves().values() if target in move.targets)


def matrix_move(mnemonic: str, target: str | None = None) -> MatrixMove:
    """Return the row of a mnemonic, its qualifiers in any order, and check that a target has it.

    Raises
    ------
    MnemonicError
        Names the nearest that there is, or says what else the name is.
    TargetError
        The target has no such instruction.

    Examples
    --------
    >>> move = matrix_move("ldmatrix.sync.aligned.m8n8.x4.shared.b16")
    >>> move.matrices, move.registers, move.address_lanes
    (4, 4, 32)
    """
    name = bare(mnemonic)
    move = moves().get(name) or _sorted().get(tuple(sorted(name.split("."))))
    if move is None:
        raise unknown(name, moves(), "move", "ldmatrix or stmatrix")
    if target is not None:
        check_target(move, target)
    return cast(MatrixMove, move)


def unknown(mnemonic: object, legal: Collection[str], door: Door, kind: str) -> MnemonicError:
    """Make the error of a name that is none of some mnemonics: with what it is, or with the nearest of them."""
    text = bare(mnemonic)
    if known := explained(text, door):
        return MnemonicError(f"{text!r} is no {kind} that is simulated: {known}")
    nearest = near(text, legal)
    return MnemonicError(f"{text!r} is no {kind} that is simulated" + (f". Nearest: {nearest}" if nearest else ""))


# Pickles and copies


def _by_name(instance: Row) -> Any:
    """By its mnemonic, for `compute` may be no function of a module: what is unpickled is the row itself."""
    if _operations().get(instance.mnemonic) is instance:
        return row, (instance.mnemonic,)
    return object.__reduce_ex__(instance, 2)


for _kind in (Access, Barrier, Copy, CopyGroup, Exit, MatrixMove, Operation):
    copyreg.pickle(_kind, cast(Any, _by_name))
