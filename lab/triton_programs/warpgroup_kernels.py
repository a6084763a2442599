"""Kernels whose products of tiles are `wgmma` on sm_90a: products of all types, attention, descriptors."""

# ruff: noqa: D401
from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["attention", "described", "product", "scaled"]


@triton.jit
def product(
    a,
    b,
    d,
    k,
    stride_ak,
    stride_bk,
    stride_bn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    TYPE: tl.constexpr,
    PRECISION: tl.constexpr,
    STAGES: tl.constexpr,
    CONVERT: tl.constexpr,
):
    """D = A B by tiles; A is [m, k] with any stride along k, B has any strides, D is dense."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    along = tl.arange(0, BK)
    n = tl.num_programs(1) * BN
    at_a = a + rows[:, None] * k * stride_ak + along[None, :] * stride_ak
    at_b = b + along[:, None] * stride_bk + columns[None, :] * stride_bn
    sums = tl.zeros((BM, BN), TYPE)
    for _ in tl.range(0, k, BK, num_stages=STAGES):
        x, y = tl.load(at_a), tl.load(at_b)
        if CONVERT:  # A is in registers
            x = x.to(y.dtype)
        sums = tl.dot(x, y, sums, input_precision=PRECISION, out_dtype=TYPE)
        at_a += BK * stride_ak
        at_b += BK * stride_bk
    tl.store(d + rows[:, None] * n + columns[None, :], sums)


@triton.jit
def scaled(a, b, scales, d, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product whose sums of each step are scaled by rows, as those of quantised models: each step is promoted."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    along = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for step in range(k // BK):
        x = tl.load(a + rows[:, None] * k + along[None, :] + step * BK)
        y = tl.load(b + columns[None, :] * k + along[:, None] + step * BK)
        sums += tl.dot(x, y) * tl.load(scales + rows * (k // BK) + step)[:, None]
    tl.store(d + rows[:, None] * (tl.num_programs(1) * BN) + columns[None, :], sums)


@triton.jit
def attention(
    q, k, v, out, length, scale, BM: tl.constexpr, BN: tl.constexpr, SIZE: tl.constexpr, CAUSAL: tl.constexpr
):
    """Attention by rows of Q: scores of the second product are A in registers."""
    first = tl.program_id(0) * BM
    head = tl.program_id(1) * length * SIZE
    rows, size = first + tl.arange(0, BM), tl.arange(0, SIZE)
    of_q = tl.load(q + head + rows[:, None] * SIZE + size[None, :])
    most = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    sums = tl.zeros((BM, SIZE), tl.float32)
    end = first + BM if CAUSAL else length
    for start in range(0, end, BN):
        columns = start + tl.arange(0, BN)
        of_k = tl.load(k + head + columns[None, :] * SIZE + size[:, None])
        scores = tl.dot(of_q, of_k) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= columns[None, :], scores, float("-inf"))
        now = tl.maximum(most, tl.max(scores, 1))
        p = tl.exp2(scores - now[:, None])
        factor = tl.exp2(most - now)
        total = total * factor + tl.sum(p, 1)
        of_v = tl.load(v + head + columns[:, None] * SIZE + size[None, :])
        sums = tl.dot(p.to(of_v.dtype), of_v, sums * factor[:, None])
        most = now
    tl.store(out + head + rows[:, None] * SIZE + size[None, :], sums / total[:, None])


@triton.jit
def described(a, b, d, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WARPS: tl.constexpr):
    """A persistent product through descriptors that the kernel makes: copies of tensors, and stores of them."""
    of_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
    of_b = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BN, BK])
    of_d = tl.make_tensor_descriptor(d, [m, n], [n, 1], [BM, BN])
    across = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * across, tl.num_programs(0), warp_specialize=WARPS):
        row, column = tile // across * BM, tile % across * BN
        sums = tl.zeros((BM, BN), tl.float32)
        for step in range(0, k, BK):
            sums = tl.dot(of_a.load([row, step]), of_b.load([column, step]).T, sums)
        of_d.store([row, column], sums.to(tl.float16))
