"""Whole programs through NVRTC: what is the host's is left out, lines stay, and what is launched is compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpmma as wm
from warpmma.cuda import nvrtc
from warpmma.cuda.pieces import blanked, launched, pieces_of
from warpmma.machine import HazardError

pytestmark = pytest.mark.quick

NVRTC = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())

PROGRAM = r"""#include <cuda_runtime.h>
#include <cstdio>
#include <iostream>
#include <vector>
#include "own.h"
#include <helper_cuda.h>
#define CHECK(x) do { if ((x) != cudaSuccess) { fprintf(stderr, "}{\n"); exit(1); } } while (0)
#define ON_GPU __device__ inline
static void fill(std::vector<float> &v) { for (auto &x : v) x = rand() / float(RAND_MAX); }
constexpr int rounded(int n, int step) { return (n + step - 1) / step * step; }
struct Shape { int n; float f; int size() const { return n; } };
struct Timer { cudaEvent_t start; Timer() { cudaEventCreate(&start); } };
template <typename T> T largest(T a, T b) { return a > b ? a : b; }
std::vector<int> sizes;
namespace parts {
ON_GPU float half_of(float x) { return x * 0.5f; }
float on_host(float x) { std::cout << x << "\n"; return x; }
}
template <int N, typename T>
__global__ void scale(T *x, Shape s)
{
    __shared__ T tile[rounded(60, 32)];
    int i = threadIdx.x;
    tile[i] = x[i];
#ifndef RACE
    __syncthreads();
#endif
    if (i < s.size()) x[i] = parts::half_of(tile[63 - i]) * N * s.f + M_PI * OWN;
}
int main(int argc, char **argv)
{
    float *d; std::vector<float> h(1024); fill(h);
    CHECK(cudaMalloc(&d, 4096));
    scale<4><<<4, 256>>>(d, Shape{1024, 2.f});
    scale<2, float><<<rounded(3, 2), 256>>>(d, Shape{1024, 2.f});
    std::cout << "done" << std::endl;
    return 0;
}
"""


@NVRTC
def test_a_program_runs(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("#define OWN 1\nvoid check(cudaError_t e) { if (e) exit(1); }\n")
    file = tmp_path / "program.cu"
    file.write_text(PROGRAM)
    module = wm.cuda.load(file, names=["scale<8, double>"], compiler="nvrtc")
    assert set(module.names) == {"scale<8, double>", "scale<2, float>"} and len(module) == 2
    left = " ".join(module.left_out)
    for name in ("main (line 30)", "fill (line 9)", "parts::on_host", "sizes (line 14)", "check (own.h:2)"):
        assert name.removeprefix("parts::") in left
    assert "#include <helper_cuda.h> (line 6)" in left and "#include <vector> (line 4)" in left
    assert "half_of" not in left and "Shape" not in left and "rounded" not in left
    x = np.arange(64, dtype=np.float64)
    struct = np.array((64, 3.0), [("n", np.int32), ("f", np.float32)])[()]
    module["scale<8, double>"].launch(wm.Device("sm_90"), 1, 64, [x, struct])
    assert np.allclose(x, np.arange(64)[::-1] * 12 + np.pi)


@NVRTC
def test_lines_stay(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("#define OWN 1\n")
    (tmp_path / "program.cu").write_text(PROGRAM)
    module = wm.cuda.load(tmp_path / "program.cu", options=["-DRACE"], compiler="nvrtc")
    struct = np.array((64, 3.0), [("n", np.int32), ("f", np.float32)])[()]
    with pytest.raises(HazardError, match=r"program\.cu:28: ld\.shared.*wrote it at .*program\.cu:24"):
        module["scale<2, float>"].launch(wm.Device("sm_90"), 1, 64, [np.zeros(64, np.float32), struct])


@NVRTC
def test_what_a_kernel_needs_of_the_host_is_said() -> None:
    text = "int twice(int x) { return 2 * x; }\n__global__ void k(int *x) { *x = twice(*x); }\n"
    with pytest.raises(wm.CompilationError, match=r'(?s)^k\.cu:2: .*"twice" is undefined.*left out.*twice \(line 1\)'):
        wm.cuda.load(text, name="k.cu", compiler="nvrtc")


@NVRTC
def test_a_type_is_left_out_as_a_whole() -> None:
    """Without a member that does not compile it would have another layout, silently."""
    text = "struct P { int n; std::string s; float f; };\n__global__ void k(P p, float *x) { *x = p.f; }\n"
    with pytest.raises(wm.CompilationError, match=r'(?s)"P" is undefined.*left out as the host\'s: P \(line 1\)'):
        wm.cuda.load(text, compiler="nvrtc")


def test_pieces() -> None:
    found = pieces_of(
        """
        extern "C" { __global__ void a(int *x) { if (x) { } } }
        namespace n { namespace { int b(int x = int{3}) { return x; } } }
        struct C : D<3> { C() : x{1}, y(2) { } __device__ int e() const { return x; } private: int x, y; };
        enum class E { one, two };
        template <typename T, int N = (3 > 2)> struct F { T x[N]; };
        int g[] = {1, 2}, h = 3;
        struct C i(int x) { return {}; }
        bool operator==(const C &a, const C &b) { return true; }
        auto j = [](int x) { return x; };
        const char *k = "}{;"; // }
        char l = '"'; int m = 1'000;
        __constant__ float o[4] = {1, 2, 3, 4};
        C::C(int x) : x{x} { }
        """
    )
    flat = [(x.kind, x.name, x.device, x.constant) for x in found]
    assert flat == [
        ("namespace", "extern", True, False), ("namespace", "n", False, False), ("class", "D", True, True),
        ("statement", "E", False, True), ("class", "F", False, True), ("statement", "g", False, False),
        ("function", "i", False, True), ("function", "operator", False, False), ("statement", "j", False, False),
        ("statement", "k", False, True), ("statement", "l", False, False), ("statement", "m", False, False),
        ("statement", "o", True, False), ("function", "C::C", False, False),
    ]  # fmt: skip
    assert [x.name for x in found[1].inner[0].inner] == ["b"]
    assert [(x.kind, x.name) for x in found[2].inner] == [("function", "C"), ("function", "e"), ("statement", "y")]


def test_braces_that_do_not_match_are_left_to_the_compiler() -> None:
    (piece,) = pieces_of("void f() {\n#if A\n if (x) {\n#else\n if (y) {\n#endif\n } }\n")
    assert piece.device and piece.kind == "statement"


def test_blanks_keep_lines_columns_and_directives() -> None:
    text = "int a;\nvoid f()\n{\n#define X 1\n  g(); /* #define */\n}\nint b;\n"
    f = pieces_of(text)[1]
    assert blanked(text, [(f.start, f.end)]).split("\n") == [
        "int a;", " " * 8, " ", "#define X 1", " " * 20, " ", "int b;", ""
    ]  # fmt: skip


def test_what_is_launched() -> None:
    text = "// k<9><<<1, 1>>>()\nf<int, g<3>><<<n, m>>>(); k<<<1, 2>>>(); a :: b<1> <<<1, 1>>>(); "
    text += text[20:]
    assert launched(text) == ["f<int, g<3>>", "a :: b<1>"]


def test_attributes_and_names_that_look_like_macros() -> None:
    found = pieces_of(
        "typedef struct __align__(4) { char r, g; } RG; struct alignas(8) S { int x; }; float WrapperCUDA1(int n) { }\n"
        "LIB_DEVICE_INLINE int f() { } __attribute__((noinline)) int g() { }"
    )
    assert [(x.kind, x.name, x.device) for x in found] == [
        ("class", "struct", False), ("class", "S", False), ("function", "WrapperCUDA1", False),
        ("function", "f", True), ("function", "g", False),
    ]  # fmt: skip
