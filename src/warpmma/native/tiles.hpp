// C and D as tiles of W x R elements: from codes to accumulators and back, and sums of chains.
#pragma once

#include "sides.hpp"

namespace warpmma {
namespace {

template <int N>
WARPMMA_INLINE void encode(const Parameters& p, const float* value, uint32_t* codes) {
  using F = typename Vec<N>::F;
  using I = typename Vec<N>::I;
  const F x = load<F>(value);
  const I magnitude = bits<I>(x) & INT32_MAX, sign = bits<I>(x) & INT32_MIN;
  if (!p.half) {
    store(codes, magnitude > F32::kInfinity ? I{} + F32::kNan : magnitude | sign);
    return;
  }
  // Values are those of f16: subnormal ones are multiples of 2^-24, others differ in bias and in length.
  constexpr int32_t kNormal = F32::power(F16::kEmin), kRebias = (F32::kBias - F16::kBias) << F32::kFraction;
  constexpr float kPerLeast = 1 << (F16::kFraction - F16::kEmin);
  const I small = convert<I>(bits<F>(magnitude < kNormal ? magnitude : I{}) * kPerLeast);
  I code = magnitude < kNormal ? small : (magnitude - kRebias) >> (F32::kFraction - F16::kFraction);
  code = magnitude >= F32::kInfinity ? I{} + F16::kInfinity : code;
  constexpr int32_t kSign = F16::kNan + 1;
  store(codes, magnitude > F32::kInfinity ? I{} + F16::kNan : code | ((sign >> 16) & kSign));
}

// What runs through the tiles: accumulators, or sums of them. `Code` has 64 bits for f64, else 32; what is computed in
// f32 is held as its values.
template <int W, int R, class Code>
struct Tiles {
  const Parameters& p;
  const Job& j;
  int64_t v_outer, s_outer;  // elements along the lanes, and across them
  int64_t v_panels = (v_outer + W - 1) / W, s_panels = (s_outer + R - 1) / R;
  Buffer<Code> buffer = Buffer<Code>(v_panels * s_panels * kTile);

  static constexpr int kTile = W * R;
  bool floats() const { return sizeof(Code) == 4 && p.unit != Unit::IntegerSum && p.unit != Unit::Popcount; }
  int64_t count() const { return v_panels * s_panels; }
  Code* at(int64_t place) const { return buffer.get() + place * kTile; }
  int lanes(int64_t at) const { return static_cast<int>(std::min<int64_t>(W, v_outer - at / s_panels * W)); }
  int rows(int64_t at) const { return static_cast<int>(std::min<int64_t>(R, s_outer - at % s_panels * R)); }
};

template <int W, int R, class Code>
WARPMMA_INLINE void read_tiles(const Tiles<W, R, Code>& t, Source from, int64_t batch, int matrix) {
  constexpr int kTile = W * R;
  if (t.p.sparse) std::swap(from.outer, from.along);
  alignas(64) Code codes[kTile];
  for (int64_t at = 0; at < t.count(); at++) {
    Code* const x = t.at(at);
    if (t.j.registers) {
      fetch<W>(reinterpret_cast<const Code*>(from.data) + batch * from.batch, t.p.c_table,
               (matrix * t.count() + at) * kTile, kTile, codes);
    } else {
      if (t.rows(at) < R) std::memset(codes, 0, sizeof codes);
      fetch<W>(from, batch, at / t.s_panels * W, t.lanes(at), at % t.s_panels * R, t.rows(at), 1, kInOrder, codes);
    }
    if constexpr (sizeof(Code) == 4) {
      if (t.floats()) {
        for (int r = 0; r < R; r++) store(x + r * W, decode<W>(t.p.c, load<typename Vec<W>::I>(codes + r * W)).value);
        continue;
      }
    }
    std::memcpy(x, codes, sizeof codes);
  }
}

template <int W, int R, class Code, class Element>
WARPMMA_INLINE void put(const Code* x, int lanes, int64_t v_along, int rows, int64_t s_along, Element* to) {
  for (int lane = 0; lane < lanes; lane++) {
    Element* const row = to + lane * v_along;
    if (rows == R && s_along == 1)
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) row[r] = static_cast<Element>(x[r * W + lane]);
    else
      for (int r = 0; r < rows; r++) row[r * s_along] = static_cast<Element>(x[r * W + lane]);
  }
}

// To codes of matrices `[batch, m, n]`; of registers to tiles of codes, one matrix of a warp after the other.
template <int W, int R, class Code>
WARPMMA_INLINE void write_tiles(const Tiles<W, R, Code>& t, int64_t batch, int matrix, char* to, int size) {
  constexpr int kTile = W * R;
  alignas(64) Code codes[kTile];
  const int64_t v_along = t.p.sparse ? 1 : t.j.n, s_along = t.p.sparse ? t.j.n : 1;
  for (int64_t at = 0; at < t.count(); at++) {
    const Code* x = t.at(at);
    if constexpr (sizeof(Code) == 4) {
      if (t.floats()) {
        for (int r = 0; r < R; r++) encode<W>(t.p, reinterpret_cast<const float*>(x) + r * W, codes + r * W);
        x = codes;
      }
    }
    if (t.j.registers) {
      std::memcpy(to + (matrix * t.count() + at) * sizeof codes, x, sizeof codes);
      continue;
    }
    const int64_t first = (batch * t.j.m * t.j.n) + at / t.s_panels * W * v_along + at % t.s_panels * R * s_along;
    if (size == sizeof(Code))
      put<W, R>(x, t.lanes(at), v_along, t.rows(at), s_along, reinterpret_cast<Code*>(to) + first);
    else
      put<W, R>(x, t.lanes(at), v_along, t.rows(at), s_along, reinterpret_cast<uint16_t*>(to) + first);
  }
}

// Registers of D of one warp, from the tiles of codes of its matrices.
template <int W, class Code>
WARPMMA_INLINE void write_registers(const Parameters& p, const Code* tiles, Code* out) {
  const int words = kWarp * p.registers;
  const int32_t* const flat = p.d_flat.data();
  if constexpr (sizeof(Code) == 4) {
    for (int i = 0; i < words; i += W) {
      typename Vec<W>::I word = gather<W>(tiles, flat + i);
      for (int position = 1; position < p.per_register; position++)
        word |= gather<W>(tiles, flat + position * words + i) << p.d_shift[position];
      store(out + i, word);
    }
  } else {
    for (int i = 0; i < words; i++) out[i] = tiles[flat[i]];
  }
}

// A chain ends: add its accumulators to the sums of a slice, and where that ends too those to the totals; begin again.
// A sum begins as -0, which changes no addend's bits.
template <int W, int R>
WARPMMA_INLINE void end_chain(bool ends_slice, void* of_chain, void* of_slice, void* of_all) {
  using F = typename Vec<W>::F;
  float *const accumulator = static_cast<float*>(of_chain), *const slice = static_cast<float*>(of_slice);
  float* const total = static_cast<float*>(of_all);
  for (int i = 0; i < W * R; i += W) {
    const F sum = load<F>(slice + i) + load<F>(accumulator + i);
    store(accumulator + i, F{});
    store(slice + i, ends_slice ? bits<F>(typename Vec<W>::I{} + INT32_MIN) : sum);
    if (ends_slice) store(total + i, load<F>(total + i) + sum);
  }
}

}  // namespace
}  // namespace warpmma
