"""Registers by name, for PTX and other front ends."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..._arguments import is_integer, members
from ..._arrays import MOST_DIMENSIONS, Array, as_array
from ..._text import ranges
from ...errors import RegisterError, shown
from ...operations import DTYPES
from ...registers import LANES
from ..base import RegisterShadow, WarpRegister, merged

Width = Literal[16, 32, 64, "pred"]
_KINDS: dict[object, str] = {16: "b16", 32: "b32", 64: "b64", "pred": "pred"}
_MOST_NAMES = 1 << 16  # of a fragment; no warp has as many registers


class RegisterFile:
    """Named registers of a batch of warps; each knows which of its lanes have been written.

    Parameters
    ----------
    warps : tuple of int, optional
        Shape of the batch of warps; every register is an array `[*warps, 32]`. One warp by default.

    Notes
    -----
    A lane that was never written has no value: reading it is a `RegisterError`, because it would be a bug in a kernel.

    Examples
    --------
    >>> registers = RegisterFile()
    >>> registers.declare(32, "%r0", "%r1")
    >>> registers.write("%r0", np.arange(32))
    >>> int(registers.read("%r0")[5])
    5
    >>> registers.read("%r1")
    Traceback (most recent call last):
        ...
    warpmma.errors.RegisterError: %r1 is read before it is written: lanes 0-31
    """

    def __init__(self, warps: tuple[int, ...] = ()) -> None:
        if not isinstance(warps, tuple) or not all(is_integer(n) and n >= 0 for n in warps):
            raise RegisterError(f"warps is {shown(warps)}; expected a shape, a tuple of non-negative integers")
        most = MOST_DIMENSIONS - 2  # a fragment has two more, of registers and lanes
        if len(warps) > most:
            raise RegisterError(f"warps has {len(warps)} dimensions; expected at most {most}")
        if math.prod(map(int, warps)) > sys.maxsize // (8 * LANES):
            raise RegisterError(f"warps is {shown(warps)}; a register of so many lanes does not fit in memory")
        self.warps = tuple(map(int, warps))
        self._registers: dict[str, WarpRegister] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._registers)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._registers

    def __repr__(self) -> str:
        registers = ", ".join(f".{self._register(name).kind} {name}" for name in self)
        return f"RegisterFile(warps={self.warps}: {registers or 'empty'})"

    def declare(self, width: Width, *names: str) -> None:
        """Add unwritten registers of 16, 32 or 64 bits, or predicates.

        Raises
        ------
        RegisterError
            Another width, a name that is not a string, or one that exists; then none is added.
        """
        kind = _KINDS.get(width) if is_integer(width) or isinstance(width, str) else None
        if kind is None:
            raise RegisterError(f"a register has 16, 32 or 64 bits or is a 'pred', not {shown(width)}")
        for index, name in enumerate(names):
            if not isinstance(name, str):
                raise RegisterError(f"the name of a register is a string, not {shown(name)}")
            if name in self._registers:
                raise RegisterError(f"{name} is already declared, as .{self._register(name).kind}")
            if name in names[:index]:
                raise RegisterError(f"{name} is declared twice")
        for name in names:
            shape = (*self.warps, LANES)
            self._registers[name] = WarpRegister(np.zeros(shape, DTYPES[kind]), RegisterShadow(np.zeros(shape, bool)))

    def width(self, name: str) -> int:
        """Width of a register in bits; 1 for a predicate."""
        register = self._register(name)
        return 1 if register.kind == "pred" else 8 * register.bits.dtype.itemsize

    def written(self, name: str) -> npt.NDArray[np.bool_]:
        """Return the lanes that have been written, `[*warps, 32]`."""
        return self._lanes(name).copy()

    def get(self, name: str) -> WarpRegister:
        """Return a register for the machine; later writes do not change it."""
        register = self._register(name)
        lanes = self._lanes(name)
        return WarpRegister(register.bits, None if lanes.all() else RegisterShadow(lanes, register.site))

    def put(self, name: str, value: WarpRegister, lanes: Array) -> None:
        """Write a result of the machine in some lanes, `[*warps, 32]`; the others keep theirs.

        Raises
        ------
        RegisterError
            Unknown name, or a value of another class.
        """
        register = self._register(name)
        if value.kind != register.kind:
            raise RegisterError(f"{name} is .{register.kind}; got a value of .{value.kind}")
        self._registers[name] = merged(register, value, lanes)

    def write(self, name: str, values: npt.ArrayLike, *, where: npt.ArrayLike = True) -> None:
        """Write a register in every lane, or in those that a mask selects.

        Parameters
        ----------
        name : str
        values : array_like of int
            Broadcasts to `[*warps, 32]`; unsigned values that fit the register's width.
        where : array_like of bool
            Broadcasts to `[*warps, 32]`; the other lanes keep their value.

        Raises
        ------
        RegisterError
            Unknown name, a shape that does not broadcast, values that do not fit, or a mask that is not bool.
        """
        register, values = self._fitting(name, values)
        mask = _mask(name, where, register.bits.shape)
        bits = np.where(mask, values.astype(register.bits.dtype), register.bits)
        self._registers[name] = WarpRegister(bits, RegisterShadow(self._lanes(name) | mask))

    def read(self, name: str, *, where: npt.ArrayLike = True) -> Array:
        """Value of a register, `[*warps, 32]`; a copy.

        Parameters
        ----------
        name : str
        where : array_like of bool
            The lanes that are needed; only these must have been written. Others read as whatever they hold.

        Raises
        ------
        RegisterError
            Unknown name, a needed lane that was never written (named by warp and lane), or a mask that is not bool.
        """
        register = self._register(name)
        missing = _mask(name, where, register.bits.shape) & ~self._lanes(name)
        if missing.any():
            warp = tuple(int(x) for x in np.argwhere(missing)[0][:-1])
            lanes = ranges(np.flatnonzero(missing[warp]).tolist())
            at = f" of warp {warp[0] if len(warp) == 1 else warp}" if warp else ""
            raise RegisterError(f"{name} is read before it is written: lanes {lanes}{at}")
        return register.bits.copy()

    def write_fragment(self, names: Sequence[str], fragment: npt.ArrayLike) -> None:
        """Write `[..., register, lane]`, a fragment, to as many named registers."""
        names, fragment = _names(names), as_array(fragment, "fragment", RegisterError)
        if fragment.ndim < 2 or fragment.shape[-2:] != (len(names), LANES):
            expected = f"[..., {len(names)}, {LANES}] for {names}"
            raise RegisterError(f"got a fragment {fragment.shape}; expected {expected}")
        parts = [fragment[..., index, :] for index in range(len(names))]
        for name, part in zip(names, parts, strict=True):  # check all of them before any is written
            self._fitting(name, part)
        for name, part in zip(names, parts, strict=True):
            self.write(name, part)

    def read_fragment(self, names: Sequence[str]) -> Array:
        """Read named registers of one width as a fragment `[*warps, register, lane]`."""
        names = _names(names)
        widths = {name: self.width(name) for name in names}
        if len(set(widths.values())) != 1:
            raise RegisterError(f"a fragment is one or more registers of one width; got {widths}")
        return np.stack([self.read(name) for name in names], axis=-2)

    def _fitting(self, name: str, values: npt.ArrayLike) -> tuple[WarpRegister, Array]:
        """Return a register, and values that fit it, broadcast to its shape."""
        register, array = self._register(name), as_array(values, name, RegisterError)
        dtype = register.bits.dtype
        if array.dtype.kind not in ("b" if register.kind == "pred" else "iu"):
            holds = "is a predicate" if register.kind == "pred" else "holds bits"
            raise RegisterError(f"{name} {holds}: got dtype {array.dtype}; expected {dtype}")
        if register.kind != "pred" and array.size and (int(array.min()) < 0 or int(array.max()) > np.iinfo(dtype).max):
            raise RegisterError(f"{name} is .{register.kind}: a value of {array.dtype} does not fit it")
        return register, _broadcast(name, "values", array, register.bits.shape)

    def _register(self, name: str) -> WarpRegister:
        if name not in self:
            raise RegisterError(f"no register {shown(name)}; declared are {', '.join(self) or 'none'}")
        return self._registers[name]

    def _lanes(self, name: str) -> npt.NDArray[np.bool_]:
        """Return the lanes of a register that have been written."""
        register = self._register(name)
        return np.ones(register.bits.shape, bool) if register.defined is None else register.defined


def _names(names: Sequence[str]) -> list[str]:
    listed = members(names, _MOST_NAMES)
    if listed is None or not all(isinstance(x, str) for x in listed):
        raise RegisterError(f"names are {shown(names)}; expected a sequence of strings")
    return listed


def _mask(name: str, where: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    mask = as_array(where, f"{name}: where", RegisterError)
    if mask.dtype != bool:
        raise RegisterError(f"{name}: where is {shown(where)}, of {mask.dtype}; expected bool")
    return _broadcast(name, "a mask", mask, shape)


def _broadcast(name: str, what: str, array: Array, shape: tuple[int, ...]) -> Array:
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise RegisterError(f"{name}: {what} {array.shape} must broadcast to {shape}") from None
