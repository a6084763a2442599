"""CUDA C++ from a file or a text to a module: kernels by name, lines in hazards, errors with the compiler's log."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.cuda import compilers, nvrtc
from warpmma.machine import HazardError

NVRTC = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())
NVCC = pytest.mark.skipif(not compilers.find_nvcc(), reason="no nvcc")
each_compiler = pytest.mark.parametrize(
    "compiler", [pytest.param("nvrtc", marks=NVRTC), pytest.param("nvcc", marks=NVCC)]
)

SOURCE = """#include <cstdint>
#include <cmath>
#define FACTOR 2
using real = float;
template <typename T, int N>
__global__ void scale(T *x, T f, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= f * N * FACTOR;
}
extern "C" __global__ void mirrored(int *x)
{
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x];
#ifndef RACE
    __syncthreads();
#endif
    x[threadIdx.x] = s[63 - threadIdx.x];
}
"""


@each_compiler
def test_a_text_runs(compiler: str) -> None:
    module = wm.cuda.load(SOURCE, names=["scale<real, 4>", "scale<double, 1>"], compiler=compiler)
    device = wm.Device("sm_90")
    x, y = device.array(np.arange(64, dtype=np.float32)), np.ones(3)
    module["scale<real, 4>"].launch(device, 2, 32, [x, 0.5, 60])
    assert (x.numpy() == np.arange(64) * np.where(np.arange(64) < 60, 4, 1)).all()
    module["scale<double, 1>"].launch(device, 1, 32, [y, 3.0, 2])
    assert (y == [6, 6, 1]).all()
    assert module.target == "sm_80" and len(module) == 3 and module.compiler.lower().startswith(compiler)
    assert set(module.names) == {"scale<real, 4>", "scale<double, 1>"}


@each_compiler
def test_hazards_name_lines_of_the_source(compiler: str) -> None:
    module = wm.cuda.load(SOURCE, name="mirror.cu", options=["-DRACE"], compiler=compiler)
    with pytest.raises(HazardError, match=r"mirror\.cu:18: ld\.shared.*wrote it at mirror\.cu:14"):
        module["mirrored"].launch(wm.Device("sm_80"), 1, 64, [np.zeros(64, np.int32)])
    x = np.arange(64, dtype=np.int32)
    wm.cuda.load(SOURCE, compiler=compiler)["mirrored"].launch(wm.Device("sm_80"), 1, 64, [x])
    assert (x == np.arange(64)[::-1]).all()


@each_compiler
def test_a_file_includes_what_lies_beside_it(compiler: str, tmp_path: Path) -> None:
    (tmp_path / "factor.h").write_text("#define FACTOR 3\n")
    file = tmp_path / "kernel.cu"
    file.write_text('#include "factor.h"\n#line 100 "generated.in"\n__global__ void k(int *x) { *x *= FACTOR; }\n')
    for factor in (3, 5):  # what is included is read again
        (tmp_path / "factor.h").write_text(f"#define FACTOR {factor}\n")
        x = np.array([7], np.int32)
        module = wm.cuda.load(file, compiler=compiler)
        report = module["k"].launch(wm.Device("sm_80"), 1, 1, [x])
        assert x[0] == 7 * factor
        assert {site.line for site in report.costs.instructions} == {100}
        assert {Path(site.file).name for site in report.costs.instructions} == {"generated.in"}


@each_compiler
def test_what_does_not_compile_is_one_error_with_the_log(compiler: str) -> None:
    with pytest.raises(wm.CompilationError, match=r'(?s)^bad\.cu:2: .* refuses it for sm_80\n.*"y" is undefined') as e:
        wm.cuda.load("__global__ void k(int *x)\n{ *x = y; }\n", name="bad.cu", compiler=compiler)
    assert e.value.file == "bad.cu" and e.value.line == 2 and "1 error detected" in e.value.log
    again = pickle.loads(pickle.dumps(e.value))
    assert (str(again), again.line, again.log) == (str(e.value), 2, e.value.log)


@each_compiler
def test_warnings_are_in_the_log(compiler: str) -> None:
    module = wm.cuda.load("__global__ void k(int *x) { int unused; *x = 1; }", compiler=compiler, name="k.cu")
    assert 'k.cu(1): warning #177-D: variable "unused"' in module.log


@each_compiler
def test_headers_are_found(compiler: str) -> None:
    for header, line in (
        ("cuda_fp16.h", "*x = __half2float(__float2half(*x));"), ("cuda_bf16.h", "*x = __bfloat162float(*x);"),
        ("cuda_fp8.h", "*x = float(__nv_fp8_e4m3(*x));"), ("mma.h", "nvcuda::wmma::__float_to_tf32(*x);"),
        ("cooperative_groups.h", "cooperative_groups::this_thread_block().sync();"),
        ("cuda/std/type_traits", "static_assert(cuda::std::is_same<int, int>::value);"),
    ):  # fmt: skip
        assert wm.cuda.load(f"#include <{header}>\n__global__ void k(float *x) {{ {line} }}\n", compiler=compiler)["k"]
        if compiler == "nvcc":  # which takes a second each
            break


@NVRTC
def test_a_block_of_cub_compiles() -> None:
    text = """#include <cub/block/block_reduce.cuh>
        extern "C" __global__ void total(int *x)
        {
            __shared__ cub::BlockReduce<int, 64>::TempStorage storage;
            int sum = cub::BlockReduce<int, 64>(storage).Sum(x[threadIdx.x]);
            if (threadIdx.x == 0) *x = sum;
        }"""
    x = np.arange(64, dtype=np.int32)
    wm.cuda.load(text)["total"].launch(wm.Device("sm_90"), 1, 64, [x])
    assert x[0] == 64 * 63 // 2


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"source": 3}, wm.OperandError, "a source is 3; expected a path, or the text of one"),
        ({"source": "none.cu"}, wm.CompilationError, "none.cu: No such file"),
        ({"source": b"\0\0"}, wm.CompilationError, "<cuda>: is not text: it contains a zero byte"),
        ({"source": b"// \xff\n"}, wm.CompilationError, "<cuda>:1: invalid UTF-8"),
        ({"source": "\n"}, wm.CompilationError, "<cuda>: is empty"),
        ({"source": SOURCE, "arch": "sm_81"}, wm.TargetError, "sm_81"),
        ({"source": SOURCE, "arch": "compute_80"}, wm.TargetError, "compute_80"),
        ({"source": SOURCE, "options": "-DX"}, wm.OperandError, "options is '-DX'; expected a list of strings"),
        ({"source": SOURCE, "names": [1]}, wm.OperandError, r"names is \[1\]; expected a list of strings"),
        ({"source": SOURCE, "compiler": "clang"}, wm.OperandError, "compiler is 'clang'; expected 'auto'"),
        ({"source": SOURCE, "name": 1}, wm.OperandError, "the name of a module is 1"),
    ],
)
def test_what_cannot_be_a_source(given: dict[str, Any], error: type[wm.WarpmmaError], says: str) -> None:
    with pytest.raises(error, match=says):
        wm.cuda.load(**given)


def test_without_a_compiler_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    nvrtc._library.cache_clear()
    monkeypatch.setattr(compilers, "find_nvcc", lambda: "")
    try:
        for compiler, says in (
            ("auto", r"^CUDA C\+\+ needs NVRTC, and cuda-bindings is not installed: pip install 'warpmma\[cuda\]' "
             r"\(or have nvcc on the PATH\)$"),
            ("nvrtc", r"pip install 'warpmma\[cuda\]'$"),
            ("nvcc", r"^nvcc is on no PATH"),
        ):  # fmt: skip
            with pytest.raises(wm.CompilationError, match=says):
                wm.cuda.load(SOURCE, compiler=compiler, name="nobody compiled it")
    finally:
        nvrtc._library.cache_clear()


@NVRTC
def test_the_library_writes_no_bytes_that_others_have() -> None:
    """Python has one object for each single byte, and an empty log is one byte long."""
    wm.cuda.load("__global__ void nothing() { }", compiler="nvrtc")
    assert bytes([0x20, 0x00]) == b" \0" and b"a b".split(b" ") == [b"a", b"b"]


@NVRTC
def test_a_template_without_an_instance_is_said_to_be_one() -> None:
    module = wm.cuda.load(SOURCE, compiler="nvrtc")
    for name, asked in (("scale", "scale<...>"), ("scale<float, 2>", "scale<float, 2>")):
        with pytest.raises(wm.OperandError, match="no entry") as error:
            module[name]
        assert error.value.__notes__ == [
            f"scale is a template: load(..., names=['{asked}']) compiles an instance of it"
        ]
    with pytest.raises(wm.OperandError, match="no entry 'scala'") as error:
        module["scala"]
    assert not hasattr(error.value, "__notes__")
