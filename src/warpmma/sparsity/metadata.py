"""Metadata registers: which nibble sits where, packing and unpacking, and where the stored elements stand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache, partial
from typing import TYPE_CHECKING

from .._arguments import is_integer
from .._lazy import later
from ..errors import MetadataError, OperandError, shown
from ..isa import Instruction, parse
from ..layouts import Layout
from ..registers import LANES, Packing
from .legal import WHOLE, Codes, check_codes, codes_asked, codes_legal, legal_are, outside, said
from .patterns import columns, indices_of, named, nibbles_asked, pattern_checked

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .. import _arrays
    from .._arrays import Array

    UInt8 = npt.NDArray[np.uint8]
else:  # places of metadata need no NumPy
    np, _arrays = later("numpy"), later(".._arrays", __package__)


_WARPS = 1024  # checked at a time


def selectors(instruction: str | Instruction) -> tuple[int, ...]:
    """Legal sparsity selectors of an instruction: each chooses lanes of every quad that hold metadata."""
    return tuple(range(_layout(parse(instruction)).matrices))


def metadata_place(instruction: str | Instruction, row: int, group: int, *, selector: int = 0) -> tuple[int, int]:
    """Lane that holds the nibble of one group of a row, and the nibble's lowest bit.

    Examples
    --------
    >>> metadata_place("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 9, 6, selector=1)
    (7, 24)
    """
    record = parse(instruction)
    check_selector(record, selector)
    layout = _layout(record)
    for name, value, count in zip(("row", "group"), (row, group), layout.shape[-2:], strict=True):
        _check_index(record, name, value, count)
    found = layout.cell(row, group, selector)
    return found.lane, found.low


def metadata_layout(instruction: str | Instruction) -> Layout:
    """Layout of the metadata register: elements are nibbles, columns the groups of a row, matrices the selectors.

    Examples
    --------
    >>> layout = metadata_layout("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    >>> layout.shape, layout.locate(9, 6, 1)
    ((2, 16, 8), (7, 0, 24))
    """
    return _layout(parse(instruction))


def pack_metadata(
    indices: npt.ArrayLike, instruction: str | Instruction, *, selector: int = 0, into: npt.ArrayLike | None = None
) -> npt.NDArray[np.uint32]:
    """Pack indices, whether legal or not, into metadata registers, uint32 `[..., 32]`.

    Lanes that the selector leaves out are 0, or as in the registers `into`; the batches broadcast. Indices of a whole
    matrix, of rows and k that tiles of the instruction fill, become those of its tiles by
    `indices.reshape(m // 16, 16, -1, groups, 2).swapaxes(1, 2)`, groups being those of one tile.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> words = pack_metadata(np.tile([1, 3], (16, 4, 1)), i, selector=2)
    >>> [hex(word) for word in words[:4]], unpack_metadata(words, i, selector=2)[0].tolist()
    (['0x0', '0x0', '0xdddddddd', '0x0'], [[1, 3], [1, 3], [1, 3], [1, 3]])
    """
    record = parse(instruction)
    check_selector(record, selector)
    nibbles = nibbles_asked(record, indices, (record.m, record.k // pattern_checked(record).width))
    words = np.zeros(LANES, np.uint32) if into is None else _words(record, into)
    return pack_metadata_checked(record, nibbles, selector, words)


def pack_metadata_checked(
    record: Instruction, nibbles: Array, selector: int, into: Array | None = None
) -> npt.NDArray[np.uint32]:
    """`pack_metadata` of nibbles, `[..., m, groups]`."""
    packing = _layout(record).packing
    words = np.zeros(LANES, np.uint32) if into is None else into
    batch = batch_of(record, indices=nibbles.shape[:-2], into=words.shape[:-1])
    fields = np.broadcast_to(packing.split(words), (*batch, LANES, packing.per_register)).copy()
    fields[(..., *_places(record, selector))] = nibbles
    return packing.join(fields)


def unpack_metadata(words: npt.ArrayLike, instruction: str | Instruction, *, selector: int = 0) -> UInt8:
    """Unpack metadata registers into indices, uint8 `[..., m, groups, 2]`, whether legal or not."""
    record = parse(instruction)
    check_selector(record, selector)
    return indices_of(_read(record, _words(record, words), selector))


def check_metadata(
    words: npt.ArrayLike, instruction: str | Instruction, *, selector: int = 0, legal: Iterable[int] | None = None
) -> None:
    """Raise `MetadataError` unless every nibble in the selected lanes is legal; no other lanes are looked at.

    Legal are `legal_codes(instruction)`, or the nibbles in `legal`, 0 to 15. The error names the first that is not by
    warp, lane and number, and says what is legal and why.
    """
    record = parse(instruction)
    codes = codes_legal(record) if legal is None else codes_asked(legal)
    check_selector(record, selector)
    _check(record, _words(record, words), selector, codes, legal is None)


def check_selector(record: Instruction, selector: int) -> None:
    """Raise `MetadataError` unless a sparse instruction has this selector."""
    _check_index(record, "selector", selector, _layout(record).matrices)


def check_metadata_on(record: Instruction, words: Array, selector: int, target: str) -> None:
    """Raise `MetadataError` for metadata that is undefined, `UnsupportedError` if its effect on a target is unknown."""
    check_codes(record, target, partial(_check, record, words, selector))


def _check(record: Instruction, words: Array, selector: int, codes: Codes, by_rule: bool) -> None:
    layout = _layout(record)
    batch, here = words.shape[:-1], layout.places[0] == selector
    # As many warps at a time as fit in cache: the nibbles of all of them would be many times the words.
    for start in range(0, math.prod(batch), _WARPS):
        flat = np.arange(start, min(start + _WARPS, math.prod(batch)))
        chunk = words[flat] if len(batch) == 1 else words[np.unravel_index(flat, batch)] if batch else words[None]
        nibbles = layout.packing.split(chunk)
        bad = outside(nibbles, codes) & here
        if not bad.any():
            continue
        first, lane, number = np.argwhere(bad)[0].tolist()
        warp = [int(x) for x in np.unravel_index(start + first, batch)] if batch else []
        _, row, group = (int(place[lane, number]) for place in layout.places)
        nibble = nibbles[first, lane, number]
        raise MetadataError(
            f"{record}: metadata nibble {number} of lane {lane} is {nibble:#x}, indices {said(nibble)}, for "
            f"{named(pattern_checked(record), (*warp, row, group))}; {legal_are(codes, by_rule)}"
        )


def positions(words: npt.ArrayLike, instruction: str | Instruction, *, selector: int = 0) -> npt.NDArray[np.intp]:
    """Logical column of A at which every stored element stands, intp `[..., m, k/2]`.

    All sixteen nibbles act, as measured: equal indices put two elements, or pairs, at one place. Only tf32
    nibbles other than 0x4 and 0xE, which mix halves of elements (see `halves`), are a `MetadataError`.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> positions(np.full(32, 0x9E4E_9E4E, np.uint32), i)[0]
    array([ 2,  3,  4,  5, 10, 11, 13, 14])
    """
    record = parse(instruction)
    check_selector(record, selector)
    array = _words(record, words)
    if pattern_checked(record).units == 2:
        _check(record, array, selector, WHOLE, True)
    return positions_checked(record, array, selector)


def positions_checked(record: Instruction, words: Array, selector: int) -> npt.NDArray[np.intp]:
    """`positions` of metadata that is checked."""
    nibbles = _read(record, words, selector)
    rows = nibbles + np.arange(0, 16 * nibbles.shape[-1], 16)
    return rows_of_groups(record).take(rows, axis=0).reshape(*nibbles.shape[:-1], record.k // 2)


def halves(words: npt.ArrayLike, instruction: str | Instruction, *, selector: int = 0) -> UInt8:
    """Which half of a tf32 group becomes the low and which the high half of its stored element.

    uint8 `[..., m, groups, 2]`: 0 and 1 are the low and high half of element 0, 2 and 3 of element 1.
    """
    record = parse(instruction)
    if pattern_checked(record).units != 2:
        raise MetadataError(f"{record}: an index addresses whole elements; expected tf32")
    check_selector(record, selector)
    return halves_checked(record, _words(record, words), selector)


def halves_checked(record: Instruction, words: Array, selector: int) -> UInt8:
    """`halves` of metadata that is checked."""
    return indices_of(_read(record, words, selector))


@cache
def _layout(record: Instruction) -> Layout:
    """Layout of the metadata register, by the law."""
    high = "e2" if record.packing("A").slot >= 16 else "l0"
    rest = tuple(bit for bit in ("e0", "e1", "e2", "l0", "l1") if bit != high)
    needed = (record.k // pattern_checked(record).width).bit_length() - 1
    packing = Packing(slot=4, bits=4)
    return Layout(row=("l2", "l3", "l4", high), column=rest[:needed], matrix=rest[needed:], packing=packing)


def _places(record: Instruction, selector: int) -> tuple[Array, Array]:
    """Lane and number of the nibble of every group, two arrays `[m, groups]`."""
    layout = _layout(record)
    lane, number = (x.reshape(layout.matrices, *layout.shape[-2:])[selector] for x in layout.slots)
    return lane, number


def _read(record: Instruction, words: Array, selector: int) -> Array:
    """Nibble of every group, `[..., m, groups]`."""
    lane, number = _places(record, selector)
    return words.take(lane, axis=-1) >> _layout(record).packing.shifts[number] & np.uint32(15)


@cache
def rows_of_groups(record: Instruction) -> Array:
    """Columns of a group's stored elements, `[16 * group + nibble, stored element]`."""
    law = pattern_checked(record)
    return _arrays.frozen((np.arange(0, record.k, law.width)[:, None, None] + columns(law)).reshape(-1, law.kept))


def _words(record: Instruction, words: npt.ArrayLike) -> Array:
    array = _arrays.as_array(words, f"{record}: metadata", MetadataError)
    if array.shape[-1:] != (LANES,) or array.dtype != np.uint32:
        raise MetadataError(f"{record}: metadata is {array.dtype} {array.shape}; expected uint32 [..., 32]")
    return array


def batch_of(record: Instruction, **shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Broadcast leading dimensions; `shapes` are named as in the error."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        raise OperandError(f"{record}: batches do not broadcast: {shapes}") from None


def _check_index(record: Instruction, name: str, value: int, count: int) -> None:
    if not is_integer(value) or not 0 <= value < count:
        raise MetadataError(f"{record}: {name} is {shown(value)}; legal are {', '.join(map(str, range(count)))}")
