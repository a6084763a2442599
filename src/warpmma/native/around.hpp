// What lies around the special-function unit in f32 (arithmetic/recipes/sequences.py, rules 2 to 5), and whole jobs.
// Multiplications and additions are those of IEEE 754, which the caller's environment has to have (module.cpp).
#pragma once

#include "refined.hpp"

namespace warpmma {
namespace {

// What a code is multiplied by.
template <int W>
WARPMMA_INLINE typename Vec<W>::F scale(const FunctionTables& t, typename Vec<W>::I code) {
  using F = typename Vec<W>::F;
  F by = F{} + 1.0f;
  for (const Scaling& s : t.scalings) by = lies<uint32_t>(s, code) != 0 ? F{} + s.before : by;
  return by;
}

// Rule 3, before.
template <int W>
WARPMMA_APART void scale_before(const FunctionTables& t, const int32_t* codes, int count, Chunk& c) {
  using I = typename Vec<W>::I;
  using F = typename Vec<W>::F;
  for (int i = 0; i < count; i += W) {
    const I code = load<I>(codes + i);
    store(c.code + i, bits<F>(code) * scale<W>(t, code));
  }
}

// Rule 3, after: outside all ranges times 1, or plus -0. A result that is no number is the one NaN.
template <int W>
WARPMMA_APART void scale_after(const FunctionTables& t, const int32_t* codes, int32_t* out, int count) {
  using I = typename Vec<W>::I;
  using F = typename Vec<W>::F;
  const After after = t.scalings[0].after;
  for (int i = 0; i < count; i += W) {
    const I code = load<I>(codes + i);
    F y = load<F>(out + i), other = F{} + (after == After::add ? -0.0f : 1.0f);
    for (const Scaling& s : t.scalings) {
      const F number = after == After::square ? y : F{} + s.number;
      other = lies<uint32_t>(s, code) != 0 ? number : other;
    }
    y = after == After::add ? y + other : y * other;
    store(out + i, (bits<I>(y) & INT32_MAX) > F32::kInfinity ? I{} + F32::kNan : bits<I>(y));
  }
}

// Rule 4. The product of two f32 is exact in f64. What is below 2^-126 may be any subnormal number: the unit takes it
// for zero.
template <int W>
WARPMMA_APART void multiply_before(const FunctionTables& t, const int32_t* codes, int count, Chunk& c) {
  using D = typename Vec<W>::D;
  using Ih = typename Vec<W>::Ih;
  constexpr double kSubnormal = 0x1p-127;
  for (int i = 0; i < count; i += W / 2) {
    const Ih code = load<Ih>(codes + i), magnitude = code & INT32_MAX;
    const Ih number = magnitude < F32::kHidden ? Ih{} : magnitude;
    const D product = convert<D>(bits<typename Vec<W>::Fh>(number)) * static_cast<double>(t.factor);
    const Ih cut = convert<Ih>(code_of<W, F32>(larger<D>(product, D{} + kSubnormal)));
    store(c.code + i, (magnitude >= F32::kInfinity ? magnitude : cut) | (code & INT32_MIN));
  }
}

// Rule 2 for f32: the product, which is exact in f64, rounded once; with `ftz` flushed.
template <int W>
WARPMMA_INLINE typename Vec<W>::Ih product(typename Vec<W>::Ih x, typename Vec<W>::Ih y, bool ftz) {
  using D = typename Vec<W>::D;
  using L = typename Vec<W>::L;
  using Ih = typename Vec<W>::Ih;
  using Fh = typename Vec<W>::Fh;
  constexpr double kFlushed = 0x1p-126 - 0x1p-151;  // between the least normal number and that of 24 bits before it
  if (ftz) {
    x = (x & INT32_MAX) < F32::kHidden ? x & INT32_MIN : x;
    y = (y & INT32_MAX) < F32::kHidden ? y & INT32_MIN : y;
  }
  D exact = convert<D>(bits<Fh>(x)) * convert<D>(bits<Fh>(y));
  if (ftz) exact = bits<D>(bits<L>(exact) & INT64_MAX) < kFlushed ? bits<D>(bits<L>(exact) & INT64_MIN) : exact;
  const Ih rounded = bits<Ih>(convert<Fh>(exact));
  return (rounded & INT32_MAX) > F32::kInfinity ? Ih{} + F32::kNan : rounded;
}

// Rule 5: both operands are scaled by the divisor's range.
template <int W>
WARPMMA_APART void scale_both(const FunctionTables& t, const int32_t* codes, const int32_t* dividend, int count,
                              Chunk& c) {
  using Ih = typename Vec<W>::Ih;
  for (int i = 0; i < count; i += W / 2) {
    const Ih code = load<Ih>(codes + i), by = bits<Ih>(scale<W / 2>(t, code));
    store(c.code + i, product<W>(code, by, t.ftz));
    store(c.dividend + i, product<W>(load<Ih>(dividend + i), by, t.ftz));
  }
}

template <int W>
WARPMMA_APART void multiply_after(const FunctionTables& t, const int32_t* dividend, int32_t* out, int count) {
  using Ih = typename Vec<W>::Ih;
  for (int i = 0; i < count; i += W / 2) store(out + i, product<W>(load<Ih>(out + i), load<Ih>(dividend + i), t.ftz));
}

template <int W>
WARPMMA_INLINE void chunk(const FunctionTables& t, const int32_t* codes, const int32_t* dividend, int32_t* out,
                          int count, Chunk& c) {
  const bool scales = !t.scalings.empty();
  if (t.dividend) {
    if (scales) scale_both<W>(t, codes, dividend, count, c);
    unit<W>(t, scales ? c.code : codes, out, count, c);
    return multiply_after<W>(t, scales ? c.dividend : dividend, out, count);
  }
  if (scales) scale_before<W>(t, codes, count, c);
  if (t.factor != 0) multiply_before<W>(t, scales ? c.code : codes, count, c);
  unit<W>(t, scales || t.factor != 0 ? c.code : codes, out, count, c);
  if (scales && t.scalings[0].after != After::nothing) scale_after<W>(t, codes, out, count);
}

template <int W>
WARPMMA_INLINE void chunk(const FunctionTables& t, const int64_t* codes, const int64_t*, int64_t* out, int count,
                          Chunk& c) {
  refined_chunk<W>(t, codes, out, count, c);
}

template <int W, class Code>
WARPMMA_INLINE void all_of(const FunctionTables& t, const FunctionJob& j) {
  Chunk c;
  alignas(64) Code codes[kChunk], other[kChunk], out[kChunk];
  const Code *from = static_cast<const Code*>(j.codes), *dividend = static_cast<const Code*>(j.dividend);
  Code* to = static_cast<Code*>(j.out);
  for (int64_t rest = j.count; rest > 0; rest -= kChunk) {
    if (rest >= kChunk) {
      chunk<W>(t, from, dividend, to, kChunk, c);
    } else {
      const int padded = static_cast<int>((rest + W - 1) / W * W);
      std::fill_n(std::copy_n(from, rest, codes), padded - rest, 0);
      if (t.dividend) std::fill_n(std::copy_n(dividend, rest, other), padded - rest, 0);
      chunk<W>(t, codes, other, out, padded, c);
      std::copy_n(out, rest, to);
    }
    from += kChunk, to += kChunk;
    if (t.dividend) dividend += kChunk;
  }
}

template <int W>
WARPMMA_INLINE void all(const FunctionTables& t, const FunctionJob& j) {
  if (t.wide)
    all_of<W, int64_t>(t, j);
  else
    all_of<W, int32_t>(t, j);
}

}  // namespace
}  // namespace warpmma
