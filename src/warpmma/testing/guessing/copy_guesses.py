"""Guesses of what is wrong with a tensor copy: the map or the operands, each mistake tried on the memory given.

1. One thing is changed at a time: coordinates, offsets, a field of the map, or two fields that go together, such as
   the shape and strides of a transposed tensor.
2. A mistake that no legal map has, or on which the instruction traps, is left out. So is one that brings what was
   meant.
3. One that reads outside of the memory that is given, or writes beyond the bytes of shared memory, is not tried, and
   counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, as_array
from ...errors import OperandError, WarpmmaError, shown
from ...layouts import Im2colBox, TensorMap
from .searching import LISTED, Guesses

_NEAR = 4  # how far coordinates, offsets, corners and sizes are moved
_CHUNKS = 8  # of 16 bytes, how far an address is moved


@dataclass(frozen=True)
class _Copy:
    """A load: a map with its operands."""

    map: TensorMap
    coordinates: tuple[int, ...]
    offsets: tuple[int, ...]

    def changed(self, **changes: Any) -> _Copy:
        """Return it with other operands, fields of the map, or fields of an im2col box."""
        own = {name: changes.pop(name) for name in ("coordinates", "offsets") if name in changes}
        box = self.map.box
        if isinstance(box, Im2colBox):
            within = {name: changes.pop(name) for name in ("lower", "upper", "channels", "pixels") if name in changes}
            box = replace(box, **within)
        return replace(self, map=replace(self.map, **{"box": box, **changes}), **own)

    def value(self, name: str) -> Any:
        """Return an operand or a field."""
        for holder in (self, self.map, self.map.box):
            if hasattr(holder, name):
                return getattr(holder, name)
        raise AssertionError(name)


_Changes = dict[str, Any]


def guess_copy(
    map: TensorMap, memory: Array, coordinates: Sequence[int], at: int = 0, *, got: npt.ArrayLike,
    offsets: Sequence[int] = (), shared: npt.ArrayLike | None = None,
) -> Guesses:  # fmt: skip
    """Guess which mistake with a tensor map or a load explains what the load has brought.

    Some hundred mistakes are tried, one at a time: coordinates in another order, in bytes or beside the box; dimensions
    of the shape, strides or box exchanged; strides of a dense tensor, or in elements; another size, swizzle,
    interleave, element stride, type, fill or address; corners, pixels and offsets of im2col. Those that give every byte
    are named.

    Parameters
    ----------
    map : TensorMap
        The map that was meant.
    memory, coordinates, at, offsets
        As of `TensorMap.read`: the tensor, and the load that was meant.
    got : array_like
        Shared memory from `at` on after the load, C-contiguous, of any dtype: at least the bytes that were meant.
    shared : array_like, optional
        As many bytes of shared memory before the load; zeros by default.

    Returns
    -------
    Guesses
        Its `target` is "": nothing is executed.

    Raises
    ------
    OperandError
        As of `TensorMap.read`; `got` or `shared` of another size.

    Examples
    --------
    >>> array = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    >>> meant = TensorMap(array, (8, 32), swizzle=64)
    >>> brought = meant.read(array, (32, 0), 0x400)
    >>> print(guess_copy(meant, array, (0, 32), 0x400, got=brought))
    guess: as if coordinates were (32, 0), meant (0, 32)
    """
    if not isinstance(map, TensorMap):
        raise OperandError(f"map is {shown(map)}; expected a TensorMap")
    copy = _Copy(map, tuple(coordinates), tuple(offsets))
    right = map.read(memory, copy.coordinates, at, offsets=copy.offsets)
    seen = _octets("got", got)
    before = np.zeros(len(seen), np.uint8) if shared is None else _octets("shared", shared)
    if len(seen) < len(right) or len(before) != len(seen):
        raise OperandError(
            f"got has {len(seen)} bytes and shared {len(before)}; expected as many of both, at least {len(right)}"
        )
    available = memory.nbytes if isinstance(memory, np.ndarray) else 0

    def loaded(other: _Copy, moved: int) -> Array | None:
        """Return shared memory after a load of a tensor that begins `moved` bytes further; None if it cannot be."""
        box = other.map.box_copy(other.coordinates, at, offsets=other.offsets)
        first, last = (int(f(box.source[box.inside])) if box.inside.any() else 0 for f in (np.min, np.max))
        if box.span > len(seen) or first + moved < 0 or last + moved + box.itemsize > available:
            return None
        after = before.copy()
        after[: box.span] = box.load(np.ascontiguousarray(memory).reshape(-1).view(np.uint8)[moved:], after)
        return after

    as_meant = loaded(copy, 0)
    if as_meant is not None and np.array_equal(as_meant, seen):
        return Guesses(as_given=True)
    texts: list[str] = []
    tried = outside = 0
    known = {None if as_meant is None else as_meant.tobytes()}
    for changes in _mistakes(copy):
        moved = changes.pop("address", 0)
        try:
            other = copy.changed(**changes)
            after = loaded(other, moved)
        except WarpmmaError:  # rule 2
            continue
        if after is None:
            outside += 1
            continue
        if after.tobytes() in known:
            continue
        tried += 1
        if np.array_equal(after, seen):
            texts.append(_text(copy, other, changes, moved))
    many = len(texts) > LISTED
    what = "mistake" if outside == 1 else "mistakes"
    untried = (f"{outside} {what} that read outside of the memory given, or write beyond got",) if outside else ()
    return Guesses(
        mistakes=() if many else tuple(dict.fromkeys(texts)), alike=len(texts) if many else 0, alone=tried,
        untried=untried,
    )  # fmt: skip


def _octets(name: str, given: npt.ArrayLike) -> Array:
    array = as_array(given, name)
    if array.dtype.hasobject:
        raise OperandError(f"{name} is {shown(given)}; expected bytes of shared memory")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _text(meant: _Copy, got: _Copy, changes: _Changes, moved: int) -> str:
    """Complete "as if"."""
    if moved:
        return f"the address were {abs(moved)} bytes {'higher' if moved > 0 else 'lower'}"
    words = (f"{name.replace('_', ' ')} were {got.value(name)}, meant {meant.value(name)}" for name in changes)
    return " and ".join(words)


# Rule 1


def _mistakes(copy: _Copy) -> Iterator[_Changes]:
    """List what may be wrong, plausible mistakes first."""
    yield from _operands(copy)
    yield from _geometry(copy)
    yield from _modes(copy)
    yield from _sizes(copy)
    yield from _addresses(copy.map)


def _exchanged(values: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield a tuple in reverse, and with each two of its members exchanged."""
    orders = [tuple(range(len(values)))[::-1]]
    for i, j in combinations(range(len(values)), 2):
        order = list(range(len(values)))
        order[i], order[j] = j, i
        orders.append(tuple(order))
    yield from (tuple(values[x] for x in order) for order in dict.fromkeys(orders))


