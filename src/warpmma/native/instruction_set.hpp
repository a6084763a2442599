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
#if WARPMMA_X86_64 && defined(__clang__)
#define WARPMMA_TARGET(arch) \
  WARPMMA_PRAGMA(clang attribute push(__attribute__((target("arch=" arch))), apply_to = function))
#elif WARPMMA_X86_64
#define WARPMMA_TARGET(arch) WARPMMA_PRAGMA(GCC target("arch=" arch))
#endif
#if WARPMMA_X86_64 == 4
WARPMMA_TARGET("x86-64-v4")
#elif WARPMMA_X86_64 == 3
WARPMMA_TARGET("x86-64-v3")
#endif
