"""Words of scales: which bytes of which lanes hold them, by byte-id and thread-id."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from .._arguments import is_integer, members
from .._lazy_numpy import Array, _arrays, np, npt
from ..errors import OperandError, ScaleError, shown
from ..formats import FORMATS, Format
from ..isa import Instruction, instructions, parse
from ..layouts import Layout, Operand
from ..registers import LANES, Packing

_TYPED: dict[str, Format] = {"ue8m0": FORMATS["ue8m0"], "ue4m3": FORMATS["e4m3"]}
"""Formats whose dtype matrices of scales have."""

# The law: the bit of s, byte-id (y), thread-id (t), row or column (i) at each bit of a place, lowest first.
_BYTE = {1: ("y0", "y1"), 2: ("s0", "y1"), 4: ("s0", "s1")}
_LANE = {"A": ("i3", "t0", "i0", "i1", "i2"), "B": ("t0", "t1", "i0", "i1", "i2")}


@cache
def _legal(place: tuple[str, ...], letter: str) -> tuple[int, ...]:
    """Return the numbers whose bits a place has room for."""
    mask = sum(1 << int(bit[1]) for bit in place if bit[0] == letter)
    return tuple(x for x in range(mask + 1) if x & mask == x)


@cache
def _layout(operand: Operand, s: int, bits: int) -> Layout:
    """Layout of a register of scales, by the law; the byte-ids, then the thread-ids, name one of several matrices."""
    bit_of = dict(zip(_BYTE[s] + _LANE[operand], ("e0", "e1", "l0", "l1", "l2", "l3", "l4"), strict=True))
    row, column, *ids = (tuple(bit_of[x] for x in sorted(bit_of) if x[0] == letter) for letter in "isyt")
    return Layout(row=row, column=column, matrix=(*ids[0], *ids[1]), packing=Packing(slot=8, bits=bits))


@cache
def _octets(operand: Operand, s: int, byte_id: int, thread_id: int) -> Array:
    """Place of each scale, 4 * lane + byte, in the shape of the operand's scales."""
    layout, number = _layout(operand, s, 8), _ids(operand, s).index((byte_id, thread_id))
    lane, byte = (x.reshape(-1, *layout.shape[-2:])[number] for x in layout.slots)
    places = _arrays.frozen(4 * lane + byte)
    return places if operand == "A" else places.swapaxes(-1, -2)


@cache
def _ids(operand: Operand, s: int) -> tuple[tuple[int, int], ...]:
    return tuple((y, t) for t in _legal(_LANE[operand], "t") for y in _legal(_BYTE[s], "y"))


@cache
def block_scales(record: Instruction) -> BlockScales:
    """Return the block scales of a record; `ScaleError` for one without."""
    if not record.block_scale:
        parts, those = ("sparse", "a_type", "b_type"), (i for i in instructions() if i.block_scale)
        nearest = max(those, key=lambda i: sum(getattr(i, part) == getattr(record, part) for part in parts))
        raise ScaleError(f"{record} has no block scaling. Nearest that has: {nearest}")
    return BlockScales(record)


