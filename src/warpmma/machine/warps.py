"""Warps: a batch of blocks, the mask of their lanes that act, and the registers that they read and write."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arguments import is_integer
from .._arrays import as_array
from ..errors import OperandError, UnsupportedError, shown
from ..kernel.blocks import check_entry
from ..kernel.bytecode import left_early
from ..kernel.literals import fits, is_number, literal
from ..kernel.values import DTYPES, Register
from ..registers import LANES
from .costs import Costs
from .hazards import Reporter, Site, caller

__all__ = ["Warps"]

Array = npt.NDArray[Any]


class _Mask(AbstractContextManager[None]):
    """Which lanes act inside of a block, and outside again when it has ended."""

    def __init__(self, warps: Warps, inside: Array) -> None:
        self._warps, self._inside = warps, inside
        self._outside: list[tuple[Array, CodeType | None, int]] = []

    def __enter__(self) -> None:
        frame = sys._getframe(1)
        unread = None if check_entry(frame) else frame.f_code
        self._outside.append((self._warps.active, unread, frame.f_lasti))
        self._warps.active = self._inside

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._warps.active, unread, entered = self._outside.pop()
        frame = sys._getframe(1)
        if kind is None and unread is not None and left_early(frame, unread, entered):
            raise UnsupportedError(
                f"{Path(frame.f_code.co_filename).name}: `return`, `break` or `continue` inside the block "
                f"`with t.where(...)` of line {frame.f_lineno} acts for all lanes, also those that are masked off. "
                "Leave the block at its end, and mask what follows with the opposite predicate"
            )


class Warps:
    """All warps of a batch of blocks.

    Parameters
    ----------
    blocks, number : int
        Blocks, and threads of each.
    target : str
    reporter : Reporter
    costs : Costs

    Attributes
    ----------
    exists, active : ndarray of bool
        `[block, warp, lane]`: lanes that are threads, as the last of a warp may not be; those that are not masked off.
    """

    def __init__(self, blocks: int, number: int, target: str, reporter: Reporter, costs: Costs) -> None:
        self.target, self.reporter, self.costs = target, reporter, costs
        warps = -(-number // LANES)
        self.shape = (blocks, warps, LANES)
        self.exists = np.broadcast_to(np.arange(warps * LANES).reshape(1, warps, LANES) < number, self.shape)
        self.active = self.exists

    def __repr__(self) -> str:
        blocks, warps, _ = self.shape
        return f"<threads of {blocks} x {warps} warps on {self.target}>"

    # Masks

    def where(self, predicate: Register) -> AbstractContextManager[None]:
        """Mask lanes off: only those with the predicate act inside, and write their lanes of registers alone.

        The block is left at its end: `return`, `break` and `continue` in it would act for all lanes, and are refused.
        """
        return _Mask(self, self.active & self._predicate("where", predicate))

    def any(self, predicate: Register) -> bool:
        """Whether any active lane has the predicate: `while t.any(p): with t.where(p): ...` loops until none has."""
        return bool((self.active & self._predicate("any", predicate)).any())

    def _predicate(self, name: str, predicate: Register) -> Array:
        if not isinstance(predicate, Register) or predicate.kind != "pred":
            raise OperandError(f"{name} takes a predicate, such as t.laneid < 16; got {shown(predicate)}")
        return self.read(caller(name), [self.operand(predicate, "pred", "pred")])[0]

    def check_whole(self, site: Site) -> None:
        """Report warps of which some lanes act and others do not."""
        if not self.active.all():
            self.reporter.report(
                "divergent", site, self.active & ~self.active.all(axis=-1, keepdims=True),
                detail="all 32 lanes of a warp execute this together, and some are masked off or are no threads",
            )  # fmt: skip

    # Registers

    def register(self, values: npt.ArrayLike, dtype: npt.DTypeLike = np.uint32) -> Register:
        """Return a register that all lanes have written.

        Parameters
        ----------
        values : array_like of int or bool
            Integers that fit, signed or not, and bools for predicates; they broadcast to `[block, warp, lane]`. Bits of
            floats are `x.view(np.uint32)`.
        dtype : dtype
            uint16, uint32, uint64 or bool.

        Raises
        ------
        OperandError
            What is or fits none of these.
        """
        array, made = as_array(values, "register: the values"), _dtype(dtype)
        bits, pred = 8 * made.itemsize, made == np.bool_
        if array.dtype.kind not in ("b" if pred else "iu"):
            expected = "bools" if pred else "integers; bits of floats are x.view(np.uint32)"
            raise OperandError(f"register: the values are {array.dtype}; expected {expected}")
        if not pred and not all(fits(int(x), bits) for x in (array.min(initial=0), array.max(initial=0))):
            raise OperandError(f"register: the values are {array.min()} to {array.max()}, beyond {bits} bits")
        try:
            np.broadcast_to(array, self.shape)
        except ValueError:
            raise OperandError(
                f"register: the values are {array.shape}; expected what broadcasts to {self.shape}"
            ) from None
        return self._filled(array, made)

    def _filled(self, values: Array, dtype: Any) -> Register:
        return Register(self, np.broadcast_to(values.astype(dtype), self.shape))

    def constant(self, value: int | float, kind: str = "b32") -> Register:
        """Return a register with one value in every lane.

        Parameters
        ----------
        value : int, float or bool
            An integer that fits, signed or not; a float as f32 ("b32") or f64 ("b64"); a bool for "pred".
        kind : {"b16", "b32", "b64", "pred"}

        Raises
        ------
        OperandError
            What does not fit.
        """
        if not isinstance(kind, str) or kind not in DTYPES:
            raise OperandError(f"a register is of {', '.join(DTYPES)}; got {shown(kind)}")
        bits = 8 * np.dtype(DTYPES[kind]).itemsize
        if isinstance(value, bool | np.bool_) and kind == "pred":
            return self._filled(np.asarray(value), np.bool_)
        if isinstance(value, float | np.floating) and kind in ("b32", "b64"):
            with np.errstate(all="ignore"):  # rounding is the caller's wish, to infinity and below the least number too
                return self._filled(np.asarray(value, f"f{bits // 8}").view(f"u{bits // 8}"), DTYPES[kind])
        if not is_integer(value) or kind == "pred" or not fits(int(value), bits):
            raise OperandError(f"{shown(value)} is no value of a {kind} register")
        return self._filled(np.asarray(int(value) & ((1 << bits) - 1), np.uint64), DTYPES[kind])

    def update(self, old: Register, new: Register) -> Register:
        """Return the register that keeps `old` in lanes that are masked off and has `new` in the others."""
        old, new = (self.operand(x, "b32", "b32", "update: an operand") for x in (old, new))
        if old.kind != new.kind:
            raise OperandError(f"update of a {old.kind} register with a {new.kind} one")
        bits = np.where(self.active, new.bits, old.bits)
        kept = np.True_ if old.defined is None else old.defined
        made = np.True_ if new.defined is None else new.defined
        defined = np.where(self.active, made, kept)
        return Register(self, bits, None if defined.all() else defined)

    def operand(self, x: Any, type_: str, kind: str, who: str = "") -> Register:
        """Return a register as it is, or one with a number in every lane, which is a value of the operand's PTX type.

        Parameters
        ----------
        x : Register, int, float or bool
        type_ : str
            PTX type of the operand, see `literals`.
        kind : str
            Class of the register that holds it.
        who : str
            Mnemonic and operand, for errors.
        """
        if isinstance(x, Register):
            if x.threads is not self:
                raise OperandError("a register of another launch, or of other blocks: kernels keep none between calls")
            return x
        who = who or "an operand"
        if not is_number(x):
            raise OperandError(f"{who} is {type(x).__name__}; expected a register or a number")
        return self._filled(np.asarray(literal(x, type_, kind, who), np.uint64), DTYPES[kind])

    def read(self, site: Site, registers: Sequence[Register], lanes: Array | None = None) -> list[Array]:
        """Bits of registers, `[block, warp, lane]`; report active ones of `lanes` that have not been written."""
        for i, register in enumerate(registers):
            if register.defined is not None:
                needed = self.active if lanes is None else self.active & lanes
                which = f"; it is number {i} of {len(registers)} here" if len(registers) > 1 else ""
                self.reporter.report(
                    "poison", site, needed & ~register.defined,
                    detail=f"the lane reads a register that it never wrote, being masked off where it was made{which}",
                )  # fmt: skip
        return [register.bits for register in registers]

    def made(self, bits: Array) -> Register:
        """Return a result: written in active lanes."""
        return Register(self, bits, None if self.active is self.exists else self.active)


def _dtype(given: npt.DTypeLike) -> np.dtype[Any]:
    """Return the type of a register's bits."""
    with suppress(Exception):  # NumPy has many for what is no type, warnings among them
        dtype: np.dtype[Any] = np.dtype(given)
        if dtype in map(np.dtype, DTYPES.values()):
            return dtype
    raise OperandError(f"register: the type of bits is {shown(given)}; expected uint16, uint32, uint64 or bool")
