// Parameters: see check.hpp. Operands are checked in job.cpp.
#include "check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "numbers.hpp"

namespace warpmma {

namespace {

bool within(int64_t x, int64_t low, int64_t high) { return low <= x && x <= high; }

int padding(const Format& f) { return std::countr_zero(f.magnitude); }

int significand(const Format& f) { return f.fraction_bits + 1 - padding(f); }

double least(const Format& f) { return std::ldexp(1.0, f.emin - f.fraction_bits + padding(f)); }

uint32_t greatest_code(const Format& f) { return std::min(f.special_from - 1, f.magnitude); }

double greatest(const Format& f) {
  const int64_t code = greatest_code(f), hidden = int64_t{1} << f.fraction_bits;
  const int field = static_cast<int>(code >> f.fraction_bits);
  return std::ldexp(static_cast<double>(field ? (code & (hidden - 1)) | hidden : code),
                    std::max(field, 1) - 1 + f.emin - f.fraction_bits);
}

// As `decode` of pack.hpp wants it: its numbers are those of f32 too, and it makes subnormal ones with a factor that is
// none.
bool floating(const Format& f) {
  if (f.integer || !within(f.width, 2, 32) || !within(f.fraction_bits, 0, F32::kFraction) || f.fraction_bits >= f.width)
    return false;
  if (f.magnitude == 0 || uint64_t{f.magnitude} >> (f.width - 1) || padding(f) > f.fraction_bits) return false;
  if (!within(f.special_from, 1, INT32_MAX) || f.infinity > INT32_MAX) return false;
  if (!within(f.emin, F32::kEmin, F32::kBias)) return false;
  if (f.emin != F32::kEmin && f.emin - f.fraction_bits < F32::kEmin) return false;
  const int64_t greatest = int64_t{greatest_code(f)} << (F32::kFraction - f.fraction_bits);
  return greatest + (int64_t{f.emin - F32::kEmin} << F32::kFraction) < F32::kInfinity &&
         within(f.nominal_emin, -1000, F32::kBias);
}

bool is(const Format& f, int width, int fraction_bits, int emin) {
  return floating(f) && f.width == width && f.fraction_bits == fraction_bits && f.emin == emin &&
         significand(f) == fraction_bits + 1 && f.infinity == f.special_from;
}

bool is_f16(const Format& f) { return is(f, 16, F16::kFraction, F16::kEmin); }
bool is_f32(const Format& f) { return is(f, 32, F32::kFraction, F32::kEmin); }

bool integer(const Format& f, int least_width, int most_width) {
  return f.integer && within(f.width, least_width, most_width);
}

bool permutation(std::vector<int32_t> x) {
  std::sort(x.begin(), x.end());
  for (size_t i = 0; i < x.size(); i++)
    if (x[i] != static_cast<int32_t>(i)) return false;
  return true;
}

void check_shape(const Parameters& p) {
  require(within(p.k, 1, kMostProducts), "k, the products of one instruction, is from 1 to 32768");
  require(p.b_k == (p.sparse ? 2 * p.k : p.k), "b_k is k, or 2 k of a sparse product");
  require(within(p.step, 1, p.k) && within(p.steps, 1, p.k) && int64_t{p.step} * p.steps == p.k,
          "steps of equal length make up k");
  require(static_cast<int>(p.order.size()) == p.k && permutation(p.order), "order is a permutation of k products");
  require(!p.sparse || p.unit == Unit::FusedDotAdd || p.unit == Unit::GroupedDotAdd || p.unit == Unit::IntegerSum,
          "this unit has no sparse form");
  require(p.rounding == Rounding::rn || p.unit == Unit::FmaChain, "only the f64 chain has a rounding mode");
}

// Of fused and grouped sums.
void check_result(const Parameters& p, int most) {
  require(within(p.fraction_bits, 1, most), "more fraction bits than the sum is exact with");
  require(within(p.floor, -1000, 100), "the least exponent is from -1000 to 100");
  require(p.nearest == p.half, "an f16 result is rounded to nearest, an f32 result toward zero");
  require(p.half ? p.result_bits == F16::kFraction : within(p.result_bits, 1, F32::kFraction),
          "fraction bits that the result has not");
}

void check_scales(const Parameters& p) {
  require(p.scales == 0 || p.unit == Unit::FusedDotAdd || p.unit == Unit::GroupedDotAdd,
          "this unit has no block scales");
  require(within(p.scales, 0, p.k) && (p.scales == 0 || p.k % p.scales == 0), "block scales divide k");
  require((p.scales == 0 && p.scale_value.empty() && p.scale_exponent.empty()) ||
              (p.scales > 0 && p.scale_value.size() == 256 && p.scale_exponent.size() == 256),
          "tables of block scales have 256 entries");
  for (size_t code = 0; code < p.scale_value.size(); code++) {
    const double value = p.scale_value[code];
    const int exponent = p.scale_exponent[code];
    require(within(exponent, kNone, kMostExponent), "exponents of block scales are from -8192 to 128");
    if (p.unit == Unit::FusedDotAdd)
      require(std::isnan(value) ? exponent > kMostScale : value == std::ldexp(1.0, exponent),
              "block scales of a fused sum are powers of two or NaN");
    else  // with 14 bits each, two of them and a sum of 24 make a product of 52
      require(std::isnan(value) ||
                  (std::abs(value) < std::ldexp(2.0, exponent) &&
                   std::ldexp(value, 13 - exponent) == std::rint(std::ldexp(value, 13 - exponent))) ||
                  value == 0,
              "a block scale has at most 14 significant bits, and its exponent");
  }
}

// Of fused sums and of chains in f32, as fused.hpp and units.hpp argue.
bool exact_products(const Parameters& p) { return significand(p.a) + significand(p.b) <= 24; }

void check_unit(const Parameters& p) {
  const bool narrow = floating(p.a) && floating(p.b) && (is_f16(p.c) || is_f32(p.c)) && (is_f16(p.d) || is_f32(p.d));
  switch (p.unit) {
    case Unit::FusedDotAdd:
      require(narrow, "a fused sum is of floating-point numbers, C and D of f16 or f32");
      require(exact_products(p), "f32 does not hold products of these formats");
      check_result(p, 25);
      require(p.step % 2 == 0, "a fused step takes an even number of products");
      require(p.scales == 0 || p.k / p.scales % 2 == 0, "a block scale is for an even number of products");
      return;
    case Unit::GroupedDotAdd: {
      require(narrow, "a grouped sum is of floating-point numbers, C and D of f16 or f32");
      check_result(p, 35);
      require(p.steps <= kMostGroups && p.step % 2 == 0, "at most 16 groups of an even number of products");
      require(p.scales > 0 && p.steps % p.scales == 0, "groups have block scales");
      const double product = greatest(p.a) * greatest(p.b);
      require(p.step * product / (least(p.a) * least(p.b)) <= 0x1p24, "f32 does not hold the sum of a group");
      // Scales are less than twice what their exponents say, and C has a share.
      require((p.k * product * 4 + 2) * std::ldexp(1.0, p.fraction_bits) <= 0x1p53,
              "f64 does not hold the sum of groups");
      return;
    }
    case Unit::FmaChain:
      for (const Format* f : {&p.a, &p.b, &p.c, &p.d})
        require(!f->integer && f->width == 64, "operands of the f64 chain are f64");
      require(within(static_cast<int>(p.rounding), 0, 3), "there are four rounding modes");
      return;
    case Unit::FloatChains:
      require(narrow, "chains in f32 are of floating-point numbers, C and D of f16 or f32");
      require(exact_products(p) && least(p.a) * least(p.b) >= 0x1p-149 && greatest(p.a) * greatest(p.b) < 0x1p128,
              "f32 does not hold products of these formats");
      return;
    case Unit::IntegerSum:
      require(integer(p.a, 1, 8) && integer(p.b, 1, 8), "factors of an integer sum have at most 8 bits");
      require(integer(p.c, 32, 32) && integer(p.d, 32, 32), "C and D of an integer sum have 32 bits");
      require(p.d.is_signed || !p.saturate, "what is clamped is signed");
      return;
    case Unit::Popcount:
      require(integer(p.a, 1, 1) && integer(p.b, 1, 1), "ones are counted of single bits");
      require(integer(p.c, 32, 32) && integer(p.d, 32, 32), "C and D of a population count have 32 bits");
      return;
  }
  refuse("there is no such unit");
}

// How many words a table reaches.
int64_t check_table(const Table& t) {
  require(t.word.size() == t.shift.size(), "a table has a shift for each word");
  int32_t most = -1;
  for (int32_t word : t.word) {
    require(word >= 0, "words of registers are counted from 0");
    most = std::max(most, word);
  }
  for (int32_t shift : t.shift) require(within(shift, 0, 31), "a shift is from 0 to 31");
  return int64_t{most} + 1;
}

}  // namespace

Plan::Plan(const Parameters& parameters) : parameters_(parameters) {
  Parameters& p = parameters_;
  p.half = is_f16(p.d);
  check_shape(p);
  check_unit(p);
  check_scales(p);
  a_words_ = check_table(p.a_table);
  b_words_ = check_table(p.b_table);
  c_words_ = check_table(p.c_table);
  require(within(p.matrices, 1, 64) && within(p.registers, 0, 4096) && within(p.per_register, 1, 32),
          "a warp has 1 to 64 matrices and at most 4096 registers, with 1 to 32 elements each");
  require(p.d_flat.size() == size_t{kWarp} * p.registers * p.per_register, "d_flat has a place for each element");
  require(p.registers == 0 || p.d_shift.size() == static_cast<size_t>(p.per_register),
          "d_shift has one for each element");
  for (int32_t shift : p.d_shift) require(within(shift, 0, 31), "a shift is from 0 to 31");
  for (int32_t place : p.d_flat) {
    require(place >= 0, "places of tiles are counted from 0");
    places_ = std::max(places_, int64_t{place} + 1);
  }
}

}  // namespace warpmma
