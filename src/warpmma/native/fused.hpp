// Fused dot-adds of a tile in f32 and int32: rules 1 to 12 of arithmetic/exact/reference.py for R rows against W lanes.
//
// Why that is exact:
// * Its operands are finite, no f32 subnormals, and their nominal exponents sum to at most 125. A product of two
//   significands of at most 11 bits (8 of bf16) has at most 22 and is exact in f32, but below 2^-126.
// * F is at most 25 (check.cpp sees to it). With E between -100 and 125 the scale 2^(F - E) is normal, and
//   scaling is exact above 2^-126. A product, an accumulator or a scaled value below that is below the quantum and
//   comes out as 0, as it must: 2^(E - F) >= 2^-125. Where E would be lower, since all that is not zero is so small,
//   or higher, the tile is done again on the exact path.
// * Conversion to int32 truncates toward zero, which is rule 5. A scaled addend is below 2^(F + 2), so an int32 holds
//   2^(29 - F) of them (16 for F = 25). Longer steps are added in runs of so many, and where the sum of runs and C
//   overflows, the tile is done again on the exact path.
// * The sum is rounded to f32, and moved one step toward zero if that went away from zero: rule 7 for rz. For f16 the
//   last bit is set if anything was lost, so that the rounding to nearest that follows sees it (24 bits, 11 needed).
//   Scaling back can only overflow, to the infinity that rule 7 wants.
// * So it may as well be computed with subnormals flushed to zero, which spares x86 processors a detour of a hundred
//   cycles for each; but not where C is added last, in full f32.
// What the fast path cannot do it notices: it leaves C as it was and returns false. exact.hpp does it then.
#pragma once

#include "pack.hpp"

namespace warpmma {
namespace {

constexpr int kLow = -100, kHigh = 125;

template <int W>
WARPMMA_INLINE typename Vec<W>::F power(typename Vec<W>::I exponent) {
  return bits<typename Vec<W>::F>((exponent + F32::kBias) << F32::kFraction);
}

// Nominal exponent of an accumulator.
template <int W>
WARPMMA_INLINE typename Vec<W>::I accumulator_exponent(typename Vec<W>::F c, int emin) {
  using I = typename Vec<W>::I;
  const I x = bits<I>(c) & INT32_MAX;
  return x == 0 ? I{} + kNone : larger<I>((x >> F32::kFraction) - F32::kBias, I{} + emin);
}

// Round f32 values of 24 bits to f16 and to nearest even; what is too large becomes infinity, the sign stays.
template <int W>
WARPMMA_INLINE typename Vec<W>::F to_half(typename Vec<W>::F x) {
  using F = typename Vec<W>::F;
  using I = typename Vec<W>::I;
  constexpr int kDropped = F32::kFraction - F16::kFraction;
  const I magnitude = bits<I>(x) & INT32_MAX, sign = bits<I>(x) & INT32_MIN;
  // Adding 1.5 * 2^(e + 13) leaves a last place of 2^(e - 10).
  const I field = larger<I>(magnitude >> F32::kFraction, I{} + (F16::kEmin + F32::kBias));
  const F shifter = bits<F>(((field + kDropped) << F32::kFraction) | F32::kQuiet);
  I y = bits<I>((bits<F>(magnitude) + shifter) - shifter);
  y = y >= F32::power(F16::kBias + 1) ? I{} + F32::kInfinity : y;
  y = magnitude >= F32::kInfinity ? magnitude : y;
  return bits<F>(y | sign);
}

// D = C + x, IEEE addition in D's format, to nearest even. For f16 rounding to f32 first does no harm: 24 bits are
// twice 11 and two more (Figueroa, "When is double rounding innocuous?", 1995).
template <int W>
WARPMMA_INLINE typename Vec<W>::F add(const Parameters& p, typename Vec<W>::F c, typename Vec<W>::F x) {
  return p.half ? to_half<W>(c + x) : c + x;
}

// Least exponent of D.
WARPMMA_INLINE int emin_of_d(const Parameters& p) { return p.half ? F16::kEmin : F32::kEmin; }

// Flushes subnormals while it lives. Nothing is moved out of its scope: everything computed there is loaded from
// memory.
class Flush {
 public:
  explicit Flush(bool on) : on_(on) {
#if defined(__x86_64__)
    if (on_) _mm_setcsr(kDefault | _MM_FLUSH_ZERO_ON | kDenormalsAreZero);
    asm volatile("" ::: "memory");
#endif
  }
  ~Flush() {
#if defined(__x86_64__)
    asm volatile("" ::: "memory");
    if (on_) _mm_setcsr(kDefault);
#endif
  }

