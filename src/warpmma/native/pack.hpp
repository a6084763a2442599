// From codes to panels: N rows of A, or columns of B, side by side, with k running slowest.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>

#include "job.hpp"
#include "numbers.hpp"
#include "parameters.hpp"
#include "vector.hpp"

namespace warpmma {
namespace {

constexpr int32_t kByte = (1 << 8) - 1, kLow16 = (1 << 16) - 1;

// Memory that a run asks for once, aligned for any vector.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t count) { resize(count); }
  void resize(size_t count) {
    if (count <= count_) return;
    memory_.reset(static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(64))));
    count_ = count;
  }
  T* get() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<T, Free> memory_;
  size_t count_ = 0;
};

// `value` holds floats (of integers too), bit vectors, or doubles for f64. Of floats there are nominal exponents: pairs
// of 16 bits for two successive k, or one of 32 bits where the rows of a sparse product are chosen one by one.
struct Panel {
  void* value = nullptr;
  int32_t* exponent = nullptr;
  double* wide = nullptr;        // the values as doubles, made when they are needed
  const int32_t* row = nullptr;  // of a sparse A: which row of B's panel each element meets
  double* scale = nullptr;       // of groups: [scale][N]
  int32_t* scale_exponent = nullptr;
  int top = kNone;       // largest nominal exponent
  bool special = false;  // the fast path does not do: infinities, NaN, f32 subnormals, scales out of range
  bool widened = false;
};

template <int N, class Element, class Code>
WARPMMA_INLINE void copy(const Element* p, int64_t outer, int64_t along, int lanes, int64_t count, int per,
                         const int32_t* order, Code* out) {
  typedef Element Elements __attribute__((vector_size(sizeof(Element) * N)));
  typedef Code Codes __attribute__((vector_size(sizeof(Code) * N)));
  for (int64_t k = 0; k < count; k += per)
    for (int i = 0; i < per; i++, out += N) {
      const Element* from = p + (k + order[i]) * along;
      if (lanes < N) {
        for (int lane = 0; lane < N; lane++) out[lane] = lane < lanes ? from[lane * outer] : 0;
      } else if (outer == 1) {
        store(out, convert<Codes>(load<Elements>(from)));
      } else {
#pragma GCC unroll 16
        for (int lane = 0; lane < N; lane++) out[lane] = from[lane * outer];
      }
    }
}

// Codes [count][N] of a matrix; lanes beyond the matrix are 0.
template <int N, class Code>
WARPMMA_APART void fetch(const Source& s, int64_t batch, int64_t first, int lanes, int64_t k0, int64_t count, int per,
                         const int32_t* order, Code* out) {
  const char* p = s.data + (batch * s.batch + first * s.outer + k0 * s.along) * s.size;
  switch (s.size) {
    case 1:
      return copy<N>(reinterpret_cast<const uint8_t*>(p), s.outer, s.along, lanes, count, per, order, out);
    case 2:
      return copy<N>(reinterpret_cast<const uint16_t*>(p), s.outer, s.along, lanes, count, per, order, out);
    case 4:
      return copy<N>(reinterpret_cast<const uint32_t*>(p), s.outer, s.along, lanes, count, per, order, out);
    default:
      return copy<N>(reinterpret_cast<const uint64_t*>(p), s.outer, s.along, lanes, count, per, order, out);
  }
}

// Codes from registers, by a table in the order in which they are wanted; `count` is a multiple of N.
template <int N>
WARPMMA_INLINE void fetch(const uint32_t* words, const Table& t, size_t first, int count, uint32_t* out) {
  using I = typename Vec<N>::I;
  const int32_t* word = t.word.data() + first;
  const int32_t* shift = t.shift.data() + first;
  const int32_t mask = static_cast<int32_t>(t.mask);  // takes away the signs that are shifted in
  // Of a vector type declared in this template GCC 12 would shift every lane as far as the first.
  for (int i = 0; i < count; i += N) store(out + i, (gather<N>(words, word + i) >> load<I>(shift + i)) & mask);
}

template <int N>
WARPMMA_INLINE void fetch(const uint64_t* words, const Table& t, size_t first, int count, uint64_t* out) {
  const int32_t* word = t.word.data() + first;
  for (int i = 0; i < count; i++) out[i] = words[word[i]];
}

template <int N>
struct Decoded {
  typename Vec<N>::F value;
  typename Vec<N>::I exponent, special;  // the latter in its sign
};

