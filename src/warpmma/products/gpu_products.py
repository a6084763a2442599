"""Products on a GPU: of arrays that lie there, read in place, and of the host's, which are copied.

Arrays on a GPU stay there: the kernel reads any strides, a batch of one matrix is not repeated, and D is made by the
library of A, on its stream. The host looks at no elements. It waits for one thing, the check of a sparse A: the GPU
checks its pattern, or its indices, and the host raises if they are not legal.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

from .._arrays import Array
from ..arithmetic import FmaChain
from ..errors import ScaleError, UnsupportedError
from ..formats import Format
from ..gpu import (
    CudaGpu,
    GpuTensor,
    InPlace,
    ProductForm,
    ProductKernel,
    SparseAs,
    check_dense_a,
    check_gpu,
    check_indices,
    check_one_gpu,
    gpu,
    hardware_kernel,
    kernel_of,
    product_in_place,
    product_of_codes,
    read,
    read_operand,
    stream_of,
)
from ..isa import Instruction, MatrixInstruction
from ..layouts import Operand
from ..scaling import block_scales
from ..sparsity import sparse_a
from .chain import Chain, Operands, ProductOptions
from .float32 import FLOAT32, ChainInstruction, FloatFma
from .operands import Given
from .results import output_format

_LONGEST = 16  # fused multiply-adds of one step


def form_of(chain: Chain, result: str, *, alpha: bool = False, on_host: bool = False) -> ProductForm:
    """Return what a kernel has to compute; operands from the host are rounded to tf32 there."""
    record = chain.instruction
    k = record.k // chain.packed
    if isinstance(chain.recipe.unit, FmaChain):  # where the chain is cut changes no bit
        k = math.gcd(_LONGEST, chain.whole, chain.promote, *chain.slices) or 1
    return ProductForm(
        recipe=chain.recipe, k=k, width=sparse_a(record).pattern.width if record.sparse else 0,
        scales=record.scales_per_row, partial=chain.partial, alpha=alpha, result=result,
        to_tf32=not on_host and chain.float32 is not None and FLOAT32[chain.float32].rounded,
    )  # fmt: skip


def kernel_on(device: CudaGpu, chain: Chain, form: ProductForm, target: str) -> ProductKernel:
    """Return the kernel of a product on a GPU.

    With engine="hardware" it is that of the instruction, if the GPU is the target. `fma.rn.f32` is an instruction of
    every GPU, and what the kernel of "cuda" consists of.
    """
    if chain.engine == "cuda":
        return kernel_of(form)
    check_gpu(device, target)
    if form.sparse != "rows":
        raise UnsupportedError(
            f"{chain.instruction}: engine='hardware' reads no sparse A that lies on a GPU; expected NumPy arrays, or "
            "engine='cuda'"
        )
    if isinstance(chain.instruction, FloatFma):
        return kernel_of(form)
    return hardware_kernel(chain.instruction, target, form)


def product_of_host(
    chain: Chain, given: Operands, c: Array, result: Format, alpha: Array | None, target: str, d: Array
) -> None:
    """Compute a product of codes on the first GPU: codes of the result, `[batch, m, n]`, into `d`."""
    device, form = gpu(), form_of(chain, result.name, alpha=alpha is not None, on_host=True)
    product_of_codes(
        device, form, given.a, given.b, c, slices=chain.slices, promote=chain.promote, chosen=given.chosen,
        scale_a=given.scale_a, scale_b=given.scale_b, alpha=alpha, out=d, kernel=kernel_on(device, chain, form, target),
    )  # fmt: skip


def product_on_gpu(given: Given, options: ProductOptions, chain: Chain, batch: tuple[int, ...]) -> Any:
    """Compute a product of arrays on a GPU, whose shapes and options are checked; D as an array of A's library."""
    record, like = chain.instruction, given.a
    check_one_gpu(record, (given.a, given.b, given.c, given.scale_a, given.scale_b, given.indices, *given.alphas))
    stream = stream_of(like)
    result = output_format(record, options.epilogue)
    alphas = [None if x is None else read(x, f"tensor scale of {name}", stream, ScaleError)
              for name, x in zip("AB", given.alphas, strict=True)]  # fmt: skip
    operands = InPlace(
        a=_read(record, "A", given.a, stream), b=_read(record, "B", given.b, stream),
        c=None if given.c is None else _read(record, "C", given.c, stream),
        scale_a=_read_scales(record, "A", given.scale_a, stream),
        scale_b=_read_scales(record, "B", given.scale_b, stream),
        indices=None if given.indices is None else read(given.indices, "indices", stream),
        alphas=(alphas[0], alphas[1]),
    )  # fmt: skip
    mine = gpu(operands.a.device)
    if operands.indices is not None:
        check_indices(mine, cast(MatrixInstruction, record), options.target, operands.indices, like, stream)
    elif record.sparse:
        check_dense_a(mine, cast(MatrixInstruction, record), operands.a, like, stream)
    sparse: SparseAs = "dense" if operands.indices is None else "indices"
    form = form_of(chain, result.name, alpha=alphas != [None, None])
    if record.sparse:
        form = replace(form, sparse=sparse)
    return product_in_place(
        mine, kernel_on(mine, chain, form, options.target), operands, batch, like, result,
        sparse=bool(form.width), slices=chain.slices, promote=chain.promote, stream=stream,
    )  # fmt: skip


def _read(record: ChainInstruction, name: Operand, x: Any, stream: int) -> GpuTensor:
    return read_operand(x, name, record.format(name), stream, record)


def _read_scales(record: ChainInstruction, name: Operand, x: Any, stream: int) -> GpuTensor | None:
    if x is None:
        return None
    array = read(x, f"scales of {name}", stream, ScaleError)
    block_scales(cast(Instruction, record)).check_dtype(name, array.dtype)
    return array
