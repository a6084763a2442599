"""What a tensor copy moves: which elements a box brings, where each lands in shared memory, and what is filled.

1. Tiled: along dimension i a box has ceil(b / e) elements, at start, start + e, start + 2e...; along the innermost one
   the step e is ignored, but not with interleave.
2. im2col: the first pixel is the start. From a pixel to the next, w grows by its step; beyond W - 1 + upper it goes
   back to lower, and h grows by its step; and so on; beyond the last spatial dimension n grows by its step. The element
   is that of the pixel plus the offsets. Each pixel has its channels, from the innermost start on.
3. An element outside of the tensor, in any dimension, is filled: with 0, or with 0x7FF7 in every 16 bits.
4. In shared memory elements are dense in the order of the box, the innermost dimension fastest. With a swizzle, a row
   takes its width at least; bytes in the gaps stay as they are.
5. A swizzle of W bytes: the byte at address a lands at a XOR (((a >> 7) AND (W / 16 - 1)) << 4), a being the absolute
   address. Chunks of 16 bytes move as a whole, within their line of 128 bytes.
6. A load counts all bytes of the box at its mbarrier, those of filled elements too, but not those of gaps.
7. tf32 elements are rounded when they are loaded: to 10 bits of fraction, to nearest, ties to even; subnormals too; a
   NaN becomes 0x7FFFE000. The fill is not rounded. All other types are copied bit by bit.
8. A store writes the elements inside of the tensor, and skips the others; along the innermost dimension in chunks of 16
   bytes: if the first byte of a chunk is inside, all of the chunk is written.
9. The instruction traps on: a shared address that is not a multiple of 128; an innermost start that is not at a
   multiple of 16 bytes; a store with a negative start; an im2col start outside of lower to W - 1 + upper; an im2col
   store with a lower corner below 0 or an upper corner above 0. An im2col store has no offsets.
10. With an interleave of U bytes, channels lie in slices of U bytes: the tensor is [n, slice, ..., w], and along w
   everything counts slices, in the map too. Dimension 1 is not walked: a copy has the slice of its start, whatever the
   box. An im2col copy has one slice of each pixel, whatever its channels, and its spatial dimensions are those from 2
   on. Rows are never padded, and a store has no chunks: slices are stored whole.

Source: an H200 and an H100 (driver 580, CUDA 13.0): random copies of all types, ranks, swizzles, fills, steps and
interleaves, byte by byte; docs/tensor_maps.md has the counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..._arguments import is_integer, members
from ..._lazy_numpy import Array, _arrays, np
from ..._records import Record
from ...errors import OperandError, UnsupportedError, shown

LINE = 128
CHUNK = 16
_NAN = 0x7FF77FF77FF77FF7
_LIMIT = 1 << 31  # of coordinates, which are s32
_WINDOW = 1 << 32


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxCopy(Record):
    """One tensor copy, element by element.

    Arrays have the shape of the box, outermost dimension first; of im2col `[pixel, channel]`. With an interleave, a
    last axis has the elements of a slice.

    Attributes
    ----------
    index : tuple of ndarray of int64
        Coordinates of each element, or of its slice, an array for each dimension of the tensor; they broadcast to the
        box's shape.
    inside : ndarray of bool
        Whether the element is in the tensor; else it is filled, or not stored.
    source : ndarray of int64
        Byte of each element, from the tensor's first one on; of elements outside the one that they would have.
    target : ndarray of int64
        Address of each element in shared memory.
    at : int
        Address of the box.
    span : int
        Bytes of shared memory from `at` on that hold it, with gaps.
    itemsize : int
    swizzle : int
    nan, rounds : bool
        Whether NaN is filled, and whether loads round to tf32.
    """

    index: tuple[Array, ...]
    inside: Array
    source: Array
    target: Array
    at: int
    span: int
    itemsize: int
    swizzle: int
    nan: bool
    rounds: bool

    @property
    def copied_bytes(self) -> int:
        """Bytes that a load adds to its mbarrier."""
        return self.target.size * self.itemsize

    @cached_property
    def addresses(self) -> Array:
        """Address in shared memory of every chunk of 16 bytes, ascending; without gaps."""
        return _arrays.frozen(np.unique(self.target & -CHUNK))

    @cached_property
    def _apart(self) -> bool:
        """Whether no two elements of the box lie on one another in the tensor."""
        places = self.source[self.inside]
        return np.unique(places).size == places.size

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """The elements of memory that are inside, and where each is in shared memory."""
        return self.source[self.inside] // self.itemsize, ((self.target - self.at) // self.itemsize)[self.inside]

    @cached_property
    def _landing(self) -> Array | None:
        """The element of memory of each element of shared memory; None if there are gaps, or some are filled."""
        source, target = self._places
        if len(target) * self.itemsize != self.span:
            return None
        places = np.empty(len(target), np.int64)
        places[target] = source
        return places

    def load_each(self, memory: Array) -> Array:
        """Return what `load` does of several memories, uint8 `[n, bytes]`, a multiple of 8: `[n, span]`."""
        if (landing := self._landing) is None:
            return np.stack([self.load(x) for x in memory])
        brought = memory.view(f"u{self.itemsize}").take(landing, axis=1)
        return (to_tf32(brought) if self.rounds else brought).view(np.uint8)

    def store_each(self, memory: Array, shared: Array) -> None:
        """Write the box to several memories, uint8 `[n, bytes]`, from shared memory, uint8 `[n, span]`: see `store`."""
        (source, target), code = self._places, f"u{self.itemsize}"
        memory.view(code)[:, source] = shared.view(code)[:, target]

    def load(self, memory: Array, shared: Array | None = None) -> Array:
        """Return the bytes of shared memory from `at` on after a load: see `TensorMap.read`."""
        tensor = self._codes(memory, "memory")
        kept = np.zeros(self.span, np.uint8) if shared is None else self._shared(shared).copy()
        values = np.full(self.target.shape, _NAN & ((1 << 8 * self.itemsize) - 1) if self.nan else 0, tensor.dtype)
        brought = tensor[self.source[self.inside] // self.itemsize]
        values[self.inside] = to_tf32(brought) if self.rounds else brought
        kept.view(tensor.dtype)[(self.target - self.at) // self.itemsize] = values
        return kept

    def store(self, memory: Array, shared: Array) -> None:
        """Write the box to the tensor: see `TensorMap.write`."""
        tensor = self._codes(memory, "memory")
        if not tensor.flags.writeable:
            raise OperandError("memory is read-only; expected an array that a store can change")
        if not self._apart:
            raise UnsupportedError(
                "tensor copy: elements of the box lie on one another in the tensor, whose strides are smaller than its "
                "rows; which of them a store keeps is not known"
            )
        held, places = self._shared(shared).view(tensor.dtype), self.source[self.inside] // self.itemsize
        tensor[places] = held[((self.target - self.at) // self.itemsize)[self.inside]]

    def _codes(self, memory: Any, name: str) -> Array:
        """Return the elements of the tensor's memory as unsigned integers, without a copy; check that it has all."""
        if not isinstance(memory, np.ndarray) or not memory.flags.c_contiguous or memory.dtype.hasobject:
            raise OperandError(f"{name} is {shown(memory)}; expected a C-contiguous ndarray, such as bytes of uint8")
        octets = np.asarray(memory).reshape(-1).view(np.uint8)  # of a matrix too
        last = int(self.source.max(where=self.inside, initial=-1))
        if last + self.itemsize > octets.size and last >= 0:
            raise OperandError(
                f"{name} has {octets.size} bytes; the copy touches bytes up to {last + self.itemsize - 1}, counted "
                "from the tensor's address"
            )
        return octets[: octets.size // self.itemsize * self.itemsize].view(f"u{self.itemsize}")

    def _shared(self, shared: Any) -> Array:
        if (
            not isinstance(shared, np.ndarray)
            or shared.dtype != np.uint8
            or shared.ndim != 1
            or len(shared) < self.span
        ):
            raise OperandError(
                f"shared is {shown(shared)}; expected uint8 [bytes], {self.span} bytes from address {self.at:#x} on"
            )
        return np.ascontiguousarray(np.asarray(shared)[: self.span])


def to_tf32(codes: Array) -> Array:
    """Rule 7, on codes of f32."""
    bits = codes.astype(np.uint32)
    rounded = (bits + (np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1)))) & np.uint32(0xFFFFE000)
    return np.where(bits & np.uint32(0x7FFFFFFF) > np.uint32(0x7F800000), np.uint32(0x7FFFE000), rounded)


