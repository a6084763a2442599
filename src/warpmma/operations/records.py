"""Rows: the records of all instructions except `mma` and `wgmma`, with a class per kind, that the machine executes.

The machine dispatches on the class: an `Operation` maps registers to registers; instructions on memory and threads are
in `effects`, `atomics`, `fences`, `mbarrier_forms` and others.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._arguments import check_choice, is_integer
from .._arrays import Array, as_array
from .._text import counted
from ..arithmetic import Evidence
from ..errors import OperandError
from ..isa import FormInstruction, OperandSpec, Signature
from ..isa import RegisterType as RegisterType
from ..isa import register_type as register_type
from ..registers import LANES
from .carriage import Carriage, whole
from .measurements import elsewhere

Direction = Literal["load", "store"]
MemoryOrder = Literal["weak", "relaxed", "acquire", "release", "acq_rel", "sc"]
MemoryScope = Literal["cta", "cluster", "gpu", "sys"]

DTYPES: Mapping[str, Any] = MappingProxyType({"b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "pred": np.bool_})
"""NumPy types of the bits of registers, by class."""

CARRY = OperandSpec(names=("carry",), type="pred", kind="pred", implicit=True)
"""The carry, which no text names."""

UNDEFINED = "the lane is not in its membermask, or a lane in it takes no part or has another one, or is not a source"


@dataclass(frozen=True, kw_only=True)
class InstructionRow(FormInstruction, ABC):
    """One instruction; mnemonic, targets, version of PTX and convergence are those of `isa.FormInstruction`.

    Attributes
    ----------
    evidence : Evidence
        How we know what it does, on the GPU where that is known best.
    left_open : str
        What PTX's text leaves open, if anything: it was seen on the GPU that was measured.
    machine : callable or None
        From a target to the machine instructions that ptxas makes of it, where bits depend on them.
    """

    evidence: Evidence
    left_open: str = ""
    machine: Callable[[str], str] | None = field(default=None, repr=False, compare=False)

    @property
    def source(self) -> str:
        """Section of the PTX ISA, and whether it was measured: the evidence in a few words."""
        how = {"measured": f"; measured on an {self.evidence.device[:4]}", "derived": "; derived"}
        return self.evidence.source + how.get(self.evidence.kind, "")

    def known(self, target: str) -> Evidence:
        """How we know what it does on a target that has it."""
        here = elsewhere(self.evidence, self.left_open, target)
        return here if self.machine is None else replace(here, machine=self.machine(target))


@dataclass(frozen=True, kw_only=True)
class Operation(InstructionRow):
    """One instruction without memory operands.

    Attributes
    ----------
    inputs, outputs : tuple of str
        Types of its operands: "b16", "b32", "b64" are registers as uint16, uint32, uint64; "pred" is bool; "imm" an
        immediate int.
    compute : callable
        From arrays `[..., 32]` (and ints) to a tuple of arrays `[..., 32]`.
    lanes : bool
        Whether lanes see each other's operands. `compute` then takes one more argument, `active`: which lanes execute
        it, bool `[..., 32]`.
    undefined : callable or None
        From the arguments of `compute` to bool `[..., 32]`: lanes to which PTX promises nothing. Of `lanes` only.
    input_types : tuple of str
        PTX types of the inputs, where they say more than their registers: "f32", "s16", "f16x2".
    travels : bool
        Whether what a lane has not written may pass through to the result, unread: `mov`.
    native : callable or None
        What the native engine has instead of `compute`: the same of the same, and faster.
    on_target : callable or None
        From a target to what computes it there instead of `compute` and `native`, or to None if these do: GPUs may have
        other tables of the special-function unit.
    needed : callable or None
        From the operands' arrays to a tuple, for each input, of bool `[..., 32]`: lanes whose value counts. None where
        all do.
    passes : callable or None
        From the operands' arrays to the lane from which each lane's first result comes, int `[..., 32]`: what that lane
        has not written of the first input passes through, unread, as with `travels`. `shfl`'s.
    carriage : callable
        Which bits of its results are poison if some bits of its operands are (`carriage`).
    masked : bool
        Whether the last input is a mask of the lanes that take part.
    reads_carry, writes_carry : bool
        Whether the last input, or the last output, is the carry, which PTX does not write among the operands.
    vectors : (int, int)
        How many outputs, and how many inputs, are written in braces as one vector; 0 for none.
    selectors : tuple of str
        What PTX writes behind the destination and the operands of a video instruction, such as "b0", or "-" before.
    output_types : tuple of str
        PTX types of the results, where they say more than their registers.
    wider : bool
        Whether its registers may be wider than its types: `cvt`.
    variant : callable or None
        From a row and what is written behind its operands to the row of that, or to None where PTX has none: bytes,
        halves and signs of video instructions, in the order of `selectors`; () for the second destination of `setp`.
    sinks : tuple of int
        Results that `_` may replace.
    both : bool
        Whether the second result must be written.
    symbols, specials, numbers : bool
        Whether the name of a variable, as its address, and a special register may stand for an operand: `mov`; and
        whether a number may: not in video instructions of elements.
    """

    inputs: tuple[RegisterType, ...]
    outputs: tuple[RegisterType, ...]
    compute: Callable[..., tuple[Array, ...]] = field(repr=False, compare=False)
    lanes: bool = False
    undefined: Callable[..., Array] | None = field(default=None, repr=False, compare=False)
    input_types: tuple[str, ...] = ()
    travels: bool = False
    needed: Callable[..., tuple[Array, ...]] | None = field(default=None, repr=False, compare=False)
    passes: Callable[..., Array] | None = field(default=None, repr=False, compare=False)
    native: Callable[..., tuple[Array, ...]] | None = field(default=None, repr=False, compare=False)
    on_target: Callable[[str], Callable[..., tuple[Array, ...]] | None] | None = field(
        default=None, repr=False, compare=False
    )
    reads_carry: bool = False
    writes_carry: bool = False
    vectors: tuple[int, int] = (0, 0)
    selectors: tuple[str, ...] = ()
    carriage: Carriage = field(default=whole, repr=False, compare=False)
    masked: bool = False
    output_types: tuple[str, ...] = ()
    wider: bool = False
    variant: Callable[[Operation, tuple[str, ...]], Operation | None] | None = field(
        default=None, repr=False, compare=False
    )
    sinks: tuple[int, ...] = ()
    both: bool = False
    symbols: bool = False
    specials: bool = False
    numbers: bool = True

    @property
    def types(self) -> tuple[str, ...]:
        """PTX types of the inputs: what a number among the operands of a kernel is a value of."""
        return self.input_types or self.inputs

    @property
    def membermask(self) -> bool:
        """Whether the last operand is a mask of the lanes that take part."""
        return self.convergence == "mask"

    @cached_property
    def signature(self) -> Signature:
        """Its operands: `d0`, `d1` are results, `a0`, `a1`, ... are read."""
        shown = len(self.outputs) - self.writes_carry, len(self.inputs) - self.reads_carry
        selectors = chain(self.selectors, repeat(""))
        types = self.output_types or self.outputs
        made = self._specs("d", self.outputs[: shown[0]], types, self.vectors[0], selectors)
        if self.writes_carry:
            made.append(replace(CARRY, role="result"))
        made += self._specs("a", self.inputs[: shown[1]], self.types, self.vectors[1], selectors)
        if self.masked:
            made[-1] = replace(made[-1], role="mask")
        return (*made, *[CARRY] * self.reads_carry)

    def _specs(
        self, letter: str, kinds: Sequence[RegisterType], types: Sequence[str], vector: int, selectors: Iterator[str]
    ) -> list[OperandSpec]:
        """Describe the results, or what is read: each of one register, or one vector."""
        result = letter == "d"
        more: dict[str, Any] = {"wider": self.wider, "role": "result" if result else "source"}
        if not result:
            more |= {"symbol": self.symbols, "special": self.specials, "number": self.numbers}
        names = tuple(f"{letter}{i}" for i in range(len(kinds)))
        if vector:
            more |= {"sink": "element"} if result else {"symbol": False}
            return [OperandSpec(names=names, type=types[0], kind=kinds[0], braces="always", **more)]
        found = []
        for i, (name, kind, type_) in enumerate(zip(names, kinds, types, strict=False)):
            if result:
                more |= {
                    "sink": "alone" if i in self.sinks else "",
                    "paired": i > 0,
                    "optional": i > 0 and not self.both,
                }
            found.append(OperandSpec(names=(name,), type=type_, kind=kind, selector=next(selectors), **more))
        return found

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
            Lanes that execute it, `[..., 32]`; by default all, except those that their own membermask does not name.
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
        return tuple(np.asarray(x, DTYPES[kind]) for x, kind in zip(results, self.outputs, strict=True))

    def for_target(self, target: str) -> Operation:
        """Return the operation as a target computes it: itself, unless GPUs differ."""
        function = None if self.on_target is None else self.on_target(target)
        return self if function is None else replace(self, compute=function, native=None, on_target=None)

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
                f"{self.mnemonic} takes {counted(len(self.inputs), 'operand')} ({self.syntax}); got {len(operands)}"
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
        if array.dtype != DTYPES[kind] or array.shape[-1:] != (LANES,):
            expected = f"{np.dtype(DTYPES[kind])} [..., {LANES}]"
            raise OperandError(f"{self.mnemonic}: {name} is {array.dtype} {array.shape}; expected {expected}")
        return array
