// Numbers as bits: codes of formats, and rounding. `Format`s are constants that product_kernel.py writes.
//
// Every operation here has a result that PTX defines: no contraction (-fmad=false), no flush of subnormals, no
// approximation; so a simulated device runs these kernels too, with the same bits.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

// Loops over the elements of a thread, which are registers, and over products of a step; a simulated device, for which
// shorter programs are better, takes -DUNROLLED=1.
#ifndef UNROLLED
#define UNROLLED 64
#endif
#define EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)
#define ALONG(k, n) _Pragma("unroll MOST_UNROLLED") for (int k = 0; k < (n); k++)
constexpr int MOST_UNROLLED = UNROLLED;

constexpr u32 SIGN = 1u << 31, MAGNITUDE = SIGN - 1, INFINITE = 0x7F800000u, NOT_A_NUMBER = MAGNITUDE,
              HIDDEN = 1u << 23;
constexpr int BIAS = 127, FRACTION = 23, DOUBLE_BIAS = 1023, DOUBLE_FRACTION = 52;

// Nominal exponents that are none. A zero's stays below every floor with anything but an infinity's or NaN's, whose
// sums are above every exponent; an element that is not there (of a sparse A) stays below all.
constexpr int OF_ZERO = -1024, OF_SPECIAL = 4096, ABSENT = -16384;

__device__ __forceinline__ u32 bits(float x) { return __float_as_uint(x); }
__device__ __forceinline__ float number(u32 x) { return __uint_as_float(x); }

// 2^exponent, of normal numbers.
__device__ __forceinline__ float power(int exponent) { return number(u32(exponent + BIAS) << FRACTION); }
__device__ __forceinline__ double wide_power(int exponent) {
  return __longlong_as_double(s64(exponent + DOUBLE_BIAS) << DOUBLE_FRACTION);
}

// The value of a code, which f32 holds.
template <class Format>
__device__ __forceinline__ float decode(u32 code) {
  constexpr int shift = FRACTION - Format::fraction_bits, rebias = Format::emin + BIAS - 1;
  const u32 magnitude = code & Format::magnitude, sign = (code << (32 - Format::width)) & SIGN;
  u32 x = (magnitude << shift) + (u32(rebias) << FRACTION);
  if (rebias != 0 && magnitude < (1u << Format::fraction_bits))  // an integer times the least number
    x = bits(__uint2float_rn(magnitude) * power(rebias == 0 ? 0 : Format::emin - Format::fraction_bits));
  if (magnitude >= Format::special_from) x = magnitude == Format::infinity ? INFINITE : NOT_A_NUMBER;
  return number(x | sign);
}

// The nominal exponent of a value that `decode` made: subnormals are not normalised.
template <class Format>
__device__ __forceinline__ int nominal_exponent(float value) {
  const u32 magnitude = bits(value) & MAGNITUDE;
  if (magnitude == 0) return OF_ZERO;
  return magnitude >= INFINITE ? OF_SPECIAL : max(int(magnitude >> FRACTION) - BIAS, Format::nominal_emin);
}

// The code of an exact value, rounded to nearest even once; |value| is a double's normal number, zero, infinite or NaN.
template <class Format>
__device__ u32 encode(double value) {
  const u32 sign = __double_as_longlong(value) < 0 ? 1u << (Format::width - 1) : 0;
  const double magnitude = fabs(value);
  if (!(magnitude == magnitude)) return Format::of_nan;
  u32 code = Format::of_overflow;
  if (magnitude < wide_power(Format::emax + 1)) {
    const int field = int(__double_as_longlong(magnitude) >> DOUBLE_FRACTION) - DOUBLE_BIAS;
    const int exponent = max(field, Format::emin);
    const double scaled = magnitude * wide_power(Format::kept_bits - exponent);  // below 2^(kept_bits + 1)
    const u32 significand = u32(__double2int_rn(scaled));
    // A carry out of the fraction makes the next exponent, and the largest one's infinity.
    code = (u32(exponent - Format::emin) << Format::kept_bits) + significand;
    code = min(code << (Format::fraction_bits - Format::kept_bits), Format::of_overflow);
  }
  return code | sign;
}

__device__ __forceinline__ float to_half(float x) {  // and back: values of f16
  u16 code;
  float y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(code));
  return y;
}

// f32 to tf32, to nearest even, as cvt.rn.tf32.f32 does; the carry beyond the largest number makes infinity.
__device__ __forceinline__ u32 to_tf32(u32 code) {
  if ((code & MAGNITUDE) > INFINITE) return NOT_A_NUMBER;
  return (code + 0xFFFu + (code >> 13 & 1)) & 0xFFFFE000u;
}
