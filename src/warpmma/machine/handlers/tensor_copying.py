"""Copies of boxes of tensors: `cp.async.bulk.tensor` and its reductions.

The rules are those of `bulk_copying` and, for what a copy moves, those of `layouts.tensor_maps.tensor_boxes`; and:

1. A lane is one copy. Its map is the 128 bytes at the operand's generic address, in global, constant or parameter
   memory, a multiple of 64. They are read when the copy is issued.
2. An H200 traps where a report has the kind "misaligned" or "bounds": on a box that is not at a multiple of 128 bytes,
   a map that is none, or of another rank or mode than the instruction, coordinates that no copy takes, a reduction that
   the type of the map does not have, and bytes outside of shared memory or of an array. The copy does nothing then.
3. An mbarrier counts all bytes of the box, those of filled elements too.
4. What a load reads and what a store or a reduction writes is what is inside of the tensor. Runs of adjacent bytes are
   one access of their lane. Where nothing is to be reported, the runs of a load are looked at together.
5. Reductions are those of `red`; sums of f32 and tf32 keep subnormals, those of f32.ftz and tf32.ftz do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, TypeGuard, cast

import numpy as np

from ..._arrays import Array, all_ones
from ...errors import OperandError, UnsupportedError
from ...layouts import BoxCopy, TensorMap
from ...operations import Atomic, Space, TensorCopy, row
from ..base import Origin, Poison, Site
from ..block import Batch, Results, in_global, touches
from ..memory import Allocation, Touch
from ..sync import AsyncOperation, Combine, Groups, Signal, Touched
from .bulk_copying import destinations
from .load_store import address, read
from .map_order import check_map, note_reads
from .mbarriers import signal
from .updating import taking_turns

_LINE, _MAP_LINE, _MAP_BYTES = 128, 64, 128
_LEAST_RUNS = 4  # that are worth reading at once
_TRAPS = 'the instruction traps, "illegal instruction"'


@dataclass(frozen=True)
class _Runs:
    """Runs of adjacent bytes, ascending: the addresses, the sizes, and where each begins in an array of bytes."""

    at: Array
    size: Array
    begin: Array


@dataclass(frozen=True)
class _Copy:
    """One copy: `box` moves bytes between the runs of global memory, one after the other, and shared memory."""

    box: BoxCopy
    type: str
    near: _Runs  # begin in the bytes from the box's address on
    far: _Runs

    @property
    def far_bytes(self) -> int:
        return int(self.far.size.sum())

    def at(self, address: int) -> _Copy:
        """Return the same copy with its box in another block of the cluster."""
        by = address - int(self.near.at[0]) + int(self.near.begin[0])
        return self if by == 0 else replace(self, near=replace(self.near, at=self.near.at + by))


def copy_box(batch: Batch, site: Site, row: TensorCopy, operands: Sequence[Any], lanes: Array) -> Results:
    """Begin copies of boxes."""
    at, where, barriers, numbers, mask = _given(batch, site, row, operands, lanes)
    lanes = lanes & batch.reporter.aligned(site, at, _LINE, lanes)
    maps, held, lanes = read_maps(batch, site, where, lanes)
    copies, lanes = _copies(batch, site, row, at, where, maps, numbers, lanes)
    if not copies:
        return ()
    moved = sum(copy.far_bytes for copy in copies)
    batch.costs.moved(site, "global", moved)
    batch.costs.moved(site, "shared", moved if row.direction == "store" else sum(x.box.copied_bytes for x in copies))
    if row.direction == "store":
        _store(batch, site, row, copies, lanes)
        note_reads(batch, held, [], lanes)
    else:
        assert barriers is not None
        sizes: Array = np.zeros(lanes.shape, np.int64)
        sizes[lanes] = [copy.box.copied_bytes for copy in copies]
        number: Array = np.cumsum(lanes).reshape(lanes.shape) - 1
        signals: list[Signal] = []
        for to, counters, some in destinations(batch, site, at, barriers, mask, lanes):
            mine = [copies[i].at(place) for i, place in zip(number[some].tolist(), to[some].tolist(), strict=True)]
            operations = _load(batch, site, row, mine, some)
            for found in signal(batch, site, counters, sizes, some):
                batch.async_operations.arrival(site, to, found.touch.lanes, found, operations)
                signals.append(found)
        note_reads(batch, held, signals, lanes)
    return ()


def _given(
    batch: Batch, site: Site, row: TensorCopy, operands: Sequence[Any], lanes: Array
) -> tuple[Array, Array, Array | None, Array, Array | None]:
    """Return addresses of the box, the map and the mbarrier, `[block, warp, lane, number]`, and a mask of blocks."""
    left = list(operands)
    box = left.pop(0) if row.direction == "load" else left.pop(1 + row.rank)
    place = left.pop(0)
    numbers = [left.pop(0) for _ in range(row.rank)]
    barrier = left.pop(0) if row.direction == "load" else None
    numbers += [left.pop(0) for _ in range(row.offsets)]
    found = [read(batch, site, [x], lanes)[0] for x in (*numbers, *left)]
    count = len(numbers)
    signed = [x.view(f"i{x.dtype.itemsize}") if i < row.rank else x for i, x in enumerate(found[:count])]
    at, where = (address(batch, site, x, lanes) for x in (box, place))
    barriers = None if barrier is None else address(batch, site, barrier, lanes)
    return (
        at,
        where,
        barriers,
        np.stack([x.astype(np.int64) for x in signed], axis=-1),
        (found[count] if row.multicast else None),
    )


# Rules 1 and 2


def _copies(
    batch: Batch, site: Site, row: TensorCopy, at: Array, where: Array, maps: Sequence[bytes], numbers: Array,
    lanes: Array,
) -> tuple[list[_Copy], Array]:  # fmt: skip
    """Return the copies of lanes, and which lanes have one; report those that have none."""
    copies: list[_Copy] = []
    found: Array = np.zeros(lanes.shape, bool)
    for lane, place, given, encoded in zip(
        np.argwhere(lanes).tolist(), at[lanes].tolist(), numbers[lanes].tolist(), maps, strict=True
    ):
        one: Array = np.zeros(lanes.shape, bool)
        one[tuple(lane)] = True
        try:
            copies.append(_planned(row, encoded, place, tuple(given)))
        except OperandError as error:
            batch.reporter.report("bounds", site, one, where, str(error))
        except UnsupportedError as error:
            raise UnsupportedError(f"{site}: {error}") from None
        else:
            found |= one
    return copies, found


def read_maps(batch: Batch, site: Site, where: Array, lanes: Array) -> tuple[list[bytes], list[Touched], Array]:
    """Return the 128 bytes at the generic addresses of lanes, the reads, and which lanes have some (rule 1)."""
    held: list[Touched] = []
    found: Array = np.zeros((*lanes.shape, _MAP_BYTES), np.uint8)
    there: Array = np.zeros(lanes.shape, bool)
    for space, allocation, touch in touches(batch, site, "generic", where, _MAP_BYTES, lanes, _MAP_LINE):
        if space is not batch.global_space:
            says = f"a tensor map of a copy has to be in global, constant or parameter memory, not in {space.name}"
            batch.reporter.report("bounds", site, touch.lanes, where, says)
            continue
        found[touch.lanes], poison = allocation.load(replace(touch, later=True), 1)
        batch.decide(site, poison and poison.on(touch.lanes, found.shape), touch.lanes)
        check_map(batch, site, allocation, touch, where)
        there |= touch.lanes
        held.append((allocation, touch))
    return [x.tobytes() for x in found[there]], held, there


def _planned(row: TensorCopy, encoded: bytes, at: int, numbers: tuple[int, ...]) -> _Copy:
    """Return what a copy moves; raise `OperandError` where an H200 traps (rule 2).

    Copies of boxes that are inside of the tensor as a whole differ by a distance alone, and share their `box`.
    """
    given = _decoded(encoded)
    if (far := given.distance(numbers[::-1])) is None or given.rank != row.rank or given.im2col != row.im2col:
        return _plan(row, encoded, at, numbers)
    first = _plan(row, encoded, at, (0,) * len(numbers))
    return replace(first, far=replace(first.far, at=first.far.at + far))


@lru_cache(maxsize=64)
def _plan(row: TensorCopy, encoded: bytes, at: int, numbers: tuple[int, ...]) -> _Copy:
    """Return what `_planned` does, of one place."""
    given = _decoded(encoded)
    if given.rank != row.rank:
        raise OperandError(
            f"the tensor map has {given.rank} dimensions, and the instruction {row.rank}: {_TRAPS}; the nearest is "
            f"{str(row).replace(f'.{row.rank}d', f'.{given.rank}d')}"
        )
    if given.im2col != row.im2col:
        ours, its = ("im2col" if x else "tiled" for x in (row.im2col, given.im2col))
        raise OperandError(f"the tensor map is of mode {its}, and the instruction of mode {ours}")
    if row.operation and given.type not in row.reds:
        raise OperandError(
            f"the tensor map is of {given.type}, which .{row.operation} does not combine: {_TRAPS}; an element type of "
            "a map decides what a reduction is"
        )
    coordinates, offsets = numbers[: row.rank][::-1], numbers[row.rank :][::-1]
    store = row.direction == "store"
    box = given.box_copy(coordinates, at, offsets=offsets, store=store)
    items, place = np.unique(box.source[box.inside], return_inverse=True)
    if store and items.size != np.count_nonzero(box.inside):
        raise UnsupportedError(
            "elements of the box lie on one another in the tensor, whose strides are smaller than its rows; which of "
            "them a store keeps is not known"
        )
    source = np.zeros(box.source.shape, np.int64)
    source[box.inside] = place.reshape(-1) * box.itemsize
    far = _runs(items + given.address, box.itemsize, 0)
    near = np.sort(box.target[box.inside] if store else box.target, axis=None)
    packed = replace(box, source=source)
    far = replace(far, begin=np.cumsum(far.size) - far.size)
    return _Copy(packed, given.type, _runs(near, box.itemsize, at), far)


@lru_cache(maxsize=64)
def _decoded(encoded: bytes) -> TensorMap:
    try:
        return TensorMap.from_bytes(encoded)
    except OperandError as error:
        raise OperandError(f"the 128 bytes are not a tensor map that a GPU takes: {error}") from None


def _runs(items: Array, itemsize: int, start: int) -> _Runs:
    """Return the runs of items at ascending addresses, which begin where they are behind `start`."""
    first = np.flatnonzero(np.diff(items, prepend=-2 * itemsize) != itemsize)
    size = np.diff(np.append(first, items.size)) * itemsize
    at = items[first]
    return _Runs(at, size, at - start)


# Rule 4


@dataclass(frozen=True)
class _Part:
    """A run of some lanes, all of one size: `which` of the copies, and where the run begins in their bytes."""

    lanes: Array
    address: Array
    size: int
    which: list[int]
    begin: list[int]
    first: bool  # of their copies
    alike: bool = False  # whether it begins in the bytes of all copies at the same place

    def together(self, of: Sequence[Array]) -> TypeGuard[Array]:
        """Whether it is of all copies, at the same place in each, and their bytes are those of one array."""
        return self.alike and isinstance(of, np.ndarray) and len(of) == len(self.which)

    def cut(self, of: Sequence[Array]) -> Array:
        """Return the bytes of the run, `[n, size]`, of those of all copies."""
        if self.together(of):
            return np.ascontiguousarray(of[:, self.begin[0] : self.begin[0] + self.size])
        return np.stack([of[i][b : b + self.size] for i, b in zip(self.which, self.begin, strict=True)])


def _parts(copies: Sequence[_Copy], side: str, lanes: Array) -> Iterator[_Part]:
    """Yield the first run of each copy, then the second of each that has one, and so on; by size."""
    runs: list[_Runs] = [getattr(x, side) for x in copies]
    flat = np.flatnonzero(lanes)
    if all(x.size is runs[0].size for x in runs):  # boxes that differ by a distance
        every, which = np.stack([x.at for x in runs]).astype(np.uint64), list(range(len(runs)))
        for k, (size, begin) in enumerate(zip(runs[0].size.tolist(), runs[0].begin.tolist(), strict=True)):
            at: Array = np.zeros(lanes.size, np.uint64)
            at[flat] = every[:, k]
            yield _Part(lanes, at.reshape(lanes.shape), size, which, [begin] * len(which), k == 0, True)
        return
    for k in range(max(len(x.at) for x in runs)):
        by_size: dict[int, list[int]] = {}
        for i, x in enumerate(runs):
            if k < len(x.at):
                by_size.setdefault(int(x.size[k]), []).append(i)
        for size, which in by_size.items():
            some: Array = np.zeros(lanes.size, bool)
            some[flat[which]] = True
            at = np.zeros(lanes.size, np.uint64)
            at[flat[which]] = [int(runs[i].at[k]) for i in which]
            begin = [int(runs[i].begin[k]) for i in which]
            yield _Part(some.reshape(lanes.shape), at.reshape(lanes.shape), size, which, begin, k == 0)


def _taken(
    batch: Batch, site: Site, copies: Sequence[_Copy], side: str, sizes: Sequence[int], lanes: Array
) -> tuple[Sequence[Array], Sequence[Array], Origin | None, list[Touched]]:
    """Read the runs of one side; return bytes of each copy, which bits of them are poison, its origin, and accesses."""
    data, bits = _bytes(sizes), _bytes(sizes)
    origin: Origin | None = None
    sources: list[Touched] = []
    space = "shared" if side == "near" else "global"
    for part in _parts(copies, side, lanes):
        for _, allocation, touch in touches(batch, site, space, part.address, part.size, part.lanes, 1):
            found, poison = allocation.load(touch.in_async_proxy(), 1)
            some = np.flatnonzero(touch.lanes[part.lanes]).tolist()
            if part.together(data) and len(some) == len(data):
                data[:, part.begin[0] : part.begin[0] + part.size] = found
            else:
                for n, i in enumerate(some):
                    data[part.which[i]][part.begin[i] : part.begin[i] + part.size] = found[n]
            if poison is not None and poison.origin is not None:
                origin = poison.origin
                for n, i in enumerate(some):
                    bits[part.which[i]][part.begin[i] : part.begin[i] + part.size] = poison.bits[n]
            sources.append((allocation, touch))
    return data, bits, origin, sources


def _taken_at_once(
    batch: Batch, site: Site, copies: Sequence[_Copy], sizes: Sequence[int], lanes: Array
) -> tuple[Sequence[Array], list[Touched]] | None:
    """Return what `_taken` reads of global memory, and the one access of all runs of all copies.

    None if the runs differ in size or number, or if something may be reported: then it is read run by run.
    """
    first = copies[0].far
    runs, size = len(first.at), int(first.size[0]) if len(first.size) else 0
    if runs < _LEAST_RUNS or any(len(x.far.at) != runs or not (x.far.size == size).all() for x in copies):
        return None
    at = np.concatenate([x.far.at for x in copies]).astype(np.uint64)
    if not in_global(at):
        return None
    address: Array = np.zeros(lanes.shape, np.uint64)
    address[lanes] = at[::runs]
    if (found := batch.global_space.whole(site, address, lanes, at, size, runs)) is None:
        return None
    allocation, touch = found
    if (data := allocation.load_quietly(touch.in_async_proxy())) is None:
        return None
    taken = _bytes(sizes)
    for into, x in zip(taken, data.reshape(len(copies), -1), strict=True):
        into[: x.size] = x
    return taken, [(allocation, touch)]


def _load(
    batch: Batch, site: Site, row: TensorCopy, copies: Sequence[_Copy], lanes: Array
) -> list[AsyncOperation]:  # fmt: skip
    """Begin loads."""
    sizes = [-(-copy.far_bytes // 8) * 8 for copy in copies]
    bits: Sequence[Array] = []
    origin = None
    if (quiet := _taken_at_once(batch, site, copies, sizes, lanes)) is not None:
        data, sources = quiet
    else:
        data, bits, origin, sources = _taken(batch, site, copies, "far", sizes, lanes)
    landed = _landed(copies, data)
    poisoned = None
    if origin is not None:
        poisoned = [_carried(copy.box).load(_spread(copy.box, x)) for copy, x in zip(copies, bits, strict=True)]
    return _begin(batch, site, row.space, copies, landed, poisoned, origin, sources, lanes, None)


def _store(batch: Batch, site: Site, row: TensorCopy, copies: Sequence[_Copy], lanes: Array) -> None:
    """Begin stores and reductions."""
    some = [i for i, copy in enumerate(copies) if copy.far_bytes]
    if not some:
        return
    there: Array = np.zeros(lanes.size, bool)
    there[np.flatnonzero(lanes)[some]] = True
    copies, lanes = [copies[i] for i in some], there.reshape(lanes.shape)
    held, bits, origin, sources = _taken(batch, site, copies, "near", [x.box.span for x in copies], lanes)
    data, poisoned = _bytes([copy.far_bytes for copy in copies]), None
    if isinstance(data, np.ndarray) and isinstance(held, np.ndarray) and _same_box(copies):
        copies[0].box.store_each(data, held)
    else:
        for copy, into, x in zip(copies, data, held, strict=True):
            copy.box.store(into, x)
    if origin is not None:
        poisoned = [np.zeros(copy.far_bytes, np.uint8) for copy in copies]
        for copy, into, x in zip(copies, poisoned, bits, strict=True):
            copy.box.store(into, x)
    if not row.operation:
        _begin(batch, site, "global", copies, data, poisoned, origin, sources, lanes, "cp.async.bulk")
        return
    if poisoned is not None:
        bad = lanes.copy()
        bad[lanes] = [x.any() for x in poisoned]
        batch.decide(site, Poison(np.repeat(bad[..., None], 1, axis=-1).astype(np.uint8), origin), lanes)
    _combine(batch, site, row, copies, data, sources, lanes)


def _bytes(sizes: Sequence[int]) -> Sequence[Array]:
    """Return zeros for each copy, uint8 `[size]`; of copies of one size one array, `[n, size]`."""
    if all(n == sizes[0] for n in sizes):
        return cast(Sequence[Array], np.zeros((len(sizes), sizes[0]), np.uint8))
    return [np.zeros(n, np.uint8) for n in sizes]


def _same_box(copies: Sequence[_Copy]) -> bool:
    return all(x.box is copies[0].box for x in copies)


def _landed(copies: Sequence[_Copy], data: Sequence[Array]) -> Sequence[Array]:
    """Return the bytes that loads bring to shared memory."""
    if isinstance(data, np.ndarray) and _same_box(copies):
        return copies[0].box.load_each(data)
    return [copy.box.load(x) for copy, x in zip(copies, data, strict=True)]


def _carried(box: BoxCopy) -> BoxCopy:
    """Return the copy that moves poison: it fills and rounds nothing."""
    return replace(box, nan=False, rounds=False)


def _spread(box: BoxCopy, bits: Array) -> Array:
    """Make all bits of an element poison where it is rounded and some are."""
    if not box.rounds:
        return bits
    return all_ones(bits.view(f"u{box.itemsize}") != 0, np.dtype(f"u{box.itemsize}").type).view(np.uint8)


def _begin(
    batch: Batch, site: Site, space: Space, copies: Sequence[_Copy], data: Sequence[Array],
    poisoned: Sequence[Array] | None, origin: Origin | None, sources: list[Touched], lanes: Array,
    groups: Groups | None, combine: Combine | None = None,
) -> list[AsyncOperation]:  # fmt: skip
    """Begin operations that write the runs in a space, with the bytes and the poison of each copy."""
    operations: list[AsyncOperation] = []
    for part in _parts(copies, "far" if space == "global" else "near", lanes):
        poison = None if poisoned is None else Poison(part.cut(poisoned), origin)
        pieces = touches(batch, site, space, part.address, part.size, part.lanes, 1)
        targets = (
            (allocation, touch.in_async_proxy())
            for memory, allocation, touch in pieces
            if memory.writeable(allocation, touch)
        )
        operations.append(batch.async_operations.issue(
            site, part.address, targets, part.cut(data), part.lanes, sources if part.first else [], groups, poison,
            combine=combine, part=groups is None, overwritten=partial(_overwritten, operations),
        ))  # fmt: skip
    return operations


def _overwritten(operations: Sequence[AsyncOperation], source: Touch, bad: Array, origin: Origin) -> None:
    """Make poison of all that a lane writes, if some of what it still has to read is overwritten."""
    lanes = np.zeros(source.lanes.shape, bool)
    lanes[source.lanes] = bad.any(axis=1)
    for operation in operations:
        bits = np.zeros(operation.data.shape, np.uint8)
        bits[lanes[operation.lanes]] = 0xFF
        operation.poison = Poison(bits, origin).plus(operation.poison)


# Rule 5


def _combine(
    batch: Batch, site: Site, reduction: TensorCopy, copies: Sequence[_Copy], data: Sequence[Array],
    sources: list[Touched], lanes: Array,
) -> None:  # fmt: skip
    """Begin reductions, by the type of their maps."""
    for type_ in dict.fromkeys(x.type for x in copies):
        which = [i for i, x in enumerate(copies) if x.type == type_]
        some: Array = np.zeros(lanes.size, bool)
        some[np.flatnonzero(lanes)[which]] = True
        some = some.reshape(lanes.shape)
        combine = partial(_combined, batch, reduction.reds[type_], "shared" if type_ in ("f32", "tf32") else "global")
        mine = [(allocation, of) for allocation, touch in sources if len((of := touch.of(some)).offset)]
        of_type, values = [copies[i] for i in which], [data[i] for i in which]
        _begin(batch, site, "global", of_type, values, None, None, mine, some, "cp.async.bulk", combine)


def _combined(batch: Batch, red: str, like: str, memory: Allocation, touch: Touch, data: Array) -> None:
    """Combine data with the current elements; `red` of shared memory keeps subnormals."""
    atomic = cast(Atomic, row(red))
    words = np.ascontiguousarray(data).view(f"u{atomic.bits // 8}")
    memory.update(touch.strong("relaxed", "gpu"), atomic.bits // 8, partial(taking_turns, batch, atomic, like, [words]))
