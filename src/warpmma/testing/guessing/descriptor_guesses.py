"""Guesses of wrong matrix descriptors: `wgmma` with each of some hundred of them, on the memory that was meant.

1. One field is changed at a time: leading and stride exchanged or another size, another swizzle, base offset or
   major-ness, a start that is some chunks, groups of eight lines or panels away.
2. A descriptor that reads what was meant is no mistake. Of several that read the same tile the first in the order of
   `lookup.FIELDS` is tried.
3. One that reads outside of the memory that is given is not tried, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from ...layouts import SWIZZLES, Major, MatrixDescriptor
from ...lookup import SHARED_OPERANDS, SharedReading, descriptor_mistakes, shared_reading
from .searching import LISTED, Guesses

_CHUNK, _WINDOW = 16, 1 << 18
_CHUNKS, _STEPS = 64, 8  # how far a start is moved
_SIZES = tuple(16 << i for i in range(13))  # of leading and stride

_Pair = tuple[MatrixDescriptor, Major]


def mistaken(meant: SharedReading) -> Iterator[_Pair]:
    """List descriptors that a kernel may have instead (rule 1), in the order of `lookup.FIELDS`."""
    d, major = meant.descriptor, meant.major
    yield replace(d, leading=d.stride, stride=d.leading), major
    yield from ((replace(d, swizzle=x), major) for x in SWIZZLES)
    yield from ((replace(d, base_offset=x), major) for x in range(8))
    if meant.bits == 16:
        yield d, "MN" if major == "K" else "K"
    moves = [_CHUNK * x for x in range(1, _CHUNKS + 1)]
    moves += [x * step for step in d.steps(major) for x in range(1, _STEPS + 1)]
    starts = [0, *(d.start + sign * x for x in dict.fromkeys(moves) for sign in (-1, 1))]
    yield from ((replace(d, start=x), major) for x in starts if 0 <= x < _WINDOW)
    sizes = {0, *_SIZES, 8 * max(_CHUNK, d.swizzle)}
    for name in ("leading", "stride"):
        own = getattr(d, name)
        near = {own // 32 * 16, 2 * own, d.leading, d.stride}
        yield from ((replace(d, **{name: x}), major) for x in sorted(sizes | near) if x < _WINDOW)


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
        for major, readings in _distinct(meant).items():
            legal = [x for x in readings if x.inside(shared.at, size).all()]
            outside += len(readings) - len(legal)
            tried += len(legal)
            if not legal:
                continue
            words = np.array([x.descriptor.word for x in legal], np.uint64)
            words = words.reshape(-1, *[1] * (np.ndim(shared.memory) - 1))
            changed = replace(shared, descriptor=words, transposed=major == "MN")
            found = results({operand: changed})
            for reading, d in zip(legal, found.reshape(len(legal), *seen.shape), strict=True):
                if np.array_equal(d, seen):
                    texts.append(" and ".join(x.text for x in descriptor_mistakes(reading, meant)))
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


def _distinct(meant: SharedReading) -> dict[Major, list[SharedReading]]:
    """Rule 2: readings by their major-ness."""
    found: dict[Major, list[SharedReading]] = {"K": [], "MN": []}
    known = {meant.addresses.tobytes()}
    for descriptor, major in mistaken(meant):
        reading = replace(meant, descriptor=descriptor, major=major)
        key = reading.addresses.tobytes()
        if key not in known:
            known.add(key)
            found[major].append(reading)
    return found
