"""The fixture `gpu` compiles and launches CUDA C++."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warpmma.cuda import compilers, nvrtc
from warpmma.errors import CompilationError, OperandError
from warpmma.machine import HazardError
from warpmma.testing import Gpu, assert_same_bits

COMPILER = pytest.mark.skipif(
    bool(nvrtc.why_no_nvrtc()) and not compilers.find_nvcc(), reason="no compiler of CUDA C++"
)

SOURCE = """
template <typename T> __global__ void scale(T *x, T factor) { x[threadIdx.x] *= factor; }
extern "C" __global__ void reversed(int *x)
{
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = s[63 - threadIdx.x] + ADD;
}
"""


@COMPILER
def test_a_file_is_compiled_and_its_kernels_launched(tmp_path: Path) -> None:
    gpu, path = Gpu("sm_90"), tmp_path / "k.cu"
    path.write_text(SOURCE)
    module = gpu.load(path, options=["-DADD=1"], names=["scale<float>"])
    assert module.target == "sm_80"
    x = np.arange(64, dtype=np.float32)
    gpu.launch(module["scale<float>"], 1, 64, [x, 0.5])
    assert_same_bits(x, np.arange(64, dtype=np.float32) / 2)
    with pytest.raises(HazardError, match=r"k\.cu:7.*: race: .*k\.cu:6"):
        gpu.launch(module["reversed"], 1, 64, [np.zeros(64, np.int32)])


@COMPILER
def test_a_text_is_known_by_its_kernels() -> None:
    module = Gpu("sm_75").load(SOURCE, "text.cu", options=["-DADD=2"], names=["scale<int>"])
    assert module.target == "sm_75"
    assert Gpu("sm_90").load(SOURCE.encode(), options=["-DADD=2"], arch="sm_90").target == "sm_90"
    with pytest.raises(CompilationError, match="ADD"):
        Gpu("sm_90").load(SOURCE, "text.cu")


def test_options_of_cuda_are_for_cuda() -> None:
    with pytest.raises(OperandError, match=r"arch, options: of CUDA C.. alone; 'kernel.ptx' is read as PTX"):
        Gpu("sm_90").load("kernel.ptx", arch="sm_80", options=["-DX"])


WRONG = """
#include <cstdint>
#include <cuda_fp16.h>
extern "C" __global__ void product(const __half *a, const __half *b, float *d, int n, int k)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    a += blockIdx.y * 16 * k, b += blockIdx.x * 8, d += blockIdx.y * 16 * n + blockIdx.x * 8;
    float c[4] = {};
    for (int at = 0; at < k; at += 16) {
        uint32_t x[4], y[2];
        for (int i = 0; i < 4; i++)  // 8 rows further in registers 1 and 3, 8 columns further in 2 and 3
            x[i] = *(const uint32_t *)&a[(g + 8 * (i / 2)) * k + at + 2 * t + 8 * (i % 2)];
        for (int i = 0; i < 2; i++) {
            __half2 pair = __halves2half2(b[(at + 2 * t + 8 * i) * n + g], b[(at + 2 * t + 8 * i + 1) * n + g]);
            y[i] = *(uint32_t *)&pair;
        }
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
    for (int i = 0; i < 4; i++)
        d[(g + 8 * (i / 2)) * n + 2 * t + i % 2] = c[i];
}
"""
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@COMPILER
def test_a_wrong_product_says_what_was_swapped() -> None:
    gpu, rng = Gpu("sm_90"), np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((32, 48), (48, 24)))
    right, wrong = WRONG.replace("i / 2)) * k", "i % 2)) * k").replace("8 * (i % 2)]", "8 * (i / 2)]"), WRONG
    expected = gpu.matmul(a, b, instruction=MMA)
    for text in (right, wrong):
        d = np.zeros((32, 24), np.float32)
        gpu.launch(gpu.load(text, "product.cu"), (3, 2), 32, [a, b, d, 24, 48])
        if text is right:
            assert_same_bits(d, expected, instruction=MMA)
            continue
        with pytest.raises(AssertionError) as caught:
            assert_same_bits(d, expected, instruction=MMA, inputs={"a": a, "b": b, "target": gpu.target})
        assert str(caught.value).splitlines()[-1] == "guess: as if registers 1 and 2 of A were swapped"
