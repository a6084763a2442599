// Chains of IEEE operations: rules 14 to 16 of arithmetic/exact/reference.py.

typedef VALUE Value;

struct Panels {
  __align__(16) Value a[CHUNK][TM + 4], b[CHUNK][TN + 4];
};

template <class Format>
__device__ __forceinline__ Value operand(Code code) {
  if constexpr (sizeof(Value) == 8)
    return __longlong_as_double(s64(code));
  else
    return decode<Format>(u32(code));
}
__device__ __forceinline__ void put_a(Panels& p, int k, int i, Code code) { p.a[k][i] = operand<A>(code); }
__device__ __forceinline__ void put_b(Panels& p, int k, int j, Code code) { p.b[k][j] = operand<B>(code); }

#if CHAINS_OF_FMA
__device__ __forceinline__ Value fused(Value x, Value y, Value z) { return FUSED(x, y, z); }

// Rule 15 for f64: which NaN an operation with some passes on, or makes.
__device__ __noinline__ double fused_with_nan(double x, double y, double z) {
  const double made = fused(x, y, z);
  if (made == made) return made;
  const double first = y != y ? y : z != z ? z : x;
  return first == first ? __longlong_as_double(s64(0xFFF8000000000000ull))
                        : __longlong_as_double(__double_as_longlong(first) | 1ll << 51);
}

__device__ __forceinline__ void step(const Panels& p, int first, int y, int x, Value (&c)[RM][RN], int) {
  Value r[RM][RN];
  EACH (i, RM)
    EACH (j, RN) r[i][j] = c[i][j];
  ALONG (k, STEP) {
    Value of_a[RM], of_b[RN];
    take<RM>(&p.a[first + k][y * RM], of_a);
    take_columns(p.b[first + k], x, of_b);
    EACH (i, RM)
      EACH (j, RN) r[i][j] = fused(of_a[i], of_b[j], r[i][j]);
  }
  if constexpr (sizeof(Value) == 8) {
    EACH (i, RM)
      EACH (j, RN)
        if (r[i][j] != r[i][j]) {
          r[i][j] = c[i][j];
          for (int k = 0; k < STEP; k++)
            r[i][j] = fused_with_nan(p.a[first + k][y * RM + i], p.b[first + k][column(x, j)], r[i][j]);
        }
  }
  EACH (i, RM)
    EACH (j, RN) c[i][j] = r[i][j];
}
#else
__device__ __forceinline__ void step(const Panels& p, int first, int y, int x, float (&c)[RM][RN], int) {
  EACH (at, STEP / LENGTH) {
    float chain[RM][RN];
    EACH (k, LENGTH) {
      float of_a[RM], of_b[RN];
      take<RM>(&p.a[first + at * LENGTH + k][y * RM], of_a);
      take_columns(p.b[first + at * LENGTH + k], x, of_b);
      EACH (i, RM)
        EACH (j, RN)
          chain[i][j] = k == 0 && SEEDED ? of_a[i] * of_b[j] : __fmaf_rn(of_a[i], of_b[j], k == 0 ? 0.0f : chain[i][j]);
    }
    EACH (i, RM)
      EACH (j, RN) c[i][j] = c[i][j] + chain[i][j];
  }
  if (D::width == 16)
    EACH (i, RM)
      EACH (j, RN) c[i][j] = to_half(c[i][j]);
}
#endif
