"""The table of all forms, and the lookup of mnemonics in it."""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, cast

from ..arithmetic import Evidence, evidence_of
from ..errors import MnemonicError, shown
from ..isa import (
    SIMULATED,
    Door,
    Instruction,
    InstructionTable,
    PtxInstruction,
    bare,
    check_known,
    check_target,
    explained,
    near,
    parse,
    parse_warpgroup,
)
from . import arithmetic, control, memory, warp
from .control import Fence, Hint, Mbarrier, Stack, Trap
from .effects import Access, Barrier, Copy, CopyGroup, Exit
from .forms import Form
from .memory import AsyncStore, Atomic, BulkCopy, CacheControl, CachePolicy
from .records import InstructionRow, Operation
from .warp import MatrixMove, WarpgroupGroup, WmmaMove, WmmaMultiply

FORMS: tuple[Form, ...] = (*arithmetic.FORMS, *warp.FORMS, *memory.FORMS, *control.FORMS)
"""Every line of the table; `row` finds a mnemonic in it."""

_MOST_SEEN, _SHOWN = 4096, 6


class FormTable(InstructionTable[Form, InstructionRow]):
    """The rows of some forms; lookups are cached.

    Raises
    ------
    TableError
        Invalid or duplicate forms, or two that read the same mnemonic.
    """

    def __init__(self, forms: Iterable[Form]) -> None:
        super().__init__(forms)
        self.prove()
        self._seen: dict[tuple[str, str | None], PtxInstruction] = {}

    def look_up(self, mnemonic: str, target: str | None) -> PtxInstruction:
        """Return what `row` returns; repeated calls are dictionary lookups."""
        found = self._seen.get((mnemonic, target))
        if found is None:
            found = self._read(mnemonic)
            if target is not None:
                check_target(found, target)
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._seen[mnemonic, target] = found
        return found

    def _read(self, mnemonic: str) -> PtxInstruction:
        name = bare(mnemonic)
        if name.startswith("mma."):
            return parse(name)
        if name.startswith("wgmma.mma_async"):
            return parse_warpgroup(name)
        found = self.find(name)
        if found is None:
            door = SIMULATED.get(name.partition(".")[0])
            if door in ("access", "move"):
                raise self.unknown(name, None, door, "instruction")
            raise self.unknown(name, Operation, "operation", "operation")
        return found

    def unknown(self, name: str, kind: type[InstructionRow] | None, door: Door, what: str) -> MnemonicError:
        """Make the error for a name without a row, or one of a kind: it explains the name or lists the nearest ones."""
        text = f"{name!r} is not a simulated {what}"
        if known := explained(name, door):
            return MnemonicError(f"{text}: {known}")
        if name in self._forms and (there := self._likely(name, kind)):
            there = [mnemonic for mnemonic in there if mnemonic.startswith(f"{name}.")]
            return MnemonicError(f"{text}. There are {', '.join(there[:_SHOWN])}{', ...' * (len(there) > _SHOWN)}")
        nearest = near(name, self._likely(name, kind))
        return MnemonicError(text + (f". Nearest: {nearest}" if nearest else ""))

    def _likely(self, name: str, kind: type[InstructionRow] | None) -> list[str]:
        """List mnemonics that a name may stand for: those of its opcode, or all."""
        forms = self.forms(name.partition(".")[0]) or self.forms()
        return [x for form in forms if kind is None or issubclass(form.kind, kind) for x in form.mnemonics]


@cache
def _table() -> FormTable:
    return FormTable(FORMS)


def row(mnemonic: str, target: str | None = None) -> PtxInstruction:
    """Return the row of a mnemonic, its qualifiers in any order; for an `mma` or `wgmma.mma_async`, its record.

    Parameters
    ----------
    mnemonic : str
        Types of operands keep their relative order, and so do state spaces.
    target : str, optional
        Such as "sm_90a": checks that it has the instruction.

    Returns
    -------
    InstructionRow, Instruction or WarpgroupInstruction
        The same object on every call.

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
    >>> str(row("cvt.f16.f32.rn")), row("fma.rn.f32").evidence.kind
    ('cvt.rn.f16.f32', 'measured')
    """
    if type(mnemonic) is not str or type(target) not in (str, type(None)):
        mnemonic = bare(mnemonic)
        if target is not None:
            check_known(target)
            target = str(target)
    return _table().look_up(mnemonic, target)


