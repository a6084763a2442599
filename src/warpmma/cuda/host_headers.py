"""Host headers that NVRTC does not have, and their replacements: only headers of this list may be missing.

1. Headers for the host alone (streams, containers, files) are empty: `printf` and `assert` are NVRTC's own.
2. Numbers of <limits.h>, <float.h> and types of <stdint.h> are CUDA's, on 64-bit Linux.
3. Functions of <math.h> are NVRTC's own; in <cmath> they are in `std`, too.
4. What CUDA has in `cuda::std` is in `std`, too.
5. Headers of libraries that the host calls define their number types.
6. Each header has a list of the macros that it defines, for preprocessor conditions (rule 9). Macros that ask for a
   host library (`__cpp_lib_span`, `__GLIBCXX__`) are rightly not defined.
7. Any other missing header is an error.
8. What a header declares and its replacement does not is undefined: code that needs it does not compile.
9. Preprocessor conditions are the exception: they take an undefined macro as 0 without an error. Where one asks for a
   macro that a replaced header defines and its replacement does not, the load warns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from ..errors import TableError
from .pieces import without_comments
from .sources import SourceFile, error_places

_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b(?:\\\n|[^\n])*", re.MULTILINE)
_GUARD = re.compile(r"_H(?:PP)?_*$")
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)


class LeftOutWarning(UserWarning):
    """A condition of the preprocessor asks for a macro of a header that was left out: it may choose another branch."""


def listed(files: Sequence[SourceFile], replaced: Collection[str]) -> tuple[str, ...]:
    """Name the headers that were left out, each with the first line that includes it."""
    first: dict[str, str] = {}
    for file in files:
        for _, name, line in file.includes:
            if name in replaced and name in LEFT_OUT:
                first.setdefault(name, f"line {line}" if file is files[0] else f"{file.name}:{line}")
    return tuple(f"#include <{name}> ({place})" for name, place in first.items())


def doubts(files: Sequence[SourceFile], replaced: Collection[str], defined: Collection[str]) -> tuple[str, ...]:
    """Rule 9: name the conditions of the user's files that depend on a macro of a replaced header.

    `replaced` are the headers that were missing, `defined` the macros that options define.
    """
    included = sorted({name for file in files for _, name, _ in file.includes if name in replaced and name in MACROS})
    return tuple(
        f"{file.name}:{line}: {condition!r} asks for {macro} of <{header}>, which NVRTC does not have, so it is not "
        f'defined; -D{macro}=... defines it, and compiler="nvcc" has the header'
        for file in files for line, condition in _conditions(file.text)
        for macro, header in _lacking(condition, included) if macro not in defined
    )  # fmt: skip


def _conditions(text: str) -> Iterator[tuple[int, str]]:
    code = without_comments(text)
    for found in _CONDITION.finditer(code):
        words = re.sub(r"\\\n|//.*|/\*.*?\*/", " ", found[0]).split()
        yield code.count("\n", 0, found.start()) + 1, " ".join(words)


def _lacking(condition: str, headers: Sequence[str]) -> Iterator[tuple[str, str]]:
    for macro in dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*", condition)):
        if _GUARD.search(macro):  # asks whether a header is there, and it is not
            continue
        for header in headers:
            if MACROS[header].fullmatch(macro) and macro not in _DEFINED.findall(STANDARD_HEADERS[header]):
                yield macro, header
                break


def about_empty_headers(files: Sequence[SourceFile], replaced: Collection[str], log: str) -> str:
    """Name the empty headers that errors come from: by undefined names, else those of the first file with an error."""
    undefined = [x.lower() for x in re.findall(r'identifier "(\w+)" is undefined', log)]
    told = [x for x in _left_out_of(files, replaced) if any(_may_declare(x, name) for name in undefined)]
    if not told and re.search(r"\bstd\b", log):
        place = [file for file, _ in error_places(log)[:1]]
        first = [x for x in files if any(file == x.name or file.endswith(f"/{x.name}") for file in place)]
        told = _left_out_of(first, replaced) or _left_out_of(files, replaced)
    if not told:
        return ""
    they = ", ".join(f"<{x}>" for x in told)
    return f'{they} {"is" if len(told) == 1 else "are"} empty for NVRTC; compiler="nvcc" has all headers of the host'


def _left_out_of(files: Sequence[SourceFile], replaced: Collection[str]) -> list[str]:
    names = [name for file in files for _, name, _ in file.includes if name in replaced and name in LEFT_OUT]
    return list(dict.fromkeys(names))


def _may_declare(header: str, name: str) -> bool:
    """Return whether a name in small letters sounds like a header's: "vector" of <vector>, "mpi_comm" of <mpi.h>."""
    stem = re.split(r"[_.]", header.lower().rpartition("/")[2])[0]
    return name.startswith(stem) if "." in header else name == stem


