"""Products of arrays and tensors as a GPU's kernels compute them.

1. Sums are what `warpmma.matmul` gives for the chosen instruction, from +0. A k that is split, or promoted, is added in
   f32 as `warpmma.matmul` says.
2. f32 is multiplied as the option `float32` says: `products.float32` has the rules. Libraries round to tf32.
3. Tensors on a GPU are multiplied there, by `engine="cuda"`.

Source of rule 2: PyTorch 2.11 on an H200, cuBLAS of CUDA 13.0, bit for bit (`python -m lab.record.torch_rules`).
"""

from __future__ import annotations

import math
from typing import Any

from ..arithmetic import resolve
from ..gpu import is_on_gpu
from ..products import FloatFma, ProductOptions, boundaries, grouped_product_on_gpu, matmul
from .gpu_sums import GpuSums
from .settings import ProductSettings, chosen, promoted
from .sums import Sums

_TILE = 512  # above which matmul has more than one task


def summed(
    a: Any, b: Any, types: tuple[str, str], given: ProductSettings, *, exact_sums: bool = False,
    scales: tuple[Any, Any] | None = None, stype: str = "",
) -> Sums:  # fmt: skip
    """Multiply `[..., m, k]` by `[..., k, n]` of some PTX types (rules 1 and 2).

    With `exact_sums` narrow sums of 8-bit numbers are promoted; `scales` are block scales of the format `stype`,
    `[m, S]` and `[S, n]`.
    """
    record, on_gpu = chosen(*types, given, stype), is_on_gpu(a)
    named = None if isinstance(record, FloatFma) else record
    every = promoted(record, given, exact_sums=exact_sums)
    large = max(a.shape[-2], b.shape[-1]) > _TILE or math.prod(a.shape[:-2]) > 1
    of_a, of_b = scales or (None, None)
    split = given.split_k if record.d_type == "f32" else 1
    slices = len(boundaries(a.shape[-1], record.k, split)) - 1
    d = matmul(
        a, b, instruction=named, float32=given.float32, target=given.target, split_k=split,
        promote_every=every or None, scale_a=of_a, scale_b=of_b, engine=given.engine,
        threads=given.threads if large else None,
    )  # fmt: skip
    about: Any = {"type": record.d_type, "record": record, "promote_every": every, "slices": slices}
    if on_gpu:
        return GpuSums(codes=d, engine="cuda", **about)
    return Sums(codes=d.view(record.format("D").code_dtype), engine=resolve(given.engine), **about)


def grouped_sums(a: Any, b: Any, ends: Any, types: tuple[str, str], given: ProductSettings) -> GpuSums:
    """Multiply groups that end where a tensor on a GPU says, as `products.grouped_product_on_gpu` does."""
    record = chosen(*types, given)
    split = given.split_k if record.d_type == "f32" else 1
    every = promoted(record, given)
    options = ProductOptions(
        target=given.target, instruction=None if isinstance(record, FloatFma) else record, float32=given.float32,
        split_k=split, promote_every=every or None, engine="cuda",
    )  # fmt: skip
    slices = len(boundaries(a.shape[-1], record.k, split)) - 1
    d = grouped_product_on_gpu(a, b, ends, options)
    return GpuSums(codes=d, engine="cuda", type=record.d_type, record=record, promote_every=every, slices=slices)
