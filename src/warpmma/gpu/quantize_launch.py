"""The kernel of `scaling.quantize`, and its launches for an array on a GPU: nothing is looked at by the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ..errors import OperandError
from ..formats import FORMATS, floating
from .cuda_driver import gpu
from .device_arrays import GpuTensor, empty_like, read, stream_of
from .kernel_text import source
from .product_kernel import format_constants
from .text_kernel import MOST_DIMENSIONS, TextKernel, TextLaunch, put_strides

_THREADS = 256
_CLEAR, _PEAKS, _SCALES, _ELEMENTS = range(4)
_INPUTS = ("f32", "f64", "f16", "bf16")

ARGUMENT = np.dtype(
    [
        *((name, "<u8") for name in ("x", "elements", "scales", "tensor")),
        *((name, "<i8") for name in ("lanes", "blocks", "lane", "along")),
        *((name, "<i8") for name in ("element_lane", "element_along", "scale_lane", "scale_block")),
        ("sizes", "<i8", MOST_DIMENSIONS), ("strides", "<i8", MOST_DIMENSIONS),
        *((name, "<i4") for name in ("dimensions", "matrices", "each", "pass", "across")),
    ],
    align=True,
)  # fmt: skip
"""`struct Quantization` of `kernels/quantize.cuh`."""


@cache
def quantize_kernel(x: str, element: str, scale: str, size: int) -> TextKernel:
    """Return the kernel that rounds numbers of one format to elements and block scales of others."""
    numbers = {"SIZE": size, "EMAX": floating(element).emax, "TENSOR_SCALES": int(scale == "ue4m3")}
    formats = [format_constants("Input", x), format_constants("Element", element)]
    formats += [format_constants("Scale", "e4m3")] if scale == "ue4m3" else []  # whose positive numbers ue4m3 has
    defined = [f"#define {name} {value}" for name, value in numbers.items()]
    text = [*defined, source("numbers.cuh"), *formats, source("quantize.cuh")]
    return TextKernel(text="\n".join(text), name="quantize")


def quantize_on_gpu(matrix: Any, who: str, element: str, scale: str, size: int, operand: str) -> tuple[Any, Any, Any]:
    """Round an array on a GPU, `[..., rows, K]` of A or `[..., K, columns]` of B.

    Returns elements, codes of scales, and tensor scales or None: arrays of the same library, made on its stream.
    """
    stream = stream_of(matrix)
    x = read(matrix, f"{who}: {operand}", stream)
    name = next((f for f in _INPUTS if FORMATS[f].dtype == x.dtype), None)
    if name is None:
        raise OperandError(f"{who}: {operand} is {x.dtype}; expected float32, 64 or 16, or bfloat16")
    axis = -1 if operand == "A" else -2
    if len(x.shape) < 2 or not x.shape[axis] or x.shape[axis] % size:
        expected = f"[..., {'rows, K' if operand == 'A' else 'K, columns'}], K a multiple of {size}"
        raise OperandError(f"{who}: {operand} is {x.shape}; expected {expected}")
    *batch, rows, columns = x.shape
    each = (rows, columns // size) if operand == "A" else (rows // size, columns)
    scales = empty_like(matrix, (*batch, *each), FORMATS["u8"])
    elements = empty_like(matrix, x.shape, FORMATS[element])
    tensor = empty_like(matrix, tuple(batch), FORMATS["f32"]) if scale == "ue4m3" else None
    made = [None if y is None else read(y, who, stream) for y in (elements, scales, tensor)]
    kernel = quantize_kernel(name, element, scale, size)
    for what in _launches(kernel, x, made, operand, size, who):
        gpu(x.device).launch(what, stream)
    return elements, scales, tensor


def _launches(
    kernel: TextKernel, x: GpuTensor, made: Sequence[GpuTensor | None], operand: str, size: int, who: str
) -> list[TextLaunch]:
    """Return the passes of the kernel, in order."""
    *batch, rows, columns = x.shape
    matrices, of_a = math.prod(batch), operand == "A"
    lanes, blocks = (rows, columns // size) if of_a else (columns, rows // size)
    given = np.zeros((), ARGUMENT)
    for field, array in zip(("x", "elements", "scales", "tensor"), (x, *made), strict=True):
        given[field] = 0 if array is None else array.address
    given["lanes"], given["blocks"] = lanes, blocks
    along = -1 if of_a else -2
    given["lane"], given["along"] = x.strides[-3 - along], x.strides[along]
    given["element_lane"], given["element_along"] = (columns, 1) if of_a else (1, columns)
    given["scale_lane"], given["scale_block"] = (blocks, 1) if of_a else (1, columns)
    put_strides(given, batch, x.strides[:-2], f"{who}: {operand} has {{}} strides of a batch")
    each = -(-lanes * blocks // _THREADS)
    given["matrices"], given["each"] = matrices, each
    given["across"] = not of_a
    of_matrices, of_blocks = -(-matrices // _THREADS), matrices * each
    passes = [(_ELEMENTS, of_blocks)]
    if made[-1] is not None:
        passes = [(_CLEAR, of_matrices), (_PEAKS, of_blocks), (_SCALES, of_matrices), *passes]
    found = []
    for number, grid in passes:
        given["pass"] = number
        found.append(TextLaunch(kernel=kernel, grid=grid, threads=_THREADS, given=given.tobytes()))
    return found
