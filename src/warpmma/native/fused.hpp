// Fused dot-adds of a tile: rules 1 to 12 of arithmetic/reference.py for R rows against W lanes.
//
// The fast path works in f32 and int32. Why that is exact:
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
// What the fast path cannot do it notices: it leaves C as it was and returns false.
//
// The exact path works in f64, where products, alignment and sums are exact for every finite operand (as in fused.py),
// and a sum of the unscaled addends says what infinities and NaN make of each element.
#pragma once

#include "pack.hpp"

namespace warpmma {
namespace {

constexpr int kLow = -100, kHigh = 125;

template <int W>
WARPMMA_INLINE typename Vec<W>::F power(typename Vec<W>::I exponent) {
  return bits<typename Vec<W>::F>((exponent + 127) << 23);
}

template <int W>
WARPMMA_INLINE typename Vec<W>::D wide_power(typename Vec<W>::L exponent) {
  return bits<typename Vec<W>::D>((exponent + 1023) << 52);
}

// Nominal exponent of an accumulator.
template <int W>
WARPMMA_INLINE typename Vec<W>::I accumulator_exponent(typename Vec<W>::F c, int emin) {
  using I = typename Vec<W>::I;
  const I x = bits<I>(c) & INT32_MAX;
  return x == 0 ? I{} + kNone : larger<I>((x >> 23) - 127, I{} + emin);
}

// Round f32 values of 24 bits to f16 and to nearest even; what is too large becomes infinity, the sign stays.
template <int W>
WARPMMA_INLINE typename Vec<W>::F to_half(typename Vec<W>::F x) {
  using F = typename Vec<W>::F;
  using I = typename Vec<W>::I;
  const I magnitude = bits<I>(x) & INT32_MAX, sign = bits<I>(x) & INT32_MIN;
  // Adding 1.5 * 2^(e + 13) leaves a last place of 2^(e - 10).
  const I field = larger<I>(magnitude >> 23, I{} + (127 - 14));
  const F shifter = bits<F>(((field + 13) << 23) | 0x400000);
  I y = bits<I>((bits<F>(magnitude) + shifter) - shifter);
  y = y >= 0x47800000 ? I{} + 0x7F800000 : y;  // 2^16
  y = magnitude >= 0x7F800000 ? magnitude : y;
  return bits<F>(y | sign);
}

// D = C + x, IEEE addition in D's format, to nearest even. For f16 rounding to f32 first does no harm: 24 bits are
// twice 11 and two more (Figueroa, "When is double rounding innocuous?", 1995).
template <int W>
WARPMMA_INLINE typename Vec<W>::F add(const Plan& p, typename Vec<W>::F c, typename Vec<W>::F x) {
  return p.half ? to_half<W>(c + x) : c + x;
}

// Flushes subnormals while it lives. Nothing is moved out of its scope: everything computed there is loaded from
// memory.
class Flush {
 public:
  explicit Flush(bool on) : on_(on) {
#if defined(__x86_64__)
    if (on_) _mm_setcsr(0x9FC0);  // IEEE's default, and both flush bits
    asm volatile("" ::: "memory");
#endif
  }
  ~Flush() {
#if defined(__x86_64__)
    asm volatile("" ::: "memory");
    if (on_) _mm_setcsr(0x1F80);
#endif
  }