 private:
#if defined(__x86_64__)
  static constexpr unsigned kDefault = _MM_MASK_MASK;    // no exception traps, to nearest: IEEE 754's environment
  static constexpr unsigned kDenormalsAreZero = 1 << 6;  // <pmmintrin.h> has it for SSE3 alone
#endif
  [[maybe_unused]] bool on_;
};

// What follows from the parameters for every step.
struct Steps {
  WARPMMA_INLINE explicit Steps(const Parameters& p)
      : run(p.fraction_bits >= 14 ? 1 << (29 - p.fraction_bits) : 1 << 15),
        low(p.floor > kLow ? p.floor : kLow),
        keep(-1 << (F32::kFraction - p.result_bits)) {}

  const int run;       // products that an int32 holds the sum of
  const int low;       // least alignment exponent
  const int32_t keep;  // bits of a result that is rounded toward zero
};

// Rule 4 without the accumulator: the largest nominal exponent of a step's products, row by row. Those of a dense
// product come in pairs of k.
template <int W, int R, bool Sparse>
WARPMMA_INLINE void largest_exponents(const Panel& v, const Panel& s, int64_t first, int64_t last,
                                      typename Vec<W>::I (&e)[R]) {
  using I = typename Vec<W>::I;
  using Pair = typename Vec<W>::Pair;
  if constexpr (Sparse) {
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) e[r] = I{} + kNone;
    for (int64_t k = first; k < last; k++)
#pragma GCC unroll 8
      for (int r = 0; r < R; r++)
        e[r] = larger<I>(e[r], load<I>(v.exponent + s.row[k * R + r] * W) + s.exponent[k * R + r]);
  } else {
    Pair both[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) both[r] = Pair{} + static_cast<int16_t>(kNone);
    for (int64_t k = first / 2; k < last / 2; k++) {
      const Pair of_v = load<Pair>(v.exponent + k * W);
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) both[r] = larger<Pair>(both[r], of_v + bits<Pair>(I{} + s.exponent[k * R + r]));
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      const I pair = bits<I>(both[r]);
      e[r] = larger<I>(pair >> 16, (pair << 16) >> 16);
    }
  }
}

// Rules 5 and 6 for a run of products that an int32 holds the sum of.
template <int W, int R, bool Sparse>
WARPMMA_INLINE void add_run(const Panel& v, const Panel& s, int64_t first, int64_t last,
                            const typename Vec<W>::F (&scale)[R], typename Vec<W>::I (&sum)[R]) {
  using F = typename Vec<W>::F;
  using I = typename Vec<W>::I;
  const float* const value = static_cast<const float*>(v.value);
  const float* const scalar = static_cast<const float*>(s.value);
  for (int64_t k = first; k < last; k++) {
    if constexpr (Sparse) {
#pragma GCC unroll 8
      for (int r = 0; r < R; r++)
        sum[r] += convert<I>(load<F>(value + s.row[k * R + r] * W) * scalar[k * R + r] * scale[r]);
    } else {
      const F of_v = load<F>(value + k * W);
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) sum[r] += convert<I>(of_v * scalar[k * R + r] * scale[r]);
    }
  }
}

