// What this processor can run, asked of it and of its operating system: CPUID and XGETBV (Intel 64 and IA-32 Software
// Developer's Manual, volumes 2A and 1, 14.3 and 15.2). `__builtin_cpu_supports` is for compilers with libgcc or
// LLVM's compiler-rt: zig's own (0.17), with which the wheels are built, answers 0 to every question.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

namespace warpmma {

// Levels of the x86-64 psABI: 1 for what every processor has, 3 for AVX2, 4 for AVX-512.
inline int x86_64_level() {
  static const int level = [] {
    struct Leaf {
      unsigned a = 0, b = 0, c = 0, d = 0;
      explicit Leaf(unsigned leaf) { __get_cpuid_count(leaf, 0, &a, &b, &c, &d); }  // zeros where there is none
    };
    const auto all = [](unsigned word, auto... places) { return ((word >> places & 1) && ...); };
    const Leaf basic(1), extended(7), more(0x80000001);
    constexpr int kFma = 12, kMovbe = 22, kPopcnt = 23, kOsxsave = 27, kAvx = 28, kF16c = 29;
    if (!all(basic.c, kFma, kMovbe, kPopcnt, kOsxsave, kAvx, kF16c)) return 1;
    unsigned saved, high;  // which registers the operating system saves
    asm volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    constexpr int kBmi1 = 3, kAvx2 = 5, kBmi2 = 8, kLzcnt = 5, kXmm = 1, kYmm = 2;
    if (!all(extended.b, kBmi1, kAvx2, kBmi2) || !all(more.c, kLzcnt) || !all(saved, kXmm, kYmm)) return 1;
    constexpr int kF = 16, kDq = 17, kCd = 28, kBw = 30, kVl = 31, kMasks = 5, kUpper = 6, kMoreZmm = 7;
    return all(extended.b, kF, kDq, kCd, kBw, kVl) && all(saved, kMasks, kUpper, kMoreZmm) ? 4 : 3;
  }();
  return level;
}

}  // namespace warpmma
#endif
