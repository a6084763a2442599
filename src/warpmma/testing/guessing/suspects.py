"""The table of all mistakes that are tried for an instruction and a problem, made by the rules of the other modules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ...formats import FORMATS, FloatFormat
from ...isa import Instruction, instructions
from ...layouts import Layout, Operand
from .fragment_mistakes import fragment_gathers, gather_of_lanes, lane_sources
from .matrix_mistakes import MOST_NAMED, matrix_gathers, mistakes_in_tiles, swizzles, value_changes
from .mistakes import COMMON, RARE, USUAL, Change, Mistake, Step, digest, distinct, gathering, inverse, mistake_of
from .problem import Problem, cut
from .word_mistakes import metadata_mistakes, scale_mistakes

_FIELDS = {
    "a_type": "the type of A was {other}, not {own}",
    "b_type": "the type of B was {other}, not {own}",
    "stype": "the type of the scales was {other}, not {own}",
    "scale_vec": "the scales were {other}, not {own}",
    "rounding": "the rounding was {other}, not {own}",
    "satfinite": ".satfinite was {other}, not {own}",
    "bit_op": "the operation on bits was {other}, not {own}",
    "kind": "the kind was {other}, not {own}",
    "a_layout": "A was .{other}, not .{own}",
    "b_layout": "B was .{other}, not .{own}",
    "sparsity": ".{other} stood in place of .{own}",
}


def instruction_mistakes(record: Instruction, target: str) -> Iterator[Mistake]:
    """List other instructions of a target that take and give the same registers, and a D of the same type."""
    for other in instructions(target):
        if not _alike(record, other) or other.canonical == record.canonical:
            continue
        parts = [
            text.format(own=getattr(record, name), other=getattr(other, name))
            for name, text in _FIELDS.items() if getattr(other, name) != getattr(record, name)
        ]  # fmt: skip
        if (other.m, other.n, other.k) != (record.m, record.n, record.k):
            parts.insert(0, f"the shape was {other.shape}, not {record.shape}")
        rank = COMMON if len(parts) == 1 else USUAL if len(parts) == 2 else RARE
        yield Mistake(text=" and ".join(parts) + f" ({other})", settings={"record": other}, rank=rank)


def _alike(one: Instruction, other: Instruction) -> bool:
    same = all(getattr(one, name) == getattr(other, name) for name in ("sparse", "block_scale", "d_type", "c_type"))
    return same and all(
        one.layout(x).registers == other.layout(x).registers and one.packing(x).width == other.packing(x).width
        for x in ("A", "B", "C", "D")
    )


_MOST_PROBED = 1 << 18  # elements of operands on which changes are compared


def mistakes_in_fragments(record: Instruction, operand: Operand) -> tuple[Mistake, ...]:
    """List what may be wrong with one operand's tile, apart from its values."""
    return _mistakes_in_fragments(record.layout(operand), operand, record.format(operand).bits)


@cache
def _mistakes_in_fragments(layout: Layout, operand: Operand, bits: int) -> tuple[Mistake, ...]:
    of_matrices = [*matrix_gathers(layout.shape, operand, _axes(operand), 8)]
    if len(layout.shape) == 2:
        of_matrices += swizzles((layout.shape[0], layout.shape[1]), operand, _axes(operand), bits)
    of_fragments = fragment_gathers(layout, operand, "stored" if operand == "D" else "loaded")
    return tuple(mistake_of(operand, *named) for named in distinct(of_fragments, of_matrices))


