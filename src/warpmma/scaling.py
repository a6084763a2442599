"""Block scales: which elements share one, where it sits in a warp's registers, and how a matrix gets its own.

`D = (A * scale_A) * (B * scale_B) + C`: scale_A is M x S, scale_B is S x N; S is 1, 2, 4 for 1X, 2X, 4X.
Block s of a row of A or a column of B is its K/S elements from s*K/S on. K is logical: of a sparse A they are
columns of the dense matrix (PTX ISA 9.1, 9.7.14.3; docs/specification/ptx.md 4).

Each lane gives a 32-bit word of scales, and where a scale sits renames bits. Its byte in the word has, low to
high, the bits of s, then those of the byte-id that s leaves over. Its lane, l4 to l0, is i2 i1 i0 t0 i3 for a
row i of A, so a pair of lanes in each quad, and i2 i1 i0 t1 t0 for a column i of B; t is the thread-id.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arguments import is_integer, members
from ._arrays import as_array, frozen
from ._blocks import as_float32, elements, mx, nvfp4, peaks
from .errors import OperandError, ScaleError, shown
from .formats import FORMATS, floating
from .isa import Instruction, instructions, parse
from .layouts import Operand
from .registers import LANES

__all__ = [
    "Quantized", "block_size", "byte_ids", "checked_ids", "pack_scales", "quantize", "scale_codes", "scale_place",
    "thread_ids", "unpack_scales",
]  # fmt: skip

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]

_F32, _F64, _F16, _BF16, _UE8M0, _UE4M3 = map(floating, ("f32", "f64", "f16", "bf16", "ue8m0", "ue4m3"))
_TYPED = {"ue8m0": _UE8M0, "ue4m3": FORMATS["e4m3"]}  # formats whose dtype matrices of scales have
_ELEMENTS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")

# The law: the bit of s, byte-id (y), thread-id (t), row or column (i) at each bit of a place, lowest first.
_BYTE = {1: ("y0", "y1"), 2: ("s0", "y1"), 4: ("s0", "s1")}
_LANE = {"A": ("i3", "t0", "i0", "i1", "i2"), "B": ("t0", "t1", "i0", "i1", "i2")}


def _legal(place: tuple[str, ...], letter: str) -> tuple[int, ...]:
    """Return the numbers whose bits a place has room for."""
    mask = sum(1 << int(bit[1]) for bit in place if bit[0] == letter)
    return tuple(x for x in range(mask + 1) if x & mask == x)


@cache
def _octets(operand: Operand, s: int, byte_id: int, thread_id: int) -> Array:
    """Place of each scale, 4 * lane + byte, in the shape of the operand's scales."""
    place = _BYTE[s] + _LANE[operand]
    index, block = np.array(_legal(place, "i"))[:, None], np.arange(s)
    values = {"i": index, "s": block, "y": np.array(byte_id), "t": np.array(thread_id)}
    octets = np.zeros((index.size, s), np.intp)
    for weight, bit in enumerate(place):
        octets |= (values[bit[0]] >> int(bit[1]) & 1) << weight
    return _along_k(frozen(octets), operand)


def block_size(instruction: str | Instruction) -> int:
    """Logical columns of A, or rows of B, that share a scale: K/S. `ScaleError` without block scaling.

    Examples
    --------
    >>> block_size("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
    32
    """
    record = _scaled(instruction)
    return record.k // record.scales_per_row


def byte_ids(instruction: str | Instruction) -> tuple[int, ...]:
    """Legal byte-ids, of A and of B (PTX ISA 9.1, table 37). `ScaleError` without block scaling.

    Examples
    --------
    >>> byte_ids("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
    (0, 2)
    """
    return _legal(_BYTE[_scaled(instruction).scales_per_row], "y")


def thread_ids(operand: Operand) -> tuple[int, ...]:
    """Legal thread-ids of "A" or "B" (PTX ISA 9.1, table 37). `OperandError` for another operand.

    Examples
    --------
    >>> thread_ids("A"), thread_ids("B")
    ((0, 1), (0, 1, 2, 3))
    """
    return _legal(_LANE[_checked(operand)], "t")


