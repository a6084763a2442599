"""Recipes: how each instruction computes on each target, and how we know.

Three tables. `GENERATIONS` says which targets share their arithmetic. `PATHS` says what an instruction of a group
becomes on a generation: which unit with which parameters (ptxas's lowering, read from its machine code). `EVIDENCE`
says how we know, target by target; its rows are searched in order and the first that fits is the answer.

Sources: `../shared/facts/numerics.md` names the publications, `h200.md` the measurements, `lowering.jsonl` the machine
instructions that ptxas 13.0 emits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from .arithmetic.units import FloatChains, FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, Recipe, Unit
from .formats import FORMATS
from .instructions import Instruction, check_target

__all__ = [
    "EVIDENCE",
    "GENERATIONS",
    "PATHS",
    "REVERSED_UNSORTED",
    "UNDEFINED_MEASURED",
    "Evidence",
    "Path",
    "evidence",
    "group",
    "recipe",
    "reversed_unknown",
]


def _family(*numbers: int) -> tuple[str, ...]:
    return tuple(f"sm_{n}{suffix}" for n in numbers for suffix in ("", "f", "a"))


GENERATIONS: dict[str, tuple[str, ...]] = {
    "Volta": ("sm_70", "sm_72"),
    "Turing": ("sm_75",),
    "Ampere": ("sm_80", "sm_86", "sm_87", "sm_88"),
    "Ada": ("sm_89",),
    "Hopper": ("sm_90", "sm_90a"),
    "Blackwell": _family(100, 103, 110),
    "RTX Blackwell": _family(120, 121),
}
"""Targets that share their arithmetic."""

_GENERATION = {target: name for name, targets in GENERATIONS.items() for target in targets}


@dataclass(frozen=True, kw_only=True)
class Core:
    """A fused dot-add unit of one generation.

    Attributes
    ----------
    operand_bytes : int
        Bytes of A that one step takes in a row; L follows from the width of the elements.
    fraction_bits : int
        F.
    floor : dict
        Z, by the type of D.
    f32_bits : int
        Fraction bits of an f32 result.
    """

    operand_bytes: int
    fraction_bits: int
    floor: dict[str, int]
    f32_bits: int = 23

    def unit(self, d_type: str, element_bits: int) -> FusedDotAdd:
        """Parameters for one type of D and one width of element."""
        return FusedDotAdd(
            fraction_bits=self.fraction_bits,
            products=self.operand_bytes * 8 // element_bits,
            floor=self.floor[d_type],
            result_bits=self.f32_bits if d_type == "f32" else 10,
            rounding="rz" if d_type == "f32" else "rn",
        )


# numerics.md 1.2 and 1.4. Z is (least exponent of D) - (F - 18), but for fp8 on Ada, where it cannot be observed.
_VOLTA = Core(operand_bytes=8, fraction_bits=23, floor={"f32": -131, "f16": -19})
_AMPERE = Core(operand_bytes=16, fraction_bits=24, floor={"f32": -132, "f16": -20})
_ADA_FP8 = Core(operand_bytes=16, fraction_bits=13, floor={"f32": -132, "f16": -20}, f32_bits=13)
_HOPPER = Core(operand_bytes=32, fraction_bits=25, floor={"f32": -133, "f16": -21})
# numerics.md 1.3
_FP4 = GroupedDotAdd(group=16, fraction_bits=35, floor=-139, result_bits=23, rounding="rz")


@dataclass(frozen=True, kw_only=True)
class Path:
    """What the instructions of a group become on some generations.

    Attributes
    ----------
    group : str
        See `group`.
    generations : tuple of str
    machine : str
        What ptxas emits, in the words of its machine code; `{sp}` stands for what a sparse instruction adds.
    arithmetic : Core or Unit
        A core yields a fused dot-add for the types at hand. Of the other units, rounding, saturation and bit operation
        are the instruction's own.
    convert, order, accumulate
        As in `Recipe`.
    """

    group: str
    generations: tuple[str, ...]
    machine: str
    arithmetic: Core | Unit
    convert: str | None = None
    order: Literal["ascending", "halves"] = "ascending"
    accumulate: Literal["within", "after"] = "within"


_SINCE_AMPERE = ("Ampere", "Ada", "Hopper", "Blackwell", "RTX Blackwell")
_ALL = tuple(GENERATIONS)
_HOPPER_ON = ("Hopper", "Blackwell", "RTX Blackwell")

PATHS: tuple[Path, ...] = (
    Path(group="quad pair", generations=("Volta", "Turing"), machine="HMMA.884", arithmetic=_VOLTA),
    Path(
        group="quad pair f32", generations=_SINCE_AMPERE, machine="software: FFMA and FADD",
        arithmetic=FloatChains(length=4, seed="zero"),
    ),
    Path(
        group="quad pair f16", generations=_SINCE_AMPERE, machine="software: FMUL, FFMA, FADD and a conversion to f16",
        arithmetic=FloatChains(length=2, seed="product"),
    ),
    Path(group="half", generations=("Turing", "Ampere", "Ada"), machine="HMMA{sp}", arithmetic=_AMPERE),
    Path(group="half", generations=_HOPPER_ON, machine="HMMA{sp}", arithmetic=_HOPPER),
    Path(group="fp8", generations=("Ada",), machine="QMMA{sp}", arithmetic=_ADA_FP8),
    Path(
        group="fp8", generations=("Hopper", "Blackwell"), arithmetic=_HOPPER,
        machine="software: conversion to f16, two HMMA{sp}, and an addition of C",
        convert="f16", order="halves", accumulate="after",
    ),
    Path(group="fp8", generations=("RTX Blackwell",), machine="QMMA{sp}", arithmetic=_HOPPER),
    Path(group="f8f6f4", generations=("RTX Blackwell",), machine="QMMA{sp}", arithmetic=_HOPPER),
    Path(group="mxf8f6f4", generations=("RTX Blackwell",), machine="QMMA.SF{sp}", arithmetic=_HOPPER),
    Path(group="mxf4", generations=("RTX Blackwell",), machine="OMMA.SF{sp}", arithmetic=_FP4),
    Path(group="mxf4nvf4", generations=("RTX Blackwell",), machine="OMMA.SF{sp}", arithmetic=_FP4),
    Path(group="f64", generations=_SINCE_AMPERE, machine="DMMA", arithmetic=FmaChain()),
    Path(group="int8", generations=_ALL, machine="IMMA{sp}", arithmetic=IntegerSum(saturate=False)),
    Path(
        group="int4", generations=("Turing", "Ampere", "Ada"), machine="IMMA{sp} on 4-bit elements",
        arithmetic=IntegerSum(saturate=False),
    ),
    Path(
        group="int4", generations=_HOPPER_ON, machine="software: two IMMA{sp} on 8-bit elements, and an addition of C",
        arithmetic=IntegerSum(saturate=False),
    ),
    Path(group="b1", generations=("Turing", "Ampere", "Ada"), machine="BMMA", arithmetic=Popcount(operation="and")),
    Path(
        group="b1", generations=("Hopper",), machine="BMMA.AND; xor as two of them",
        arithmetic=Popcount(operation="and"),
    ),
    Path(
        group="b1", generations=("Blackwell", "RTX Blackwell"), machine="software: IMMA on single bits",
        arithmetic=Popcount(operation="and"),
    ),
)  # fmt: skip
"""What each group of instructions becomes on each generation."""


def group(instruction: Instruction) -> str:
    """Name the group of instructions that share a path: the types decide it, and the shape where one type has two.

    Examples
    --------
    >>> from .instructions import parse
    >>> group(parse("mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32"))
    'fp8'
    """
    types = {instruction.a_type, instruction.b_type}
    if instruction.shape == "m8n8k4" and types == {"f16"}:
        return "quad pair"
    if instruction.block_scale:
        return str(instruction.kind)
    return next(name for name, members in _GROUPS.items() if types <= members)


_GROUPS = {
    "half": {"f16", "bf16", "tf32"},
    "fp8": {"e4m3", "e5m2"},
    "f8f6f4": {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"},
    "f64": {"f64"},
    "int8": {"s8", "u8"},
    "int4": {"s4", "u4"},
    "b1": {"b1"},
}


@cache
def _path(instruction: Instruction, target: str) -> Path:
    check_target(instruction, target)
    names = (group(instruction), f"{group(instruction)} {instruction.d_type}")
    return next(p for p in PATHS if p.group in names and _GENERATION[target] in p.generations)


@cache
def recipe(instruction: Instruction, target: str) -> Recipe:
    """Return the recipe of an instruction on a target.

    Parameters
    ----------
    instruction : Instruction
    target : str

    Returns
    -------
    Recipe

    Raises
    ------
    TargetError
        Unknown target, or one that lacks the instruction.

    Examples
    --------
    >>> from .instructions import parse
    >>> i = parse("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    >>> recipe(i, "sm_80").unit.products, recipe(i, "sm_90").unit.products
    (8, 16)
    """
    path = _path(instruction, target)
    unit = path.arithmetic
    if isinstance(unit, Core):
        # Elements of 4 and 6 bits take a byte in these kinds; tf32 takes a whole register.
        width = max(8, FORMATS[instruction.a_type].bits)
        unit = unit.unit(instruction.d_type, width)
    elif isinstance(unit, FmaChain) and instruction.rounding:
        unit = replace(unit, rounding=instruction.rounding)  # type: ignore[arg-type]
    elif isinstance(unit, IntegerSum):
        unit = replace(unit, saturate=instruction.satfinite)
    elif isinstance(unit, Popcount):
        unit = replace(unit, operation=instruction.bit_op)  # type: ignore[arg-type]
    return Recipe(
        d=instruction.d_type, a=instruction.a_type, b=instruction.b_type, c=instruction.c_type, unit=unit,
        convert=path.convert, order=path.order, accumulate=path.accumulate, scale=instruction.stype,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """How a result is known.

    Attributes
    ----------
    kind : {"measured", "published", "derived"}
        Compared with hardware by this project; published, by others who measured or in PTX, which defines integers exactly;
        or concluded.
    source : str
        By whom, or from what.
    device : str
        The GPU that was measured, if any.
    compared : str
        How much was compared, and with which outcome.
    assumption : str
        What is taken for granted beyond the source; empty where nothing is.
    machine : str
        The machine instructions that ptxas makes of it.
    """

    kind: Literal["measured", "published", "derived"]
    source: str
    device: str = ""
    compared: str = ""
    assumption: str = ""
    machine: str = ""

    def __str__(self) -> str:
        on, given = f"on {self.device}" * bool(self.device), f"assuming {self.assumption}" * bool(self.assumption)
        return f"{self.kind}: " + "; ".join(part for part in (self.source, on, self.compared, given) if part)


@dataclass(frozen=True, kw_only=True)
class EvidenceRow:
    """Evidence for the instructions of a group on some targets, narrowed by attributes of the instruction.

    Attributes
    ----------
    group : str
    targets : tuple of str
    evidence : Evidence
    only : dict
        Attributes of `Instruction` and the values that fit.
    """

    group: str
    targets: tuple[str, ...]
    evidence: Evidence
    only: tuple[tuple[str, tuple[object, ...]], ...] = ()

    def fits(self, instruction: Instruction, target: str) -> bool:
        """Whether the row speaks of this instruction on this target."""
        return (
            self.group == group(instruction)
            and target in self.targets
            and all(getattr(instruction, name) in values for name, values in self.only)
        )


_XIE = "Xie et al., arXiv 2511.10909, and mmasim 2.1.1"
_KHATTAK = "Khattak and Mikaitis, arXiv 2512.07004"
_BOTH = f"{_XIE}; {_KHATTAK}"
_PTXAS = "machine code of ptxas 13.0"
_H200 = "H200, driver 580.159, CUDA 13.0"
_NAN64 = "NaN payloads as on an H200"
_SM100, _SM103, _SM110 = _family(100), _family(103), _family(110)
_SM120, _SM121 = _family(120), _family(121)
_SM90 = GENERATIONS["Hopper"]
_AMPERE_ON = tuple(t for g in _SINCE_AMPERE for t in GENERATIONS[g])


def _measured(compared: str) -> Evidence:
    return Evidence(kind="measured", source="this project", device=_H200, compared=f"{compared} outputs, 0 differences")


def _published(source: str, device: str, assumption: str = "") -> Evidence:
    return Evidence(kind="published", source=source, device=device, assumption=assumption)


def _derived(source: str, assumption: str) -> Evidence:
    return Evidence(kind="derived", source=source, assumption=assumption)


def _row(group: str, targets: tuple[str, ...], evidence: Evidence, **only: tuple[object, ...]) -> EvidenceRow:
    return EvidenceRow(group=group, targets=targets, evidence=evidence, only=tuple(only.items()))


def _like(group: str, targets: tuple[str, ...], other: str) -> EvidenceRow:
    """Make a row for targets with the machine instruction of one that was measured; nobody measured these."""
    return _row(group, targets, _derived(_PTXAS, f"that its matrix unit computes as {other}'s does"))


def _sparse_rows() -> tuple[EvidenceRow, ...]:
    """Nobody published a sparse instruction's arithmetic; on an H200 it was measured."""
    every = tuple(GENERATIONS[g] for g in _SINCE_AMPERE)
    stored = "that the unit takes stored products in their order, as many in a step as of dense ones, as on an H200"
    counts = {"half": "229,376", "fp8": "229,376", "int8": "65,536", "int4": "65,536"}
    measured = [_row(name, _SM90, _measured(count), sparse=(True,)) for name, count in counts.items()]
    elsewhere = [
        _row("fp8", _SM100 + _SM103 + _SM110, _derived(f"{_PTXAS}: the code of sm_90", stored), sparse=(True,)),
        *(
            _row(name, sum(every, ()), _derived(f"{_PTXAS}, and the dense instruction", stored), sparse=(True,))
            for name in ("half", "fp8", "f8f6f4", "mxf8f6f4")
        ),
        *(
            _row(
                name, _SM120 + _SM121,
                _derived(f"{_PTXAS}, and the dense instruction", "groups of 16 stored products"), sparse=(True,),
            )
            for name in ("mxf4", "mxf4nvf4")
        ),
    ]  # fmt: skip
    return (*measured, *elsewhere)


EVIDENCE: tuple[EvidenceRow, ...] = (
    *_sparse_rows(),
    # f16 m8n8k4
    _row(
        "quad pair", ("sm_70",),
        _derived("HMMA.884 of other accumulators", "an f16 C enters with f16's exponents where D is f32"),
        d_type=("f32",), c_type=("f16",),
    ),
    _row("quad pair", ("sm_70",), _published(_BOTH, "V100"), d_type=("f32",)),
    _row("quad pair", ("sm_70",), _published(_BOTH, "V100", "Z = -19, of a simulator"), d_type=("f16",)),
    _row("quad pair", ("sm_72",), _derived("sm_70", "that sm_72 computes as sm_70 does")),
    _row(
        "quad pair", ("sm_75",),
        _derived(_XIE, "F = 23 (its later version); the first version of the paper says 24"),
    ),
    _row("quad pair", _SM90, _measured("458,752")),
    _row(
        "quad pair", _AMPERE_ON,
        _derived(_PTXAS, "nothing but IEEE arithmetic; the same code was measured on an H200"),
    ),
    # f16, bf16, tf32
    _row("half", ("sm_75",), _published(_XIE, "T4")),
    _row("half", ("sm_80",), _published(_BOTH, "A100, A30")),
    _row("half", ("sm_86",), _published(_KHATTAK, "A2")),
    _like("half", ("sm_87", "sm_88"), "sm_80"),
    _row("half", ("sm_89",), _published(_BOTH, "RTX 4090, L40S, RTX 1000 Ada")),
    _row("half", _SM90, _measured("3,670,016")),
    _row("half", _SM100, _published(_BOTH, "B200")),
    _like("half", _SM103 + _SM110, "sm_100"),
    _row("half", _SM120, _published(_XIE, "RTX PRO 6000 Blackwell")),
    _like("half", _SM121, "sm_120"),
    # e4m3, e5m2
    _row("fp8", ("sm_89",), _published(_BOTH, "RTX 4090, L40S, RTX 1000 Ada")),
    _row("fp8", _SM90, _measured("2,621,440")),
    _row(
        "fp8", _SM100, _published(f"{_KHATTAK}: rows recognised as this software path", "B200"),
        k=(32,), a_type=("e4m3",), b_type=("e4m3",),
    ),
    _row(
        "fp8", _SM100, _published(f"{_KHATTAK}: rows recognised as this software path", "B200"),
        k=(32,), a_type=("e5m2",), b_type=("e5m2",),
    ),
    _row("fp8", _SM100, _derived(f"{_PTXAS}: the code of sm_90", "that HMMA computes as it is published for sm_100")),
    _like("fp8", _SM103 + _SM110, "sm_100"),
    _row("fp8", _SM120, _published(_XIE, "RTX PRO 6000 Blackwell")),
    _like("fp8", _SM121, "sm_120"),
    # e3m2, e2m3, e2m1 among them
    _row("f8f6f4", _SM120, _published(_XIE, "RTX PRO 6000 Blackwell")),
    _like("f8f6f4", _SM121, "sm_120"),
    # Block-scaled
    *(
        row
        for name in ("mxf8f6f4", "mxf4", "mxf4nvf4")
        for row in (
            _row(name, _SM120, _published(_XIE, "RTX PRO 6000 Blackwell")),
            _like(name, _SM121, "sm_120"),
        )
    ),
    # f64
    _row("f64", _SM90, _measured("786,432 or 1,572,864")),
    _row("f64", ("sm_80",), _published(_BOTH, "A100", _NAN64)),
    _row("f64", ("sm_89",), _published(_XIE, "RTX 4090", _NAN64)),
    _row("f64", _SM100, _published(_XIE, "B200", _NAN64), m=(8,)),
    _row("f64", _SM120, _published(_XIE, "RTX PRO 6000 Blackwell", _NAN64), m=(8,)),
    _row("f64", _AMPERE_ON, _derived(f"{_PTXAS}: DMMA.8x8x4, k ascending", f"that it is a chain of fma; {_NAN64}")),
    # Integers
    _row("int8", _SM90, _measured("131,072 or 262,144")),
    _row("int4", _SM90, _measured("131,072 or 262,144")),
    *(
        row
        for name in ("int8", "int4")
        for row in (
            _row(name, ("sm_75", *_AMPERE_ON), _published("PTX ISA 9.1: exact, wrapping", ""), satfinite=(False,)),
            _row(
                name, ("sm_75", *_AMPERE_ON),
                _derived("PTX ISA 9.1: the final value is saturated", "one clamp at the end, as measured on an H200"),
            ),
        )
    ),
    _row("b1", _SM90, _measured("8,192")),
    _row("b1", ("sm_75", *_AMPERE_ON), _published("PTX ISA 9.1: exact, wrapping", "")),
)  # fmt: skip
"""How we know, first fit first."""


@cache
def evidence(instruction: Instruction, target: str) -> Evidence:
    """Return how we know what an instruction computes on a target; see `warpmma.evidence`."""
    path = _path(instruction, target)
    row = next(row for row in EVIDENCE if row.fits(instruction, target))
    return replace(row.evidence, machine=path.machine.format(sp=".SP" if instruction.sparse else ""))


UNDEFINED_MEASURED: tuple[str, ...] = GENERATIONS["Hopper"]
"""Targets on which it was measured what the hardware makes of metadata that PTX leaves undefined."""

REVERSED_UNSORTED: tuple[tuple[str, tuple[str, ...]], ...] = (("bf16", ("Blackwell", "RTX Blackwell")),)
"""Types whose unordered metadata reaches the hardware unsorted, by generation.

From sm_100 on the hardware expects ordered metadata. For f16 and integers ptxas sorts them in software first; for
bf16 it does not, so what a reversed pair of indices does there is not known (machine code of ptxas 13.5).
"""


def reversed_unknown(instruction: Instruction, target: str) -> bool:
    """Whether descending metadata, which PTX allows, has an unknown effect on this target."""
    return any(instruction.a_type == name and _GENERATION[target] in where for name, where in REVERSED_UNSORTED)
