// Parameters and operands: see functions.hpp.
#include "functions.hpp"

#include <algorithm>
#include <cmath>

namespace warpmma {
namespace {

constexpr int kMostScaling = 64;  // exponent
constexpr size_t kMostScalings = 4, kMostSpecial = 8;
constexpr int kFraction = 23;                // bits of a position
constexpr int64_t kMost = int64_t{1} << 43;  // sums of rule 2, and with 2^49 of lg2's exponent, are exact in f64

bool within(int64_t x, int64_t low, int64_t high) { return low <= x && x <= high; }

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

int tables_of(Law law) {
  switch (law) {
    case Law::rcp:
    case Law::ex2:
    case Law::lg2:
    case Law::sin:
    case Law::cos:
      return 1;
    case Law::rsqrt:
    case Law::sqrt:
      return 2;
    case Law::tanh:
      return kTanhTables;
  }
  refuse("there is no such law");
}

bool sine(Law law) { return law == Law::sin || law == Law::cos; }

bool power_of_two(float x) {
  int exponent = 0;
  return std::isfinite(x) && std::frexp(x, &exponent) == 0.5f && magnitude(exponent) <= kMostScaling;
}

template <class Range>
void check_range(const FunctionParameters& p, const Range& range) {
  require(range.first <= range.last, "a range ends after it begins");
  require(p.wide || (range.mask | range.last) <= UINT32_MAX, "a range is of codes");
}

void check_scaling(const FunctionParameters& p, const Scaling& s) {
  require(within(static_cast<int>(s.after), 0, static_cast<int>(After::square)), "there is nothing of that kind after");
  require(s.after == p.scalings[0].after, "what happens after is of one kind");
  require(!p.dividend || s.after == After::nothing, "nothing happens after a division");
  require(!p.wide || s.after == After::multiply, "results of f64 are multiplied");
  check_range(p, s);
  require(power_of_two(s.before), "an operand is multiplied by a power of two");
  require(s.after == After::add ? std::isfinite(s.number) : power_of_two(s.number),
          "a result is multiplied by a power of two, or a number is added");
}

void check_steps(const FunctionParameters& p) {
  require(p.wide || (p.numbers.empty() && p.steps.empty() && p.special.empty()), "only f64 is refined");
  require(p.special.size() <= kMostSpecial, "there are at most 8 kinds of special operands");
  for (const Kept& kept : p.special) check_range(p, kept);
  require(2 + p.numbers.size() + p.steps.size() <= kMostKnown, "numbers and steps are at most 22");
  int64_t known = static_cast<int64_t>(2 + p.numbers.size());
  for (const Step& step : p.steps) {
    require(within(step.a, 0, known - 1) && within(step.b, 0, known - 1) && within(step.c, 0, known - 1),
            "a step uses what is known before it");
    known++;
  }
}

void check_around(const FunctionParameters& p) {
  require(!p.upper || p.law == Law::rcp || p.law == Law::rsqrt, "only rcp and rsqrt are of upper words");
  require(!p.wide || p.upper, "of f64 the unit has upper words");
  require(!p.upper || (p.factor == 0 && (p.wide || p.scalings.empty())), "upper words are not multiplied");
  require(p.factor == 0 || (0x1p-64f <= p.factor && p.factor <= 1), "a factor is from 2^-64 to 1");
  require(!p.dividend || (p.law == Law::rcp && !p.upper && p.factor == 0), "only rcp of f32 makes a division");
  require(!p.ftz || p.dividend, "only multiplications of a division flush");
  require(p.scalings.size() <= kMostScalings, "there are at most 4 scalings");
  for (const Scaling& s : p.scalings) check_scaling(p, s);
  check_steps(p);
}

// That every sum is exact, and not negative: q(x) is at most the square of x, and x is below 1.
void check_row(const FunctionParameters& p, const int64_t* row) {
  const int64_t c0 = row[0], c1 = row[1], c2 = row[2], ones = int64_t{1} << kSquarerBits;
  // Each below 2^43 keeps the products below within 64 bits.
  require(within(c0, -kMost, kMost) && within(c1, -kMost, kMost) && within(c2, -kMost, kMost) &&
              magnitude(c1) < kMost >> p.bits && magnitude(c2) < kMost >> kSquarerBits &&
              magnitude(c0) + (magnitude(c1) << p.bits) + magnitude(c2) * ones < kMost,
          "a sum of a row's products is below 2^43");
  // q <= x^2 / 2^(2 bits - 15) <= x / 2^(bits - 15), so that the sum is at least linear in x.
  const int64_t slope = c1 * (int64_t{1} << (p.bits - kSquarerBits)) + std::min<int64_t>(c2, 0);
  const int64_t least = std::min(c0, c0 + slope * ones);
  require(least >= (sine(p.law) ? 0 : 1), "a row's sums are positive; of sin, or zero");
}

}  // namespace

FunctionPlan::FunctionPlan(const FunctionParameters& p) {
  const int tables = tables_of(p.law);
  check_around(p);
  require(within(p.bits, kSquarerBits, kFraction), "x has 15 to 23 bits");
  require(p.rows.size() % 3 == 0 && p.rows.size() < size_t{1} << 16, "a row is of three numbers");
  const int64_t rows = static_cast<int64_t>(p.rows.size() / 3);
  require(static_cast<int>(p.first.size()) == tables && static_cast<int>(p.drop.size()) == tables,
          "each table of the function has its first row and what is dropped");
  for (int i = 0; i < tables; i++) {
    require(within(p.drop[i], 0, kFraction - p.bits), "drop leaves the bits of x");
    const int64_t segments = int64_t{1} << (kFraction - p.drop[i] - p.bits);
    require(within(p.first[i], 0, rows - segments), "each segment of a table has a row");
  }
  tables_ = {p, {}, {}, {}};
  for (int64_t i = 0; i < rows; i++) {
    const int64_t* row = p.rows.data() + 3 * i;
    check_row(p, row);
    tables_.c0.push_back(static_cast<double>(row[0]));
    tables_.c1.push_back(static_cast<double>(row[1]));
    tables_.c2.push_back(static_cast<double>(row[2]));
  }
}

FunctionJob FunctionPlan::job(const Operand& codes, const Operand& dividend, const Operand& out) const {
  if (dividend.given != tables_.dividend)
    wrong(dividend, dividend.given ? "is for another kind of function" : "is missing");
  const Operand* const all[] = {&out, &codes, &dividend};
  for (const Operand* x : all) {
    if (x == &dividend && !x->given) continue;
    check_elements(*x);
    if (x->dimensions != 1 || x->size != (tables_.wide ? 8 : 4) || !contiguous(*x, 0))
      wrong(*x, tables_.wide ? "is not of words of 64 bits in a row" : "is not of words in a row");
    if (x->shape[0] != out.shape[0]) wrong(*x, "is " + text(x->shape, 1) + ", not " + text(out.shape, 1));
    if (x != &out) check_apart(out, *x);
  }
  return {codes.data, dividend.data, const_cast<char*>(out.data), out.shape[0]};
}

}  // namespace warpmma
