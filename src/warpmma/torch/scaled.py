"""Products with scales, as `torch._scaled_mm` and `torch.nn.functional.scaled_mm` call them, and of int8.

1. A and B are of 8-bit floating point, which may differ. One scale for each: their product, rounded to f32, multiplies
   the sum. One for each row of A and each column of B: the sum is multiplied by that of B, rounded, and by that of A.
2. The bias is added to that in f32. Then the result is rounded to the output's type; of 8 bits it is multiplied by
   `scale_result` before, and overflow becomes the largest number.
3. `use_fast_accum=False` promotes narrow sums every 128 of k, unless `promote_every` says otherwise.
4. Block scales, as libraries take them for a GPU (ue8m0 for every 32 of k, ue4m3 for every 16 of e2m1; padded to 128
   rows and 4 columns, in tiles of 32 x 4 x 4), go to a block-scaled `mma`.
5. `_int_mm` is of int8, its sums are of int32.

Source of rules 1 to 3: PyTorch 2.11 on an H200, cuBLAS of CUDA 13.0, bit for bit (`python -m lab.record.torch_rules`).
Of rule 4: the layout of scale factors in cuBLAS's manual, "1D Block Scaling Factors Layout".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import OperandError
from .replaced import LEFT, OperatorCall
from .sums import Sums
from .tensors import TYPES, array_of, dtype_name, pytorch, type_of

_EIGHT_BITS = ("e4m3", "e5m2")
_OUTPUTS = ("f32", "f16", "bf16", *_EIGHT_BITS)
_PACKED = "float4_e2m1fn_x2"
_BLOCKS = {"float8_e8m0fnu": ("ue8m0", 32), "float8_e4m3fn": ("ue4m3", 16)}
_RECIPES = {0: "one for all", 1: "one for each row", 2: "1x16", 3: "1x32"}  # of torch.nn.functional.ScalingType


def _go_together(a: Any, b: Any) -> bool:
    return a.ndim == b.ndim == 2 and bool(a.shape[1] == b.shape[0])


def int8_product(call: OperatorCall) -> Any:
    """Compute `_int_mm`."""
    a, b = call.x["self"], call.x["mat2"]
    if not _go_together(a, b) or {dtype_name(a.dtype), dtype_name(b.dtype)} != {"int8"}:
        return LEFT
    return call.rounded(call.summed(call.array("self"), call.array("mat2"), ("s8", "s8"), "s32"), "s32")


def scaled_product_of_recipes(call: OperatorCall) -> Any:
    """Compute `_scaled_mm_v2`, whose scales are lists with recipes."""
    x = dict(call.x)
    for name in ("a", "b"):
        recipes, scales = x[f"recipe_{name}"], x[f"scale_{name}"]
        if len(scales) != 1 or len(recipes) != 1 or recipes[0] not in _RECIPES:
            raise OperandError(f"{call.op}: scales of {name.upper()} follow {recipes}; expected one of {_RECIPES}")
        x[f"scale_{name}"] = scales[0]
    return scaled_product(call.with_arguments(x))


def scaled_product(call: OperatorCall) -> Any:
    """Compute `_scaled_mm`."""
    a, b = call.x["self"], call.x["mat2"]
    if not _go_together(a, b):
        return LEFT
    wanted = call.x.get("out_dtype") or a.dtype
    out = TYPES.get(dtype_name(wanted))
    if out not in _OUTPUTS:
        raise OperandError(f"{call.op}: out_dtype is {dtype_name(wanted)}; expected 32, 16 or 8 bits of floating point")
    sums = _blocks(call, a, b, out) or _whole(call, a, b, out)
    if call.x.get("bias") is not None:
        sums = sums.added(_numbers(call, "bias"))
    if out in _EIGHT_BITS and call.x.get("scale_result") is not None:
        sums = sums.multiplied(_numbers(call, "scale_result"))
    return call.rounded(sums, out)


def _whole(call: OperatorCall, a: Any, b: Any, out: str) -> Sums:
    """Compute with scales of tensors, or of rows and columns (rule 1)."""
    types = type_of(a, f"{call.op}: A"), type_of(b, f"{call.op}: B")
    if not set(types) <= set(_EIGHT_BITS):
        raise OperandError(f"{call.op}: A is {dtype_name(a.dtype)}, B {dtype_name(b.dtype)}; expected 8-bit floats")
    of_a, of_b = call.x["scale_a"], call.x["scale_b"]
    shapes, came = ((a.shape[0], 1), (1, b.shape[1])), (tuple(of_a.shape), tuple(of_b.shape))
    ones = of_a.numel() == of_b.numel() == 1
    rows = came == shapes and not ones
    types_of_scales = dtype_name(of_a.dtype), dtype_name(of_b.dtype)
    if set(types_of_scales) != {"float32"} or not (rows or ones):
        raise OperandError(
            f"{call.op}: scales are {types_of_scales[0]} {came[0]} and {types_of_scales[1]} {came[1]}; expected "
            f"float32, one each, or {shapes[0]} and {shapes[1]}, or block scales"
        )
    sums = call.summed(
        call.array("self"), call.array("mat2"), types, out, exact_sums=not call.x.get("use_fast_accum", False)
    )
    x, y = _numbers(call, "scale_a"), _numbers(call, "scale_b")
    if rows:
        return sums.multiplied(y).multiplied(x)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # f32, rounded once
        return sums.multiplied(x.reshape(1, 1) * y.reshape(1, 1))


def _numbers(call: OperatorCall, name: str) -> Any:
    """Return a tensor's numbers in f32: an array, or on a GPU a tensor."""
    x = call.x[name]
    return array_of(x.to(pytorch().float32), f"{call.op}: {name}")


