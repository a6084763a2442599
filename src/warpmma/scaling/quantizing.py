"""Matrices rounded to narrow elements and block scales."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._lazy import later
from .._lazy_numpy import Array, Float64, _arrays, np, npt
from .._records import Shown
from ..errors import OperandError, ScaleError
from ..formats import floating
from ..isa import Instruction, parse
from ..layouts import Operand
from .rules import as_float32, elements, mx, nvfp4, peaks
from .words import block_scales, scaled_operand

if TYPE_CHECKING:
    gpu: Any
else:
    gpu = later("..gpu", __package__)  # a room below, for arrays on a GPU alone

_F32, _F64, _F16, _BF16, _UE8M0, _UE4M3 = map(floating, ("f32", "f64", "f16", "bf16", "ue8m0", "ue4m3"))
_ELEMENTS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantized(Shown):
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

    Of a matrix on a GPU all are arrays of its library there; elements are of the type of their format, or codes,
    `uint8`, where the library lacks it. `dequantize` takes copies on the CPU.
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
        elements = _arrays.as_array(self.elements, "elements")
        codes = _arrays.as_array(self.scales, "scales", ScaleError)
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
            given = _arrays.as_array(self.tensor_scale, "tensor_scale", ScaleError)
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
        A is given dense. Values of float64 must all be float32's. An array on a GPU, of PyTorch, CuPy or another
        library that exports DLPack, is read in place.
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
        Another operand, shape or dtype; no block scaling; values that are not float32; for ue4m3, NaN or infinity.

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

    On a GPU the bits are the same, and nothing waits, so nothing depends on what elements are: a float64 is rounded
    to float32, to nearest even, and with ue4m3 a matrix with NaN or infinity has the tensor scale NaN, the scales 0x7F
    (NaN) and the elements +0.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    >>> q = quantize(np.linspace(0, 12.4, 32, dtype=np.float32)[None, :], i)
    >>> q.scales, q.dequantize()[0, ::6]
    (array([[128]], dtype=uint8), array([ 0.,  2.,  4.,  8.,  8., 12.]))
    """
    record = parse(instruction)
    if _may_be_on_gpu(matrix) and gpu.is_on_gpu(matrix):
        element, of_block = record.type(scaled_operand(operand)), block_scales(record).size
        made = gpu.quantize_on_gpu(matrix, str(record), element, record.stype, of_block, operand)
        return Quantized(elements=made[0], scales=made[1], tensor_scale=made[2])
    size, axis = block_scales(record).size, -1 if scaled_operand(operand) == "A" else -2
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


def _may_be_on_gpu(x: object) -> bool:
    return not isinstance(x, np.ndarray) and hasattr(type(x), "__dlpack_device__")


def _bits(record: Instruction, operand: Operand, matrix: npt.ArrayLike) -> Array:
    """Codes of a matrix as float32, contiguous; values of float64 are checked to be float32's."""
    array = _arrays.as_array(matrix, f"{record}: {operand}")
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
        raise OperandError(f"{record}: {came}, which is not a float32 value; round it with .astype(np.float32)")
    return bits
