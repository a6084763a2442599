"""Arrays on simulated GPUs: tensor scales, tiles of one instruction, and more than one GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, same
from simulated_gpu import GpuArray, SimulatedGpu

import warpmma as wm
from warpmma.cuda import nvrtc
from warpmma.errors import OperandError, ScaleError, UnsupportedError
from warpmma.execution import on_gpu
from warpmma.isa import parse_any
from warpmma.products import gpu_products
from warpmma.scaling import Quantized

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
MXFP8 = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
PLACES = (("A", (9, 128)), ("B", (128, 10)))


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[SimulatedGpu]]:
    """Two of them."""
    both = [SimulatedGpu("off"), SimulatedGpu("off")]
    for room in (gpu_products, on_gpu):
        monkeypatch.setattr(room, "gpu", lambda number=0: both[number])
    yield both


def on(gpus: list[SimulatedGpu], x: Array, number: int = 0) -> Any:
    return GpuArray.of(gpus[number].device, x, number)


def codes(x: Array) -> Array:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def drawn(*shape: int, dtype: Any = np.float16, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def there(gpus: list[SimulatedGpu], x: Quantized) -> Any:
    scale = None if x.tensor_scale is None else on(gpus, np.asarray(x.tensor_scale))
    return replace(x, elements=on(gpus, codes(x.elements)), scales=on(gpus, x.scales), tensor_scale=scale)


SCALES = np.array(
    [(0.37, 1.9e-3), (3e38, 7e4), (1e-30, 3e-12), (np.inf, 0), (1.5e-45, 0.5), (-1 / 3, np.nan), (2e-42, 1 / 3)],
    np.float32,
)


def test_tensor_scales_multiply_the_result(gpus: list[SimulatedGpu]) -> None:
    x, y = (wm.scaling.quantize(drawn(*s, dtype=np.float32), NVFP4, name) for name, s in PLACES)  # type: ignore[arg-type]
    all_of_x, all_of_y = replace(x, tensor_scale=SCALES[:, 0]), replace(y, tensor_scale=SCALES[:, 1])
    neither, none = replace(x, tensor_scale=None), replace(y, tensor_scale=None)
    options: Any = {"instruction": NVFP4, "target": "sm_120a"}
    for a, b, epilogue in (
        (x, y, None), (all_of_x, all_of_y, None), (x, all_of_y, "bf16"), (neither, y, None), (x, none, None),
    ):  # fmt: skip
        if isinstance(b.tensor_scale, np.ndarray):
            b = replace(b, elements=np.broadcast_to(b.elements, (7, *b.elements.shape)))
        d: Any = wm.matmul(there(gpus, a), there(gpus, b), **options, epilogue=epilogue)
        same(codes(d.numpy()), codes(wm.matmul(a, b, **options, epilogue=epilogue)))
    assert gpus[0].waits == 0


def test_tensor_scales_of_a_batch(gpus: list[SimulatedGpu]) -> None:
    x = wm.scaling.quantize(drawn(3, 2, 5, 64, dtype=np.float32), NVFP4)
    y = wm.scaling.quantize(drawn(2, 64, 6, dtype=np.float32), NVFP4, "B")
    shapes = [np.asarray(q.tensor_scale).shape for q in (x, y)]
    assert shapes == [(3, 2), (2,)]
    options: Any = {"instruction": NVFP4, "target": "sm_120a"}
    d: Any = wm.matmul(there(gpus, x), there(gpus, y), **options)
    same(codes(d.numpy()), codes(wm.matmul(x, y, **options)))


def test_tensor_scales_that_are_refused(gpus: list[SimulatedGpu]) -> None:
    x, y = (wm.scaling.quantize(drawn(*s, dtype=np.float32), NVFP4, name) for name, s in PLACES)  # type: ignore[arg-type]
    a, b = there(gpus, x), there(gpus, y)
    options: Any = {"instruction": NVFP4, "target": "sm_120a"}
    with pytest.raises(ScaleError, match="tensor scale of A lies on the CPU"):
        wm.matmul(replace(a, tensor_scale=x.tensor_scale), b, **options)
    with pytest.raises(ScaleError, match=r"tensor scale is float64 \(\); expected float32"):
        wm.matmul(replace(a, tensor_scale=on(gpus, np.array(1.0))), b, **options)
    with pytest.raises(ScaleError, match=r"tensor scale is float32 \(3,\); expected float32 that broadcasts"):
        wm.matmul(replace(a, tensor_scale=on(gpus, np.ones(3, np.float32))), b, **options)
    with pytest.raises(OperandError, match="tensor scales multiply all of D"):
        wm.matmul(a, b, on(gpus, np.zeros((9, 10), np.float32)), **options)
    with pytest.raises(ScaleError, match="tensor scale lies on another device"):
        wm.matmul(replace(x, tensor_scale=a.tensor_scale), y, **options)


TILES = {
    F16: "sm_90",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16": "sm_70",
    "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64.rn": "sm_90",
    "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc": "sm_80",
    "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3": "sm_90a",
}


@pytest.mark.alike(3)
@pytest.mark.parametrize("i", TILES, ids=[i.rsplit(".", 3)[-2] for i in TILES])
def test_tiles_of_one_instruction(gpus: list[SimulatedGpu], i: str) -> None:
    record, rng = parse_any(i), np.random.default_rng(0)
    extra = record.layout("C").shape[:-2]  # of the instruction that multiplies four matrices
    given = []
    for name, batch, shape in (
        ("A", (2, 3), (record.m, record.k)), ("B", (3,), (record.k, record.n)), ("C", (2, 1), (record.m, record.n)),
    ):  # fmt: skip
        fmt, whole = record.format(name), (*batch, *extra, *shape)  # type: ignore[arg-type]
        values = rng.integers(0, 2, whole) if fmt.bits == 1 else rng.standard_normal(whole).astype(fmt.dtype)
        given.append(codes(values.astype(fmt.dtype)))
    for operands in (given[:2], given):
        d: Any = wm.mma(i, *(on(gpus, x) for x in operands), target=TILES[i])
        same(codes(d.numpy()), codes(wm.mma(i, *operands, target=TILES[i])))
    assert gpus[0].waits == 0


def test_tiles_with_block_scales(gpus: list[SimulatedGpu]) -> None:
    a, b = (drawn(*s).astype(ml_dtypes.float8_e4m3fn).view(np.uint8) for s in ((2, 16, 32), (32, 8)))
    scales = [np.random.default_rng(0).integers(120, 134, s).astype(np.uint8) for s in ((2, 16, 1), (1, 8))]
    of_a, of_b = (on(gpus, x) for x in scales)
    d: Any = wm.mma(MXFP8, on(gpus, a), on(gpus, b), target="sm_120a", scale_a=of_a, scale_b=of_b)
    same(codes(d.numpy()), codes(wm.mma(MXFP8, a, b, target="sm_120a", scale_a=scales[0], scale_b=scales[1])))
    with pytest.raises(OperandError, match="needs scale_a"):
        wm.mma(MXFP8, on(gpus, a), on(gpus, b), target="sm_120a", scale_b=of_b)
    with pytest.raises(ScaleError, match=r"scales of B are \(2, 16, 1\); expected \[..., 1, 8\]"):
        wm.mma(MXFP8, on(gpus, a), on(gpus, b), target="sm_120a", scale_a=of_a, scale_b=of_a)


def test_tiles_that_are_refused(gpus: list[SimulatedGpu]) -> None:
    a, b = on(gpus, drawn(2, 16, 16)), on(gpus, drawn(16, 8))
    with pytest.raises(OperandError, match=r"B is \(2, 16, 16\); expected \[..., 16, 8\]"):
        wm.mma(F16, a, a, target="sm_90")
    with pytest.raises(OperandError, match="batches do not broadcast: A"):
        wm.mma(F16, a, on(gpus, drawn(3, 16, 8)), target="sm_90")
    with pytest.raises(OperandError, match="float32 array; expected float16"):
        wm.mma(F16, a, on(gpus, drawn(16, 8, dtype=np.float32)), target="sm_90")
    with pytest.raises(OperandError, match="takes no scale_a"):
        wm.mma(F16, a, b, target="sm_90", scale_a=a)
    with pytest.raises(OperandError, match="engine is 'native'; expected"):
        wm.mma(F16, a, b, target="sm_90", engine="native")
    with pytest.raises(OperandError, match="takes no imm_a"):
        wm.mma(F16, a, b, target="sm_90", imm_a=-1)
    i = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    x, y, c = on(gpus, drawn(64, 16)), on(gpus, drawn(16, 8)), on(gpus, drawn(64, 8, dtype=np.float32))
    with pytest.raises(UnsupportedError, match="negate A or B before"):
        wm.mma(i, x, y, target="sm_90a", imm_b=-1)
    d: Any = wm.mma(i, x, y, c, target="sm_90a", scale_d=False)
    same(codes(d.numpy()), codes(wm.mma(i, drawn(64, 16), drawn(16, 8), target="sm_90a")))


def test_a_product_runs_on_the_gpu_of_its_arrays(gpus: list[SimulatedGpu]) -> None:
    a, b = drawn(5, 16), drawn(16, 7)
    expected = codes(wm.matmul(a, b, target="sm_90"))
    for number in (1, 0, 1):
        d: Any = wm.matmul(on(gpus, a, number), on(gpus, b, number), target="sm_90")
        assert d.number == number
        same(codes(d.numpy()), expected)
    assert [len(gpu.launches) for gpu in gpus] == [1, 2]
    tile: Any = wm.mma(F16, on(gpus, drawn(16, 16), 1), on(gpus, drawn(16, 8), 1), target="sm_90")
    assert tile.number == 1 and len(gpus[1].launches) == 3


def test_operands_on_two_gpus_are_refused_unread(gpus: list[SimulatedGpu]) -> None:
    a, b = on(gpus, drawn(5, 16)), on(gpus, drawn(16, 7), 1)
    with pytest.raises(OperandError, match=r"operands lie on GPUs \[0, 1\]; expected one"):
        wm.matmul(a, b, target="sm_90")
    with pytest.raises(OperandError, match=r"operands lie on GPUs \[0, 1\]; expected one"):
        wm.mma(F16, on(gpus, drawn(16, 16)), on(gpus, drawn(16, 8), 1), target="sm_90")
    assert not a.streams and not b.streams
