"""Whole matrix products of every kind against explicit loops of `mma` over tiles and k."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import same
from product_cases import (
    B1,
    ENGINES,
    F16,
    F64,
    FP8,
    MX,
    MXF4,
    NVF4,
    S8,
    SP,
    SP_TF32,
    WAYS,
    Call,
    chain,
    check,
    drawn,
    small_tiles,
    some_scales,
    typed,
)

import warpmma as wm
from lab.generators import RecipeCase, mixed, recipe_cases
from warpmma import sparsity as sp
from warpmma.arithmetic.exact.reference import dot
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.isa import Instruction, instructions, parse, warpgroup_instructions
from warpmma.scaling import Quantized, block_size, quantize

# Dense products.

DENSE = [case for case in recipe_cases() if not case.instruction.block_scale]
SIZES = [(17, 9, 1), (7, 33, 3), (33, 7, 2)]  # m, n and instructions along k, of which the last is not whole


@pytest.mark.parametrize("case", DENSE, ids=str)
@pytest.mark.alike(4)
def test_matmul_is_a_loop_over_tiles(case: RecipeCase) -> None:
    i, rng = case.instruction, np.random.default_rng(1)
    sizes = SIZES if not i.k > 64 else SIZES[2:]
    for m, n, steps in sizes:
        k = steps * i.k - int(rng.integers(1, i.k))
        if i.c_type != i.d_type:
            k = min(k, i.k)
        a, b, c = drawn(i, m, n, k, rng)
        check(i, case.target, chain(i, case.target, a, b, c), *typed(i, a, b, c))
    if i.c_type == i.d_type:
        zero = chain(i, case.target, a, b, np.zeros_like(c))
        same(wm.matmul(a, b, instruction=str(i), target=case.target).view(zero.dtype), zero)
        assert (zero != chain(i, case.target, a, b, c)).any()


@pytest.mark.parametrize("mnemonic", [F16, F64, S8, B1])
def test_every_odd_size(mnemonic: str) -> None:
    i, rng = parse(mnemonic), np.random.default_rng(2)
    for m, n, k in product((1, 7, 16, 33), (1, 8, 17), (1, 7, i.k, i.k + 1, 2 * i.k)):
        a, b, c = drawn(i, m, n, k, rng)
        expected = chain(i, "sm_90", a, b, c)
        for engine in ENGINES:
            d = wm.matmul(*typed(i, a, b, c), instruction=i, target="sm_90", engine=engine)
            same(d.view(expected.dtype), expected)


def test_zeros_and_payloads_of_f64() -> None:
    """The accumulator begins with +0, what pads k adds +0, and a NaN keeps its payload."""
    i, nan = parse(F64), np.array([0x7FF0000000000123, 0xFFF8DEADBEEF0001], np.uint64).view(np.float64)
    a, b = np.full((3, 8), -0.0), np.ones((8, 2))
    assert not np.signbit(wm.matmul(a, b, target="sm_90")).any()
    c = np.full((3, 2), -0.0)
    for k, negative in ((8, True), (7, False), (0, True)):
        for engine in ENGINES:
            d = wm.matmul(a[:, :k], b[:k], c, instruction=i, target="sm_90", engine=engine)
            assert (np.signbit(d) == negative).all() and not d.any()
    rng = np.random.default_rng(3)
    a, b, c = rng.choice(
        np.array([0.0, -0.0, 1.0, -1.0, np.inf, *nan]), (3, 40, 40), p=[0.3, 0.3, 0.18, 0.18, *[0.04 / 3] * 3]
    )
    codes = [x.view(np.uint64) for x in (a, b, c)]
    expected = chain(i, "sm_90", *codes)
    assert len(np.unique(expected[np.isnan(expected.view(np.float64))])) > 2
    check(i, "sm_90", expected, a, b, c)


def test_saturation_is_that_of_every_instruction() -> None:
    """Clamped sums come back from the clamp, which one sum of all products would not."""
    a = np.where(np.arange(64) < 32, 127, -128).astype(np.int8)[None]
    b, c = np.full((64, 1), 127, np.int8), np.full((1, 1), 2**31 - 1, np.int32)
    for engine in ENGINES:
        call: Call = partial(wm.matmul, a, b, c, target="sm_80", engine=engine)
        assert call(instruction=S8).item() == 2**31 - 1 - 32 * 128 * 127
        wrapped = call(instruction=S8.replace("satfinite.", "")).item()
        assert wrapped == 2**31 - 1 - 32 * 127


# Sparse products.

SPARSE = [i for i in instructions() if i.sparse and not i.block_scale]
FEW = list({(i.a_type, i.b_type, i.d_type, i.sparsity): i for i in SPARSE}.values())


@pytest.mark.parametrize("i", FEW, ids=str)
@pytest.mark.alike(3)
def test_sparse_products(i: Instruction) -> None:
    rng, target, width = np.random.default_rng(4), i.targets[-1], sp.pattern(i).width
    m, n, k = 19, 9, i.k + width * int(rng.integers(1, i.k // width))
    a, b, c = drawn(i, m, n, k, rng)
    fmt = i.format("A")
    groups = a.reshape(m, -1, width)
    keep = rng.permuted(np.tile(np.arange(groups.shape[2] // sp.pattern(i).unit) % 2, (*groups.shape[:2], 1)), axis=2)
    dense = np.where(np.repeat(keep, sp.pattern(i).unit, axis=2), groups, 0).reshape(m, k).astype(fmt.code_dtype)
    expected = chain(i, target, dense, b, c)
    check(i, target, expected, *typed(i, dense, b, c))

    stored = mixed(fmt, (m, k // 2), rng)
    late = i.a_type == "bf16"  # of which only ascending indices are known on the newest targets
    legal = sorted(sp.legal_codes(i) & sp.SORTED_CODES if late else sp.legal_codes(i))
    nibbles = rng.choice(np.array(legal, np.uint8), (m, k // width))
    indices = np.stack([nibbles & 3, nibbles >> 2], axis=-1)
    expected = chain(i, target, stored, b, c, indices=indices)
    check(i, target, expected, *typed(i, stored, b, c), indices=indices)
    same(wm.matmul(stored, b, instruction=i, target=target, indices=indices.astype(np.int64)[None])[0].view(c.dtype),
         chain(i, target, stored, b, np.zeros_like(c), indices=indices))  # fmt: skip


@pytest.mark.parametrize("mnemonic", [SP, SP_TF32])
def test_what_pads_a_sparse_product_meets_nothing(mnemonic: str) -> None:
    """Not the infinities at the beginning of the instruction that it fills up."""
    i, width = parse(mnemonic), sp.pattern(mnemonic).width
    a, b = np.zeros((3, width), i.format("A").dtype), np.full((width, 2), np.inf, i.format("B").dtype)
    a[:, : width // 2] = 1
    indices = np.tile([0, 1], (3, 1, 1))
    for engine in ENGINES:
        d = wm.matmul(a, b, instruction=i, target="sm_90", engine=engine)
        same(d, np.full((3, 2), np.inf, np.float32))
        stored = wm.matmul(a[:, : width // 2], b, instruction=i, target="sm_90", engine=engine, indices=indices)
        same(stored, d)


# Block-scaled products.

SCALED = list({(i.kind, i.scale_vec, i.stype, i.sparse): i for i in instructions() if i.block_scale}.values())


@pytest.mark.parametrize("i", SCALED, ids=str)
def test_block_scaled_products(i: Instruction) -> None:
    rng = np.random.default_rng(5)
    step = sp.pattern(i).width if i.sparse else 1
    for k in (i.k, i.k + block_size(i), 2 * i.k - step, step):
        a, b, c = drawn(i, 19, 9, k, rng)
        if i.sparse:
            unit = sp.pattern(i).unit
            a = np.where(np.arange(k) // unit % 2, a, 0).astype(a.dtype)
        scales = some_scales(i, 19, 9, k, rng)
        expected = chain(i, "sm_120a", a, b, c, **scales)
        check(i, "sm_120a", expected, *typed(i, a, b, c), **scales)
    dtype = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}[i.stype or ""]
    d = wm.matmul(a, b, c, instruction=i, target="sm_120a", **{x: y.view(dtype) for x, y in scales.items()})
    same(d.view(np.uint32), expected)


@pytest.mark.parametrize("mnemonic", [MX, MXF4, NVF4])
def test_quantized_operands(mnemonic: str) -> None:
    """Tensor scales of a batch multiply D: their product, then D's with it, each rounded to f32."""
    i, rng = parse(mnemonic), np.random.default_rng(6)
    spread = np.float32(2.0) ** rng.integers(-9, 9, (2, 3, 1, 1))
    a = quantize(rng.standard_normal((3, 19, 128)).astype(np.float32) * spread[0], i)
    b = quantize(rng.standard_normal((2, 1, 128, 9)).astype(np.float32) * spread[1, :2, None], i, "B")
    plain = wm.matmul(a.elements, b.elements, instruction=i, target="sm_120a", scale_a=a.scales, scale_b=b.scales)
    for x, y in np.ndindex(2, 3):
        one, other, c = a.elements[y].view("u1"), b.elements[x, 0].view("u1"), np.zeros((19, 9), np.uint32)
        expected = chain(i, "sm_120a", one, other, c,
                         scale_a=a.scales[y], scale_b=b.scales[x, 0])  # fmt: skip
        same(plain[x, y].view(np.uint32), expected)
    d = wm.matmul(a, b, instruction=i, target="sm_120a", threads=2)
    rounded = wm.matmul(a, b, instruction=i, target="sm_120a", epilogue="bf16")
    if mnemonic != NVF4:
        same(d, plain)
        return
    alpha = np.asarray(a.tensor_scale)[None] * np.asarray(b.tensor_scale)  # f32 by f32 in f32
    assert alpha.shape == (2, 3) and alpha.dtype == np.float32
    same(d, plain * alpha[..., None, None])
    assert (
        d != plain * np.asarray(a.tensor_scale)[None, :, None, None] * np.asarray(b.tensor_scale)[..., None, None]
    ).any()
    same(rounded, (plain * alpha[..., None, None]).astype(ml_dtypes.bfloat16))
    single = Quantized(elements=a.elements[0], scales=a.scales[0], tensor_scale=np.asarray(a.tensor_scale)[0])
    same(wm.matmul(single, b.elements[0, 0], instruction=i, target="sm_120a", scale_b=b.scales[0, 0]),
         plain[0, 0] * np.asarray(a.tensor_scale)[0])  # fmt: skip