def _axes(operand: Operand) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the names of rows and columns of an operand, singular and plural."""
    along_k, rows, columns = ("k", "k"), ("row", "rows"), ("column", "columns")
    return {"A": (rows, along_k), "B": (along_k, columns)}.get(operand, (rows, columns))


def likely_mistakes(problem: Problem, elements: int) -> tuple[Mistake, ...]:
    """List the mistakes that are tried, the simplest first; matrices of more elements are not rearranged as a whole."""
    record, settings = problem.record, problem.settings
    operands = _not_zero(problem)

    def of_fragments() -> Iterator[Mistake]:
        for operand in operands:
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
            yield from mistakes_in_tiles(tuple(problem.operands), *problem.counts)
        for operand in operands:
            yield from mistakes_in_matrices(record, operand, problem.operands[operand], elements)

    known = tuple(of_fragments())
    return tuple(sorted((*known, *_different(problem, known, others())), key=lambda mistake: mistake.rank))


def left_out(problem: Problem, elements: int) -> tuple[str, ...]:
    """Describe the mistakes omitted because of a limit, and how to raise it."""
    operands = ((name, problem.operands[name]) for name in _not_zero(problem))
    said = [text for name, tiles in operands for text in too_large(problem.record, name, tiles, elements)]
    if (along_k := problem.counts[3]) > MOST_NAMED:
        said.append(f"k-tiles after the first {MOST_NAMED} of {along_k}, one by one; pass a product with fewer of them")
    return tuple(said)


def _not_zero(problem: Problem) -> tuple[Operand, ...]:
    """Return the matrices of a problem; a C of zeros looks the same after any mistake with its places."""
    return ("A", "B", "C", "D") if problem.operands["C"].any() else ("A", "B", "D")


def _different(problem: Problem, known: Iterable[Mistake], mistakes: Iterable[Mistake]) -> Iterator[Mistake]:
    """Leave out what changes random operands as another mistake or a known one does, or not at all."""
    if sum(x.size for x in problem.operands.values()) > _MOST_PROBED:
        yield from mistakes
        return
    rng = np.random.default_rng(0)
    probes = {
        name: rng.integers(0, 2**64 - 1, x.shape, np.uint64, endpoint=True).astype(x.dtype)
        for name, x in problem.operands.items()
    }
    own = {name: digest(x) for name, x in probes.items()}

    def made_by(mistake: Mistake) -> frozenset[tuple[str, bytes]]:
        return frozenset((step.operand, digest(step.change(probes[step.operand]))) for step in mistake.steps)

    seen = set() if problem.counts == (1, 1, 1, 1) else {made_by(mistake) for mistake in known}
    for mistake in sorted(mistakes, key=lambda x: x.rank):
        if mistake.settings:
            yield mistake
            continue
        made = made_by(mistake)
        if made not in seen and any(own[name] != bits for name, bits in made):
            seen.add(made)
            yield mistake


def _values(problem: Problem, operand: Operand) -> Iterator[Mistake]:
    record = problem.record
    fmt = record.format(operand)
    for text, change, rank in value_changes(fmt, operand, record.packing(operand).slot):
        yield mistake_of(operand, text, change, rank)
    for times in dict.fromkeys((2, problem.counts[3])) if operand == "C" else ():
        if times > 1:
            yield mistake_of("C", f"C was added {times} times", partial(_multiplied, fmt, times))


def _multiplied(fmt: Any, times: int, codes: Array) -> Array:
    values = fmt.decode(codes) * times
    with np.errstate(all="ignore"):
        if isinstance(fmt, FloatFormat):
            return np.asarray(fmt.encode(values))
    return values.astype(np.uint32) if fmt is FORMATS["s32"] else np.asarray(codes)


def _everywhere(record: Instruction) -> Iterator[Mistake]:
    """List formulas of lanes that are wrong for all operands, and for the store of the result."""
    for text, source, rank in lane_sources():
        steps = []
        for operand in ("A", "B", "C", "D"):
            gather = gather_of_lanes(record.layout(operand), source)
            back = inverse(gather) if operand == "D" else gather
            if back is None:
                break
            steps.append(gathering(operand, back))
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
    whole_a, whole_b = _joined(record, "A", a), _joined(record, "B", b)
    if whole_a.shape != whole_b.shape:
        swapped = {"A": whole_b.swapaxes(1, 2), "B": whole_a.swapaxes(1, 2)}
        text = "A and B, transposed, were exchanged"
    else:
        swapped, text = {"A": whole_b, "B": whole_a}, "A and B were exchanged"
    tiles = {name: _cut(record, name, array) for name, array in swapped.items()}  # type: ignore[arg-type]
    steps = (Step(operand=name, change=partial(_other, x), whole=True) for name, x in tiles.items())
    yield Mistake(text=text, steps=tuple(steps), rank=COMMON)


def _other(x: Array, _: Array) -> Array:
    return x


def _joined(record: Instruction, operand: Operand, tiles: Array) -> Array:
    """Whole matrices `[warp, rows, columns]` of tiles."""
    rows, columns = record.layout(operand).shape
    warps, i, j, _ = tiles.shape
    return tiles.reshape(warps, i, j, rows, columns).swapaxes(2, 3).reshape(warps, i * rows, j * columns)


def _cut(record: Instruction, operand: Operand, whole: Array) -> Array:
    """Undo `_joined`."""
    tiles = cut(whole, *record.layout(operand).shape)
    return tiles.reshape(*tiles.shape[:-2], -1)


def mistakes_in_matrices(record: Instruction, operand: Operand, tiles: Array, elements: int) -> Iterator[Mistake]:
    """List mistakes with whole matrices of several tiles `[warp, I, J, element]`, of so many elements at most."""
    shape = _whole_shape(record, operand, tiles)
    if shape is None or math.prod(shape) > elements:
        return
    name, axes, bits = f"the whole {operand}", _axes(operand), record.format(operand).bits
    for text, gather, rank in distinct(matrix_gathers(shape, name, axes, 8), swizzles(shape, name, axes, bits)):
        change = partial(_rearranged, record, operand, gathering(operand, gather.astype(np.int32)).change)
        yield mistake_of(operand, text, change, max(rank, USUAL), whole=True)


def too_large(record: Instruction, operand: Operand, tiles: Array, elements: int) -> Iterator[str]:
    """Report that `mistakes_in_matrices` is empty because a matrix has more elements."""
    shape = _whole_shape(record, operand, tiles)
    if shape is not None and (size := math.prod(shape)) > elements:
        yield (
            f"rearrangements of the whole {operand}, such as swizzles: {shape[0]} x {shape[1]} is more than "
            f"{elements:,} elements; pass elements={size}"
        )


def _whole_shape(record: Instruction, operand: Operand, tiles: Array) -> tuple[int, int] | None:
    """Return the shape of a matrix of several tiles; None where there is but one, or an instruction has several."""
    own = record.layout(operand).shape
    if tiles.shape[1:3] == (1, 1) or len(own) > 2:
        return None
    return tiles.shape[1] * own[0], tiles.shape[2] * own[1]


def _rearranged(record: Instruction, operand: Operand, change: Change, tiles: Array) -> Array:
    whole = _joined(record, operand, tiles)
    return _cut(record, operand, change(whole.reshape(len(whole), -1)).reshape(whole.shape))
