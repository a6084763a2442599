// Parameters and operands: see elements.hpp.
#include "elements.hpp"

namespace warpmma {
namespace {

constexpr int kMostBytes = 8;  // of an element

bool is_float(Element x) { return x <= Element::f64; }

}  // namespace

int operands_of(ElementOp op) {
  switch (op) {
    case ElementOp::fma:
    case ElementOp::permute:
    case ElementOp::extract:
      return 3;
    case ElementOp::rcp:
    case ElementOp::sqrt:
    case ElementOp::convert:
      return 1;
    case ElementOp::add:
    case ElementOp::sub:
    case ElementOp::mul:
    case ElementOp::min:
    case ElementOp::max:
    case ElementOp::div:
    case ElementOp::compare:
    case ElementOp::quotient:
    case ElementOp::remainder:
      return 2;
  }
  refuse("there is no such operation");
}

int bytes_of(Element element) {
  switch (element) {
    case Element::f16:
    case Element::bf16:
      return 2;
    case Element::f32:
    case Element::s32:
    case Element::u32:
      return 4;
    case Element::f64:
    case Element::s64:
    case Element::u64:
      return kMostBytes;
    case Element::pred:
      return 1;
  }
  refuse("there is no such element");
}

ElementPlan::ElementPlan(const ElementParameters& p) : parameters_(p) {
  operands_of(p.op);
  bytes_of(p.source);
  bytes_of(p.result);
  const int rounding = static_cast<int>(p.rounding), comparison = static_cast<int>(p.comparison);
  require(0 <= rounding && rounding <= static_cast<int>(Rounding::rp), "there is no such rounding");
  require(0 <= comparison && comparison <= static_cast<int>(Comparison::nan), "there is no such comparison");
  const bool wide = p.source == Element::f64 || p.result == Element::f64;
  switch (p.op) {
    case ElementOp::compare:
      require(is_float(p.source) && p.result == Element::pred, "floats are compared, and the result is a predicate");
      break;
    case ElementOp::convert:
      require(p.source < Element::pred && p.result < Element::pred,
              "numbers of at most 32 bits, or f64, are converted");
      require(is_float(p.source) || is_float(p.result), "one side of a conversion is a float");
      require(is_float(p.result) || (p.integral && !p.saturate && !p.finite && !p.rectify),
              "integers are rounded to, and nothing else");
      break;
    case ElementOp::permute:
      require(p.source == Element::u32 && p.result == Element::u32, "words of 32 bits are permuted");
      break;
    case ElementOp::extract:
    case ElementOp::quotient:
    case ElementOp::remainder:
      require(p.source == p.result && !is_float(p.source) && p.source != Element::pred, "these are of integers");
      require(p.op != ElementOp::extract || bytes_of(p.source) == 4, "fields are of words of 32 bits");
      break;
    default:
      require(is_float(p.source) && p.source == p.result, "operands and result are floats of one format");
      require(p.source != Element::f64 || !(p.flush || p.flush_result || p.saturate || p.finite || p.rectify),
              "f64 is neither flushed nor clamped");
  }
  require(!wide || !(p.finite || p.rectify), "f64 is not clamped");
}

ElementJob ElementPlan::job(const Operand& a, const Operand& b, const Operand& c, const Operand& out, int parts,
                            int part) const {
  require((parts == 1 || parts == 2) && 0 <= part && part < parts, "a result has one part or two");
  check_elements(out);
  const int64_t size = bytes_of(parameters_.result);
  int64_t registers = 1;
  for (int i = 0; i < out.dimensions; i++) registers *= out.shape[i];
  if (!contiguous(out, 0) || out.size % (size * parts) != 0) wrong(out, "is not of registers in a row");
  ElementJob found;
  found.out = const_cast<char*>(out.data);
  found.step = parts, found.first = part;
  const int64_t each = out.size / (size * parts);  // elements of a register
  found.count = registers * each;
  const int needed = operands_of(parameters_.op);
  const Operand* const given[] = {&a, &b, &c};
  for (int i = 0; i < kMostOperands; i++) {
    const Operand& x = *given[i];
    if (i >= needed) {
      if (x.given) wrong(x, "is for another operation");
      continue;
    }
    check_elements(x);
    if (x.size != each * bytes_of(parameters_.source) || !contiguous(x, 0)) wrong(x, "is not of such registers");
    int64_t has = 1;
    for (int n = 0; n < x.dimensions; n++) has *= x.shape[n];
    if (has != registers && has != 1) wrong(x, "has " + std::to_string(has) + " registers");
    check_apart(out, x);
    found.input[i] = {x.data, has == registers ? 0 : x.size};
  }
  return found;
}

}  // namespace warpmma