_EMPTY = {
    "C++": """
        algorithm any charconv chrono ciso646 codecvt compare condition_variable coroutine deque exception execution
        filesystem format forward_list fstream future generator iomanip ios iosfwd iostream istream list locale map
        memory_resource mutex new ostream print queue random regex scoped_allocator set shared_mutex spanstream sstream
        stack stacktrace stdexcept stdfloat stop_token streambuf string string_view strstream syncstream system_error
        thread typeindex typeinfo unordered_map unordered_set valarray vector version
    """,
    "C": """
        assert.h cassert ctype.h cctype complex.h errno.h cerrno fenv.h cfenv iso646.h locale.h clocale setjmp.h csetjmp
        signal.h csignal stdalign.h cstdalign stdarg.h cstdarg stdatomic.h stdbool.h cstdbool stdio.h cstdio
        stdnoreturn.h tgmath.h ctgmath threads.h time.h ctime uchar.h cuchar wchar.h cwchar wctype.h cwctype
    """,
    "POSIX": """
        alloca.h arpa/inet.h cpuid.h dirent.h dlfcn.h emmintrin.h endian.h err.h error.h execinfo.h fcntl.h features.h
        getopt.h glob.h immintrin.h libgen.h malloc.h netdb.h netinet/in.h poll.h pthread.h pwd.h sched.h semaphore.h
        strings.h sys/ioctl.h sys/ipc.h sys/mman.h sys/param.h sys/resource.h sys/sem.h sys/shm.h sys/socket.h
        sys/stat.h sys/syscall.h sys/time.h sys/timeb.h sys/times.h sys/uio.h sys/un.h sys/utsname.h sys/wait.h syslog.h
        termios.h unistd.h utime.h x86intrin.h xmmintrin.h
    """,
    "CUDA": """
        cuda.h cuda_profiler_api.h cuda_runtime.h cuda_runtime_api.h cudaProfiler.h device_launch_parameters.h
    """,
    "libraries": """
        cudla.h cupti.h curand.h cusolverDn.h cusolverMg.h cusolverRf.h cusolverSp.h cusolver_common.h cusparse.h
        cusparseLt.h cusparse_v2.h cutensor.h mpi.h nccl.h npp.h nppi.h npps.h nvcomp.h nvjpeg.h nvml.h nvscibuf.h
        nvscisync.h nvToolsExt.h nvtx3/nvToolsExt.h nvtx3/nvtx3.hpp omp.h EGL/egl.h EGL/eglext.h GL/freeglut.h GL/gl.h
        GL/glew.h GL/glu.h GL/glut.h GLES3/gl31.h GLES3/gl32.h GLFW/glfw3.h GLUT/glut.h vulkan/vulkan.h X11/Xlib.h
        X11/Xutil.h
    """,
    "samples": """
        drvapi_error_string.h helper_cuda.h helper_cuda_drvapi.h helper_functions.h helper_gl.h helper_image.h
        helper_multiprocess.h helper_string.h helper_timer.h multithreading.h nvrtc_helper.h rendercheck_gl.h
    """,
}
"""Rule 1, by where they are from; the last are those of NVIDIA's samples without code for the device."""

_WITH_TYPES = {
    "#include <cuComplex.h>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n": (
        "cublas.h cublas_v2.h cublas_api.h cublasLt.h cublasXt.h cudnn.h"
    ),
    "#include <cuComplex.h>\ntypedef float cufftReal;\ntypedef double cufftDoubleReal;\n"
    "typedef cuFloatComplex cufftComplex;\ntypedef cuDoubleComplex cufftDoubleComplex;\n": "cufft.h cufftXt.h",
}
"""Rule 5."""

