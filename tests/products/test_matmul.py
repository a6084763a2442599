"""Whole matrix products: against explicit loops of `mma` over tiles and k, and what surrounds such a chain."""

from __future__ import annotations

import gc
import importlib
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count, pairwise, product
from typing import Any, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from cases import Case, cases
from generators import random_codes, with_exponents
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import warpmma as wm
from warpmma import sparsity as sp
from warpmma.arithmetic.recipes import recipe
from warpmma.arithmetic.reference import dot
from warpmma.errors import (
    MetadataError,
    MnemonicError,
    OperandError,
    ScaleError,
    TargetError,
    UnsupportedError,
    WarpmmaError,
)
from warpmma.formats import FORMATS, FloatFormat, Format
from warpmma.isa.mma import TARGETS, Instruction, instructions, parse
from warpmma.isa.wgmma import AnyInstruction, parse_any, warpgroup_instructions
from warpmma.products.chain import Chain
from warpmma.products.tiling import default_instruction
from warpmma.scaling import Quantized, block_size, quantize

module = importlib.import_module("warpmma.products.tiling")

Array = npt.NDArray[Any]
Rng = np.random.Generator
Call = Callable[..., Any]
same = partial(np.testing.assert_array_equal, strict=True)  # shapes and dtypes too
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


# The model: a tile at a time, one instruction after the other, what is missing +0.


def mixed(fmt: Format, shape: tuple[int, ...], rng: Rng, rare: float = 0.005) -> Array:
    """Codes of numbers about 1, and here and there any bits; of integers any."""
    bits = random_codes(fmt, shape, rng)
    if not isinstance(fmt, FloatFormat):
        return bits
    near = with_exponents(fmt, rng.integers(-3, 4, shape), rng)
    return np.where(rng.random(shape) < rare, bits, near).astype(fmt.code_dtype)


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


def split(i: AnyInstruction, k: int, split_k: int | Sequence[int]) -> list[tuple[int, int]]:
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


def check(i: AnyInstruction, target: str, expected: Array, *given: Any, **more: Any) -> None:
    """Every engine, number of threads and size of tile gives these codes."""
    fmt = i.format("D")
    for engine, threads, size in WAYS:
        with small_tiles(size):
            d = wm.matmul(*given, instruction=i, target=target, engine=engine, threads=threads, **more)
        assert d.dtype == fmt.dtype
        same(d.view(fmt.code_dtype), expected)


def drawn(i: AnyInstruction, m: int, n: int, k: int, rng: Rng, rare: float = 0.005) -> tuple[Array, Array, Array]:
    """Codes of A, B and C."""
    shapes: Any = (("A", (m, k)), ("B", (k, n)), ("C", (m, n)))
    a, b, c = (mixed(i.format(x), shape, rng, rare) for x, shape in shapes)
    return a, b, c


def typed(i: AnyInstruction, *codes: Array) -> list[Array]:
    return [i.format(x).array(y) for x, y in zip(("A", "B", "C"), codes, strict=False)]  # type: ignore[arg-type]


# Dense products.

DENSE = [case for case in cases() if not case.instruction.block_scale]
SIZES = [(17, 9, 1), (7, 33, 3), (33, 7, 2)]  # m, n and instructions along k, of which the last is not whole


@pytest.mark.parametrize("case", DENSE, ids=str)
def test_matmul_is_a_loop_over_tiles(case: Case) -> None:
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


def some_scales(i: Instruction, m: int, n: int, k: int, rng: Rng) -> dict[str, Any]:
    low, high = (120, 135) if i.stype == "ue8m0" else (0, 0x7F)
    blocks = -(-k // block_size(i))
    return {
        x: rng.integers(low, high, shape, np.uint8) for x, shape in (("scale_a", (m, blocks)), ("scale_b", (blocks, n)))
    }


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

WARPGROUP = list({(i.d_type, i.a_type, i.b_type, i.satfinite): i for i in warpgroup_instructions()}.values())


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


# Split k, promotion.

CUTS: list[tuple[int | list[int], int | None]] = [
    (1, None), (2, None), (3, None), (5, None), (100, None), (1, 16), (1, 32), (1, 48), (1, 1600), (2, 32), (3, 32),
    (4, 16), (100, 16), ([64, 23], None), ([16, 16, 55], None), ([80, 7], 32), ([87], None),
    ([32, 16, 39], 32), ([16, 71], 64),
]  # fmt: skip


@pytest.mark.parametrize(("split_k", "promote"), CUTS, ids=str)
def test_partial_sums(split_k: int | list[int], promote: int | None) -> None:
    i, rng = parse(F16), np.random.default_rng(9)
    a, b, c = drawn(i, 18, 9, 87, rng, rare=0.001)
    expected = in_parts(i, "sm_90", a, b, c, split_k, promote)
    check(i, "sm_90", expected, *typed(i, a, b, c), split_k=split_k, promote_every=promote)
    if isinstance(split_k, list):
        more: dict[str, Any] = {"split_k": np.array(split_k, np.uint8).tolist(), "promote_every": promote}
        same(wm.matmul(*typed(i, a, b, c), target="sm_90", **more).view(np.uint32), expected)
        more["split_k"] = tuple(np.array(split_k, np.uint8))
        same(wm.matmul(*typed(i, a, b, c), target="sm_90", **more).view(np.uint32), expected)


def test_narrow_lengths_do_not_overflow() -> None:
    a = np.ones((1, 480), np.float16)
    lengths = list(np.array([240, 240], np.uint8))
    assert wm.matmul(a, a.T, target="sm_80", split_k=lengths).item() == 480
    more: dict[str, Any] = {"split_k": np.int8(2), "promote_every": np.uint8(240)}
    assert wm.matmul(a, a.T, target="sm_80", **more).item() == 480


def test_every_cut_is_seen() -> None:
    """Each way to cut one product has another result, so none is taken for another."""
    rng = np.random.default_rng(10)
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((40, 87), (87, 40), (40, 40)))
    call: Call = partial(wm.matmul, a.astype(np.float16), b.astype(np.float16), c, target="sm_90")
    ways = [(1, None), (2, None), (3, None), (1, 16), (1, 32), (1, 96), (2, 16), ([16, 71], None), ([32, 55], None)]
    found = {call(split_k=cast(Any, x), promote_every=y).tobytes() for x, y in ways}
    assert len(found) == len(ways)


