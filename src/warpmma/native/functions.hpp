// Functions of the special-function unit: what is to be computed, as Python hands it over
// (arithmetic/dispatch/functions.py), and the plan that the check makes of it. The rules are those of
// arithmetic/exact/interpolation.py (1 and 2) and arithmetic/exact/special_functions.py (3 to 11), and around them
// those of arithmetic/recipes/sequences.py.
//
// As in parameters.hpp, names and fields stand here alone.
#pragma once

#include <cstdint>
#include <vector>

#include "operand.hpp"

namespace warpmma {

#define WARPMMA_LAWS(NAME) NAME(rcp) NAME(rsqrt) NAME(sqrt) NAME(ex2) NAME(lg2) NAME(sin) NAME(cos) NAME(tanh)

// What happens to the unit's result where its operand was scaled.
#define WARPMMA_AFTERS(NAME) NAME(nothing) NAME(multiply) NAME(add) NAME(square)

#define WARPMMA_NAME(name) name,
enum class Law : int { WARPMMA_LAWS(WARPMMA_NAME) };
enum class After : int { WARPMMA_AFTERS(WARPMMA_NAME) };
#undef WARPMMA_NAME

#define WARPMMA_SCALING(FIELD)                                                          \
  FIELD(uint64_t, mask, 0, "bits of the operand that say whether it lies in the range") \
  FIELD(uint64_t, first, 0, "of the range")                                             \
  FIELD(uint64_t, last, 0, "likewise")                                                  \
  FIELD(float, before, 1, "what the operand is multiplied by")                          \
  FIELD(After, after, After::nothing, "")                                               \
  FIELD(float, number, 1, "what the result is multiplied by, or what is added to it")

#define WARPMMA_STEP(FIELD)                                                                             \
  FIELD(int, a, 0, "a factor: 0 is the operand, 1 the unit's result, then numbers, then earlier steps") \
  FIELD(int, b, 0, "likewise")                                                                          \
  FIELD(int, c, 0, "what is added")                                                                     \
  FIELD(bool, negate, false, "the second factor is negated")

#define WARPMMA_KEPT(FIELD)                                           \
  FIELD(uint64_t, mask, 0, "as of a scaling")                         \
  FIELD(uint64_t, first, 0, "")                                       \
  FIELD(uint64_t, last, 0, "")                                        \
  FIELD(uint64_t, keep, 0, "bits of the operand that the result has") \
  FIELD(uint64_t, put, 0, "bits of the result that are set")

#define WARPMMA_FUNCTION(FIELD)                                                                                 \
  FIELD(Law, law, Law::rcp, "")                                                                                 \
  FIELD(bool, upper, false, "operands and results of the unit are upper words of f64, not f32")                 \
  FIELD(bool, wide, false, "operands and results are f64, of which the unit has upper words")                   \
  FIELD(int, bits, 0, "of x")                                                                                   \
  FIELD(std::vector<int64_t>, rows, {}, "of each segment: what 1, x and q(x) are multiplied by, times 2^41")    \
  FIELD(std::vector<int32_t>, first, {}, "of each table: its first row")                                        \
  FIELD(std::vector<int32_t>, drop, {}, "of each table: bits of a fraction of 23 that lie below x")             \
  FIELD(float, factor, 0, "what the operand is multiplied by, toward zero, or 0")                               \
  FIELD(std::vector<Scaling>, scalings, {}, "ranges of operands that are scaled")                               \
  FIELD(bool, dividend, false, "the result is multiplied by a second operand, which is scaled as the first is") \
  FIELD(bool, ftz, false, "multiplications of a division flush subnormal numbers")                              \
  FIELD(std::vector<double>, numbers, {}, "that steps use")                                                     \
  FIELD(std::vector<Step>, steps, {}, "fused multiply-adds after the unit, of which the last is the result")    \
  FIELD(std::vector<Kept>, special, {}, "ranges of operands whose results are some of their bits")

#define WARPMMA_FIELD(type, name, initial, what) type name = initial;
struct Scaling {
  WARPMMA_SCALING(WARPMMA_FIELD)
};

struct Step {
  WARPMMA_STEP(WARPMMA_FIELD)
};

struct Kept {
  WARPMMA_KEPT(WARPMMA_FIELD)
};

struct FunctionParameters {
  WARPMMA_FUNCTION(WARPMMA_FIELD)
};
#undef WARPMMA_FIELD

constexpr int kPoint = 41;            // of sums
constexpr int kFirstTanhField = 119;  // the exponent field of tanh's first table
constexpr int kTanhTables = 11;       // one for each exponent field
constexpr int kSquarerBits = 15;      // upper bits of x that a partial product has, and bits of q
constexpr int kMostKnown = 24;        // the operand, the unit's result, numbers and steps

// Of a plan: its rows as f64, which hold them exactly.
struct FunctionTables : FunctionParameters {
  std::vector<double> c0, c1, c2;
};

struct FunctionJob {
  const void *codes = nullptr, *dividend = nullptr;  // words of 32 bits, or of 64 where the plan is wide
  void* out = nullptr;
  int64_t count = 0;
};

// Parameters that were found complete and consistent: every position has a row, and with every row every sum of rule 2
// is exact in f64, and not negative; where a function is nowhere zero, positive. What is found wrong, here and in
// `job`, is a std::invalid_argument.
class FunctionPlan {
 public:
  explicit FunctionPlan(const FunctionParameters& parameters);
  const FunctionTables& tables() const { return tables_; }

  // One call: as many results as codes and, of a division, dividends; in a row, what is written apart.
  FunctionJob job(const Operand& codes, const Operand& dividend, const Operand& out) const;

 private:
  FunctionTables tables_;
};

}  // namespace warpmma
