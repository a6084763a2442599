// Fused dot-adds: rules 1 to 12 of arithmetic/exact/reference.py, a step of all elements of a thread at a time.
//
// The fast way of an element. E is the alignment exponent, and LOW <= E <= HIGH:
// * A significand has at most 11 bits, so a product of two is exact in f32 from 2^-126 on. What is below is below the
//   quantum 2^(E - F) >= 2^-126, and is 0 after truncation whatever f32 rounds it to; the scale 2^(F - E) is normal.
// * Conversion to int32 truncates toward zero (rule 5). A scaled product is below MOST_PRODUCT x 2^F, so RUN of them
//   stay within an int32, and the sum of the runs and of C is of 64 bits where 32 do not hold it.
// * The sum becomes f32 toward zero, which is rule 7 for rz with 23 bits; of fewer bits the rest is cut off. For rn
//   into f16 its last bit is set if anything was lost, so that the rounding that follows sees it (24 bits, 11 needed).
//   2^(E - F) is normal and the result below 2^128, since HIGH leaves 8 bits for the sum: scaling back is exact.
// Infinities, NaN and exponents beyond the bounds are recognised by E, and take the exact way in f64.

typedef float Value;

constexpr int LOW = F - 126, HIGH = 119;

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
  for (int k = first; k < first + STEP; k++)
    e = max(e, int(short(p.of_a[k][i])) + p.of_b[k][j] + of_scales);
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

// The sum, of 2^(e - F), as an accumulator.
__device__ __forceinline__ float rounded_sum(s64 sum, int e) {
  const int low = int(sum);
  float x;
  if (sum == s64(low)) {
    x = __int2float_rz(low);
    if (NEAREST && __float2int_rz(x) != low) x = number(bits(x) | 1);
  } else {
    x = __ll2float_rz(sum);
    if (NEAREST && __float2ll_rz(x) != sum) x = number(bits(x) | 1);
  }
  x = x * power(e - F);
  return NEAREST ? to_half(x) + 0.0f : number(bits(x) & ~((1u << (FRACTION - RESULT_BITS)) - 1));
}

// Of a pair of columns the exponent of one; and E within the bounds of the fast way.
__device__ __forceinline__ int of_pair(u32 pair, int s) { return s & 1 ? int(pair) >> 16 : int(short(pair)); }
__device__ __forceinline__ int bounded(int heard) { return min(max(max(heard, FLOOR), LOW), HIGH); }

// One step: accumulators `c` of the elements of a thread, from products `first` to `first + STEP` of the chunk.
__device__ __forceinline__ void step(const Panels& p, int first, int y, int x, float (&c)[RM][RN], int emin) {
  u32 largest[RM][RN / 2];  // nominal exponents of products, of pairs of columns
  EACH(r, RM) EACH(s, RN / 2) largest[r][s] = u32(ABSENT & 0xFFFF) * 0x10001u;
  EACH(k, STEP) {
    u32 of_a[RM], of_b[RN / 2];
    take<RM>(&p.of_a[first + k][y * RM], of_a);
    EACH(run, RN / RUN_OF_COLUMNS) {
      const uint2 pairs = *reinterpret_cast<const uint2*>(&p.of_b[first + k][column(x, run * RUN_OF_COLUMNS)]);
      of_b[run * 2] = pairs.x;
      of_b[run * 2 + 1] = pairs.y;
    }
    EACH(r, RM) EACH(s, RN / 2) largest[r][s] = __viaddmax_s16x2(of_a[r], of_b[s], largest[r][s]);
  }
  int of_rows[RM], of_columns[RN];
  if (SCALED) {
    take<RM>(&p.scale_a[y * RM], of_rows);
    take_columns(p.scale_b, x, of_columns);
  }
  float scale[RM][RN];  // of products
  int sum[RM][RN], earlier[RUNS > 1 ? RM : 1][RUNS > 1 ? RN : 1];
  u32 apart = 0;  // elements that take the exact way
  EACH(r, RM) EACH(s, RN) {
    const int of_scales = SCALED ? of_rows[r] + of_columns[s] : 0;
    const int heard = max(of_pair(largest[r][s / 2], s) + of_scales, accumulator_exponent(c[r][s], emin));
    // Of zeros alone the sum is 0, whatever the scale.
    const bool fits = heard <= HIGH && (max(heard, FLOOR) >= LOW || heard < OF_ZERO / 2);
    const int shift = F - bounded(heard) + of_scales;
    if (!fits || (SCALED && abs(shift) >= BIAS)) apart |= 1u << (r * RN + s);
    scale[r][s] = power(SCALED ? min(max(shift, 1 - BIAS), BIAS) : shift);
  }
  EACH(run, RUNS) {
    EACH(r, RM) EACH(s, RN) {
      if (run > 0) earlier[RUNS > 1 ? r : 0][RUNS > 1 ? s : 0] = sum[r][s];
      sum[r][s] = 0;
    }
    EACH(k, STEP / RUNS) {
      const int at = first + run * (STEP / RUNS) + k;
      float of_a[RM], of_b[RN];
      take<RM>(&p.a[at][y * RM], of_a);
      take_columns(p.b[at], x, of_b);
      EACH(r, RM) EACH(s, RN) sum[r][s] += __float2int_rz(of_a[r] * of_b[s] * scale[r][s]);
    }
  }
  EACH(r, RM) EACH(s, RN) {
    int e;
    if (SCALED)
      e = bounded(max(of_pair(largest[r][s / 2], s) + of_rows[r] + of_columns[s], accumulator_exponent(c[r][s], emin)));
    else
      e = F + BIAS - int(bits(scale[r][s]) >> FRACTION);
    s64 total = s64(sum[r][s]) + __float2int_rz(c[r][s] * power(F - e));
    if (RUNS > 1) total += earlier[RUNS > 1 ? r : 0][RUNS > 1 ? s : 0];
    const float result = rounded_sum(total, e);
    if (!(apart >> (r * RN + s) & 1)) c[r][s] = result;
  }
  while (apart) {
    const int at = __ffs(int(apart)) - 1;
    apart &= apart - 1;
    float mine = 0;  // registers have no addresses: each is asked whether it is meant
    EACH(r, RM) EACH(s, RN) if (r * RN + s == at) mine = c[r][s];
    mine = exact_step(p, first, y * RM + at / RN, column(x, at % RN), mine, emin);
    EACH(r, RM) EACH(s, RN) if (r * RN + s == at) c[r][s] = mine;
  }
}
