// The other units on a tile of R rows against W lanes: rules 13 to 18 of arithmetic/exact/reference.py.
#pragma once

#include <cmath>

#include "exact.hpp"

namespace warpmma {
namespace {

// Rule 13, within bounds that check.cpp has. Sums of a group are integers over 4 and exact in f32 (16 products of at
// most 36), and so are sums of magnitudes. An addend has at most 20 bits and, aligned, at most 48: it is exact in f64,
// and so is the sum.
template <int W, int R, bool Sparse>
WARPMMA_INLINE void grouped(const Parameters& p, const Panel& v, const Panel& s, float* c, int64_t instructions) {
  using V = Vec<W>;
  using F = typename V::F;
  using I = typename V::I;
  using D = typename V::D;
  using L = typename V::L;
  using Ih = typename V::Ih;
  using Fh = typename V::Fh;
  const float* const value = static_cast<const float*>(v.value);
  const float* const scalar = static_cast<const float*>(s.value);
  for (int r = 0; r < R; r++) {
    F d = load<F>(c + r * W);
    for (int64_t i = 0; i < instructions; i++) {
      double addend[kMostGroups][W];
      I e = larger<I>(accumulator_exponent<W>(d, p.c.emin), I{} + p.floor);
      for (int group = 0; group < p.steps; group++) {
        F sum = {}, magnitudes = {};
        for (int64_t k = i * p.k + group * p.step, end = k + p.step; k < end; k++) {
          const F product = load<F>(value + (Sparse ? s.row[k * R + r] : k) * W) * scalar[k * R + r];
          sum += product;
          magnitudes += bits<F>(bits<I>(product) & INT32_MAX);
        }
        const int64_t block = i * p.scales + group * p.scales / p.steps;
        const I of_v = load<I>(v.scale_exponent + block * W);
        const I nominal = of_v + s.scale_exponent[block * R + r];
        e = larger<I>(e, magnitudes == 0 ? I{} + kNone : nominal);
        float sums[W];
        store(sums, sum);
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
          const D factor = load<D>(v.scale + block * W + h * W / 2) * s.scale[block * R + r];
          store(addend[group] + h * W / 2, convert<D>(load<Fh>(sums + h * W / 2)) * factor);
        }
      }
      int32_t exponents[W];
      float start[W];
      store(exponents, e);
      store(start, d);
#pragma GCC unroll 2
      for (int h = 0; h < 2; h++) {
        const L of_e = convert<L>(load<Ih>(exponents + h * W / 2));
        const D scale = wide_power<W>(p.fraction_bits - of_e);
        D plain = convert<D>(load<Fh>(start + h * W / 2));
        D total = convert<D>(convert<L>(plain * scale));
        for (int group = 0; group < p.steps; group++) {
          const D x = load<D>(addend[group] + h * W / 2);
          plain += x;
          total += convert<D>(convert<L>(x * scale));
        }
        store(start + h * W / 2, finish<W>(p, total, plain, of_e));
      }
      d = load<F>(start);
    }
    store(c + r * W, d);
  }
}

// Rule 16. Products of f16 numbers are exact in f32, and adding one is the fma; check.cpp refuses formats of which that
// does not hold.
template <int W, int R>
WARPMMA_APART void f32_chains(const Parameters& p, const Panel& v, const Panel& s, float* c, int64_t instructions) {
  using F = typename Vec<W>::F;
  const float* const value = static_cast<const float*>(v.value);
  const float* const scalar = static_cast<const float*>(s.value);
  for (int r = 0; r < R; r++) {
    F d = load<F>(c + r * W);
    for (int64_t i = 0; i < instructions; i++) {
      for (int step = 0; step < p.steps; step++) {
        const int64_t first = i * p.k + step * p.step;
        F chain = {};
        for (int64_t k = first; k < first + p.step; k++) {
          const F product = load<F>(value + k * W) * scalar[k * R + r];
          chain = k == first && p.seeded ? product : chain + product;
        }
        d = d + chain;
      }
      if (p.half) d = to_half<W>(d);
    }
    store(c + r * W, d);
  }
}

// Rule 17. Factors have at most 8 bits (check.cpp sees to it): a product is below 2^16 in magnitude, and a sum of 256
// is an integer of f32's 24 bits. Longer sums are made of such runs. Those of an instruction that clamps stay apart
// from C, and fit an int32 up to 32768 products; wrapping additions may be grouped at will.
constexpr int kExact = 256;

template <int W, int R, bool Sparse>
WARPMMA_INLINE void integer(const Parameters& p, const Panel& v, const Panel& s, int32_t* c, int64_t instructions) {
  using F = typename Vec<W>::F;
  using I = typename Vec<W>::I;
  const float* const value = static_cast<const float*>(v.value);
  const float* const scalar = static_cast<const float*>(s.value);
  const int64_t all = instructions * p.k, each = p.saturate ? p.k : all;
  I d[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) d[r] = load<I>(c + r * W);
  for (int64_t first = 0; first < all; first += each) {
    I products[R] = {};
    for (int64_t begin = first; begin < first + each; begin += kExact) {
      const int64_t end = std::min(begin + kExact, first + each);
      F sum[R] = {};
      for (int64_t k = begin; k < end; k++) {
        if constexpr (Sparse) {
#pragma GCC unroll 8
          for (int r = 0; r < R; r++) sum[r] += load<F>(value + s.row[k * R + r] * W) * scalar[k * R + r];
        } else {
          const F of_v = load<F>(value + k * W);
#pragma GCC unroll 8
          for (int r = 0; r < R; r++) sum[r] += of_v * scalar[k * R + r];
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) products[r] += convert<I>(sum[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      const I x = products[r], total = d[r] + x;
      const I overflow = (d[r] ^ total) & (x ^ total), clamped = spread(d[r]) ^ INT32_MAX;
      d[r] = p.saturate ? (overflow < 0 ? clamped : total) : total;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) store(c + r * W, d[r]);
}

// Rule 18, on words of 32 bits.
template <int W, int R>
WARPMMA_APART void popcount(const Parameters& p, const Panel& v, const Panel& s, int32_t* c, int64_t instructions) {
  using I = typename Vec<W>::I;
  typedef uint32_t U __attribute__((vector_size(4 * W)));
  // The low bit of every two, the low half of every four and of every eight bits, and one in every byte.
  constexpr uint32_t kOfTwo = ~0u / 3, kOfFour = ~0u / 5, kOfEight = ~0u / 17, kBytes = ~0u / 255;
  const int32_t* const value = static_cast<const int32_t*>(v.value);
  const int32_t* const scalar = static_cast<const int32_t*>(s.value);
  for (int r = 0; r < R; r++) {
    I d = load<I>(c + r * W);
    for (int64_t k = 0; k < instructions * p.k; k++) {
      const I of_v = load<I>(value + k * W);
      U x = bits<U>(p.exclusive ? of_v ^ scalar[k * R + r] : of_v & scalar[k * R + r]);
      x = x - ((x >> 1) & kOfTwo);
      x = (x & kOfFour) + ((x >> 2) & kOfFour);
      x = (x + (x >> 4)) & kOfEight;
      d += bits<I>((x * kBytes) >> 24);  // the sum of all bytes
    }
    store(c + r * W, d);
  }
}

// Rule 15. A result that is NaN is computed again with the hardware's choice among NaN operands: once a chain is NaN it
// stays so, and no other result can have met one. The rounding mode is set for the whole run.
template <int W, int R>
WARPMMA_APART void f64_chain(const Parameters& p, const Panel& v, const Panel& s, double* c, int64_t instructions) {
  using D = typename Vec<W>::D;
  using L = typename Vec<W>::L;
  constexpr int kHalf = W / 2;
  const double* const of_a = static_cast<const double*>(v.value);
  const double* const of_b = static_cast<const double*>(s.value);
  const int64_t count = instructions * p.k;
  D low[R], high[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) {
    low[r] = load<D>(c + r * W);
    high[r] = load<D>(c + r * W + kHalf);
  }
  for (int64_t k = 0; k < count; k++) {
    const D a_low = load<D>(of_a + k * W), a_high = load<D>(of_a + k * W + kHalf);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      const D b = bits<D>(L{} + bits<int64_t>(of_b[k * R + r]));
      low[r] = fma<W>(a_low, b, low[r]);
      high[r] = fma<W>(a_high, b, high[r]);
    }
  }
  for (int r = 0; r < R; r++) {
    double d[W];
    store(d, low[r]);
    store(d + kHalf, high[r]);
    for (int lane = 0; lane < W; lane++) {
      if (d[lane] != d[lane]) {
        d[lane] = c[r * W + lane];
        for (int64_t k = 0; k < count; k++) d[lane] = fma_with_payloads(of_a[k * W + lane], of_b[k * R + r], d[lane]);
      }
      c[r * W + lane] = d[lane];
    }
  }
}

}  // namespace
}  // namespace warpmma