template <int N>
WARPMMA_INLINE Decoded<N> decode(const Format& f, typename Vec<N>::I code) {
  using F = typename Vec<N>::F;
  using I = typename Vec<N>::I;
  const I magnitude = code & static_cast<int32_t>(f.magnitude);
  const I sign = (code << (32 - f.width)) & INT32_MIN;
  const int shift = F32::kFraction - f.fraction_bits, rebias = f.emin - F32::kEmin;
  // The same number in f32: its exponent field moves by `rebias`. A subnormal is an integer times the least number; of
  // f32's own range (rebias 0) it is one there too.
  I x = (magnitude << shift) + (rebias << F32::kFraction);
  if (rebias != 0) {
    const float least = bits<float>(F32::power(f.emin - f.fraction_bits));
    x = magnitude < (1 << f.fraction_bits) ? bits<I>(convert<F>(magnitude) * least) : x;
  }
  const int32_t special_from = static_cast<int32_t>(f.special_from);
  const I infinity = I{} + F32::kInfinity;
  x = magnitude >= special_from ? (magnitude == static_cast<int32_t>(f.infinity) ? infinity : infinity | F32::kQuiet)
                                : x;
  const I exponent = larger<I>((x >> F32::kFraction) - F32::kBias, I{} + f.nominal_emin);
  const I special = (special_from - 1 - magnitude) | ((x - F32::kHidden) & nonzero(magnitude));
  return {bits<F>(x | sign), magnitude == 0 ? I{} + kNone : exponent, special};
}

// Make a panel of floats from codes [count][N].
template <int N>
WARPMMA_INLINE void unpack(const Parameters& p, const Format& f, const uint32_t* codes, int64_t count, Panel& panel) {
  using F = typename Vec<N>::F;
  using I = typename Vec<N>::I;
  float* value = static_cast<float*>(panel.value);
  if (f.integer) {
    const int32_t sign = f.is_signed ? 1 << (f.width - 1) : 0;
    for (int64_t k = 0; k < count; k++) {
      const I code = load<I>(codes + k * N);
      store(value + k * N, convert<F>((code ^ sign) - sign));
    }
    return;
  }
  if (p.unit != Unit::FusedDotAdd) {  // exponents are of no interest
    for (int64_t k = 0; k < count; k++) store(value + k * N, decode<N>(f, load<I>(codes + k * N)).value);
    return;
  }
  I top = I{} + kNone, special = {};
  for (int64_t k = 0; k < count; k += 2) {
    const Decoded<N> x = decode<N>(f, load<I>(codes + k * N)), y = decode<N>(f, load<I>(codes + (k + 1) * N));
    store(value + k * N, x.value);
    store(value + (k + 1) * N, y.value);
    if (p.sparse) {
      store(panel.exponent + k * N, x.exponent);
      store(panel.exponent + (k + 1) * N, y.exponent);
    } else {
      store(panel.exponent + k / 2 * N, (x.exponent & kLow16) | (y.exponent << 16));
    }
    top = larger(top, larger(x.exponent, y.exponent));
    special |= x.special | y.special;
  }
  panel.top = largest(top);
  panel.special = any_negative(special);
  panel.widened = false;
}

// Multiply a panel of floats by block scales, codes [scale][N] for `each` elements of k (an even number). A scale is a
// power of two or NaN. Of a zero the exponent stays far below every other.
template <int N>
WARPMMA_INLINE void apply_scales(const Parameters& p, const uint32_t* codes, int64_t count, int each, Panel& panel) {
  using F = typename Vec<N>::F;
  using I = typename Vec<N>::I;
  using Pair = typename Vec<N>::Pair;
  float* const value = static_cast<float*>(panel.value);
  I special = {}, most = I{} - 1000;
  const int64_t scales = count / each;
  for (int64_t i = 0; i < scales; i++) {
    int32_t exponents[N];
    for (int lane = 0; lane < N; lane++) exponents[lane] = p.scale_exponent[codes[i * N + lane] & kByte];
    const I exponent = load<I>(exponents);
    special |= (exponent + kMostScale) | (kMostScale - exponent);  // NaN has more
    most = larger(most, exponent);
  }
  panel.special |= any_negative(special);
  panel.top += largest(most);
  if (panel.special)  // f32 may not hold the scaled values
    for (int64_t k = 0; k < count; k++)
      for (int lane = 0; lane < N; lane++)
        panel.wide[k * N + lane] = value[k * N + lane] * p.scale_value[codes[k / each * N + lane] & kByte];
  panel.widened = panel.special;
  for (int64_t i = 0; i < scales; i++) {
    int32_t exponents[N];
    for (int lane = 0; lane < N; lane++) exponents[lane] = p.scale_exponent[codes[i * N + lane] & kByte];
    const I exponent = load<I>(exponents);
    const F factor = bits<F>((exponent + F32::kBias) << F32::kFraction);
    const Pair both = bits<Pair>((exponent & kLow16) | (exponent << 16));
    for (int64_t k = i * each; k < (i + 1) * each; k++) {
      store(value + k * N, load<F>(value + k * N) * factor);
      if (p.sparse) store(panel.exponent + k * N, load<I>(panel.exponent + k * N) + exponent);
    }
    if (!p.sparse)
      for (int64_t k = i * each / 2; k < (i + 1) * each / 2; k++)
        store(panel.exponent + k * N, load<Pair>(panel.exponent + k * N) + both);
  }
}

template <int N>
WARPMMA_APART void widen(Panel& panel, int64_t count) {
  if (panel.widened) return;
  const float* value = static_cast<const float*>(panel.value);
  for (int64_t i = 0; i < count * N; i += N / 2)
    store(panel.wide + i, convert<typename Vec<N>::D>(load<typename Vec<N>::Fh>(value + i)));
  panel.widened = true;
}

}  // namespace
}  // namespace warpmma
