// The exact path of fused dot-adds, in f64: products, alignment and sums are exact there for every finite operand (as
// in fused.py), and a sum of the unscaled addends says what infinities and NaN make of each element.
#pragma once

#include "fused.hpp"

namespace warpmma {
namespace {

template <int W>
WARPMMA_INLINE typename Vec<W>::D wide_power(typename Vec<W>::L exponent) {
  return bits<typename Vec<W>::D>((exponent + F64::kBias) << F64::kFraction);
}

// Round exact values to the result's fraction bits and exponent range: rules 7 and 9 for finite numbers.
template <int W>
WARPMMA_INLINE typename Vec<W>::D round_result(const Parameters& p, typename Vec<W>::D x) {
  using D = typename Vec<W>::D;
  using L = typename Vec<W>::L;
  using Ih = typename Vec<W>::Ih;
  L exponent = ((bits<L>(x) >> F64::kFraction) & F64::kFields) - F64::kBias;
  exponent = larger<L>(exponent, L{} + emin_of_d(p));
  D y;
  if (p.nearest) {  // adding 1.5 * 2^(e - result_bits + 52) leaves a last place of 2^(e - result_bits)
    const L last = exponent - p.result_bits + F64::kFraction + F64::kBias;
    const D shifter = bits<D>((last << F64::kFraction) | (L{} + F64::kQuiet));
    y = (x + shifter) - shifter;
  } else {  // fewer than 24 bits before the point
    y = convert<D>(convert<Ih>(x * wide_power<W>(p.result_bits - exponent))) * wide_power<W>(exponent - p.result_bits);
  }
  const double limit = p.half ? 0x1p16 : 0x1p128;
  const D infinity = bits<D>(L{} + F64::kInfinity);
  y = y >= limit ? infinity : y;
  return y <= -limit ? -infinity : y;
}

// What the result is: the rounded sum, scaled back, or where the plain sum is no number that one.
template <int W>
WARPMMA_INLINE typename Vec<W>::Fh finish(const Parameters& p, typename Vec<W>::D total, typename Vec<W>::D plain,
                                          typename Vec<W>::L e) {
  using D = typename Vec<W>::D;
  using L = typename Vec<W>::L;
  const D finite = round_result<W>(p, total * wide_power<W>(e - p.fraction_bits)) + 0.0;
  const D y = (bits<L>(plain) & INT64_MAX) < F64::kInfinity ? finite : plain;
  return convert<typename Vec<W>::Fh>(y);
}

// Rule 4 for one row: the largest nominal exponent of a step's products.
template <int W, int R, bool Sparse>
WARPMMA_INLINE typename Vec<W>::I largest_exponent(const Panel& v, const Panel& s, int r, int64_t first, int64_t last) {
  using I = typename Vec<W>::I;
  using Pair = typename Vec<W>::Pair;
  I e = I{} + kNone;
  for (int64_t k = first; k < last; k += 2) {
    if constexpr (Sparse) {
      for (int64_t j = k; j < k + 2; j++)
        e = larger<I>(e, load<I>(v.exponent + s.row[j * R + r] * W) + s.exponent[j * R + r]);
    } else {
      const I pair = bits<I>(load<Pair>(v.exponent + k / 2 * W) + bits<Pair>(I{} + s.exponent[k / 2 * R + r]));
      e = larger<I>(e, larger<I>(pair >> 16, (pair << 16) >> 16));
    }
  }
  return e;
}

// One step of one row: from the accumulator `x` to the result.
template <int W, int R, bool Sparse>
WARPMMA_INLINE typename Vec<W>::F exact_step(const Parameters& p, const Panel& v, const Panel& s, int r, int64_t first,
                                             int emin, typename Vec<W>::F x) {
  using V = Vec<W>;
  using I = typename V::I;
  using D = typename V::D;
  using L = typename V::L;
  using Ih = typename V::Ih;
  using Fh = typename V::Fh;
  const int64_t last = first + p.step;
  const I e = larger<I>(
      larger<I>(largest_exponent<W, R, Sparse>(v, s, r, first, last), accumulator_exponent<W>(x, emin)), I{} + p.floor);
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
  for (int64_t k = first; k < last; k++) {
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
  for (int h = 0; h < 2; h++) store(result + h * W / 2, finish<W>(p, total[h], plain[h], of_e[h]));
  return load<typename V::F>(result);
}

template <int W, int R, bool Sparse>
WARPMMA_APART void fused_exact(const Parameters& p, const Panel& v, const Panel& s, float* c, int64_t instructions) {
  using F = typename Vec<W>::F;
  for (int r = 0; r < R; r++) {
    int emin = p.c.emin;
    F d = load<F>(c + r * W);
    for (int64_t i = 0; i < instructions; i++) {
      F x = p.after ? F{} : d;
      for (int step = 0; step < p.steps; step++) {
        x = exact_step<W, R, Sparse>(p, v, s, r, i * p.k + step * p.step, emin, x);
        emin = emin_of_d(p);
      }
      d = p.after ? add<W>(p, d, x) : x;
    }
    store(c + r * W, d);
  }
}

}  // namespace
}  // namespace warpmma
