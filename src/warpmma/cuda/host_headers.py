"""Standard headers that NVRTC does not have, as far as kernels use them.

1. What is for the host alone (streams, containers, files) is empty: `printf` and `assert` are NVRTC's own.
2. Numbers of <limits.h>, <float.h> and types of <stdint.h> are CUDA's, on 64-bit Linux.
3. Functions of <math.h> are NVRTC's own; in <cmath> they are in `std`, too.
4. What CUDA has in `cuda::std` is in `std`, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["STANDARD_HEADERS"]

_EMPTY = """
    algorithm assert.h cassert cctype chrono condition_variable cstdio cstdlib ctime ctype.h deque exception filesystem
    fstream future getopt.h iomanip ios iosfwd iostream istream list map mutex omp.h ostream queue random regex set
    signal.h sstream stack stdexcept stdio.h stdlib.h streambuf string strings.h sys/resource.h sys/stat.h sys/time.h
    sys/types.h thread time.h typeinfo unistd.h unordered_map unordered_set vector
    cuda_runtime_api.h cuda.h cuda_profiler_api.h device_launch_parameters.h nvToolsExt.h
"""
"""Rule 1."""

_STANDARD = """
    array atomic bit bitset cassert complex concepts functional initializer_list iterator limits memory numbers numeric
    optional ratio span tuple type_traits utility variant
"""
"""Rule 4."""

_FUNCTIONS = """
    abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma
    fmax fmin fmod frexp hypot ilogb isfinite isinf isnan ldexp lgamma llrint llround log log10 log1p log2 logb lrint
    lround modf nearbyint nextafter pow remainder remquo rint round scalbln scalbn signbit sin sinh sqrt tan tanh
    tgamma trunc
"""

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

_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "long"}


def _macros(values: Mapping[str, str]) -> str:
    return "".join(f"#ifndef {name}\n#define {name} {text}\n#endif\n" for name, text in values.items())


def _integers() -> str:
    """Rule 2: exact, least and fast types, as glibc has them, and their limits."""
    types, numbers = {}, {}
    for bits, word in _INTEGERS.items():
        signed, suffix = "signed char" if bits == 8 else word, {64: "L"}.get(bits, "")
        fast = {8: "signed char"}.get(bits, "long"), {8: "unsigned char"}.get(bits, "unsigned long")
        types |= {f"int{bits}_t": signed, f"uint{bits}_t": f"unsigned {word}"}
        types |= {f"int_least{bits}_t": signed, f"uint_least{bits}_t": f"unsigned {word}"}
        types |= {f"int_fast{bits}_t": fast[0], f"uint_fast{bits}_t": fast[1]}
        most = (1 << (bits - 1)) - 1
        unsigned = f"{2 * most + 1}{'U' if bits >= 32 else ''}{suffix}"
        numbers |= {f"INT{bits}_MAX": f"{most}{suffix}", f"UINT{bits}_MAX": unsigned}
        numbers |= {f"INT{bits}_MIN": f"(-{most}{suffix} - 1)"}
    for name in ("intptr_t", "intmax_t"):
        types |= {name: "long", f"u{name}": "unsigned long"}
    numbers |= {"SIZE_MAX": "18446744073709551615UL", "INTPTR_MAX": "9223372036854775807L"}
    declared = "".join(f"typedef {text} {name};\n" for name, text in types.items())
    return declared + _macros(numbers) + f"namespace std {{ {' '.join(f'using ::{x};' for x in types)} }}\n"


def _once(name: str, text: str) -> str:
    guard = f"WARPMMA_{name}"
    return f"#ifndef {guard}\n#define {guard}\n{text}#endif\n"


def _headers() -> dict[str, str]:
    headers = dict.fromkeys(_EMPTY.split(), "")
    for name in _STANDARD.split():
        headers[name] = f"#include <cuda/std/{name}>\nnamespace std {{ using namespace ::cuda::std; }}\n"
    math = _macros(_MATH)
    integers, limits, floats = _once("STDINT", _integers()), _macros(_LIMITS), _macros(_FLOATS)
    in_std = f"namespace std {{ {' '.join(f'using ::{x};' for x in _FUNCTIONS.split())} }}\n"
    for c, cpp, text, more in (
        ("math.h", "cmath", math, _once("CMATH", in_std)), ("stdint.h", "cstdint", integers, ""),
        ("inttypes.h", "cinttypes", integers, ""), ("limits.h", "climits", limits, ""),
        ("float.h", "cfloat", floats, ""), ("stddef.h", "cstddef", "", "namespace std { using ::size_t; }\n"),
        ("string.h", "cstring", "", "namespace std { using ::memcpy; using ::memset; }\n"),
    ):  # fmt: skip
        headers |= {c: text, cpp: text + more}
    return headers


STANDARD_HEADERS: Mapping[str, str] = MappingProxyType(_headers())
"""Texts, by what is written between the brackets of `#include`."""
