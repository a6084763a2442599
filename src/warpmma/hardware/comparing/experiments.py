"""Experiments that settle what is derived: on a GPU of their target, one run says which answer it was.

1. An experiment has a question, instructions, and candidates: arithmetics that differ in what is asked. The first is
   the model's. Its operands are pieces of work in which all candidates differ from each other somewhere; that there are
   such is shown without a GPU (`separating`).
2. The answer is the candidate that equals the GPU in every output, of all instructions that are asked. If it is none,
   the answer says so, and in how many outputs each candidate differs.
3. Some questions have one candidate only, tables say: the answer is whether the GPU equals the model on all operands.
   They name functions or operations, which are compared as `compare` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...arithmetic import (
    FusedDotAdd,
    GroupedDotAdd,
    Recipe,
    dot_chain,
    engines,
    evidence_of,
    fused_steps,
    group,
    recipe,
    reference_trace,
)
from ...errors import UnsupportedError
from ...formats import FORMATS, FloatFormat, floating
from ...isa import TARGETS, Instruction, MatrixInstruction, instructions
from ..generators import styles
from .matrix_cases import Drawn, MatrixGroup, draw, hardware_product, matrix_groups
from .rooms import Room
from .tile_kernels import variants_of

__all__ = ["EXPERIMENTS", "Answer", "Candidate", "Experiment", "answer", "experiments_of", "separating"]

SIDE = 64  # rows and columns of a piece of work
_ZERO_SIDE = 8  # of one whose results are zeros
_ROUNDS = 6  # how often every style is tried

Zero = Literal["plus", "of negative zeros", "of the sum"]


@dataclass(frozen=True, kw_only=True)
class Candidate(Shown):
    """An arithmetic that may be the GPU's.

    Attributes
    ----------
    answer : str
    recipe : Recipe
    cut : int
        Products of each instruction of a chain that has the same result; 0 where one has them all.
    order : tuple of int
        The order in which products are taken; empty where it is ascending.
    zero : {"plus", "of negative zeros", "of the sum"}
        The sign of a result that is zero: +0; that of its addends if all are negative zeros; that of the sum before it
        was rounded, too.
    """

    answer: str
    recipe: Recipe
    cut: int = 0
    order: tuple[int, ...] = ()
    zero: Zero = "plus"

    def compute(self, drawn: Drawn, k: int, scales: int, c_format: str) -> Array:
        """Compute D."""
        given = drawn.arguments()
        if self.order:
            order = list(self.order)
            given["a"] = given["a"][:, :, order]
            if drawn.chosen is None:
                given["b"] = given["b"][:, order]
            else:
                given["chosen"] = given["chosen"][:, :, order]
        if self.recipe.c != c_format:
            fmt, wide = floating(c_format), floating(self.recipe.c)
            given["c"] = wide.encode(fmt.decode(given["c"])).astype(wide.code_dtype)
        length = self.cut or k
        if self.cut and "chosen" in given:
            given["chosen"] = given["chosen"] % (2 * length)
        d = _computed(self.recipe, given, length, scales * length // k)
        fmt = FORMATS[self.recipe.d]
        if self.zero != "plus" and isinstance(fmt, FloatFormat):
            places = np.argwhere((d & ~d.dtype.type(fmt.sign_bit)) == 0)
            for row, column in places:
                if self._negative(given, int(row), int(column)):
                    d[row, column] = fmt.sign_bit
        return d

    def _negative(self, given: Mapping[str, Array], row: int, column: int) -> bool:
        a, c = given["a"][0, row], int(given["c"][0, row, column])
        met = given["chosen"][0, row] if "chosen" in given else np.arange(len(a))
        b = given["b"][0, met, column]
        more = ()
        if "scale_a" in given:
            more = given["scale_a"][0, row].tolist(), given["scale_b"][0, :, column].tolist()
        of_a, of_b = (floating(x) for x in (self.recipe.a, self.recipe.b))
        signs = ((a & of_a.sign_bit) != 0) ^ ((b & of_b.sign_bit) != 0)
        zeros = ((a & ~a.dtype.type(of_a.sign_bit)) == 0) | ((b & ~b.dtype.type(of_b.sign_bit)) == 0)
        if bool((signs & zeros).all()) and c == floating(self.recipe.c).sign_bit:
            return True
        if self.zero == "of negative zeros":
            return False
        steps = reference_trace(self.recipe, a.tolist(), b.tolist(), c, *more)
        return any(step.sum.kind == "finite" and bool(step.sum.sign) for step in steps)


def _computed(how: Recipe, given: dict[str, Array], k: int, scales: int) -> Array:
    """Compute by the native engine if it is there and does such a recipe."""
    if "native" in engines():
        with suppress(UnsupportedError):
            return dot_chain(how, **given, k=k, scales=scales, engine="native")[0]
    return dot_chain(how, **given, k=k, scales=scales, engine="numpy")[0]


Candidates = Callable[[MatrixInstruction, str], list[Candidate]]


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


def _varied(record: MatrixInstruction, target: str, **units: Any) -> Recipe:
    own = recipe(record, target)
    return replace(own, unit=replace(own.unit, **units))


def _fused(record: MatrixInstruction, target: str) -> FusedDotAdd:
    unit = recipe(record, target).unit
    assert isinstance(unit, FusedDotAdd)
    return unit


def _depths(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List F beside the model's."""
    unit = _fused(record, target)
    return [
        Candidate(answer=f"F = {f}", recipe=_varied(record, target, fraction_bits=f))
        for f in (unit.fraction_bits, unit.fraction_bits + 1, unit.fraction_bits - 1, unit.fraction_bits + 2)
    ]