def _blocks(call: OperatorCall, a: Any, b: Any, out: str) -> Sums | None:
    """Compute with block scales (rule 4); None without any."""
    of_a, of_b = call.x["scale_a"], call.x["scale_b"]
    kinds = {dtype_name(x.dtype) for x in (of_a, of_b)}
    if len(kinds) != 1 or not kinds <= set(_BLOCKS):
        return None
    stype, size = _BLOCKS[kinds.pop()]
    packed = dtype_name(a.dtype) == dtype_name(b.dtype) == _PACKED
    x, y = (_nibbles(a), _nibbles(b.t()).T) if packed else (call.array("self"), call.array("mat2"))
    types = ("e2m1", "e2m1") if packed else (type_of(a, f"{call.op}: A"), type_of(b, f"{call.op}: B"))
    k = x.shape[1]
    blocks = -(-k // size)
    scales = _in_rows(call, "scale_a", x.shape[0], blocks), _in_rows(call, "scale_b", y.shape[1], blocks).T
    return call.summed(x, y, types, out, scales=scales, stype=stype)


def _nibbles(x: Any) -> Any:
    """Return codes of e2m1, stored two per byte, the first in its low half: `[rows, k]`."""
    torch = pytorch()
    octets = x.contiguous().view(torch.uint8)
    return array_of(torch.stack([octets & 15, octets >> 4], -1).reshape(octets.shape[0], -1), "A or B")


def _in_rows(call: OperatorCall, name: str, rows: int, columns: int) -> Any:
    """Return block scales in rows and columns, of tiles of 128 rows and 4 columns that the libraries take."""
    down, across = -(-rows // 128), -(-columns // 4)
    given = call.x[name]
    if given.numel() != down * 128 * across * 4:
        raise OperandError(
            f"{call.op}: {name} has {given.numel()} block scales; expected {down * 128 * across * 4}: {rows} x "
            f"{columns}, padded to multiples of 128 and 4"
        )
    tiles = given.reshape(down, across, 32, 4, 4).permute(0, 3, 2, 1, 4)
    return array_of(tiles.reshape(down * 128, across * 4)[:rows, :columns].contiguous(), f"{call.op}: {name}")
