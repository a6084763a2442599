"""Experiments that settle what is derived: on a GPU of their target, one run says which answer it was.

1. An experiment has a question, instructions, and candidates: arithmetics that differ in what is asked. Its operands
   are pieces of work in which each two candidates differ somewhere; that there are such is shown without a GPU.
2. The answer is the candidate that equals the GPU in every output, of all instructions that are asked. If it is none,
   the answer says so, and in how many outputs each candidate differs.
3. Some questions have one candidate only, tables say: the answer is whether the GPU equals the model on all operands.
   They name functions or operations, which are compared as `compare` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...arithmetic import FusedDotAdd, evidence_of, group, recipe
from ...formats import FORMATS
from ...isa import TARGETS, MatrixInstruction, instructions
from .candidates import (
    Candidates,
    chains_of,
    chunks_of,
    clamps_of,
    depths_of,
    fp8_of,
    groups_of,
    half_results_of,
    mixed_c_of,
    separating,
    units_of,
    zeros_of,
)
from .matrix_cases import Drawn, hardware_product, matrix_groups
from .rooms import Room
from .tile_kernels import variants_of

__all__ = ["EXPERIMENTS", "Answer", "Experiment", "answer", "experiments_of"]


@dataclass(frozen=True, kw_only=True)
class Experiment(Shown):
    """A question that a GPU of one of the targets answers.

    Attributes
    ----------
    name : str
    question : str
    targets : tuple of str
    asked : callable
        From a target to its instructions; or to a pattern of functions and operations.
    candidates : callable or None
        From an instruction and a target to candidates, the model's first; None with a pattern.
    """

    name: str
    question: str
    targets: tuple[str, ...]
    asked: Callable[[str], tuple[MatrixInstruction, ...]] | str
    candidates: Candidates | None = None


def _with(**wanted: Any) -> Callable[[str], tuple[MatrixInstruction, ...]]:
    """Return what lists a target's `mma` of certain groups, and with certain values of other fields."""
    groups = wanted.pop("groups")

    def listed(target: str) -> tuple[MatrixInstruction, ...]:
        return tuple(
            i for i in instructions(target)
            if group(i) in groups and all(getattr(i, name) in values for name, values in wanted.items())
            and evidence_of(i, target).kind != "measured"
        )  # fmt: skip

    return listed


def _longer(asked: Callable[[str], tuple[MatrixInstruction, ...]]) -> Callable[[str], tuple[MatrixInstruction, ...]]:
    """Leave out instructions for which there is one candidate only."""
    return lambda target: tuple(i for i in asked(target) if len(chunks_of(i, target)) > 1)


def _of_fused(asked: Callable[[str], tuple[MatrixInstruction, ...]]) -> Callable[[str], tuple[MatrixInstruction, ...]]:
    """Leave out instructions that are software, whose zeros are IEEE's."""

    def fused(target: str) -> tuple[MatrixInstruction, ...]:
        how = {i: recipe(i, target) for i in asked(target)}
        return tuple(i for i, x in how.items() if isinstance(x.unit, FusedDotAdd) and x.accumulate == "within")

    return fused


def _signed(asked: Callable[[str], tuple[MatrixInstruction, ...]]) -> Callable[[str], tuple[MatrixInstruction, ...]]:
    """Leave out products of unsigned integers, whose sums never decrease: when they are clamped does not matter."""
    return lambda target: tuple(i for i in asked(target) if "s" in (i.a_type[0], i.b_type[0]))


def _numbered(*numbers: int) -> tuple[str, ...]:
    return tuple(x.name for x in TARGETS.values() if x.number in numbers)