def scale_place(
    instruction: str | Instruction, operand: Operand, index: int, block: int, *,
    byte_id: int = 0, thread_id: int = 0,
) -> tuple[int, int]:  # fmt: skip
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
    record = _scaled(instruction)
    octets = _along_k(_select(record, operand, byte_id, thread_id), operand)
    given = (index, block)
    if not all(is_integer(x) and 0 <= x < n for x, n in zip(given, octets.shape, strict=True)):
        came = f"index {shown(index)}, block {shown(block)} of {operand}"
        raise ScaleError(f"{record}: no scale for {came}; it has {octets.shape[0]} by {octets.shape[1]}")
    lane, byte = divmod(int(octets[index, block]), 4)
    return lane, 8 * byte


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
        Words `[..., 32]` to put the scales into, of which a copy is made; leading dimensions broadcast.

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
    record = _scaled(instruction)
    octets = _select(record, operand, byte_id, thread_id)
    codes = scale_codes(record, operand, scales)
    if codes.shape[-2:] != octets.shape:
        expected = "[..., {}, {}]".format(*octets.shape)
        raise ScaleError(f"{record}: scales of {operand} are {codes.shape}; expected {expected}")
    base = np.zeros(LANES, np.uint32) if into is None else _words(record, operand, into)
    try:
        batch = np.broadcast_shapes(codes.shape[:-2], base.shape[:-1])
    except ValueError:
        raise ScaleError(f"{record}: scales {codes.shape} and into {base.shape} do not broadcast") from None
    words = np.broadcast_to(base, (*batch, LANES)).astype("<u4", order="C")  # byte 0 first on every machine
    words.view(np.uint8)[..., octets] = codes
    return words.astype(np.uint32, copy=False)


