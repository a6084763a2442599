// Fused dot-adds: rules 1 to 12 of arithmetic/exact/reference.py, a step of all elements of a thread at a time.
//
// The fast way of an element. E is the alignment exponent, and LOW <= E <= HIGH:
// * A significand has at most 11 bits, so a product of two is exact in f32 from 2^-126 on. What is below is below the
//   quantum 2^(E - F) >= 2^-126, and is 0 after truncation whatever f32 rounds it to; the scale 2^(F - E) is normal.
// * Conversion to int32 truncates toward zero (rule 5). The step is cut into RUNS whose sums an int32 holds, but for C.
// * The sum becomes f32 toward zero, which is rule 7 for rz with 23 bits; of fewer bits the rest is cut off. For rn
//   into f16 its last bit is set if anything was lost, so that the rounding that follows sees it (24 bits, 11 needed).
//   2^(E - F) is normal and the result below 2^128, since HIGH leaves 8 bits for the sum: scaling back is exact.
// Infinities, NaN and exponents beyond the bounds are recognised by E, and take the exact way in f64.

typedef float Value;

constexpr int LOW = F - 126 > FLOOR ? F - 126 : FLOOR, HIGH = 119;
constexpr bool ZEROS_ARE_LOW = C::emin < LOW && D::emin < LOW;  // even if they count as subnormals

struct Panels {
  __align__(16) float a[CHUNK][TM + 4], b[CHUNK][TN + 4];  // padded: elements of one row fall into several banks
  __align__(16) u32 of_a[CHUNK][TM + 4];                   // nominal exponents, twice in a word
  __align__(16) short of_b[CHUNK][TN + 8];
  __align__(16) int scale_a[SCALED ? TM : 4], scale_b[SCALED ? TN : 4];  // exponents of the step's block scales
};

__device__ __forceinline__ void put_a(Panels& p, int k, int i, u32 code) {
  const float value = decode<A>(TO_TF32 ? to_tf32(code) : code);
  const u32 exponent = u32(nominal_exponent<A>(value)) & 0xFFFFu;
  p.a[k][i] = value;
  p.of_a[k][i] = exponent | exponent << 16;
}
__device__ __forceinline__ void put_absent(Panels& p, int k, int i) {
  const u32 exponent = u32(ABSENT) & 0xFFFFu;
  p.a[k][i] = 0;
  p.of_a[k][i] = exponent | exponent << 16;
}
__device__ __forceinline__ void put_b(Panels& p, int k, int j, u32 code) {
  const float value = decode<B>(TO_TF32 ? to_tf32(code) : code);
  p.b[k][j] = value;
  p.of_b[k][j] = short(nominal_exponent<B>(value));
}
// A scale is a power of two, or NaN; that of a row or, after those, of a column.
__device__ __forceinline__ void put_scale(Panels& p, int, int lane, u32 code) {
  const int exponent = code == SCALE_NAN ? OF_SPECIAL : int(code) - BIAS;
  (lane < TM ? p.scale_a[lane] : p.scale_b[lane - TM]) = exponent;
}

__device__ __forceinline__ int accumulator_exponent(float c, int emin) {
  const u32 magnitude = bits(c) & MAGNITUDE;
  return magnitude == 0 ? OF_ZERO : max(int(magnitude >> FRACTION) - BIAS, emin);
}

