"""`mma` of arrays on a GPU: a batch of products of one instruction each, computed where they lie."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._arguments import check_choice
from ..arithmetic import FmaChain, recipe_of
from ..errors import OperandError, ScaleError, UnsupportedError
from ..gpu import (
    GpuTensor,
    InPlace,
    ProductForm,
    SparseAs,
    check_dense_a,
    check_one_gpu,
    gpu,
    kernel_of,
    product_in_place,
    read,
    read_operand,
    stream_of,
)
from ..isa import Instruction, MatrixInstruction, WarpgroupInstruction, check_target
from ..layouts import Operand
from ..scaling import block_scales
from ..sparsity import sparse_a
from .warpgroups import WarpgroupOptions

_LONGEST = 16  # fused multiply-adds of one step


def mma_on_gpu(
    record: MatrixInstruction, a: Any, b: Any, c: Any, target: str, options: WarpgroupOptions, *,
    metadata: Any = None, scale_a: Any = None, scale_b: Any = None, engine: str = "auto",
) -> Any:  # fmt: skip
    """Compute what `mma` does of arrays on a GPU: D as an array of A's library, on its stream.

    A sparse A is dense there; the host waits for the check of its pattern, and for nothing else.
    """
    check_choice("engine", engine, ("auto", "cuda"))
    check_target(record, target)
    options.check(record)
    if metadata is not None:
        raise UnsupportedError(
            f"{record}: metadata of arrays on a GPU are not read; give A dense, or to matmul its stored elements and "
            "indices"
        )
    if (options.imm_a, options.imm_b, options.undefined) != (1, 1, "error"):
        raise UnsupportedError(f"{record}: arrays on a GPU take no imm_a, imm_b or undefined; negate A or B before")
    check_one_gpu(record, (a, b, c, scale_a, scale_b))
    stream = stream_of(a)
    given = InPlace(
        a=_matrix(record, "A", a, stream), b=_matrix(record, "B", b, stream),
        c=None if c is None or not options.scale_d else _matrix(record, "C", c, stream),
        scale_a=_scales(record, "A", scale_a, stream), scale_b=_scales(record, "B", scale_b, stream),
    )  # fmt: skip
    batch, mine = _batch(record, given), gpu(given.a.device)
    if record.sparse:
        check_dense_a(mine, record, given.a, a, stream)
    sparse: SparseAs = "dense" if record.sparse else "rows"
    recipe, stored = recipe_of(record, target), record.k // (2 if record.sparse else 1)
    form = ProductForm(
        recipe=recipe, k=math.gcd(_LONGEST, stored) if isinstance(recipe.unit, FmaChain) else stored,
        width=sparse_a(record).pattern.width if record.sparse else 0, sparse=sparse, scales=record.scales_per_row,
        result=record.d_type,
    )  # fmt: skip
    return product_in_place(
        mine, kernel_of(form), given, batch, a, record.format("D"), sparse=bool(form.width), slices=(0, record.k),
        stream=stream,
    )  # fmt: skip


def _matrix(record: MatrixInstruction, name: Operand, x: Any, stream: int) -> GpuTensor:
    """Read a matrix of the instruction's shape, in any batch."""
    array = read_operand(x, name, record.format(name), stream, record)
    if name == "A" and record.sparse:
        shape: tuple[int, ...] = (record.m, record.k)
    elif name == "B" and isinstance(record, WarpgroupInstruction):
        shape = (record.k, record.n)
    else:
        shape = record.layout(name).shape
    if len(array.shape) < len(shape) or array.shape[len(array.shape) - len(shape) :] != shape:
        raise OperandError(f"{record}: {name} is {array.shape}; expected [..., {', '.join(map(str, shape))}]")
    return array


def _scales(record: MatrixInstruction, name: Operand, x: Any, stream: int) -> GpuTensor | None:
    """Read block scales where the instruction takes some."""
    takes = isinstance(record, Instruction) and record.block_scale
    if takes != (x is not None):
        raise OperandError(f"{record} {'needs' if takes else 'takes no'} scale_{name.lower()}")
    if x is None:
        return None
    assert isinstance(record, Instruction)
    array = read(x, f"scales of {name}", stream, ScaleError)
    block_scales(record).check_dtype(name, array.dtype)
    shape = (record.m, record.scales_per_row) if name == "A" else (record.scales_per_row, record.n)
    if array.shape[-2:] != shape:
        expected = "[..., {}, {}]".format(*shape)
        raise ScaleError(f"{record}: scales of {name} are {array.shape}; expected {expected}")
    return array


def _batch(record: MatrixInstruction, given: InPlace) -> tuple[int, ...]:
    named = {"A": given.a, "B": given.b, "C": given.c, "scale_a": given.scale_a, "scale_b": given.scale_b}
    shapes = {name: x.shape for name, x in named.items() if x is not None}
    try:
        return np.broadcast_shapes(*(shape[:-2] for shape in shapes.values()))
    except ValueError:
        came = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise OperandError(f"{record}: batches do not broadcast: {came}") from None