_STANDARD = """
    array atomic barrier bit bitset ccomplex complex concepts expected functional initializer_list iterator latch limits
    mdspan memory numbers numeric optional ranges ratio semaphore source_location span tuple type_traits utility variant
"""
"""Rule 4."""

_MACROS = {
    "stdio.h cstdio": r"BUFSIZ|EOF|(?:FILENAME|FOPEN|TMP)_MAX|L_tmpnam|SEEK_(?:SET|CUR|END)|std(?:in|out|err)",
    "stdlib.h cstdlib": r"EXIT_(?:SUCCESS|FAILURE)|RAND_MAX|MB_CUR_MAX",
    "limits.h climits": r"(?:PATH|NAME|IOV|SSIZE|MB_LEN)_MAX|PIPE_BUF",
    "float.h cfloat": r"(?:FLT|DBL|LDBL)_\w+|DECIMAL_DIG",
    "math.h cmath": r"FP_(?:NAN|INFINITE|ZERO|SUBNORMAL|NORMAL|FAST_FMA[FL]?|ILOGB\w+)|HUGE_VALL|MAXFLOAT|MATH_ERR\w+",
    "stdint.h cstdint inttypes.h cinttypes":
        r"(?:PRI|SCN)[diouxX]\w+|U?INT_(?:LEAST|FAST)\d+_(?:MAX|MIN)|(?:WCHAR|WINT|SIG_ATOMIC)_(?:MAX|MIN)",
    "time.h ctime": r"CLOCKS_PER_SEC|CLOCK_(?:REALTIME|MONOTONIC|PROCESS|THREAD|BOOTTIME)\w*|TIME_UTC",
    "errno.h cerrno": r"errno|E(?:PERM|NOENT|INTR|IO|AGAIN|NOMEM|ACCES|EXIST|INVAL|DOM|RANGE|ILSEQ)",
    "signal.h csignal": r"SIG(?:ABRT|FPE|ILL|INT|SEGV|TERM|HUP|KILL|PIPE|ALRM|USR[12]|_DFL|_IGN|_ERR)",
    "fenv.h cfenv": r"FE_\w+", "locale.h clocale": r"LC_[A-Z]+", "complex.h": r"complex|_Complex_I",
    "stdatomic.h": r"ATOMIC_\w+", "wchar.h cwchar": r"WEOF|WCHAR_(?:MAX|MIN)",
    "unistd.h": r"_POSIX_\w+|_XOPEN_\w+|_SC_\w+|STD(?:IN|OUT|ERR)_FILENO|[FRWX]_OK",
    "fcntl.h": r"O_(?:RDONLY|WRONLY|RDWR|CREAT|EXCL|TRUNC|APPEND|NONBLOCK|SYNC|DIRECT|CLOEXEC)",
    "sys/param.h": r"MAXPATHLEN|NBBY|BSD", "endian.h": r"(?:__)?(?:BYTE_ORDER|LITTLE_ENDIAN|BIG_ENDIAN)",
    "features.h": r"__USE_\w+|_POSIX_\w+", "cuda.h": r"CUDA_VERSION|CUDAAPI|CUDA_CB",
    "cuda_runtime.h cuda_runtime_api.h": r"CUDART_VERSION|__CUDART_\w+",
    "cublas.h cublas_v2.h cublas_api.h cublasLt.h cublasXt.h": r"CUBLAS\w*", "cudnn.h": r"CUDNN_\w+",
    "cufft.h cufftXt.h": r"CUFFT_\w+", "curand.h": r"CURAND_\w+", "cusparse.h cusparse_v2.h": r"CUSPARSE_\w+",
    "cusolverDn.h cusolverMg.h cusolverRf.h cusolverSp.h cusolver_common.h": r"CUSOLVER_\w+",
    "cusparseLt.h": r"CUSPARSELT_\w+", "cutensor.h": r"CUTENSOR_\w+", "cupti.h": r"CUPTI_\w+",
    "mpi.h": r"O?MPI_\w+|MPICH\w*|OPEN_MPI", "nccl.h": r"NCCL_\w+", "nvml.h": r"NVML_\w+",
    "nvToolsExt.h nvtx3/nvToolsExt.h nvtx3/nvtx3.hpp": r"NVTX\w+", "npp.h nppi.h npps.h": r"NPP\w*_\w+",
    "EGL/egl.h EGL/eglext.h": r"EGL_\w+", "vulkan/vulkan.h": r"VK_\w+", "cudla.h": r"CUDLA_\w+",
    "GL/freeglut.h GL/gl.h GL/glew.h GL/glu.h GL/glut.h GLES3/gl31.h GLES3/gl32.h GLFW/glfw3.h GLUT/glut.h":
        r"(?:GLFW|GLEW|GLUT|GLU|GL|FREEGLUT)_\w+",
    "helper_cuda.h helper_string.h helper_functions.h": r"EXIT_WAIVED|CUDART_VERSION",
}  # fmt: skip
"""Rule 6."""

