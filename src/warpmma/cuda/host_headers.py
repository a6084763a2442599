"""Standard headers that NVRTC does not have, as far as kernels use them.

1. What is for the host alone (streams, containers, files) is empty: `printf` and `assert` are NVRTC's own.
2. Numbers of <limits.h>, <float.h> and types of <stdint.h> are CUDA's, on 64-bit Linux.
3. Functions of <math.h> are NVRTC's own; in <cmath> they are in `std`, too.
4. What CUDA has in `cuda::std` is in `std`, too.
5. Headers of libraries that the host calls bring the types of numbers that they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["STANDARD_HEADERS"]

_EMPTY = """
    algorithm assert.h cassert cctype chrono condition_variable cstdio ctime ctype.h deque exception filesystem
    fstream future getopt.h iomanip ios iosfwd iostream istream list map mutex omp.h ostream queue random regex set
    signal.h sstream stack stdexcept stdio.h streambuf string strings.h sys/resource.h sys/stat.h sys/time.h
    thread time.h typeinfo unistd.h unordered_map unordered_set vector
    cuda_runtime_api.h cuda.h cuda_profiler_api.h device_launch_parameters.h nvToolsExt.h
"""
"""Rule 1."""

_CUBLAS = "cublas.h cublas_v2.h cublas_api.h cublasLt.h cublasXt.h cudnn.h"
"""Rule 5."""

_STANDARD = """
    array atomic bit bitset complex concepts functional initializer_list iterator limits memory numbers numeric
    optional ratio span tuple type_traits utility variant
"""
"""Rule 4."""

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


def _macros(values: Mapping[str, str]) -> str:
    return "".join(f"#ifndef {name}\n#define {name} {text}\n#endif\n" for name, text in values.items())


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
    declared = "".join(f"typedef {text} {name};\n" for name, text in types.items())
    in_std = f"namespace std {{ {' '.join(f'using ::{x};' for x in (*types, 'size_t'))} }}\n"
    return declared + _macros({**_LIMITS, **numbers}) + in_std


def _guarded(name: str, text: str) -> str:
    guard = f"WARPMMA_{name}"
    return f"#ifndef {guard}\n#define {guard}\n{text}#endif\n"


def _headers() -> dict[str, str]:
    headers = dict.fromkeys(_EMPTY.split(), "")
    headers |= dict.fromkeys(_CUBLAS.split(), "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n")
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
    ):  # fmt: skip
        headers |= {c: text, cpp: text + more}
    headers |= dict.fromkeys(("sys/types.h", "stdlib.h", "cstdlib"), _guarded("TYPES", _TYPES))
    return headers


STANDARD_HEADERS: Mapping[str, str] = MappingProxyType(_headers())
"""Texts, by what is written between the brackets of `#include`."""
