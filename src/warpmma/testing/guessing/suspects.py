"""All mistakes that are tried: the table, made of the rules of the other modules, for an instruction and a problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...formats import FORMATS, FloatFormat
from ...isa import Instruction
from ...layouts import Layout, Operand
from .call_mistakes import instruction_mistakes
from .fragment_mistakes import fragment_gathers, lane_sources
from .matrix_mistakes import matrix_gathers, swizzles, value_changes
from .mistakes import COMMON, USUAL, Mistake, Step, distinct, gathered, inverse, mistake_of
from .problem import Problem
from .tile_mistakes import mistakes_in_tiles
from .word_mistakes import metadata_mistakes, scale_mistakes

__all__ = ["likely_mistakes", "mistakes_in_fragments"]

Array = npt.NDArray[Any]

_MOST_WHOLE = 1 << 14  # elements of a matrix that is rearranged as a whole, 128 x 128
_MOST_PROBED = 1 << 17  # elements of operands on which changes are compared


def mistakes_in_fragments(record: Instruction, operand: Operand) -> tuple[Mistake, ...]:
    """List what may be wrong with one operand's tile, apart from its values."""
    return _mistakes_in_fragments(record.layout(operand), operand, record.format(operand).bits)


@cache
def _mistakes_in_fragments(layout: Layout, operand: Operand, bits: int) -> tuple[Mistake, ...]:
    of_matrices = [*matrix_gathers(layout.shape, operand, _axes(operand), 8)]
    if len(layout.shape) == 2:
        of_matrices += swizzles((layout.shape[0], layout.shape[1]), operand, bits, 0 if operand == "B" else 1)
    of_fragments = fragment_gathers(layout, operand, "stored" if operand == "D" else "loaded")
    return tuple(mistake_of(operand, *named) for named in distinct(of_fragments, of_matrices))


def _axes(operand: Operand) -> tuple[tuple[str, str], tuple[str, str]]:
    """Say what rows and columns of an operand are called, one and many."""
    along_k, rows, columns = ("k", "k"), ("row", "rows"), ("column", "columns")
    return {"A": (rows, along_k), "B": (along_k, columns)}.get(operand, (rows, columns))


def likely_mistakes(problem: Problem) -> tuple[Mistake, ...]:
    """List the mistakes that are tried, the simplest first."""
    record, settings = problem.record, problem.settings
    warps, rows, columns, along_k = problem.counts

    def of_fragments() -> Iterator[Mistake]:
        for operand in ("A", "B", "C", "D"):
            if operand == "C" and not problem.operands["C"].any():
                continue
            yield from mistakes_in_fragments(record, operand)
            if operand != "D":
                yield from _values(problem, operand)

    def others() -> Iterator[Mistake]:
        yield from _everywhere(record)
        yield from _exchanged(problem)
        if record.sparse:
            yield from metadata_mistakes(record, settings["selector"])
        if record.block_scale:
            for of in "AB":
                yield from scale_mistakes(record, of, settings)
        yield from instruction_mistakes(record, problem.target)
        if problem.counts != (1, 1, 1, 1):
            yield from mistakes_in_tiles(tuple(problem.operands), warps, rows, columns, along_k)
        for operand in ("A", "B", "C", "D"):
            if operand != "C" or problem.operands["C"].any():
                yield from _whole(problem, operand)

    return tuple(sorted((*of_fragments(), *_different(problem, others())), key=lambda mistake: mistake.rank))


def _different(problem: Problem, mistakes: Iterable[Mistake]) -> Iterator[Mistake]:
    """Leave out what changes random operands as another mistake does, or not at all."""
    if sum(x.size for x in problem.operands.values()) > _MOST_PROBED:
        yield from mistakes
        return
    rng = np.random.default_rng(0)
    probes = {
        name: rng.integers(0, 2**64 - 1, x.shape, np.uint64, endpoint=True).astype(x.dtype)
        for name, x in problem.operands.items()
    }  # fmt: skip
    own = {name: x.tobytes() for name, x in probes.items()}
    seen = set()
    for mistake in sorted(mistakes, key=lambda x: x.rank):
        if mistake.settings:
            yield mistake
            continue
        made = frozenset((step.operand, step.change(probes[step.operand]).tobytes()) for step in mistake.steps)
        if made not in seen and any(own[name] != bits for name, bits in made):
            seen.add(made)
            yield mistake


