"""Guesses of wrong matrix descriptors: `wgmma` with each of some hundred of them, on the memory that was meant.

1. One field is changed at a time: leading and stride exchanged or another size, another swizzle, base offset or
   major-ness, a start that is some chunks, groups of eight lines or panels away.
2. A descriptor that reads what was meant is left out. Several that read the same tile are tried once, and each field
   that explains it is named, with the first of its values: a swizzle of w bytes uses a base offset modulo w / 16.
3. One that reads outside of the memory that is given is not tried, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, as_array
from ..._text import counted
from ...arithmetic import Engine
from ...errors import OperandError, shown
from ...execution import SharedOperand, execute, load
from ...isa import WarpgroupInstruction
from ...layouts import MAJORS, SWIZZLES, Major, MatrixDescriptor
from ...lookup import SHARED_OPERANDS, Field, SharedReading, descriptor_mistake, shared_reading
from .searching import LISTED, Guesses

_CHUNK, _WINDOW = 16, 1 << 18
_CHUNKS, _STEPS, _K = 64, 8, 32  # how far a start is moved; bytes of k that most instructions read
_SIZES = tuple(16 << i for i in range(13))  # of leading and stride

_Named = tuple[Field, SharedReading]


def mistaken(meant: SharedReading) -> Iterator[_Named]:
    """List what a kernel may read instead, and the field that would be wrong (rule 1), in the order of `FIELDS`."""
    d, major = meant.descriptor, meant.major

    def changed(field: Field, values: Iterable[int]) -> Iterator[_Named]:
        for x in values:
            if 0 <= x < _WINDOW:
                yield field, replace(meant, descriptor=replace(d, **{field: x}))

    yield "exchanged", replace(meant, descriptor=replace(d, leading=d.stride, stride=d.leading))
    yield from changed("swizzle", SWIZZLES)
    if meant.bits == 16:
        yield "major", replace(meant, major="MN" if major == "K" else "K")
    yield from changed("start", (0, *(d.start + x for x in dict.fromkeys(_moves(d, major)))))
    yield from changed("base_offset", range(8))
    sizes = {0, *_SIZES, 8 * max(_CHUNK, d.swizzle)}
    for name in ("leading", "stride"):
        own = getattr(d, name)
        yield from changed(name, sorted(sizes | {own // 32 * 16, 2 * own, d.leading, d.stride}))


def _moves(d: MatrixDescriptor, major: Major) -> Iterator[int]:
    """How far a start may be off: chunks, groups of eight lines, panels, and back to an earlier k of another panel."""
    for sign in (-1, 1):
        yield from (sign * _CHUNK * x for x in range(1, _CHUNKS + 1))
        yield from (sign * step * x for step in d.steps(major) for x in range(1, _STEPS + 1))
    panel = d.steps(major)[1]
    yield from (_K * x - panel * y for y in range(1, _STEPS + 1) for x in range(-3, 4))


def guess_descriptor(
    record: WarpgroupInstruction, a: npt.ArrayLike | SharedOperand, b: npt.ArrayLike | SharedOperand,
    c: npt.ArrayLike | None, *, got: npt.ArrayLike, target: str, engine: Engine, **options: Any,
) -> Guesses:  # fmt: skip
    """Guess which field of a descriptor of a `wgmma` is wrong; arguments are those of `guess`."""
    given = {"A": a, "B": b}
    layout = record.layout("D")
    zero = np.zeros((layout.registers, layout.lanes), np.uint32)
    of_c = zero if c is None else _registers(record, "C", c)
    seen = _registers(record, "D", got)

    def results(changed: dict[str, Any]) -> Array:
        x = {**given, **changed}
        return execute(record, x["A"], x["B"], of_c, target=target, engine=engine, **options)

    right = results({})
    if right.shape != seen.shape:
        raise OperandError(f"{record}: D is {seen.shape} in registers; the operands have {right.shape}")
    if np.array_equal(right, seen):
        return Guesses(as_given=True, target=target)
    texts: list[str] = []
    tried = outside = 0
    for operand in SHARED_OPERANDS:
        shared = given[operand]
        if not isinstance(shared, SharedOperand):
            continue
        meant = _meant(record, operand, shared)
        size = np.shape(shared.memory)[-1]
        distinct = _distinct(meant)
        legal = [x for x in distinct if x[0][1].inside(shared.at, size).all()]
        outside += len(distinct) - len(legal)
        tried += len(legal)
        for major in MAJORS:
            group = [x for x in legal if x[0][1].major == major]
            if not group:
                continue
            words = np.array([x[0][1].descriptor.word for x in group], np.uint64)
            words = words.reshape(-1, *[1] * (np.ndim(shared.memory) - 1))
            found = results({operand: replace(shared, descriptor=words, transposed=major == "MN")})
            for same, d in zip(group, found.reshape(len(group), *seen.shape), strict=True):
                if np.array_equal(d, seen):
                    texts += [descriptor_mistake(field, reading, meant).text for field, reading in same]
    untried = (f"{counted(outside, 'descriptor')} that would read outside of the memory given",) if outside else ()
    many = len(texts) > LISTED
    return Guesses(
        mistakes=() if many else tuple(texts), alike=len(texts) if many else 0, alone=tried, untried=untried,
        target=target,
    )  # fmt: skip


def _registers(record: WarpgroupInstruction, operand: Any, given: npt.ArrayLike) -> Array:
    """Return registers `[..., register, 128]` of C or D, from a matrix or from registers."""
    array, layout = as_array(given, f"{record}: {operand}"), record.layout(operand)
    if array.dtype == np.uint32 and array.shape[-2:] == (layout.registers, layout.lanes):
        return array
    loaded = load(record, operand, array)
    assert isinstance(loaded, np.ndarray)  # neither A nor B
    return loaded


def _meant(record: WarpgroupInstruction, operand: str, shared: SharedOperand) -> SharedReading:
    words = np.unique(shared.words)
    if words.size != 1:
        raise OperandError(f"{record}: {operand} has {shown(words.size)} descriptors; guesses take one")
    return shared_reading(record, operand, int(words[0]), major="MN" if shared.transposed else "K")


def _distinct(meant: SharedReading) -> list[list[_Named]]:
    """Rule 2: what reads the same tile together, one of each field."""
    found: dict[bytes, dict[Field, SharedReading]] = {}
    for field, reading in mistaken(meant):
        found.setdefault(reading.addresses.tobytes(), {}).setdefault(field, reading)
    found.pop(meant.addresses.tobytes(), None)
    return [list(same.items()) for same in found.values()]
