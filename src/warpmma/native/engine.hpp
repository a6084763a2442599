// The loops around the tiles: batches, matrices, blocks of k, panels.
#pragma once

#include "tiles.hpp"
#include "units.hpp"

namespace warpmma {
namespace {

constexpr int kBlock = 128;  // products between two visits to a tile: a panel of them fits the first-level cache

template <int W, int R>
WARPMMA_INLINE void tile(const Parameters& p, Panel& v, Panel& s, uint64_t* c, int64_t instructions) {
  f64_chain<W, R>(p, v, s, reinterpret_cast<double*>(c), instructions);
}

template <int W, int R>
WARPMMA_INLINE void tile(const Parameters& p, Panel& v, Panel& s, uint32_t* c, int64_t instructions) {
  float* f = reinterpret_cast<float*>(c);
  int32_t* integers = reinterpret_cast<int32_t*>(c);
  switch (p.unit) {
    case Unit::FusedDotAdd:
      if (!v.special && !s.special && v.top + s.top <= kHigh) {
        if (p.sparse ? fused_fast<W, R, true>(p, v, s, f, instructions)
                     : fused_fast<W, R, false>(p, v, s, f, instructions))
          return;
      }
      widen<W>(v, instructions * (p.sparse ? p.b_k : p.k));
      widen<R>(s, instructions * p.k);
      return p.sparse ? fused_exact<W, R, true>(p, v, s, f, instructions)
                      : fused_exact<W, R, false>(p, v, s, f, instructions);
    case Unit::GroupedDotAdd:
      return p.sparse ? grouped<W, R, true>(p, v, s, f, instructions) : grouped<W, R, false>(p, v, s, f, instructions);
    case Unit::FloatChains:
      return f32_chains<W, R>(p, v, s, f, instructions);
    case Unit::IntegerSum:
      return p.sparse ? integer<W, R, true>(p, v, s, integers, instructions)
                      : integer<W, R, false>(p, v, s, integers, instructions);
    case Unit::Popcount:
      return popcount<W, R>(p, v, s, integers, instructions);
    case Unit::FmaChain:
      return;  // its codes have 64 bits
  }
}

// One job. Dense: rows of A lie along the lanes. Sparse: columns of B, of which whole rows are chosen.
template <int W, int R, class Code>
class Run {
 public:
  WARPMMA_INLINE Run(const Parameters& p, const Job& j)
      : p_(p),
        j_(j),
        natural_(in_order(p.b_k)),
        v_(p.sparse ? Side<W, Code>{p, j.b, j.scale_b, p.b, p.b_table, j.n, p.b_k, natural_.data()}
                    : Side<W, Code>{p, j.a, j.scale_a, p.a, p.a_table, j.m, p.k, p.order.data()}),
        s_(p.sparse ? Side<R, Code>{p, j.a, j.scale_a, p.a, p.a_table, j.m, p.k, p.order.data()}
                    : Side<R, Code>{p, j.b, j.scale_b, p.b, p.b_table, j.n, p.k, p.order.data()}),
        c_{p, j, v_.outer, s_.outer},
        slice_{p, j, sums() ? v_.outer : 0, s_.outer},
        total_{p, j, sums() ? v_.outer : 0, s_.outer},
        d_(j.registers ? p.matrices * c_.count() * kTile : 0),
        panels_(s_.panels) {
    v_.reserve(1, most_);
    s_.reserve(s_.panels, most_);
  }

  WARPMMA_INLINE void all() {
    for (int64_t batch = 0; batch < j_.batch; batch++) {
      for (int matrix = 0; matrix < p_.matrices; matrix++) {
        read(batch, matrix);
        chains(batch, matrix);
        write(batch, matrix);
      }
      if (j_.registers) write_registers<W>(p_, d_.get(), reinterpret_cast<Code*>(j_.d) + batch * kWarp * p_.registers);
    }
  }

 private:
  static constexpr int kTile = W * R;

  static std::vector<int32_t> in_order(int count) {
    std::vector<int32_t> order(count);
    for (int i = 0; i < count; i++) order[i] = i;
    return order;
  }

  bool sums() const { return j_.slice_sum != nullptr; }

  Source sum_source(const char* data) const { return {data, 4, j_.m * j_.n, j_.n, 1}; }

  WARPMMA_INLINE void read(int64_t batch, int matrix) {
    read_tiles(c_, j_.c, batch, matrix);
    if (!sums()) return;
    read_tiles(slice_, sum_source(j_.slice_sum), batch, 0);
    read_tiles(total_, sum_source(j_.total), batch, 0);
  }

  WARPMMA_INLINE void write(int64_t batch, int matrix) {
    char* const to = j_.registers ? reinterpret_cast<char*>(d_.get()) : j_.d;
    write_tiles(c_, batch, matrix, to, j_.registers ? sizeof(Code) : j_.d_size);
    if (!sums()) return;
    write_tiles(slice_, batch, 0, j_.slice_sum, 4);
    write_tiles(total_, batch, 0, j_.total, 4);
  }

  // All of k of one matrix, in blocks that no end of a chain cuts.
  WARPMMA_INLINE void chains(int64_t batch, int matrix) {
    const End *end = j_.ends.data(), *const last = end + j_.ends.size();
    const int64_t all = j_.k / p_.k;
    for (int64_t first = 0, instructions = 0; first < all; first += instructions) {
      const bool more = end != last;
      instructions = std::min(most_, (more ? end->after : all) - first);
      const bool chain_ends = more && first + instructions == end->after;
      block(batch, matrix, first, instructions, chain_ends ? end : nullptr);
      if (chain_ends) end++;
    }
  }

  // So many instructions on all tiles; then a chain may end.
  WARPMMA_INLINE void block(int64_t batch, int matrix, int64_t first, int64_t instructions, const End* end) {
    for (int64_t at = 0; at < s_.panels; at++) {
      panels_[at] = s_.pack(j_, batch, matrix, at, at, first, instructions);
      if (p_.sparse) panels_[at].row = choose_rows(s_, j_.chosen, batch, at, first, instructions);
    }
    for (int64_t at = 0; at < v_.panels; at++) {
      Panel panel = v_.pack(j_, batch, matrix, at, 0, first, instructions);
      for (int64_t other = 0; other < s_.panels; other++) {
        const int64_t place = at * s_.panels + other;
        tile<W, R>(p_, panel, panels_[other], c_.at(place), instructions);
        if (end) end_chain<W, R>(end->slice, c_.at(place), slice_.at(place), total_.at(place));
      }
    }
  }

  const Parameters& p_;
  const Job& j_;
  const int64_t most_ = std::min<int64_t>(j_.k / p_.k, std::max(1, kBlock / p_.k));  // instructions of a block
  const std::vector<int32_t> natural_;
  Side<W, Code> v_;
  Side<R, Code> s_;
  Tiles<W, R, Code> c_;
  Tiles<W, R, uint32_t> slice_, total_;
  Buffer<Code> d_;
  std::vector<Panel> panels_;  // of the side across the lanes
};

}  // namespace
}  // namespace warpmma
