// The loops around the tiles: batches, blocks of k, panels; and codes of C and D.
#pragma once

#include "units.hpp"

namespace warpmma {

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

// One operand's side of a product: the one that lies along a vector's lanes (N = W), or the other (N = R).
template <int N>
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
  Buffer<uint32_t> codes = {};

  // Room for `panels` panels of so many instructions.
  WARPMMA_INLINE void reserve(Side& s, int64_t panels, int64_t instructions) {
    const size_t count = panels * instructions * s.per * N;
    s.value.resize(count * (s.p.unit == Unit::f64_chain ? 8 : 4));
    s.codes.resize(instructions * s.per * N * (s.p.unit == Unit::f64_chain ? 2 : 1));
    if (s.p.unit == Unit::fused) {
      s.exponent.resize(count);
      s.wide.resize(count);
    }
    if (s.p.sparse) s.row.resize(count);
    if (s.p.scales) {
      s.factor.resize(panels * instructions * s.p.scales * N);
      s.scale_exponent.resize(panels * instructions * s.p.scales * N);
    }
  }

  // Make panel `number`, in its place, from rows `first` on and `instructions` instructions of k.
  WARPMMA_INLINE Panel pack(Side& s, const Job& j, int64_t batch, int matrix, int64_t number, int64_t at,
                            int64_t first_instruction, int64_t instructions, int64_t panels) {
    const Plan& p = s.p;
    const int64_t count = instructions * s.per, offset = at * count * N;
    Panel panel;
    uint32_t* codes = s.codes.get();
    const int64_t first = number * N;
    const int lanes = static_cast<int>(std::min<int64_t>(N, s.outer - first));
    if (p.unit == Unit::f64_chain) {
      uint64_t* out = reinterpret_cast<uint64_t*>(s.value.get()) + offset;
      panel.value = out;
      if (j.registers)
        fetch<N>(reinterpret_cast<const uint64_t*>(s.source.data) + batch * s.source.batch, s.table,
                 (matrix * panels + number) * count * N, static_cast<int>(count * N), out);
      else
        fetch<N>(s.source, batch, first, lanes, first_instruction * s.per, count, s.per, s.order, out);
      return panel;
    }
    panel.value = s.value.get() + offset * 4;
    if (p.unit == Unit::popcount) codes = static_cast<uint32_t*>(panel.value);
    if (j.registers)
      fetch<N>(reinterpret_cast<const uint32_t*>(s.source.data) + batch * s.source.batch, s.table,
               (matrix * panels + number) * count * N, static_cast<int>(count * N), codes);
    else
      fetch<N>(s.source, batch, first, lanes, first_instruction * s.per, count, s.per, s.order, codes);
    if (p.unit == Unit::popcount) return panel;
    if (p.unit == Unit::fused) {
      panel.exponent = s.exponent.get() + offset;
      panel.wide = s.wide.get() + offset;
    }
    if (p.unit == Unit::fused || s.format.integer) {
      unpack<N>(s.format, codes, count, s.single, panel);
    } else {  // exponents are of no interest
      for (int64_t k = 0; k < count; k++)
        store(static_cast<float*>(panel.value) + k * N,
              decode<N>(s.format, load<typename Vec<N>::I>(codes + k * N)).value);
    }
    if (p.scales) {
      const int64_t scales = instructions * p.scales;
      fetch<N>(s.scale, batch, first, lanes, first_instruction * p.scales, scales, 1, kInOrder, codes);
      if (p.unit == Unit::fused) {
        apply_scales<N>(p, codes, count, s.per / p.scales, s.single, panel);
      } else {
        panel.scale = s.factor.get() + at * scales * N;
        panel.scale_exponent = s.scale_exponent.get() + at * scales * N;
        for (int64_t i = 0; i < scales * N; i++) {
          panel.scale[i] = p.scale_value[codes[i] & 0xFF];
          panel.scale_exponent[i] = p.scale_exponent[codes[i] & 0xFF];
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

// `Code` is the type of C's and D's codes on the way: 64 bits for f64, else 32.
template <int W, int R, class Code>
WARPMMA_INLINE void run(const Plan& p, const Job& j) {
  const bool integers = p.unit == Unit::integer || p.unit == Unit::popcount;
  std::vector<int32_t> natural(p.b_k);
  for (int i = 0; i < p.b_k; i++) natural[i] = i;
  // Dense: rows of A along the lanes. Sparse: columns of B, of which whole rows are chosen.
  Side<W> v{p,
            p.sparse ? j.b : j.a,
            p.sparse ? j.scale_b : j.scale_a,
            p.sparse ? p.b : p.a,
            p.sparse ? p.b_table : p.a_table,
            p.sparse ? j.n : j.m,
            p.sparse ? p.b_k : p.k,
            p.sparse ? natural.data() : p.order.data(),
            p.sparse};
  Side<R> s{p,
            p.sparse ? j.a : j.b,
            p.sparse ? j.scale_a : j.scale_b,
            p.sparse ? p.a : p.b,
            p.sparse ? p.a_table : p.b_table,
            p.sparse ? j.m : j.n,
            p.k,
            p.order.data(),
            p.sparse};
  Source of_c = j.c;
  if (p.sparse) std::swap(of_c.outer, of_c.along);
  const int64_t v_panels = (v.outer + W - 1) / W, s_panels = (s.outer + R - 1) / R;
  const int64_t all = j.k / p.k, most = std::min<int64_t>(all, std::max(1, kBlock / p.k));
  constexpr int kTile = W * R;
  Side<W>::reserve(v, 1, most);
  Side<R>::reserve(s, s_panels, most);
  Buffer<Code> c(v_panels * s_panels * kTile), d(p.matrices * v_panels * s_panels * kTile);
  std::vector<Panel> panels(s_panels);
  alignas(64) Code codes[kTile];
  for (int64_t batch = 0; batch < j.batch; batch++) {
    for (int matrix = 0; matrix < p.matrices; matrix++) {
      for (int64_t at = 0; at < v_panels * s_panels; at++) {
        const int64_t vi = at / s_panels * W, si = at % s_panels * R;
        Code* const x = c.get() + at * kTile;
        if (j.registers) {
          fetch<W>(reinterpret_cast<const Code*>(j.c.data) + batch * j.c.batch, p.c_table,
                   (matrix * v_panels * s_panels + at) * kTile, kTile, codes);
        } else {
          const int rows = static_cast<int>(std::min<int64_t>(R, s.outer - si));
          if (rows < R) std::memset(codes, 0, sizeof codes);
          fetch<W>(of_c, batch, vi, static_cast<int>(std::min<int64_t>(W, v.outer - vi)), si, rows, 1, kInOrder, codes);
        }
        if constexpr (sizeof(Code) == 4) {
          if (!integers) {
            for (int r = 0; r < R; r++) store(x + r * W, decode<W>(p.c, load<typename Vec<W>::I>(codes + r * W)).value);
            continue;
          }
        }
        std::memcpy(x, codes, sizeof codes);
      }
      for (int64_t first = 0; first < all; first += most) {
        const int64_t instructions = std::min(most, all - first);
        for (int64_t at = 0; at < s_panels; at++) {
          panels[at] = Side<R>::pack(s, j, batch, matrix, at, at, first, instructions, s_panels);
          if (p.sparse) {
            const int64_t count = instructions * p.k;
            int32_t* const row = s.row.get() + at * count * R;
            Source chosen = j.chosen;
            fetch<R>(chosen, batch, at * R, static_cast<int>(std::min<int64_t>(R, s.outer - at * R)), first * p.k,
                     count, p.k, p.order.data(), reinterpret_cast<uint32_t*>(row));
            for (int64_t k = 0; k < count; k++)
              for (int lane = 0; lane < R; lane++) row[k * R + lane] += static_cast<int32_t>(k / p.k * p.b_k);
            panels[at].row = row;
          }
        }
        for (int64_t at = 0; at < v_panels; at++) {
          Panel panel = Side<W>::pack(v, j, batch, matrix, at, 0, first, instructions, v_panels);
          for (int64_t other = 0; other < s_panels; other++)
            tile<W, R>(p, panel, panels[other], c.get() + (at * s_panels + other) * kTile, instructions);
        }
      }
      for (int64_t at = 0; at < v_panels * s_panels; at++) {
        const Code* x = c.get() + at * kTile;
        if constexpr (sizeof(Code) == 4) {
          if (!integers) {
            for (int r = 0; r < R; r++) encode<W>(p, reinterpret_cast<const float*>(x) + r * W, codes + r * W);
            x = codes;
          }
        }
        if (j.registers) {
          std::memcpy(d.get() + (matrix * v_panels * s_panels + at) * kTile, x, sizeof codes);
          continue;
        }
        const int64_t vi = at / s_panels * W, si = at % s_panels * R;
        for (int r = 0; r < std::min<int64_t>(R, s.outer - si); r++)
          for (int lane = 0; lane < std::min<int64_t>(W, v.outer - vi); lane++) {
            const int64_t row = p.sparse ? si + r : vi + lane, column = p.sparse ? vi + lane : si + r;
            const Code code = x[r * W + lane];
            std::memcpy(j.d + ((batch * j.m + row) * j.n + column) * j.d_size, &code, j.d_size);
          }
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

}  // namespace warpmma