class BlockScales:
    """The core of this module: the block scales of one instruction, for operands, ids and arrays that are checked.

    Attributes
    ----------
    record : Instruction
    size : int
        Logical columns of A, or rows of B, that share a scale: K/S.
    """

    def __init__(self, record: Instruction) -> None:
        self.record, self._s, self._stype = record, record.scales_per_row, record.stype or ""
        self.size = record.k // self._s

    @property
    def byte_ids(self) -> tuple[int, ...]:
        """Legal byte-ids, of A and of B."""
        return _legal(_BYTE[self._s], "y")

    def layout(self, operand: Operand) -> Layout:
        """Layout of a register of scales, with a matrix for each of `ids`."""
        return _layout(operand, self._s, FORMATS[self._stype].bits)

    def ids(self, operand: Operand) -> tuple[tuple[int, int], ...]:
        """Pairs of byte-id and thread-id."""
        return _ids(operand, self._s)

    def check_ids(self, operand: Operand, byte_id: int, thread_id: int) -> None:
        """Raise `ScaleError` unless the instruction has these selectors for an operand."""
        legal = {"byte-id": (byte_id, self.byte_ids), "thread-id": (thread_id, thread_ids(operand))}
        for name, (value, expected) in legal.items():
            if not is_integer(value) or value not in expected:
                choices = ", ".join(map(str, expected))
                raise ScaleError(f"{self.record}: {name} of {operand} is {shown(value)}; expected {choices}")

    def codes(self, operand: Operand, scales: Array) -> Array:
        """Return codes of scales, given as codes or as an ml_dtypes array; raise `ScaleError` for anything else."""
        stype, array = self._stype, scales
        self.check_dtype(operand, array.dtype)
        array = array.view(np.uint8)
        for place in np.argwhere(array > FORMATS[stype].mask)[:1].tolist():
            came = f"scale {array[tuple(place)]:#x} of {operand} at {place}"
            raise ScaleError(f"{self.record}: {came} has its top bit set; {stype} has no sign")
        return array

    def check_dtype(self, operand: Operand, dtype: object) -> None:
        """Raise `ScaleError` unless scales of this type are of the instruction's, or codes."""
        expected = _TYPED[self._stype].dtype
        if dtype not in (np.uint8, expected):
            raise ScaleError(
                f"{self.record}: scales of {operand} are {dtype}; expected {expected}, or codes as uint8 (from values: "
                f"FORMATS[{self._stype!r}].encode)"
            )

    def pack(
        self, operand: Operand, scales: Array, byte_id: int = 0, thread_id: int = 0, into: Array | None = None
    ) -> Array:
        """Distribute scales over the words of a warp; `ScaleError` for another shape, dtype or code."""
        octets = _octets(operand, self._s, int(byte_id), int(thread_id))
        codes = self.codes(operand, scales)
        if codes.shape[-2:] != octets.shape:
            expected = "[..., {}, {}]".format(*octets.shape)
            raise ScaleError(f"{self.record}: scales of {operand} are {codes.shape}; expected {expected}")
        base = np.zeros(LANES, np.uint32) if into is None else into
        try:
            batch = np.broadcast_shapes(codes.shape[:-2], base.shape[:-1])
        except ValueError:
            raise ScaleError(f"{self.record}: scales {codes.shape} and into {base.shape} do not broadcast") from None
        words = np.broadcast_to(base, (*batch, LANES)).astype("<u4", order="C")  # byte 0 first on every machine
        words.view(np.uint8)[..., octets] = codes
        return words.astype(np.uint32, copy=False)

    def unpack(self, operand: Operand, words: Array, byte_id: int, thread_id: int) -> Array:
        """Collect scales from the words of a warp: the inverse of `pack`."""
        octets = _octets(operand, self._s, int(byte_id), int(thread_id))
        octets_of_warp = np.ascontiguousarray(words, "<u4").view(np.uint8)
        return octets_of_warp.take(octets, axis=-1) & np.uint8(FORMATS[self._stype].mask)


def block_size(instruction: str | Instruction) -> int:
    """Logical columns of A, or rows of B, that share a scale: K/S. `ScaleError` without block scaling.

    Examples
    --------
    >>> block_size("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
    32
    """
    return block_scales(parse(instruction)).size


def byte_ids(instruction: str | Instruction) -> tuple[int, ...]:
    """Legal byte-ids, of A and of B (PTX ISA 9.1, table 37). `ScaleError` without block scaling.

    Examples
    --------
    >>> byte_ids("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
    (0, 2)
    """
    return block_scales(parse(instruction)).byte_ids


def thread_ids(operand: Operand) -> tuple[int, ...]:
    """Legal thread-ids of "A" or "B" (PTX ISA 9.1, table 37). `OperandError` for another operand.

    Examples
    --------
    >>> thread_ids("A"), thread_ids("B")
    ((0, 1), (0, 1, 2, 3))
    """
    return _legal(_LANE[scaled_operand(operand)], "t")


def scale_place(
    instruction: str | Instruction, operand: Operand, index: int, block: int, *, byte_id: int = 0, thread_id: int = 0
) -> tuple[int, int]:
    """Lane and lowest bit of the scale of one block of row `index` of A, or of column `index` of B.

    The lane is `4 * (index % 8) + 2 * thread_id + index // 8` for A, `4 * index + thread_id` for B; the byte
    in it is `byte_id + block` (PTX ISA 9.1, 9.7.14.3).

    Raises
    ------
    OperandError, ScaleError
        Another operand; no block scaling, an undefined selector, or no such scale.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    >>> scale_place(i, "A", 11, 1, byte_id=2, thread_id=1)
    (15, 24)
    """
    scales = _asked(instruction, operand, byte_id, thread_id)
    layout = scales.layout(operand)
    given, (outer, blocks) = (index, block), layout.shape[-2:]
    if not all(is_integer(x) and 0 <= x < n for x, n in zip(given, (outer, blocks), strict=True)):
        came = f"index {shown(index)}, block {shown(block)} of {operand}"
        raise ScaleError(f"{scales.record}: no scale for {came}; it has {outer} by {blocks}")
    found = layout.cell(index, block, scales.ids(operand).index((byte_id, thread_id)))
    return found.lane, found.low


def scale_layout(instruction: str | Instruction, operand: Operand) -> Layout:
    """Layout of a register of scales: rows are those of A or columns of B, columns the blocks of such a row.

    A ue4m3 does not use the top bit of its byte. Every byte-id and every thread-id has a matrix of its own: all
    byte-ids with the first thread-id come first.

    Raises
    ------
    OperandError, ScaleError
        Another operand; no block scaling.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    >>> scale_layout(i, "A").shape, scale_layout(i, "A").locate(11, 1, matrix=3)
    ((4, 16, 2), (15, 0, 24))
    """
    return block_scales(parse(instruction)).layout(scaled_operand(operand))