// The exact way of one element: products, alignment and sum are exact in f64 for every finite operand, and a sum of the
// unscaled addends says what infinities and NaN make of it.
__device__ __noinline__ float exact_step(const Panels& p, int first, int i, int j, float c, int emin) {
  const int of_scales = SCALED ? p.scale_a[i] + p.scale_b[j] : 0;
  const double scale = of_scales > OF_SPECIAL / 2 ? __longlong_as_double(0x7FF8000000000000ll) : wide_power(of_scales);
  int e = max(FLOOR, accumulator_exponent(c, emin));
  for (int k = first; k < first + STEP; k++) e = max(e, int(short(p.of_a[k][i])) + p.of_b[k][j] + of_scales);
  e = min(e, 1000 + F - 64);  // of infinities and NaN, for a finite scale
  double plain = double(c);
  u64 total = u64(__double2ll_rz(double(c) * wide_power(F - e)));  // of infinities and NaN it means nothing
  for (int k = first; k < first + STEP; k++) {
    if (int(short(p.of_a[k][i])) == ABSENT) continue;
    const double product = double(p.a[k][i]) * double(p.b[k][j]) * scale;
    plain += product;
    total += u64(__double2ll_rz(product * wide_power(F - e)));
  }
  if (!(fabs(plain) < wide_power(DOUBLE_BIAS))) return plain == plain ? __double2float_rn(plain) : number(NOT_A_NUMBER);
  // Rule 7: to a multiple of the last place, which is exact in f64; too large a magnitude becomes infinity.
  const double x = __ll2double_rn(s64(total)) * wide_power(e - F);
  const int field = (int(__double_as_longlong(x) >> DOUBLE_FRACTION) & 2047) - DOUBLE_BIAS;
  const int exponent = max(field, D::emin);
  const double scaled = x * wide_power(RESULT_BITS - exponent);
  const int kept = NEAREST ? __double2int_rn(scaled) : __double2int_rz(scaled);
  const double y = __int2double_rn(kept) * wide_power(exponent - RESULT_BITS);
  if (fabs(y) >= wide_power(D::emax + 1)) return number(y < 0 ? INFINITE | SIGN : INFINITE);
  return __double2float_rn(y) + 0.0f;  // rule 9
}

// A sum as an accumulator: toward zero, or with its last bit set if anything was lost.
__device__ __forceinline__ float sum_in_f32(int sum) {
  const float x = __int2float_rz(sum);
  return NEAREST && __float2int_rz(x) != sum ? number(bits(x) | 1) : x;
}
__device__ __noinline__ float wide_sum_in_f32(int sum, int other, bool wrapped, bool negative) {
  const s64 total = s64(sum) + other + (!wrapped ? 0 : negative ? -(1ll << 32) : 1ll << 32);
  const float x = __ll2float_rz(total);
  return NEAREST && __float2ll_rz(x) != total ? number(bits(x) | 1) : x;
}

// Of a pair of columns the exponent of one.
__device__ __forceinline__ int of_pair(u32 pair, int s) { return s & 1 ? int(pair) >> 16 : int(short(pair)); }