def test_the_order_of_additions() -> None:
    """Slices to C one after the other; partial sums of a slice together first."""
    big = 2.0**24
    a, b = np.ones((1, 64), np.float16), np.zeros((64, 1), np.float16)
    b[[0, 16, 32, 48], 0] = 1, 1, 1, 1
    c = np.full((1, 1), big, np.float32)
    for engine in ENGINES:
        call: Call = partial(wm.matmul, a, b, c, target="sm_90", engine=engine)
        assert call(split_k=4).item() == big  # four times a tie to even
        assert call(split_k=2).item() == big + 4
        assert call(promote_every=16).item() == big + 4
        assert call(split_k=2, promote_every=16).item() == big + 4
        assert call(split_k=[16, 48]).item() == big + 4 and call(split_k=[48, 16]).item() == big + 4
        assert call(split_k=[16, 16, 32]).item() == big + 2


def test_the_order_of_additions_of_what_cancels() -> None:
    """2^25, -2^25 and 1 to a C of 1."""
    a, b, c = np.ones((1, 64), np.float16), np.zeros((64, 1), np.float16), np.ones((1, 1), np.float32)
    a[0, [0, 16]] = 8192
    b[[0, 16, 32], 0] = 4096, -4096, 1
    for engine in ENGINES:
        call: Call = partial(wm.matmul, a, b, c, target="sm_90", engine=engine)
        assert call(split_k=4).item() == 1  # C is lost beside 2^25
        assert call(promote_every=16).item() == 2


def test_infinities_that_meet_in_a_sum() -> None:
    a, b = np.ones((1, 32), np.float16), np.zeros((32, 1), np.float16)
    b[0], b[16] = np.inf, -np.inf
    for engine, more in product(ENGINES, ({"split_k": 2}, {"promote_every": 16})):
        d = wm.matmul(a, b, target="sm_90", engine=engine, threads=2, **more)  # type: ignore[call-overload]
        assert d.view(np.uint32).item() == 0x7FFFFFFF
    payload = np.array([[0xFFC12345]], np.uint32).view(np.float32)
    assert wm.matmul(a[:, :16], b[:16], payload, target="sm_90", promote_every=16).view(np.uint32).item() == 0x7FFFFFFF


