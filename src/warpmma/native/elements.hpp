// Instructions on registers, element by element: what is to be computed, as Python hands it over
// (arithmetic/dispatch/native_elements.py), and the plan that the check makes of it. The rules are those of
// operations/arithmetic/floats.py, operations/arithmetic/conversions.py, operations/arithmetic/comparisons.py and
// arithmetic/exact/quotients.py; of integers those of operations/arithmetic/integers.py and
// operations/arithmetic/integer_arithmetic.py.
//
// As in parameters.hpp, names and fields stand here alone.
#pragma once

#include <cstdint>

#include "operand.hpp"
#include "parameters.hpp"

namespace warpmma {

// clang-format off: one more of its layouts each time
#define WARPMMA_ELEMENT_OPS(NAME)                                                            \
  NAME(add) NAME(sub) NAME(mul) NAME(fma) NAME(min) NAME(max) NAME(div) NAME(rcp) NAME(sqrt) \
  NAME(convert) NAME(compare) NAME(quotient) NAME(remainder) NAME(permute) NAME(extract)
// clang-format on

#define WARPMMA_ELEMENTS(NAME) \
  NAME(f16) NAME(bf16) NAME(f32) NAME(f64) NAME(s32) NAME(u32) NAME(pred) NAME(s64) NAME(u64)

#define WARPMMA_COMPARISONS(NAME) NAME(eq) NAME(ne) NAME(lt) NAME(le) NAME(gt) NAME(ge) NAME(num) NAME(nan)

#define WARPMMA_NAME(name) name,
enum class ElementOp : int { WARPMMA_ELEMENT_OPS(WARPMMA_NAME) };
enum class Element : int { WARPMMA_ELEMENTS(WARPMMA_NAME) };
enum class Comparison : int { WARPMMA_COMPARISONS(WARPMMA_NAME) };
#undef WARPMMA_NAME

#define WARPMMA_ELEMENTWISE(FIELD)                                       \
  FIELD(ElementOp, op, ElementOp::add, "")                               \
  FIELD(Element, source, Element::f32, "of operands")                    \
  FIELD(Element, result, Element::f32, "")                               \
  FIELD(Rounding, rounding, Rounding::rn, "")                            \
  FIELD(Comparison, comparison, Comparison::eq, "")                      \
  FIELD(bool, unordered, false, "a comparison with NaN is true")         \
  FIELD(bool, integral, false, "a conversion rounds to integers first")  \
  FIELD(bool, flush, false, "subnormal operands are zeros")              \
  FIELD(bool, flush_result, false, "subnormal results are zeros")        \
  FIELD(bool, saturate, false, "the result is clamped to [0, 1]")        \
  FIELD(bool, finite, false, "the result is at most the largest number") \
  FIELD(bool, rectify, false, "negative results are zeros")              \
  FIELD(bool, keep_nan, false, "an extreme of NaN is NaN")               \
  FIELD(bool, magnitudes, false, "an extreme is of magnitudes, and has the exclusive or of both signs")

#define WARPMMA_FIELD(type, name, initial, what) type name = initial;
struct ElementParameters {
  WARPMMA_ELEMENTWISE(WARPMMA_FIELD)
};
#undef WARPMMA_FIELD

constexpr int kMostOperands = 3;

struct ElementInput {
  const char* data = nullptr;
  int period = 0;  // bytes of what is the same for all; 0 where elements follow each other
};

struct ElementJob {
  ElementInput input[kMostOperands] = {};
  char* out = nullptr;
  int64_t count = 0;
  int step = 1, first = 0;  // elements of the result from one that is written to the next, and before the first
};

int operands_of(ElementOp op);
int bytes_of(Element element);

// Parameters that go together; what does not is a std::invalid_argument, here and in `job`.
class ElementPlan {
 public:
  explicit ElementPlan(const ElementParameters& parameters);
  const ElementParameters& parameters() const { return parameters_; }

  // One call: registers of any width that hold as many elements, or one register that stands for all; what is written
  // apart. Of a result of twice as many elements each `part` of two is written.
  ElementJob job(const Operand& a, const Operand& b, const Operand& c, const Operand& out, int parts, int part) const;

 private:
  ElementParameters parameters_;
};

}  // namespace warpmma