// One step: accumulators `c` of the elements of a thread, from products `first` to `first + STEP` of the chunk.
__device__ __forceinline__ void step(const Panels& p, int first, int y, int x, float (&c)[RM][RN], int emin) {
  u32 largest[RM][RN / 2];  // nominal exponents of products, of pairs of columns
  EACH (r, RM)
    EACH (s, RN / 2) largest[r][s] = u32(ABSENT & 0xFFFF) * 0x10001u;
  ALONG (k, STEP) {
    u32 of_a[RM], of_b[RN / 2];
    take<RM>(&p.of_a[first + k][y * RM], of_a);
    EACH (run, RN / RUN_OF_COLUMNS) {
      const uint2 pairs = *reinterpret_cast<const uint2*>(&p.of_b[first + k][column(x, run * RUN_OF_COLUMNS)]);
      of_b[run * 2] = pairs.x;
      of_b[run * 2 + 1] = pairs.y;
    }
    EACH (r, RM)
      EACH (s, RN / 2) largest[r][s] = __viaddmax_s16x2(of_a[r], of_b[s], largest[r][s]);
  }
  int of_rows[RM], of_columns[RN];
  if (SCALED) {
    take<RM>(&p.scale_a[y * RM], of_rows);
    take_columns(p.scale_b, x, of_columns);
  }
  float scale[RM][RN], exact[RM * RN];  // of products; results of the exact way
  int sum[RM][RN], later[RUNS > 1 ? RM : 1][RUNS > 1 ? RN : 1];
  u32 apart = 0;  // elements that take the exact way
  EACH (r, RM)
    EACH (s, RN) {
      const int of_scales = SCALED ? of_rows[r] + of_columns[s] : 0;
      const int of_products = of_pair(largest[r][s / 2], s) + of_scales;
      const int of_c =
          ZEROS_ARE_LOW ? max(int(bits(c[r][s]) >> FRACTION & 255) - BIAS, emin) : accumulator_exponent(c[r][s], emin);
      int e = ZEROS_ARE_LOW ? max(of_products, of_c) : max(max(of_products, of_c), FLOOR);
      if (u32(e - LOW) > u32(HIGH - LOW)) {
        e = LOW;  // of zeros alone the sum is 0, whatever the scale
        if (of_products > OF_ZERO / 2 || (bits(c[r][s]) & MAGNITUDE) != 0) apart |= 1u << (r * RN + s);
      }
      const int shift = F - e + of_scales;
      if (SCALED && abs(shift) >= BIAS) apart |= 1u << (r * RN + s);
      scale[r][s] = power(shift);
      sum[r][s] = __float2int_rz(c[r][s] * power(F - e));
    }
  for (u32 left = apart; left; left &= left - 1) {
    const int at = __ffs(int(left)) - 1;
    float mine = 0;  // registers have no addresses: each is asked whether it is meant
    EACH (r, RM)
      EACH (s, RN)
        if (r * RN + s == at) mine = c[r][s];
    exact[at] = exact_step(p, first, y * RM + at / RN, column(x, at % RN), mine, emin);
  }
  EACH (run, RUNS) {
    if (run > 0)
      EACH (r, RM)
        EACH (s, RN) later[RUNS > 1 ? r : 0][RUNS > 1 ? s : 0] = 0;
    ALONG (k, STEP / RUNS) {
      const int at = first + run * (STEP / RUNS) + k;
      float of_a[RM], of_b[RN];
      take<RM>(&p.a[at][y * RM], of_a);
      take_columns(p.b[at], x, of_b);
      EACH (r, RM)
        EACH (s, RN) {
          int& into = run > 0 ? later[RUNS > 1 ? r : 0][RUNS > 1 ? s : 0] : sum[r][s];
          into += __float2int_rz(of_a[r] * of_b[s] * scale[r][s]);
        }
    }
  }
  EACH (r, RM)
    EACH (s, RN) {
      const int one = sum[r][s], other = RUNS > 1 ? later[RUNS > 1 ? r : 0][RUNS > 1 ? s : 0] : 0, both = one + other;
      // With C, which is below 2^(F + 1), the first run may have wrapped. It is near its most then, which it is only if
      // all its products have one sign.
      const bool near = MAY_WRAP && u32(abs(one)) >= (1u << 31) - (2u << F);
      float x_sum = sum_in_f32(both);
      if (near || (RUNS > 1 && ((both ^ one) & (both ^ other)) < 0)) {
        const bool negative = (bits(p.a[first][y * RM + r]) ^ bits(p.b[first][column(x, s)])) >> 31;
        x_sum = wide_sum_in_f32(one, other, near && negative != (one < 0), negative);
      }
      const u32 inverse =
          SCALED ? bits(scale[r][s]) - (u32(of_rows[r] + of_columns[s]) << FRACTION) : bits(scale[r][s]);
      const float result = x_sum * number((254u << FRACTION) - inverse);
      c[r][s] = NEAREST ? to_half(result) + 0.0f : number(bits(result) & ~((1u << (FRACTION - RESULT_BITS)) - 1));
    }
  if (apart)
    EACH (r, RM)
      EACH (s, RN)
        if (apart >> (r * RN + s) & 1) c[r][s] = exact[r * RN + s];
}
