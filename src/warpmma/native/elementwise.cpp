// Element by element, for one instruction set: WARPMMA_X86_64 and WARPMMA_LEVEL (CMakeLists.txt).
//
// A block of elements at a time, in loops that the compiler makes vectors of. f32 and f64 are the processor's own, with
// its rounding mode. f16 and bf16 are computed in f32, once down and once up: where these differ they are neighbours,
// and the one whose last bit is set is the exact value rounded to odd, so that rounding once more, to the format of the
// result, is rounding the exact value (operations/arithmetic/floats.py, `sum_to_odd`). What is converted, and what f32
// flushes in doubt, goes through doubles in the same way.
//
// The standard headers come before the pragma, as in level.cpp.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "elements.hpp"
#include "level.hpp"
// clang-format off: nothing of the other headers is compiled for the instruction set
#include "instruction_set.hpp"
// clang-format on

namespace warpmma {
namespace {

constexpr int kBlock = 256;

using U16 = uint16_t;
using U32 = uint32_t;
using U64 = uint64_t;

template <class To, class From>
inline To as(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}

// Formats: a code is a sign, an exponent and `fraction` bits.
template <class CodeType, int Fraction, int Emin>
struct Float {
  using Code = CodeType;
  static constexpr int fraction = Fraction, emin = Emin;
  static constexpr Code sign = Code(Code{1} << (8 * sizeof(Code) - 1));
  static constexpr Code hidden = Code(Code{1} << Fraction);
  static constexpr Code infinity = Code(Code(sign - 1) & ~Code(hidden - 1));
  static constexpr Code nan = Code(sign - 1);
  static constexpr Code one = Code(Code(1 - Emin) << Fraction);
};
using F16 = Float<U16, 10, -14>;
using Bf16 = Float<U16, 7, -126>;
using F32 = Float<U32, 23, -126>;
using F64 = Float<U64, 52, -1022>;
static_assert(F16::one == 0x3C00 && Bf16::one == 0x3F80 && F32::one == 0x3F800000 && F64::one == 0x3FF0000000000000);
static_assert(F16::infinity == 0x7C00 && Bf16::nan == 0x7FFF && F32::infinity == 0x7F800000);

template <class F>
inline typename F::Code magnitude(typename F::Code x) {
  return typename F::Code(x & typename F::Code(~F::sign));
}

// Operands

template <class T>
void fetch(const ElementInput& input, int64_t first, int count, T* to) {
  if (input.period == 0)
    std::memcpy(to, input.data + first * int64_t{sizeof(T)}, count * sizeof(T));
  else if (first == 0)  // as long as it is the same for all, what was there stays
    for (int i = 0; i < kBlock; i++) std::memcpy(to + i, input.data + (i * sizeof(T)) % input.period, sizeof(T));
}

template <class F>
void flush(typename F::Code* x) {
  for (int i = 0; i < kBlock; i++) x[i] = magnitude<F>(x[i]) < F::hidden ? typename F::Code(x[i] & F::sign) : x[i];
}

inline float value(F32, U32 x) { return as<float>(x); }
inline float value(Bf16, U16 x) { return as<float>(U32{x} << 16); }
inline float value(F16, U16 x) {
  const U32 size = U32(x & 0x7FFF), sign = U32(x & 0x8000) << 16;
  // A processor may take long for numbers that are subnormal in f32, so none is made on the way.
  const U32 small = as<U32>(static_cast<float>(static_cast<int32_t>(size)) * 0x1p-24f);
  const U32 normal = (size << 13) + (size >= F16::infinity ? U32{0x70000000} : U32{0x38000000});
  return as<float>(sign | (size < F16::hidden ? small : normal));
}
inline double value(int32_t, U32 x) { return static_cast<int32_t>(x); }
inline double value(U32, U32 x) { return x; }
inline double value(F64, U64 x) { return as<double>(x); }

template <class F>
struct CodeOf {
  using type = typename F::Code;
};
template <>
struct CodeOf<int32_t> {
  using type = U32;
};
template <>
struct CodeOf<U32> {
  using type = U32;
};

// The processor's arithmetic, in the rounding mode that is set. These are functions of their own, so that nothing moves
// past a change of the mode.

#define WARPMMA_APART_FROM_MODE __attribute__((noinline))

class Mode {
 public:
  explicit Mode(Rounding rounding) : before_(std::fegetround()) { set(rounding); }
  ~Mode() { std::fesetround(before_); }
  static void set(Rounding rounding) {
    constexpr int of[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(of[static_cast<int>(rounding)]);
  }

 private:
  int before_;
};
static_assert(static_cast<int>(Rounding::rn) == 0 && static_cast<int>(Rounding::rz) == 1);
static_assert(static_cast<int>(Rounding::rm) == 2 && static_cast<int>(Rounding::rp) == 3);

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

template <class T>
WARPMMA_APART_FROM_MODE void arithmetic(ElementOp op, const T* a, const T* b, const T* c, T* r) {
  switch (op) {
    case ElementOp::add:
      for (int i = 0; i < kBlock; i++) r[i] = a[i] + b[i];
      break;
    case ElementOp::sub:
      for (int i = 0; i < kBlock; i++) r[i] = a[i] - b[i];
      break;
    case ElementOp::mul:
      for (int i = 0; i < kBlock; i++) r[i] = a[i] * b[i];
      break;
    case ElementOp::fma:
      for (int i = 0; i < kBlock; i++) r[i] = fused(a[i], b[i], c[i]);
      break;
    case ElementOp::div:
      for (int i = 0; i < kBlock; i++) r[i] = a[i] / b[i];
      break;
    case ElementOp::rcp:
      for (int i = 0; i < kBlock; i++) r[i] = T(1) / a[i];
      break;
    case ElementOp::sqrt:
      for (int i = 0; i < kBlock; i++) r[i] = root(a[i]);
      break;
    default:
      break;
  }
}

// In doubles, to nearest, and from there to odd.

inline double toward(double s, double error) {
  const int64_t bits = as<int64_t>(s);
  const bool move = (error != 0) & ((bits & 1) == 0) & (as<U64>(s) << 1 < U64{0x7FF} << 53) & (error == error);
  const int64_t step = (error > 0) == (s > 0) ? 1 : -1;
  return as<double>(bits + (move ? step : 0));
}

inline double sum_to_odd(double p, double c, bool down) {
  const double s = p + c, back = s - p, odd = toward(s, (p - (s - back)) + (c - back));
  const bool negative = (as<int64_t>(p) | as<int64_t>(c)) < 0;
  return ((odd == 0) & negative & down) ? -0.0 : odd;
}

inline double quotient_to_odd(double a, double b) {
  const double q = a / b;
  // The remainder a - q b has the sign of the error times b's.
  const double left = fused(-q, b, a);
  return toward(q, as<int64_t>(b) < 0 ? -left : left);
}

inline double root_to_odd(double x) {
  const double s = root(x);
  return toward(s, fused(-s, s, x));
}

WARPMMA_APART_FROM_MODE void to_odd(const ElementParameters& p, const double (*x)[kBlock], U64* r) {
  const double *a = x[0], *b = x[1], *c = x[2];
  const bool down = p.rounding == Rounding::rm;
  switch (p.op) {
    case ElementOp::add:
      for (int i = 0; i < kBlock; i++) r[i] = as<U64>(sum_to_odd(a[i], b[i], down));
      break;
    case ElementOp::sub:
      for (int i = 0; i < kBlock; i++) r[i] = as<U64>(sum_to_odd(a[i], -b[i], down));
      break;
    case ElementOp::mul:
      for (int i = 0; i < kBlock; i++) r[i] = as<U64>(a[i] * b[i]);
      break;
    case ElementOp::fma:
      for (int i = 0; i < kBlock; i++) r[i] = as<U64>(sum_to_odd(a[i] * b[i], c[i], down));
      break;
    case ElementOp::div:
      for (int i = 0; i < kBlock; i++) r[i] = as<U64>(quotient_to_odd(a[i], b[i]));
      break;
    case ElementOp::rcp:
      for (int i = 0; i < kBlock; i++) r[i] = as<U64>(quotient_to_odd(1.0, a[i]));
      break;
    case ElementOp::sqrt:
      for (int i = 0; i < kBlock; i++) r[i] = as<U64>(root_to_odd(a[i]));
      break;
    default:
      break;
  }
}

// A code of f32 as a double, by integers: subnormal numbers too are quick.
inline double widened(U32 x) {
  const U32 size = x & 0x7FFFFFFF;
  const U64 sign = U64{x >> 31} << 63;
  const double small = static_cast<double>(static_cast<int32_t>(size)) * 0x1p-149;
  const U64 normal = (U64{size} << 29) + (size >= F32::infinity ? U64{1792} << 52 : U64{896} << 52);
  return as<double>(sign | (size < F32::hidden ? as<U64>(small) : normal));
}

// Results

// A code of a wide format, rounded to odd if it is inexact, in another format.
template <class F, class Wide, Rounding R>
inline typename F::Code encoded(typename Wide::Code all, bool flushes) {
  using Code = typename F::Code;
  using U = typename Wide::Code;
  using I = std::make_signed_t<U>;
  constexpr int width = 8 * sizeof(U), cut = Wide::fraction - F::fraction;
  const U size = magnitude<Wide>(all), sign = all >> (width - 1);
  const I exponent = static_cast<I>(size >> Wide::fraction);
  const U significand = (size & (Wide::hidden - 1)) | (exponent ? Wide::hidden : U{0});
  const I above = (exponent ? exponent : 1) - (F::emin - Wide::emin + 1);  // of subnormal results below 0
  const U more = above < 0 ? (above < cut - (width - 1) ? U(width - 1 - cut) : U(-above)) : U{0};
  const U shift = cut + more;
  const auto round = [&](U by) {
    const U kept = significand >> by, rest = significand & ((U{1} << by) - 1), half = U{1} << (by - 1);
    U up = 0;
    if (R == Rounding::rn) up = (rest > half) | ((rest == half) & kept);
    if (R == Rounding::rm) up = (rest != 0) & sign;
    if (R == Rounding::rp) up = (rest != 0) & (sign ^ 1);
    return kept + (up & 1);
  };
  U code = round(shift) + (above > 0 ? U(above) << F::fraction : U{0});
  const U largest = (R == Rounding::rn || (R == Rounding::rm && sign) || (R == Rounding::rp && !sign))
                        ? U{F::infinity}
                        : U{F::infinity} - 1;
  code = code >= F::infinity ? largest : code;
  if (flushes) {  // what rounds to the least normal number with no lower bound of the exponent is not flushed
    const bool kept = above >= 0 || (above == -1 && round(cut) == U{2} << F::fraction);
    code = kept ? code : U{0};
  }
  code = size >= Wide::infinity ? U{F::infinity} : code;
  code |= sign << (8 * sizeof(Code) - 1);
  return Code(size > Wide::infinity ? U{F::nan} : code);
}

template <class F, class Wide, Rounding R>
void encode(const typename Wide::Code* x, typename F::Code* out, int count, bool flushes) {
  if (flushes)
    for (int i = 0; i < count; i++) out[i] = encoded<F, Wide, R>(x[i], true);
  else
    for (int i = 0; i < count; i++) out[i] = encoded<F, Wide, R>(x[i], false);
}

template <class F, class Wide>
void encode(Rounding rounding, const typename Wide::Code* x, typename F::Code* out, bool flushes, int count = kBlock) {
  switch (rounding) {
    case Rounding::rn:
      return encode<F, Wide, Rounding::rn>(x, out, count, flushes);
    case Rounding::rz:
      return encode<F, Wide, Rounding::rz>(x, out, count, flushes);
    case Rounding::rm:
      return encode<F, Wide, Rounding::rm>(x, out, count, flushes);
    case Rounding::rp:
      return encode<F, Wide, Rounding::rp>(x, out, count, flushes);
  }
}

template <class F>
void finish(const ElementParameters& p, typename F::Code* x) {
  using Code = typename F::Code;
  if (p.finite)  // but NaN stays
    for (int i = 0; i < kBlock; i++)
      x[i] = magnitude<F>(x[i]) == F::infinity ? Code((x[i] & F::sign) | Code(F::infinity - 1)) : x[i];
  if (p.saturate)
    for (int i = 0; i < kBlock; i++)
      x[i] = (x[i] & F::sign) || x[i] > F::infinity ? Code(0) : std::min<Code>(x[i], F::one);
  if (p.rectify)
    for (int i = 0; i < kBlock; i++) x[i] = x[i] & F::sign ? Code(0) : x[i];
}

// NaN of f32, and what is flushed. A result that is the least normal number may have been rounded to it on the grid of
// subnormal numbers: that is seen from the exact one.
void canonical(const ElementParameters& p, const float* a, const float* b, const float* c, U32* x) {
  bool doubtful = false;
  for (int i = 0; i < kBlock; i++) {
    x[i] = magnitude<F32>(x[i]) > F32::infinity ? F32::nan : x[i];
    doubtful |= magnitude<F32>(x[i]) == F32::hidden;
  }
  if (!p.flush_result) return;
  flush<F32>(x);
  const bool inexact = p.op != ElementOp::add && p.op != ElementOp::sub && p.op != ElementOp::sqrt;
  if (!doubtful || !inexact) return;
  const Mode nearest(Rounding::rn);
  alignas(64) double values[kMostOperands][kBlock];
  alignas(64) U64 exact[kBlock];
  for (int i = 0; i < kBlock; i++) values[0][i] = a[i], values[1][i] = b[i], values[2][i] = c[i];
  to_odd(p, values, exact);
  encode<F32, F64>(p.rounding, exact, x, true);
}

// Where operands are subnormal in f32 a processor takes a hundred times as long; doubles are a few times as slow.
template <class F>
bool in_doubles(const ElementParameters& p, const typename F::Code (*codes)[kBlock], typename F::Code* out) {
  using Code = typename F::Code;
  constexpr Code before = Code(F::hidden - 1);
  const int operands = operands_of(p.op);
  Code least = F::nan;
  for (int n = 0; n < operands; n++)
    for (int i = 0; i < kBlock; i++) least = std::min(least, Code(magnitude<F>(codes[n][i]) - 1));  // of 0 the largest
  if (least >= before) return false;
  const Mode nearest(Rounding::rn);
  alignas(64) double values[kMostOperands][kBlock] = {};
  alignas(64) U64 exact[kBlock];
  for (int n = 0; n < operands; n++)
    for (int i = 0; i < kBlock; i++) values[n][i] = widened(U32{codes[n][i]} << (8 * (sizeof(U32) - sizeof(Code))));
  to_odd(p, values, exact);
  encode<F, F64>(p.rounding, exact, out, p.flush_result);
  return true;
}

// Extremes and comparisons, on codes.

template <class F>
void extreme(const ElementParameters& p, const typename F::Code* a, const typename F::Code* b, typename F::Code* out) {
  using Code = typename F::Code;
  const bool min = p.op == ElementOp::min, magnitudes = p.magnitudes, keep = p.keep_nan;
  for (int i = 0; i < kBlock; i++) {
    const Code x = magnitudes ? magnitude<F>(a[i]) : a[i], y = magnitudes ? magnitude<F>(b[i]) : b[i];
    const Code sign = magnitudes ? Code((a[i] ^ b[i]) & F::sign) : Code(0);
    const bool x_nan = magnitude<F>(x) > F::infinity, y_nan = magnitude<F>(y) > F::infinity;
    const Code of_x = x & F::sign ? Code(~x) : Code(x | F::sign), of_y = y & F::sign ? Code(~y) : Code(y | F::sign);
    Code chosen = (of_x < of_y) == min ? x : y;
    chosen = x_nan ? y : y_nan ? x : chosen;
    const Code nan = std::is_same_v<F, F64> ? Code(y | (F::hidden >> 1)) : F::nan;
    const bool none = keep ? x_nan | y_nan : x_nan & y_nan;
    out[i] = none ? nan : Code(chosen | sign);
  }
}

template <class F, class Holds>
void compare(const typename F::Code* a, const typename F::Code* b, bool of_nan, uint8_t* out, Holds holds) {
  using Signed = std::make_signed_t<typename F::Code>;
  for (int i = 0; i < kBlock; i++) {
    const auto size_a = magnitude<F>(a[i]), size_b = magnitude<F>(b[i]);
    const bool nan = (size_a > F::infinity) | (size_b > F::infinity);
    const Signed x = a[i] & F::sign ? Signed(-Signed(size_a)) : Signed(size_a);
    const Signed y = b[i] & F::sign ? Signed(-Signed(size_b)) : Signed(size_b);
    out[i] = nan ? of_nan : holds(x, y);
  }
}

template <class F>
void compare(const ElementParameters& p, const typename F::Code* a, const typename F::Code* b, uint8_t* out) {
  const bool nan = p.unordered;
  switch (p.comparison) {
    case Comparison::eq:
      return compare<F>(a, b, nan, out, [](auto x, auto y) { return x == y; });
    case Comparison::ne:
      return compare<F>(a, b, nan, out, [](auto x, auto y) { return x != y; });
    case Comparison::lt:
      return compare<F>(a, b, nan, out, [](auto x, auto y) { return x < y; });
    case Comparison::le:
      return compare<F>(a, b, nan, out, [](auto x, auto y) { return x <= y; });
    case Comparison::gt:
      return compare<F>(a, b, nan, out, [](auto x, auto y) { return x > y; });
    case Comparison::ge:
      return compare<F>(a, b, nan, out, [](auto x, auto y) { return x >= y; });
    case Comparison::num:
      return compare<F>(a, b, false, out, [](auto, auto) { return true; });
    case Comparison::nan:
      return compare<F>(a, b, true, out, [](auto, auto) { return false; });
  }
}

// NaN of f64, by the ranks of operands (rule 6); one that is made is negative.

int ranks(ElementOp op, int* of) {
  const bool in_order = op == ElementOp::div || op == ElementOp::rcp || op == ElementOp::sqrt;
  const int operands = operands_of(op), first = in_order ? 0 : 1;
  for (int n = 0; n < operands; n++) of[n] = (first + n) % operands;  // of fma the second, the third, the first
  return operands;
}

void put_nan(ElementOp op, const U64 (*x)[kBlock], U64* r) {
  bool any = false;
  for (int i = 0; i < kBlock; i++) any |= magnitude<F64>(r[i]) > F64::infinity;
  if (!any) return;
  int of[kMostOperands];
  const int operands = ranks(op, of);
  for (int i = 0; i < kBlock; i++) {
    if (magnitude<F64>(r[i]) <= F64::infinity) continue;
    r[i] = F64::sign | F64::infinity | F64::hidden >> 1;
    for (int n = operands - 1; n >= 0; n--)
      if (magnitude<F64>(x[of[n]][i]) > F64::infinity) r[i] = x[of[n]][i] | F64::hidden >> 1;
  }
}

// Conversions

template <class T>
inline T integral(Rounding rounding, T x) {
  T r = x;
  switch (rounding) {
    case Rounding::rn:
      r = std::rint(x);
      break;
    case Rounding::rz:
      r = std::trunc(x);
      break;
    case Rounding::rm:
      r = std::floor(x);
      break;
    case Rounding::rp:
      r = std::ceil(x);
      break;
  }
  return std::copysign(r, x);
}

template <class T>
void integral(Rounding rounding, T* x) {
  switch (rounding) {
    case Rounding::rn:
      for (int i = 0; i < kBlock; i++) x[i] = integral(Rounding::rn, x[i]);
      break;
    case Rounding::rz:
      for (int i = 0; i < kBlock; i++) x[i] = integral(Rounding::rz, x[i]);
      break;
    case Rounding::rm:
      for (int i = 0; i < kBlock; i++) x[i] = integral(Rounding::rm, x[i]);
      break;
    case Rounding::rp:
      for (int i = 0; i < kBlock; i++) x[i] = integral(Rounding::rp, x[i]);
      break;
  }
}

// NaN of f64, made of one or made one, keeps its sign and the top of its payload.
template <class From, class To>
inline typename To::Code nan_kept(typename From::Code x) {
  using Code = typename To::Code;
  const U64 wide = (U64{magnitude<From>(x)} & (U64{From::hidden} - 1)) << (52 - From::fraction);
  const Code sign = x & From::sign ? To::sign : Code(0);
  return Code(Code(wide >> (52 - To::fraction)) | sign | To::infinity | Code(To::hidden >> 1));
}

template <class From>
void to_integers(const ElementParameters& p, const double* x, U32* out) {
  const bool is_signed = p.result == Element::s32;
  const double low = is_signed ? -0x1p31 : 0, high = is_signed ? 0x1p31 - 1 : 0x1p32 - 1;
  const U32 made = std::is_same_v<From, F64> ? U32{1} << 31 : 0;
  for (int i = 0; i < kBlock; i++) {
    const double inside = x[i] < low ? low : x[i] > high ? high : x[i] == x[i] ? x[i] : 0;
    out[i] = x[i] == x[i] ? static_cast<U32>(static_cast<int64_t>(inside)) : made;
  }
}

// All of a job

template <class T>
void put(const ElementJob& job, int64_t first, int count, const T* from) {
  T* const to = reinterpret_cast<T*>(job.out) + first * job.step + job.first;
  if (job.step == 1)
    std::memcpy(to, from, count * sizeof(T));
  else
    for (int i = 0; i < count; i++) to[2 * i] = from[i];
}

template <class From, class To>
void convert(const ElementParameters& p, const ElementJob& job) {
  using Code = typename CodeOf<From>::type;
  using Result = typename CodeOf<To>::type;
  alignas(64) Code codes[kBlock] = {};
  // Where no integer and no f64 takes part, f32 holds every value.
  constexpr bool wide = std::is_integral_v<From> || std::is_integral_v<To> || std::is_same_v<From, F64> ||
                        std::is_same_v<To, F64> || std::is_same_v<To, F32>;
  using Wide = std::conditional_t<wide, F64, F32>;
  using Value = std::conditional_t<wide, double, float>;
  alignas(64) Value values[kBlock];
  alignas(64) typename Wide::Code exact[kBlock];
  alignas(64) Result out[kBlock];
  for (int64_t first = 0; first < job.count; first += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, job.count - first));
    fetch(job.input[0], first, count, codes);
    if constexpr (!std::is_integral_v<From>)
      if (p.flush) flush<From>(codes);
    for (int i = 0; i < kBlock; i++) values[i] = static_cast<Value>(value(From(), codes[i]));
    if (p.integral) integral(p.rounding, values);
    if constexpr (std::is_integral_v<To>) {
      to_integers<From>(p, values, out);
    } else {
      for (int i = 0; i < kBlock; i++) exact[i] = as<typename Wide::Code>(values[i]);
      if constexpr (std::is_same_v<To, F64>)
        std::memcpy(out, exact, sizeof out);
      else
        encode<To, Wide>(p.rounding, exact, out, p.flush_result);
    }
    if constexpr (!std::is_integral_v<From> && !std::is_integral_v<To> &&
                  (std::is_same_v<From, F64> || std::is_same_v<To, F64>)) {
      for (int i = 0; i < kBlock; i++) {
        const Code x = p.flush && std::is_same_v<From, F32> ? From::nan : codes[i];
        out[i] = magnitude<From>(codes[i]) > From::infinity ? nan_kept<From, To>(x) : out[i];
      }
    }
    if constexpr (!std::is_integral_v<To>) finish<To>(p, out);
    put(job, first, count, out);
  }
}

template <class F>
void operate(const ElementParameters& p, const ElementJob& job) {
  using Code = typename F::Code;
  using Value = std::conditional_t<std::is_same_v<F, F64>, double, float>;
  constexpr bool narrow = sizeof(Code) == 2;
  alignas(64) Code codes[kMostOperands][kBlock] = {}, out[kBlock];
  alignas(64) Value values[kMostOperands][kBlock] = {}, results[2][kBlock];
  const int operands = operands_of(p.op);
  const Mode mode(narrow ? Rounding::rn : p.rounding);
  for (int64_t first = 0; first < job.count; first += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, job.count - first));
    for (int n = 0; n < operands; n++) {
      if (job.input[n].period && first) continue;
      fetch(job.input[n], first, count, codes[n]);
      if (p.flush) flush<F>(codes[n]);
      for (int i = 0; i < kBlock; i++) values[n][i] = value(F(), codes[n][i]);
    }
    if constexpr (std::is_same_v<F, F32> || std::is_same_v<F, Bf16>) {
      if (in_doubles<F>(p, codes, out)) {
        finish<F>(p, out);
        put(job, first, count, out);
        continue;
      }
    }
    if constexpr (narrow) {
      Mode::set(Rounding::rm);
      arithmetic(p.op, values[0], values[1], values[2], results[0]);
      Mode::set(Rounding::rp);
      arithmetic(p.op, values[0], values[1], values[2], results[1]);
      alignas(64) U32 odd[kBlock];
      for (int i = 0; i < kBlock; i++) {
        const U32 down = as<U32>(results[0][i]), up = as<U32>(results[1][i]);
        const U32 zero = p.rounding == Rounding::rm ? down : up;  // a sum that is exactly zero
        odd[i] = magnitude<F32>(down | up) == 0 ? zero : down & 1 ? down : up;
      }
      encode<F, F32>(p.rounding, odd, out, p.flush_result);
    } else {
      arithmetic(p.op, values[0], values[1], values[2], results[0]);
      std::memcpy(out, results[0], sizeof out);
      if constexpr (std::is_same_v<F, F64>)
        put_nan(p.op, codes, out);
      else
        canonical(p, values[0], values[1], values[2], out);
    }
    finish<F>(p, out);
    put(job, first, count, out);
  }
}