def _one_by_one(values: Sequence[int], others: Callable[[int, int], Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Yield a tuple with one member replaced, by each of what `others` returns for its index and value."""
    for i, value in enumerate(values):
        for other in dict.fromkeys(others(i, value)):
            if other != value:
                yield (*values[:i], other, *values[i + 1 :])


def _moves(step: int) -> Callable[[int, int], list[int]]:
    return lambda _, x: [x + sign * step * n for n in range(1, _NEAR + 1) for sign in (1, -1)]


def _operands(copy: _Copy) -> Iterator[_Changes]:
    map_, size = copy.map, copy.map.itemsize
    steps = [1] * map_.rank if map_.im2col else list(map_.box)
    if map_.im2col:
        steps[-1] = map_.box.channels
    unit = 16 // size if not map_.interleave else 1

    def near(i: int, x: int) -> list[int]:
        inner = unit if i == map_.rank - 1 else 1
        return [0, *(x + sign * n for n in (steps[i], 2 * steps[i], inner, 2 * inner) for sign in (1, -1))]

    for found in (_exchanged(copy.coordinates), _one_by_one(copy.coordinates, near)):
        yield from ({"coordinates": x} for x in found)
    *outer, inner = copy.coordinates
    yield from ({"coordinates": (*outer, x)} for x in (inner * size, inner // size) if x != inner)
    for found in (_exchanged(copy.offsets), _one_by_one(copy.offsets, _moves(1))):
        yield from ({"offsets": x} for x in found)


def _geometry(copy: _Copy) -> Iterator[_Changes]:
    """Dimensions exchanged, and strides."""
    map_ = copy.map
    dense = tuple(map_.itemsize * int(np.prod(map_.shape[i:])) for i in range(1, map_.rank))
    yield from ({"shape": x} for x in _exchanged(map_.shape))
    yield from ({"strides": x} for x in _exchanged(map_.strides))
    for shape in _exchanged(map_.shape):
        yield {"shape": shape, "strides": tuple(map_.itemsize * int(np.prod(shape[i:])) for i in range(1, map_.rank))}
    yield {"strides": dense}
    for factor in (map_.itemsize, 2):
        yield {"strides": tuple(x // factor for x in map_.strides)}
        yield {"strides": tuple(x * factor for x in map_.strides)}
        yield from ({"strides": x} for x in _one_by_one(map_.strides, lambda _, x: [x // factor, x * factor]))  # noqa: B023
    near = _moves(16)
    yield from ({"strides": x} for x in _one_by_one(map_.strides, lambda i, x: [*near(i, x), *dense, *map_.strides]))
    if isinstance(box := map_.box, Im2colBox):
        yield {"lower": box.upper, "upper": box.lower}
        for name in ("lower", "upper"):
            corner = getattr(box, name)
            for found in (_exchanged(corner), _one_by_one(corner, _moves(1))):
                yield from ({name: x} for x in found)
    else:
        yield from ({"box": x} for x in _exchanged(box))


def _modes(copy: _Copy) -> Iterator[_Changes]:
    map_ = copy.map
    for name, values in (("swizzle", (0, 32, 64, 128)), ("interleave", (0, 16, 32)), ("fill", ("zero", "nan"))):
        yield from ({name: x} for x in values if x != getattr(map_, name))
    alike = ({"f32", "tf32", "f32.ftz", "tf32.ftz"}, {"u32", "tf32"}, {"s32", "tf32"})
    yield from ({"type": x} for x in sorted(set().union(*(k for k in alike if map_.type in k))) if x != map_.type)
    yield from ({"element_strides": x} for x in _one_by_one(map_.element_strides, lambda *_: range(1, 9)))


def _sizes(copy: _Copy) -> Iterator[_Changes]:
    """Sizes of the tensor and of the box."""
    map_ = copy.map
    if isinstance(box := map_.box, Im2colBox):
        boxes: Sequence[int] = [1] * map_.rank
        for name in ("channels", "pixels"):
            n = getattr(box, name)
            yield from ({name: x} for x in dict.fromkeys((n // 2, 2 * n, n - 1, n + 1, n - 8, n + 8)) if x != n)
    else:
        boxes = box
        yield from ({"box": x} for x in _one_by_one(box, lambda _, x: [x // 2, 2 * x, x - 1, x + 1, x - 8, x + 8]))

    def near(i: int, x: int) -> list[int]:
        whole = -(-x // boxes[i]) * boxes[i]
        return [whole, whole - boxes[i], x - 1, x + 1, 2 * x, x // 2, boxes[i], 1 << 20, *_moves(1)(i, x)]

    yield from ({"shape": x} for x in _one_by_one(map_.shape, near))


def _addresses(map_: TensorMap) -> Iterator[_Changes]:
    row = map_.shape[-1] * map_.itemsize
    steps = dict.fromkeys((*(16 * x for x in range(1, _CHUNKS + 1)), *map_.strides, row))
    yield from ({"address": sign * x} for x in steps for sign in (1, -1) if x % 16 == 0)
