"""Arithmetics that a GPU may have where ours is derived, and operands that tell them apart.

1. A candidate is a recipe, and how it is used: cut into shorter instructions, in another order, with other signs of
   zero. Makers of candidates take an instruction and a target; the first candidate is the model's.
2. Pieces of work tell candidates apart if each two of them differ in some output. `separating` draws pieces until they
   do, and needs no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...arithmetic import FusedDotAdd, GroupedDotAdd, Recipe, dot_chain, engines, fused_steps, recipe, reference_trace
from ...errors import UnsupportedError
from ...formats import FORMATS, FloatFormat, floating
from ...isa import TARGETS, Instruction, MatrixInstruction
from ..generators import styles
from .matrix_cases import Drawn, MatrixGroup, draw

__all__ = [
    "Candidate", "Candidates", "chains_of", "chunks_of", "clamps_of", "depths_of", "fp8_of", "groups_of",
    "half_results_of", "mixed_c_of", "separating", "units_of", "zeros_of",
]  # fmt: skip

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
            wide = floating(self.recipe.c)
            given["c"] = wide.encode(floating(c_format).decode(given["c"])).astype(wide.code_dtype)
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
        more: tuple[Any, ...] = ()
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


def _computed(how: Recipe, given: dict[str, Any], k: int, scales: int) -> Array:
    """Compute by the native engine if it is there and does such a recipe."""
    if "native" in engines():
        with suppress(UnsupportedError):
            native: Array = dot_chain(how, **given, k=k, scales=scales, engine="native")[0]
            return native
    d: Array = dot_chain(how, **given, k=k, scales=scales, engine="numpy")[0]
    return d


Candidates = Callable[[MatrixInstruction, str], list[Candidate]]
"""Makes candidates for an instruction on a target."""


def _varied(record: MatrixInstruction, target: str, **units: Any) -> Recipe:
    own = recipe(record, target)
    return replace(own, unit=replace(own.unit, **units))


def _fused(record: MatrixInstruction, target: str) -> FusedDotAdd:
    unit = recipe(record, target).unit
    assert isinstance(unit, FusedDotAdd)
    return unit


def depths_of(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List F beside the model's."""
    unit = _fused(record, target)
    return [
        Candidate(answer=f"F = {f}", recipe=_varied(record, target, fraction_bits=f))
        for f in (unit.fraction_bits, unit.fraction_bits + 1, unit.fraction_bits - 1, unit.fraction_bits + 2)
    ]


def half_results_of(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List F, Z and the rounding of results of f16."""
    unit = _fused(record, target)
    return [
        Candidate(answer=f"F = {unit.fraction_bits}, Z = {unit.floor}, to nearest", recipe=recipe(record, target)),
        Candidate(answer="F is one more", recipe=_varied(record, target, fraction_bits=unit.fraction_bits + 1)),
        Candidate(answer="F is one less", recipe=_varied(record, target, fraction_bits=unit.fraction_bits - 1)),
        Candidate(answer="Z is one more", recipe=_varied(record, target, floor=unit.floor + 1)),
        Candidate(answer="toward zero", recipe=_varied(record, target, rounding="rz")),
    ]


def mixed_c_of(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List how a C of f16 enters sums of f32."""
    own = recipe(record, target)
    return [
        Candidate(answer="C enters with the exponents of f16", recipe=own),
        Candidate(answer="C is converted to f32 first", recipe=replace(own, c="f32")),
    ]


def units_of(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List the units of all generations that have the instruction, the model's first."""
    found: dict[Recipe, str] = {}
    for other in (target, *sorted(record.targets, key=lambda x: TARGETS[x].number)):
        how = recipe(record, other)
        found.setdefault(how, TARGETS[other].generation)
    return [Candidate(answer=f"as {generation} computes", recipe=how) for how, generation in found.items()]


def chunks_of(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List how many stored products make up a step, and which."""
    own, stored = recipe(record, target), record.layout("A").shape[-1]
    unit = _fused(record, target)
    found: dict[tuple[tuple[int, ...], ...], Candidate] = {}
    of_steps = [(x, own.order) for x in (unit.products, 2 * unit.products, unit.products // 2, unit.products // 4)]
    of_steps.append((unit.products, "halves" if own.order == "ascending" else "ascending"))
    for products, order in of_steps:
        made = tuple(map(tuple, fused_steps(order, max(1, products), stored)))
        text = f"{len(made[0])} stored products in a step" + (", by halves of four" if order == "halves" else "")
        how = replace(own, order=order, unit=replace(unit, products=max(1, products)))
        found.setdefault(made, Candidate(answer=text, recipe=how))
    return list(found.values())


def zeros_of(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List signs of results that are zero."""
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


def groups_of(record: MatrixInstruction, target: str) -> list[Candidate]:
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


def fp8_of(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List software around a unit for f16, and units for fp8."""
    own = recipe(record, target)
    direct = recipe(record, "sm_120a")
    narrow = replace(direct, unit=replace(_fused(record, "sm_120a"), fraction_bits=13, result_bits=13))
    return [
        Candidate(answer="in software: converted to f16, by halves of four, C added after", recipe=own),
        Candidate(answer="converted to f16, in ascending order", recipe=replace(own, order="ascending")),
        Candidate(answer="in software with C within", recipe=replace(own, accumulate="within")),
        Candidate(answer="by a unit for fp8, as RTX Blackwell", recipe=direct),
        Candidate(answer="by a unit for fp8 with F = 13, as Hopper's wgmma", recipe=narrow),
    ]


def clamps_of(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List when a sum of `.satfinite` is clamped."""
    own, stored = recipe(record, target), record.layout("A").shape[-1]
    return [
        Candidate(answer="one clamp, of the sum of all products and C", recipe=own),
        Candidate(answer="a clamp after each half of k", recipe=own, cut=stored // 2),
        Candidate(answer="a clamp after each quarter of k", recipe=own, cut=stored // 4),
    ]


def chains_of(record: MatrixInstruction, target: str) -> list[Candidate]:
    """List orders of a chain of fma."""
    own, k = recipe(record, target), record.k
    return [
        Candidate(answer="a chain of fma, k ascending", recipe=own),
        Candidate(answer="a chain of fma, k descending", recipe=own, order=tuple(reversed(range(k)))),
        Candidate(
            answer="a chain of fma, even k first", recipe=own, order=(*range(0, k, 2), *range(1, k, 2)),
        ),
    ]  # fmt: skip


def separating(
    of: MatrixGroup, candidates: Sequence[Candidate], seed: int = 0
) -> tuple[list[tuple[str, Drawn]], set[tuple[str, str]]]:  # fmt: skip
    """Draw pieces of work in which candidates differ, until each pair does (rule 2).

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
