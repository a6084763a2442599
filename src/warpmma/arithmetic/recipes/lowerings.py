"""Recipes: how each instruction computes on each target.

`GENERATIONS` lists the targets that share their arithmetic, as in `isa`. `LOWERINGS` maps a group of instructions on a
generation to a unit and its parameters (read from ptxas's machine code). The evidence is a table of its own, in
`evidence`.

Sources: docs/specification/numerics.md names the publications, docs/specification/h200.md the measurements,
docs/specification/lowering.md the machine instructions that ptxas 13.0 emits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Literal, cast

from ..._arguments import is_integer
from ...errors import TargetError, shown
from ...formats import FORMATS
from ...isa import TARGETS, MatrixInstruction, check_target, parse_any
from .scopes import Scope, ScopedTable
from .units import FloatChains, FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, Recipe, Unit


def variants(*numbers: int) -> tuple[str, ...]:
    """Name the targets of some architectures: plain, family-specific and architecture-specific."""
    for number in numbers:
        if not is_integer(number):
            raise TargetError(f"an architecture is a number such as 90; got {shown(number)}")
    return tuple(target.name for target in TARGETS.values() if target.number in numbers)


GENERATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    name: tuple(target.name for target in TARGETS.values() if target.generation == name)
    for name in dict.fromkeys(target.generation for target in TARGETS.values())
})  # fmt: skip
"""Targets that share their arithmetic."""


@dataclass(frozen=True, kw_only=True)
class Core:
    """A fused dot-add unit of one generation.

    Attributes
    ----------
    operand_bytes : int
        Bytes of A that one step takes in a row; L follows from the width of the elements.
    fraction_bits : int
        F.
    floor_f32, floor_f16 : int
        Z, by the type of D.
    f32_bits : int
        Fraction bits of an f32 result.
    """

    operand_bytes: int
    fraction_bits: int
    floor_f32: int
    floor_f16: int
    f32_bits: int = 23

    def unit(self, d_type: str, element_bits: int) -> FusedDotAdd:
        """Parameters for one type of D and one width of element."""
        return FusedDotAdd(
            fraction_bits=self.fraction_bits,
            products=self.operand_bytes * 8 // element_bits,
            floor=self.floor_f32 if d_type == "f32" else self.floor_f16,
            result_bits=self.f32_bits if d_type == "f32" else 10,
            rounding="rz" if d_type == "f32" else "rn",
        )


# docs/specification/numerics.md 1.2 and 1.4. Z is (least exponent of D) - (F - 18). For fp8 with F = 13 it cannot be
# observed: products are multiples of 2^-32, which 2^(Z - 13) divides. There it is that of the other types.
_VOLTA = Core(operand_bytes=8, fraction_bits=23, floor_f32=-131, floor_f16=-19)
_AMPERE = Core(operand_bytes=16, fraction_bits=24, floor_f32=-132, floor_f16=-20)
_ADA_FP8 = Core(operand_bytes=16, fraction_bits=13, floor_f32=-132, floor_f16=-20, f32_bits=13)
_HOPPER = Core(operand_bytes=32, fraction_bits=25, floor_f32=-133, floor_f16=-21)
_HOPPER_FP8 = Core(operand_bytes=32, fraction_bits=13, floor_f32=-133, floor_f16=-21, f32_bits=13)
# docs/specification/numerics.md 1.3
_FP4 = GroupedDotAdd(group=16, fraction_bits=35, floor=-139, result_bits=23, rounding="rz")


@dataclass(frozen=True, kw_only=True)
class Lowering(Scope):
    """The machine instructions that a group is compiled to on some generations.

    Attributes
    ----------
    group, places, only
        As of `Scope`; the places are generations.
    machine : str
        What ptxas emits, in the words of its machine code; `{sp}` is replaced by the suffix of a sparse instruction.
    arithmetic : Core or Unit
        A core yields a fused dot-add for the instruction's types. The other units use the rounding, saturation and bit
        operation of the instruction.
    convert, order, accumulate
        As in `Recipe`.
    """

    machine: str
    arithmetic: Core | Unit
    convert: str | None = None
    order: Literal["ascending", "halves"] = "ascending"
    accumulate: Literal["within", "after"] = "within"


SINCE_AMPERE = ("Ampere", "Ada", "Hopper", "Blackwell", "RTX Blackwell")
_TURING_ON = ("Turing", *SINCE_AMPERE)
_HOPPER_ON = ("Hopper", "Blackwell", "RTX Blackwell")

LOWERINGS: tuple[Lowering, ...] = (
    Lowering(group="quad pair", places=("Volta", "Turing"), machine="HMMA.884", arithmetic=_VOLTA),
    Lowering(
        group="quad pair", places=SINCE_AMPERE, only=(("d_type", ("f32",)),),
        machine="software: FFMA and FADD", arithmetic=FloatChains(length=4, seed="zero"),
    ),
    Lowering(
        group="quad pair", places=SINCE_AMPERE, only=(("d_type", ("f16",)),),
        machine="software: FMUL, FFMA, FADD and a conversion to f16", arithmetic=FloatChains(length=2, seed="product"),
    ),
    Lowering(group="half", places=("Turing", "Ampere", "Ada"), machine="HMMA{sp}", arithmetic=_AMPERE),
    Lowering(group="half", places=_HOPPER_ON, machine="HMMA{sp}", arithmetic=_HOPPER),
    Lowering(group="fp8", places=("Ada",), machine="QMMA{sp}", arithmetic=_ADA_FP8),
    Lowering(
        group="fp8", places=("Hopper", "Blackwell"), arithmetic=_HOPPER,
        machine="software: conversion to f16, two HMMA{sp}, and an addition of C",
        convert="f16", order="halves", accumulate="after",
    ),
    Lowering(group="fp8", places=("RTX Blackwell",), machine="QMMA{sp}", arithmetic=_HOPPER),
    Lowering(group="f8f6f4", places=("RTX Blackwell",), machine="QMMA{sp}", arithmetic=_HOPPER),
    Lowering(group="mxf8f6f4", places=("RTX Blackwell",), machine="QMMA.SF{sp}", arithmetic=_HOPPER),
    Lowering(group="mxf4", places=("RTX Blackwell",), machine="OMMA.SF{sp}", arithmetic=_FP4),
    Lowering(group="mxf4nvf4", places=("RTX Blackwell",), machine="OMMA.SF{sp}", arithmetic=_FP4),
    Lowering(group="f64", places=SINCE_AMPERE, machine="DMMA", arithmetic=FmaChain()),
    Lowering(group="int8", places=_TURING_ON, machine="IMMA{sp}", arithmetic=IntegerSum(saturate=False)),
    Lowering(
        group="int4", places=("Turing", "Ampere", "Ada"), machine="IMMA{sp} on 4-bit elements",
        arithmetic=IntegerSum(saturate=False),
    ),
    Lowering(
        group="int4", places=_HOPPER_ON, machine="software: two IMMA{sp} on 8-bit elements, and an addition of C",
        arithmetic=IntegerSum(saturate=False),
    ),
    Lowering(group="b1", places=("Turing", "Ampere", "Ada"), machine="BMMA", arithmetic=Popcount(operation="and")),
    Lowering(
        group="b1", places=("Hopper",), machine="BMMA.AND; xor as two of them",
        arithmetic=Popcount(operation="and"),
    ),
    Lowering(
        group="b1", places=("Blackwell", "RTX Blackwell"), machine="software: IMMA on single bits",
        arithmetic=Popcount(operation="and"),
    ),
    # docs/specification/h200.md 3
    Lowering(group="wgmma half", places=("Hopper",), machine="HGMMA{sp}", arithmetic=_HOPPER),
    Lowering(group="wgmma fp8", places=("Hopper",), machine="QGMMA{sp}", arithmetic=_HOPPER_FP8),
    Lowering(group="wgmma int8", places=("Hopper",), machine="IGMMA{sp}", arithmetic=IntegerSum(saturate=False)),
    Lowering(group="wgmma b1", places=("Hopper",), machine="BGMMA", arithmetic=Popcount(operation="and")),
)  # fmt: skip
"""The lowering of each group of instructions on each generation."""


def _generations(record: MatrixInstruction) -> tuple[str, ...]:
    return _generations_of(record.targets)


@cache
def _generations_of(targets: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(TARGETS[target].generation for target in targets))


_TABLE = ScopedTable("LOWERINGS", LOWERINGS, _generations)


def lowering(instruction: str | MatrixInstruction, target: str) -> Lowering:
    """Return the lowering of an instruction on a target; raise `TargetError` if the target lacks it."""
    record = parse_any(instruction)
    check_target(record, target)
    return lowering_of(record, target)


@cache
def lowering_of(record: MatrixInstruction, target: str) -> Lowering:
    """Return the lowering of a record on a target that is known to have it."""
    return cast(Lowering, _TABLE.find(record, TARGETS[target].generation))


def recipe(instruction: str | MatrixInstruction, target: str) -> Recipe:
    """Return the recipe of an instruction on a target.

    Parameters
    ----------
    instruction : str, Instruction or WarpgroupInstruction
    target : str

    Returns
    -------
    Recipe

    Raises
    ------
    MnemonicError, TargetError
        No such instruction, or not on this target.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> recipe(i, "sm_80").unit.products, recipe(i, "sm_90").unit.products
    (8, 16)
    """
    record = parse_any(instruction)
    check_target(record, target)
    return recipe_of(record, target)


@cache
def recipe_of(record: MatrixInstruction, target: str) -> Recipe:
    """Return the recipe of a record on a target that is known to have it."""
    taken = lowering_of(record, target)
    unit = taken.arithmetic
    if isinstance(unit, Core):
        # Elements of 4 and 6 bits take a byte in these kinds; tf32 takes a whole register.
        width = max(8, FORMATS[taken.convert or record.a_type].bits)
        unit = unit.unit(record.d_type, width)
    elif isinstance(unit, FmaChain) and record.rounding:
        unit = replace(unit, rounding=record.rounding)  # type: ignore[arg-type]
    elif isinstance(unit, IntegerSum):
        unit = replace(unit, saturate=record.satfinite)
    elif isinstance(unit, Popcount):
        unit = replace(unit, operation=record.bit_op)  # type: ignore[arg-type]
    return Recipe(
        d=record.d_type, a=record.a_type, b=record.b_type, c=record.c_type, unit=unit,
        convert=taken.convert, order=taken.order, accumulate=taken.accumulate, scale=record.stype,
    )  # fmt: skip
