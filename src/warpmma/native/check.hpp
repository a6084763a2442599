// What the engine takes for granted, made certain before it runs: of a plan once, of operands at every call.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "level.hpp"
#include "plan.hpp"

namespace warpmma {

// An array as its owner describes it.
struct Operand {
  const char* name = "";  // for messages
  bool given = false, whole_numbers = false;
  const char* data = nullptr;
  int size = 0, dimensions = 0;                    // bytes of an element; at most 4
  std::array<int64_t, 4> shape = {}, stride = {};  // strides in bytes
};

struct Operands {
  Operand a, b, c, d, chosen, scale_a, scale_b, sums;
  std::vector<End> ends;
};

// A plan that was found complete and consistent, within the bounds that the units' arithmetic is argued for, in a copy
// that nobody can change. What is found wrong, here and in `job`, is a std::invalid_argument.
class Checked {
 public:
  explicit Checked(const Plan& plan);
  const Plan& plan() const { return plan_; }

  // One call: matrices A [batch, m, k], B [batch, rows, n], C and D [batch, m, n]; or registers [batch, ...], each
  // warp's one after the other. `chosen` is [batch, m, k], scales [batch, m, some] and [batch, some, n]. A first
  // dimension of 1 is for the whole batch. Sums are [2, batch, m, n], of matrices with C and D of f32 alone.
  Job job(const Level& level, bool registers, int64_t m, int64_t n, int64_t k, const Operands& x) const;

 private:
  void check_tables(const Level& level, int64_t m, int64_t n, int64_t k) const;
  void set_sums(Job& job, const Operand& sums, const std::vector<End>& ends) const;

  Plan plan_;
  int64_t a_words_ = 0, b_words_ = 0, c_words_ = 0;  // of a warp's registers that the tables reach
  int64_t places_ = 0;                               // of tiles that `d_flat` reaches
};

// The level of a number that Python got from `levels`, if this processor has it.
const Level& level_of(int number);

}  // namespace warpmma