def _values(problem: Problem, operand: Operand) -> Iterator[Mistake]:
    record = problem.record
    fmt = record.format(operand)
    for text, change, rank in value_changes(fmt, operand, record.packing(operand).slot):
        yield Mistake(text=text, steps=(Step(operand=operand, change=change),), rank=rank)
    if operand != "C":
        return
    for times in dict.fromkeys((2, problem.counts[3])):
        if times > 1:
            change = partial(_multiplied, fmt, times)
            yield Mistake(text=f"C was added {times} times", steps=(Step(operand="C", change=change),), rank=USUAL)


def _multiplied(fmt: Any, times: int, codes: Array) -> Array:
    values = fmt.decode(codes) * times
    with np.errstate(all="ignore"):
        if isinstance(fmt, FloatFormat):
            return np.asarray(fmt.encode(values))
    return values.astype(np.uint32) if fmt is FORMATS["s32"] else np.asarray(codes)


def _everywhere(record: Instruction) -> Iterator[Mistake]:
    """One mistaken formula of lanes for all operands, with which results are stored, too."""
    for text, source, rank in lane_sources():
        steps = []
        for operand in ("A", "B", "C", "D"):
            layout = record.layout(operand)
            per, flat = layout.packing.per_register, layout.flat.reshape(-1)
            r, t, q = np.indices((layout.registers, 32, per))
            gather = np.empty(flat.size, np.intp)
            gather[flat] = flat[((r * 32 + source[t]) * per + q).reshape(-1)]
            back = inverse(gather) if operand == "D" else gather
            if back is None:
                break
            steps.append(Step(operand=operand, change=gathered(back), gather=back))
        else:
            yield Mistake(text=text.format("of all operands"), steps=tuple(steps), rank=max(rank, USUAL))


def _exchanged(problem: Problem) -> Iterator[Mistake]:
    """List A in the place of B, where the registers are as many."""
    a, b = (problem.operands[x] for x in "AB")
    record = problem.record
    if a.shape[1] * record.m != b.shape[2] * record.n or record.a_type != record.b_type or record.sparse:
        return
    if record.block_scale or len(record.layout("A").shape) > 2:
        return
    whole_a, whole_b = _joined(problem, "A", a), _joined(problem, "B", b)
    if whole_a.shape != whole_b.shape:
        swapped = {"A": whole_b.swapaxes(1, 2), "B": whole_a.swapaxes(1, 2)}
        text = "A and B, transposed, were exchanged"
    else:
        swapped, text = {"A": whole_b, "B": whole_a}, "A and B were exchanged"
    cut = {name: _cut(problem, name, array) for name, array in swapped.items()}  # type: ignore[arg-type]
    steps = tuple(Step(operand=name, change=partial(_replaced, array), whole=True) for name, array in cut.items())
    yield Mistake(text=text, steps=steps, rank=COMMON)


def _replaced(other: Array, own: Array) -> Array:
    return other


def _joined(problem: Problem, operand: Operand, tiles: Array) -> Array:
    """Whole matrices `[warp, rows, columns]` of tiles."""
    rows, columns = problem.record.layout(operand).shape
    warps, i, j, _ = tiles.shape
    return tiles.reshape(warps, i, j, rows, columns).swapaxes(2, 3).reshape(warps, i * rows, j * columns)


def _cut(problem: Problem, operand: Operand, whole: Array) -> Array:
    """Undo `_joined`."""
    rows, columns = problem.record.layout(operand).shape
    warps, m, k = whole.shape
    cut = whole.reshape(warps, m // rows, rows, k // columns, columns).swapaxes(2, 3)
    return cut.reshape(warps, m // rows, k // columns, -1)


def _whole(problem: Problem, operand: Operand) -> Iterator[Mistake]:
    """Mistakes with whole matrices of several tiles."""
    array, layout = problem.operands[operand], problem.record.layout(operand)
    if array.shape[1:3] == (1, 1) or len(layout.shape) > 2 or array[0].size > _MOST_WHOLE:
        return
    shape = (array.shape[1] * layout.shape[0], array.shape[2] * layout.shape[1])
    name = f"the whole {operand}"
    bits, along = problem.record.format(operand).bits, 0 if operand == "B" else 1

    listed = (*matrix_gathers(shape, name, _axes(operand), 8), *swizzles(shape, name, bits, along))
    for text, gather, rank in distinct(listed):
        change = partial(_rearranged, problem, operand, gathered(gather))
        yield Mistake(
            text=text,
            steps=(Step(operand=operand, change=change, whole=True),),
            rank=max(rank, USUAL),
        )


def _rearranged(problem: Problem, operand: Operand, change: Any, tiles: Array) -> Array:
    whole = _joined(problem, operand, tiles)
    return _cut(problem, operand, change(whole.reshape(len(whole), -1)).reshape(whole.shape))
