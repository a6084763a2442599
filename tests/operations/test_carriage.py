"""Carriage: whatever poison bits hold, clean bits of the results stay what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpmma.operations import DTYPES, Operation, operation, operations, packing, unpacking
from warpmma.operations.carriage import whole

WARPS = 4
ROWS = [x for x in operations() if not x.lanes]
ROWS += [f(type_, count) for f in (packing, unpacking) for type_, count in (("b32", 2), ("b64", 2), ("b64", 4))]


def values(rng: np.random.Generator, dtype: Any) -> np.ndarray:
    """Return random values, many of them small or near the greatest: counts, positions and lengths of fields."""
    shape = (WARPS, 32)
    if dtype is np.bool_:
        return rng.random(shape) < 0.5
    small, kind = rng.integers(0, 40, shape).astype(dtype), rng.random(shape)
    wide = rng.integers(0, 1 << 64, shape, dtype=np.uint64).astype(dtype)
    return np.where(kind < 0.4, small, np.where(kind > 0.95, ~small, wide)).astype(dtype)


def given(rng: np.random.Generator, row: Operation) -> tuple[list[Any], list[Any]]:
    """Return operands, and the masks of some of them."""
    operands: list[Any] = []
    masks: list[Any] = []
    for kind in row.inputs:
        if kind == "imm":
            operands.append(int(rng.integers(0, 256)))
            masks.append(None)
            continue
        dtype = DTYPES[kind]
        operands.append(values(rng, dtype))
        masks.append(values(rng, dtype) & values(rng, dtype) if rng.random() < 0.6 else None)
    return operands, masks


def check(row: Operation, seed: int) -> None:
    rng = np.random.default_rng(seed)
    operands, masks = given(rng, row)
    if all(mask is None for mask in masks):
        return
    dtypes = [DTYPES[kind] for kind in row.outputs]
    with np.errstate(all="ignore"):
        poison = row.carriage(row.compute, operands, masks, dtypes)
        expected = row.compute(*operands)
        for _ in range(2):
            other = [
                x if mask is None else (x & ~mask) | (values(rng, mask.dtype.type) & mask)
                for x, mask in zip(operands, masks, strict=True)
            ]
            for a, b, bits, dtype in zip(row.compute(*other), expected, poison, dtypes, strict=True):
                assert bits.dtype == dtype
                assert not ((np.asarray(a, dtype) ^ np.asarray(b, dtype)) & ~bits).any(), row.mnemonic


@pytest.mark.parametrize("part", range(16))
def test_clean_bits_never_change(part: int) -> None:
    for seed, row in enumerate(ROWS[part::16]):
        check(row, seed)


def test_most_moves_are_exact() -> None:
    exact = {x.mnemonic.split(".")[0] for x in ROWS if x.carriage is not whole}
    assert exact >= {
        "and",
        "or",
        "xor",
        "not",
        "lop3",
        "shl",
        "shr",
        "shf",
        "prmt",
        "bfe",
        "bfi",
        "brev",
        "mov",
        "selp",
    }


def test_a_clean_operand_may_decide() -> None:
    ones = np.full((1, 32), 0xFF, np.uint32)
    row = operation("and.b32")
    (bits,) = row.carriage(row.compute, [ones, ones], [ones, None], [np.uint32])
    assert (bits == 0xFF).all()
    (bits,) = row.carriage(row.compute, [ones, ones << 8], [ones, None], [np.uint32])
    assert not bits.any()
    row, yes = operation("setp.lt.or.s32"), np.ones((1, 32), bool)
    (bits,) = row.carriage(row.compute, [ones, ones, yes], [ones, None, None], [np.bool_])
    assert not bits.any()
