"""Sparse matrices of any size: each group as in a tile of one instruction, `matmul` on what comes out, memory."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from arrays import Array, same

import warpmma as wm
from lab.generators import random_codes
from warpmma import sparsity as sp
from warpmma.errors import MetadataError
from warpmma.formats import FloatFormat
from warpmma.isa import Instruction, instructions
from warpmma.scaling import block_size, quantize
from warpmma.sparsity import patterns

SPARSE = [i for i in instructions() if i.sparse]
TYPES = list({(i.packing("A").slot, i.a_type): i for i in SPARSE}.values())
MULTIPLIED = list({(i.a_type, i.b_type, i.k, i.d_type): i for i in SPARSE if not i.block_scale}.values())
each_type = pytest.mark.parametrize("instruction", TYPES, ids=str)
F16 = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that most matrices here are cut into several, groups of a row too."""
    monkeypatch.setattr(patterns, "_GROUPS", 7)


def some(instruction: Instruction, shape: tuple[int, ...], seed: int = 1) -> Array:
    fmt, rng = instruction.format("A"), np.random.default_rng(seed)
    codes = np.where(rng.random(shape) < 0.2, 0, random_codes(fmt, shape, rng))
    return fmt.array(codes.astype(fmt.code_dtype))


def bits(x: Array) -> Array:
    return np.ascontiguousarray(x).view(np.uint8)


