"""What a product that a launch watched has multiplied: matrices of codes, as `explain` and `guess` take them.

1. `mma`: A, B, C and D are in registers of one warp.
2. `wmma.mma`: too; it is explained as the chain of `mma` that its target executes, whose first C and last D may have to
   be converted. Where a fragment holds an element in several lanes, all must hold the same.
3. `wgmma`: C and D are in registers of four warps, A is too or lies in shared memory, where B always lies. The signs
   `imm-scale-a` and `imm-scale-b` are those of A and B already; C is +0 if `scale-d` is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arrays import Array
from ..errors import OperandError
from ..execution import codes_in_registers, signed, store
from ..formats import FORMATS, Format
from ..isa import Instruction, MatrixInstruction, WarpgroupInstruction, WmmaProduct
from ..layouts import Operand
from ..machine import WatchedProduct
from ..scaling import unpack_scales
from ..sparsity import unpack_metadata

__all__ = ["explained_by", "format_of_watched", "in_registers", "matrix_of", "operands_of"]


def in_registers(product: WatchedProduct, operand: Operand) -> Array | None:
    """Return the registers of an operand; None where it lies in shared memory, and of a C that is not read."""
    if operand == "C" and not product.numbers.get("scale_d", 1):
        return None
    return product.registers.get(operand)


def format_of_watched(product: WatchedProduct, operand: Operand) -> Format:
    """Return the format of an operand."""
    i = product.instruction
    return FORMATS[i.type(operand)] if isinstance(i, WmmaProduct) else i.format(operand)


def matrix_of(product: WatchedProduct, operand: Operand) -> Array:
    """Return the codes of a whole operand: `[row, column]`, or `[matrix, row, column]` of m8n8k4 with f16."""
    i, format_ = product.instruction, format_of_watched(product, operand)
    registers = product.registers.get(operand)
    if isinstance(i, Instruction):
        return np.asarray(i.format(operand).codes(store(i, operand, product.registers[operand])))
    if isinstance(i, WmmaProduct):
        return _of_fragment(product, operand, format_)
    if operand == "C" and in_registers(product, "C") is None:
        return np.zeros((i.m, i.n), format_.code_dtype)
    if registers is None:
        tile = product.tiles[operand].codes
        found = tile if operand == "A" else tile.T
    else:
        found = codes_in_registers(i, operand, registers)
    if format_.bits == 1:
        return _single_bits(found, operand)
    return signed(i, operand, found, product.numbers.get(f"imm_{operand.lower()}", 1))


def _of_fragment(product: WatchedProduct, operand: Operand, format_: Format) -> Array:
    """Rule 2: codes of a fragment of `wmma`, from its first copy."""
    layout, registers = product.layout(operand), product.registers[operand]
    word, position = layout.slots
    found = registers.reshape(-1)[word]
    if layout.packing.per_register > 1:
        found = found >> layout.packing.shifts[position] & registers.dtype.type(layout.packing.mask)
    copies = found.reshape(layout.matrices, *layout.shape[-2:])
    if (copies != copies[:1]).any():
        raise OperandError(f"{product.place}: lanes that hold the same element of {operand} hold different values")
    return np.asarray(copies[0].astype(format_.code_dtype))


def _single_bits(words: Array, operand: Operand) -> Array:
    """Return single bits, one a code, of words of 32 along k."""
    along = words if operand == "A" else words.T
    octets = np.ascontiguousarray(along).astype("<u4").view(np.uint8)
    bits = np.unpackbits(octets, axis=-1, bitorder="little")
    return bits if operand == "A" else bits.T


def explained_by(product: WatchedProduct) -> tuple[MatrixInstruction, str, str | None]:
    """Return what is explained instead of a product, on which target, and to what its D is rounded at the end.

    It is the product itself, or the `mma` of the chain that a `wmma.mma` is (rule 2).
    """
    i = product.instruction
    if not isinstance(i, WmmaProduct):
        return i, product.target, None
    step = i.steps(product.target)[-1]
    target = product.target if product.target in step.targets else step.targets[0]
    return step, target, None if i.d_type == step.d_type else i.d_type


def operands_of(parts: Sequence[WatchedProduct], matrix: int = 0) -> tuple[Array, Array, Array, dict[str, Any]]:
    """Return A, B and C of executions that follow each other along k, and indices and scales by name."""
    first, i = parts[0], parts[0].instruction

    def whole(operand: Operand, axis: int) -> Array:
        codes = [matrix_of(x, operand) for x in parts]
        return np.concatenate([x[matrix] if x.ndim == 3 else x for x in codes], axis=axis)

    c = matrix_of(first, "C")
    of_c = c[matrix] if c.ndim == 3 else c
    if isinstance(i, WmmaProduct):
        of_c = _converted(of_c, i.c_type, explained_by(first)[0].c_type)
    return whole("A", 1), whole("B", 0), of_c, _beside(parts, i)


def _converted(codes: Array, from_: str, to: str) -> Array:
    """Convert C of a `wmma.mma` to that of its `mma`: f16 to f32, which is exact."""
    if from_ == to:
        return codes
    return np.asarray(FORMATS[to].codes(codes.view(np.float16).astype(np.float32)))


def _beside(parts: Sequence[WatchedProduct], i: Instruction | WmmaProduct | WarpgroupInstruction) -> dict[str, Any]:
    """Return indices of sparse products, and block scales."""
    more: dict[str, Any] = {}
    if isinstance(i, WmmaProduct):
        return more
    if i.sparse:
        words = [unpack_metadata(x.registers["metadata"], i, selector=x.numbers["selector"]) for x in parts]
        more["indices"] = np.concatenate(words, axis=1)
    if isinstance(i, Instruction) and i.block_scale:
        for name, operand, axis in (("scale_a", "A", 1), ("scale_b", "B", 0)):
            side = operand.lower()
            more[name] = np.concatenate([
                unpack_scales(x.registers[name], i, operand,  # type: ignore[arg-type]
                              byte_id=x.numbers[f"byte_id_{side}"], thread_id=x.numbers[f"thread_id_{side}"])
                for x in parts
            ], axis=axis)  # fmt: skip
    return more
