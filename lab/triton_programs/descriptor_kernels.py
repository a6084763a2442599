"""Triton kernels that copy by tensor maps: products with descriptors of the host and of the device, persistent ones."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
# ruff: noqa: D401
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _tile(tile, m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Return row and column of a tile, in groups of rows."""
    down, across = tl.cdiv(m, BM), tl.cdiv(n, BN)
    first = tile // (GROUP * across) * GROUP
    rows = min(down - first, GROUP)
    return (first + tile % (GROUP * across) % rows) * BM, tile % (GROUP * across) // rows * BN


@triton.jit
def product(
    a, b, c, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """One tile a program; B is [k, n] with ROWS, otherwise [n, k]."""
    row, column = _tile(tl.program_id(0), m, n, BM, BN, GROUP)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        right = b.load([start, column]) if ROWS else b.load([column, start]).T
        total = tl.dot(a.load([row, start]), right, total, input_precision="tf32")
    c.store([row, column], total.to(c.dtype))


@triton.jit
def persistent(
    a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    FLAT: tl.constexpr, WARPS: tl.constexpr,
):  # fmt: skip
    """Tiles of a program one after the other, in one loop with FLAT, with specialised warps with WARPS."""
    tiles = tl.cdiv(m, BM) * tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLAT, warp_specialize=WARPS):
        row, column = _tile(tile, m, n, BM, BN, GROUP)
        total = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            total = tl.dot(a.load([row, start]), b.load([column, start]).T, total, input_precision="tf32")
        c.store([row, column], total.to(c.dtype))


@triton.jit
def made_by_kernel(
    a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    FLAT: tl.constexpr, WARPS: tl.constexpr,
):  # fmt: skip
    """The same, with descriptors that each program makes in scratch memory."""
    of_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
    of_b = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BN, BK])
    of_c = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BM, BN])
    tiles = tl.cdiv(m, BM) * tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLAT, warp_specialize=WARPS):
        row, column = _tile(tile, m, n, BM, BN, GROUP)
        total = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            total = tl.dot(of_a.load([row, start]), of_b.load([column, start]).T, total, input_precision="tf32")
        of_c.store([row, column], total.to(c.dtype.element_ty))


@triton.jit
def grouped(pointers, sizes, groups, BLOCK: tl.constexpr, DEEP: tl.constexpr):
    """Products of a table of pointers: each has descriptors of its own, made when its first tile comes."""
    tile = tl.program_id(0)
    before = 0
    for group in range(groups):
        m, n, k = tl.load(sizes + 3 * group), tl.load(sizes + 3 * group + 1), tl.load(sizes + 3 * group + 2)
        across = tl.cdiv(n, BLOCK)
        tiles = tl.cdiv(m, BLOCK) * across
        if tile >= before and tile < before + tiles:
            a = tl.load(pointers + 3 * group).to(tl.pointer_type(tl.float16))
            b = tl.load(pointers + 3 * group + 1).to(tl.pointer_type(tl.float16))
            c = tl.load(pointers + 3 * group + 2).to(tl.pointer_type(tl.float16))
            of_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BLOCK, DEEP])
            of_b = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BLOCK, DEEP])
            of_c = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BLOCK, BLOCK])
            while tile >= before and tile < before + tiles:
                row, column = (tile - before) // across * BLOCK, (tile - before) % across * BLOCK
                total = tl.zeros((BLOCK, BLOCK), tl.float32)
                for start in range(0, k, DEEP):
                    total = tl.dot(of_a.load([row, start]), of_b.load([column, start]).T, total)
                of_c.store([row, column], total.to(tl.float16))
                tile += tl.num_programs(0)
        before += tiles


@triton.jit
def split(a, b, c, k, PART: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Parts of k, summed by reductions of the copy engine."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(tl.program_id(2) * PART, (tl.program_id(2) + 1) * PART, BK):
        total = tl.dot(a.load([row, start]), b.load([column, start]).T, total)
    c.atomic_add([row, column], total)


@triton.jit
def attention(
    q, k, v, out, logs, length, scale, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
    WARPS: tl.constexpr,
):  # fmt: skip
    """Heads one below the other; those of K have rows beyond `length` of the next head, which the mask leaves out."""
    head, first = tl.program_id(1) * length, tl.program_id(0) * BM
    i = first + tl.arange(0, BM)
    queries = q.load([head + first, 0])
    highest = tl.full((BM,), -float("inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    end = first + BM if CAUSAL else length
    for start in tl.range(0, end, BN, warp_specialize=WARPS):
        j = start + tl.arange(0, BN)
        scores = tl.dot(queries, k.load([head + start, 0]).T) * (scale * 1.4426950408889634)
        seen = (j[None, :] < length) & (j[None, :] <= i[:, None]) if CAUSAL else j[None, :] < length
        scores = tl.where(seen, scores, -float("inf"))
        new = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - new[:, None])
        before = tl.exp2(highest - new)
        weight = weight * before + tl.sum(powers, axis=1)
        total = tl.dot(powers.to(v.dtype), v.load([head + start, 0]), total * before[:, None])
        highest = new
    out.store([head + first, 0], (total / weight[:, None]).to(out.dtype))
    tl.store(logs + head + i, highest + tl.log2(weight), mask=i < length)