def tiled_index(start: Sequence[int], counts: Sequence[int], steps: Sequence[int]) -> tuple[Array, ...]:
    """Rule 1."""
    return np.ix_(*(s + e * np.arange(n, dtype=np.int64) for s, n, e in zip(start, counts, steps, strict=True)))


def im2col_index(
    start: Sequence[int], offsets: Sequence[int], shape: Sequence[int], lower: Sequence[int], upper: Sequence[int],
    steps: Sequence[int], pixels: int, channels: int, *, sliced: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """Rule 2, rule 10 if it is sliced, and the trap of rule 9; offsets and corners are of spatial dimensions alone."""
    left = np.arange(pixels, dtype=np.int64)  # pixels that are left for this dimension and those further out
    spatial = []
    first_axis = 2 if sliced else 1
    for axis in range(len(lower) - 1, -1, -1):
        at_axis = first_axis + axis
        begin, step, last = start[at_axis], steps[at_axis], shape[at_axis] - 1 + upper[axis]
        if not lower[axis] <= begin <= last:
            raise OperandError(
                f"coordinates[{at_axis}] is {begin}; expected {lower[axis]} to {last}, from the lower corner to the "
                'size - 1 + the upper corner: elsewhere the instruction traps, "illegal instruction"'
            )
        first, each = (last - begin) // step + 1, (last - lower[axis]) // step + 1
        later = left - first
        at = np.where(later < 0, begin + step * left, lower[axis] + step * (later % each))
        left = np.where(later < 0, 0, later // each + 1)
        spatial.append(at + offsets[axis])
    image = start[0] + steps[0] * left
    n, *along = (x[:, None] for x in (image, *spatial[::-1]))
    if sliced:
        return (n, np.full_like(n, start[1]), *along)
    return (n, *along, start[-1] + np.arange(channels, dtype=np.int64)[None, :])


def check_start(
    coordinates: Any, at: Any, offsets: Any, rank: int, unit: int, offset_bits: int, *, store: bool
) -> tuple[list[int], int, list[int]]:  # fmt: skip
    """Check the operands of the instruction: rule 9, and their number.

    `unit` is what the innermost coordinate counts, in bytes, and `offset_bits` is 0 for a tiled map.
    """
    start = _checked("coordinates", coordinates, rank, -_LIMIT, _LIMIT)
    spatial = rank - 2 if offset_bits else 0
    if not spatial or store is True:
        if members(offsets, 1) != []:
            why = "a store has none" if spatial else "the map is not of mode im2col"
            raise OperandError(f"offsets is {shown(offsets)}; expected none: {why}")
        moved = [0] * spatial
    else:
        moved = _checked("offsets", offsets, spatial, 0, 1 << offset_bits)
    if not isinstance(store, bool):
        raise OperandError(f"store is {shown(store)}; expected True or False")
    if not is_integer(at) or not 0 <= int(at) < _WINDOW or int(at) % LINE:
        near = min(max(0, (int(at) + LINE // 2) // LINE * LINE), _WINDOW - LINE) if is_integer(at) else 0
        raise OperandError(
            f"at is {shown(at)}; expected a multiple of {LINE}, in every swizzle mode: on others the instruction "
            f'traps, "misaligned address"; the nearest is {near}'
        )
    row = start[-1] * unit
    if row % CHUNK:
        each = CHUNK // unit
        raise OperandError(
            f"coordinates[{rank - 1}] is {start[-1]}: byte {row} of a row; expected a multiple of {CHUNK} bytes, "
            f'{each} elements: on others the instruction traps, "illegal instruction"; the nearest is '
            f"{(start[-1] + each // 2) // each * each}"
        )
    if store and min(start) < 0:
        axis = start.index(min(start))
        raise OperandError(
            f'coordinates[{axis}] is {start[axis]}; a store with a negative start traps, "illegal instruction"; the '
            "nearest is 0"
        )
    return start, int(at), moved


def check_stored_corners(lower: Sequence[int], upper: Sequence[int]) -> None:
    """Rule 9, of im2col."""
    for name, corners, wrong in (("lower", lower, min(*lower, 0)), ("upper", upper, max(*upper, 0))):
        if wrong:
            raise OperandError(
                f"{name}[{corners.index(wrong)}] is {wrong}; a store of a map whose box of pixels reaches beyond the "
                'image traps, "illegal instruction"; the nearest is 0'
            )


def _checked(name: str, values: Any, count: int, low: int, high: int) -> list[int]:
    small = isinstance(values, np.ndarray) and values.shape == (count,)
    found = values.tolist() if small else members(values, count)
    if found is None or len(found) != count or not all(is_integer(x) and low <= int(x) < high for x in found):
        raise OperandError(
            f"{name} is {shown(values)}; expected {count} integers from {low} to {high - 1}, the outermost dimension "
            "first"
        )
    return [int(x) for x in found]


def landing(shape: Sequence[int], itemsize: int, swizzle: int, at: int, *, sliced: bool) -> tuple[Array, int]:
    """Rules 4, 5 and 10: the address of each element, and the bytes from `at` on that hold them."""
    pitch = max(shape[-1] * itemsize, 0 if sliced else swizzle)
    rows = math.prod(shape[:-1])
    linear = at + pitch * np.arange(rows, dtype=np.int64)[:, None] + itemsize * np.arange(shape[-1], dtype=np.int64)
    if swizzle:
        linear ^= (linear >> 7 & swizzle // CHUNK - 1) << 4
    width = swizzle or 1
    return linear.reshape(shape), -(-pitch * rows // width) * width


def inside_of(index: tuple[Array, ...], shape: Sequence[int], unit: int, *, store: bool) -> Array:
    """Rules 3 and 8: whether each element is in the tensor; the innermost coordinate counts `unit` bytes."""
    found, each = np.ones((), bool), max(1, CHUNK // unit)
    reached = (*shape[:-1], -(-shape[-1] // each) * each) if store else shape
    for at, size in zip(index, reached, strict=True):
        found = found & (at >= 0) & (at < size)
    return found


def source_of(index: tuple[Array, ...], strides: Sequence[int]) -> Array:
    """Byte of each element, from the tensor's first on."""
    return sum((at * stride for at, stride in zip(index, strides, strict=True)), start=np.zeros((), np.int64))
