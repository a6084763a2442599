"""Products on a GPU: of arrays that lie there, read in place, and of the host's, which are copied.

Arrays on a GPU stay there: the kernel reads any strides, a batch of one matrix is not repeated, and D is made by the
library of A, on its stream. Nothing is looked at by the host, so nothing waits. What needs the host's look at elements
is refused there: a sparse A, whose pattern is checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from .._arrays import Array
from ..arithmetic import FmaChain
from ..errors import OperandError, ScaleError, UnsupportedError
from ..formats import Format
from ..gpu import (
    CudaGpu,
    GpuTensor,
    HardwareForm,
    Matrices,
    ProductForm,
    ProductKernel,
    ProductLaunch,
    check_gpu,
    empty_like,
    gpu,
    hardware_kernel,
    kernel_of,
    product_of_codes,
    read,
    stream_of,
)
from ..isa import Instruction
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
    if isinstance(chain.instruction, FloatFma):
        return kernel_of(form)
    return hardware_kernel(
        HardwareForm(
            instruction=chain.instruction, target=target, partial=form.partial, to_tf32=form.to_tf32, alpha=form.alpha,
            result=form.result,
        )
    )  # fmt: skip


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
    record = chain.instruction
    if given.indices is not None or record.sparse:
        raise UnsupportedError(
            f"{record}: a sparse A on a GPU is not read in place; expected NumPy arrays, whose pattern is checked"
        )
    if any(x is not None for x in given.alphas):
        raise UnsupportedError(f"{record}: tensor scales of arrays on a GPU are not supported; multiply D by them")
    stream = stream_of(given.a)
    result = output_format(record, options.epilogue)
    form = form_of(chain, result.name)
    a, b = _read(record, "A", given.a, stream), _read(record, "B", given.b, stream)
    c = None if given.c is None else _read(record, "C", given.c, stream)
    of_a = None if given.scale_a is None else _read_scales(record, "A", given.scale_a, stream)
    of_b = None if given.scale_b is None else _read_scales(record, "B", given.scale_b, stream)
    m, n = a.shape[-2], b.shape[-1]
    d = empty_like(given.a, (*batch, m, n), result)
    of_d = read(d, "D", stream)
    views = [_view(x, batch) for x in (a, b, c, of_a, of_b, of_d)]
    devices = {x.device for x in (a, b, c, of_a, of_b) if x is not None}
    if len(devices) > 1:
        raise OperandError(f"{record}: operands lie on GPUs {sorted(devices)}; expected one")
    device = gpu(of_d.device)
    kernel = kernel_on(device, chain, form, options.target)
    for size, some in _runs(batch, views):
        of = [Matrices(view.address, (view.batch[0], *view.matrix)) for view in some]
        device.launch(
            ProductLaunch(
                kernel=kernel, shape=(size, m, n, a.shape[-1]), a=of[0], b=of[1], c=of[2], scale_a=of[3],
                scale_b=of[4], d=of[5].address, slices=chain.slices, promote=chain.promote,
                blocks=0 if of_a is None else of_a.shape[-1],
            ), stream,
        )  # fmt: skip
    return d


def _read(record: ChainInstruction, name: Operand, x: Any, stream: int) -> GpuTensor:
    """Read an operand; its elements are of the format's type, or codes, whose upper bits are ignored."""
    array, fmt = read(x, name, stream), record.format(name)
    if array.dtype not in (fmt.dtype, fmt.code_dtype):
        raise OperandError(f"{record}: {name}: {array.dtype} array; expected {fmt.dtype}, or {fmt.code_dtype} codes")
    return array


def _read_scales(record: ChainInstruction, name: Operand, x: Any, stream: int) -> GpuTensor:
    array = read(x, f"scales of {name}", stream, ScaleError)
    block_scales(cast(Instruction, record)).check_dtype(name, array.dtype)
    return array


class _View(NamedTuple):
    """An address, and strides in bytes or elements: of each dimension of the batch, and of rows and columns."""

    address: int
    size: int  # of an element, in bytes
    batch: tuple[int, ...]
    matrix: tuple[int, int]


def _view(x: GpuTensor | None, batch: tuple[int, ...]) -> _View:
    """Broadcast an array to a batch; what is absent lies at 0."""
    if x is None:
        return _View(0, 0, (0,) * len(batch), (0, 0))
    missing = len(batch) + 2 - len(x.shape)
    strides = (0,) * missing + tuple(0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True))
    return _View(x.address, x.dtype.itemsize, strides[:-2], (strides[-2], strides[-1]))


def _runs(batch: tuple[int, ...], views: Sequence[_View]) -> Iterator[tuple[int, list[_View]]]:
    """Cut a batch into runs in which every array has one stride: their lengths, and the arrays as they begin."""
    runs: list[tuple[int, tuple[int, ...]]] = []  # the innermost first
    for i in reversed([i for i, n in enumerate(batch) if n != 1]):
        strides = tuple(view.batch[i] for view in views)
        if runs and strides == tuple(s * runs[-1][0] for s in runs[-1][1]):
            runs[-1] = runs[-1][0] * batch[i], runs[-1][1]
        else:
            runs.append((batch[i], strides))
    (size, strides), *outer = runs or [(1, (0,) * len(views))]
    for place in np.ndindex(*(n for n, _ in outer)):
        offsets = [sum(i * of[v] for i, (_, of) in zip(place, outer, strict=True)) for v in range(len(views))]
        yield (
            size,
            [
                view._replace(address=view.address + offset * view.size, batch=(stride,))
                for view, offset, stride in zip(views, offsets, strides, strict=True)
            ],
        )