@pytest.mark.parametrize("mnemonic", [FP8, MX, NVF4, SP])
def test_partial_sums_of_other_kinds(mnemonic: str) -> None:
    """Chains of parts, added by hand."""
    i, rng = parse_any(mnemonic), np.random.default_rng(11)
    target = {FP8: "sm_90a", SP: "sm_80"}.get(mnemonic, "sm_120a")
    k = 5 * i.k + i.k // 2
    a, b, c = drawn(i, 20, 12, k, rng, rare=0)
    if mnemonic == SP:
        a = a * (np.arange(k) % 2).astype(a.dtype)
    each = i.k // i.scales_per_row if isinstance(i, Instruction) and i.block_scale else 0
    scales = some_scales(i, 20, 12, k, rng) if isinstance(i, Instruction) and each else {}

    def part(start: int, stop: int) -> Array:
        own = {"scale_a": scales["scale_a"][:, start // each : -(-stop // each)],
               "scale_b": scales["scale_b"][start // each : -(-stop // each)]} if each else {}  # fmt: skip
        d: Array = wm.matmul(a[:, start:stop], b[start:stop], instruction=i, target=target, **own)
        return d.view(np.uint32)

    for engine in ENGINES:
        call: Call = partial(wm.matmul, *typed(i, a, b, c), instruction=i, target=target, engine=engine, **scales)
        halves = added(added(c, part(0, 3 * i.k)), part(3 * i.k, k))
        same(call(split_k=2).view(np.uint32), halves)
        promoted = added(added(part(0, 2 * i.k), part(2 * i.k, 4 * i.k)), part(4 * i.k, k))
        same(call(promote_every=2 * i.k).view(np.uint32), added(c, promoted))
        first = added(part(0, 2 * i.k), part(2 * i.k, 3 * i.k))
        last = added(part(3 * i.k, 5 * i.k), part(5 * i.k, k))
        same(call(split_k=2, promote_every=2 * i.k).view(np.uint32), added(added(c, first), last))


# Batches and empty products.


@each_engine
def test_leading_dimensions_broadcast(engine: Any) -> None:
    i, rng = parse(F16), np.random.default_rng(12)
    for of_a, of_b, of_c in [
        ((), (), ()),
        ((3,), (), ()),
        ((), (2,), (1,)),
        ((3, 1), (4,), (4,)),
        ((1,), (1, 1), (1,)),
        ((2, 1, 3), (2, 1), ()),
    ]:
        batch = np.broadcast_shapes(of_a, of_b, of_c)
        a, b, c = (mixed(i.format("C" if x == 2 else "A"), shape, rng) for x, shape in
                   enumerate(((*of_a, 17, 19), (*of_b, 19, 9), (*of_c, 17, 9))))  # fmt: skip
        d = wm.matmul(*typed(i, a, b, c), target="sm_80", engine=engine, threads=2)
        assert d.shape == (*batch, 17, 9)
        whole = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, c)]
        for one in np.ndindex(batch):
            same(
                d[one].view(np.uint32),
                wm.matmul(*(x[one] for x in whole), instruction=i, target="sm_80").view(np.uint32),
            )


@each_engine
def test_batches_of_scales_and_indices(engine: Any) -> None:
    rng = np.random.default_rng(13)
    call: Call = partial(wm.matmul, target="sm_120a", engine=engine)
    i = parse(MX)
    a, b, _ = drawn(i, 5, 6, 40, rng)
    scale_a, scale_b = rng.integers(120, 130, (3, 1, 5, 2), np.uint8), rng.integers(120, 130, (2, 2, 6), np.uint8)
    d = call(a, b, instruction=i, scale_a=scale_a, scale_b=scale_b)
    assert d.shape == (3, 2, 5, 6)
    for x, y in np.ndindex(3, 2):
        same(d[x, y], call(a, b, instruction=i, scale_a=scale_a[x, 0], scale_b=scale_b[y]))
    i = parse(SP)
    stored, b, _ = drawn(i, 5, 6, 40, rng, rare=0)
    nibbles = rng.choice(np.array(sorted(sp.legal_codes(i))), (2, 5, 10))
    indices = np.stack([nibbles & 3, nibbles >> 2], axis=-1)
    d = call(stored[:, :20], b, instruction=i, indices=indices)
    assert d.shape == (2, 5, 6) and (d[0] != d[1]).any()
    for x in range(2):
        same(d[x], call(stored[:, :20], b, instruction=i, indices=indices[x]))


@each_engine
@pytest.mark.parametrize("shape", [(), (9,), (1,), (1, 9), (17, 1), (17, 9), (2, 1, 9), (1, 17, 9)])
def test_c_broadcasts(shape: tuple[int, ...], engine: Any) -> None:
    rng = np.random.default_rng(14)
    a, b = rng.standard_normal((2, 17, 20)).astype(np.float16), rng.standard_normal((20, 9)).astype(np.float16)
    c = np.asarray(rng.standard_normal(shape).astype(np.float32))
    more: dict[str, Any]
    for more in ({}, {"split_k": 2}, {"promote_every": 16, "epilogue": "f16"}):
        call: Call = partial(wm.matmul, a, b, target="sm_90", engine=engine, **more)
        same(call(c), call(np.broadcast_to(c, (2, 17, 9)).copy()))
    assert (call(c) != call()).any()


@each_engine
@pytest.mark.parametrize("mnemonic", [F16, F64, S8, B1, SP, MX, FP8])
def test_nothing_gives_nothing(mnemonic: str, engine: Any) -> None:
    """And k = 0 gives C, or zeros, to every way of summing."""
    i = parse_any(mnemonic)
    target = {MX: "sm_120a", FP8: "sm_90a"}.get(mnemonic, "sm_90")
    for batch, m, n, k in [((), 0, 5, 8), ((), 5, 0, 8), ((), 0, 0, 0), ((0,), 5, 6, 8), ((2, 0), 5, 6, 8),
                           ((3,), 0, 6, 8), ((0,), 0, 6, 0), ((), 5, 6, 0), ((2,), 5, 6, 0)]:  # fmt: skip
        a, b = np.zeros((*batch, m, k), i.format("A").dtype), np.zeros((k, n), i.format("B").dtype)
        c = np.full((*batch, m, n), 3, i.format("C").dtype)
        blocks = -(-k // 32)
        scales: dict[str, Any] = (
            {"scale_a": np.zeros((m, blocks), "u1"), "scale_b": np.zeros((blocks, n), "u1")} if mnemonic == MX else {}
        )
        ways: list[dict[str, Any]] = [{}, {"threads": 2}]
        if i.d_type == "f32":
            ways += [{"split_k": 3}, {"promote_every": i.k}, {"split_k": 2, "promote_every": i.k}, {"epilogue": "f32"}]
        for more in ways:
            call: Call = partial(wm.matmul, instruction=i, target=target, engine=engine, **scales, **more)
            out = np.empty_like(c)
            assert call(a, b, c, out=out) is out
            same(out, call(a, b, c))
            assert out.shape == (*batch, m, n) and call(a, b).shape == out.shape
            if k == 0:
                same(out, c)
                same(call(a, b), np.zeros_like(c))


# The epilogue.

EPILOGUES = ["f32", "tf32", "f16", "bf16", "e5m2", "e4m3", "e3m2", "e2m3", "e2m1"]


def rounded(fmt: FloatFormat) -> tuple[Array, Array]:
    """Values of f32, and the codes that they round to: numbers of a format, ties and what is beside these."""
    step = 1 << fmt.padding
    codes = np.arange(0, fmt.max_code, max(step, fmt.max_code >> 16 & -step))  # all, but of f32 and tf32
    low, high = (fmt.decode(x.astype(fmt.code_dtype)) for x in (codes, codes + step))
    tie = (low + high) / 2
    even = np.where(codes >> fmt.padding & 1, codes + step, codes)
    top, below_top = fmt.decode([fmt.max_code, fmt.max_code - step])
    beyond = cast(int, fmt.inf_code) if fmt.overflow == "infinity" else fmt.max_code
    ends = {top: fmt.max_code, np.inf: beyond}
    if fmt.name != "f32":  # whose ties are no numbers of f32
        edge = np.float32(top + (top - below_top) / 2)  # the largest is odd, so that this goes on
        ends |= {edge: beyond, np.nextafter(edge, np.float32(0)): fmt.max_code, 3.4028235e38: beyond}
        less, more = (np.nextafter(tie.astype(np.float32), np.float32(x)) for x in (0, np.inf))
        values, found = np.concatenate([low, tie, less, more]), np.concatenate([codes, even, codes, codes + step])
        assert (tie.astype(np.float32) == tie).all()
    else:
        values, found = low, codes
    values, found = np.append(values, list(ends)).astype(np.float32), np.append(found, list(ends.values()))
    nan = fmt.max_code if fmt.nan_code is None else fmt.nan_code
    nans = np.array([0x7FC00000, 0xFFC12345, 0x7F800001], np.uint32).view(np.float32)
    return np.concatenate([values, -values, nans]), np.concatenate([found, found | fmt.sign_bit, [nan] * 3])


@each_engine
@pytest.mark.parametrize("name", EPILOGUES)
def test_the_epilogue_rounds_once(name: str, engine: Any) -> None:
    """C goes through: k is 0. Numbers, ties and their neighbours; both signs; what is too large; NaN."""
    fmt = FORMATS[name]
    assert isinstance(fmt, FloatFormat)
    values, codes = rounded(fmt)
    a, b = np.zeros((1, 0), np.float16), np.zeros((0, len(values)), np.float16)
    d = wm.matmul(a, b, values, target="sm_80", epilogue=name, engine=engine)
    assert d.dtype == fmt.dtype
    same(fmt.codes(d), codes.astype(fmt.code_dtype)[None])


@each_engine
@pytest.mark.parametrize("name", EPILOGUES)
def test_the_epilogue_of_a_chain(name: str, engine: Any) -> None:
    rng, fmt = np.random.default_rng(16), FORMATS[name]
    a, b = rng.standard_normal((33, 40)).astype(np.float16), rng.standard_normal((40, 30)).astype(np.float16)
    for i in (parse(F16), parse(HALF)):
        call: Call = partial(wm.matmul, a, b, instruction=i, target="sm_90", engine=engine)
        d = call(epilogue=name)
        assert d.dtype == fmt.dtype
        same(d, fmt.array(cast(FloatFormat, fmt).encode(call().astype(np.float64))))
        out = np.empty((33, 30), fmt.dtype)
        assert call(epilogue=name, out=out) is out
        same(fmt.codes(out), fmt.codes(d))
        of_codes = np.empty((33, 30), fmt.code_dtype)
        same(call(epilogue=name, out=of_codes), fmt.codes(d))


# The default instruction.


def table() -> dict[tuple[str, str, str, str | None, bool], Instruction]:
    """The instruction that ought to be the default of each target, pair of types, C and sparsity."""
    best: dict[tuple[str, str, str, str | None, bool], Instruction] = {}
    order = [None, "sp", "sp::ordered_metadata"]
    for i in instructions():
        if (
            i.block_scale
            or i.satfinite
            or i.rounding
            or i.bit_op
            or i.c_type != i.d_type
            or i.a_layout + i.b_layout != "rowcol"
        ):
            continue
        for t in i.targets:
            for c in (i.c_type, None) if i.c_type != "f16" else (i.c_type,):
                key = (t, i.a_type, i.b_type, c, i.sparse)
                old = best.get(key)
                rank = (i.k, -order.index(i.sparsity), not i.kind)
                if old is None or rank > (old.k, -order.index(old.sparsity), not old.kind):
                    best[key] = i
    return best


DEFAULTS = table()


@pytest.mark.parametrize("target", TARGETS)
def test_the_default_instruction_has_the_largest_k(target: str) -> None:
    mine = {key: i for key, i in DEFAULTS.items() if key[0] == target}
    assert mine
    for (_, a, b, c, sparse), i in mine.items():
        assert default_instruction(a, b, c, target, sparse=sparse) == i
        x, y = np.zeros((1, 16), FORMATS[a].dtype), np.zeros((16 * (1 + sparse), 1), FORMATS[b].dtype)
        z = None if c is None else np.zeros((1, 1), FORMATS[c].dtype)
        indices = np.tile([0, 1], (1, 2 * 16 // sp.pattern(i).width, 1)) if sparse else None
        if "u8" in (a, b):  # uint8 may hold raw codes of any narrow type
            with pytest.raises(OperandError, match="which type is meant"):
                wm.matmul(x, y, z, target=target, indices=indices)
            continue
        d = wm.matmul(x, y, z, target=target, indices=indices)
        assert d.dtype == i.format("D").dtype
    types = {key[1:] for key in DEFAULTS}
    for a, b, c, sparse in types - {key[1:] for key in mine}:
        with pytest.raises(MnemonicError, match=exactly(f"{target} has no {'sparse ' * sparse}mma for {a} x {b}~")):
            default_instruction(a, b, c, target, sparse=sparse)


@pytest.mark.parametrize(
    ("a", "b", "c", "target", "expected"),
    [
        ("f16", "f16", None, "sm_70", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"),
        ("f16", "f16", None, "sm_75", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"),
        ("f16", "f16", "f16", "sm_80", HALF), ("f16", "f16", "f32", "sm_121", F16),
        ("tf32", "tf32", None, "sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("e4m3", "e5m2", None, "sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"),
        ("e4m3", "e5m2", "f16", "sm_120a", "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16"),
        ("e2m1", "e3m2", None, "sm_120f", "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32"),
        ("f64", "f64", None, "sm_80", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
        ("f64", "f64", "f64", "sm_90", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"),
        ("s8", "u8", None, "sm_75", "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32"),
        ("u4", "s4", "s32", "sm_100", "mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32"),
    ],
)  # fmt: skip
def test_some_defaults(a: str, b: str, c: str | None, target: str, expected: str) -> None:
    assert str(default_instruction(a, b, c, target)) == expected


def test_c_chooses_the_accumulator() -> None:
    a = np.full((1, 16), 64, np.float16)
    for c, d in ((None, np.inf), (zeros(1, 1, **F4), 2**16), (zeros(1, 1), np.inf)):
        result = wm.matmul(a, a.T, c, target="sm_90")
        assert result.dtype == (np.float32 if c is None else c.dtype)
        assert result.item() == (2**16 if result.dtype == np.float32 else d)


# Out.


@each_engine
def test_out_is_written_and_returned(engine: Any) -> None:
    rng = np.random.default_rng(17)
    a, b = rng.standard_normal((3, 20, 40)).astype(np.float16), rng.standard_normal((40, 9)).astype(np.float16)
    call: Call = partial(wm.matmul, a, b, target="sm_90", engine=engine)
    d = call()
    for dtype in (np.float32, np.uint32):
        buffer = np.full((5, 20, 9), 7, dtype)
        view = buffer[1:4]
        assert call(out=view) is view
        same(view.view(np.float32), d)
        assert (buffer[[0, 4]] == 7).all()
    flat = d[0]
    for other in (np.zeros((20, 9), np.float32).view(kind) for kind in (np.matrix, np.recarray)):
        assert wm.matmul(a[0], b, target="sm_90", engine=engine, out=other) is other
        same(np.asarray(other), flat)
    memory = bytearray(4 * 20 * 9 + 1)
    unaligned = np.frombuffer(memory, np.float32, 20 * 9, offset=1).reshape(20, 9)
    same(wm.matmul(a[0], b, target="sm_90", engine=engine, out=unaligned), flat)
    integers = rng.integers(-9, 9, (2, 5, 6), np.int8)
    for kind in ("i4", "u4"):
        out = np.empty((5, 5), kind)
        assert wm.matmul(integers[0], integers[1].T, target="sm_90", out=out, engine=engine) is out
        same(out.view(np.int32), integers[0].astype(np.int32) @ integers[1].T.astype(np.int32))


@each_engine
def test_out_may_be_an_operand(engine: Any) -> None:
    """Whatever it overlaps, as if it did not."""
    rng = np.random.default_rng(18)
    with small_tiles(3):
        a, b, c = (rng.standard_normal((12, 12)).astype(np.float32) for _ in range(3))
        call: Call = partial(wm.matmul, target="sm_90", engine=engine)
        d = call(a, b, c)
        for which in range(3):
            given = [a.copy(), b.copy(), c.copy()]
            assert call(*given, out=given[which]) is given[which]
            same(given[which], d)
            flipped = given[which] = [a, b, c][which][::-1, ::-1].copy()
            given[which] = flipped[::-1, ::-1]
            same(call(*given, out=flipped), d)
        bias = c.copy()
        expected = call(a, b, c[0])
        same(call(a, b, bias[0], out=bias), expected)
        buffer = np.concatenate([c, c])
        same(call(a, b, buffer[:12], out=buffer[4:16]), d)


def test_out_is_left_alone_when_something_is_wrong() -> None:
    out, a = np.full((3, 3), 7, np.float32), np.ones((3, 3), np.float16)
    with pytest.raises(OperandError):
        wm.matmul(a, a, np.ones((2, 3), np.float32), target="sm_90", out=out)
    with pytest.raises(OperandError):
        wm.matmul(a, a, target="sm_90", out=out, epilogue="bf16")
    assert (out == 7).all()


# Progress, threads, interrupts.


@each_engine
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_progress(threads: int | None, engine: Any) -> None:
    a = np.ones((2, 10, 16), np.float16)
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        told.append((done, total))

    with small_tiles(4):
        wm.matmul(a, a[0].T, target="sm_90", engine=engine, threads=threads, progress=progress)
    assert told == [(x + 1, 18) for x in range(18)]


class Falsy:
    """A callback that is false as a value, as a list of messages with a `__call__` is while it is empty."""

    told = 0

    def __len__(self) -> int:
        return 0

    def __call__(self, done: int, total: int) -> None:
        self.told += 1


def test_a_falsy_callback_is_one() -> None:
    a, callback = np.ones((2, 16), np.float16), Falsy()
    for threads in (1, 2):
        wm.matmul(a, a.T, target="sm_90", threads=threads, progress=callback)
    assert callback.told == 2


@contextmanager
def no_threads_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@contextmanager
def counted_tiles(then: Callable[[int], object]) -> Iterator[list[int]]:
    """Small tiles, of which the first five are computed: `then` is called with a tile's number when it begins, and
    later ones wait until those that have not begun are dropped. Yield the numbers of those that began.
    """
    began: list[int] = []
    numbers, dropped = count(1), threading.Event()
    advance, shutdown = Chain.advance, ThreadPoolExecutor.shutdown

    def counted(*args: Any) -> Any:
        began.append(number := next(numbers))
        then(number)
        assert number <= 5 or dropped.wait(60)
        return advance(*args)

    def drop(pool: Any, wait: bool = True, *, cancel_futures: bool = False) -> None:
        shutdown(pool, wait=False, cancel_futures=cancel_futures)
        dropped.set()
        shutdown(pool, wait=wait)

    with no_threads_left(), small_tiles(4), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chain, "advance", counted)
        patch.setattr(ThreadPoolExecutor, "shutdown", drop)
        yield began


ROWS = np.ones((80, 16), np.float16)  # 400 tiles


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_in_progress_stops(threads: int) -> None:
    def progress(done: int, total: int) -> None:
        if done == 3:
            raise LookupError("enough")

    with counted_tiles(lambda number: None) as began:
        with pytest.raises(LookupError, match="enough"):
            wm.matmul(ROWS, ROWS.T, target="sm_90", threads=threads, progress=progress)
        assert 3 <= len(began) <= 5 + threads


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_tile_stops(threads: int) -> None:
    def fail(number: int) -> None:
        if number == 5:
            raise MemoryError("no room")

    with counted_tiles(fail) as began:
        with pytest.raises(MemoryError, match="no room"):
            wm.matmul(ROWS, ROWS.T, target="sm_90", threads=threads)
        assert 5 <= len(began) <= 5 + threads


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no way to send a signal to a thread")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_stops(threads: int) -> None:
    main = threading.get_ident()

    def interrupt(number: int) -> None:
        if number == 5:
            signal.pthread_kill(main, signal.SIGINT)

    gc.disable()  # Python drops an interrupt that arrives during a callback of its collector
    try:
        with counted_tiles(interrupt) as began:
            with pytest.raises(KeyboardInterrupt):
                wm.matmul(ROWS, ROWS.T, target="sm_90", threads=threads)
            assert 5 <= len(began) <= 5 + threads
    finally:
        gc.enable()


# Nothing else is seen in the result.


def field(x: Array) -> Array:
    records = np.zeros(x.shape, [("x", x.dtype), ("y", "u1")])
    records["x"] = x
    return records["x"]


VIEWS: dict[str, Callable[[Array], Array]] = {
    "Fortran": lambda x: np.asfortranarray(x),
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=-1), 3, axis=0)[::3, ::2],
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder("S")) if x.dtype.kind in "fiu" else x,
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda x: np.broadcast_to(x, x.shape),
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), "u1")[1:].view(x.dtype).reshape(x.shape),
    "field": field,
}
KINDS = [(F16, "sm_80"), (F64, "sm_90"), (S8, "sm_90"), (B1, "sm_80"), (SP, "sm_90"), (MX, "sm_120a"), (FP8, "sm_90a")]


def operands_of(mnemonic: str, m: int, n: int, k: int, rng: Rng) -> tuple[list[Array], dict[str, Any]]:
    """A, B, C as arrays of their types, and scales."""
    i = parse_any(mnemonic)
    a, b, c = drawn(i, m, n, k, rng)
    if i.sparse:
        a = a * (np.arange(k) % 2).astype(a.dtype)
    more = some_scales(i, m, n, k, rng) if isinstance(i, Instruction) and i.block_scale else {}
    return typed(i, a, b, c), more


@each_engine
@pytest.mark.parametrize(("mnemonic", "target"), KINDS)
def test_how_operands_lie_in_memory_does_not_matter(mnemonic: str, target: str, engine: Any) -> None:
    given, more = operands_of(mnemonic, 17, 13, 40, np.random.default_rng(19))
    codes = parse_any(mnemonic).format("D").code_dtype
    call: Call = partial(wm.matmul, instruction=mnemonic, target=target, engine=engine, threads=2)
    d = call(*given, **more).view(codes)
    for view in VIEWS.values():
        copies = [x.copy() for x in given]
        viewed = [view(x) for x in copies]
        same(call(*viewed, **{x: view(y) for x, y in more.items()}).view(codes), d)
        for x, y in zip(copies, given, strict=True):
            same(x.view("u1"), y.view("u1"))  # nothing was written


PLACES = st.integers(0, 40)


@given(
    seed=st.integers(0, 2**32),
    size=st.integers(1, 40),
    threads=st.integers(1, 4),
    kind=st.sampled_from(KINDS),
    m=PLACES,
    n=PLACES,
    k=PLACES,
)
@settings(deadline=None, max_examples=60)
def test_rows_and_columns_are_on_their_own(
    seed: int, size: int, threads: int, kind: tuple[str, str], m: int, n: int, k: int
) -> None:  # fmt: skip
    """Whatever tile, batch, engine or thread an element of D falls to, and wherever its row and column stand."""
    mnemonic, target = kind
    rng, k = np.random.default_rng(seed), 4 * k if mnemonic == SP else k
    given, more = operands_of(mnemonic, m, n, k, rng)
    codes = parse_any(mnemonic).format("D").code_dtype
    call: Call = partial(wm.matmul, instruction=mnemonic, target=target)
    d = call(*given, **more).view(codes)
    rows, columns = rng.permutation(m), rng.permutation(n)
    a, b, c = given
    moved = {x: y[rows] if x == "scale_a" else y[:, columns] for x, y in more.items()}
    with small_tiles(size):
        p = call(a[rows], b[:, columns], c[rows][:, columns], engine="numpy", threads=threads, **moved)
    same(p.view(codes), d[rows][:, columns])
    batch = call(np.stack([a, a[::-1]]), b, np.stack([c, c[::-1]]),
                 **{x: np.stack([y, y[::-1]]) if x == "scale_a" else y for x, y in more.items()})  # fmt: skip
    same(batch.view(codes), np.stack([d, d[::-1]]))
    few = {x: y[m // 3 :] if x == "scale_a" else y[:, : n // 2] for x, y in more.items()}
    same(call(a[m // 3 :], b[:, : n // 2], c[m // 3 :, : n // 2], **few).view(codes), d[m // 3 :, : n // 2])


# Errors: ~ stands for the rest of a message.


def exactly(message: str) -> str:
    return f"^{re.escape(message)}$".replace(r"\~", ".*")


def zeros(*shape: int, dtype: Any = "f2") -> Array:
    return np.zeros(shape, dtype)


def full(shape: tuple[int, ...], value: Any, dtype: Any = "f2") -> Array:
    return np.full(shape, value, dtype)


def read_only(x: Array) -> Array:
    x.flags.writeable = False
    return x


FLOATS = "'f32', 'tf32', 'f16', 'bf16', 'e5m2', 'e4m3', 'e3m2', 'e2m3' or"
F4 = {"dtype": "f4"}
FP4 = {"a": zeros(3, 40, dtype="u1"), "b": zeros(40, 5, dtype="u1")}
OF_A, OF_B = zeros(3, 2, dtype="u1"), zeros(2, 5, dtype="u1")
SCALED_ARGUMENTS = {**FP4, "instruction": MX, "target": "sm_120a", "scale_a": OF_A, "scale_b": OF_B}
S8_ARGUMENTS = {"instruction": S8, "a": zeros(3, 40, dtype="i1"), "b": zeros(40, 5, dtype="i1")}
F64_ARGUMENTS = {"instruction": F64, "a": zeros(3, 40, dtype="f8"), "b": zeros(40, 5, dtype="f8")}
BROKEN = sum(np.eye(20, 40, x, np.float16) for x in range(3))
SPARSE_ARGUMENTS = {"instruction": SP}
STORED = {**SPARSE_ARGUMENTS, "a": zeros(3, 20), "indices": np.tile([0, 1], (3, 10, 1))}
TENSOR = {"a": Quantized(elements=FP4["a"], scales=zeros(3, 3, dtype="u1"), tensor_scale=np.float32(2)), "b": FP4["b"],
          "instruction": NVF4, "target": "sm_120a", "scale_b": zeros(3, 5, dtype="u1")}  # fmt: skip


def with_tensor_scale(x: Any) -> dict[str, Any]:
    return {**TENSOR, "a": Quantized(elements=FP4["a"], scales=zeros(3, 3, dtype="u1"), tensor_scale=x)}


@pytest.mark.parametrize(
    ("error", "changes", "message"),
    [
        (TargetError, {"target": "sm_91"}, "unknown target 'sm_91'; did you mean 'sm_90'? Known are sm_7~"),
        (TargetError, {"target": None, "instruction": F16}, "a target is a string such as 'sm_90'; got None"),
        (TargetError, {"instruction": FP8}, f"{FP8} is not legal on sm_90; legal on sm_90a"),
        (MnemonicError, {"instruction": "mma.sync"}, "mma.sync~"),
        (MnemonicError, {"instruction": 5}, "a mnemonic is a string, such as 'mma.sync...'; got int"),
        # Types
        (OperandError, {"a": zeros(3, 40, dtype="u2")},
         "A is uint16: which type is meant? Name the instruction, or give "
         "one of float16 (f16), bfloat16 (bf16), float32 (tf32), float8_e4m3fn (e4m3), ~"),
        (OperandError, {"b": zeros(40, 5, dtype="?")}, "B is bool: which type is meant? Name the instruction, or ~"),
        (OperandError, {"c": zeros(3, 5, dtype="u4")},
         "C is uint32: which type is meant? Name the instruction, or give "
         "one of float32 (f32), float16 (f16), int32 (s32), float64 (f64)"),
        (OperandError, {"a": [[1], [2, 3]]}, "A: no array: ~"), (OperandError, {"c": [[1], [2, 3]]}, "C: no array: ~"),
        (OperandError, {"a": None}, "A is object: which type is meant? ~"),
        (MnemonicError, {"b": zeros(40, 5, **F4)},
         "sm_90 has no mma for f16 x tf32 that is chosen by default: name the "
         "instruction. It has b1 x b1, bf16 x bf16, ~, f16 x f16, ~"),
        (MnemonicError, {"c": zeros(3, 5, dtype="i4")},
         "sm_90 has no mma for f16 x f16 with C of s32 that is chosen ~"),
        (MnemonicError, {"a": zeros(3, 20, dtype="f8"), "b": zeros(40, 5, dtype="f8"), "indices": [0]},
         "sm_90 has no sparse mma for f64 x f64 that is chosen by default: name the instruction. It has ~"),
        (OperandError, {"instruction": F16, "a": zeros(3, 40, dtype="f8")}, f"{F16}: A: f16: got dtype float64; ~"),
        (OperandError, {"instruction": F16, "c": zeros(3, 5, dtype="f2")}, f"{F16}: C: f32: got dtype float16; ~"),
        (OperandError, {"instruction": B1, "a": full((3, 40), 2, "u1")}, f"{B1}: A: b1: 2 at [0, 0] does not fit; ~"),
        # Shapes
        (OperandError, {"b": zeros(41, 5)},
         f"{F16}: A is (3, 40) and B is (41, 5); expected [..., m, k] and [..., k, n]"),
        (OperandError, {"a": zeros(40)}, f"{F16}: A is (40,) and B is (40, 5); expected [..., m, k] and [..., k, n]"),
        (OperandError, {"b": np.float16(0)}, f"{F16}: A is (3, 40) and B is (); expected [..., m, k] and [..., k, n]"),
        (OperandError, {"a": zeros(2, 3, 40), "b": zeros(3, 40, 5)},
         f"{F16}: batches do not broadcast: A (2, 3, 40), B (3, 40, 5)"),
        (OperandError, {"c": zeros(3, 4, **F4)}, f"{F16}: C is (3, 4); expected (3, 5), or what broadcasts to it"),
        (OperandError, {"c": zeros(2, 3, 5, **F4)},
         f"{F16}: C is (2, 3, 5); expected (3, 5), or what broadcasts to it"),
        # Along k
        *((OperandError, {"split_k": x}, f"split_k is {x!r}; expected a positive number of slices, or their lengths")
          for x in (0, -1, 2.0, True, None, "2", [], [0, 40], [20.0, 20], np.array([40]), [[40]])),
        (OperandError, {"split_k": [16, 16]},
         f"{F16}: slices of k are (16, 16); expected 40 together, multiples of 16 ~"),
        (OperandError, {"split_k": (8, 32)},
         f"{F16}: slices of k are (8, 32); expected 40 together, multiples of 16 but ~"),
        *((OperandError, {"promote_every": x}, f"{F16}: promote_every is {x!r}; expected a multiple of 16")
          for x in (0, -16, 8, 24, 16.0, "16", True, [16])),
        (OperandError, {"instruction": HALF, "split_k": 2},
         f"{HALF}: partial sums are added in f32; expected a D of f32 for split_k and promote_every"),
        (OperandError, {"instruction": HALF, "promote_every": 16},
         f"{HALF}: partial sums are added in f32; expected ~"),
        (OperandError, {"instruction": QUAD, "target": "sm_70"},
         f"{QUAD}: D is f32 and cannot be the next instruction's C; "
         "expected one instruction, k from 1 to 4 and no partial sums"),
        (OperandError, {"instruction": QUAD, "target": "sm_70", "a": zeros(3, 0), "b": zeros(0, 5)},
         f"{QUAD}: D is f32 ~"),
        (OperandError, {"instruction": QUAD, "target": "sm_70", "a": zeros(3, 4), "b": zeros(4, 5), "promote_every": 4},
         f"{QUAD}: D is f32 ~"),
        # Epilogue
        *((OperandError, {"epilogue": x}, f"epilogue is {x!r}; expected {FLOATS} ~")
          for x in ("f64", "s8", "ue8m0", "float16", "", 16, ["f16"])),
        (OperandError, {**S8_ARGUMENTS, "epilogue": "f16"},
         f"{S8}: D is s32, which no epilogue rounds; expected f32 or f16"),
        (OperandError, {**F64_ARGUMENTS, "epilogue": "f16"},
         f"{F64}: D is f64, which no epilogue rounds; expected f32 or f16"),
        # Sparse
        (OperandError, {"instruction": F16, "indices": [0]}, f"{F16} is dense: it takes no indices"),
        (OperandError, {"indices": [0]},
         f"{SP}: A is (3, 40) and B is (40, 5); expected [..., m, k/2] and [..., k, n]"),
        (OperandError, {**SPARSE_ARGUMENTS, "a": zeros(3, 42), "b": zeros(42, 5)},
         f"{SP}: k is 42; expected a multiple of 4, the group of the sparsity pattern"),
        (OperandError, {**STORED, "a": zeros(3, 21), "b": zeros(42, 5)}, f"{SP}: k is 42; expected a multiple of 4, ~"),
        (MetadataError, {**SPARSE_ARGUMENTS, "a": BROKEN},
         f"{SP}: A breaks the 2:4 pattern at row 0, group 0 (columns 0 to 3): [1.0, 1.0, 1.0, 0.0]; "
         "expected at most 2 nonzero elements (see prune)"),
        (OperandError, {**STORED, "indices": zeros(3, 9, 2, dtype=int)},
         f"{SP}: indices are int64 (3, 9, 2); expected int [..., 3, 10, 2]"),
        (OperandError, {**STORED, "indices": zeros(3, 10, 2)}, f"{SP}: indices are float16 (3, 10, 2); expected int ~"),
        (OperandError, {**STORED, "indices": [[1], [2, 3]]}, f"{SP}: indices: no array: ~"),
        (OperandError, {**STORED, "indices": zeros(2, 3, 10, 2, dtype=int) + np.array([0, 1]), "b": zeros(3, 40, 5)},
         f"{SP}: batches do not broadcast: A (3, 20), B (3, 40, 5), indices (2, 3, 20)"),
        (MetadataError, {**STORED, "indices": full((3, 10, 2), 4, int)},
         f"{SP}: indices go from 4 to 4; expected 0 to 3"),
        (MetadataError, {**STORED, "indices": full((3, 10, 2), 2, int)},
         f"{SP}: indices (2, 2), nibble 0xa, of row 0, group 0 (columns 0 to 3); legal are 0x1, ~ (PTX: i0 != i1)"),
        (UnsupportedError, {"a": zeros(3, 20, dtype="u2"), "b": zeros(40, 5, dtype="u2"), "target": "sm_100",
                            "instruction": SP.replace("f16", "bf16"), "indices": full((3, 10, 2), [1, 0], int)},
         f"{SP.replace('f16', 'bf16')}: indices (1, 0), nibble 0x1, of row 0, ~ for bf16 ptxas does not sort them ~"),
        # Scales
        (ScaleError, {"scale_a": OF_A}, f"{F16} has no block scales; got some (name an instruction with .block_scale)"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_a": None}, f"{MX} needs block scales of A and of B"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_b": None}, f"{MX} needs block scales of A and of B"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_a": OF_A[:, 1:]},
         f"{MX}: scales of A are (3, 1); expected [..., 3, 2], blocks of 32"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_b": OF_A},
         f"{MX}: scales of B are (3, 2); expected [..., 2, 5], blocks of 32"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_b": zeros(2, 5)},
         f"{MX}: scales of B are float16; expected float8_e8m0fnu, ~"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_a": [[1], [2, 3]]}, f"{MX}: scales of A: no array: ~"),
        (OperandError, {**SCALED_ARGUMENTS, "scale_a": np.stack([OF_A] * 2), "scale_b": np.stack([OF_B] * 3)},
         f"{MX}: batches do not broadcast: A (3, 40), B (40, 5), scales of A (2, 3, 2), scales of B (3, 2, 5)"),
        (ScaleError, {**TENSOR, "scale_a": OF_A}, "A is Quantized and brings its scales; expected no others"),
        (ScaleError, {"a": TENSOR["a"], "b": FP4["b"], "instruction": F16}, f"{F16} has no block scales; got some ~"),
        (OperandError, {**TENSOR, "c": zeros(3, 5, **F4)},
         f"{NVF4}: tensor scales multiply all of D; add C to the result, or ~"),
        (ScaleError, with_tensor_scale("x"),
         f"{NVF4}: tensor scale is <U1 (); expected float32 that broadcasts to the batch ()"),
        (ScaleError, with_tensor_scale(0.1), f"{NVF4}: tensor scale is float64 (); expected float32 that broadcasts ~"),
        (ScaleError, with_tensor_scale(np.ones(3, "f4")),
         f"{NVF4}: tensor scale is float32 (3,); expected ~ the batch ()"),
        (ScaleError, with_tensor_scale([[1], [2, 3]]), f"{NVF4}: tensor scale: no array: ~"),
        # Out
        (OperandError, {"out": zeros(3, 5)},
         "out is float16 (3, 5); expected a writable C-contiguous float32 array (3, 5)"),
        (OperandError, {"out": zeros(3, 5, dtype=">f4")},
         "out is >f4 (3, 5); expected a writable C-contiguous float32 ~"),
        (OperandError, {"out": zeros(5, 3, **F4)},
         "out is float32 (5, 3); expected a writable C-contiguous float32 array (3, 5)"),
        (OperandError, {"out": zeros(1, 3, 5, **F4)},
         "out is float32 (1, 3, 5); expected a writable C-contiguous float32 ~"),
        (OperandError, {"out": zeros(5, 3, **F4).T},
         "out is float32 (3, 5) that is not contiguous; expected a writable ~"),
        *((OperandError, {"out": x}, "out is a masked array, whose mask products do not know; give its .data")
          for x in (np.ma.zeros((3, 5), "f4"), np.ma.array(zeros(3, 5), mask=True))),
        (OperandError, {"out": np.broadcast_to(np.float32(0), (3, 5))}, "out is float32 (3, 5) that is read-only; ~"),
        (OperandError, {"out": np.float32(0)}, "out is float32; expected a writable C-contiguous float32 array (3, 5)"),
        (OperandError, {"out": read_only(zeros(3, 5, **F4))},
         "out is float32 (3, 5) that is read-only; expected a writable ~"),
        (OperandError, {"out": [[0.0] * 5] * 3}, "out is list; expected a writable C-contiguous float32 array (3, 5)"),
        (OperandError, {"out": zeros(3, 5, **F4), "epilogue": "bf16"},
         "out is float32 (3, 5); expected a ~ bfloat16 array (3, 5)"),
        # How
        (OperandError, {"engine": "cuda"}, "engine is 'cuda'; expected 'auto', 'numpy' or 'native'"),
        (OperandError, {"engine": None}, "engine is None; expected 'auto', 'numpy' or 'native'"),
        *((OperandError, {"threads": x}, f"threads is {x!r}; expected a positive integer or None")
          for x in (0, -1, 1.0, "2", True)),
        *((OperandError, {"progress": x}, f"progress is {x!r}; expected a function of two integers or None")
          for x in (0, 1, "p")),
    ],
)  # fmt: skip
def test_what_cannot_be_multiplied(error: type[WarpmmaError], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(error, match=exactly(message)):
        wm.matmul(**{"a": zeros(3, 40), "b": zeros(40, 5), "target": "sm_90", **changes})


DTYPES = st.sampled_from(
    [
        "f2",
        "f4",
        "f8",
        "i1",
        "u1",
        "u2",
        "u4",
        "i4",
        "?",
        "O",
        "c8",
        "U3",
        "M8[s]",
        "V4",
        ">f4",
        "float8_e4m3fn",
        "int4",
    ]
)
LENGTHS = st.sampled_from([0, 1, 2, 3, 4, 5, 20, 40])
SHAPES = st.lists(LENGTHS, max_size=4).map(tuple) | st.sampled_from(
    [(3, 40), (40, 5), (3, 20), (3, 5), (3, 10, 2), (3, 2), (2, 5)]
)


def some_array(shape: tuple[int, ...], dtype: str) -> Array:
    return np.zeros(shape, getattr(ml_dtypes, dtype, dtype))


ANYTHING: st.SearchStrategy[Any] = st.one_of(
    st.builds(some_array, SHAPES, DTYPES),
    st.sampled_from([None, "A", 1.0, 2**70, b"", [], {}, float, np.float32(0), TENSOR["a"]]),
)  # fmt: skip
RIGHT: list[dict[str, Any]] = [
    {"a": zeros(3, 40), "b": zeros(40, 5), "target": "sm_90"},
    {"a": zeros(2, 3, 40), "b": zeros(40, 5), "c": zeros(5, **F4), "target": "sm_90", "split_k": 2,
     "out": zeros(2, 3, 5, **F4)},
    {**STORED, "b": zeros(40, 5), "target": "sm_90"}, SCALED_ARGUMENTS, TENSOR,
    {"a": zeros(3, 40, dtype="f8"), "b": zeros(40, 5, dtype="f8"), "target": "sm_80"},
    {"a": zeros(3, 40, dtype="u1"), "b": zeros(40, 5, dtype="u1"), "instruction": FP8, "target": "sm_90a",
     "promote_every": 128},
]  # fmt: skip
SMALL = st.sampled_from(
    [0, 1, 2, 16, 32, 64, -1, 1.5, "1", None, True, 2**80, [16, 24], [32, 8], (40,), [], [2**70], range(3)]
)
WRONG: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("a", "b", "c", "indices", "scale_a", "scale_b", "out"), ANYTHING),
    **dict.fromkeys(("split_k", "promote_every"), SMALL),
    "instruction": st.sampled_from([F16, F64, S8, B1, QUAD, SP, SP_TF32, MX, NVF4, FP8, "mma", "wgmma", "", None, 3]),
    "target": st.sampled_from(["sm_70", "sm_90", "sm_90a", "sm_120a", "sm_121", "", None, 90]),
    "epilogue": st.sampled_from([*EPILOGUES, "f64", "s8", "", 3]),
    "engine": st.sampled_from(["auto", "numpy", "native", "", None]),
    "threads": st.sampled_from([1, 2, 0, -1, 0.5, "1", 10**30]),
    "progress": st.sampled_from([3, "", lambda done, total: None]),
}


@given(right=st.sampled_from(RIGHT), wrong=st.fixed_dictionaries({}, optional=WRONG))
@settings(deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@example(right=RIGHT[0], wrong={"a": zeros(3, 0), "b": zeros(0, 5)})
@example(right=RIGHT[0], wrong={"a": zeros(0, 40)})
@example(right=RIGHT[0], wrong={"progress": 5})
@example(right=RIGHT[1], wrong={"a": zeros(2, 0, 40), "out": None, "threads": 2})
def test_nothing_but_our_own_errors_comes_out(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    try:
        d = wm.matmul(**{**right, **wrong})
    except WarpmmaError as error:
        assert wrong and str(error)
    else:
        assert d.ndim >= 2


def test_masked_arrays_are_refused() -> None:
    a = np.ma.array(np.ones((4, 16), np.float16), mask=True)
    with pytest.raises(OperandError, match="A is a masked array, and no instruction knows masks; fill it first"):
        wm.matmul(a, np.ones((16, 4), np.float16), target="sm_90")
