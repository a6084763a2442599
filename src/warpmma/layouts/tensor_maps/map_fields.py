"""The 128 bytes of a tensor map as one table of bit fields, which the encoder, the decoder and `replace` read.

1. A map is a little-endian number of 1,024 bits; word w of 64 bits begins at bit 64 w. A field is one or two runs of
   bits, the lower half first, and holds an unsigned code.
2. Dimensions are numbered as in PTX here: 0 is the innermost.
3. A map has the fields of its mode, tiled or im2col, and of its rank alone. All other bits are 0 in what the driver
   writes.
4. Words 8 and 9 are the driver's own, and the GPU ignores them: a map that is built on the device has zeros there.
5. A GPU of sm_90 ignores all other bits: they were set one by one and in random sets, in maps of each mode and rank,
   and no load changed. Bit 22 of word 1 is refused all the same: on other GPUs it is probably a third bit of the
   swizzle.
6. `tensormap.replace.tile` writes one field, with the value that PTX takes: box, size and step are stored minus 1, a
   stride is stored in units of 16 bytes. Types 11 and 12 are stored as 7 and 8, and set the bit that rounds; other
   types leave that bit as it is. A swizzle clears bit 22 of word 1, which no host call sets.

Source: bytes of an H200's driver (580, CUDA 13.0), found by varying each argument of `cuTensorMapEncodeTiled` and
`cuTensorMapEncodeIm2col`, and by `tensormap.replace` on zeroed memory; both agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..._arguments import check_choice, is_integer
from ...errors import OperandError, UnsupportedError, shown

MAP_BYTES = 128
MAP_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz")
"""Element types in the numbering of `tensormap.replace`."""
ITEM_BYTES = MappingProxyType(dict(zip(MAP_TYPES, (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4), strict=True)))
MAP_SWIZZLES, MAP_INTERLEAVES, MAP_PROMOTIONS = (0, 32, 64, 128), (0, 16, 32), (0, 64, 128, 256)
MAP_FILLS = ("zero", "nan")
MOST_DIMENSIONS = 5
OFFSET_BITS = MappingProxyType({3: 16, 4: 8, 5: 5})
"""Bits of a corner of im2col, and of an offset, by the rank."""
ROUNDED = MAP_TYPES.index("tf32") - MAP_TYPES.index("f32")
"""How far the type of tf32 is behind the one that is stored for it."""


@dataclass(frozen=True)
class _Field:
    name: str
    pieces: tuple[tuple[int, int], ...]  # lowest bit and number of bits

    @property
    def mask(self) -> int:
        return sum(((1 << bits) - 1) << low for low, bits in self.pieces)

    def put(self, code: int) -> int:
        placed = 0
        for low, bits in self.pieces:
            placed |= (code & ((1 << bits) - 1)) << low
            code >>= bits
        return placed

    def get(self, number: int) -> int:
        code = shift = 0
        for low, bits in self.pieces:
            code |= (number >> low & ((1 << bits) - 1)) << shift
            shift += bits
        return code


def _row(name: str, word: int, low: int, bits: int, *more: tuple[int, int, int]) -> _Field:
    return _Field(name, tuple((64 * w + at, n) for w, at, n in ((word, low, bits), *more)))


_DIMENSIONS = range(MOST_DIMENSIONS)
_COMMON = (
    _row("address", 0, 0, 64), _row("im2col", 1, 0, 1), _row("rank", 1, 4, 3), _row("type", 1, 7, 4),
    _row("interleave", 1, 11, 2), _row("swizzle", 1, 13, 2), _row("fill", 1, 15, 1), _row("rounds", 1, 16, 1),
    _row("promotion", 1, 17, 2), _row("bytes", 8, 0, 32), _row("alignment", 9, 0, 32),
)  # fmt: skip
_STRIDES = tuple(
    _row(f"stride{i}", *at, 32, (3, 28 + 4 * i, 4)) for i, at in enumerate(((1, 32), (2, 0), (2, 32), (3, 0)), start=1)
)
_SIZES = tuple(_row(f"size{i}", 4 + i // 2, 32 * (i % 2), 32) for i in _DIMENSIONS)
_STEPS = tuple(_row(f"step{i}", 6, 32 + 3 * i, 3) for i in _DIMENSIONS)
_BOX = tuple(_row(f"box{i}", *((7, 8 * i - 8) if i else (6, 56)), 8) for i in _DIMENSIONS)
_PIXELS = _row("pixels", 7, 32, 16)
_HIGH_SWIZZLE = 64 + 22


def fields_of(im2col: bool, rank: int) -> tuple[_Field, ...]:
    """Rule 3."""
    found = (*_COMMON, *_STRIDES[: rank - 1], *_SIZES[:rank], *_STEPS[:rank])
    if not im2col:
        return (*found, *_BOX[:rank])
    bits = OFFSET_BITS[rank]
    corners = (
        _row(f"{name}{i}", 7, start + bits * i, bits)
        for name, start in (("lower", 0), ("upper", 16)) for i in range(rank - 2)
    )  # fmt: skip
    return (*found, _BOX[0], *corners, _PIXELS)


def pack_fields(codes: Mapping[str, int], im2col: bool, rank: int) -> bytes:
    """Write the codes of every field of a map."""
    return sum(field.put(codes[field.name]) for field in fields_of(im2col, rank)).to_bytes(MAP_BYTES, "little")


def unpack_fields(encoded: bytes) -> dict[str, int]:
    """Read the codes of every field (rule 5)."""
    number = int.from_bytes(encoded, "little")
    head = {field.name: field.get(number) for field in _COMMON}
    im2col, rank = bool(head["im2col"]), head["rank"] + 1
    legal = tuple(OFFSET_BITS) if im2col else tuple(range(1, MOST_DIMENSIONS + 1))
    if rank not in legal:
        mode = "im2col" if im2col else "tiled"
        raise OperandError(
            f"tensor map: the rank is {rank}; expected {legal[0]} to {legal[-1]} of a map of mode {mode}; word 1, bits "
            f"4-6, hold the rank - 1; the nearest rank is {min(max(rank, legal[0]), legal[-1])}"
        )
    rows = fields_of(im2col, rank)
    if number >> _HIGH_SWIZZLE & 1:
        raise UnsupportedError(
            f"tensor map: word 1, bit {_HIGH_SWIZZLE - 64} is set; no host call of sm_90 sets it, and what it does on "
            "other GPUs is not known; expected 0"
        )
    return {field.name: field.get(number) for field in rows}


# Rule 6


@dataclass(frozen=True)
class _Replaced:
    """What `tensormap.replace` writes: the field of each ordinal, what is legal, and the code of a value."""

    rows: tuple[_Field, ...]
    legal: range
    code: int = 0  # what is subtracted
    unit: int = 1

    @property
    def ordinals(self) -> bool:
        return len(self.rows) > 1


_BY_NAME = {field.name: field for field in _COMMON}
_SWIZZLE_MODE = _row("swizzle", 1, 13, 2, (1, 22, 1))
_REPLACED = MappingProxyType({
    "global_address": _Replaced((_BY_NAME["address"],), range(0, 1 << 64, 16)),
    "rank": _Replaced((_BY_NAME["rank"],), range(MOST_DIMENSIONS)),
    "box_dim": _Replaced(_BOX, range(1, 257), code=1),
    "global_dim": _Replaced(_SIZES, range(1, 1 << 32), code=1),  # a 32-bit register holds no 2^32
    "global_stride": _Replaced(_STRIDES, range(0, 1 << 40, 16), unit=16),
    "element_stride": _Replaced(_STEPS, range(1, 9), code=1),
    "elemtype": _Replaced((_BY_NAME["type"],), range(len(MAP_TYPES))),
    "interleave_layout": _Replaced((_BY_NAME["interleave"],), range(len(MAP_INTERLEAVES))),
    "swizzle_mode": _Replaced((_SWIZZLE_MODE,), range(len(MAP_SWIZZLES))),
    "fill_mode": _Replaced((_BY_NAME["fill"],), range(len(MAP_FILLS))),
})  # fmt: skip
REPLACED = tuple(_REPLACED)
"""Fields of `tensormap.replace`."""


def replace_field(encoded: bytes, field: str, value: int, ordinal: int | None = None) -> bytes:
    """Do what `tensormap.replace.tile.FIELD` does to a tensor map in memory.

    Parameters
    ----------
    encoded : bytes
        128 bytes. They need not be a legal map yet: Triton begins with zeros.
    field : str
        As PTX names it: "global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
        "elemtype", "interleave_layout", "swizzle_mode" or "fill_mode".
    value : int
        As PTX takes it: the rank minus 1, a stride in bytes, otherwise true values; modes by PTX's numbers.
    ordinal : int, optional
        The dimension, 0 the innermost, of "box_dim", "global_dim" and "element_stride" (0 to 4) and of
        "global_stride" (0 to 3, the stride of dimension 1 to 4). Other fields have none.

    Returns
    -------
    bytes
        The changed 128 bytes.

    Raises
    ------
    OperandError
        Not 128 bytes; an unknown field; a value or an ordinal that PTX does not take.

    Notes
    -----
    The source is PTX ISA 9.1 with an H200; ptxas for PTX 8.5 and older stores a stride unshifted, which is why such
    code passes `bytes >> 4`.

    Examples
    --------
    >>> map = bytes(128)
    >>> for ordinal, size in enumerate((64, 32)):
    ...     map = replace_field(map, "box_dim", size, ordinal)
    >>> map[55], map[56]
    (63, 31)
    """
    check_bytes(encoded)
    check_choice("field", field, REPLACED)
    row, name = _REPLACED[field], f"tensormap.replace.tile.{field}"
    if row.ordinals and (not is_integer(ordinal) or not 0 <= ordinal < len(row.rows)):
        raise OperandError(f"{name}: the ordinal is {shown(ordinal)}; expected 0 to {len(row.rows) - 1}")
    if not row.ordinals and ordinal is not None:
        raise OperandError(f"{name}: the ordinal is {shown(ordinal)}; expected None: this field has no dimensions")
    check_legal(f"{name}: the value", value, row.legal)
    number, code = int.from_bytes(encoded, "little"), (int(value) - row.code) // row.unit
    codes = [(row.rows[int(ordinal or 0)], code)]
    if field == "elemtype":
        rounds = MAP_TYPES[code].startswith("tf32")
        codes = [(row.rows[0], code - ROUNDED * rounds), *([(_BY_NAME["rounds"], 1)] if rounds else [])]
    for place, each in codes:
        number = number & ~place.mask | place.put(each)
    return number.to_bytes(MAP_BYTES, "little")


# Checks


def check_bytes(encoded: object) -> None:
    """Raise `OperandError` unless something is 128 bytes."""
    if not isinstance(encoded, bytes | bytearray | memoryview) or len(bytes(encoded)) != MAP_BYTES:
        size = f" of {len(bytes(encoded))} bytes" if isinstance(encoded, bytes | bytearray | memoryview) else ""
        raise OperandError(f"a tensor map is {type(encoded).__name__}{size}; expected bytes, {MAP_BYTES} of them")


def check_legal(name: str, value: object, legal: range) -> None:
    """Raise `OperandError` unless a value is an integer of a range; name the nearest one."""
    if is_integer(value) and int(value) in legal:  # a NumPy integer would be searched for, one by one
        return
    first, last, step = legal[0], legal[-1], legal.step
    many = f"a multiple of {step}" if step > 1 else "an integer"
    nearest = ""
    if is_integer(value):
        steps = (int(value) - first + step // 2) // step
        near = first + step * min(max(steps, 0), (last - first) // step)
        nearest = f"; the nearest is {_written(near)}"
    raise OperandError(
        f"{name} is {shown(value, _written)}; expected {many}, {_written(first)} to {_written(last)}{nearest}"
    )


def check_member(name: str, value: object, legal: Iterable[int]) -> None:
    """Raise `OperandError` unless a value is one of some integers; name the nearest one."""
    choices = tuple(legal)
    if is_integer(value) and value in choices:
        return
    listed = f"{', '.join(map(str, choices[:-1]))} or {choices[-1]}"
    near = f"; the nearest is {min(choices, key=lambda x: abs(x - int(value)))}" if is_integer(value) else ""
    raise OperandError(f"{name} is {shown(value)}; expected {listed}{near}")


def _written(value: object) -> str:
    return hex(value) if is_integer(value) and abs(value) >= 1 << 16 else repr(value)
