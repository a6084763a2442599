// Rules 4 to 11 of the special-function unit: chunks from codes to codes.
#pragma once

#include "interpolator.hpp"

namespace warpmma {
namespace {

constexpr int32_t kOne = F32::power(0);
constexpr int32_t kFractionMask = F32::kHidden - 1;

// A word's exponent field and its fraction, as one of 23 bits; a subnormal number's are 0 and 0.
template <int W, class Format>
struct Number {
  using I = typename Vec<W>::I;
  I magnitude, field, fraction;

  WARPMMA_INLINE explicit Number(I code) {
    const I all = code & INT32_MAX;
    magnitude = all < Format::kHidden ? I{} : all;
    field = magnitude >> Format::kFraction;
    fraction = (magnitude & (Format::kHidden - 1)) << (F32::kFraction - Format::kFraction);
  }
};

// Rules 6 and 8: a magnitude as an integer. So many bits above f32's 24 are kept, and it is shifted to the right.
template <int W>
WARPMMA_INLINE typename Vec<W>::I shifted(Number<W, F32> x, int above, typename Vec<W>::I right) {
  using I = typename Vec<W>::I;
  const I significand = (x.magnitude & kFractionMask) | F32::kHidden;
  return (significand << above) >> (right < 31 ? right : I{} + 31);
}

// Where in which table.

// Rules 4, 5 and 7.
template <int W, class Format, Law law>
WARPMMA_INLINE void place_fraction(const FunctionTables& t, typename Vec<W>::I code, Chunk& c, int i) {
  using I = typename Vec<W>::I;
  const Number<W, Format> x(code);
  const I exponent = x.field - Format::kBias;
  if constexpr (law == Law::rsqrt || law == Law::sqrt) {
    const I odd = exponent & 1, k = exponent >> 1;
    const I first = odd != 0 ? I{} + t.first[1] : I{} + t.first[0], drop = odd != 0 ? I{} + t.drop[1] : I{} + t.drop[0];
    store(c.power + i, law == Law::rsqrt ? -k : k + 1);
    seek<W>(t, x.fraction, first, drop, c, i);
  } else {
    store(c.power + i, law == Law::rcp ? -exponent : exponent);
    seek<W>(t, x.fraction, I{} + t.first[0], t.drop[0], c, i);
  }
}

// Rule 6. From 2^8 on all results are infinite or zero, as those of the number before.
template <int W>
WARPMMA_INLINE void place_ex2(const FunctionTables& t, typename Vec<W>::I code, Chunk& c, int i) {
  using I = typename Vec<W>::I;
  Number<W, F32> x(code);
  const I most = I{} + (F32::power(8) - 1);
  x.magnitude = x.magnitude < most ? x.magnitude : most;
  I a = shifted<W>(x, 7, F32::kBias + 7 - (x.magnitude >> F32::kFraction));
  a = code < 0 ? ((a & kFractionMask) != 0 ? ~a : -a) : a;
  store(c.power + i, a >> F32::kFraction);
  seek<W>(t, a & kFractionMask, I{} + t.first[0], t.drop[0], c, i);
}

// Rule 8. The quadrant is kept in `power`.
template <int W, bool Cosine>
WARPMMA_INLINE void place_sine(const FunctionTables& t, typename Vec<W>::I code, Chunk& c, int i) {
  using I = typename Vec<W>::I;
  const Number<W, F32> x(code);
  const I above = x.field - (F32::kBias - 2);  // of what lies above by more than 24, the lower 25 bits are zero
  const I left = above > 0 ? (above < 31 ? above : I{} + 31) : I{};
  const I turns = shifted<W>(x, 0, above < 0 ? -above : I{}) << left;
  const I quadrant = (turns >> F32::kFraction) + (Cosine ? 1 : 0);
  const I position = turns & kFractionMask;
  store(c.power + i, quadrant);
  seek<W>(t, (quadrant & 1) != 0 ? position ^ kFractionMask : position, I{} + t.first[0], t.drop[0], c, i);
}

// Rule 9.
template <int W>
WARPMMA_INLINE void place_tanh(const FunctionTables& t, typename Vec<W>::I code, Chunk& c, int i) {
  using I = typename Vec<W>::I;
  const I field = (code & INT32_MAX) >> F32::kFraction, last = I{} + (kTanhTables - 1);
  I table = field - kFirstTanhField;
  table = table < 0 ? I{} : table < last ? table : last;
  int32_t index[W];
  store(index, table);
  const I first = gather<W>(reinterpret_cast<const uint32_t*>(t.first.data()), index);
  const I drop = gather<W>(reinterpret_cast<const uint32_t*>(t.drop.data()), index);
  seek<W>(t, code & kFractionMask, first, drop, c, i);
}

// What becomes of the sums.

// The value times 2^power (rule 3).
template <int W, class Format>
WARPMMA_INLINE typename Vec<W>::I scaled(const Chunk& c, int i) {
  using I = typename Vec<W>::I;
  const I value = load<I>(c.value + i), power = load<I>(c.power + i);
  const I field = (value >> Format::kFraction) + power, code = value + (power << Format::kFraction);
  return field < 1 ? I{} : field >= Format::kFields ? I{} + Format::kInfinity : code;
}

// Rules 4 and 5.
template <int W, class Format, Law law>
WARPMMA_INLINE typename Vec<W>::I finish_power(typename Vec<W>::I code, const Chunk& c, int i) {
  using I = typename Vec<W>::I;
  const Number<W, Format> x(code);
  const I sign = code & INT32_MIN, infinity = I{} + Format::kInfinity;
  const I whole = law == Law::sqrt ? infinity : I{};  // of infinity
  I y = scaled<W, Format>(c, i);
  if constexpr (law == Law::rsqrt) {
    const I power = (load<I>(c.power + i) + Format::kBias) << Format::kFraction;
    y = ((x.field - Format::kBias) & 1) == 0 ? (x.fraction == 0 ? power : y) : y;
  }
  y = x.magnitude == infinity ? whole : y;
  if constexpr (law != Law::rcp) y = code < 0 ? I{} + Format::kNan : y;
  const I of_zero = law == Law::sqrt ? sign : sign | infinity;
  if constexpr (law == Law::rcp) y |= sign;
  return x.magnitude == 0 ? of_zero : y;
}

template <int W>
WARPMMA_INLINE typename Vec<W>::I finish_lg2(typename Vec<W>::I code, const Chunk& c, int i) {
  using I = typename Vec<W>::I;
  const I magnitude = Number<W, F32>(code).magnitude, infinity = I{} + F32::kInfinity;
  I y = load<I>(c.value + i);
  y = (y & INT32_MAX) < kLeastValue ? y & INT32_MIN : y;
  y = magnitude == infinity ? infinity : magnitude == kOne ? I{} : y;
  y = code < 0 ? I{} + F32::kNan : y;
  return magnitude == 0 ? infinity | INT32_MIN : y;
}

template <int W, bool Cosine>
WARPMMA_INLINE typename Vec<W>::I finish_sine(typename Vec<W>::I code, const Chunk& c, int i) {
  using I = typename Vec<W>::I;
  const I value = load<I>(c.value + i), quadrant = load<I>(c.power + i);
  const I sign = ((Cosine ? I{} : code) ^ (quadrant << 30)) & INT32_MIN;
  const I y = (value < kLeastValue ? I{} : value) | sign;
  return (code & INT32_MAX) == F32::kInfinity ? I{} + F32::kNan : y;
}

template <int W>
WARPMMA_INLINE typename Vec<W>::I finish_tanh(typename Vec<W>::I code, const Chunk& c, int i) {
  using I = typename Vec<W>::I;
  const I magnitude = code & INT32_MAX;
  I y = load<I>(c.value + i);
  y = magnitude < F32::power(kFirstTanhField - F32::kBias) ? magnitude : y;
  y = magnitude >= F32::power(kFirstTanhField + kTanhTables - F32::kBias) ? I{} + kOne : y;
  return y | (code & INT32_MIN);
}

template <int W, class Format, Law law>
WARPMMA_INLINE typename Vec<W>::I finish(typename Vec<W>::I code, const Chunk& c, int i) {
  using I = typename Vec<W>::I;
  I y;
  if constexpr (law == Law::ex2)
    y = scaled<W, F32>(c, i);
  else if constexpr (law == Law::lg2)
    y = finish_lg2<W>(code, c, i);
  else if constexpr (law == Law::sin || law == Law::cos)
    y = finish_sine<W, law == Law::cos>(code, c, i);
  else if constexpr (law == Law::tanh)
    y = finish_tanh<W>(code, c, i);
  else
    y = finish_power<W, Format, law>(code, c, i);
  return (code & INT32_MAX) > Format::kInfinity ? I{} + Format::kNan : y;
}

// One chunk of the unit, whose count is a multiple of W.
template <int W, class Format, Law law>
WARPMMA_APART void by_law(const FunctionTables& t, const int32_t* codes, int32_t* out, int count, Chunk& c) {
  using I = typename Vec<W>::I;
  for (int i = 0; i < count; i += W) {
    const I code = load<I>(codes + i);
    if constexpr (law == Law::ex2)
      place_ex2<W>(t, code, c, i);
    else if constexpr (law == Law::sin || law == Law::cos)
      place_sine<W, law == Law::cos>(t, code, c, i);
    else if constexpr (law == Law::tanh)
      place_tanh<W>(t, code, c, i);
    else
      place_fraction<W, Format, law>(t, code, c, i);
  }
  if constexpr (law == Law::lg2)
    sums_of_lg2<W>(t, c, count);
  else
    sums<W, Format>(t, c, count);
  for (int i = 0; i < count; i += W) store(out + i, finish<W, Format, law>(load<I>(codes + i), c, i));
}

template <int W>
WARPMMA_INLINE void unit(const FunctionTables& t, const int32_t* codes, int32_t* out, int count, Chunk& c) {
  switch (t.law) {
    case Law::rcp:
      return t.upper ? by_law<W, Upper, Law::rcp>(t, codes, out, count, c)
                     : by_law<W, F32, Law::rcp>(t, codes, out, count, c);
    case Law::rsqrt:
      return t.upper ? by_law<W, Upper, Law::rsqrt>(t, codes, out, count, c)
                     : by_law<W, F32, Law::rsqrt>(t, codes, out, count, c);
    case Law::sqrt:
      return by_law<W, F32, Law::sqrt>(t, codes, out, count, c);
    case Law::ex2:
      return by_law<W, F32, Law::ex2>(t, codes, out, count, c);
    case Law::lg2:
      return by_law<W, F32, Law::lg2>(t, codes, out, count, c);
    case Law::sin:
      return by_law<W, F32, Law::sin>(t, codes, out, count, c);
    case Law::cos:
      return by_law<W, F32, Law::cos>(t, codes, out, count, c);
    case Law::tanh:
      return by_law<W, F32, Law::tanh>(t, codes, out, count, c);
  }
}

}  // namespace
}  // namespace warpmma
