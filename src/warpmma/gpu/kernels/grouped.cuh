// Groups of scaled products of e2m1: rule 13 of arithmetic/exact/reference.py. A number of e2m1 is a whole number of
// halves, -12 to 12, in a byte; the sum of a group is exact in an int32.

typedef float Value;

constexpr int NAN_SCALE = 0xFFFF, GROUPS = STEP / GROUP, WORDS = CHUNK / 4, HALVES = 2;

struct Panels {
  __align__(16) u32 a[WORDS][TM + 4], b[WORDS][TN + 4];
  // Of a group: which elements are not zero; none if the scale is.
  __align__(16) u32 some_a[GROUPS][TM], some_b[GROUPS][TN];
  // Of scales: the significand in the low half, the nominal exponent in the high.
  __align__(16) int of_a[SCALES][TM], of_b[SCALES][TN];
};

template <class Format>
__device__ __forceinline__ u8 halves(u32 code) {
  const float value = decode<Format>(code);
  return u8(__float2int_rz(value * HALVES));
}
__device__ __forceinline__ void put_a(Panels& p, int k, int i, u32 code) {
  reinterpret_cast<u8*>(&p.a[k / 4][i])[k % 4] = halves<A>(code);
}
__device__ __forceinline__ void put_absent(Panels& p, int k, int i) { put_a(p, k, i, 0); }
__device__ __forceinline__ void put_b(Panels& p, int k, int j, u32 code) {
  reinterpret_cast<u8*>(&p.b[k / 4][j])[k % 4] = halves<B>(code);
}
// Of a row or, after those, of a column; a NaN has a significand that no number has.
__device__ __forceinline__ void put_scale(Panels& p, int s, int lane, u32 code) {
  const int field = int(code) >> Scale::fraction_bits, fraction = int(code) & ((1 << Scale::fraction_bits) - 1);
  const bool subnormal = Scale::subnormals && field == 0;
  const int exponent = max(field, Scale::subnormals ? 1 : 0) - Scale::bias;
  const int significand = code >= SCALE_NAN ? NAN_SCALE : subnormal ? fraction : fraction | 1 << Scale::fraction_bits;
  (lane < TM ? p.of_a[s][lane] : p.of_b[s][lane - TM]) = significand | exponent << 16;
}

__device__ __forceinline__ u32 nonzero_bytes(u32 x) {  // a bit for each
  const u32 some = ((x & 0x7F7F7F7Fu) + 0x7F7F7F7Fu | x) & 0x80808080u;
  return some >> 7 & 1 | some >> 14 & 2 | some >> 21 & 4 | some >> 28 & 8;
}

// What follows from whole panels.
__device__ __forceinline__ void settle(Panels& p, int thread) {
  for (int at = thread; at < GROUPS * (TM + TN); at += THREADS) {
    const int group = at / (TM + TN), i = at % (TM + TN);
    u32 some = 0;
    EACH (w, GROUP / 4) {
      const int word = group * (GROUP / 4) + w;
      some |= nonzero_bytes(i < TM ? p.a[word][i] : p.b[word][i - TM]) << w * 4 % 32;
    }
    const int scale = i < TM ? p.of_a[group * SCALES / GROUPS][i] : p.of_b[group * SCALES / GROUPS][i - TM];
    (i < TM ? p.some_a[group][i] : p.some_b[group][i - TM]) = (scale & 0xFFFF) == 0 ? 0 : some;
  }
}

// An integer below 2^26 times 2^exponent, truncated toward zero; the exponent is at most LEFT + 30 where it is not 0.
constexpr int POINT = 2 * Scale::fraction_bits + 2;  // places below 1 of a sum: of both scales, and of the halves
constexpr int LEFT = F - POINT > 30 ? F - POINT - 30 : 0;

__device__ __forceinline__ s64 truncated(int x, int exponent) {
  const int rest = exponent - LEFT, magnitude = abs(x) << LEFT >> min(max(-rest, 0), 31);
  return s64(x < 0 ? -magnitude : magnitude) * (1 << min(max(rest, 0), 30));
}

__device__ __forceinline__ int accumulator_exponent(u32 magnitude) {
  return magnitude == 0 ? OF_ZERO : max(int(magnitude >> FRACTION), 1) - BIAS;
}

