// One operand's side of a product, packed into panels.
#pragma once

#include "pack.hpp"

namespace warpmma {
namespace {

constexpr int32_t kInOrder[1] = {0};

// The side that lies along a vector's lanes (N = W), or the other (N = R). `Code` is the type of codes on the way: 64
// bits for f64, else 32.
template <int N, class Code>
struct Side {
  const Parameters& p;
  const Source& source;
  const Source& scale;
  const Format& format;
  const Table& table;
  int64_t outer;         // rows or columns
  int per;               // elements of k in one instruction
  const int32_t* order;  // of them
  int64_t panels = (outer + N - 1) / N;

  Buffer<char> value = {};
  Buffer<int32_t> exponent = {}, row = {}, scale_exponent = {};
  Buffer<double> wide = {}, factor = {};
  Buffer<Code> codes = {};

  // Room for `places` panels of so many instructions.
  WARPMMA_INLINE void reserve(int64_t places, int64_t instructions) {
    const size_t count = places * instructions * per * N;
    value.resize(count * sizeof(Code));
    codes.resize(instructions * per * N);
    if (p.unit == Unit::FusedDotAdd) {
      exponent.resize(count);
      wide.resize(count);
    }
    if (p.sparse) row.resize(count);
    if (p.scales) {
      factor.resize(places * instructions * p.scales * N);
      scale_exponent.resize(places * instructions * p.scales * N);
    }
  }

  int lanes(int64_t number) const { return static_cast<int>(std::min<int64_t>(N, outer - number * N)); }

  // Make panel `number`, in place `at`, from `instructions` instructions of k.
  WARPMMA_INLINE Panel pack(const Job& j, int64_t batch, int matrix, int64_t number, int64_t at,
                            int64_t first_instruction, int64_t instructions) {
    const int64_t count = instructions * per, offset = at * count * N;
    Panel panel;
    panel.value = value.get() + offset * sizeof(Code);
    const bool as_they_are = sizeof(Code) == 8 || p.unit == Unit::Popcount;
    Code* const out = as_they_are ? static_cast<Code*>(panel.value) : codes.get();
    if (j.registers)
      fetch<N>(reinterpret_cast<const Code*>(source.data) + batch * source.batch, table,
               (matrix * panels + number) * count * N, static_cast<int>(count * N), out);
    else
      fetch<N>(source, batch, number * N, lanes(number), first_instruction * per, count, per, order, out);
    if constexpr (sizeof(Code) == 4) {
      if (as_they_are) return panel;
      if (p.unit == Unit::FusedDotAdd) {
        panel.exponent = exponent.get() + offset;
        panel.wide = wide.get() + offset;
      }
      unpack<N>(p, format, out, count, panel);
      if (p.scales) pack_scales(batch, number, at, first_instruction, instructions, panel);
    }
    return panel;
  }

 private:
  WARPMMA_INLINE void pack_scales(int64_t batch, int64_t number, int64_t at, int64_t first_instruction,
                                  int64_t instructions, Panel& panel) {
    const int64_t scales = instructions * p.scales;
    Code* const out = codes.get();
    fetch<N>(scale, batch, number * N, lanes(number), first_instruction * p.scales, scales, 1, kInOrder, out);
    if (p.unit == Unit::FusedDotAdd) {
      apply_scales<N>(p, out, instructions * per, per / p.scales, panel);
      return;
    }
    panel.scale = factor.get() + at * scales * N;
    panel.scale_exponent = scale_exponent.get() + at * scales * N;
    for (int64_t i = 0; i < scales * N; i++) {
      panel.scale[i] = p.scale_value[out[i] & kByte];
      panel.scale_exponent[i] = p.scale_exponent[out[i] & kByte];
    }
  }
};

// Of a sparse A: which rows of B's panel the elements of panel `number` meet, kept beside it.
template <int R, class Code>
WARPMMA_INLINE const int32_t* choose_rows(Side<R, Code>& s, const Source& chosen, int64_t batch, int64_t number,
                                          int64_t first_instruction, int64_t instructions) {
  using Rows = typename Vec<R>::I;
  const Parameters& p = s.p;
  const int64_t count = instructions * p.k;
  int32_t* const row = s.row.get() + number * count * R;
  fetch<R>(chosen, batch, number * R, s.lanes(number), first_instruction * p.k, count, p.k, p.order.data(),
           reinterpret_cast<uint32_t*>(row));
  Rows furthest = {};
  for (int64_t k = 0; k < count; k++) {
    const Rows of_k = load<Rows>(row + k * R);
    furthest = larger<Rows>(furthest, of_k);
    store(row + k * R, of_k + static_cast<int32_t>(k / p.k * p.b_k));
  }
  if (largest(furthest) >= p.b_k) refuse("chosen names a row beyond those of its instruction");
  return row;
}

}  // namespace
}  // namespace warpmma