def unpack_scales(
    words: npt.ArrayLike, instruction: str | Instruction, operand: Operand, *,
    byte_id: int = 0, thread_id: int = 0,
) -> Array:  # fmt: skip
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
    record = _scaled(instruction)
    octets = _select(record, operand, byte_id, thread_id)
    octets_of_warp = np.ascontiguousarray(_words(record, operand, words), "<u4").view(np.uint8)
    return octets_of_warp.take(octets, axis=-1) & np.uint8(FORMATS[record.stype or ""].mask)


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantized:
    """A matrix as elements and block scales.

    Attributes
    ----------
    elements : ndarray
        `[..., rows, K]` of A or `[..., K, columns]` of B, of the operand's ml_dtypes type.
    scales : ndarray of uint8
        Codes, `[..., rows, S]` of A or `[..., S, columns]` of B; ue4m3 with a tensor scale, else ue8m0.
    tensor_scale : float32, ndarray of float32 or None
        NVFP4's second level, `[...]`: one number for each matrix. Instructions do not know it; D is to be
        multiplied by that of A and that of B.
    """

    elements: Array
    scales: Array
    tensor_scale: np.float32 | Array | None = None

    def dequantize(self) -> Float64:
        """Values of the matrix, as float64 of the elements' shape; NaN where a block's scale is.

        They are exact: at most 2 + 4 + 24 significand bits (NVFP4), and 0 or between 2**-159 (the least e2m1,
        ue4m3 and f32) and 2**144 (the largest e5m2 and ue8m0) in magnitude.

        Raises
        ------
        OperandError, ScaleError
            Elements of no type that has block scales; scales that do not go with them.
        """
        elements, codes = as_array(self.elements, "elements"), as_array(self.scales, "scales", ScaleError)
        fmt = next((f for f in map(floating, _ELEMENTS) if f.dtype == elements.dtype), None)
        if fmt is None or elements.ndim < 2:
            raise OperandError(
                f"elements are {elements.dtype} {elements.shape}; expected an ml_dtypes type of 4 to 8 bits"
            )
        own, came = elements.shape, codes.shape
        axis = -1 if own[-1:] != came[-1:] else -2  # a block is never one element
        blocks = came[axis] if len(came) == len(own) else 0
        if codes.dtype != np.uint8 or not blocks or own[axis] % blocks or _without(own, axis) != _without(came, axis):
            raise ScaleError(f"scales are {codes.dtype} {came}; expected uint8, blocks of a row or column of {own}")
        if self.tensor_scale is None:
            scales = _UE8M0.decode(codes)
        else:
            given = as_array(self.tensor_scale, "tensor_scale", ScaleError)
            if given.dtype != np.float32 or given.shape not in ((), own[:-2]):
                raise ScaleError(f"tensor_scale is {given.dtype} {given.shape}; expected float32 {own[:-2]}")
            tensor = _F32.decode(given.view(np.uint32))
            scales = _UE4M3.decode(codes & np.uint8(_UE4M3.mask)) * tensor[..., None, None]
        return fmt.decode(fmt.codes(elements)) * scales.repeat(own[axis] // blocks, axis)


def _without(shape: tuple[int, ...], axis: int) -> list[int]:
    return [n for i, n in enumerate(shape, -len(shape)) if i != axis]


def quantize(matrix: npt.ArrayLike, instruction: str | Instruction, operand: Operand = "A") -> Quantized:
    """Round a matrix to elements and block scales that an instruction takes.

    Parameters
    ----------
    matrix : array_like of float32, float64, float16 or bfloat16
        `[..., rows, K]` for A, `[..., K, columns]` for B: of any size, K a multiple of `block_size`; a sparse
        A is given dense. Values of float64 must all be float32's.
    instruction : str or Instruction
        Tells the types of elements and scales, and the size of a block.
    operand : {"A", "B"}

    Returns
    -------
    Quantized
        Zeros keep their sign, and so do values that become zero.

    Raises
    ------
    OperandError, ScaleError
        Another operand, shape or dtype; no block scaling; what is no float32; for ue4m3, NaN or infinity.

    Notes
    -----
    With ue8m0, by OCP Microscaling Formats 1.0, 6.3: X = floor(log2(max |v|)) - emax over a block, clamped to
    [-127, 127]; emax is the exponent of the element type's largest number. The scale is 2**X; an element is
    v / 2**X rounded once, to nearest even, saturating at the largest number. What OCP leaves open: a block of
    zeros has X = -127; one with NaN or infinity has the scale 0xFF (NaN) and elements +0.

    With ue4m3, by NVFP4's two levels (arXiv 2509.25149). Every rounding is to nearest even:

    1. tensor_scale = float32(max |v| / (448 * 6)) over a matrix; at least 2**-149, but 1 for one of zeros.
    2. scale = ue4m3(float32(float32(max |v| / 6) / tensor_scale)) over a block, saturating at 448.
    3. element = e2m1(float32(v / float32(scale * tensor_scale))), saturating at 6; 0 where the divisor is 0.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    >>> q = quantize(np.linspace(0, 12.4, 32, dtype=np.float32)[None, :], i)
    >>> q.scales, q.dequantize()[0, ::6]
    (array([[128]], dtype=uint8), array([ 0.,  2.,  4.,  8.,  8., 12.]))
    """
    record = _scaled(instruction)
    size, axis = block_size(record), -1 if _checked(operand) == "A" else -2
    bits = _bits(record, operand, matrix)
    if bits.ndim < 2 or not bits.shape[axis] or bits.shape[axis] % size:
        expected = f"[..., {'rows, K' if operand == 'A' else 'K, columns'}], K a multiple of {size}"
        raise OperandError(f"{record}: {operand} is {bits.shape}; expected {expected}")
    *batch, rows, columns = bits.shape
    each = (rows, columns // size) if operand == "A" else (rows // size, columns)  # blocks of a matrix
    # Every block beside the next; of B as many side by side as it has columns.
    across = 1 if operand == "A" else columns
    blocks = bits.reshape(math.prod(batch) * math.prod(each) // max(1, across), size, across)
    top = peaks(blocks)
    endless = top >= _F32.max_code + 1  # infinity
    if record.stype == "ue4m3" and endless.any():
        raise OperandError(f"{record}: {operand} holds NaN or infinity, for which NVFP4 has no scale")
    fmt = floating(record.type(operand))
    rule = mx if record.stype == "ue8m0" else nvfp4
    scales, divisors, tensor_scale = rule(_F32.decode(top).reshape(*batch, math.prod(each)), fmt)
    codes = elements(fmt, blocks, divisors.reshape(top.shape))
    if endless.any():
        codes[np.broadcast_to(endless[:, None], codes.shape)] = 0
    return Quantized(
        elements=fmt.array(codes.reshape(bits.shape)), scales=scales.reshape(*batch, *each), tensor_scale=tensor_scale
    )


def _scaled(instruction: str | Instruction) -> Instruction:
    """Read an instruction, which must have block scaling."""
    record = parse(instruction)
    if record.block_scale:
        return record

    parts, those = ("sparse", "a_type", "b_type"), (i for i in instructions() if i.block_scale)
    nearest = max(those, key=lambda i: sum(getattr(i, part) == getattr(record, part) for part in parts))
    raise ScaleError(f"{record} has no block scaling. Nearest that has: {nearest}")


def _checked(operand: Operand) -> Operand:
    """Check that an operand can have scales."""
    if not isinstance(operand, str) or operand not in ("A", "B"):
        raise OperandError(f"operand {shown(operand)} has no scales; expected 'A' or 'B'")
    return "A" if operand == "A" else "B"


def _along_k(array: Array, operand: Operand) -> Array:
    """Turn K to the end, or back from there to its place: the same transposition."""
    return array if operand == "A" else array.swapaxes(-1, -2)


def _select(record: Instruction, operand: Operand, byte_id: int, thread_id: int) -> Array:
    """Check the selectors, and return the places of the scales."""
    legal = {"byte-id": (byte_id, byte_ids(record)), "thread-id": (thread_id, thread_ids(operand))}
    for name, (value, expected) in legal.items():
        if not is_integer(value) or value not in expected:
            choices = ", ".join(map(str, expected))
            raise ScaleError(f"{record}: {name} of {operand} is {shown(value)}; expected {choices}")
    return _octets(operand, record.scales_per_row, int(byte_id), int(thread_id))


def checked_ids(instruction: str | Instruction, ids: Sequence[int]) -> tuple[int, int, int, int]:
    """Return byte-id and thread-id of A, byte-id and thread-id of B; raise `ScaleError` for what is undefined."""
    record, four = _scaled(instruction), members(ids, 4)
    if four is None or len(four) != 4:
        raise ScaleError(
            f"{record}: ids are {shown(ids)}; expected byte-id and thread-id of A, byte-id and thread-id of B"
        )
    byte_a, thread_a, byte_b, thread_b = four
    _select(record, "A", byte_a, thread_a)
    _select(record, "B", byte_b, thread_b)
    return int(byte_a), int(thread_a), int(byte_b), int(thread_b)


def _words(record: Instruction, operand: Operand, words: npt.ArrayLike) -> Array:
    """Check words of scales."""
    array = as_array(words, f"{record}: words of {operand}'s scales", ScaleError)
    if array.dtype != np.uint32 or array.shape[-1:] != (LANES,):
        came = f"{array.dtype} {array.shape}"
        raise ScaleError(f"{record}: words of {operand}'s scales are {came}; expected uint32 [..., {LANES}]")
    return array


def scale_codes(record: str | Instruction, operand: Operand, scales: npt.ArrayLike) -> Array:
    """Return codes of scales, given as codes or as an ml_dtypes array; raise `ScaleError` for anything else."""
    record, operand = _scaled(record), _checked(operand)
    array, stype = as_array(scales, f"{record}: scales of {operand}", ScaleError), record.stype or ""
    if array.dtype != np.uint8 and array.dtype != _TYPED[stype].dtype:
        expected = f"{_TYPED[stype].dtype}, or codes as uint8 (from values: FORMATS[{stype!r}].encode)"
        raise ScaleError(f"{record}: scales of {operand} are {array.dtype}; expected {expected}")
    array = array.view(np.uint8)
    for place in np.argwhere(array > FORMATS[stype].mask)[:1].tolist():
        came = f"scale {array[tuple(place)]:#x} of {operand} at {place}"
        raise ScaleError(f"{record}: {came} has its top bit set; {stype} has no sign")
    return array


def _bits(record: Instruction, operand: Operand, matrix: npt.ArrayLike) -> Array:
    """Codes of a matrix as float32, contiguous; values of float64 are checked to be float32's."""
    array = as_array(matrix, f"{record}: {operand}")
    fmt = {f.dtype: f for f in (_F32, _F64, _F16, _BF16)}.get(array.dtype)
    if fmt is None:
        raise OperandError(f"{record}: {operand} is {array.dtype}; expected float32, 64 or 16, or bfloat16")
    codes = np.ascontiguousarray(fmt.codes(array))
    if fmt is _F32:
        return codes.reshape(array.shape)
    bits, wrong = as_float32(fmt, codes.reshape(array.shape))
    if wrong is not None:
        place = [int(x) for x in np.unravel_index(wrong, array.shape)]
        came = f"{operand} holds {fmt.decode(codes.reshape(-1)[wrong])} at {place}"
        raise OperandError(f"{record}: {came}, which is no float32; round it with .astype(np.float32)")
    return bits
