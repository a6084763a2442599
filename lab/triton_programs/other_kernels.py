"""Triton kernels with less common features: block pointers, packed weights, joins, gathers, conversions, atomics."""

# ruff: noqa: D103 - the names say it; what each must compute, `cases` says.
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def transposed(x, y, m, n, BM: tl.constexpr, BN: tl.constexpr):
    there = tl.make_block_ptr(x, (m, n), (n, 1), (tl.program_id(0) * BM, tl.program_id(1) * BN), (BM, BN), (1, 0))
    back = tl.make_block_ptr(y, (n, m), (m, 1), (tl.program_id(1) * BN, tl.program_id(0) * BM), (BN, BM), (1, 0))
    tl.store(back, tl.trans(tl.load(there, boundary_check=(0, 1))), boundary_check=(0, 1))


@triton.jit
def packed_weights(x, w, scales, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Multiply f16 by 4-bit integers, two per byte along k, with a scale for each 32 of them."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        at, half = start + tl.arange(0, BK), start // 2 + tl.arange(0, BK // 2)
        pairs = tl.load(w + j[:, None] * (k // 2) + half[None, :], mask=j[:, None] < n, other=0)
        low, high = (pairs & 15).to(tl.int8) - 8, (pairs >> 4 & 15).to(tl.int8) - 8
        weights = tl.interleave(low, high).to(tl.float16)
        scale = tl.load(scales + j * (k // 32) + start // 32, mask=j < n, other=0.0)
        values = tl.load(x + i[:, None] * k + at[None, :], mask=i[:, None] < m, other=0.0)
        total += tl.dot(values, tl.trans(weights * scale[:, None]))
    tl.store(y + i[:, None] * n + j[None, :], total.to(tl.float16), mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def _merged(count, mean, spread, count2, mean2, spread2):
    both = count + count2
    away = mean2 - mean
    part = tl.where(both == 0, 0.0, count2 / both)
    return both, mean + away * part, spread + spread2 + away * away * count * part


@triton.jit
def variances(x, means, spreads, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    counts = tl.where(at < columns, 1.0, 0.0)
    _, mean, spread = tl.reduce((counts, values, tl.zeros_like(values)), 0, _merged)
    tl.store(means + row, mean)
    tl.store(spreads + row, spread / columns)


@triton.jit
def conversions(x, half, cut, brain, e5m2, e4m3, integer, back, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(half + at, value.to(tl.float16), mask=at < n)
    tl.store(cut + at, value.to(tl.float16, fp_downcast_rounding="rtz"), mask=at < n)
    tl.store(brain + at, value.to(tl.bfloat16), mask=at < n)
    small = value.to(tl.float8e5)
    tl.store(e5m2 + at, small, mask=at < n)
    tl.store(e4m3 + at, value.to(tl.float8e4nv), mask=at < n)
    tl.store(integer + at, (value * 100).to(tl.int16), mask=at < n)
    tl.store(back + at, small.to(tl.float32) + value.to(tl.float8e4nv).to(tl.float32), mask=at < n)


@triton.jit
def gathers(x, places, y, flipped, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = i[:, None] * COLUMNS + j[None, :]
    values = tl.load(x + at)
    tl.store(y + at, tl.gather(values, tl.load(places + at), 0))
    tl.store(flipped + at, tl.flip(values, 1))


@triton.jit
def atomics(x, highest, lowest, counts, halves, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    bin_ = at % BINS
    tl.atomic_max(highest + bin_, value, mask=at < n)
    tl.atomic_min(lowest + bin_, value, mask=at < n, sem="relaxed")
    tl.atomic_add(counts + bin_, (at * 0 + 1).to(tl.int64), mask=at < n, sem="relaxed")
    tl.atomic_add(halves + bin_, (at * 0 + 1).to(tl.float16), mask=at < n, sem="relaxed")


@triton.jit
def batched(a, b, c, N: tl.constexpr, BATCH: tl.constexpr):
    one, i, j = tl.arange(0, BATCH), tl.arange(0, N), tl.arange(0, N)
    at = one[:, None, None] * N * N + i[None, :, None] * N + j[None, None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def assembler(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    made = tl.inline_asm_elementwise(
        "{ .reg .b32 t; prmt.b32 t, $1, $2, 0x5140; lop3.b32 $0, t, $1, $2, 0x96; }", "=r,r,r",
        [value, value ^ 0x5A5A5A5A], dtype=tl.int32, is_pure=True, pack=1,
    )  # fmt: skip
    tl.store(y + at, made, mask=at < n)


@triton.jit
def persistent(a, b, c, m, n, k, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * across, PROGRAMS):
        i = tile // across * BM + tl.arange(0, BM)
        j = tile % across * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for start in tl.range(0, k, BK, num_stages=3):
            at = start + tl.arange(0, BK)
            left = tl.load(a + (i % m)[:, None] * k + at[None, :], mask=at[None, :] < k, other=0.0)
            right = tl.load(b + at[:, None] * n + (j % n)[None, :], mask=at[:, None] < k, other=0.0)
            total = tl.dot(left, right, total)
        made = tl.where(total >= 0, total, 0.01 * total).to(tl.bfloat16)
        tl.store(c + i[:, None] * n + j[None, :], made, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def collatz(x, steps, most, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=1).to(tl.int64)
    count = tl.zeros((BLOCK,), tl.int32)
    highest = value
    while tl.max((value != 1).to(tl.int32), axis=0) != 0:
        going = value != 1
        value = tl.where(going, tl.where(value % 2 == 0, value // 2, 3 * value + 1), value)
        count += going.to(tl.int32)
        highest = tl.maximum(highest, value)
    tl.store(steps + at, count, mask=at < n)
    tl.store(most + at, highest, mask=at < n)


@triton.jit
def gradients(x, weight, slopes, means, scales, out, parts, columns, BLOCK: tl.constexpr, GROUPS: tl.constexpr):
    """Backward pass of a layer norm: `out` for x, and in `parts` a row of each group's sums for the weights."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    normal = (tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32) - tl.load(means + row)) * tl.load(
        scales + row
    )
    slope = tl.load(slopes + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    weighted = tl.where(inside, tl.load(weight + at, mask=inside, other=0.0) * slope, 0.0)
    normal = tl.where(inside, normal, 0.0)
    along = tl.sum(normal * weighted, axis=0) / columns
    mean = tl.sum(weighted, axis=0) / columns
    tl.store(out + row * columns + at, (weighted - (normal * along + mean)) * tl.load(scales + row), mask=inside)
    tl.atomic_add(parts + row % GROUPS * columns + at, tl.floor(slope * normal * 64), mask=inside, sem="relaxed")
