// Vector types of W lanes, and the few operations on them that have no operator.
//
// The engine's headers are compiled once for each instruction set, and all that they define is in an unnamed namespace:
// the linker could otherwise take a function of one set for another's. Vectors are passed to inlined functions alone,
// so that nothing is called through a vector ABI. What is large and not needed for every product, or in several places,
// stays a function of its own: with all of it in one function, that takes GCC five times as long.
#pragma once

#include <cstdint>
#include <cstring>

#include "numbers.hpp"

#define WARPMMA_INLINE inline __attribute__((always_inline))
#define WARPMMA_APART __attribute__((noinline))

namespace warpmma {
namespace {

template <int W>
struct Vec {
  typedef float F __attribute__((vector_size(4 * W)));
  typedef int32_t I __attribute__((vector_size(4 * W)));
  typedef uint32_t Word __attribute__((vector_size(4 * W)));
  typedef int16_t Pair __attribute__((vector_size(4 * W)));  // two to a lane
  // Doubles come in halves of W / 2 lanes, with integers and floats to match.
  typedef double D __attribute__((vector_size(4 * W)));
  typedef int64_t L __attribute__((vector_size(4 * W)));
  typedef uint64_t U __attribute__((vector_size(4 * W)));
  typedef int32_t Ih __attribute__((vector_size(2 * W)));
  typedef float Fh __attribute__((vector_size(2 * W)));
};

template <class To, class From>
WARPMMA_INLINE To bits(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}

template <class V>
WARPMMA_INLINE V load(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class V>
WARPMMA_INLINE void store(void* p, V v) {
  std::memcpy(p, &v, sizeof v);
}

// N words of 32 bits from anywhere. GCC does not make gather instructions of the loop; of the widest without a mask,
// and of those of doubles, it warns, for they begin with numbers that nobody has set.
template <int N>
WARPMMA_INLINE typename Vec<N>::I gather(const uint32_t* base, const int32_t* index) {
#if WARPMMA_X86_64 == 4
  if constexpr (N == 16)
    return (typename Vec<N>::I)_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), 0xFFFF, load<__m512i>(index), base,
                                                           4);
#endif
#if WARPMMA_X86_64 >= 3
  if constexpr (N == 8)
    return (typename Vec<N>::I)_mm256_i32gather_epi32(reinterpret_cast<const int*>(base), load<__m256i>(index), 4);
#endif
  typename Vec<N>::I x;
  for (int i = 0; i < N; i++) x[i] = static_cast<int32_t>(base[index[i]]);
  return x;
}

// Doubles, half of N, likewise.
template <int N>
WARPMMA_INLINE typename Vec<N>::D gather(const double* base, const int32_t* index) {
#if WARPMMA_X86_64 == 4
  if constexpr (N == 16)
    return (typename Vec<N>::D)_mm512_mask_i32gather_pd(_mm512_setzero_pd(), 255, load<__m256i>(index), base, 8);
#endif
#if WARPMMA_X86_64 >= 3
  if constexpr (N == 8)
    return (typename Vec<N>::D)_mm256_mask_i32gather_pd(_mm256_setzero_pd(), base, load<__m128i>(index),
                                                        (__m256d)_mm256_set1_epi64x(-1), 8);
#endif
  typename Vec<N>::D x;
  for (int i = 0; i < N / 2; i++) x[i] = base[index[i]];
  return x;
}

// Multiply and add with one rounding, where the set has an instruction for it; elsewhere number by number.
template <int W>
WARPMMA_INLINE typename Vec<W>::D fma(typename Vec<W>::D a, typename Vec<W>::D b, typename Vec<W>::D c) {
#if WARPMMA_X86_64 == 4
  if constexpr (W == 16) return (typename Vec<W>::D)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#endif
#if WARPMMA_X86_64 >= 3
  if constexpr (W == 8) return (typename Vec<W>::D)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#endif
  for (int i = 0; i < W / 2; i++) c[i] = __builtin_fma(a[i], b[i], c[i]);
  return c;
}

// The same of numbers, with the choice among NaN operands of NVIDIA's hardware (rule 15 of
// arithmetic/exact/reference.py).
WARPMMA_INLINE double fma_with_payloads(double a, double b, double r) {
  const double result = __builtin_fma(a, b, r);
  if (result == result) return result;
  for (double x : {b, r, a})
    if (x != x) return bits<double>(bits<int64_t>(x) | F64::kQuiet);
  return bits<double>(INT64_MIN | F64::kInfinity | F64::kQuiet);
}

template <class V>
WARPMMA_INLINE V larger(V a, V b) {
  return a > b ? a : b;
}

template <class To, class From>
WARPMMA_INLINE To convert(From x) {
  return __builtin_convertvector(x, To);
}

// Conditions that are kept are kept in the sign of an integer: GCC 12 takes 512-bit comparisons apart unless they
// choose between two vectors at once.

// The sign bit spread over the lane.
template <class V>
WARPMMA_INLINE V spread(V x) {
  return x >> 31;
}

// Sign set where x is not 0.
template <class V>
WARPMMA_INLINE V nonzero(V x) {
  return x | -x;
}

template <class V>
WARPMMA_INLINE bool any_negative(V x) {
  uint64_t words[sizeof(V) / 8], all = 0;
  std::memcpy(words, &x, sizeof x);
  for (uint64_t word : words) all |= word;
  constexpr uint64_t kSigns = ~uint64_t{0} / UINT32_MAX << 31;  // one in each half
  return (all & kSigns) != 0;
}

template <class V>
WARPMMA_INLINE int32_t largest(V v) {
  int32_t most = v[0];
  for (unsigned i = 1; i < sizeof(V) / 4; i++) most = v[i] > most ? v[i] : most;
  return most;
}

}  // namespace
}  // namespace warpmma
