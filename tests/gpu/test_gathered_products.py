"""Implicit products on a simulated GPU: kernels that gather factors have the bits of factors that are laid out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, same
from convolution_cases import CASES, Case
from simulated_gpu import SimulatedGpu

import warpmma as wm
from warpmma.cuda import nvrtc
from warpmma.errors import UnsupportedError
from warpmma.gpu import GpuTensor
from warpmma.isa import parse_any
from warpmma.operations import operation
from warpmma.products import FMA, ProductOptions
from warpmma.products.chain import chain_of
from warpmma.products.gpu_implicit import launch_of

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
ORDERS: Any = [
    {"forward": "rsc", "data": "-r-sk", "weight": "npq"},
    {"forward": "cs", "data": "k-s", "weight": "q-n"},
    {"forward": "c-tsr", "data": "kstr", "weight": "-nq-zp"},
]


def computed(case: Case, name: str, order: str, given: tuple[Array, ...], **more: Any) -> Array:
    """Compute one product of a convolution on a simulated GPU, codes of D."""
    gpu: Any = SimulatedGpu(more.pop("hazards", "off"))
    bias, record = more.pop("bias", None), more.pop("record", None) or parse_any(F16)
    x, weight, y = given
    of = {"forward": (x, weight, y), "data": (y, weight, x), "weight": (y, x, weight)}[name]
    options = ProductOptions(target="sm_90", engine="cuda", **more)
    out = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, None: np.float32}[options.epilogue]
    d = np.full(of[2].shape, 7, np.float64 if record.d_type == "f64" else out)
    d = np.lib.stride_tricks.as_strided(d, d.shape, [s * d.itemsize // of[2].itemsize for s in of[2].strides])
    layouts = [d if z is of[2] else z for z in given]
    whole = case.convolution(*layouts)
    product = {"forward": whole.forward, "data": whole.data, "weight": whole.weights}[name](order)
    chain = chain_of(record, options, product.shape[3], options.float32)
    there = {key: _there(gpu, z) for key, z in (("A", of[0]), ("B", of[1]), ("D", d))}
    added = None if bias is None else _there(gpu, bias)
    gpu.launch(launch_of(product, chain, {k: v[0] for k, v in there.items()}, added and added[0], options.epilogue))
    flat = there["D"][1].numpy().view(d.dtype)
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, d.shape, d.strides))


def _there(gpu: SimulatedGpu, x: Array) -> tuple[GpuTensor, Any]:
    """Copy an array's memory, all of which it covers, to the device."""
    flat = np.lib.stride_tricks.as_strided(x, (x.size,), (x.itemsize,))
    memory = gpu.device.array(flat.copy().view(f"u{x.itemsize}"))
    return GpuTensor(address=memory.address, shape=x.shape, strides=(), dtype=x.dtype, device=0, owner=memory), memory


def agree(case: Case, name: str, order: str, dtype: Any = np.float16, *, last: bool = False, **more: Any) -> None:
    given = case.drawn(dtype)
    a, b = case.factors(name, order, *given)
    if last:
        given = tuple(np.moveaxis(np.ascontiguousarray(np.moveaxis(z, 1, -1)), -1, 1) for z in given)  # type: ignore[assignment]
    options = {key: value for key, value in more.items() if key not in ("bias", "record", "hazards")}
    d = np.asarray(wm.matmul(a, b, target="sm_90", **options))
    if (bias := more.get("bias")) is not None:
        d = (d + bias.reshape(case.groups, 1, -1).astype(d.dtype)).astype(d.dtype)
    found = computed(case, name, order, given, **more)
    wide = f"u{found.itemsize}"
    same(found.view(wide), np.ascontiguousarray(case.image(name, d)).view(wide))


@pytest.mark.alike(2)
@pytest.mark.parametrize("name", ["forward", "data", "weight"])
@pytest.mark.parametrize(("case", "orders"), list(zip(CASES, ORDERS, strict=True)), ids=["2", "1", "3"])
def test_every_gradient_and_dimension(case: Case, orders: dict[str, str], name: str) -> None:
    agree(case, name, orders[name])


def test_biases_and_rounding() -> None:
    case, dtype = CASES[0], ml_dtypes.bfloat16
    bias = np.random.default_rng(0).standard_normal(case.weight[0]).astype(dtype)
    a, b = case.factors("forward", "rsc", *(given := case.drawn(np.float16)))
    sums = np.asarray(wm.matmul(a, b, target="sm_90")) + bias.reshape(case.groups, 1, -1).astype(np.float32)
    found = computed(case, "forward", "rsc", given, bias=bias, epilogue="bf16")
    same(found.view(np.uint16), np.ascontiguousarray(case.image("forward", sums.astype(dtype))).view(np.uint16))


def test_channels_that_lie_last_and_split_k() -> None:
    agree(CASES[0], "data", "k-rs", last=True, split_k=2)
    agree(CASES[0], "weight", "pqn", last=True, promote_every=16)


@pytest.mark.parametrize("float32", ["ieee", "tf32"])
def test_float32(float32: Any) -> None:
    record = FMA if float32 == "ieee" else parse_any("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
    agree(CASES[1], "data", "k-s", np.float32, float32=float32, record=record)


def test_float64_with_nan() -> None:
    """Payloads of NaN pass through sums, and through the addition of a bias."""
    case, record = CASES[1], parse_any("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64")
    x, weight, y = case.drawn(np.float64)
    x.view(np.uint64)[0, 0, 3], x[1, 2, 4] = 0xFFF0000000000123, np.inf
    bias = np.random.default_rng(0).standard_normal(case.weight[0])
    bias.view(np.uint64)[2] = 0x7FF8000000000777
    a, b = case.factors("forward", "sc", x, weight, y)
    d = np.asarray(wm.matmul(a, b, target="sm_90")).view(np.uint64)
    added = operation("fma.rn.f64").compute(
        *np.broadcast_arrays(d, np.float64(1).view(np.uint64), bias.view(np.uint64))
    )[0]
    found = computed(case, "forward", "sc", (x, weight, y), bias=bias, record=record)
    same(found.view(np.uint64), np.ascontiguousarray(case.image("forward", added)))


def test_no_kernel_has_a_race() -> None:
    agree(CASES[1], "forward", "sc", hazards="error")


def test_strides_that_the_kernel_cannot_hold() -> None:
    case = replace(CASES[1], stride=(1 << 31,))
    with pytest.raises(UnsupportedError, match=r"strides of a convolution are .* below 2147483648"):
        computed(case, "data", "sk", case.drawn(np.float16))