def tiled(instruction: Instruction, matrix: Array, of_tile: Callable[[Array], Array], width: int) -> Array:
    """Apply a function of one instruction's A to a whole matrix, padded; `width` columns go, so many come."""
    record, (m, k) = instruction, matrix.shape
    whole = np.zeros((-(-m // record.m) * record.m, -(-k // record.k) * record.k), matrix.dtype)
    whole[:m, :k] = matrix
    rows = [
        np.concatenate([of_tile(whole[i : i + record.m, j : j + record.k]) for j in range(0, whole.shape[1], record.k)],
                       axis=1)
        for i in range(0, len(whole), record.m)
    ]  # fmt: skip
    return np.concatenate(rows)[:m, : k * width // record.k]


@each_type
def test_whole_matrices_are_their_tiles(instruction: Instruction) -> None:
    law, i = sp.pattern(instruction), instruction
    k = 2 * i.k + 3 * law.width
    matrix = some(i, (37, k))
    pruned = sp.prune(matrix, i)
    assert pruned.dtype == matrix.dtype and pruned.shape == matrix.shape
    same(bits(pruned), bits(tiled(i, matrix, lambda x: sp.prune(x, i), i.k)))
    stored, indices = sp.compress(pruned, i)
    assert stored.shape == (37, k // 2) and indices.shape == (37, k // law.width, 2)
    same(bits(stored), bits(tiled(i, pruned, lambda x: sp.compress(x, i)[0], i.k // 2)))
    same(indices, tiled(i, pruned, lambda x: sp.compress(x, i)[1], i.k // law.width))
    back = sp.expand(stored, indices, i)
    assert back.dtype == matrix.dtype
    kept = i.format("A").decode(i.format("A").codes(pruned)) != 0  # zeros that are not stored come back as +0
    same(bits(back[kept]), bits(pruned[kept]))
    assert not i.format("A").decode(i.format("A").codes(back))[~kept].any()


@each_type
def test_rows_met_are_the_positions_of_metadata(instruction: Instruction) -> None:
    i, law, rng = instruction, sp.pattern(instruction), np.random.default_rng(2)
    legal = np.array(sorted(sp.legal_codes(i)), np.uint8)
    nibbles = rng.choice(legal, (3, 16, 2 * i.k // law.width))
    indices = np.stack([nibbles & 3, nibbles >> 2], axis=-1)
    sp.check_indices(indices, i)
    met = sp.rows_met(indices, i)
    assert met.dtype == np.uint8 and met.shape == (3, 16, i.k)
    tiles = np.split(indices, 2, axis=2)
    same(met, np.concatenate([sp.positions(sp.pack_metadata(x, i), i) for x in tiles], axis=2).astype(np.uint8))


@pytest.mark.parametrize("instruction", MULTIPLIED, ids=str)
@pytest.mark.alike(3)
def test_matmul_takes_what_they_give(instruction: Instruction) -> None:
    """Dense with its zeros, stored elements with indices, and expanded again: one product."""
    i, rng = instruction, np.random.default_rng(3)
    k = i.k + 3 * sp.pattern(i).width
    fmt = i.format("A")
    values = rng.integers(1, 4, (35, k)) if not isinstance(fmt, FloatFormat) else rng.uniform(-1, 1, (35, k))
    weights = fmt.array(fmt.encode(values))
    b = i.format("B").array(i.format("B").encode(rng.integers(0, 4, (k, 9)).astype(float)))
    product: Callable[..., Array] = partial(wm.matmul, instruction=i, target=i.targets[0])
    dense = sp.prune(weights, i)
    d = product(dense, b)
    stored, indices = sp.compress(dense, i)
    same(bits(product(stored, b, indices=indices)), bits(d))
    same(bits(product(sp.expand(stored, indices, i), b)), bits(d))
    assert d.any()


def test_batches_layouts_and_nothing() -> None:
    i = wm.parse(F16)
    matrices = some(i, (2, 3, 5, 40))
    stored, indices = sp.compress(sp.prune(matrices, i), i)
    for at in np.ndindex(2, 3):
        pruned = sp.prune(matrices[at], i)
        same(sp.prune(matrices, i)[at], pruned)
        same(stored[at], sp.compress(pruned, i)[0])
        same(indices[at], sp.compress(pruned, i)[1])
    turned = np.asfortranarray(matrices[0, 0])
    same(sp.prune(turned, i), sp.prune(matrices[0, 0], i))
    broadcast = sp.expand(stored[0, 0], indices, i)
    assert broadcast.shape == (2, 3, 5, 40)
    same(broadcast[1, 2], sp.expand(stored[0, 0], indices[1, 2], i))
    for shape in ((0, 40), (5, 0), (0, 0), (0, 5, 8), (2, 0, 8)):
        nothing = np.zeros(shape, np.float16)
        same(sp.prune(nothing, i), nothing)
        stored, indices = sp.compress(nothing, i)
        assert stored.shape == (*shape[:-1], shape[-1] // 2) and indices.shape == (*shape[:-1], shape[-1] // 4, 2)
        same(sp.expand(stored, indices, i), nothing)
        assert sp.rows_met(indices, i).shape == stored.shape


def test_what_came_is_left_as_it_was() -> None:
    matrix = np.ones((3, 8), np.float16)
    pruned = sp.prune(matrix, F16)
    assert matrix.all() and not np.shares_memory(pruned, matrix)
    sp.prune(pruned, F16)[...] = 5
    same(pruned, np.tile(np.array([1, 1, 0, 0], np.float16), (3, 2)))


def test_block_scaled_weights() -> None:
    name = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    i, rng = wm.parse(name), np.random.default_rng(4)
    weights = rng.standard_normal((35, 5 * block_size(i))).astype(np.float32)
    a, b = quantize(weights, i), quantize(weights.T, i, "B")
    dense = sp.prune(a.elements, i)
    stored, indices = sp.compress(dense, i)
    product: Callable[..., Array] = partial(wm.matmul, instruction=i, target="sm_120a", scale_a=a.scales)
    same(product(stored, b, indices=indices), product(dense, b))


def test_the_place_of_an_error_is_that_in_the_matrix() -> None:
    matrix, at = np.zeros((2, 50, 400), np.float16), re.escape("matrix (1,), row 37, group 81 (columns 324 to 327)")
    stored, indices = sp.compress(matrix, F16)
    matrix[1, 37, 325:328] = 1
    with pytest.raises(MetadataError, match=f"A breaks the 2:4 pattern at {at}: "):
        sp.compress(matrix, F16)
    with pytest.raises(MetadataError, match=f"A breaks the 2:4 pattern at {at}: "):
        wm.matmul(matrix, np.zeros((400, 3), np.float16), instruction=F16, target="sm_90")
    indices[1, 37, 81] = 3, 3
    with pytest.raises(MetadataError, match=f"cannot expand {at}: its indices are \\(3, 3\\)"):
        sp.expand(stored, indices, F16)
    with pytest.raises(MetadataError, match=f"indices \\(3, 3\\), nibble 0xf, of {at}; legal are 0x4, 0x8, "):
        sp.check_indices(indices, F16)
    with pytest.raises(MetadataError, match=f"indices \\(3, 3\\), nibble 0xf, of {at}; legal are 0x4, 0x8, "):
        wm.matmul(stored, np.zeros((400, 3), np.float16), instruction=F16, target="sm_90", indices=indices)


@pytest.mark.parametrize("dtype", ["f2", "i1"])
def test_memory_is_that_of_the_results(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large the matrix: its values as float64 would be 32 MiB here. Of integers codes are a copy."""
    monkeypatch.undo()
    codes = {"f2": 0, "i1": 4}[dtype]
    name = F16 if dtype == "f2" else "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32"
    matrix = np.random.default_rng(5).integers(-9, 9, (1024, 4096)).astype(dtype)
    pruned = sp.prune(matrix, name)
    stored, indices = sp.compress(pruned, name)
    calls: list[Callable[[], Any]] = [
        lambda: sp.prune(matrix, name), lambda: sp.compress(pruned, name), lambda: sp.expand(stored, indices, name),
        lambda: sp.check_indices(indices, name), lambda: sp.rows_met(indices, name),
    ]  # fmt: skip
    for call in calls:
        tracemalloc.start()
        result = call()
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        own = sum(x.nbytes for x in (result if isinstance(result, tuple) else (result,)) if x is not None) / 2**20
        assert peak < own + codes + 6
