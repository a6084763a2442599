"""Registers of a simulated batch of blocks, and the integer operators that kernels compute addresses with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import OperandError, UnknownNameError, shown
from ..machine.hazards import caller
from ..operations import shl, shr

if TYPE_CHECKING:
    from ..machine.warps import Warps

__all__ = ["DTYPES", "Register"]

Array = npt.NDArray[Any]

DTYPES: Mapping[str, Any] = MappingProxyType({"b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "pred": np.bool_})
_KINDS = {np.dtype(dtype): kind for kind, dtype in DTYPES.items()}


class Register:
    """A register of every thread.

    Operators are those of unsigned integers and count as instructions: `+ - * & | ^ << >> // %` and `~` wrap, shifts by
    the width or more give 0, division by zero gives all ones; comparisons give a predicate. Of registers of different
    widths, the wider counts, and the other is extended with zeros. Predicates have `& | ^ ~`. Python numbers are
    integers that fit. What is signed or floating-point has a mnemonic.

    Attributes
    ----------
    threads : Warps
        Whose it is.
    bits : ndarray of uint16, uint32, uint64 or bool
        `[block, warp, lane]`.
    defined : ndarray of bool or None
        Which lanes have written it; None for all. What a lane has not written is poison: reading it is a hazard.
    """

    __slots__ = ("bits", "defined", "threads")
    __array_ufunc__ = None  # NumPy's integers on the left of an operator leave it to us

    def __init__(self, threads: Warps, bits: Array, defined: Array | None = None) -> None:
        self.threads, self.bits, self.defined = threads, bits, defined

    @property
    def kind(self) -> str:
        """Its type: "b16", "b32", "b64" or "pred"."""
        return _KINDS[self.bits.dtype]

    def __getattr__(self, name: str) -> Any:
        raise UnknownNameError.of("Register", name, ("bits", "defined", "kind", "threads"))

    def __repr__(self) -> str:
        return f"<{self.kind} register of {' x '.join(map(str, self.bits.shape))} threads>"

    def _apply(self, name: str, other: Any, *, swap: bool = False) -> Register:
        kinds = {x.kind for x in (self, other) if isinstance(x, Register)}
        if kinds & {"pred"} and (len(kinds) > 1 or name not in ("and", "or", "xor", "not")):
            given = " and ".join(sorted(kinds))
            raise OperandError(f"{name} of {given} registers; predicates have & | ^ ~ among themselves")
        kind = max(kinds)  # "b16" < "b32" < "b64" by luck of their spelling
        if isinstance(other, float | np.floating):
            raise OperandError(
                f"{name} of a register and {shown(other)}: operators are of integers; others have mnemonics"
            )
        x, y = (other, self) if swap else (self, other)
        warps = self.threads
        site = caller(f"{name}.{kind if kind == 'pred' or name in _BITWISE else 'u' + kind[1:]}")
        warps.costs.count(site, warps.active)
        a, b = warps.read(site, [warps.operand(z, kind, kind, f"{site.mnemonic}: an operand") for z in (x, y)])
        result = OPERATORS[name](a.astype(DTYPES[kind], copy=False), b.astype(DTYPES[kind], copy=False))
        return warps.made(result if result.dtype == np.bool_ else result.astype(DTYPES[kind], copy=False))

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
            "are no `args` of a launch; bind them, with functools.partial say"
        )

    __int__ = __float__ = __index__

    def __iter__(self) -> Iterator[Register]:
        raise OperandError("this is one register; a sequence of registers is expected here")


def _divide(divide: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def apply(x: Array, y: Array) -> Array:
        return np.where(y != 0, divide(x, np.where(y == 0, 1, y).astype(x.dtype)), ~np.zeros_like(x))

    return apply


_BITWISE = ("and", "or", "xor", "not", "shl")  # PTX has them as .b32, others as .u32

OPERATORS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul.lo": np.multiply,
    "div": _divide(np.floor_divide),
    "rem": _divide(np.remainder),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": lambda x, _: ~x,
    "shl": shl,
    "shr": shr,
    "setp.lt": np.less,
    "setp.le": np.less_equal,
    "setp.gt": np.greater,
    "setp.ge": np.greater_equal,
    "setp.eq": np.equal,
    "setp.ne": np.not_equal,
}
"""What the operators compute, by the instruction that they count as."""
