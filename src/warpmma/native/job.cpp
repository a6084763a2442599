// Operands: see check.hpp. All of this is done at every call and takes no time that grows with them.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "check.hpp"
#include "numbers.hpp"

namespace warpmma {
namespace {

int64_t batch_stride(const Operand& x, int64_t batch) {
  if (x.shape[0] != 1 && x.shape[0] != batch)
    wrong(x, "is for a batch of " + std::to_string(x.shape[0]) + ", D for one of " + std::to_string(batch));
  return x.shape[0] == 1 ? 0 : x.stride[0] / x.size;
}

// Of a matrix [batch, rows, columns], whose outer dimension is its rows.
Source matrix(const Operand& x, int64_t batch, int64_t rows, int64_t columns) {
  check_elements(x);
  if (x.dimensions != 3 || x.shape[1] != rows || x.shape[2] != columns)
    wrong(x, "is " + text(x.shape, x.dimensions) + ", not " + text({batch, rows, columns}, 3));
  return {x.data, x.size, batch_stride(x, batch), x.stride[1] / x.size, x.stride[2] / x.size};
}

Source turned(Source s) {
  std::swap(s.outer, s.along);
  return s;
}

int64_t words(const Operand& x) {
  return x.dimensions == 2 ? x.shape[1] : x.dimensions == 3 ? x.shape[1] * x.shape[2] : 0;
}

// Of registers, whose tables reach so many words.
Source registers(const Operand& x, int64_t batch, int size, int64_t reach) {
  check_elements(x);
  if (x.size != size) wrong(x, "has registers of " + std::to_string(x.size) + " bytes, not " + std::to_string(size));
  if (words(x) < reach || !contiguous(x, 1))
    wrong(x, "is " + text(x.shape, x.dimensions) + ", not " + std::to_string(reach) + " words for each warp in a row");
  return {x.data, x.size, batch_stride(x, batch), 0, 0};
}

void none(const Operand& x) {
  if (x.given) wrong(x, "is for another kind of instruction");
}

// Inputs are read while results are written.
void check_apart(const Operands& x) {
  for (const Operand* written : {&x.d, &x.sums})
    for (const Operand* other : {&x.a, &x.b, &x.c, &x.chosen, &x.scale_a, &x.scale_b, &x.d, &x.sums})
      if (other != written) check_apart(*written, *other);
}

int64_t padded(int64_t count, int64_t each) { return (count + each - 1) / each * each; }

}  // namespace

const Level& level_of(int number) {
  require(0 <= number && number < static_cast<int>(std::size(kLevels)), "there is no such level");
  require(kLevels[number].supported(), "this processor does not have that level's instructions");
  return kLevels[number];
}

void Plan::check_tables(const Level& level, int64_t m, int64_t n, int64_t k) const {
  const Parameters& p = parameters_;
  require(p.registers > 0, "a plan without tables is not for registers");
  require(level.width == p.width && level.rows == p.rows, "tables are for another level");
  require(k == p.k && m <= 1 << 12 && n <= 1 << 12, "registers hold one instruction");
  const int64_t along = padded(p.sparse ? n : m, level.width), other = padded(p.sparse ? m : n, level.rows);
  const int64_t of_a = p.matrices * p.k * (p.sparse ? other : along);
  const int64_t of_b = p.matrices * p.b_k * (p.sparse ? along : other), tiles = p.matrices * along * other;
  require(static_cast<int64_t>(p.a_table.word.size()) == of_a && static_cast<int64_t>(p.b_table.word.size()) == of_b &&
              static_cast<int64_t>(p.c_table.word.size()) == tiles && places_ <= tiles,
          "tables are for another shape");
}

void Plan::set_sums(Job& j, const Operand& x, const std::vector<End>& ends) const {
  if (!x.given) return require(ends.empty(), "chains that end have sums to be added to");
  require(!j.registers && parameters_.c.width == 32 && parameters_.d.width == 32 && !parameters_.d.integer,
          "partial sums are of matrices with C and D of f32");
  check_elements(x);
  if (x.dimensions != 4 || x.shape != std::array<int64_t, 4>{2, j.batch, j.m, j.n} || x.size != 4 || !contiguous(x, 0))
    wrong(x, "is " + text(x.shape, x.dimensions) + ", not " + text({2, j.batch, j.m, j.n}, 4) + " and contiguous");
  int64_t before = 0;
  for (const End& end : ends) {
    require(before < end.after && end.after <= j.k / parameters_.k,
            "chains end after 1 to all instructions, ascending");
    before = end.after;
  }
  j.ends = ends;
  j.slice_sum = const_cast<char*>(x.data);
  j.total = j.slice_sum + j.batch * j.m * j.n * x.size;
}

// Of registers or of matrices: A, B and C, beside D.
void Plan::set_operands(Job& j, const Level& level, const Operands& x) const {
  const Parameters& p = parameters_;
  if (!j.registers) {
    matrix(x.d, j.batch, j.m, j.n);
    j.a = matrix(x.a, j.batch, j.m, j.k);
    j.b = turned(matrix(x.b, j.batch, j.k / p.k * p.b_k, j.n));
    j.c = matrix(x.c, j.batch, j.m, j.n);
    return;
  }
  check_tables(level, j.m, j.n, j.k);
  if (words(x.d) != kWarp * p.registers)
    wrong(x.d,
          "is " + text(x.d.shape, x.d.dimensions) + ", not " + std::to_string(p.registers) + " registers of a warp");
  j.a = registers(x.a, j.batch, j.d_size, a_words_);
  j.b = registers(x.b, j.batch, j.d_size, b_words_);
  j.c = registers(x.c, j.batch, j.d_size, c_words_);
}

// What sparse and block-scaled products take beside A, B and C.
void Plan::set_extra(Job& j, const Operands& x) const {
  const Parameters& p = parameters_;
  if (p.sparse) {
    j.chosen = matrix(x.chosen, j.batch, j.m, j.k);
    if (j.chosen.size != 1) wrong(x.chosen, "is not of bytes");
  } else {
    none(x.chosen);
  }
  if (p.scales) {
    const int64_t scales = j.k / p.k * p.scales;
    j.scale_a = matrix(x.scale_a, j.batch, j.m, scales);
    j.scale_b = turned(matrix(x.scale_b, j.batch, scales, j.n));
  } else {
    none(x.scale_a);
    none(x.scale_b);
  }
}

Job Plan::job(const Level& level, bool of_registers, int64_t m, int64_t n, int64_t k, const Operands& x) const {
  const Parameters& p = parameters_;
  require(m >= 0 && n >= 0 && k >= 0 && k % p.k == 0, "k is a multiple of one instruction's");
  require(k == p.k || (p.c.width == p.d.width && p.c.integer == p.d.integer), "D is no C of the next instruction");
  check_elements(x.d);
  Job j;
  j.batch = x.d.shape[0];
  j.m = m;
  j.n = n;
  j.k = k;
  j.registers = of_registers;
  j.d = const_cast<char*>(x.d.data);
  j.d_size = p.unit == Unit::FmaChain ? 8 : p.half && !of_registers ? 2 : 4;
  if (x.d.size != j.d_size || !contiguous(x.d, 0))
    wrong(x.d, "is not contiguous, of " + std::to_string(j.d_size) + " bytes an element");
  set_operands(j, level, x);
  set_sums(j, x.sums, x.ends);
  set_extra(j, x);
  check_apart(x);
  return j;
}

}  // namespace warpmma