@pytest.mark.parametrize(
    ("x", "y"),
    [(1e-20, 1e-25), (1e-30, 1e-30), (2**100, 2**100), (np.inf, 0), (-1, 1), (np.nan, 1), (2**-149, 0.7), (0.1, 0.3)],
)
def test_tensor_scales_of_every_size(x: float, y: float) -> None:
    """Products that are subnormal, zero, infinite, NaN; a zero times -1 is -0."""
    a, b, ones = np.zeros((2, 3, 64), np.uint8), np.full((64, 2), 2, np.uint8), np.full((3, 2), 127, np.uint8)
    a[0] = 2  # ones
    f, g = np.float32(x), np.float32(y)
    left = Quantized(elements=a, scales=ones, tensor_scale=f)
    right = Quantized(elements=b, scales=ones[:2], tensor_scale=g)
    with np.errstate(all="ignore"):
        expected = np.zeros((2, 3, 2), np.float32) + np.array([64, 0], np.float32)[:, None, None]
        expected *= f * g
    codes = np.where(np.isnan(expected), np.uint32(0x7FFFFFFF), expected.view(np.uint32))
    for engine, threads in product(ENGINES, (1, 2)):
        d = wm.matmul(left, right, instruction=MXF4, target="sm_120a", engine=engine, threads=threads)
        same(d.view(np.uint32), codes)


