"""Missing headers are errors, but for a stated list; a condition that asks for a macro of those is a warning."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import warpmma as wm
from warpmma.cuda import LeftOutWarning, compilers, nvrtc
from warpmma.cuda.host_headers import LEFT_OUT, MACROS, STANDARD_HEADERS, doubts
from warpmma.cuda.sources import SourceFile, missing_header

NVRTC = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())
NVCC = pytest.mark.skipif(not compilers.find_nvcc(), reason="no nvcc")
each_compiler = pytest.mark.parametrize(
    "compiler", [pytest.param(x, marks=NVRTC) for x in ("nvrtc", "auto")] + [pytest.param("nvcc", marks=NVCC)]
)

CONFIGURED = """#ifndef FACTOR
#define FACTOR 1
#endif
__global__ void k(int *x) { *x *= FACTOR; }
int main() { k<<<1, 1>>>(nullptr); }
"""


@each_compiler
@pytest.mark.parametrize("quoted", ['"config.h"', "<config.h>"])
def test_a_missing_header_is_an_error(compiler: str, quoted: str, tmp_path: Path) -> None:
    """Without it, the macro that it defines would take its default."""
    file = tmp_path / "k.cu"
    file.write_text(f"// a program\n#include {quoted}\n{CONFIGURED}")
    says = rf"^{re.escape(str(file))}:2: missing header 'config\.h': name its folder with options=\[\"-IFOLDER\"\]"
    with pytest.raises(wm.CompilationError, match=says) as error:
        wm.cuda.load(file, compiler=compiler)
    assert (error.value.file, error.value.line) == (str(file), 2) and "config.h" in error.value.log
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "config.h").write_text("#define FACTOR 3\n")
    x = np.array([5], np.int32)
    wm.cuda.load(file, compiler=compiler, options=["-I", str(tmp_path / "include")])["k"].launch(
        wm.Device("sm_80"), 1, 1, [x]
    )
    assert x[0] == 15


@NVRTC
def test_a_header_that_includes_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("\n#include <deeper/config.h>\n")
    with pytest.raises(wm.CompilationError, match=r"/own\.h:2: missing header 'deeper/config\.h'") as error:
        wm.cuda.load('#include "own.h"\n' + CONFIGURED, name=str(tmp_path / "k.cu"), options=[f"-I{tmp_path}"],
                     compiler="nvrtc")  # fmt: skip
    assert error.value.line == 0


@NVRTC
@pytest.mark.parametrize("header", ["curand_missing.h", "cub/missing.cuh", "thrust/missing.h"])
def test_headers_of_the_toolkit_are_installed(header: str) -> None:
    with pytest.raises(wm.CompilationError, match=r"part of CUDA's toolkit: pip install 'warpmma\[cuda\]'"):
        wm.cuda.load(f"#include <{header}>\n{CONFIGURED}", compiler="nvrtc")


@NVRTC
@pytest.mark.parametrize("quoted", ["<vector>", '"vector"', '"helper_cuda.h"', "<mpi.h>", '"cuda_runtime.h"', "<new>"])
def test_headers_of_the_list_are_left_out_without_a_warning(quoted: str) -> None:
    module = wm.cuda.load(f"#include {quoted}\n{CONFIGURED}", compiler="nvrtc")
    there = any((x / quoted[1:-1]).is_file() for x in nvrtc.include_folders(nvrtc.nvrtc_version()[0]))
    assert module.left_out == ("main (line 6)", *([] if there else [f"#include <{quoted[1:-1]}> (line 1)"]))


CONDITION = """#include <cstdio>
#include <sys/param.h>  // #if NBBY
#ifdef BUFSIZ
#define N 2
#elif defined(OWN) || \\
      NBBY > 7
