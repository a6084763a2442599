"""The fixture `gpu` compiles and launches CUDA C++."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warpmma.cuda import nvcc, nvrtc
from warpmma.errors import CompilationError, OperandError
from warpmma.machine import HazardError
from warpmma.testing import Gpu, assert_same_bits

COMPILER = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()) and not nvcc.find_nvcc(), reason="no compiler of CUDA C++")

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
    with pytest.raises(OperandError, match=r"arch, options: of CUDA C.. alone; 'kernel.ptx' is taken for PTX"):
        Gpu("sm_90").load("kernel.ptx", arch="sm_80", options=["-DX"])
