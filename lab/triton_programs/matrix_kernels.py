"""Triton kernels with `tl.dot`: products of every type, grouped and split ones, attention."""

# ruff: noqa: D103 - the names say it; what each must compute, `cases` says.
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product(
    a, b, c, m, n, k, PRECISION: tl.constexpr, SUM: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    across, down = tl.cdiv(n, BN), tl.cdiv(m, BM)
    program = tl.program_id(0)
    first = program // (GROUP * across) * GROUP
    rows = min(down - first, GROUP)
    i = (first + program % (GROUP * across) % rows) * BM + tl.arange(0, BM)
    j = program % (GROUP * across) // rows * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), SUM)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        left = tl.load(a + i[:, None] * k + at[None, :], mask=(i[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * n + j[None, :], mask=(at[:, None] < k) & (j[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=SUM)
    tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def scaled_bytes(
    a, b, rows, columns, bias, c, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.int32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        left = tl.load(a + i[:, None] * k + at[None, :], mask=(i[:, None] < m) & (at[None, :] < k), other=0)
        right = tl.load(b + j[None, :] * k + at[:, None], mask=(at[:, None] < k) & (j[None, :] < n), other=0)
        total += tl.dot(left, right)
    scale = tl.load(rows + i, mask=i < m)[:, None] * tl.load(columns + j, mask=j < n)[None, :]
    made = total.to(tl.float32) * scale + tl.load(bias + j, mask=j < n)[None, :]
    tl.store(c + i[:, None] * n + j[None, :], made, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def grouped(pointers, sizes, groups, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    tile = tl.program_id(0)
    before = 0
    for group in range(groups):
        m, n, k = tl.load(sizes + 3 * group), tl.load(sizes + 3 * group + 1), tl.load(sizes + 3 * group + 2)
        across = tl.cdiv(n, BLOCK)
        tiles = tl.cdiv(m, BLOCK) * across
        a = tl.load(pointers + 3 * group).to(tl.pointer_type(tl.float16))
        b = tl.load(pointers + 3 * group + 1).to(tl.pointer_type(tl.float16))
        c = tl.load(pointers + 3 * group + 2).to(tl.pointer_type(tl.float16))
        while tile >= before and tile < before + tiles:
            i = (tile - before) // across * BLOCK + tl.arange(0, BLOCK)
            j = (tile - before) % across * BLOCK + tl.arange(0, BLOCK)
            total = tl.zeros((BLOCK, BLOCK), tl.float32)
            for start in range(0, k, BLOCK):
                at = start + tl.arange(0, BLOCK)
                left = tl.load(a + i[:, None] * k + at[None, :], mask=(i[:, None] < m) & (at[None, :] < k), other=0.0)
                right = tl.load(b + at[:, None] * n + j[None, :], mask=(at[:, None] < k) & (j[None, :] < n), other=0.0)
                total += tl.dot(left, right)
            tl.store(c + i[:, None] * n + j[None, :], total.to(tl.float16), mask=(i[:, None] < m) & (j[None, :] < n))
            tile += PROGRAMS
        before += tiles


@triton.jit
def split_with_atomics(
    a, b, c, n, k, PART: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(tl.program_id(2) * PART, (tl.program_id(2) + 1) * PART, BK):
        at = start + tl.arange(0, BK)
        total = tl.dot(tl.load(a + i[:, None] * k + at[None, :]), tl.load(b + at[:, None] * n + j[None, :]), total)
    tl.atomic_add(c + i[:, None] * n + j[None, :], total)


@triton.jit
def split_in_turn(
    a, b, c, turns, n, k, PART: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(2)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(part * PART, (part + 1) * PART, BK):
        at = start + tl.arange(0, BK)
        total = tl.dot(tl.load(a + i[:, None] * k + at[None, :]), tl.load(b + at[:, None] * n + j[None, :]), total)
    turn = turns + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    while tl.atomic_cas(turn, part, part) != part:
        pass
    out = c + i[:, None] * n + j[None, :]
    if part > 0:
        total += tl.load(out)
    tl.store(out, total)
    tl.debug_barrier()
    tl.atomic_xchg(turn, part + 1)


@triton.jit
def attention(
    q, k, v, out, logs, length, scale, CAUSAL: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1) * length * D
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    queries = tl.load(q + head + i[:, None] * D + d[None, :], mask=i[:, None] < length, other=0.0)
    highest = tl.full((BM,), -float("inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BM, length) if CAUSAL else length
    for start in range(0, end, BN):
        j = start + tl.arange(0, BN)
        keys = tl.load(k + head + j[None, :] * D + d[:, None], mask=j[None, :] < length, other=0.0)
        scores = tl.dot(queries, keys) * (scale * 1.4426950408889634)
        seen = (j[None, :] < length) & (j[None, :] <= i[:, None]) if CAUSAL else j[None, :] < length
        scores = tl.where(seen, scores, -float("inf"))
        new = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - new[:, None])
        before = tl.exp2(highest - new)
        weight = weight * before + tl.sum(powers, axis=1)
        values = tl.load(v + head + j[:, None] * D + d[None, :], mask=j[:, None] < length, other=0.0)
        total = tl.dot(powers.to(values.dtype), values, total * before[:, None])
        highest = new
    tl.store(out + head + i[:, None] * D + d[None, :], total / weight[:, None], mask=i[:, None] < length)
    tl.store(logs + tl.program_id(1) * length + i, highest + tl.log2(weight), mask=i < length)
