"""The instructions around `mma`: rows keyed by their PTX mnemonic, that work on register arrays `[..., lane]`.

An `Operation` is registers in, registers out, as an `mma` is; whoever drives it (a kernel written in Python, later a
reader of PTX) names it and brings arrays. The rows are in the other modules of this package; `operation` finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

from .._arrays import as_array, check_choice, is_integer
from ..errors import MnemonicError, OperandError
from ..isa.grammar import bare
from ..isa.mma import check_known, check_target
from ..isa.mma import since as targets_since
from ..isa.names import Door, explained, near
from ..registers import LANES

__all__ = ["Operation", "RegisterType", "operation", "operations", "unknown"]

Array = npt.NDArray[Any]
RegisterType = Literal["b16", "b32", "b64", "pred", "imm"]

_DTYPES = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "pred": np.bool_}
UNDEFINED = "the lane is not in its membermask, or a lane in it takes no part or has another one, or is no source"
_MODULES = ("comparisons", "floats", "conversions", "integers", "collectives", "matrices")


def register(type_: str) -> RegisterType:
    """Class of registers that hold a PTX type of bits, integers or one number: "b32" of "s32" and "f32"."""
    return cast(RegisterType, type_ if type_ in ("pred", "imm") else f"b{type_.lstrip('bfsu')}")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One instruction without memory operands.

    Attributes
    ----------
    mnemonic : str
        In the order of PTX's grammar.
    inputs, outputs : tuple of str
        Types of its operands: "b16", "b32", "b64" are registers as uint16, uint32, uint64; "pred" is bool; "imm" an
        immediate int.
    syntax : str
        Operands as PTX writes them: `d0`, `d1` are outputs, `a0`, `a1`, ... inputs.
    compute : callable
        From arrays `[..., 32]` (and ints) to a tuple of arrays `[..., 32]`.
    since : str
        Oldest target that has it. "a" or "f" at its end means that feature set, as of `mma`.
    ptx : (int, int)
        First PTX version.
    lanes : bool
        Whether lanes see each other's operands. `compute` then takes one more argument, `active`: which lanes execute
        it, bool `[..., 32]`.
    undefined : callable or None
        From the arguments of `compute` to bool `[..., 32]`: lanes to which PTX promises nothing. Of `lanes` only.
    only : tuple of str
        The targets that have it, where `since` says too much.
    input_types : tuple of str
        PTX types of the inputs, where they say more than their registers: "f32", "s16", "f16x2".
    source : str
        Section of the PTX ISA, or a measurement.
    """

    mnemonic: str
    inputs: tuple[RegisterType, ...]
    outputs: tuple[RegisterType, ...]
    syntax: str
    compute: Callable[..., tuple[Array, ...]] = field(repr=False, compare=False)
    since: str
    ptx: tuple[int, int]
    lanes: bool = False
    undefined: Callable[..., Array] | None = field(default=None, repr=False, compare=False)
    only: tuple[str, ...] = ()
    input_types: tuple[str, ...] = ()
    source: str = ""

    def __str__(self) -> str:
        return self.mnemonic

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """By its name, for `compute` may be no function of a module: what is unpickled is the row itself."""
        if _table().get(self.mnemonic) is self:
            return operation, (self.mnemonic,)
        return super().__reduce_ex__(protocol)

    @property
    def targets(self) -> tuple[str, ...]:
        """Targets that have it."""
        return self.only or targets_since(self.since)

    @property
    def types(self) -> tuple[str, ...]:
        """PTX types of the inputs: what a number among the operands of a kernel is a value of."""
        return self.input_types or self.inputs

    @property
    def membermask(self) -> bool:
        """Whether the last operand is a mask of the lanes that take part."""
        return self.lanes and bool(self.inputs) and ".aligned." not in self.mnemonic

    def __call__(
        self,
        *operands: npt.ArrayLike,
        active: npt.ArrayLike | None = None,
        undefined: Literal["error", "zero"] = "error",
    ) -> tuple[Array, ...]:
        """Compute; the leading dimensions of the operands broadcast.

        Parameters
        ----------
        *operands : array_like
        active : array_like of bool, optional
            Lanes that execute it, `[..., 32]`; by default all, but for those that their own membermask does not name.
            It matters where lanes see each other. Results of lanes that are not active mean nothing.
        undefined : {"error", "zero"}
            What becomes of `undefined_lanes`: an error, or results of 0.

        Returns
        -------
        tuple of ndarray
            One for each output, `[..., 32]`.

        Raises
        ------
        OperandError
            A wrong number of operands, dtype or number of lanes; or results that PTX leaves undefined.
        """
        check_choice(f"{self.mnemonic}: undefined", undefined, ("error", "zero"))
        arguments = self._arguments(operands, active)
        results = self.compute(*arguments)
        if self.undefined is not None and (bad := self.undefined(*arguments)).any():
            if undefined == "error":
                *place, lane = (int(i) for i in np.argwhere(bad)[0])
                warp = f"warp {tuple(place)}, " if place else ""
                raise OperandError(f"{self.mnemonic}: {warp}lane {lane}: PTX leaves the result undefined: {UNDEFINED}")
            results = tuple(np.where(bad, np.zeros_like(x), x) for x in results)
        return tuple(np.asarray(x, _DTYPES[kind]) for x, kind in zip(results, self.outputs, strict=True))

    def undefined_lanes(self, *operands: npt.ArrayLike, active: npt.ArrayLike | None = None) -> Array:
        """Active lanes whose results PTX leaves undefined, as bool `[..., 32]`: what a checker of hazards reports."""
        arguments = self._arguments(operands, active)
        if self.undefined is None:
            shapes = [x.shape for x in arguments if not isinstance(x, int)]
            return np.zeros(shapes[0] if shapes else (LANES,), bool)
        return self.undefined(*arguments)

    def _arguments(self, operands: tuple[npt.ArrayLike, ...], active: npt.ArrayLike | None) -> list[Array | int]:
        """Check the operands and broadcast them; where lanes see each other, `active` is the last."""
        if len(operands) != len(self.inputs):
            raise OperandError(
                f"{self.mnemonic} takes {len(self.inputs)} operands ({self.syntax}); got {len(operands)}"
            )
        given = [
            self._checked(x, kind, f"operand {i}")
            for i, (x, kind) in enumerate(zip(operands, self.inputs, strict=True))
        ]
        if self.lanes:
            given.append(self._named(given) if active is None else self._checked(active, "pred", "active"))
        arrays = [x for x in given if not isinstance(x, int)]
        try:
            shape = np.broadcast_shapes(*(x.shape for x in arrays))
        except ValueError:
            raise OperandError(f"{self.mnemonic}: {', '.join(str(x.shape) for x in arrays)} do not broadcast") from None
        return [x if isinstance(x, int) else np.broadcast_to(x, shape) for x in given]

    def _named(self, operands: list[Array | int]) -> Array:
        """Lanes that their membermask, the last operand, names; all where there is none."""
        if not self.membermask:
            return np.ones(LANES, bool)
        return np.asarray(np.asarray(operands[-1]) >> np.arange(LANES, dtype=np.uint32) & 1, bool)

    def _checked(self, operand: npt.ArrayLike, kind: RegisterType, name: str) -> Array | int:
        if kind == "imm":
            if not is_integer(operand):
                raise OperandError(f"{self.mnemonic}: {name} is {type(operand).__name__}; expected an immediate int")
            return int(operand)
        array = as_array(operand, f"{self.mnemonic}: {name}")
        if array.dtype != _DTYPES[kind] or array.shape[-1:] != (LANES,):
            expected = f"{np.dtype(_DTYPES[kind])} [..., {LANES}]"
            raise OperandError(f"{self.mnemonic}: {name} is {array.dtype} {array.shape}; expected {expected}")
        return array


def unknown(mnemonic: object, legal: Collection[str], door: Door, kind: str) -> MnemonicError:
    """Make the error of a name that is none of some mnemonics: with what it is, or with the nearest of them."""
    text = bare(mnemonic)
    if known := explained(text, door):
        return MnemonicError(f"{text!r} is no {kind} that is simulated: {known}")
    nearest = near(text, legal)
    return MnemonicError(f"{text!r} is no {kind} that is simulated" + (f". Nearest: {nearest}" if nearest else ""))


@cache
def _table() -> dict[str, Operation]:
    rows = (row for name in _MODULES for row in import_module(f".{name}", __package__).OPERATIONS)
    return {row.mnemonic: row for row in rows}


def operations(target: str | None = None) -> tuple[Operation, ...]:
    """List the operations of a target, or all of them."""
    if target is None:
        return tuple(_table().values())
    check_known(target)
    return tuple(row for row in _table().values() if target in row.targets)


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
    row = _table().get(name)
    if row is None:
        raise unknown(name, _table(), "operation", "operation")
    if target is not None:
        check_target(row, target)
    return row
