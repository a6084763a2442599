"""Tensor maps that the DSL's host code has the driver encode."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, attr-defined, name-defined"

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.cute import runtime_functions
from warpmma.cute.active_gpu import failures
from warpmma.testing import assert_same_bits

pytest.importorskip("cutlass.cute")

import cutlass
from cutlass import cute
from cutlass.cute.runtime import from_dlpack
from cutlass.experimental import cuda
from cutlass.experimental import primitives as prims


@cute.kernel
def copying(box: cutlass.GridConstant[cuda.TensorMap], y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    tile: Any = cutlass.Array(cutlass.Float32, (8, 32), space=cutlass.AddressSpace.smem)
    full: Any = cutlass.Array(cutlass.Int64, 1, space=cutlass.AddressSpace.smem)
    if prims.elect_sync():
        prims.mbarrier_init(full, 1)
    prims.fence_mbarrier_init()
    prims.barrier_cta_sync(0)
    if prims.elect_sync():
        prims.mbarrier_arrive_expect_tx(full, box.global_tx_bytes())
        prims.cp_async_bulk_tensor_shared_cta_global(tile, box.get_ptr(), (16, 8), full)
    while not prims.mbarrier_try_wait_parity(full, 0, time_limit=1000):
        pass
    for row in range(8):
        y[row, thread] = tile[row, thread]


@cute.jit
def copy(x: cute.Tensor, y: cute.Tensor):
    box = cuda.create_tensor_map_tiled_from_view(x, box_dims=(8, 32), stride_order=(1, 0))
    copying(box, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_a_tile_is_copied() -> None:
    x, y = np.arange(32 * 64, dtype=np.float32).reshape(32, 64), np.zeros((8, 32), np.float32)
    with wm.cute.device("sm_90") as gpu:
        copy(from_dlpack(x, assumed_align=16), from_dlpack(y))
    assert_same_bits(y, x[8:16, 16:48])
    assert len(gpu.launches[0].params) >= 128


def encode(rank: int) -> tuple[int, bytes]:
    """Call the function as host code does: 100 x 64 numbers in f16, a box of 64 x 32, a swizzle of 128 bytes."""
    words = ctypes.create_string_buffer(128)
    dims, strides = (ctypes.c_uint64 * 2)(64, 100), (ctypes.c_uint64 * 1)(128)
    box, steps = (ctypes.c_uint32 * 2)(64, 32), (ctypes.c_uint32 * 2)(1, 1)
    places = [ctypes.addressof(x) for x in (dims, strides, box, steps)]
    function = runtime_functions._shared("_cuTensorMapEncodeTiled")
    return function(ctypes.addressof(words), 6, rank, 0x1000, *places, 0, 3, 2, 0), words.raw


def test_the_bytes_are_the_drivers() -> None:
    expected = wm.TensorMap.encode_tiled(6, 2, 0x1000, [64, 100], [128], [64, 32], [1, 1], 0, 3, 2, 0)
    assert encode(2) == (0, bytes(expected))


def test_what_the_driver_refuses_is_an_error() -> None:
    failures.clear()
    assert encode(-1)[0] == 999
    error = failures.pop()
    assert isinstance(error, wm.WarpmmaError) and "rank" in str(error)


def test_the_first_error_of_host_code_is_raised() -> None:
    """A map that cannot be encoded, and not the launch with it that follows."""
    x = np.zeros(32 * 64 + 8, np.float32)
    at = 1 + -x.ctypes.data % 16 // 4  # 4 bytes beyond a multiple of 16, which the driver takes
    with wm.cute.device("sm_90"), pytest.raises(wm.OperandError, match="address"):
        copy(from_dlpack(x[at : at + 32 * 64].reshape(32, 64)), from_dlpack(np.zeros((8, 32), np.float32)))
