// The loops around the tiles: batches, blocks of k, panels; and codes of C and D.
#pragma once

#include "units.hpp"

namespace warpmma {
namespace {

constexpr int kBlock = 128;  // products between two visits to a tile: a panel of them fits the first-level cache
constexpr int32_t kInOrder[1] = {0};

template <int N>
WARPMMA_INLINE void encode(const Plan& p, const float* value, uint32_t* codes) {
  using F = typename Vec<N>::F;
  using I = typename Vec<N>::I;
  const F x = load<F>(value);
  const I magnitude = bits<I>(x) & INT32_MAX, sign = bits<I>(x) & INT32_MIN;
  if (!p.half) {
    store(codes, magnitude > 0x7F800000 ? I{} + INT32_MAX : magnitude | sign);
    return;
  }
  // Values are those of f16: subnormal ones are multiples of 2^-24.
  const I small = convert<I>(bits<F>(magnitude < 0x38800000 ? magnitude : I{}) * 0x1p24f);
  I code = magnitude < 0x38800000 ? small : (magnitude - 0x38000000) >> 13;
  code = magnitude >= 0x7F800000 ? I{} + 0x7C00 : code;
  store(codes, magnitude > 0x7F800000 ? I{} + 0x7FFF : code | ((sign >> 16) & 0x8000));
}

// One operand's side of a product: the one that lies along a vector's lanes (N = W), or the other (N = R). `Code` is
// the type of codes on the way: 64 bits for f64, else 32.
template <int N, class Code>
struct Side {
  const Plan& p;
  const Source& source;
  const Source& scale;
  const Format& format;
  const Plan::Table& table;
  int64_t outer;         // rows or columns
  int per;               // elements of k in one instruction
  const int32_t* order;  // of them
  bool single;           // exponents one by one

  Buffer<char> value = {};
  Buffer<int32_t> exponent = {}, row = {}, scale_exponent = {};
  Buffer<double> wide = {}, factor = {};
  Buffer<Code> codes = {};

  // Room for `panels` panels of so many instructions.
  WARPMMA_INLINE void reserve(int64_t panels, int64_t instructions) {
    const size_t count = panels * instructions * per * N;
    value.resize(count * sizeof(Code));
    codes.resize(instructions * per * N);
    if (p.unit == Unit::fused) {
      exponent.resize(count);
      wide.resize(count);
    }
    if (p.sparse) row.resize(count);
    if (p.scales) {
      factor.resize(panels * instructions * p.scales * N);
      scale_exponent.resize(panels * instructions * p.scales * N);
    }
  }

  // Make panel `number`, in its place, from rows `first` on and `instructions` instructions of k.
  WARPMMA_INLINE Panel pack(const Job& j, int64_t batch, int matrix, int64_t number, int64_t at,
                            int64_t first_instruction, int64_t instructions, int64_t panels) {
    const int64_t count = instructions * per, offset = at * count * N, first = number * N;
    const int lanes = static_cast<int>(std::min<int64_t>(N, outer - first));
    Panel panel;
    panel.value = value.get() + offset * sizeof(Code);
    const bool as_they_are = sizeof(Code) == 8 || p.unit == Unit::popcount;
    Code* const out = as_they_are ? static_cast<Code*>(panel.value) : codes.get();
    if (j.registers)
      fetch<N>(reinterpret_cast<const Code*>(source.data) + batch * source.batch, table,
               (matrix * panels + number) * count * N, static_cast<int>(count * N), out);
    else
      fetch<N>(source, batch, first, lanes, first_instruction * per, count, per, order, out);
    if constexpr (sizeof(Code) == 4) {
      if (as_they_are) return panel;
      if (p.unit == Unit::fused) {
        panel.exponent = exponent.get() + offset;
        panel.wide = wide.get() + offset;
      }
      unpack<N>(p, format, out, count, single, panel);
      if (p.scales) {
        const int64_t scales = instructions * p.scales;
        fetch<N>(scale, batch, first, lanes, first_instruction * p.scales, scales, 1, kInOrder, out);
        if (p.unit == Unit::fused) {
          apply_scales<N>(p, out, count, per / p.scales, single, panel);
        } else {
          panel.scale = factor.get() + at * scales * N;
          panel.scale_exponent = scale_exponent.get() + at * scales * N;
          for (int64_t i = 0; i < scales * N; i++) {
            panel.scale[i] = p.scale_value[out[i] & 0xFF];
            panel.scale_exponent[i] = p.scale_exponent[out[i] & 0xFF];
          }
        }
      }
    }
    return panel;
  }
};

template <int W, int R>
WARPMMA_INLINE void tile(const Plan& p, Panel& v, Panel& s, uint64_t* c, int64_t instructions) {
  f64_chain<W, R>(p, v, s, reinterpret_cast<double*>(c), instructions);
}

template <int W, int R>
WARPMMA_INLINE void tile(const Plan& p, Panel& v, Panel& s, uint32_t* c, int64_t instructions) {
  float* f = reinterpret_cast<float*>(c);
  int32_t* integers = reinterpret_cast<int32_t*>(c);
  switch (p.unit) {
    case Unit::fused:
      if (!v.special && !s.special && v.top + s.top <= kHigh) {
        if (p.sparse ? fused_fast<W, R, true>(p, v, s, f, instructions)
                     : fused_fast<W, R, false>(p, v, s, f, instructions))
          return;
      }
      widen<W>(v, instructions * (p.sparse ? p.b_k : p.k));
      widen<R>(s, instructions * p.k);
      return p.sparse ? fused_exact<W, R, true>(p, v, s, f, instructions)
                      : fused_exact<W, R, false>(p, v, s, f, instructions);
    case Unit::grouped:
      return p.sparse ? grouped<W, R, true>(p, v, s, f, instructions) : grouped<W, R, false>(p, v, s, f, instructions);
    case Unit::f32_chains:
      return f32_chains<W, R>(p, v, s, f, instructions);
    case Unit::integer:
      return p.sparse ? integer<W, R, true>(p, v, s, integers, instructions)
                      : integer<W, R, false>(p, v, s, integers, instructions);
    case Unit::popcount:
      return popcount<W, R>(p, v, s, integers, instructions);
    case Unit::f64_chain:
      return;  // its codes have 64 bits
  }
}

// What runs through the tiles of W x R elements: accumulators, or sums of them. `Code` has 64 bits for f64, else 32;
// what is computed in f32 is held as its values.
template <int W, int R, class Code>
struct Tiles {
  const Plan& p;
  const Job& j;
  int64_t v_outer, s_outer;  // elements along the lanes, and across them
  int64_t v_panels = (v_outer + W - 1) / W, s_panels = (s_outer + R - 1) / R;
  Buffer<Code> buffer = Buffer<Code>(v_panels * s_panels * kTile);

