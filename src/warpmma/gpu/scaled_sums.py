"""alpha x sums + beta x C of arrays on a GPU, in place, with one rounding where a fused multiply-add has one."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..errors import OperandError
from ..formats import FORMATS, floating
from .batch_views import view
from .cuda_driver import gpu
from .device_arrays import read, stream_of
from .kernel_text import source
from .product_kernel import format_constants
from .text_kernel import MOST_DIMENSIONS, TextKernel, TextLaunch, put_strides

_THREADS = 256
_SUMS = ("f16", "f32", "f64")
_ADDENDS = {"f16": ("f16",), "f32": ("f32", "f16", "bf16"), "f64": ("f64",)}
"""Types of C, all of whose numbers a type of sums has."""

ARGUMENT = np.dtype(
    [
        *((name, "<u8") for name in ("x", "c", "alpha", "beta")), ("count", "<i8"),
        ("sizes", "<i8", MOST_DIMENSIONS), ("strides", "<i8", MOST_DIMENSIONS),
        *((name, "<i4") for name in ("dimensions", "factor_of_c")),
    ],
    align=True,
)  # fmt: skip
"""`struct ScaledSum` of `kernels/scaled_sum.cuh`."""


@cache
def _kernel(of: str, addend: str) -> TextKernel:
    defined = [f"#define SUM {floating(of).bits}"]
    formats = [format_constants("Addend", addend)]
    text = "\n".join([*defined, source("numbers.cuh"), *formats, source("scaled_sum.cuh")])
    return TextKernel(text=text, name="scaled_sum")


def scale_and_add(x: Any, c: Any, alpha: float, beta: float, *, fuse_c: bool = False) -> None:
    """Replace sums by fma(alpha, sum, beta x C), where beta x C is rounded first; nothing waits.

    Parameters
    ----------
    x : array on a GPU
        Sums of f16, f32 or f64, contiguous.
    c : array on a GPU, or None
        What broadcasts to them, of their type; with sums of f32 also f16 or bf16. Without, D is alpha x sum.
    alpha, beta : float
        Rounded to the type of the sums, to nearest even.
    fuse_c : bool
        fma(beta, C, alpha x sum) in place of that.
    """
    stream = stream_of(x)
    sums = read(x, "sums", stream)
    of = next((f for f in _SUMS if FORMATS[f].dtype == sums.dtype), None)
    if of is None:
        raise OperandError(f"sums are {sums.dtype}; expected float16, 32 or 64")
    given, addend = np.zeros((), ARGUMENT), of
    given["x"], given["count"], given["factor_of_c"] = sums.address, np.prod(sums.shape, dtype=np.int64), fuse_c
    for name, value in (("alpha", alpha), ("beta", beta)):
        given[name] = int(floating(of).encode(np.asarray(float(value)), "rn"))
    if c is not None:
        numbers = read(c, "C", stream)
        found = next((f for f in _ADDENDS[of] if FORMATS[f].dtype == numbers.dtype), None)
        if found is None:
            expected = ", ".join(str(FORMATS[f].dtype) for f in _ADDENDS[of])
            raise OperandError(f"C is {numbers.dtype}; expected {expected}")
        addend = found
        given["c"] = numbers.address
        put_strides(given, sums.shape, view(numbers, sums.shape, 0).batch, "C has {} strides")
    grid = -(-int(given["count"]) // _THREADS)
    what = TextLaunch(kernel=_kernel(of, addend), grid=grid, threads=_THREADS, given=given.tobytes())
    gpu(sums.device).launch(what, stream)