template <class F>
void choose(const ElementParameters& p, const ElementJob& job) {
  alignas(64) typename F::Code codes[2][kBlock] = {}, out[kBlock];
  alignas(64) uint8_t holds[kBlock];
  for (int64_t first = 0; first < job.count; first += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, job.count - first));
    for (int n = 0; n < 2; n++) {
      fetch(job.input[n], first, count, codes[n]);
      if (p.flush) flush<F>(codes[n]);
    }
    if (p.op == ElementOp::compare) {
      compare<F>(p, codes[0], codes[1], holds);
      put(job, first, count, holds);
    } else {
      extreme<F>(p, codes[0], codes[1], out);
      put(job, first, count, out);
    }
  }
}

// Integers

template <class T>
inline T quotient(T x, T y) {
  if (y == 0) return T(-1);
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return T(0 - std::make_unsigned_t<T>(x));
  return T(x / y);
}

// By zero both give ones in all bits.
template <class T>
inline T remainder(T x, T y) {
  if (y == 0) return T(-1);
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return 0;
  return T(x % y);
}

inline U32 permuted(U32 a, U32 b, U32 control) {
  const U64 pair = U64{b} << 32 | a;
  U32 result = 0;
  for (int i = 0; i < 4; i++) {
    const U32 nibble = control >> (4 * i), byte = U32(pair >> ((nibble & 7) * 8)) & 0xFF;
    result |= (nibble & 8 ? (byte >> 7) * 0xFF : byte) << (8 * i);
  }
  return result;
}

