// Rules 1 to 3 of the special-function unit: the squarer, the sum, and its cut.
//
// A function is computed in chunks, in passes over arrays that stay in the first-level cache: where in which table, on
// integers of 32 bits; the sums, in f64, where every one is an integer below 2^53 and so exact in any rounding mode;
// and what becomes of them, on integers again.
#pragma once

#include "functions.hpp"
#include "numbers.hpp"
#include "vector.hpp"

namespace warpmma {
namespace {

using Upper = Ieee<int32_t, 32, 20>;  // the upper word of f64

static_assert(Upper::kBias == F64::kBias && Upper::kInfinity == 0x7FF00000 && Upper::kNan == 0x7FFFFFFF);

constexpr int kChunk = 256;

struct alignas(64) Chunk {
  int32_t code[kChunk], dividend[kChunk];  // where they were scaled
  int32_t row[kChunk], x[kChunk], q[kChunk];
  int32_t power[kChunk];  // what the sum is multiplied by, or of lg2, what is added
  int32_t value[kChunk];  // V, cut: its code
};

// Rule 1, of the upper 15 bits of x. With h the first 7 of them and l the others: products within h are all there, of
// bit i of h and j of l those with i + j <= 16, and none within l.
template <int W>
WARPMMA_INLINE typename Vec<W>::I square(typename Vec<W>::I x) {
  using I = typename Vec<W>::I;
  const I h = x >> 8, l = x & 255;
  I q = 2 * h * h;
#pragma GCC unroll 7
  for (int i = 1; i <= 7; i++) q += (x & 1 << (kSquarerBits - i)) != 0 ? l >> (i - 1) : I{};
  return q;
}

// Where in a table: the row, x and q of a fraction of 23 bits.
template <int W, class Shift>
WARPMMA_INLINE void seek(const FunctionTables& t, typename Vec<W>::I fraction, typename Vec<W>::I first, Shift drop,
                         Chunk& c, int i) {
  using I = typename Vec<W>::I;
  const I position = fraction >> drop;
  const I x = position & ((1 << t.bits) - 1);
  store(c.row + i, first + (position >> t.bits));
  store(c.x + i, x);
  store(c.q + i, square<W>(x >> (t.bits - kSquarerBits)));
}

// Rule 2, of half as many lanes.
template <int W>
WARPMMA_INLINE typename Vec<W>::D sum(const FunctionTables& t, const Chunk& c, int i) {
  using D = typename Vec<W>::D;
  using Ih = typename Vec<W>::Ih;
  const D x = convert<D>(load<Ih>(c.x + i)), q = convert<D>(load<Ih>(c.q + i));
  const int32_t* row = c.row + i;
  return gather<W>(t.c0.data(), row) + gather<W>(t.c1.data(), row) * x + gather<W>(t.c2.data(), row) * q;
}

constexpr double kTiny = 0x1p-64;  // stands for a sum of zero: its code is below that of any other
constexpr int32_t kLeastValue = F32::power(-kPoint);

// A positive number as a code in a word of Format, cut: what rule 3 says, but for the range of exponents.
template <int W, class Format>
WARPMMA_INLINE typename Vec<W>::U code_of(typename Vec<W>::D x) {
  constexpr uint64_t kRebias = uint64_t{F64::kBias - Format::kBias} << F64::kFraction;
  return (bits<typename Vec<W>::U>(x) - kRebias) >> (F64::kFraction - Format::kFraction);
}

// A sum, which is in units of 2^-41.
template <int W, class Format>
WARPMMA_INLINE typename Vec<W>::U cut(typename Vec<W>::D total) {
  using D = typename Vec<W>::D;
  return code_of<W, Format>(larger<D>(total, D{} + kTiny) * 0x1p-41);
}

template <int W, class Format>
WARPMMA_APART void sums(const FunctionTables& t, Chunk& c, int count) {
  for (int i = 0; i < count; i += W / 2)
    store(c.value + i, convert<typename Vec<W>::Ih>(cut<W, Format>(sum<W>(t, c, i))));
}

// Rule 7 with its sign. To a sum below 2^51 is added 1.5 * 2^52: then it lies in the lower bits of the code, where what
// is below 2^-36 is taken away.
template <int W>
WARPMMA_APART void sums_of_lg2(const FunctionTables& t, Chunk& c, int count) {
  using D = typename Vec<W>::D;
  using U = typename Vec<W>::U;
  using Ih = typename Vec<W>::Ih;
  constexpr int kDropped = 1 << (kPoint - 36);
  for (int i = 0; i < count; i += W / 2) {
    const D exponent = convert<D>(load<Ih>(c.power + i));
    const D shifted = sum<W>(t, c, i) + exponent * 0x1p41 + 0x1.8p52;
    const D total = bits<D>(bits<U>(shifted) & ~uint64_t{kDropped - 1}) - 0x1.8p52;
    const D magnitude = total < 0 ? -total - kDropped : total;
    const U sign = bits<U>(total) >> 32 & 0x80000000u;
    store(c.value + i, convert<Ih>(cut<W, F32>(magnitude) | sign));
  }
}

}  // namespace
}  // namespace warpmma