#define N 3
#else
#define N 4
#endif
__global__ void k(int *x) { *x = N; }
"""


@NVRTC
def test_a_condition_on_a_macro_of_such_a_header_is_a_warning() -> None:
    with pytest.warns(LeftOutWarning) as caught:
        wm.cuda.load(CONDITION, name="k.cu", compiler="nvrtc")
    (warning,) = caught  # one of a load, with all places
    first, second = str(warning.message).split("\n")
    assert warning.filename == __file__
    assert first.startswith("k.cu:3: '#ifdef BUFSIZ' asks for BUFSIZ of <cstdio>, which NVRTC does not have")
    assert second.startswith("k.cu:5: '#elif defined(OWN) || NBBY > 7' asks for NBBY of <sys/param.h>")
    with pytest.warns(LeftOutWarning):  # also of a module that was kept
        wm.cuda.load(CONDITION, name="k.cu", compiler="nvrtc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wm.cuda.load(CONDITION, name="k.cu", compiler="nvrtc", options=["-DBUFSIZ=1", "-D", "NBBY=8"])


def test_macros_that_a_replacement_defines_are_no_doubt() -> None:
    text = "#include <climits>\n#if INT_MAX > 3\n#endif\n#if PATH_MAX > 3\n#endif\n"
    file = SourceFile(name="k.cu", text=text, folder=Path())
    assert [x.split(": ")[0] for x in doubts([file], {"climits"}, set())] == ["k.cu:4"]
    assert doubts([file], set(), set()) == ()  # the header is there
    guards = SourceFile(
        name="k.cu", text="#include <mpi.h>\n#ifdef MPI_H_\n#endif\n#ifdef MPI_COMM\n#endif", folder=Path()
    )
    assert [x.split(": ")[0] for x in doubts([guards], {"mpi.h"}, set())] == ["k.cu:4"]


@NVRTC
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#include <vector>\n__device__ std::vector<int> v;\n__global__ void k() { }", "<vector> is empty for NVRTC"),
        ("#include <cstdio>\n#include <map>\nstruct __device__ A { std::map<int, int>::iterator x; };\n"
         "__global__ void k(A a) { }", "<cstdio>, <map> are empty for NVRTC"),
        ("#include <mpi.h>\n#include <vector>\n__global__ void k(MPI_Comm c) { }", "<mpi.h> is empty for NVRTC"),
    ],
)  # fmt: skip
def test_errors_name_the_empty_header(text: str, says: str) -> None:
    with pytest.raises(wm.CompilationError, match=rf'(?m)^{says}; compiler="nvcc"'):
        wm.cuda.load(text, compiler="nvrtc")


@NVRTC
def test_other_errors_do_not() -> None:
    with pytest.raises(wm.CompilationError) as error:
        wm.cuda.load("#include <vector>\n__global__ void k(int *x) { *x = y; }", compiler="nvrtc")
    assert "empty" not in str(error.value)


@NVRTC
def test_headers_of_a_library_are_taken_as_they_are(tmp_path: Path) -> None:
    """As CUTLASS's: a header without a declaration for the host is another file than the one that others include."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "base.h").write_text(
        "#pragma once\n#include <stdexcept>\nenum class Status { good };\n"
        "inline const char *name(Status) { return nullptr; }\ntemplate <class T> struct holder { T value; };\n"
    )
    (tmp_path / "lib" / "more.h").write_text('#pragma once\n#include "base.h"\nusing held = holder<int>;\n')
    text = "#include <lib/base.h>\n#include <lib/more.h>\n__global__ void k(held *x) { x->value = 7; }\nint main() {}\n"
    module = wm.cuda.load(text, options=[f"-I{tmp_path}"], compiler="nvrtc")
    assert module.left_out == ("main (line 4)", "#include <stdexcept> (lib/base.h:2)")
    x = np.zeros(1, np.int32)
    module["k"].launch(wm.Device("sm_80"), 1, 1, [x])
    assert x[0] == 7


def test_the_formats_of_compilers() -> None:
    for log, expected in (
        ('a/k.cu(3): catastrophic error: cannot open source file "b/c.h"\n  #include', ("b/c.h", "a/k.cu", 3)),
        ("a/k.cu:3:10: fatal error: b/c.h: No such file or directory\n", ("b/c.h", "a/k.cu", 3)),
        ("a/k.cu:3:10: fatal error: 'b/c.h' file not found\n", ("b/c.h", "a/k.cu", 3)),
        ('Command-line error: cannot open source file "c.h"\n', ("c.h", "", 0)),
    ):
        found = missing_header(log)
        assert found is not None and (found.name, found.file, found.line) == expected
    assert missing_header('k.cu(2): error: identifier "y" is undefined') is None


def test_the_list_is_of_the_host() -> None:
    assert STANDARD_HEADERS.keys() >= LEFT_OUT and MACROS.keys() <= STANDARD_HEADERS.keys()
    of_device = {"helper_math.h", "curand_kernel.h", "cuda_fp16.h", "mma.h", "config.h", "cub/cub.cuh"}
    assert not of_device & STANDARD_HEADERS.keys()


@NVRTC
def test_numbers_of_integers_are_those_of_the_host() -> None:
    text = """#include <cstdint>
        static_assert(sizeof(UINT64_C(1)) == 8 && UINT64_C(1) << 63 == UINT64_MAX - INT64_MAX && UINT32_C(0) - 1 > 0);
        static_assert(SIZE_MAX == UINT64_MAX && INTPTR_MAX == INT64_MAX && INT8_C(3) == 3 && PTRDIFF_MIN == INT64_MIN);
        __global__ void k() { }"""
    assert wm.cuda.load(text, compiler="nvrtc")["k"]