template <class T>
inline T extracted(T a, T b, T c) {
  const U32 word = U32(a), position = U32(b) & 0xFF, wanted = U32(c) & 0xFF;
  const U32 room = position < 32 ? 32 - position : 0, count = std::min(wanted, room);
  const U32 ones = count < 32 ? (U32{1} << count) - 1 : ~U32{0};
  const U32 field = (position < 32 ? word >> position : 0) & ones;
  if (!std::is_signed_v<T> || wanted == 0) return T(field);
  const U32 top = std::min<U32>(position + wanted - 1, 31);
  return T(word >> top & 1 ? field | ~ones : field);
}

template <class T, int Operands, class Function>
void integers(const ElementJob& job, Function function) {
  alignas(64) T x[kMostOperands][kBlock] = {}, out[kBlock];
  for (auto& each : x) std::fill_n(each, kBlock, T(1));  // what no lane has is divided too
  for (int64_t first = 0; first < job.count; first += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, job.count - first));
    for (int n = 0; n < Operands; n++) fetch(job.input[n], first, count, x[n]);
    for (int i = 0; i < kBlock; i++) out[i] = function(x[0][i], x[1][i], x[2][i]);
    put(job, first, count, out);
  }
}

template <class T>
void whole(const ElementParameters& p, const ElementJob& job) {
  switch (p.op) {
    case ElementOp::quotient:
      return integers<T, 2>(job, [](T a, T b, T) { return quotient(a, b); });
    case ElementOp::remainder:
      return integers<T, 2>(job, [](T a, T b, T) { return remainder(a, b); });
    case ElementOp::permute:
      if constexpr (std::is_same_v<T, U32>) integers<T, 3>(job, [](T a, T b, T c) { return permuted(a, b, c); });
      return;
    case ElementOp::extract:
      if constexpr (sizeof(T) == 4) integers<T, 3>(job, [](T a, T b, T c) { return extracted(a, b, c); });
      return;
    default:
      return;
  }
}

