// Sums of integers and of ones: rules 17 and 18 of arithmetic/exact/reference.py. Elements are bytes, single bits too,
// and four of them a word.

constexpr int PER_WORD = 4;

typedef int Value;

struct Panels {
  __align__(16) u32 a[CHUNK / PER_WORD][TM + 4], b[CHUNK / PER_WORD][TN + 4];
};

// Codes of narrower integers become bytes; a sign moves up.
template <class Format>
__device__ __forceinline__ u8 byte_of(u32 code) {
  return u8(Format::is_signed ? int(code << (32 - Format::width)) >> (32 - Format::width) : int(code));
}
__device__ __forceinline__ void put_a(Panels& p, int k, int i, u32 code) {
  reinterpret_cast<u8*>(&p.a[k / PER_WORD][i])[k % PER_WORD] = byte_of<A>(code);
}
__device__ __forceinline__ void put_absent(Panels& p, int k, int i) { put_a(p, k, i, 0); }
__device__ __forceinline__ void put_b(Panels& p, int k, int j, u32 code) {
  reinterpret_cast<u8*>(&p.b[k / PER_WORD][j])[k % PER_WORD] = byte_of<B>(code);
}

__device__ __forceinline__ int sum_of_products(u32 x, u32 y, int sum) {
  if (ONES) x = EXCLUSIVE ? x ^ y : x & y, y = 0x01010101u;
  int d;
#define WITH(of_a, of_b) asm("dp4a." #of_a "." #of_b " %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(y), "r"(sum))
  if constexpr (A::is_signed && B::is_signed)
    WITH(s32, s32);
  else if constexpr (A::is_signed)
    WITH(s32, u32);
  else if constexpr (B::is_signed)
    WITH(u32, s32);
  else
    WITH(u32, u32);
#undef WITH
  return d;
}

__device__ __forceinline__ void step(const Panels& p, int first, int y, int x, int (&c)[RM][RN], int) {
  int sum[RM][RN];
  EACH (i, RM)
    EACH (j, RN) sum[i][j] = SATURATE ? 0 : c[i][j];
  ALONG (k, STEP / PER_WORD) {
    u32 of_a[RM], of_b[RN];
    take<RM>(&p.a[first / PER_WORD + k][y * RM], of_a);
    take_columns(p.b[first / PER_WORD + k], x, of_b);
    EACH (i, RM)
      EACH (j, RN) sum[i][j] = sum_of_products(of_a[i], of_b[j], sum[i][j]);
  }
  EACH (i, RM)
    EACH (j, RN) {
      if (SATURATE) {
        const s64 exact = s64(c[i][j]) + sum[i][j];
        c[i][j] = exact > 0x7FFFFFFFll ? 0x7FFFFFFF : exact < -0x80000000ll ? int(0x80000000u) : int(exact);
      } else {
        c[i][j] = sum[i][j];
      }
    }
}