_FUNCTIONS = """
    abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma
    fmax fmin fmod frexp hypot ilogb isfinite isinf isnan ldexp lgamma llrint llround log log10 log1p log2 logb lrint
    lround modf nearbyint nextafter pow remainder remquo rint round scalbln scalbn signbit sin sinh sqrt tan tanh
    tgamma trunc
"""

_TYPES = "typedef unsigned short ushort;\ntypedef unsigned int uint;\ntypedef unsigned long ulong;\n"

_LIMITS = {
    "CHAR_BIT": "8", "SCHAR_MIN": "(-128)", "SCHAR_MAX": "127", "UCHAR_MAX": "255", "CHAR_MIN": "(-128)",
    "CHAR_MAX": "127", "SHRT_MIN": "(-32768)", "SHRT_MAX": "32767", "USHRT_MAX": "65535",
    "INT_MIN": "(-2147483647 - 1)", "INT_MAX": "2147483647", "UINT_MAX": "4294967295U",
    "LONG_MIN": "(-9223372036854775807L - 1L)", "LONG_MAX": "9223372036854775807L",
    "ULONG_MAX": "18446744073709551615UL", "LLONG_MIN": "(-9223372036854775807LL - 1LL)",
    "LLONG_MAX": "9223372036854775807LL", "ULLONG_MAX": "18446744073709551615ULL",
}  # fmt: skip

_FLOATS = {
    "FLT_RADIX": "2", "FLT_MANT_DIG": "24", "DBL_MANT_DIG": "53", "FLT_DIG": "6", "DBL_DIG": "15",
    "FLT_MIN": "1.17549435e-38F", "FLT_MAX": "3.40282347e+38F", "FLT_EPSILON": "1.19209290e-7F",
    "DBL_MIN": "2.2250738585072014e-308", "DBL_MAX": "1.7976931348623157e+308", "DBL_EPSILON": "2.2204460492503131e-16",
    "FLT_MIN_EXP": "(-125)", "FLT_MAX_EXP": "128", "DBL_MIN_EXP": "(-1021)", "DBL_MAX_EXP": "1024",
}  # fmt: skip

_MATH = {
    "NAN": "__int_as_float(0x7fc00000)", "INFINITY": "__int_as_float(0x7f800000)", "HUGE_VALF": "INFINITY",
    "HUGE_VAL": "__longlong_as_double(0x7ff0000000000000LL)", "M_E": "2.7182818284590452354",
    "M_LOG2E": "1.4426950408889634074", "M_LOG10E": "0.43429448190325182765", "M_LN2": "0.69314718055994530942",
    "M_LN10": "2.30258509299404568402", "M_PI": "3.14159265358979323846", "M_PI_2": "1.57079632679489661923",
    "M_PI_4": "0.78539816339744830962", "M_1_PI": "0.31830988618379067154", "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390", "M_SQRT2": "1.41421356237309504880", "M_SQRT1_2": "0.70710678118654752440",
}  # fmt: skip

_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "long long"}  # of 64 as <cuda/std/cstdint> has them

_WITH_SUFFIX = {
    **{f"{u}INT{bits}_C(x)": "x" for u in ("", "U") for bits in (8, 16)}, "INT32_C(x)": "x", "UINT32_C(x)": "x##U",
    "INT64_C(x)": "x##LL", "UINT64_C(x)": "x##ULL", "INTMAX_C(x)": "x##LL", "UINTMAX_C(x)": "x##ULL",
}  # fmt: skip


def _macros(values: Mapping[str, str]) -> str:
    names = {name: name.partition("(")[0] for name in values}
    return "".join(f"#ifndef {names[x]}\n#define {x} {text}\n#endif\n" for x, text in values.items())