template <class From>
void convert_from(const ElementParameters& p, const ElementJob& job) {
  switch (p.result) {
    case Element::f16:
      return convert<From, F16>(p, job);
    case Element::bf16:
      return convert<From, Bf16>(p, job);
    case Element::f32:
      return convert<From, F32>(p, job);
    case Element::f64:
      return convert<From, F64>(p, job);
    case Element::s32:
    case Element::u32:
      if constexpr (!std::is_integral_v<From>) convert<From, U32>(p, job);
      return;
    default:
      return;
  }
}

template <class F>
void all(const ElementParameters& p, const ElementJob& job) {
  switch (p.op) {
    case ElementOp::convert:
      return convert_from<F>(p, job);
    case ElementOp::compare:
    case ElementOp::min:
    case ElementOp::max:
      return choose<F>(p, job);
    default:
      return operate<F>(p, job);
  }
}

}  // namespace

#define WARPMMA_JOINED(a, b) a##b
#define WARPMMA_NAMED(a, b) WARPMMA_JOINED(a, b)

void WARPMMA_NAMED(elements_, WARPMMA_LEVEL)(const ElementParameters& p, const ElementJob& job) {
  switch (p.source) {
    case Element::f16:
      return all<F16>(p, job);
    case Element::bf16:
      return all<Bf16>(p, job);
    case Element::f32:
      return all<F32>(p, job);
    case Element::f64:
      return all<F64>(p, job);
    case Element::s32:
      return p.op == ElementOp::convert ? convert_from<int32_t>(p, job) : whole<int32_t>(p, job);
    case Element::u32:
      return p.op == ElementOp::convert ? convert_from<U32>(p, job) : whole<U32>(p, job);
    case Element::s64:
      return whole<int64_t>(p, job);
    case Element::u64:
      return whole<U64>(p, job);
    case Element::pred:
      return;
  }
}

}  // namespace warpmma

#if WARPMMA_X86_64 && defined(__clang__)
#pragma clang attribute pop
#endif