 private:
  [[maybe_unused]] bool on_;
};

template <int W, int R, bool Sparse>
WARPMMA_INLINE bool fused_fast(const Plan& p, const Panel& v, const Panel& s, float* c, int64_t instructions) {
  using F = typename Vec<W>::F;
  using I = typename Vec<W>::I;
  using Pair = typename Vec<W>::Pair;
  const float* const value = static_cast<const float*>(v.value);
  const float* const scalar = static_cast<const float*>(s.value);
  const int run = p.fraction_bits >= 14 ? 1 << (29 - p.fraction_bits) : 1 << 15;
  const int low = p.floor > kLow ? p.floor : kLow;
  const int32_t keep = -1 << (23 - p.result_bits);  // for rz
  const int d_emin = p.half ? -14 : -126;
  int c_emin = p.c.emin;
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
      const int64_t first = i * p.k + step * p.step;
      I e[R];
      if constexpr (Sparse) {
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) e[r] = I{} + kNone;
        for (int64_t k = first; k < first + p.step; k++)
#pragma GCC unroll 8
          for (int r = 0; r < R; r++)
            e[r] = larger<I>(e[r], load<I>(v.exponent + s.row[k * R + r] * W) + s.exponent[k * R + r]);
      } else {
        Pair both[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) both[r] = Pair{} + static_cast<int16_t>(kNone);
        for (int64_t k = first / 2; k < (first + p.step) / 2; k++) {
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
      F scale[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        const I largest = larger<I>(e[r], accumulator_exponent<W>(x[r], c_emin));
        bad |= kHigh - largest;
        if (p.floor < kLow) bad |= (largest - kLow) & ~(largest - kNone / 2);
        e[r] = larger<I>(largest, I{} + low);
        scale[r] = power<W>(p.fraction_bits - e[r]);
      }
      I total[R] = {};
      for (int begin = 0; begin < p.step; begin += run) {
        const int end = begin + run < p.step ? begin + run : p.step;
        I sum[R] = {};
        for (int64_t k = first + begin; k < first + end; k++) {
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
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) {
        const I of_c = convert<I>(x[r] * scale[r]), sum = total[r] + of_c;
        bad |= (total[r] ^ sum) & (of_c ^ sum);
        bad |= (sum + 128) & ~sum;  // what f32 may round to 2^31, which is no int32
        const F rounded = convert<F>(sum);
        const I lost = sum - convert<I>(rounded);
        I y = bits<I>(rounded) + spread<I>((lost ^ sum) & nonzero(lost));
        if (p.nearest) y |= spread(nonzero(lost)) & 1;
        const F unscaled = bits<F>(y) * power<W>(e[r] - p.fraction_bits);
        // A negative number that rounds to zero is +0.
        x[r] = p.nearest ? to_half<W>(unscaled) + 0.0f : bits<F>(bits<I>(unscaled) & keep);
      }
      c_emin = d_emin;
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) d[r] = p.after ? add<W>(p, d[r], x[r]) : x[r];
  }
  if (any_negative(bad)) return false;
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) store(c + r * W, d[r]);
  return true;
}

// Round exact values to the result's fraction bits and exponent range: rules 7 and 9 for finite numbers.
template <int W>
WARPMMA_INLINE typename Vec<W>::D round_result(const Plan& p, typename Vec<W>::D x) {
  using D = typename Vec<W>::D;
  using L = typename Vec<W>::L;
  using Ih = typename Vec<W>::Ih;
  const int emin = p.half ? -14 : -126;
  L exponent = ((bits<L>(x) >> 52) & 0x7FF) - 1023;
  exponent = larger<L>(exponent, L{} + emin);
  D y;
  if (p.nearest) {
    const D shifter = bits<D>(((exponent - p.result_bits + 52 + 1023) << 52) | (L{} + (int64_t{1} << 51)));
    y = (x + shifter) - shifter;
  } else {  // fewer than 24 bits before the point
    y = convert<D>(convert<Ih>(x * wide_power<W>(p.result_bits - exponent))) * wide_power<W>(exponent - p.result_bits);
  }
  const double limit = p.half ? 0x1p16 : 0x1p128;
  const D infinity = bits<D>(L{} + 0x7FF0000000000000);
  y = y >= limit ? infinity : y;
  return y <= -limit ? -infinity : y;
}

template <int W, int R, bool Sparse>
WARPMMA_APART void fused_exact(const Plan& p, const Panel& v, const Panel& s, float* c, int64_t instructions) {
  using V = Vec<W>;
  using F = typename V::F;
  using I = typename V::I;
  using D = typename V::D;
  using L = typename V::L;
  using Ih = typename V::Ih;
  using Fh = typename V::Fh;
  using Pair = typename V::Pair;
  const int d_emin = p.half ? -14 : -126;
  for (int r = 0; r < R; r++) {
    int c_emin = p.c.emin;
    F d = load<F>(c + r * W);
    for (int64_t i = 0; i < instructions; i++) {
      F x = p.after ? F{} : d;
      for (int step = 0; step < p.steps; step++) {
        const int64_t first = i * p.k + step * p.step;
        I e = I{} + kNone;
        for (int64_t k = first; k < first + p.step; k += 2) {
          if constexpr (Sparse) {
            for (int64_t j = k; j < k + 2; j++)
              e = larger<I>(e, load<I>(v.exponent + s.row[j * R + r] * W) + s.exponent[j * R + r]);
          } else {
            const I pair = bits<I>(load<Pair>(v.exponent + k / 2 * W) + bits<Pair>(I{} + s.exponent[k / 2 * R + r]));
            e = larger<I>(e, larger<I>(pair >> 16, (pair << 16) >> 16));
          }
        }
        e = larger<I>(larger<I>(e, accumulator_exponent<W>(x, c_emin)), I{} + p.floor);
        int32_t exponents[W];
        float start[W], result[W];
        store(exponents, e);
        store(start, x);
        L of_e[2];
        D scale[2], total[2], plain[2];
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
          of_e[h] = convert<L>(load<Ih>(exponents + h * W / 2));
          // Of infinities and NaN the exponent may be anything; this keeps the scale finite.
          scale[h] = wide_power<W>(p.fraction_bits - of_e[h]);
          plain[h] = convert<D>(load<Fh>(start + h * W / 2));
          total[h] = convert<D>(convert<Ih>(plain[h] * scale[h]));
        }
        for (int64_t k = first; k < first + p.step; k++) {
          const double* of_v = v.wide + (Sparse ? s.row[k * R + r] : k) * W;
          const double of_s = s.wide[k * R + r];
#pragma GCC unroll 2
          for (int h = 0; h < 2; h++) {
            const D product = load<D>(of_v + h * W / 2) * of_s;
            plain[h] += product;
            total[h] += convert<D>(convert<Ih>(product * scale[h]));
          }
        }
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
          const D sum = total[h] * wide_power<W>(of_e[h] - p.fraction_bits);
          const D finite = round_result<W>(p, sum) + 0.0;
          const D y = (bits<L>(plain[h]) & INT64_MAX) < 0x7FF0000000000000 ? finite : plain[h];
          store(result + h * W / 2, convert<Fh>(y));
        }
        x = load<F>(result);
        c_emin = d_emin;
      }
      d = p.after ? add<W>(p, d, x) : x;
    }
    store(c + r * W, d);
  }
}

}  // namespace
}  // namespace warpmma