// Rules 5 and 6 for all products of a step, run by run. `bad` becomes negative where the sum of runs overflows.
template <int W, int R, bool Sparse>
WARPMMA_INLINE void add_products(const Panel& v, const Panel& s, int64_t first, int count, int run,
                                 const typename Vec<W>::F (&scale)[R], typename Vec<W>::I (&total)[R],
                                 typename Vec<W>::I& bad) {
  using I = typename Vec<W>::I;
  for (int begin = 0; begin < count; begin += run) {
    const int end = begin + run < count ? begin + run : count;
    I sum[R] = {};
    add_run<W, R, Sparse>(v, s, first + begin, first + end, scale, sum);
    if (begin == 0) {
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) total[r] = sum[r];
    } else {
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        const I both = total[r] + sum[r];
        bad |= (total[r] ^ both) & (sum[r] ^ both);
        total[r] = both;
      }
    }
  }
}

// Rules 6, 7 and 9: add the accumulator `x` to the sum of products and round; `e` is the alignment exponent.
template <int W>
WARPMMA_INLINE typename Vec<W>::F round_sum(const Parameters& p, const Steps& all, typename Vec<W>::F x,
                                            typename Vec<W>::I total, typename Vec<W>::F scale, typename Vec<W>::I e,
                                            typename Vec<W>::I& bad) {
  using F = typename Vec<W>::F;
  using I = typename Vec<W>::I;
  constexpr int32_t kUlp = 1 << (30 - F32::kFraction);  // of f32 just below 2^31
  const I of_c = convert<I>(x * scale), sum = total + of_c;
  bad |= (total ^ sum) & (of_c ^ sum);
  bad |= (sum + kUlp) & ~sum;  // what f32 may round to 2^31, which is no int32
  const F rounded = convert<F>(sum);
  const I lost = sum - convert<I>(rounded);
  I y = bits<I>(rounded) + spread<I>((lost ^ sum) & nonzero(lost));
  if (p.nearest) y |= spread(nonzero(lost)) & 1;
  const F unscaled = bits<F>(y) * power<W>(e - p.fraction_bits);
  // A negative number that rounds to zero is +0.
  return p.nearest ? to_half<W>(unscaled) + 0.0f : bits<F>(bits<I>(unscaled) & all.keep);
}

// One step: the accumulators `x` become its results.
template <int W, int R, bool Sparse>
WARPMMA_INLINE void fused_step(const Parameters& p, const Steps& all, const Panel& v, const Panel& s, int64_t first,
                               int emin, typename Vec<W>::F (&x)[R], typename Vec<W>::I& bad) {
  using F = typename Vec<W>::F;
  using I = typename Vec<W>::I;
  I e[R];
  largest_exponents<W, R, Sparse>(v, s, first, first + p.step, e);
  F scale[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) {
    const I largest = larger<I>(e[r], accumulator_exponent<W>(x[r], emin));
    bad |= kHigh - largest;
    if (p.floor < kLow) bad |= (largest - kLow) & ~(largest - kNone / 2);
    e[r] = larger<I>(largest, I{} + all.low);
    scale[r] = power<W>(p.fraction_bits - e[r]);
  }
  I total[R] = {};
  add_products<W, R, Sparse>(v, s, first, p.step, all.run, scale, total, bad);
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) x[r] = round_sum<W>(p, all, x[r], total[r], scale[r], e[r], bad);
}

template <int W, int R, bool Sparse>
WARPMMA_INLINE bool fused_fast(const Parameters& p, const Panel& v, const Panel& s, float* c, int64_t instructions) {
  using F = typename Vec<W>::F;
  using I = typename Vec<W>::I;
  const Steps all(p);
  const int d_emin = emin_of_d(p);
  int emin = p.c.emin;
  const Flush flush(!p.after);
  F d[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) d[r] = load<F>(c + r * W);
  I bad = {};  // where its sign is set
  for (int64_t i = 0; i < instructions; i++) {
    F x[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) x[r] = p.after ? F{} : d[r];
    for (int step = 0; step < p.steps; step++) {
      fused_step<W, R, Sparse>(p, all, v, s, i * p.k + step * p.step, emin, x, bad);
      emin = d_emin;
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) d[r] = p.after ? add<W>(p, d[r], x[r]) : x[r];
  }
  if (any_negative(bad)) return false;
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) store(c + r * W, d[r]);
  return true;
}

}  // namespace
}  // namespace warpmma
