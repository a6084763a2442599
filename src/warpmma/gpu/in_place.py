"""Products of arrays that lie on a GPU, read where they lie: views of a batch, and one launch for each run of it.

An array has any strides, a batch of one matrix is not repeated, and nothing waits. Where the arrays of a batch have no
common stride, the batch is cut into runs in which each has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._records import Shown
from ..formats import Format
from .batch_views import BatchView, runs, view
from .cuda_driver import CudaGpu
from .device_arrays import GpuTensor, empty_like, read
from .product_kernel import ProductKernel
from .product_launch import Matrices, ProductLaunch


@dataclass(frozen=True, kw_only=True, eq=False)
class InPlace(Shown):
    """Operands of a product on one GPU.

    Attributes
    ----------
    a, b, c : GpuTensor
        `[..., m, k]`, `[..., k, n]` and `[..., m, n]` or what broadcasts to it; of a sparse A as the kernel takes it.
    scale_a, scale_b : GpuTensor, optional
        Block scales, `[..., m, blocks]` and `[..., blocks, n]`.
    indices : GpuTensor, optional
        Of a sparse A whose stored elements are given, `[..., m, groups, 2]`: checked ones.
    alphas : (GpuTensor or None, GpuTensor or None)
        Factors of D, `[...]`, of f32: their product is rounded to f32 first.
    """

    a: GpuTensor
    b: GpuTensor
    c: GpuTensor | None = None
    scale_a: GpuTensor | None = None
    scale_b: GpuTensor | None = None
    indices: GpuTensor | None = None
    alphas: tuple[GpuTensor | None, GpuTensor | None] = (None, None)


def product_in_place(
    gpu: CudaGpu, kernel: ProductKernel, given: InPlace, batch: tuple[int, ...], like: Any, result: Format, *,
    sparse: bool = False, slices: Sequence[int], promote: int = 0, stream: int = 0,
) -> Any:  # fmt: skip
    """Launch a product of checked operands on a stream; return D, `[*batch, m, n]`, made by the library of `like`."""
    m, n, k = given.a.shape[-2], given.b.shape[-1], given.b.shape[-2]
    d = empty_like(like, (*batch, m, n), result)
    indices = given.indices
    views = [view(x, batch) for x in (given.a, given.b, given.c, given.scale_a, given.scale_b)]
    views += [view(read(d, "D", stream), batch), view(indices, batch, 3), *(view(x, batch, 0) for x in given.alphas)]
    for size, (a, b, c, of_a, of_b, of_d, chosen, *alphas) in runs(batch, views):
        of_alpha, other_alpha = ([(x.address, x.batch[0]) for x in alphas if x.address] + [(0, 0), (0, 0)])[:2]
        row, group, index = (chosen.size * stride for stride in chosen.own)  # in bytes: the lowest holds the index
        gpu.launch(
            ProductLaunch(
                kernel=kernel, shape=(size, m, n, k // 2 if sparse else k), a=_matrices(a),
                b=_matrices(b), c=_matrices(c), scale_a=_matrices(of_a), scale_b=_matrices(of_b),
                chosen=Matrices(chosen.address, (chosen.size * chosen.batch[0], row, group)), index=index,
                d=of_d.address, slices=slices, promote=promote, alpha=of_alpha, other_alpha=other_alpha,
                blocks=0 if given.scale_a is None else given.scale_a.shape[-1],
            ), stream,
        )  # fmt: skip
    return d


def _matrices(x: BatchView) -> Matrices:
    rows, columns = x.own
    return Matrices(x.address, (x.batch[0], rows, columns))