def _integers() -> str:
    """Rule 2, in the words of <cuda/std/cstdint>, which may be included, too."""
    types: dict[str, str] = {}
    numbers: dict[str, str] = {}
    for bits, word in _INTEGERS.items():
        of_limits = "LLONG" if bits == 64 else {8: "SCHAR", 16: "SHRT", 32: "INT"}[bits]
        unsigned = of_limits.replace("SCHAR", "CHAR")
        types |= {f"int{bits}_t": f"signed {word}", f"uint{bits}_t": f"unsigned {word}"}
        types |= {f"{u}int_{kind}{bits}_t": f"{u}int{bits}_t" for u in ("", "u") for kind in ("fast", "least")}
        numbers |= {f"INT{bits}_{end}": f"{of_limits}_{end}" for end in ("MIN", "MAX")}
        numbers |= {f"UINT{bits}_MAX": f"U{unsigned}_MAX"}
    for name in ("intptr_t", "intmax_t"):
        types |= {name: "int64_t", f"u{name}": "uint64_t"}
    for name, like in (("INTMAX", "INT64"), ("INTPTR", "INT64"), ("PTRDIFF", "LONG")):
        numbers |= {f"{name}_MIN": f"{like}_MIN", f"{name}_MAX": f"{like}_MAX"}
    numbers |= {"UINTMAX_MAX": "UINT64_MAX", "UINTPTR_MAX": "UINT64_MAX", "SIZE_MAX": "ULONG_MAX"}
    declared = "".join(f"typedef {text} {name};\n" for name, text in types.items())
    in_std = f"namespace std {{ {' '.join(f'using ::{x};' for x in (*types, 'size_t'))} }}\n"
    return declared + _macros({**_LIMITS, **numbers, **_WITH_SUFFIX}) + in_std


def _guarded(name: str, text: str) -> str:
    guard = f"WARPMMA_{name}"
    return f"#ifndef {guard}\n#define {guard}\n{text}#endif\n"


def _headers() -> dict[str, str]:
    headers = dict.fromkeys(" ".join(_EMPTY.values()).split(), "")
    headers |= {name: text for text, names in _WITH_TYPES.items() for name in names.split()}
    for name in _STANDARD.split():
        headers[name] = _guarded(
            name.upper(), f"#include <cuda/std/{name}>\nnamespace std {{ using namespace ::cuda::std; }}\n"
        )
    math = _macros(_MATH)
    integers, limits, floats = _guarded("STDINT", _integers()), _macros(_LIMITS), _macros(_FLOATS)
    in_std = f"namespace std {{ {' '.join(f'using ::{x};' for x in _FUNCTIONS.split())} }}\n"
    for c, cpp, text, more in (
        ("math.h", "cmath", math, _guarded("CMATH", in_std)), ("stdint.h", "cstdint", integers, ""),
        ("inttypes.h", "cinttypes", integers, ""), ("limits.h", "climits", limits, ""),
        ("float.h", "cfloat", floats, ""), ("stddef.h", "cstddef", "", "namespace std { using ::size_t; }\n"),
        ("string.h", "cstring", "", "namespace std { using ::memcpy; using ::memset; }\n"),
        ("memory.h", "memory.h", "", ""),
    ):  # fmt: skip
        headers |= {c: text, cpp: text + more}
    headers |= dict.fromkeys(("sys/types.h", "stdlib.h", "cstdlib"), _guarded("TYPES", _TYPES))
    return headers


STANDARD_HEADERS: Mapping[str, str] = MappingProxyType(_headers())
"""Texts, by the name between the brackets of `#include`."""

LEFT_OUT = frozenset(" ".join((*_EMPTY.values(), *_WITH_TYPES.values())).split())
"""Headers whose text here is empty, or has only number types."""


def _macros_of_headers() -> dict[str, re.Pattern[str]]:
    own = {name: re.compile(pattern) for names, pattern in _MACROS.items() for name in names.split()}
    if unknown := own.keys() - STANDARD_HEADERS.keys():
        raise TableError(f"macros of headers that are not listed: {', '.join(sorted(unknown))}")
    return own


MACROS: Mapping[str, re.Pattern[str]] = MappingProxyType(_macros_of_headers())
"""Rule 6: what the macros of a header are called, of those that have any."""
