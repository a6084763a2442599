// What follows is compiled for the instruction set that WARPMMA_X86_64 names: included after all standard headers, so
// that no function of theirs which the linker may share needs a newer processor. No `#pragma once`: of a translation
// unit, one place.
#if !defined(__x86_64__)
#undef WARPMMA_X86_64
#define WARPMMA_X86_64 0
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define WARPMMA_PRAGMA(text) _Pragma(#text)
// Clang is told the features too: a command line that names each of the oldest processor's, and denies the others, as
// zig's does, is stronger than an architecture.
#define WARPMMA_V3 "avx,avx2,bmi,bmi2,cx16,f16c,fma,lzcnt,movbe,popcnt,sse3,ssse3,sse4.1,sse4.2"
#define WARPMMA_V4 WARPMMA_V3 ",avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
#if WARPMMA_X86_64 && defined(__clang__)
#define WARPMMA_TARGET(arch, features) \
  WARPMMA_PRAGMA(clang attribute push(__attribute__((target("arch=" arch "," features))), apply_to = function))
#elif WARPMMA_X86_64
#define WARPMMA_TARGET(arch, features) WARPMMA_PRAGMA(GCC target("arch=" arch))
#endif
#if WARPMMA_X86_64 == 4
WARPMMA_TARGET("x86-64-v4", WARPMMA_V4)
#elif WARPMMA_X86_64 == 3
WARPMMA_TARGET("x86-64-v3", WARPMMA_V3)
#endif