def rows(target: str | None = None, opcode: str | None = None) -> Iterator[InstructionRow]:
    """List the rows of a target and an opcode, or all; of rows that compute the same bits, only the shortest.

    Raises
    ------
    TargetError, MnemonicError
        For an unknown target or opcode.

    Examples
    --------
    >>> [str(row) for row in rows("sm_90", "cp")][:2]
    ['cp.async.ca.shared.global', 'cp.async.ca.shared.global.L2::cache_hint']
    """
    if target is not None:
        check_known(target)
    if opcode is not None and not (isinstance(opcode, str) and _table().forms(opcode)):
        raise MnemonicError(f"no row has the opcode {shown(opcode)}; expected one such as 'ld', 'cvt' or 'bar'")
    return (x for x in _table().rows(opcode=opcode) if target is None or target in x.targets)


def evidence(mnemonic: str, *, target: str) -> Evidence:
    """Return the evidence of an instruction on a target, `mma` included.

    Raises
    ------
    MnemonicError, TargetError
        See `row`.

    Examples
    --------
    >>> evidence("setp.lt.f32", target="sm_90a").kind, evidence("setp.lt.f32", target="sm_80").kind
    ('measured', 'published')
    >>> print(evidence("add.f32", target="sm_80"))
    derived: PTX ISA 9.1, 9.7.3; assuming NaN, and what is flushed just below the least normal number, as on an H200
    """
    found = row(mnemonic, target)
    return found.known(target) if isinstance(found, InstructionRow) else evidence_of(cast(Instruction, found), target)


def operations(target: str | None = None) -> tuple[Operation, ...]:
    """List the operations of a target, or all of them."""
    return cast(tuple[Operation, ...], _listed(Operation, target))


def operation(mnemonic: str, target: str | None = None) -> Operation:
    """Return the operation of a mnemonic, its qualifiers in any order, and check that a target has it.

    Raises
    ------
    MnemonicError
        Names the nearest that there is, or says what else the name is.
    TargetError
        The target has no such operation.
    """
    return cast(Operation, _of(Operation, mnemonic, target, "operation", "operation"))


def matrix_moves(target: str | None = None) -> tuple[MatrixMove, ...]:
    """List the `ldmatrix` and `stmatrix` of a target, or all; each with `.shared`, `.shared::cta` and neither."""
    return cast(tuple[MatrixMove, ...], _listed(MatrixMove, target))


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
    return cast(MatrixMove, _of(MatrixMove, mnemonic, target, "move", "ldmatrix or stmatrix"))


def _listed(kind: type[InstructionRow], target: str | None) -> tuple[InstructionRow, ...]:
    if target is not None:
        check_known(target)
    return tuple(x for x in _table().rows(kind) if target is None or target in x.targets)


def _of(kind: type[InstructionRow], mnemonic: str, target: str | None, door: Door, what: str) -> InstructionRow:
    name = bare(mnemonic)
    found = _table().find(name)
    if not isinstance(found, kind):
        raise _table().unknown(name, kind, door, what)
    if target is not None:
        check_target(found, target)
    return found


def _by_name(instance: InstructionRow) -> Any:
    """Pickle a row by its mnemonic, since `compute` may not be picklable; unpickling returns the same row."""
    if _table().find(instance.mnemonic) is instance:
        return row, (instance.mnemonic,)
    return object.__reduce_ex__(instance, 2)


for _kind in (
    Access, AsyncStore, Atomic, Barrier, BulkCopy, CacheControl, CachePolicy, Copy, CopyGroup, Exit,
    Fence, Hint, MatrixMove, Mbarrier, Operation, Stack, Trap, WarpgroupGroup, WmmaMove, WmmaMultiply,
):  # fmt: skip
    copyreg.pickle(_kind, cast(Any, _by_name))
