// What lies around the unit in f64 (arithmetic/recipes/sequences.py, rules 3, 6 and 7): chunks from codes to codes.
#pragma once

#include "laws.hpp"

namespace warpmma {
namespace {

// Not 0 where a code, of elements as wide as Word, lies in a range.
template <class Word, class V, class Range>
WARPMMA_INLINE V lies(const Range& range, V code) {
  typedef Word Words __attribute__((vector_size(sizeof(V))));
  const Word first = static_cast<Word>(range.first), width = static_cast<Word>(range.last - range.first);
  const Words past = (bits<Words>(code) & static_cast<Word>(range.mask)) - first;
  return past <= width ? V{} - 1 : V{};
}

// What is known of W / 2 results: the operand, the unit's result, numbers, and what each step has made.
template <int W>
using Known = typename Vec<W>::D[kMostKnown];

// A chain of steps met NaN, for which instruction sets have rules of their own: number by number, with the hardware's.
template <int W>
WARPMMA_APART void refine_again(const FunctionTables& t, Known<W>& known) {
  for (int lane = 0; lane < W / 2; lane++) {
    typename Vec<W>::D* to = known + 2 + t.numbers.size();
    for (const Step& s : t.steps) {
      const int64_t b = bits<int64_t>(known[s.b][lane]) ^ (s.negate ? INT64_MIN : 0);
      (*to++)[lane] = fma_with_payloads(known[s.a][lane], bits<double>(b), known[s.c][lane]);
    }
  }
}

// Rule 7, of an operand and the unit's result, which are there.
template <int W>
WARPMMA_INLINE typename Vec<W>::D refine(const FunctionTables& t, Known<W>& known) {
  using D = typename Vec<W>::D;
  using L = typename Vec<W>::L;
  if (t.steps.empty()) return known[1];
  D* to = known + 2 + t.numbers.size();
  for (const Step& s : t.steps) {
    const D b = bits<D>(bits<L>(known[s.b]) ^ (s.negate ? INT64_MIN : 0));
    *to++ = fma<W>(known[s.a], b, known[s.c]);
  }
  const L no_number = to[-1] == to[-1] ? L{} : L{} - 1;
  if (any_negative(no_number)) refine_again<W>(t, known);
  return to[-1];
}

template <int W>
WARPMMA_INLINE typename Vec<W>::L is_special(const FunctionTables& t, typename Vec<W>::L code) {
  typename Vec<W>::L found = {};
  for (const Kept& kept : t.special) found |= lies<uint64_t>(kept, code);
  return found;
}

// Rule 3, before; other operands stay as they are, NaN that signal too. In place of a special operand, whose result is
// not computed, stands one that makes no NaN.
template <int W>
WARPMMA_INLINE typename Vec<W>::D refined_operand(const FunctionTables& t, typename Vec<W>::L code) {
  using D = typename Vec<W>::D;
  D x = bits<D>(code);
  for (const Scaling& s : t.scalings)
    x = lies<uint64_t>(s, code) != 0 ? bits<D>(code) * static_cast<double>(s.before) : x;
  return is_special<W>(t, code) != 0 ? D{} + 1.0 : x;
}

// Rule 3, after, and special results.
template <int W>
WARPMMA_INLINE typename Vec<W>::L refined_result(const FunctionTables& t, typename Vec<W>::L code,
                                                 typename Vec<W>::D result) {
  using L = typename Vec<W>::L;
  L y = bits<L>(result);
  for (const Scaling& s : t.scalings)
    y = lies<uint64_t>(s, code) != 0 ? bits<L>(result * static_cast<double>(s.number)) : y;
  for (const Kept& kept : t.special) {
    const L whole = (code & static_cast<int64_t>(kept.keep)) | static_cast<int64_t>(kept.put);
    y = lies<uint64_t>(kept, code) != 0 ? whole : y;
  }
  return y;
}

// Rule 6.
template <int W>
WARPMMA_INLINE void refined_chunk(const FunctionTables& t, const int64_t* codes, int64_t* out, int count, Chunk& c) {
  using D = typename Vec<W>::D;
  using L = typename Vec<W>::L;
  using U = typename Vec<W>::U;
  using Ih = typename Vec<W>::Ih;
  alignas(64) double operand[kChunk];
  alignas(64) int32_t upper[kChunk];
  for (int i = 0; i < count; i += W / 2) {
    const D x = refined_operand<W>(t, load<L>(codes + i));
    store(operand + i, x);
    store(c.code + i, convert<Ih>(bits<U>(x) >> 32));
  }
  unit<W>(t, c.code, upper, count, c);
  Known<W> known;
  for (size_t i = 0; i < t.numbers.size(); i++) known[2 + i] = D{} + t.numbers[i];
  for (int i = 0; i < count; i += W / 2) {
    known[0] = load<D>(operand + i);
    known[1] = bits<D>(convert<L>(load<Ih>(upper + i)) << 32);
    store(out + i, refined_result<W>(t, load<L>(codes + i), refine<W>(t, known)));
  }
}

}  // namespace
}  // namespace warpmma