_NOT_HOPPER = tuple(x.name for x in TARGETS.values() if x.generation != "Hopper")
_SINCE_AMPERE = tuple(x.name for x in TARGETS.values() if x.number >= 80 and x.generation != "Hopper")

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType({
    x.name: x for x in (
        Experiment(
            name="turing-quad-depth", targets=_numbered(75), asked=_with(groups=("quad pair",), c_type=("f32",)),
            question="how many fraction bits do addends of Turing's m8n8k4 with f16 keep: F = 23, or 24?",
            candidates=depths_of,
        ),
        Experiment(
            name="quad-half-results", targets=_numbered(70, 72, 75),
            asked=_with(groups=("quad pair",), d_type=("f16",)),
            question="how does m8n8k4 make results of f16: F, Z and the rounding?", candidates=half_results_of,
        ),
        Experiment(
            name="quad-mixed-c", targets=_numbered(70, 72, 75),
            asked=_with(groups=("quad pair",), d_type=("f32",), c_type=("f16",)),
            question="does a C of f16 enter m8n8k4's sums of f32 with its own exponents?", candidates=mixed_c_of,
        ),
        Experiment(
            name="xavier-as-volta", targets=_numbered(72), asked=_with(groups=("quad pair",), c_type=("f32",)),
            question="does sm_72 compute as sm_70 does?", candidates=depths_of,
        ),
        Experiment(
            name="quad-software", targets=_SINCE_AMPERE, asked=_with(groups=("quad pair",)),
            question="is m8n8k4 with f16 software, chains of fma in f32?", candidates=units_of,
        ),
        Experiment(
            name="matrix-unit", targets=_numbered(87, 88, 103, 110, 121),
            asked=_with(groups=("half",), sparse=(False,)),
            question="as which generation does this target's unit for f16, bf16 and tf32 compute?", candidates=units_of,
        ),
        Experiment(
            name="fp8-unit", targets=_numbered(121), asked=_with(groups=("fp8",), sparse=(False,)),
            question="as which generation does this target's unit for fp8 compute?", candidates=units_of,
        ),
        Experiment(
            name="fp8-software", targets=_numbered(100, 103, 110), asked=_with(groups=("fp8",), sparse=(False,)),
            question="are fp8's m16n8k16 and mixed types software around the unit for f16?", candidates=fp8_of,
        ),
        Experiment(
            name="sparse-chunks", targets=_NOT_HOPPER,
            asked=_longer(_with(groups=("half", "fp8", "f8f6f4", "mxf8f6f4"), sparse=(True,))),
            question="how many stored products of a sparse A make up a step?", candidates=chunks_of,
        ),
        Experiment(
            name="sparse-groups", targets=_numbered(120, 121), asked=_with(groups=("mxf4", "mxf4nvf4"), sparse=(True,)),
            question="which stored products of a sparse mxf4 or mxf4nvf4 make up a group?", candidates=groups_of,
        ),
        Experiment(
            name="mxf4-groups", targets=_numbered(120, 121), asked=_with(groups=("mxf4", "mxf4nvf4"), sparse=(False,)),
            question="which products of mxf4 and mxf4nvf4 make up a group?", candidates=groups_of,
        ),
        Experiment(
            name="zeros", targets=_NOT_HOPPER,
            asked=_of_fused(_with(groups=("quad pair", "half", "fp8", "f8f6f4"))),
            question="which sign has a result that is zero?", candidates=zeros_of,
        ),
        Experiment(
            name="mxf4-zeros", targets=_numbered(120, 121), asked=_with(groups=("mxf8f6f4", "mxf4", "mxf4nvf4")),
            question="which sign has a zero that a block-scaled instruction gives?", candidates=zeros_of,
        ),
        Experiment(
            name="clamps", targets=_NOT_HOPPER, asked=_signed(_with(groups=("int8", "int4"), satfinite=(True,))),
            question="is a sum of .satfinite clamped once, at the end?", candidates=clamps_of,
        ),
        Experiment(
            name="f64-order", targets=_SINCE_AMPERE, asked=_with(groups=("f64",)),
            question="is a product of f64 a chain of fma with k ascending?", candidates=chains_of,
        ),
        Experiment(
            name="function-tables", targets=_NOT_HOPPER, asked=".approx.",
            question="does the special-function unit have an H200's tables?",
        ),
        Experiment(
            name="packed-ex2", targets=_numbered(103), asked="ex2.approx*x2",
            question="does the packed ex2 give what two of one element give?",
        ),
        Experiment(
            name="nan-and-flushing", targets=_NOT_HOPPER, asked="[acdfmns]*.f*",
            question="what becomes of NaN, and of results just below the least normal number?",
        ),
    )
})  # fmt: skip
"""Every experiment, by name."""


def experiments_of(target: str) -> list[Experiment]:
    """List the experiments of a target."""
    return [x for x in EXPERIMENTS.values() if target in x.targets and (isinstance(x.asked, str) or x.asked(target))]


@dataclass(frozen=True, kw_only=True)
class Answer(Shown):
    """What a GPU answers for one instruction.

    Attributes
    ----------
    instruction : str
    equal : tuple of str
        Answers of the candidates that equal the GPU in all outputs.
    differences : dict of str to int
        Of every candidate.
    outputs : int
    """

    instruction: str
    equal: tuple[str, ...]
    differences: Mapping[str, int]
    outputs: int


def answer(room: Room, experiment: Experiment, target: str, seed: int = 0) -> Iterator[Answer]:
    """Run an experiment with candidates on a GPU, instruction by instruction.

    Raises
    ------
    UnsupportedError
        The driver refuses.
    """
    assert experiment.candidates is not None and not isinstance(experiment.asked, str)
    for record in experiment.asked(target):
        (of,) = matrix_groups(target, [record])
        candidates = experiment.candidates(record, target)
        pieces, _ = separating(of, candidates, seed)
        wrong = {x.answer: 0 for x in candidates}
        outputs = 0
        for _, drawn in pieces:
            for variant in variants_of(record):
                got = _got(room, record, variant, drawn)
                outputs += got.size
                for x in candidates:
                    wrong[x.answer] += int((x.compute(drawn, of.k, of.scales, of.recipe.c) != got).sum())
        equal = tuple(name for name, count in wrong.items() if not count)
        yield Answer(instruction=str(record), equal=equal, differences=wrong, outputs=outputs)


def _got(room: Room, record: MatrixInstruction, variant: Any, drawn: Drawn) -> Array:
    d, pitch = hardware_product(room, record, variant, drawn, 0)
    got = np.empty((drawn.side, pitch), FORMATS[record.type("D")].code_dtype)
    room.get(d, got)
    return got[:, : drawn.side]
