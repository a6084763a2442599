"""Whole products a tile at a time, one instruction after the other, what is missing +0: what `matmul` should give."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from arrays import Array, Rng, same

import warpmma as wm
from lab.generators import mixed
from warpmma import sparsity as sp
from warpmma.isa import Instruction, MatrixInstruction
from warpmma.scaling import block_size

module = importlib.import_module("warpmma.products.tiling")
Call = Callable[..., Any]
ENGINES: tuple[Any, ...] = tuple(wm.engines())
each_engine = pytest.mark.parametrize("engine", ENGINES)

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
HALF = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
F64 = "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64"
S8 = "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32"
B1 = "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SP_TF32 = "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"
MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0"
MXF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
NVF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
FP8 = "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"


def tile(x: Array, row: int, column: int, rows: int, columns: int, fill: Any = 0) -> Array:
    """Part of a matrix, filled up to so many rows and columns."""
    part = x[row : row + rows, column : column + columns]
    out = np.full((rows, columns, *x.shape[2:]), fill, x.dtype)
    out[: part.shape[0], : part.shape[1]] = part
    return out


def chain(
    i: Instruction, target: str, a: Array, b: Array, c: Array, *, indices: Array | None = None,
    scale_a: Array | None = None, scale_b: Array | None = None,
) -> Array:  # fmt: skip
    """Codes of D from codes of A, B and C: of a sparse A the dense matrix, or the stored elements with indices."""
    d, k = np.empty(c.shape, i.format("D").code_dtype), len(b)
    for row, column in product(range(0, c.shape[0], i.m), range(0, c.shape[1], i.n)):
        acc = tile(c, row, column, i.m, i.n)
        for at in range(0, k, i.k):
            half = 1 if indices is None else 2
            x, y = tile(a, row, at // half, i.m, i.k // half), tile(b, at, column, i.k, i.n)
            more: dict[str, Any] = {}
            if indices is not None:
                width = sp.pattern(i).width
                own = tile(indices, row, at // width, i.m, i.k // width)
                own[own.sum(axis=-1) == 0] = 0, 1  # beyond the matrix any legal indices
                more["metadata"] = sp.pack_metadata(own, i)
            if scale_a is not None and scale_b is not None:
                s = i.scales_per_row
                more["scale_a"] = tile(scale_a, row, at // block_size(i), i.m, s)
                more["scale_b"] = tile(scale_b, at // block_size(i), column, s, i.n)
            if len(i.layout("A").shape) == 3:  # m8n8k4: four times the same
                x, y, acc = (np.stack([z] * 4) for z in (x, y, acc))
            acc = i.format("D").codes(wm.mma(i, x, y, acc, target=target, engine="numpy", **more))
            acc = acc[0] if acc.ndim == 3 else acc
        part = d[row : row + i.m, column : column + i.n]
        part[...] = acc[: part.shape[0], : part.shape[1]]
    return d


def added(x: Array, y: Array) -> Array:
    """Codes of f32 added, NaN the canonical one."""
    with np.errstate(all="ignore"):
        total: Array = x.view(np.float32) + y.view(np.float32)
    return np.where(np.isnan(total), np.uint32(0x7FFFFFFF), total.view(np.uint32))


def split(i: MatrixInstruction, k: int, split_k: int | Sequence[int]) -> list[tuple[int, int]]:
    """Slices of k."""
    if isinstance(split_k, int):
        whole = -(-k // i.k)  # instructions
        each = max(1, -(-whole // split_k)) * i.k
        return [(at, min(at + each, k)) for at in range(0, k, each)] or [(0, 0)]
    ends = [sum(split_k[:x]) for x in range(len(split_k) + 1)]
    return list(pairwise(ends))


def in_parts(
    i: Instruction, target: str, a: Array, b: Array, c: Array, split_k: int | Sequence[int], promote: int | None
) -> Array:  # fmt: skip
    """The model with partial sums: those of a slice together, slices one after the other to C."""
    slices = split(i, len(b), split_k)
    if promote is None and len(slices) == 1:
        return chain(i, target, a, b, c)
    total, zero = c.copy(), np.zeros_like(c)
    for start, stop in slices:
        parts = [(at, min(at + (promote or stop), stop)) for at in range(start, stop, promote or stop)]
        sums = [chain(i, target, a[:, x:y], b[x:y], zero) for x, y in parts]
        while len(sums) > 1:
            sums[:2] = [added(sums[0], sums[1])]
        total = added(total, sums[0]) if sums else total
    return total


@contextmanager
def small_tiles(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_TILE", {"native": size, "numpy": size})
        yield


WAYS = [(engine, *way) for engine in ENGINES for way in ((1, 512), (3, 16), (1, 5))]


def check(i: MatrixInstruction, target: str, expected: Array, *given: Any, **more: Any) -> None:
    """Every engine, number of threads and size of tile gives these codes."""
    fmt = i.format("D")
    for engine, threads, size in WAYS:
        with small_tiles(size):
            d = wm.matmul(*given, instruction=i, target=target, engine=engine, threads=threads, **more)
        assert d.dtype == fmt.dtype
        same(d.view(fmt.code_dtype), expected)


def drawn(i: MatrixInstruction, m: int, n: int, k: int, rng: Rng, rare: float = 0.005) -> tuple[Array, Array, Array]:
    """Codes of A, B and C."""
    shapes: Any = (("A", (m, k)), ("B", (k, n)), ("C", (m, n)))
    a, b, c = (mixed(i.format(x), shape, rng, rare) for x, shape in shapes)
    return a, b, c


def typed(i: MatrixInstruction, *codes: Array) -> list[Array]:
    return [i.format(x).array(y) for x, y in zip(("A", "B", "C"), codes, strict=False)]  # type: ignore[arg-type]


def some_scales(i: Instruction, m: int, n: int, k: int, rng: Rng) -> dict[str, Any]:
    low, high = (120, 135) if i.stype == "ue8m0" else (0, 0x7F)
    blocks = -(-k // block_size(i))
    return {
        x: rng.integers(low, high, shape, np.uint8) for x, shape in (("scale_a", (m, blocks)), ("scale_b", (blocks, n)))
    }


EPILOGUES = ["f32", "tf32", "f16", "bf16", "e5m2", "e4m3", "e3m2", "e2m3", "e2m1"]


def zeros(*shape: int, dtype: Any = "f2") -> Array:
    return np.zeros(shape, dtype)


F4 = {"dtype": "f4"}
