"""Descriptors that the host makes, in kernels that Triton compiles for TMA: each load equals one with pointers."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

import dataclasses
import importlib
import math
from typing import Any

import numpy as np
import pytest
from oracles import skip_without

import warpmma as wm
from warpmma.machine import HazardError
from warpmma.triton.host_descriptors import mapped_tensor

tl: Any = pytest.importorskip("triton.language")
triton: Any = pytest.importorskip("triton")
skip_without("PyTorch")
torch: Any = importlib.import_module("torch")
tools: Any = pytest.importorskip("triton.tools.tensor_descriptor")
Descriptor = tools.TensorDescriptor
FIELDS = {x.name for x in dataclasses.fields(Descriptor)}
RECORD = {"swizzle": 3, "elem_size": 4, "elem_type": 7, "block_size": [16, 32], "fp4_padded": False}


def tma(**options: Any) -> Any:
    return wm.triton.device("sm_90", ptx_target="sm_90", **options)


def described(x: Any, block: list[int], **options: Any) -> Any:
    return Descriptor(x, list(x.shape), list(x.stride()), block, **options)


def bits(x: Any) -> Any:
    return x.contiguous().view(torch.uint8).numpy()


def numbers(dtype: str, *shape: int, seed: int = 0) -> Any:
    """Return a tensor of random bits."""
    kind = getattr(torch, dtype)
    given = np.random.default_rng(seed).integers(0, 256, (*shape[:-1], shape[-1] * kind.itemsize), np.uint8)
    return torch.from_numpy(given).view(kind)


def plain(x: Any) -> Any:
    """Return fp8 as bytes: Triton casts no integer to it."""
    return x.view(torch.uint8) if x.dtype.itemsize == 1 else x


@triton.jit
def loaded(source, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    rows, columns = i + tl.arange(0, ROWS), j + tl.arange(0, COLUMNS)
    tl.store(out + rows[:, None] * n + columns[None, :], source.load([i, j]))


@triton.jit
def loaded_by_pointers(source, stride, m, k, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    rows, columns = i + tl.arange(0, ROWS)[:, None], j + tl.arange(0, COLUMNS)[None, :]
    inside = (rows < m) & (columns < k)
    tl.store(out + rows * n + columns, tl.load(source + rows * stride + columns, mask=inside, other=0))


@triton.jit
def twice(a, b, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    value = a.load([i, j])
    b.store([i, j], value + value)


DTYPES = [
    "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32",
    "int64", "uint32",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_load_equals_one_with_pointers(dtype: str) -> None:
    """The tensor is a window of a larger one, and tiles reach beyond it on two sides."""
    x = numbers(dtype, 50, 96)[3:43, 16:80]
    with tma() as gpu:
        for columns in (16, 32, 64):
            found, expected = numbers(dtype, 48, 64, seed=1), numbers(dtype, 48, 64, seed=2)
            grid = (3, 64 // columns)
            compiled = loaded[grid](described(x, [16, columns]), found, 64, ROWS=16, COLUMNS=columns)
            loaded_by_pointers[grid](plain(x), 96, 40, 64, plain(expected), 64, ROWS=16, COLUMNS=columns)
            assert "cp.async.bulk.tensor.2d" in compiled.asm["ptx"]
            assert (bits(found) == bits(expected)).all() and (bits(found)[:40] == bits(x)).all()
    assert gpu.device.target == "sm_90a" and len(gpu.launches) == 6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "int32"])
def test_stores_stay_within_a_window(dtype: str) -> None:
    kind = getattr(torch, dtype)
    x, y = (torch.arange(60 * 96).reshape(60, 96) % 50).to(kind), torch.full((60, 96), 7).to(kind)
    expected = y.clone()
    expected[3:44, 16:64] = 2 * x[3:44, 16:64]
    with tma():
        twice[(3, 2)](described(x[3:44, 16:64], [16, 32]), described(y[3:44, 16:64], [16, 32]), ROWS=16, COLUMNS=32)
    assert torch.equal(y, expected)


@triton.jit
def copied_1(a, b, N: tl.constexpr):
    i = tl.program_id(0) * N
    b.store([i], a.load([i]))


@triton.jit
def copied_3(a, b, N: tl.constexpr):
    i = tl.program_id(0) * N
    b.store([i, 0, 0], a.load([i, 0, 0]))


@triton.jit
def copied_4(a, b, N: tl.constexpr):
    i = tl.program_id(0) * N
    b.store([i, 0, 0, 0], a.load([i, 0, 0, 0]))


@triton.jit
def copied_5(a, b, N: tl.constexpr):
    i = tl.program_id(0) * N
    b.store([i, 0, 0, 0, 0], a.load([i, 0, 0, 0, 0]))


@pytest.mark.parametrize(
    ("kernel", "shape", "block"),
    [
        (copied_1, (1000,), [128]),
        (copied_1, (3000,), [1024]),  # a block of several boxes
        (copied_3, (10, 3, 8), [4, 4, 8]),
        (copied_4, (10, 2, 3, 8), [4, 2, 4, 8]),
        (copied_5, (6, 2, 1, 3, 8), [4, 2, 2, 4, 8]),
    ],
)
def test_ranks(kernel: Any, shape: tuple[int, ...], block: list[int]) -> None:
    x, y = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape), torch.zeros(shape)
    with tma():
        kernel[(-(-shape[0] // block[0]),)](described(x, block), described(y, block), N=block[0])
    assert torch.equal(x, y)


@pytest.mark.skipif("padding" not in FIELDS, reason="this Triton has no padding")
def test_padding_with_nan() -> None:
    """Outside of the tensor f16 is 0x7ff7, as an H200 fills it."""
    for kind in (torch.float16, torch.bfloat16, torch.float32):
        x, y = torch.ones(40, 48, dtype=kind), torch.zeros(48, 64, dtype=kind)
        with tma():
            loaded[(3, 2)](described(x, [16, 32], padding="nan"), y, 64, ROWS=16, COLUMNS=32)
        assert (y[:40, :48] == 1).all() and y[40:].isnan().all() and y[:, 48:].isnan().all()
        if kind == torch.float16:
            assert (y[40:].view(torch.int16) == 0x7FF7).all()
    with tma(), pytest.raises(wm.OperandError, match=r"source: its tensor map .* fill is 'nan' and type 'u8'"):
        x = torch.ones(40, 48).to(torch.float8_e5m2)
        loaded[(1, 1)](described(x, [16, 32], padding="nan"), x.clone(), 64, ROWS=16, COLUMNS=32)


@pytest.mark.skipif("round_f32_to_tf32" not in FIELDS, reason="this Triton does not round")
def test_rounding_to_tf32() -> None:
    x, y = torch.randn(32, 32, generator=torch.Generator().manual_seed(0)), torch.zeros(32, 32)
    with tma():
        loaded[(1, 1)](described(x, [32, 32], round_f32_to_tf32=True), y, 32, ROWS=32, COLUMNS=32)
        words = bits(y).view(np.uint32)
        assert not (words & 0x1FFF).any() and (words != bits(x).view(np.uint32)).any()
        loaded[(1, 1)](described(x, [32, 32]), y, 32, ROWS=32, COLUMNS=32)
    assert torch.equal(x, y)


@triton.jit
def reduced(a, b, ROWS: tl.constexpr, COLUMNS: tl.constexpr, KIND: tl.constexpr):
    i, j = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    value = a.load([i, j])
    if KIND == "add":
        b.atomic_add([i, j], value)
    elif KIND == "min":
        b.atomic_min([i, j], value)
    elif KIND == "max":
        b.atomic_max([i, j], value)
    elif KIND == "and":
        b.atomic_and([i, j], value)
    elif KIND == "or":
        b.atomic_or([i, j], value)
    else:
        b.atomic_xor([i, j], value)


REDUCTIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *(("add", x) for x in ("float32", "float16", "int32", "uint64")),
        *((kind, x) for kind in ("min", "max") for x in ("float16", "int32", "int64")),
        *((kind, "int32") for kind in ("and", "or", "xor")),
    ],
)
def test_reductions(kind: str, dtype: str) -> None:
    given = np.random.default_rng(0).integers(0, 50, (2, 40, 48)).astype(dtype)
    x, y = torch.from_numpy(given[0].copy()), torch.from_numpy(given[1].copy())
    with tma():
        compiled = reduced[(3, 3)](described(x, [16, 16]), described(y, [16, 16]), ROWS=16, COLUMNS=16, KIND=kind)
    assert "cp.reduce.async.bulk.tensor.2d" in compiled.asm["ptx"]
    assert (y.numpy() == REDUCTIONS[kind](given[1], given[0])).all()


@triton.jit
def product(a, b, c, m, n, k, PROGRAMS: tl.constexpr, SIDE: tl.constexpr, DEEP: tl.constexpr, SPLIT: tl.constexpr):
    columns = tl.cdiv(n, SIDE)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, SIDE) * columns, PROGRAMS, warp_specialize=SPLIT):
        i, j = tile // columns * SIDE, tile % columns * SIDE
        total = tl.zeros((SIDE, SIDE), tl.float32)
        for at in range(0, k, DEEP):
            total = tl.dot(a.load([i, at]), b.load([j, at]).T, total)
        c.store([i, j], total.to(tl.float16))


@triton.jit
def product_by_pointers(a, b, c, m, n, k, SIDE: tl.constexpr, DEEP: tl.constexpr):
    columns = tl.cdiv(n, SIDE)
    rows = tl.program_id(0) // columns * SIDE + tl.arange(0, SIDE)[:, None]
    across = tl.program_id(0) % columns * SIDE + tl.arange(0, SIDE)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for at in range(0, k, DEEP):
        deep = at + tl.arange(0, DEEP)
        left = tl.load(a + rows * k + deep[None, :], mask=(rows < m) & (deep[None, :] < k), other=0)
        inside = (across[:, None] < n) & (deep[None, :] < k)
        right = tl.load(b + across[:, None] * k + deep[None, :], mask=inside, other=0)
        total = tl.dot(left, right.T, total)
    tl.store(c + rows * n + across[None, :], total.to(tl.float16), mask=(rows < m) & (across[None, :] < n))


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("split", [False, True])
def test_a_persistent_product(split: bool, stages: int) -> None:
    """Tiles of 32 rows become `mma.sync`; `warp_specialize` changes nothing there."""
    assert "mma.sync" in multiplied(90, 56, 104, side=32, programs=4, SPLIT=split, num_stages=stages)


@pytest.mark.parametrize("split", [False, True])
def test_products_of_64_rows_are_wgmma(split: bool) -> None:
    """With `warp_specialize` both groups of four warps compute each tile, and store the same bytes."""
    assert "wgmma.mma_async" in multiplied(120, 128, 96, side=64, programs=2, SPLIT=split)


def multiplied(m: int, n: int, k: int, *, side: int, programs: int, **options: Any) -> str:
    """Compare a product by descriptors with one by pointers; return its text."""
    random = torch.Generator().manual_seed(0)
    a, b = (torch.randn(x, k, generator=random).half() for x in (m, n))
    c, expected = torch.zeros(m, n).half(), torch.zeros(m, n).half()
    with tma() as gpu:
        maps = (described(x, [side, side]) for x in (a, b, c))
        compiled = product[(programs,)](*maps, m, n, k, PROGRAMS=programs, SIDE=side, DEEP=side, **options)
        product_by_pointers[(-(-m // 32) * -(-n // 32),)](a, b, expected, m, n, k, SIDE=32, DEEP=32)
    assert "cp.async.bulk.tensor" in compiled.asm["ptx"]
    assert torch.equal(c, expected) and not gpu.launches[0].report.hazards
    return str(compiled.asm["ptx"])


@triton.jit
def scaled(pair, scale, ROWS: tl.constexpr):
    i = tl.program_id(0) * ROWS
    pair[1].store([i, 0], pair[0].load([i, 0]) * scale)


def test_descriptors_in_tuples_of_arrays_of_the_device_and_in_clusters() -> None:
    x = torch.arange(64 * 32, dtype=torch.float32).reshape(64, 32)
    with tma() as gpu:
        y = torch.zeros_like(x)
        scaled[(4,)]((described(x, [16, 32]), described(y, [16, 32])), 2.5, ROWS=16)
        assert torch.equal(y, 2.5 * x)
        held, out = gpu.device.array(x.numpy()), gpu.device.empty((64, 32), np.float32)
        maps = [Descriptor(each, [64, 32], [32, 1], [16, 32]) for each in (held, out)]
        twice[(4, 1)](*maps, ROWS=16, COLUMNS=32)
        assert (out.numpy() == 2 * x.numpy()).all()
        y = torch.zeros_like(x)
        twice[(2, 1)](described(x, [32, 32]), described(y, [32, 32]), ROWS=32, COLUMNS=32, num_ctas=2)
        assert torch.equal(y, 2 * x)


def test_autotuned_kernels_set_their_blocks() -> None:
    def sized(given: Any) -> None:
        for name in ("a", "b"):
            given[name].block_shape = [given["ROWS"], given["COLUMNS"]]

    def grid(chosen: Any) -> tuple[int, int]:
        return triton.cdiv(64, chosen["ROWS"]), triton.cdiv(64, chosen["COLUMNS"])

    sizes = ((16, 32, 4), (32, 64, 4), (8, 16, 1))
    configs = [triton.Config({"ROWS": r, "COLUMNS": c}, num_warps=w, pre_hook=sized) for r, c, w in sizes]
    tuned = triton.autotune(configs, key=[])(twice)
    x = torch.arange(64 * 64, dtype=torch.float32).reshape(64, 64)
    y = torch.zeros_like(x)
    with tma() as gpu:
        tuned[grid](described(x, [8, 16]), described(y, [8, 16]))
    assert torch.equal(y, 2 * x) and len(gpu.launches) >= 1


def test_a_compiled_kernel_checks_what_it_is_given() -> None:
    x, y = torch.ones(64, 64), torch.zeros(64, 64)
    a, b = described(x, [16, 32]), described(y, [16, 32])
    with tma():
        compiled = twice[(4, 2)](a, b, ROWS=16, COLUMNS=32)
        y.zero_()
        compiled[(4, 2, 1)](a, b, 16, 32)
        assert (y == 2).all()
        for wrong, says in (
            (None, r"a is None; expected a TensorDescriptor: the kernel was compiled for tensordesc<fp32\[16, ?32\]"),
            (described(x.half(), [16, 32]), r"a\.base is an array of float16; the kernel was compiled for \*fp32"),
            (described(x.reshape(-1), [32]), r"a has the shape \(4096,\) and the strides \(1,\); expected 2 of each"),
        ):
            with pytest.raises(wm.OperandError, match=says):
                compiled[(4, 2, 1)](wrong, b, 16, 32)
        a.strides = [63, 1]
        with pytest.raises(wm.OperandError, match=r"a: its tensor map is not legal: strides\[0\] is 252; expected"):
            compiled[(4, 2, 1)](a, b, 16, 32)
        with pytest.raises(wm.OperandError, match=r"a\.base is a tensor on meta"):
            twice[(1, 1)](described(x.to("meta"), [16, 32]), b, ROWS=16, COLUMNS=32)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"fp4_padded": True}, "x is a descriptor with elements of fp4 or of type 7; expected tiles"),
        ({"elem_type": 13}, "elements of fp4 or of type 13"),
        ({"is_im2col": True}, "x is a descriptor with im2col; expected tiles"),
    ],
)
def test_records_that_are_not_simulated(change: dict[str, Any], says: str) -> None:
    x = described(torch.zeros(64, 64), [16, 32])
    encoded = mapped_tensor("x", x, "*fp32", 1 << 40, RECORD).map
    assert encoded == wm.TensorMap(
        1 << 40, (16, 32), type="f32", shape=(64, 64), strides=(256,), swizzle=128, l2_promotion=128
    )
    with pytest.raises(wm.UnsupportedError, match=says):
        mapped_tensor("x", x, "*fp32", 1 << 40, {**RECORD, **change})


def test_hazards_name_the_tensor() -> None:
    x, y = torch.arange(64 * 32.0).reshape(64, 32), torch.zeros(16, 32)
    with tma() as gpu:
        with pytest.raises(HazardError, match=r"race: .*b\.base\[0\]"):
            scattered[(4,)](described(x, [16, 32]), described(y, [16, 32]), ROWS=16)
        with pytest.raises(HazardError, match=r"bounds: .*the nearest, a\.base \(8192 bytes"):
            beyond = Descriptor(x, [80, 32], [32, 1], [16, 32])
            twice[(5, 1)](beyond, described(torch.zeros(80, 32), [16, 32]), ROWS=16, COLUMNS=32)
        empty = Descriptor(gpu.device.empty((16, 32), np.float32), [16, 32], [32, 1], [16, 32])
        with pytest.raises(HazardError, match=r"unwritten: .* it was never written"):
            twice[(1, 1)](empty, described(y, [16, 32]), ROWS=16, COLUMNS=32)


@triton.jit
def scattered(a, b, ROWS: tl.constexpr):
    b.store([0, 0], a.load([tl.program_id(0) * ROWS, 0]))
