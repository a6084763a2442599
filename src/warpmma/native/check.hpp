// What the engine takes for granted, made certain before it runs: of parameters once, of operands at every call.
#pragma once

#include <cstdint>
#include <vector>

#include "job.hpp"
#include "level.hpp"
#include "operand.hpp"
#include "parameters.hpp"

namespace warpmma {

struct Operands {
  Operand a, b, c, d, chosen, scale_a, scale_b, sums;
  std::vector<End> ends;
};

// Parameters that were found complete and consistent, within the bounds that the units' arithmetic is argued for, in a
// copy that nobody can change. What is found wrong, here and in `job`, is a std::invalid_argument.
class Plan {
 public:
  explicit Plan(const Parameters& parameters);
  const Parameters& parameters() const { return parameters_; }

  // One call: matrices A [batch, m, k], B [batch, rows, n], C and D [batch, m, n]; or registers [batch, ...], each
  // warp's one after the other. `chosen` is [batch, m, k], scales [batch, m, some] and [batch, some, n]. A first
  // dimension of 1 is for the whole batch. Sums are [2, batch, m, n], of matrices with C and D of f32 alone. What is
  // written shares no memory with anything else.
  Job job(const Level& level, bool registers, int64_t m, int64_t n, int64_t k, const Operands& x) const;

 private:
  void check_tables(const Level& level, int64_t m, int64_t n, int64_t k) const;
  void set_operands(Job& job, const Level& level, const Operands& x) const;
  void set_extra(Job& job, const Operands& x) const;
  void set_sums(Job& job, const Operand& sums, const std::vector<End>& ends) const;

  Parameters parameters_;
  int64_t a_words_ = 0, b_words_ = 0, c_words_ = 0;  // of a warp's registers that the tables reach
  int64_t places_ = 0;                               // of tiles that `d_flat` reaches
};

// The level of a number that Python got from `levels`, if this processor has it.
const Level& level_of(int number);

}  // namespace warpmma
