"""What the runtime of CUDA does for host code: memory of the device, and cooperative launches that do not fit."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, attr-defined, name-defined"

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma.testing import assert_same_bits

pytest.importorskip("cutlass.cute")

import cuda.bindings.runtime as runtime
import cutlass
from cutlass import cute
from cutlass.cute.runtime import make_ptr
from cutlass.cutlass_dsl import DSLCudaRuntimeError

KINDS, OK = runtime.cudaMemcpyKind, runtime.cudaError_t.cudaSuccess


@cute.kernel
def counting(x: cute.Pointer):
    thread, _, _ = cute.arch.thread_idx()
    tensor = cute.make_tensor(x, cute.make_layout(32))
    if thread < 32:
        tensor[thread] = tensor[thread] + 1


@cute.jit
def count(x: cute.Pointer, blocks: cutlass.Constexpr, threads: cutlass.Constexpr):
    counting(x).launch(grid=(blocks, 1, 1), block=(threads, 1, 1), cooperative=True)


def pointer(address: int):
    return make_ptr(cutlass.Int32, address, cute.AddressSpace.gmem)


def test_memory_of_the_runtime() -> None:
    x = np.arange(32, dtype=np.int32)
    y = np.zeros_like(x)
    with wm.cute.device("sm_90") as gpu:
        (_, a), (_, b) = runtime.cudaMalloc(x.nbytes), runtime.cudaMalloc(x.nbytes)
        assert runtime.cudaMemcpy(a, x.ctypes.data, x.nbytes, KINDS.cudaMemcpyHostToDevice) == (OK,)
        count(pointer(a), 1, 32)
        runtime.cudaMemcpy(b, a, x.nbytes, KINDS.cudaMemcpyDeviceToDevice)
        runtime.cudaMemset(b, 0x101, 8)
        runtime.cudaMemcpy(y.ctypes.data, b, x.nbytes, KINDS.cudaMemcpyDeviceToHost)
        assert_same_bits(y, np.r_[[0x01010101] * 2, x[2:] + 1].astype(np.int32))
        with pytest.raises(wm.UnsupportedError, match=r"cudaMemcpy: kind .*; expected from host to device"):
            runtime.cudaMemcpy(a, b, 4, KINDS.cudaMemcpyDefault)
        assert runtime.cudaFree(a) == runtime.cudaFree(0) == (OK,)
        with pytest.raises(wm.OperandError, match="free"):
            runtime.cudaFree(a)
        with pytest.raises(wm.OperandError):
            runtime.cudaMemset(b, 0, x.nbytes + 1)
    assert gpu.launches[0].cooperative


@pytest.mark.parametrize(("target", "blocks"), [("sm_80", 2 * 132), ("sm_90", 2 * 132), ("sm_120", 132)])
def test_a_cooperative_launch_that_does_not_fit(target: str, blocks: int) -> None:
    """Blocks of 1024 threads: as many as the multiprocessors hold, and one more, which is CUDA's error."""
    with wm.cute.device(target) as gpu:
        _, x = runtime.cudaMalloc(128)
        with pytest.raises(DSLCudaRuntimeError) as caught:
            count(pointer(x), blocks + 1, 1024)
        assert caught.value.error_code == runtime.cudaError_t.cudaErrorCooperativeLaunchTooLarge
        assert not gpu.launches


def test_one_that_fits_runs() -> None:
    with wm.cute.device("sm_90", hazards="off") as gpu:
        _, x = runtime.cudaMalloc(128)
        runtime.cudaMemset(x, 0, 128)
        count(pointer(x), 4, 1024)
    assert gpu.launches[0].grid == (4, 1, 1)