def scale_ids(instruction: str | Instruction, operand: Operand) -> tuple[tuple[int, int], ...]:
    """Byte-id and thread-id that choose each of the matrices of `scale_layout`; its errors.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    >>> scale_ids(i, "A")
    ((0, 0), (2, 0), (0, 1), (2, 1))
    """
    return block_scales(parse(instruction)).ids(scaled_operand(operand))


def pack_scales(
    scales: npt.ArrayLike, instruction: str | Instruction, operand: Operand, *,
    byte_id: int = 0, thread_id: int = 0, into: npt.ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Distribute scales over the words of a warp.

    Parameters
    ----------
    scales : array_like of uint8, float8_e8m0fnu (for ue8m0) or float8_e4m3fn (for ue4m3)
        `[..., m, S]` for A, `[..., S, n]` for B. A ue4m3 has no sign: its codes are below 0x80.
    instruction : str or Instruction
    operand : {"A", "B"}
    byte_id, thread_id : int
        The selectors that the instruction is to be given for this operand.
    into : array_like of uint32, optional
        Words `[..., 32]` to put the scales into, copied first; leading dimensions broadcast.

    Returns
    -------
    ndarray of uint32
        `[..., 32]`. Bytes that the selectors do not name are 0, or as they are in `into`.

    Raises
    ------
    OperandError, ScaleError
        Another operand; no block scaling, an undefined selector, or a wrong shape, dtype or code.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    >>> words = pack_scales(np.arange(1, 9, dtype=np.uint8)[None, :], i, "B", byte_id=1, thread_id=2)
    >>> [hex(w) for w in words[:8]]
    ['0x0', '0x0', '0x100', '0x0', '0x0', '0x0', '0x200', '0x0']
    """
    found = _asked(instruction, operand, byte_id, thread_id)
    array = _arrays.as_array(scales, f"{found.record}: scales of {operand}", ScaleError)
    base = None if into is None else _words(found, operand, into)
    return found.pack(operand, array, byte_id, thread_id, base)


def unpack_scales(
    words: npt.ArrayLike, instruction: str | Instruction, operand: Operand, *, byte_id: int = 0, thread_id: int = 0
) -> Array:
    """Collect scales from the words `[..., 32]` (uint32) of a warp: the inverse of `pack_scales`.

    Returns
    -------
    ndarray of uint8
        Codes, `[..., m, S]` for A and `[..., S, n]` for B. The top bit of a ue4m3's byte is dropped, as the
        hardware ignores it (docs/specification/numerics.md 1.3).

    Raises
    ------
    OperandError, ScaleError
        Another operand; no block scaling, an undefined selector, or a wrong shape or dtype.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    >>> unpack_scales(np.full(32, 0xFF7F3801, np.uint32), i, "A", byte_id=2)[15]
    array([127, 255], dtype=uint8)
    """
    scales = _asked(instruction, operand, byte_id, thread_id)
    return scales.unpack(operand, _words(scales, operand, words), byte_id, thread_id)


def checked_ids(instruction: str | Instruction, ids: Sequence[int]) -> tuple[int, int, int, int]:
    """Return byte-id and thread-id of A, byte-id and thread-id of B; raise `ScaleError` for undefined ones."""
    scales, four = block_scales(parse(instruction)), members(ids, 4)
    if four is None or len(four) != 4:
        raise ScaleError(
            f"{scales.record}: ids are {shown(ids)}; expected byte-id and thread-id of A, byte-id and thread-id of B"
        )
    byte_a, thread_a, byte_b, thread_b = four
    scales.check_ids("A", byte_a, thread_a)
    scales.check_ids("B", byte_b, thread_b)
    return int(byte_a), int(thread_a), int(byte_b), int(thread_b)


def scale_codes(record: str | Instruction, operand: Operand, scales: npt.ArrayLike) -> Array:
    """Return codes of scales, given as codes or as an ml_dtypes array; raise `ScaleError` for anything else."""
    found, operand = block_scales(parse(record)), scaled_operand(operand)
    return found.codes(operand, _arrays.as_array(scales, f"{found.record}: scales of {operand}", ScaleError))


def scaled_operand(operand: Operand) -> Operand:
    """Check that an operand can have scales."""
    if not isinstance(operand, str) or operand not in ("A", "B"):
        raise OperandError(f"operand {shown(operand)} has no scales; expected 'A' or 'B'")
    return "A" if operand == "A" else "B"


def _asked(instruction: str | Instruction, operand: Operand, byte_id: int, thread_id: int) -> BlockScales:
    """Read an instruction with block scaling, which must have these selectors for an operand."""
    scales = block_scales(parse(instruction))
    scales.check_ids(operand, byte_id, thread_id)
    return scales


def _words(scales: BlockScales, operand: Operand, words: npt.ArrayLike) -> Array:
    """Check words of scales."""
    array = _arrays.as_array(words, f"{scales.record}: words of {operand}'s scales", ScaleError)
    if array.dtype != np.uint32 or array.shape[-1:] != (LANES,):
        came = f"{array.dtype} {array.shape}"
        raise ScaleError(f"{scales.record}: words of {operand}'s scales are {came}; expected uint32 [..., {LANES}]")
    return array