def _half_results(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List F, Z and the rounding of results of f16."""
    unit = _fused(record, target)
    return [
        Candidate(answer=f"F = {unit.fraction_bits}, Z = {unit.floor}, to nearest", recipe=recipe(record, target)),
        Candidate(answer="F is one more", recipe=_varied(record, target, fraction_bits=unit.fraction_bits + 1)),
        Candidate(answer="F is one less", recipe=_varied(record, target, fraction_bits=unit.fraction_bits - 1)),
        Candidate(answer="Z is one more", recipe=_varied(record, target, floor=unit.floor + 1)),
        Candidate(answer="toward zero", recipe=_varied(record, target, rounding="rz")),
    ]


def _mixed_c(record: MatrixInstruction, target: str) -> list[Candidate]:
    own = recipe(record, target)
    return [
        Candidate(answer="C enters with the exponents of f16", recipe=own),
        Candidate(answer="C is converted to f32 first", recipe=replace(own, c="f32")),
    ]


def _units(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List the units of all generations that have the instruction, the model's first."""
    found: dict[Recipe, str] = {}
    for other in (target, *sorted(record.targets, key=lambda x: TARGETS[x].number)):
        how = recipe(record, other)
        found.setdefault(how, TARGETS[other].generation)
    return [Candidate(answer=f"as {generation} computes", recipe=how) for how, generation in found.items()]


def _chunks(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List how many stored products make up a step, and which."""
    own, stored = recipe(record, target), record.layout("A").shape[-1]
    unit = own.unit
    found: dict[tuple[tuple[int, ...], ...], Candidate] = {}
    of_steps = [(x, own.order) for x in (unit.products, 2 * unit.products, unit.products // 2, unit.products // 4)]
    of_steps.append((unit.products, "halves" if own.order == "ascending" else "ascending"))
    for products, order in of_steps:
        made = tuple(map(tuple, fused_steps(order, max(1, products), stored)))
        text = f"{len(made[0])} stored products in a step" + (", by halves of four" if order == "halves" else "")
        how = replace(own, order=order, unit=replace(unit, products=max(1, products)))
        found.setdefault(made, Candidate(answer=text, recipe=how))
    return list(found.values())


def _zeros(record: MatrixInstruction, target: str) -> list[Candidate]:
    own = recipe(record, target)
    found = [
        Candidate(answer="a result that is zero is +0", recipe=own),
        Candidate(answer="-0 where all addends are -0", recipe=own, zero="of negative zeros"),
    ]
    if _least_negative(own) is not None:
        found.append(Candidate(answer="-0 where a negative sum rounds to zero, too", recipe=own, zero="of the sum"))
    return found


def _least_negative(how: Recipe) -> tuple[int, int, int] | None:
    """Return exponents of a factor of A and one of B, and of each scale, whose product rounds to zero; if there are."""
    a, b, d = (floating(x) for x in (how.a, how.b, how.d))
    wanted = d.emin - d.fraction_bits - 3  # below half of the least number, and above what alignment cuts off
    if how.scale == "ue8m0":
        return 0, 0, wanted // 2
    low_a, low_b = (x.emin - x.fraction_bits for x in (a, b))
    of_a = max(low_a, wanted - b.emax, wanted // 2)
    return (of_a, wanted - of_a, 0) if wanted - of_a >= low_b and wanted - of_a <= b.emax else None


def _zero_pieces(of: MatrixGroup, seed: int) -> Iterator[tuple[str, Drawn]]:
    """Give results that are zero: of negative zeros, and of negative sums that round to zero."""
    how = of.recipe
    rng = np.random.default_rng([of.seed, seed])
    a, b, c = (floating(x) for x in (how.a, how.b, how.c))
    drawn = draw(of, "zeros", _ZERO_SIDE, [seed])
    for style, exponents in (("negative zeros", None), ("negative sums", _least_negative(how))):
        if style == "negative sums" and exponents is None:
            continue
        of_a, of_b, of_scale = exponents or (0, 0, 0)
        codes_a = np.zeros(drawn.a.shape, a.code_dtype)
        codes_b = np.full(drawn.b.shape, b.encode(np.ldexp(1.0, [of_b]))[0], b.code_dtype)
        if exponents:
            codes_a[:, 0] = a.encode(np.ldexp(1.0, [of_a]))[0]
        codes_a |= (rng.integers(0, 2, (_ZERO_SIDE, 1)) * a.sign_bit).astype(a.code_dtype)  # of a row
        more: dict[str, Any] = {}
        if drawn.scale_a is not None and drawn.scale_b is not None and how.scale is not None:
            code = floating(how.scale).encode(np.ldexp(1.0, [of_scale]))[0]
            more = {"scale_a": np.full_like(drawn.scale_a, code), "scale_b": np.full_like(drawn.scale_b, code)}
        yield style, replace(drawn, a=codes_a, b=codes_b, c=np.full(drawn.c.shape, c.sign_bit, c.code_dtype), **more)


def _groups(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List groups of a block-scaled unit: how many products, and which."""
    own, stored = recipe(record, target), record.layout("A").shape[-1]
    assert isinstance(own.unit, GroupedDotAdd) and isinstance(record, Instruction)
    size, block = own.unit.group, stored // record.scales_per_row
    found = [
        Candidate(answer=f"groups of {each} consecutive products", recipe=_varied(record, target, group=each))
        for each in (size, size // 2, 2 * size) if block % each == 0 and each <= block
    ]  # fmt: skip
    if block > size:
        step = block // size
        apart = tuple(
            start + i for start in range(0, stored, block) for j in range(step) for i in range(j, block, step)
        )
        found.append(Candidate(answer=f"groups of {size}, products {block // size} apart", recipe=own, order=apart))
    return found


def _fp8(record: MatrixInstruction, target: str) -> list[Candidate]:
    own = recipe(record, target)
    direct = recipe(record, "sm_120a")
    narrow = replace(direct, unit=replace(direct.unit, fraction_bits=13, result_bits=13))
    return [
        Candidate(answer="in software: converted to f16, by halves of four, C added after", recipe=own),
        Candidate(answer="converted to f16, in ascending order", recipe=replace(own, order="ascending")),
        Candidate(answer="in software with C within", recipe=replace(own, accumulate="within")),
        Candidate(answer="by a unit for fp8, as RTX Blackwell", recipe=direct),
        Candidate(answer="by a unit for fp8 with F = 13, as Hopper's wgmma", recipe=narrow),
    ]


def _clamps(record: MatrixInstruction, target: str) -> list[Candidate]:
    own, stored = recipe(record, target), record.layout("A").shape[-1]
    return [
        Candidate(answer="one clamp, of the sum of all products and C", recipe=own),
        Candidate(answer="a clamp after each half of k", recipe=own, cut=stored // 2),
        Candidate(answer="a clamp after each quarter of k", recipe=own, cut=stored // 4),
    ]


def _chains(record: MatrixInstruction, target: str) -> list[Candidate]:
    own, k = recipe(record, target), record.k
    return [
        Candidate(answer="a chain of fma, k ascending", recipe=own),
        Candidate(answer="a chain of fma, k descending", recipe=own, order=tuple(reversed(range(k)))),
        Candidate(
            answer="a chain of fma, even k first", recipe=own, order=(*range(0, k, 2), *range(1, k, 2)),
        ),
    ]  # fmt: skip


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
    return lambda target: tuple(i for i in asked(target) if len(_chunks(i, target)) > 1)


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
            candidates=_depths,
        ),
        Experiment(
            name="quad-half-results", targets=_numbered(70, 72, 75),
            asked=_with(groups=("quad pair",), d_type=("f16",)),
            question="how does m8n8k4 make results of f16: F, Z and the rounding?", candidates=_half_results,
        ),
        Experiment(
            name="quad-mixed-c", targets=_numbered(70, 72, 75),
            asked=_with(groups=("quad pair",), d_type=("f32",), c_type=("f16",)),
            question="does a C of f16 enter m8n8k4's sums of f32 with its own exponents?", candidates=_mixed_c,
        ),
        Experiment(
            name="xavier-as-volta", targets=_numbered(72), asked=_with(groups=("quad pair",), c_type=("f32",)),
            question="does sm_72 compute as sm_70 does?", candidates=_depths,
        ),
        Experiment(
            name="quad-software", targets=_SINCE_AMPERE, asked=_with(groups=("quad pair",)),
            question="is m8n8k4 with f16 software, chains of fma in f32?", candidates=_units,
        ),
        Experiment(
            name="matrix-unit", targets=_numbered(87, 88, 103, 110, 121),
            asked=_with(groups=("half",), sparse=(False,)),
            question="as which generation does this target's unit for f16, bf16 and tf32 compute?", candidates=_units,
        ),
        Experiment(
            name="fp8-unit", targets=_numbered(121), asked=_with(groups=("fp8",), sparse=(False,)),
            question="as which generation does this target's unit for fp8 compute?", candidates=_units,
        ),
        Experiment(
            name="fp8-software", targets=_numbered(100, 103, 110), asked=_with(groups=("fp8",), sparse=(False,)),
            question="are fp8's m16n8k16 and mixed types software around the unit for f16?", candidates=_fp8,
        ),
        Experiment(
            name="sparse-chunks", targets=_NOT_HOPPER,
            asked=_longer(_with(groups=("half", "fp8", "f8f6f4", "mxf8f6f4"), sparse=(True,))),
            question="how many stored products of a sparse A make up a step?", candidates=_chunks,
        ),
        Experiment(
            name="sparse-groups", targets=_numbered(120, 121), asked=_with(groups=("mxf4", "mxf4nvf4"), sparse=(True,)),
            question="which stored products of a sparse mxf4 or mxf4nvf4 make up a group?", candidates=_groups,
        ),
        Experiment(
            name="mxf4-groups", targets=_numbered(120, 121), asked=_with(groups=("mxf4", "mxf4nvf4"), sparse=(False,)),
            question="which products of mxf4 and mxf4nvf4 make up a group?", candidates=_groups,
        ),
        Experiment(
            name="zeros", targets=_NOT_HOPPER,
            asked=_of_fused(_with(groups=("quad pair", "half", "fp8", "f8f6f4"))),
            question="which sign has a result that is zero?", candidates=_zeros,
        ),
        Experiment(
            name="mxf4-zeros", targets=_numbered(120, 121), asked=_with(groups=("mxf8f6f4", "mxf4", "mxf4nvf4")),
            question="which sign has a zero that a block-scaled instruction gives?", candidates=_zeros,
        ),
        Experiment(
            name="clamps", targets=_NOT_HOPPER, asked=_signed(_with(groups=("int8", "int4"), satfinite=(True,))),
            question="is a sum of .satfinite clamped once, at the end?", candidates=_clamps,
        ),
        Experiment(
            name="f64-order", targets=_SINCE_AMPERE, asked=_with(groups=("f64",)),
            question="is a product of f64 a chain of fma with k ascending?", candidates=_chains,
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


def separating(
    of: MatrixGroup, candidates: Sequence[Candidate], seed: int = 0
) -> tuple[list[tuple[str, Drawn]], set[tuple[str, str]]]:  # fmt: skip
    """Draw pieces of work in which candidates differ, until each pair does (rule 1).

    Parameters
    ----------
    of : MatrixGroup
        Of one instruction.
    candidates : sequence of Candidate
    seed : int

    Returns
    -------
    list of tuple of str and Drawn
        Styles and operands.
    set of tuple of str and str
        Answers that no piece of work tells apart; empty if all is well.
    """
    left = {(x.answer, y.answer) for i, x in enumerate(candidates) for y in candidates[:i]}
    found: list[tuple[str, Drawn]] = []
    c_format = of.recipe.c
    of_zeros = any(x.zero != "plus" for x in candidates)
    for number in range(_ROUNDS):
        for style, drawn in _zero_pieces(of, seed + number) if of_zeros else _pieces(of, seed, number):
            if not left:
                return found, left
            made = {x.answer: x.compute(drawn, of.k, of.scales, c_format) for x in candidates}
            apart = {(x, y) for x, y in left if (made[x] != made[y]).any()}
            if apart:
                left -= apart
                found.append((style, drawn))
    return found, left


def _pieces(of: MatrixGroup, seed: int, number: int) -> Iterator[tuple[str, Drawn]]:
    return ((style, draw(of, style, SIDE, [seed, number])) for style in styles(of.recipe))


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
