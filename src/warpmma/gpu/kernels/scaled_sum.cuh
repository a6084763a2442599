// alpha x sums + beta x C, in place: an element for each thread. `Sum` and `Addend` are formats, of which the first has
// all numbers of the second; both factors are of `Sum`. Each operation is rounded once, to nearest even.

constexpr int THREADS = 256, MOST_DIMENSIONS = 16;

struct ScaledSum {
  void* x;
  const void* c;  // none, where there is nothing to add
  u64 alpha, beta;
  s64 count;
  s64 sizes[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];  // of C, outermost first
  int dimensions;
  int factor_of_c;  // whether fma multiplies C, and alpha x sum is rounded before
};

#if SUM == 16
typedef u16 Number;
__device__ __forceinline__ Number product(Number x, Number y) {
  Number d;
  asm("mul.rn.f16 %0, %1, %2;" : "=h"(d) : "h"(x), "h"(y));
  return d;
}
__device__ __forceinline__ Number fused(Number x, Number y, Number z) {
  Number d;
  asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(d) : "h"(x), "h"(y), "h"(z));
  return d;
}
__device__ __forceinline__ Number of_code(u64 code) { return Number(code); }
#elif SUM == 32
typedef float Number;
__device__ __forceinline__ Number product(Number x, Number y) { return __fmul_rn(x, y); }
__device__ __forceinline__ Number fused(Number x, Number y, Number z) { return __fmaf_rn(x, y, z); }
__device__ __forceinline__ Number of_code(u64 code) { return number(u32(code)); }
#else
typedef double Number;
__device__ __forceinline__ Number product(Number x, Number y) { return __dmul_rn(x, y); }
__device__ __forceinline__ Number fused(Number x, Number y, Number z) { return __fma_rn(x, y, z); }
__device__ __forceinline__ Number of_code(u64 code) { return __longlong_as_double(s64(code)); }
#endif

template <class Format>
__device__ __forceinline__ Number addend_at(const void* c, s64 index) {
  if constexpr (Format::width == SUM)
    return static_cast<const Number*>(c)[index];
  else
    return decode<Format>(static_cast<const u16*>(c)[index]);
}

extern "C" __global__ void __launch_bounds__(THREADS) scaled_sum(const __grid_constant__ ScaledSum g) {
  const s64 at = s64(blockIdx.x) * THREADS + threadIdx.x;
  if (at >= g.count) return;
  Number* x = static_cast<Number*>(g.x) + at;
  const Number alpha = of_code(g.alpha), beta = of_code(g.beta);
  if (!g.c) {
    *x = product(*x, alpha);
    return;
  }
  s64 index = 0, rest = at;
  for (int i = g.dimensions - 1; i >= 0; i--) index += rest % g.sizes[i] * g.strides[i], rest /= g.sizes[i];
  const Number c = addend_at<Addend>(g.c, index);
  *x = g.factor_of_c ? fused(c, beta, product(*x, alpha)) : fused(*x, alpha, product(c, beta));
}
