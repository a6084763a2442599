"""Random operands of an instruction, and of products of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from arrays import Array

import warpmma as wm
from warpmma.formats import FloatFormat

from .written_out import Given

__all__ = ["random_operands"]


def random_operands(instruction: str, shape: tuple[int, int, int] = (0, 0, 0), seed: int = 1) -> Given:
    """Matrices of random elements, of a tile or of a product; metadata and scales in registers, in all their places."""
    record, rng = wm.parse(instruction), np.random.default_rng(seed)
    m, n, k = shape if shape[0] else (record.m, record.n, record.k)
    stored = k // 2 if record.sparse else k

    def matrix(operand: Any, rows: int, columns: int) -> Array:
        fmt = record.format(operand)
        batch = record.layout(operand).shape[:-2]
        if fmt.name == "tf32":  # as float32 has it
            return rng.standard_normal((rows, columns)).astype(np.float32)
        if isinstance(fmt, FloatFormat):
            return fmt.array(fmt.encode(rng.standard_normal((*batch, rows, columns))))
        return fmt.array(rng.integers(0, fmt.mask, (rows, columns), np.uint64, endpoint=True).astype(fmt.code_dtype))

    given = {"a": matrix("A", m, stored), "b": matrix("B", k, n), "c": matrix("C", m, n)}
    if record.sparse:
        codes = sorted(wm.sparsity.legal_codes(record))
        words = rng.choice(np.array(codes, np.uint32), (32, 8))
        given["metadata"] = np.bitwise_or.reduce(words << np.arange(0, 32, 4, dtype=np.uint32), axis=1)
    if record.block_scale:
        low, high = (0x68, 0x7F) if record.stype == "ue4m3" else (124, 131)
        for name in ("scale_a", "scale_b"):
            given[name] = rng.integers(low, high, 128).astype(np.uint8).view(np.uint32)
    return given
