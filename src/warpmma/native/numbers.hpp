// The number formats that are computed in and written, as IEEE 754 makes their codes; and what check.cpp keeps within
// bounds so that the units' arithmetic is exact.
#pragma once

#include <cstdint>

namespace warpmma {
namespace {

// A code is a sign, an exponent field and `kFraction` bits; field 0 is of subnormal numbers, the last of infinity and
// NaN.
template <class Code, int Width, int Fraction>
struct Ieee {
  static constexpr int kFraction = Fraction;
  static constexpr int kBias = (1 << (Width - Fraction - 2)) - 1;
  static constexpr int kEmin = 1 - kBias;
  static constexpr Code kHidden = Code{1}
                                  << Fraction;  // the least normal number's code, and what 1.0 has before its point
  static constexpr Code kQuiet = kHidden >> 1;
  static constexpr Code kFields = (Code{1} << (Width - 1 - Fraction)) - 1;  // the exponent field, all ones
  static constexpr Code kInfinity = kFields << Fraction;
  static constexpr Code kNan = kInfinity | (kHidden - 1);  // the canonical one: all ones but the sign
  // Code of 2^exponent, in the range of normal numbers.
  static constexpr Code power(int exponent) { return Code{exponent + kBias} << Fraction; }
};

using F16 = Ieee<int32_t, 16, 10>;
using F32 = Ieee<int32_t, 32, 23>;
using F64 = Ieee<int64_t, 64, 52>;

static_assert(F16::kInfinity == 0x7C00 && F16::kEmin == -14 && F16::kNan == 0x7FFF);
static_assert(F32::kInfinity == 0x7F800000 && F32::kEmin == -126 && F32::power(16) == 0x47800000);
static_assert(F64::kInfinity == 0x7FF0000000000000 && F64::power(0) == 0x3FF0000000000000);

constexpr int kMostGroups = 16;         // of a grouped sum
constexpr int kMostProducts = 1 << 15;  // of integers: so many of at most 255 * 255 stay below 2^31
constexpr int kMostScale = 100;         // of a block scale's exponent; what lies beyond is done on the exact path
constexpr int kNone = -8192;        // a zero has no say in the largest exponent: this is below every floor, and twice
                                    // it fits 16 bits
constexpr int kMostExponent = 128;  // nominal, which infinities and NaN have
constexpr int kWarp = 32;           // lanes

}  // namespace
}  // namespace warpmma