# Warpgroup instructions.

WARPGROUP = list(
    {(i.d_type, i.a_type, i.b_type, i.satfinite): i for i in warpgroup_instructions() if not i.sparse}.values()
)
SPARSE_WARPGROUP = list(
    {(i.d_type, i.a_type, i.b_type, i.satfinite): i for i in warpgroup_instructions() if i.sparse}.values()
)


@pytest.mark.parametrize("i", SPARSE_WARPGROUP, ids=str)
def test_sparse_warpgroup_products(i: Any) -> None:
    """A chain of instructions, each of which `mma` computes from registers."""
    rng = np.random.default_rng(9)
    a, b, c = drawn(i, 64, i.n, 2 * i.k, rng)
    left, right, start = typed(i, a, b, c)
    left = sp.prune(left, i)
    for half in (slice(0, i.k), slice(i.k, 2 * i.k)):
        start = wm.mma(i, left[:, half], right[half], start, target="sm_90a")
    for engine in ENGINES:
        d = wm.matmul(left, right, typed(i, a, b, c)[2], instruction=i, target="sm_90a", engine=engine)
        same(d.view(i.format("D").code_dtype), start.view(i.format("D").code_dtype))


@pytest.mark.parametrize("i", WARPGROUP, ids=str)
def test_warpgroup_products(i: Any) -> None:
    """Against the reference, an element at a time: 64 rows are too many for a whole tile of it."""
    rng, how = np.random.default_rng(7), recipe(i, "sm_90a")
    m, n, k = 67, 11, 2 * i.k + 3
    a, b, c = drawn(i, m, n, k, rng)
    pad = -k % i.k
    x, y = np.pad(a, ((0, 0), (0, pad))), np.pad(b, ((0, pad), (0, 0)))
    places = [(0, 0), (m - 1, n - 1), *rng.integers(0, (m, n), (6, 2)).tolist()]
    for engine, threads, size in WAYS:
        with small_tiles(size):
            d = wm.matmul(*typed(i, a, b, c), instruction=str(i), target="sm_90a", engine=engine, threads=threads)
        codes = d.view(i.format("D").code_dtype)
        for row, column in places:
            acc = int(c[row, column])
            for at in range(0, k, i.k):
                acc = dot(how, x[row, at : at + i.k].tolist(), y[at : at + i.k, column].tolist(), acc)
            assert codes[row, column] == acc


def test_a_warpgroup_adds_as_mma_does() -> None:
    """Of halves; of fp8 it keeps 13 bits, which `mma` on the same machine does not."""
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((65, 100)).astype(np.float16), rng.standard_normal((100, 30)).astype(np.float16)
    i = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    same(wm.matmul(a, b, instruction=i, target="sm_90a"), wm.matmul(a, b, instruction=F16, target="sm_90"))
    x, y = a.astype(ml_dtypes.float8_e4m3fn), b.astype(ml_dtypes.float8_e4m3fn)
    d = wm.matmul(x, y, instruction=FP8, target="sm_90a")
    assert not (d.view(np.uint32) & 0x3FF).any()
    assert (d != wm.matmul(x, y, target="sm_90a")).any()