  static constexpr int kTile = W * R;
  bool floats() const { return sizeof(Code) == 4 && p.unit != Unit::integer && p.unit != Unit::popcount; }
  int lanes(int64_t at) const { return static_cast<int>(std::min<int64_t>(W, v_outer - at / s_panels * W)); }
  int rows(int64_t at) const { return static_cast<int>(std::min<int64_t>(R, s_outer - at % s_panels * R)); }
};

template <int W, int R, class Code>
WARPMMA_INLINE void read_tiles(const Tiles<W, R, Code>& t, Source from, int64_t batch, int matrix) {
  constexpr int kTile = W * R;
  if (t.p.sparse) std::swap(from.outer, from.along);
  alignas(64) Code codes[kTile];
  for (int64_t at = 0; at < t.v_panels * t.s_panels; at++) {
    Code* const x = t.buffer.get() + at * kTile;
    if (t.j.registers) {
      fetch<W>(reinterpret_cast<const Code*>(from.data) + batch * from.batch, t.p.c_table,
               (matrix * t.v_panels * t.s_panels + at) * kTile, kTile, codes);
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
  for (int64_t at = 0; at < t.v_panels * t.s_panels; at++) {
    const Code* x = t.buffer.get() + at * kTile;
    if constexpr (sizeof(Code) == 4) {
      if (t.floats()) {
        for (int r = 0; r < R; r++) encode<W>(t.p, reinterpret_cast<const float*>(x) + r * W, codes + r * W);
        x = codes;
      }
    }
    if (t.j.registers) {
      std::memcpy(to + (matrix * t.v_panels * t.s_panels + at) * sizeof codes, x, sizeof codes);
      continue;
    }
    const int64_t first = (batch * t.j.m * t.j.n) + at / t.s_panels * W * v_along + at % t.s_panels * R * s_along;
    if (size == sizeof(Code))
      put<W, R>(x, t.lanes(at), v_along, t.rows(at), s_along, reinterpret_cast<Code*>(to) + first);
    else
      put<W, R>(x, t.lanes(at), v_along, t.rows(at), s_along, reinterpret_cast<uint16_t*>(to) + first);
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

template <int W, int R, class Code>
WARPMMA_INLINE void run(const Plan& p, const Job& j) {
  std::vector<int32_t> natural(p.b_k);
  for (int i = 0; i < p.b_k; i++) natural[i] = i;
  // Dense: rows of A along the lanes. Sparse: columns of B, of which whole rows are chosen.
  Side<W, Code> v{p,
                  p.sparse ? j.b : j.a,
                  p.sparse ? j.scale_b : j.scale_a,
                  p.sparse ? p.b : p.a,
                  p.sparse ? p.b_table : p.a_table,
                  p.sparse ? j.n : j.m,
                  p.sparse ? p.b_k : p.k,
                  p.sparse ? natural.data() : p.order.data(),
                  p.sparse};
  Side<R, Code> s{p,
                  p.sparse ? j.a : j.b,
                  p.sparse ? j.scale_a : j.scale_b,
                  p.sparse ? p.a : p.b,
                  p.sparse ? p.a_table : p.b_table,
                  p.sparse ? j.m : j.n,
                  p.k,
                  p.order.data(),
                  p.sparse};
  const bool sums = j.slice_sum != nullptr;
  Tiles<W, R, Code> c{p, j, v.outer, s.outer};
  Tiles<W, R, uint32_t> slice{p, j, sums ? v.outer : 0, s.outer}, total{p, j, sums ? v.outer : 0, s.outer};
  const int64_t v_panels = c.v_panels, s_panels = c.s_panels;
  const int64_t all = j.k / p.k, most = std::min<int64_t>(all, std::max(1, kBlock / p.k));
  constexpr int kTile = W * R;
  v.reserve(1, most);
  s.reserve(s_panels, most);
  Buffer<Code> d(j.registers ? p.matrices * v_panels * s_panels * kTile : 0);
  char* const to = j.registers ? reinterpret_cast<char*>(d.get()) : j.d;
  std::vector<Panel> panels(s_panels);
  for (int64_t batch = 0; batch < j.batch; batch++) {
    for (int matrix = 0; matrix < p.matrices; matrix++) {
      read_tiles(c, j.c, batch, matrix);
      if (sums) {
        read_tiles(slice, {j.slice_sum, 4, j.m * j.n, j.n, 1}, batch, 0);
        read_tiles(total, {j.total, 4, j.m * j.n, j.n, 1}, batch, 0);
      }
      const End *end = j.ends.data(), *const last = end + j.ends.size();
      for (int64_t first = 0, instructions = 0; first < all; first += instructions) {
        const bool more = end != last;
        instructions = std::min(most, (more ? end->after : all) - first);
        const bool chain_ends = more && first + instructions == end->after;
        for (int64_t at = 0; at < s_panels; at++) {
          panels[at] = s.pack(j, batch, matrix, at, at, first, instructions, s_panels);
          if (p.sparse) {
            const int64_t count = instructions * p.k;
            int32_t* const row = s.row.get() + at * count * R;
            Source chosen = j.chosen;
            fetch<R>(chosen, batch, at * R, static_cast<int>(std::min<int64_t>(R, s.outer - at * R)), first * p.k,
                     count, p.k, p.order.data(), reinterpret_cast<uint32_t*>(row));
            using Rows = typename Vec<R>::I;
            Rows furthest = {};
            for (int64_t k = 0; k < count; k++) {
              const Rows of_k = load<Rows>(row + k * R);
              furthest = larger<Rows>(furthest, of_k);
              store(row + k * R, of_k + static_cast<int32_t>(k / p.k * p.b_k));
            }
            if (largest(furthest) >= p.b_k) refuse("chosen names a row beyond those of its instruction");
            panels[at].row = row;
          }
        }
        for (int64_t at = 0; at < v_panels; at++) {
          Panel panel = v.pack(j, batch, matrix, at, 0, first, instructions, v_panels);
          for (int64_t other = 0; other < s_panels; other++) {
            const int64_t place = (at * s_panels + other) * kTile;
            tile<W, R>(p, panel, panels[other], c.buffer.get() + place, instructions);
            if (chain_ends)
              end_chain<W, R>(end->slice, c.buffer.get() + place, slice.buffer.get() + place,
                              total.buffer.get() + place);
          }
        }
        if (chain_ends) end++;
      }
      write_tiles(c, batch, matrix, to, j.registers ? sizeof(Code) : j.d_size);
      if (sums) {
        write_tiles(slice, batch, 0, j.slice_sum, 4);
        write_tiles(total, batch, 0, j.total, 4);
      }
    }
    if (j.registers) {
      const int words = 32 * p.registers;
      Code* const out = reinterpret_cast<Code*>(j.d) + batch * words;
      const int32_t* const flat = p.d_flat.data();
      if constexpr (sizeof(Code) == 4) {
        for (int i = 0; i < words; i += W) {
          typename Vec<W>::I word = gather<W>(d.get(), flat + i);
          for (int position = 1; position < p.per_register; position++)
            word |= gather<W>(d.get(), flat + position * words + i) << p.d_shift[position];
          store(out + i, word);
        }
      } else {
        for (int i = 0; i < words; i++) out[i] = d.get()[flat[i]];
      }
    }
  }
}

}  // namespace
}  // namespace warpmma
