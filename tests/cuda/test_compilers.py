"""Which compiler takes what: libraries that need the host go to nvcc, and integers of 128 bits do not have to."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import warpmma as wm
from warpmma.cuda import compilers, nvrtc

NVRTC = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())
NVCC = pytest.mark.skipif(not compilers.find_nvcc(), reason="no nvcc")
LIBRARY = """// a program
#include <cstdio>
#include <cub/device/device_for.cuh>
__global__ void k(int *x) { *x = 1; }
int main() { cub::DeviceFor::Bulk(3, [] __device__ (int) {}); }
"""


@NVRTC
def test_a_library_that_needs_the_host_is_one_line_without_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "find_nvcc", lambda: "")
    says = (
        r"^k\.cu:3: <cub/device/device_for\.cuh> needs nvcc, since NVRTC takes code for the device alone "
        r"\(\d+ errors\): pip install 'warpmma\[nvcc\]' has nvcc, which needs a C\+\+ compiler$"
    )
    with pytest.raises(wm.CompilationError, match=says) as error:
        wm.cuda.load(LIBRARY, name="k.cu")
    assert error.value.line == 3 and "device_for.cuh(" in error.value.log


@NVRTC
@NVCC
def test_a_library_that_needs_the_host_goes_to_nvcc() -> None:
    module = wm.cuda.load(LIBRARY, name="k.cu", options=["--extended-lambda"])
    x = np.zeros(1, np.int32)
    module["k"].launch(wm.Device("sm_80"), 1, 1, [x])
    assert module.compiler.startswith("nvcc") and x[0] == 1
    with pytest.raises(wm.CompilationError, match=r'^k\.cu:3: .* \(\d+ errors\): compiler="nvcc" takes it$'):
        wm.cuda.load(LIBRARY, name="k.cu", compiler="nvrtc")


def _refuse(*given: object) -> None:
    raise AssertionError(f"compiled by the wrong compiler: {given}")


@NVRTC
def test_what_is_wrong_for_the_device_is_not_tried_by_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "find_nvcc", lambda: "nvcc")
    monkeypatch.setattr(compilers, "compile_with_nvcc", _refuse)
    with pytest.raises(wm.CompilationError, match='"y" is undefined'):
        wm.cuda.load("__global__ void k(int *x) { *x = y; }")


@NVRTC
def test_wrong_use_of_a_header_of_cuda_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is in CUDA's header, and nvcc would find it, too."""
    monkeypatch.setattr(compilers, "find_nvcc", lambda: "")
    text = """#include <cuda/std/tuple>
        __global__ void k(int *x) { *x = cuda::std::get<5>(cuda::std::tuple<int>(1)); }"""
    with pytest.raises(wm.CompilationError, match=r"(?s)^k\.cu: NVRTC .* refuses it for sm_80\n.*static.assert"):
        wm.cuda.load(text, name="k.cu")


@NVRTC
def test_host_code_of_a_header_may_be_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "find_nvcc", lambda: "nvcc")
    monkeypatch.setattr(compilers, "compile_with_nvcc", _refuse)
    (tmp_path / "own.h").write_text("int sizes[3];\n")
    with pytest.raises(AssertionError, match="wrong compiler"):
        wm.cuda.load('#include "own.h"\n__global__ void k(int *x) { *x = y; }', options=[f"-I{tmp_path}"])


@NVRTC
def test_only_headers_of_cuda_are_those_that_need_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "find_nvcc", lambda: "")
    (tmp_path / "own.h").write_text("__device__ int f() { return y; }\n")
    with pytest.raises(wm.CompilationError, match=r"(?s)refuses it for sm_80.*own\.h\(1\).*\"y\" is undefined"):
        wm.cuda.load('#include "own.h"\n__global__ void k() { }\n', options=[f"-I{tmp_path}"])


WIDE = """
typedef unsigned __int128 wide;
__global__ void k(const unsigned long long *x, unsigned long long *d)
{
    wide a = ((wide)x[0] << 64) | x[1], b = ((wide)x[2] << 64) | x[3];
    wide all[] = {a * b, a / b, a % b, a + b, (a >> 37) ^ (b << 11)};
    for (int i = 0; i < 5; i++) d[2 * i] = all[i] >> 64, d[2 * i + 1] = all[i];
}
"""


@NVRTC
@pytest.mark.skipif(sys.platform != "linux", reason="NVRTC has 128-bit integers on Linux")
def test_integers_of_128_bits() -> None:
    module = wm.cuda.load(WIDE, compiler="nvrtc")
    rng = np.random.default_rng(0)
    for _ in range(3):
        x, d = rng.integers(0, 2**64, 4, np.uint64, endpoint=False), np.zeros(10, np.uint64)
        x[2] >>= np.uint64(rng.integers(0, 63))
        module["k"].launch(wm.Device("sm_80"), 1, 1, [x, d])
        a, b = (int(x[i]) << 64 | int(x[i + 1]) for i in (0, 2))
        expected = [n % 2**128 for n in (a * b, a // b, a % b, a + b, (a >> 37) ^ (b << 11))]
        assert [int(d[i]) << 64 | int(d[i + 1]) for i in range(0, 10, 2)] == expected
