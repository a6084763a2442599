"""What kernels of Triton are given: views, scalars, tuples, descriptors, addresses; grids; what they print."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import skip_without

import warpmma as wm

tl: Any = pytest.importorskip("triton.language")
triton: Any = pytest.importorskip("triton")
VERSION = tuple(int(x) for x in triton.__version__.split(".")[:2])


@triton.jit
def copied(x, out, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + places, tl.load(x + places))


@triton.jit
def scalars(out, a, b, c, f, none, flag, g: tl.float64, h: tl.float16, e: tl.bfloat16):
    total = (a + b + c).to(tl.float64) + f + tl.where(flag, 0.25, 0.0)
    if none is not None:
        total += none
    tl.store(out, total)
    tl.store(out + 1, g)
    tl.store(out + 2, h.to(tl.float64))
    tl.store(out + 3, e.to(tl.float64))


@triton.jit
def gathered(addresses, out, BLOCK: tl.constexpr):
    there = tl.load(addresses + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    places = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * BLOCK + places, tl.load(there + places))


@triton.jit
def told(x, most, BLOCK: tl.constexpr):
    value = tl.load(x + tl.arange(0, BLOCK))
    tl.device_print("value", value)
    tl.device_assert(value < most, "too large")


def test_views_lie_in_their_storage() -> None:
    x, out = np.arange(64, dtype=np.int64), np.zeros((32, 2), np.int64)
    with wm.triton.device("sm_90"):
        copied[(1,)](x[17:], out[:16], BLOCK=32)
    assert (out.ravel()[:32] == x[17:49]).all() and not out.ravel()[32:].any()


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint16", "uint64", "bool", "bfloat16", "float8_e5m2"])
def test_types_of_elements(dtype: str) -> None:
    import ml_dtypes

    wanted = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.arange(32 * wanted.itemsize, dtype=np.uint8).view(wanted) if dtype != "bool" else np.arange(32) % 3 == 0
    out = np.zeros_like(x)
    with wm.triton.device("sm_90"):
        copied[(1,)](x, out, BLOCK=32)
    assert out.tobytes() == x.tobytes()


def test_one_number_and_no_block() -> None:
    x, out = np.array(3, np.float32), np.zeros((), np.float32)
    with wm.triton.device("sm_90") as gpu:
        copied[(1,)](x, out, BLOCK=1)
        copied[(0, 1, 1)](x, out, BLOCK=1)
    assert out == 3 and len(gpu.launches) == 1


@pytest.mark.parametrize(("a", "none"), [(1, None), (16, 8), (-5, 8), (2**40, 1)])
def test_scalars(a: int, none: int | None) -> None:
    out = np.zeros(4)
    with wm.triton.device("sm_90"):
        scalars[(1,)](out, a, 3, 2**33, 0.5, none, True, 0.1, 0.1, 0.1)
    assert out[0] == a + 3 + 2**33 + 0.5 + 0.25 + (none or 0)
    if VERSION >= (3, 4):  # before, every float is fp32
        assert out[1:].tolist() == [0.1, float(np.float16(0.1)), 0.099609375]  # the last is cut, not rounded


def test_addresses_in_a_tensor() -> None:
    skip_without("PyTorch")
    import torch

    pieces = [torch.full((32,), float(i)) for i in range(3)]
    addresses = torch.tensor([x.data_ptr() for x in pieces])
    out = torch.zeros(3, 32)
    with wm.triton.device("sm_90"):
        gathered[(3,)](addresses, out, BLOCK=32)
    assert torch.equal(out, torch.stack(pieces))


def test_addresses_of_arrays_that_were_mapped() -> None:
    pieces = np.arange(64, dtype=np.float32)
    addresses = np.array([pieces.ctypes.data, pieces.ctypes.data + 128], np.uint64)
    out = np.zeros((2, 32), np.float32)
    with wm.triton.device("sm_90") as gpu:
        with pytest.raises(wm.machine.HazardError, match="bounds"):
            gathered[(2,)](addresses, out, BLOCK=32)
        gpu.map(pieces)
        gathered[(2,)](addresses, out, BLOCK=32)
    assert (out.ravel() == pieces).all()


def test_arrays_of_another_device_of_the_target() -> None:
    device = wm.Device("sm_90a")
    x, out = device.array(np.arange(32)), device.empty(32, np.int64)
    with wm.triton.device("sm_90") as gpu:
        copied[(1,)](x, out, BLOCK=32)
        with pytest.raises(wm.OperandError, match="arrays of 2 devices"):
            copied[(1,)](x, gpu.device.empty(32, np.int64), BLOCK=32)
    assert (out.numpy() == np.arange(32)).all() and gpu.launches[0].device is device
    with (
        wm.triton.device("sm_80"),
        pytest.raises(wm.OperandError, match="of a device of sm_90a; the active one is sm_80"),
    ):
        copied[(1,)](x, out, BLOCK=32)
    older = wm.Device("sm_90").array(np.arange(32))
    with (
        wm.triton.device("sm_90"),
        pytest.raises(wm.OperandError, match=r"of sm_90; the active one is sm_90a, .* Device\('sm_90a'\)"),
    ):
        copied[(1,)](older, older, BLOCK=32)
    with wm.triton.device("sm_90", ptx_target="sm_80"):
        copied[(1,)](older, older, BLOCK=32)


def test_what_a_kernel_prints_and_asserts(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(32, dtype=np.int32)
    with wm.triton.device("sm_90") as gpu:
        told[(1,)](x, 32, BLOCK=32, num_warps=1)
        assert "pid (0, 0, 0) idx (31) value: 31" in gpu.launches[0].report.printed
        assert gpu.launches[0].report.printed in capsys.readouterr().out
        told[(1,)](x, 8, BLOCK=32, num_warps=1)  # without debug Triton leaves it out
        with pytest.raises(wm.KernelError, match=r"_arguments.py:\d+: .*thread 8: assertion `too large` failed"):
            told[(1,)](x, 8, BLOCK=32, num_warps=1, debug=True)


@pytest.mark.skipif(VERSION < (3, 4), reason="from 3.4 on kernels take these")
def test_descriptors_and_tuples() -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def moved(source, pair, BLOCK: tl.constexpr):
        tile = source.load([0, BLOCK]) * pair[1]
        places = tl.arange(0, BLOCK)
        tl.store(pair[0] + places[:, None] * BLOCK + places[None, :], tile)

    with wm.triton.device("sm_90", ptx_target="sm_80") as gpu:
        x, out = np.arange(24 * 64, dtype=np.float32).reshape(24, 64), np.zeros((16, 16), np.float32)
        source = TensorDescriptor(gpu.device.array(x), [24, 64], [64, 1], [16, 16])
        moved[(1,)](source, (out, 2.0), BLOCK=16)
        with wm.triton.device("sm_90", ptx_target="sm_90") as tma:
            there = TensorDescriptor(tma.device.array(x), [24, 64], [64, 1], [16, 16])
            moved[(1,)](there, (there_out := np.zeros_like(out), 2.0), BLOCK=16)
    assert (there_out == out).all() and (out == 2 * x[:16, 16:32]).all()


def test_a_compiled_kernel_takes_the_types_that_it_was_compiled_for() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with wm.triton.device("sm_90") as gpu:
        compiled = copied[(2,)](x, out, BLOCK=32)
        for wrong in (np.float64, np.float16, np.int64, np.uint8):
            with pytest.raises(wm.OperandError, match=rf"x is an array of {np.dtype(wrong)}; .* compiled for \*fp32: "):
                compiled[(2, 1, 1)](x.astype(wrong), out, 32)
            with pytest.raises(wm.OperandError, match=rf"x is an array of {np.dtype(wrong)}"):
                compiled[(2, 1, 1)](gpu.device.array(x.astype(wrong)), out, 32)
        codes = np.zeros(64, np.uint32)
        compiled[(2, 1, 1)](x[::-1].copy(), codes, 32)
    assert (codes.view(np.float32) == x[::-1]).all() and (out == x).all()


def test_bytes_take_all_types() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float16)
    with wm.triton.device("sm_90"):
        compiled = copied[(2,)](x.view(np.int8), out.view(np.int8), BLOCK=32)
        compiled[(2, 1, 1)](x, out, 32)
