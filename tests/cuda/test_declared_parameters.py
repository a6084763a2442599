"""Kernels of CUDA C++: types of parameters are checked, and names of the source are taken and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpmma as wm
from warpmma.cli import main
from warpmma.cuda import compilers, nvrtc
from warpmma.errors import OperandError
from warpmma.machine import HazardError
from warpmma.testing import Gpu

pytestmark = pytest.mark.quick

NVRTC = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())
NVCC = pytest.mark.skipif(not compilers.find_nvcc(), reason="no nvcc")
each_compiler = pytest.mark.parametrize(
    "compiler", [pytest.param("nvrtc", marks=NVRTC), pytest.param("nvcc", marks=NVCC)]
)

SOURCE = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
namespace n { template <typename T, int N> struct Tile { T values[N]; }; }
__global__ void scale(float *x, float factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
namespace n {
template <typename T> __global__ void widen(const T *__restrict__ in, float *out, Tile<T, 2> *tiles)
{
    out[threadIdx.x] = float(in[threadIdx.x]) + float(tiles->values[0]);
}
}
__global__ void marlin(const int4 *A, void *B, char *C, unsigned short *D) { D[threadIdx.x] = C[A[0].x]; }
extern "C" __global__ void plain(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void tile(float *x)
{
    __shared__ float sA[32];
    sA[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = sA[0];
}
__global__ void lock(int *mutex, int *sum)
{
    for (bool done = false; !done;)
        if (atomicCAS(mutex, 0, 1) == 0) {
#ifdef FENCED
            __threadfence();
#endif
            *sum += 1;
#ifdef FENCED
            __threadfence();
#endif
            atomicExch(mutex, 0);
            done = true;
        }
}
"""
NAMES = ["n::widen<__half>", "n::widen<__nv_bfloat16>", "n::widen<double>"]


def loaded(compiler: str = "nvrtc", options: list[str] | None = None) -> Any:
    return wm.cuda.load(SOURCE, name="k.cu", names=NAMES, compiler=compiler, options=options or [])


@each_compiler
def test_arrays_of_another_type_are_refused(compiler: str) -> None:
    device, module = wm.Device("sm_90"), loaded(compiler)
    says = (
        r"args\[0\] of scale\(float\* x, float factor, int n\), float\* x, is an array of float64; "
        "expected float32, or uint32 for codes"
    )
    for x in (np.zeros(4), device.zeros(4, np.float64)):
        with pytest.raises(OperandError, match=says):
            module["scale"].launch(device, 1, 4, [x, 2.0, 4])
    out, tiles = np.zeros(4, np.float32), np.zeros(16, np.uint8)
    for name, dtype in zip(NAMES, (np.float16, ml_dtypes.bfloat16, np.float64), strict=True):
        module[name].launch(device, 1, 4, [np.ones(4, dtype), out, tiles])
        assert out.tolist() == [1] * 4
        with pytest.raises(OperandError, match=rf"const \S+\* in, is an array of float32; expected {np.dtype(dtype)}"):
            module[name].launch(device, 1, 4, [np.ones(4, np.float32), out, tiles])


@each_compiler
def test_what_says_nothing_of_its_elements_takes_all(compiler: str) -> None:
    half = np.zeros(64, np.float16)
    loaded(compiler)["marlin"].launch(wm.Device("sm_90"), 1, 4, [half, np.zeros(4), half.copy(), half.copy()])


@each_compiler
def test_accesses_are_reported_where_nothing_is_declared(compiler: str) -> None:
    report = loaded(compiler)["plain"].launch(wm.Device("sm_90"), 1, 4, [np.zeros(4), np.zeros(4, np.float32)])
    (one,) = report.retyped
    assert str(one).startswith("x holds float64 and was accessed as .f32: k.cu:16: ld.global") and "\n" not in str(one)
    codes = [np.zeros(4, np.uint32), np.zeros(4, np.float32)]
    assert loaded(compiler)["plain"].launch(wm.Device("sm_90"), 1, 4, codes).retyped == ()


@each_compiler
def test_names_of_the_source_are_taken_and_told(compiler: str) -> None:
    device, module, x = wm.Device("sm_90"), loaded(compiler), np.ones(4, np.float32)
    module["scale"].launch(device, 1, 4, {"n": 4, "factor": 3.0, "x": x})
    assert x.tolist() == [3] * 4
    out, tiles = np.zeros(4, np.float32), np.zeros(2, np.float64)
    module["n::widen<double>"].launch(device, 1, 4, {"in": np.ones(4), "out": out, "tiles": tiles})
    assert out.tolist() == [1] * 4
    with pytest.raises(OperandError, match=r"no parameter 'factors'; did you mean 'factor'\? it has x, factor, n"):
        module["scale"].launch(device, 1, 4, {"x": x, "factors": 3.0, "n": 4})
    with pytest.raises(OperandError, match=r"scale takes 3 arguments, scale\(float\* x, float factor, int n\); got 1"):
        module["scale"].launch(device, 1, 4, [x])
    with pytest.raises(HazardError, match=r"the nearest, x \(16 bytes from 0x\w+\), ends 4 bytes too early"):
        module["scale"].launch(device, 1, 5, [x, 2.0, 5])


@NVRTC
def test_shared_memory_is_told_by_variable() -> None:
    with pytest.raises(HazardError, match=r"lane 1 at address 0x0, sA\[0\] of 4 bytes \(and 30 more lanes\)"):
        loaded()["tile"].launch(wm.Device("sm_90"), 1, 32, [np.zeros(32, np.float32)])


@NVRTC
@pytest.mark.parametrize(("grid", "block"), [(1, 32), (1, 64), ((2, 2), 1)])
def test_a_lock_without_fences_is_advised_fences(grid: Any, block: int) -> None:
    device, args = wm.Device("sm_90"), [np.zeros(1, np.int32), np.zeros(1, np.int32)]
    with pytest.raises(
        HazardError, match=r"orders them only with __threadfence\(\) \(fence.acq_rel.gpu\) on both sides"
    ):
        loaded()["lock"].launch(device, grid, block, args)
    args = [np.zeros(1, np.int32), np.zeros(1, np.int32)]
    loaded(options=["-DFENCED"])["lock"].launch(device, grid, block, args)
    assert args[1][0] == np.prod(grid) * block


@NVRTC
def test_the_fixture_checks_and_takes_names() -> None:
    gpu = Gpu("sm_90")
    module = gpu.load(SOURCE, "k.cu")
    x = gpu.device().array(np.ones(4, np.float32))
    gpu.launch(module["scale"], 1, 4, {"x": x, "factor": 2.0, "n": 4})
    assert x.numpy().tolist() == [2] * 4
    with pytest.raises(OperandError, match="is an array of float64; expected float32"):
        gpu.launch(module["scale"], 1, 4, [np.zeros(4), 2.0, 4])


@NVRTC
def test_the_command_checks_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    command = ["run", str(path), "--grid", "1", "--block", "4", "--kernel"]
    assert main([*command, "scale", "--arg", "n=4", "--arg", "factor=2", "--arg", "x=f64[4]:ones"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "scale(float* x, float factor, int n), float* x, is an array of float64; expected float32" in said
    assert main([*command, "plain", "--arg", "x=f64[4]:ones", "--arg", "y=f32[4]"]) == 0
    assert "x holds float64 and was accessed as .f32: k.cu:16: ld.global" in " ".join(capsys.readouterr().out.split())
