"""Registers of a kernel in Python, and the integer operators that it computes addresses with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Protocol, cast

import numpy as np

from .. import machine
from .._arrays import Array
from ..arithmetic import Evidence
from ..errors import OperandError, UnknownNameError, shown
from ..operations import DTYPES, Operation, operation, shl, shr
from .call_sites import caller

_BITWISE = ("and", "or", "xor", "not", "shl")  # PTX has them as .b32, others as .u32
_SHIFTS = {"shl": shl, "shr": shr}
_EVIDENCE = Evidence(kind="published", source="PTX ISA 9.1, Logic and Shift Instructions")


@cache
def _operator(name: str, kind: str) -> Operation:
    """Return the row of an operator by the class of its operands: both are as wide as the wider, and unsigned.

    A shift's count is as wide as what is shifted, which PTX has of 32 bits alone.

    Examples
    --------
    >>> _operator("add", "b32").mnemonic, _operator("shl", "b64").mnemonic, _operator("and", "pred").mnemonic
    ('add.u32', 'shl.b64', 'and.pred')
    """
    mnemonic = f"{name}.{kind if kind == 'pred' or name in _BITWISE else 'u' + kind[1:]}"
    if name not in _SHIFTS:
        return operation(mnemonic)
    shift, each = _SHIFTS[name], cast(Any, kind)
    return Operation(
        mnemonic=mnemonic, inputs=(each, each), outputs=(each,), compute=lambda a, b: (shift(a, b),), since="sm_70",
        ptx=(1, 0), evidence=_EVIDENCE,
    )  # fmt: skip


class _Threads(Protocol):
    """What a register needs of the threads whose it is."""

    def _perform(self, site: machine.Site, row: Operation, operands: list[Any]) -> Any: ...

    def _number(self, x: Any, kind: str, who: str) -> machine.WarpRegister: ...


class Register(machine.WarpRegister):
    """A register of every thread.

    Operators are those of unsigned integers and count as instructions: `+ - * & | ^ << >> // %` and `~` wrap, shifts by
    the width or more give 0, division by zero gives all ones; comparisons give a predicate. Of registers of different
    widths, the wider counts, and the other is extended with zeros. Predicates have `& | ^ ~`. Python numbers are
    integers that fit. What is signed or floating-point has a mnemonic.

    Attributes
    ----------
    threads : Threads
        Whose it is.
    bits : ndarray of uint16, uint32, uint64 or bool
        `[block, warp, lane]`.
    defined : ndarray of bool or None
        Which lanes have written it; None for all. What a lane has not written is poison: reading it is a hazard.
    site : Site or None
        The line that made it, where some lanes have not written it.
    """

    __slots__ = ("threads",)
    __array_ufunc__ = None  # NumPy's integers on the left of an operator leave it to us

    def __init__(self, threads: _Threads, register: machine.WarpRegister) -> None:
        super().__init__(register.bits, register.shadow, register.part)
        self.threads = threads

    @property
    def defined(self) -> Array | None:
        """Lanes that have written it; None for all. Of a `wgmma` that is not complete, none has."""
        settle(self)
        return super().defined

    def __getattr__(self, name: str) -> Any:
        raise UnknownNameError.of("Register", name, ("bits", "defined", "kind", "site", "threads"))

    def __repr__(self) -> str:
        return f"<{self.kind} register of {' x '.join(map(str, self.bits.shape))} threads>"

    def _apply(self, name: str, other: Any, *, swap: bool = False) -> Register:
        kinds = {x.kind for x in (self, other) if isinstance(x, machine.WarpRegister)}
        if kinds & {"pred"} and (len(kinds) > 1 or name not in ("and", "or", "xor", "not")):
            given = " and ".join(sorted(kinds))
            raise OperandError(f"{name} of {given} registers; predicates have & | ^ ~ among themselves")
        if isinstance(other, float | np.floating):
            raise OperandError(
                f"{name} of a register and {shown(other)}: operators are of integers; others have mnemonics"
            )
        row = _operator(name, max(kinds))  # "b16" < "b32" < "b64" by luck of their spelling
        site = caller(row.mnemonic)
        who = f"{row.mnemonic}: an operand"
        each = (self, other)[: len(row.inputs)]
        operands = [_widened(self.threads._number(x, row.inputs[0], who), row.inputs[0]) for x in each]
        result: Register = self.threads._perform(site, row, operands[::-1] if swap else operands)
        return result

    def __add__(self, other: Any) -> Register:
        return self._apply("add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Register:
        return self._apply("sub", other)

    def __rsub__(self, other: Any) -> Register:
        return self._apply("sub", other, swap=True)

    def __mul__(self, other: Any) -> Register:
        return self._apply("mul.lo", other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Register:
        return self._apply("div", other)

    def __mod__(self, other: Any) -> Register:
        return self._apply("rem", other)

    def __rfloordiv__(self, other: Any) -> Register:
        return self._apply("div", other, swap=True)

    def __rmod__(self, other: Any) -> Register:
        return self._apply("rem", other, swap=True)

    def __and__(self, other: Any) -> Register:
        return self._apply("and", other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Register:
        return self._apply("or", other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Register:
        return self._apply("xor", other)

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Register:
        return self._apply("shl", other)

    def __rshift__(self, other: Any) -> Register:
        return self._apply("shr", other)

    def __rlshift__(self, other: Any) -> Register:
        return self._apply("shl", other, swap=True)

    def __rrshift__(self, other: Any) -> Register:
        return self._apply("shr", other, swap=True)

    def __invert__(self) -> Register:
        return self._apply("not", self)

    def __truediv__(self, other: Any) -> Register:
        raise OperandError(
            "/ of a register: operators are of integers, which // divides; floats have div.rn, div.full and div.approx"
        )

    __rtruediv__ = __truediv__

    def __lt__(self, other: Any) -> Register:
        return self._apply("setp.lt", other)

    def __le__(self, other: Any) -> Register:
        return self._apply("setp.le", other)

    def __gt__(self, other: Any) -> Register:
        return self._apply("setp.gt", other)

    def __ge__(self, other: Any) -> Register:
        return self._apply("setp.ge", other)

    def __eq__(self, other: Any) -> Register:  # type: ignore[override]
        return self._apply("setp.eq", other)

    def __ne__(self, other: Any) -> Register:  # type: ignore[override]
        return self._apply("setp.ne", other)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise OperandError("a register has a value in every thread: branch with `with t.where(predicate)`")

    def __index__(self) -> int:
        raise OperandError(
            "a register has a value in every thread, and Python needs one number here: numbers that shape the kernel "
            "are not `args` of a launch; bind them, with functools.partial say"
        )

    __int__ = __float__ = __index__

    def __iter__(self) -> Iterator[Register]:
        raise OperandError("this is one register; a sequence of registers is expected here")


def settle(register: Register) -> None:
    """Let lanes hold values whose warps have waited for the `wgmma` that writes them."""
    if register.shadow is not None and register.shadow.pending:
        register.shadow = machine.settled(register.shadow)


def _widened(x: machine.WarpRegister, kind: str) -> machine.WarpRegister:
    """Extend a register with zeros."""
    return x if x.kind == kind else machine.WarpRegister(x.bits.astype(DTYPES[kind]), x.shadow)