// Rule 7: sum x 2^exponent to f32, toward zero; what is too large becomes infinity.
__device__ __forceinline__ float rounded_sum(s64 sum, int exponent) {
  if (sum == 0) return 0;  // rule 9
  const u64 magnitude = u64(sum < 0 ? -sum : sum);
  const int top = 63 - __clzll(s64(magnitude)), drop = max(top - FRACTION, 1 - BIAS - FRACTION - exponent);
  const u64 kept = drop > 63 ? 0 : drop > 0 ? magnitude >> drop : magnitude << -drop;
  // `kept` has the hidden bit, or is subnormal and then its field is 0.
  const int field = exponent + drop + FRACTION + BIAS;
  u32 code = kept < HIDDEN ? u32(kept) : field > 254 ? INFINITE : u32(kept) - HIDDEN + (u32(field) << FRACTION);
  return number(code == 0 ? 0 : sum < 0 ? code | SIGN : code);
}

__device__ __forceinline__ void step(const Panels& p, int first, int y, int x, float (&c)[RM][RN], int) {
  int e[RM][RN];
  EACH (i, RM)
    EACH (j, RN) e[i][j] = max(FLOOR, accumulator_exponent(bits(c[i][j]) & MAGNITUDE));
  EACH (g, GROUPS) {
    u32 some_a[RM], some_b[RN];
    int of_a[RM], of_b[RN];
    take<RM>(&p.some_a[g][y * RM], some_a);
    take_columns(p.some_b[g], x, some_b);
    take<RM>(&p.of_a[g * SCALES / GROUPS][y * RM], of_a);
    take_columns(p.of_b[g * SCALES / GROUPS], x, of_b);
    EACH (i, RM)
      EACH (j, RN) {
        const int both = (of_a[i] >> 16) + (of_b[j] >> 16);
        if ((some_a[i] & some_b[j]) != 0) e[i][j] = max(e[i][j], both);
      }
  }
  s64 total[RM][RN];
  EACH (i, RM)
    EACH (j, RN) {
      const u32 of_c = bits(c[i][j]), magnitude = of_c & MAGNITUDE;
      const int significand = int((magnitude & (HIDDEN - 1)) | (magnitude >= HIDDEN ? HIDDEN : 0));
      total[i][j] = truncated(of_c >> 31 ? -significand : significand,
                              F - e[i][j] + max(int(magnitude >> FRACTION), 1) - BIAS - FRACTION);
    }
  u32 invalid = 0;
  EACH (g, GROUPS) {
    int sum[RM][RN];
    EACH (i, RM)
      EACH (j, RN) sum[i][j] = 0;
    ALONG (w, GROUP / 4) {
      u32 of_a[RM], of_b[RN];
      take<RM>(&p.a[g * (GROUP / 4) + w][y * RM], of_a);
      take_columns(p.b[g * (GROUP / 4) + w], x, of_b);
      EACH (i, RM)
        EACH (j, RN) sum[i][j] = __dp4a(int(of_a[i]), int(of_b[j]), sum[i][j]);
    }
    int of_a[RM], of_b[RN];
    take<RM>(&p.of_a[g * SCALES / GROUPS][y * RM], of_a);
    take_columns(p.of_b[g * SCALES / GROUPS], x, of_b);
    EACH (i, RM)
      EACH (j, RN) {
        const int scale_a = of_a[i] & 0xFFFF, scale_b = of_b[j] & 0xFFFF;
        if (scale_a == NAN_SCALE || scale_b == NAN_SCALE) invalid |= 1u << (i * RN + j);
        total[i][j] +=
            truncated(sum[i][j] * (scale_a * scale_b), F - e[i][j] + (of_a[i] >> 16) + (of_b[j] >> 16) - POINT);
      }
  }
  EACH (i, RM)
    EACH (j, RN) {
      const u32 magnitude = bits(c[i][j]) & MAGNITUDE;
      const float finite = rounded_sum(total[i][j], e[i][j] - F);
      const bool nothing = (invalid >> (i * RN + j) & 1) || magnitude > INFINITE;
      c[i][j] = nothing ? number(NOT_A_NUMBER) : magnitude == INFINITE ? c[i][j] : finite;
    }
}
