"""Operands of matrix products as codes, from every form that `matmul` takes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._arrays import Array, as_array
from ..errors import OperandError, ScaleError
from ..isa import Instruction, MatrixInstruction
from ..layouts import Operand
from ..scaling import Quantized, block_scales
from ..sparsity import sparse_a
from .chain import Chain, Operands
from .float32 import FLOAT32, ChainInstruction, to_tf32

Multiplicand = npt.ArrayLike | Quantized


class Given(NamedTuple):
    """Operands of a product as they came, with a `Quantized` taken apart: elements, block scales, tensor scales."""

    a: Any
    b: Any
    c: Any
    indices: npt.ArrayLike | None
    scale_a: Any
    scale_b: Any
    alphas: tuple[Any, Any]

    @classmethod
    def of(cls, a: Any, b: Any, c: Any, indices: npt.ArrayLike | None, scale_a: Any, scale_b: Any) -> Given:
        """Take operands as `matmul` takes them."""
        (a, scale_a, alpha_a), (b, scale_b, alpha_b) = _quantized("A", a, scale_a), _quantized("B", b, scale_b)
        return cls(a, b, c, indices, scale_a, scale_b, (alpha_a, alpha_b))


def _quantized(operand: Operand, x: Any, scales: Any) -> tuple[Any, Any, Any]:
    """Return elements, block scales and tensor scale."""
    if not isinstance(x, Quantized):
        return x, scales, None
    if scales is not None:
        raise ScaleError(f"{operand} is Quantized and brings its scales; expected no others")
    return x.elements, x.scales, x.tensor_scale


def codes_of_operands(
    chain: Chain, target: str, a: Array, b: Array, indices: npt.ArrayLike | None, scale_a: npt.ArrayLike | None,
    scale_b: npt.ArrayLike | None,
) -> tuple[tuple[int, ...], Operands]:  # fmt: skip
    """Turn operands into codes, `[batch, rows, columns]` or `[1, rows, columns]`; return the shape of the batch too."""
    record, chosen = chain.instruction, None
    if record.sparse:
        a, chosen = _stored(record, target, a, b.shape[-2], indices)  # type: ignore[arg-type]
    scales = _scales(record, a, b, scale_a, scale_b)
    of_a, of_b = _codes(record, "A", a), _codes(record, "B", b)
    if chain.float32 is not None and FLOAT32[chain.float32].rounded:
        of_a, of_b = to_tf32(of_a), to_tf32(of_b)
    codes = [of_a, of_b, chosen, *scales]
    batch = batch_of(record, *(None if x is None else x.shape for x in codes))
    return batch, Operands(*(None if x is None else _flat(x, batch) for x in codes))  # type: ignore[arg-type]


def batch_of(record: ChainInstruction, *shapes: tuple[int, ...] | None) -> tuple[int, ...]:
    """Broadcast the leading dimensions of A, B, rows that a sparse A's elements meet, and scales of A and B."""
    names = ("A", "B", "indices", "scales of A", "scales of B")
    given = {name: shape for name, shape in zip(names, shapes, strict=True) if shape is not None}
    try:
        return np.broadcast_shapes(*(shape[:-2] for shape in given.values()))
    except ValueError:
        came = ", ".join(f"{name} {shape}" for name, shape in given.items())
        raise OperandError(f"{record}: batches do not broadcast: {came}") from None


def _flat(x: Array, batch: tuple[int, ...]) -> Array:
    """Bring leading dimensions to one; a matrix for all of the batch stays one matrix."""
    if all(n == 1 for n in x.shape[:-2]):
        return x.reshape(1, *x.shape[-2:])
    return np.broadcast_to(x, (*batch, *x.shape[-2:])).reshape(math.prod(batch), *x.shape[-2:])


def _codes(record: ChainInstruction, operand: Operand, array: Array) -> Array:
    try:
        return record.format(operand).codes(array)
    except OperandError as error:
        raise OperandError(f"{record}: {operand}: {error}") from None


def codes_of_c(record: ChainInstruction, c: Array | None, shape: tuple[int, ...]) -> Array:
    """Return codes of C that broadcast to a shape."""
    if c is None:
        return np.zeros((1, 1), record.format("C").code_dtype)
    check_c(record, c.shape, shape)
    return _codes(record, "C", c)


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Return whether a shape broadcasts to another."""
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def check_c(record: ChainInstruction, c: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raise `OperandError` unless the shape of C broadcasts to that of D."""
    if not broadcasts(c, shape):
        raise OperandError(f"{record}: C is {c}; expected {shape}, or what broadcasts to it")


# Sparse operands


def _stored(
    record: MatrixInstruction, target: str, a: Array, k: int, indices: npt.ArrayLike | None
) -> tuple[Array, Array]:
    """Return stored elements of A, and the row of B within its instruction that each meets."""
    sparse = sparse_a(record)
    if indices is None:
        a, nibbles = sparse.compress(a)
        return a, sparse.rows_met(nibbles)
    array = as_array(indices, f"{record}: indices")
    check_indices_shape(record, array, a, k)
    nibbles = sparse.nibbles(array)
    sparse.check_nibbles_on(nibbles, target)
    return a, sparse.rows_met(nibbles)


def check_indices_shape(record: MatrixInstruction, indices: Array, a: Array, k: int) -> None:
    """Raise `OperandError` unless indices are integers, two for every group of each row of A."""
    expected = (a.shape[-2], k // sparse_a(record).pattern.width, 2)
    if indices.shape[-3:] != expected or indices.dtype.kind not in "iu":
        tail = ", ".join(map(str, expected))
        raise OperandError(f"{record}: indices are {indices.dtype} {indices.shape}; expected int [..., {tail}]")


# Block-scaled operands


def _scales(
    record: ChainInstruction, a: Array, b: Array, scale_a: npt.ArrayLike | None, scale_b: npt.ArrayLike | None
) -> tuple[Array | None, Array | None]:
    """Return codes of scales, `[..., m, S]` and `[..., S, n]`."""
    of_a, of_b = (
        None if x is None else as_array(x, f"{record}: scales of {operand}", ScaleError)
        for operand, x in (("A", scale_a), ("B", scale_b))
    )
    check_scales(record, a.shape, b.shape, *(None if x is None else x.shape for x in (of_a, of_b)))
    if not isinstance(record, Instruction) or of_a is None or of_b is None:
        return None, None
    scales = block_scales(record)
    return scales.codes("A", of_a), scales.codes("B", of_b)


def check_scales(
    record: ChainInstruction, a: tuple[int, ...], b: tuple[int, ...],
    scale_a: tuple[int, ...] | None, scale_b: tuple[int, ...] | None,
) -> None:  # fmt: skip
    """Raise `ScaleError` unless there are scales where an instruction takes some, and they go with A and B."""
    if not isinstance(record, Instruction) or not record.block_scale:
        if scale_a is not None or scale_b is not None:
            raise ScaleError(f"{record} has no block scales; got some (name an instruction with .block_scale)")
        return
    if scale_a is None or scale_b is None:
        raise ScaleError(f"{record} needs block scales of A and of B")
    size = block_scales(record).size
    blocks = -(-b[-2] // size)
    for operand, came, expected in (("A", scale_a, (a[-2], blocks)), ("B", scale_b, (blocks, b[-1]))):
        if came[-2:] != expected:
            shape = ", ".join(map(str, expected))
            raise ScaleError(f"{record}: scales of {operand} are {came}; expected [..., {shape}], blocks of {size}")
