"""The ways to multiply float32: the meaning of each option, and the fused multiply-add without tensor cores.

1. "ieee": each element of D is one chain of `fma.rn.f32`: r = C, then r = fma(a, b, r), k ascending, each step rounded
   once to nearest even, as IEEE 754 defines it. The result is derived from that definition; the order of the sum is
   that of a plain kernel. A library chooses its order by shape, which may be another.
2. "tf32": A and B are rounded to tf32, to nearest even, and multiplied by the target's `mma` for tf32. PyTorch does
   this where TF32 is allowed (2.11 with cuBLAS of CUDA 13.0, recorded on an H200: `python -m lab.record.torch_rules`).
3. "tf32-truncated": the same `mma` reads the registers of f32 as they are. It ignores the low 13 bits, which truncates
   A and B toward zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._arguments import check_choice
from .._records import Record, Shown
from .._tracebacks import warn_caller
from ..arithmetic import Evidence, FmaChain, Recipe, evidence_of, recipe_of
from ..errors import OperandError
from ..formats import FORMATS, Format
from ..isa import TARGET_NAMES, MatrixInstruction
from ..layouts import Operand

Float32 = Literal["ieee", "tf32", "tf32-truncated"]


@dataclass(frozen=True, kw_only=True)
class Float32Way(Shown):
    """A way to multiply float32."""

    tensor_cores: bool  # by an instruction for tf32, and not `fma.rn.f32`
    rounded: bool  # A and B are rounded to tf32 before
    meaning: str


FLOAT32: Mapping[str, Float32Way] = MappingProxyType({
    "ieee": Float32Way(tensor_cores=False, rounded=False, meaning="a chain of fma.rn.f32 along k"),
    "tf32": Float32Way(
        tensor_cores=True, rounded=True,
        meaning="A and B rounded to tf32, to nearest even, as PyTorch with TF32 allowed",
    ),
    "tf32-truncated": Float32Way(tensor_cores=True, rounded=False, meaning="A and B truncated to tf32"),
})  # fmt: skip
"""The words that `float32` takes."""


@dataclass(frozen=True)
class FloatFma(Record):
    """The fused multiply-add `fma.rn.f32` as a step along k; it has the names of a dense `mma` that products read."""

    m = n = k = 1
    a_type = b_type = c_type = d_type = "f32"
    sparse = block_scale = satfinite = False
    scales_per_row, stype, targets = 0, None, TARGET_NAMES

    def __str__(self) -> str:
        return "fma.rn.f32"

    def format(self, operand: Operand) -> Format:
        """Return the number format of an operand."""
        return FORMATS["f32"]


FMA = FloatFma()
"""The instruction that multiplies float32 without tensor cores."""

ChainInstruction = MatrixInstruction | FloatFma
"""The instructions of a chain along k."""

_RECIPE = Recipe(d="f32", a="f32", b="f32", c="f32", unit=FmaChain())
_EVIDENCE = Evidence(
    kind="published", source="PTX ISA 9.1, 9.7.3: fma.rn.f32 is the fused multiply-add of IEEE 754",
    assumption="k ascending, as in a plain kernel; libraries choose their own order", machine="FFMA",
)  # fmt: skip


def recipe_on(instruction: ChainInstruction, target: str) -> Recipe:
    """Return how an instruction computes on a target that has it."""
    return _RECIPE if isinstance(instruction, FloatFma) else recipe_of(instruction, target)


def evidence_on(instruction: ChainInstruction, target: str) -> Evidence:
    """Return the evidence for what an instruction computes on a target that has it."""
    return _EVIDENCE if isinstance(instruction, FloatFma) else evidence_of(instruction, target)


def checked_float32(word: object, instruction: MatrixInstruction | None) -> Float32 | None:
    """Check the argument `float32`, beside an instruction that was named."""
    if word is None:
        return None
    check_choice("float32", word, tuple(FLOAT32))
    if instruction is not None and instruction.a_type == "tf32" and not FLOAT32[str(word)].tensor_cores:
        others = " or ".join(repr(name) for name, way in FLOAT32.items() if way.tensor_cores)
        raise OperandError(
            f"{instruction}: float32={word!r} uses no tensor cores; expected {others}, or no instruction"
        )
    return word  # type: ignore[return-value]


def float32_without_a_word() -> Float32:
    """Return what float32 means by default, with a warning; the next release raises instead."""
    listed = "; ".join(f"float32={name!r}: {way.meaning}" for name, way in FLOAT32.items())
    warn_caller(
        f"float32 operands without float32= or instruction= are truncated to tf32. Say what is meant ({listed}); the "
        "next release raises an error here",
        DeprecationWarning,
    )
    return "tf32-truncated"


def to_tf32(codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Round codes of f32 to tf32, to nearest even, as `cvt.rn.tf32.f32` does; NaN stays NaN (rule 2)."""
    # Beyond the largest number the carry makes infinity; only of a NaN could it reach the sign.
    nearest = (codes + (np.uint32(0xFFF) + ((codes >> np.uint32(13)) & np.uint32(1)))) & np.uint32(0xFFFFE000)
    is_nan = (codes & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(is_nan, np.uint32(0x7FFFE000), nearest)
