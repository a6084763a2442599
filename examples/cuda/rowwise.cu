// The twin of ../rowwise.py: softmax, RMSNorm and GELU of rows, the same shares and order of instructions. Arithmetic
// is written with intrinsics and PTX, which the compiler neither contracts nor reorders.

#include <cmath>

#include "warp.cuh"

namespace {

constexpr int Threads = 128, Warp = 32, Most = 1024;
constexpr float Epsilon = 1e-6f, Log2e = 1.4426950408889634f;
constexpr float Linear = 0.7978845608028654f, Cubic = 0.035677408136300125f;  // sqrt(2 / pi), and that times 0.044715

// What is computed with, and what is in memory. Pairs stay as they are.
__device__ float widened(float x) { return x; }
__device__ float widened(__half x) { return __half2float(x); }
__device__ float widened(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ uint32_t widened(uint32_t x) { return x; }
__device__ void round_to(float& to, float x) { to = x; }
__device__ void round_to(__half& to, float x) { to = __float2half_rn(x); }
__device__ void round_to(__nv_bfloat16& to, float x) { to = __float2bfloat16_rn(x); }
__device__ void round_to(uint32_t& to, uint32_t x) { to = x; }

template <typename T, int Width>
struct alignas(sizeof(T) * Width) Vector {
  T element[Width];
};

template <typename T, int Width, typename Value>
__device__ void load(Value (&values)[Width], const T* from, bool inside, Value missing) {
  Vector<T, Width> found;
  if (inside) found = *reinterpret_cast<const Vector<T, Width>*>(from);
#pragma unroll
  for (int i = 0; i < Width; i++) values[i] = inside ? widened(found.element[i]) : missing;
}

template <typename T, int Width, typename Value>
__device__ void store(T* to, bool inside, const Value (&values)[Width]) {
  Vector<T, Width> made;
#pragma unroll
  for (int i = 0; i < Width; i++) round_to(made.element[i], values[i]);
  if (inside) *reinterpret_cast<Vector<T, Width>*>(to) = made;
}

// Pairs of 16-bit elements.
#define PAIRS(NAME, ELEMENT, EX2)                                                         \
  struct NAME {                                                                           \
    using Element = ELEMENT;                                                              \
    __device__ static uint32_t rounded(float low, float high) {                           \
      uint32_t pair;                                                                      \
      asm("cvt.rn." #NAME ".f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));         \
      return pair;                                                                        \
    }                                                                                     \
    __device__ static uint32_t larger(uint32_t x, uint32_t y) {                           \
      asm("max." #NAME " %0, %0, %1;" : "+r"(x) : "r"(y));                                \
      return x;                                                                           \
    }                                                                                     \
    __device__ static uint32_t difference(uint32_t x, uint32_t y) {                       \
      asm("sub.rn." #NAME " %0, %0, %1;" : "+r"(x) : "r"(y));                             \
      return x;                                                                           \
    }                                                                                     \
    __device__ static uint32_t product(uint32_t x, uint32_t y) {                          \
      asm("mul.rn." #NAME " %0, %0, %1;" : "+r"(x) : "r"(y));                             \
      return x;                                                                           \
    }                                                                                     \
    __device__ static uint32_t multiplied_and_added(uint32_t x, uint32_t y, uint32_t z) { \
      asm("fma.rn." #NAME " %0, %0, %1, %2;" : "+r"(x) : "r"(y), "r"(z));                 \
      return x;                                                                           \
    }                                                                                     \
    __device__ static uint32_t ex2(uint32_t x) {                                          \
      asm(EX2 " %0, %0;" : "+r"(x));                                                      \
      return x;                                                                           \
    }                                                                                     \
    __device__ static uint32_t tanh(uint32_t x) {                                         \
      asm("tanh.approx." #NAME " %0, %0;" : "+r"(x));                                     \
      return x;                                                                           \
    }                                                                                     \
  };

PAIRS(f16x2, __half, "ex2.approx.f16x2")
PAIRS(bf16x2, __nv_bfloat16, "ex2.approx.ftz.bf16x2")

// Both elements as f32.
template <typename Pairs>
__device__ float2 widened_pair(uint32_t pair) {
  using Element = typename Pairs::Element;
  const Vector<Element, 2> both = *reinterpret_cast<const Vector<Element, 2>*>(&pair);
  return {widened(both.element[0]), widened(both.element[1])};
}

// Combines the values of a warp's lanes, in all of them.
template <typename Value, typename Operation>
__device__ Value over_warp(Value x, Operation operation) {
#pragma unroll
  for (int distance = Warp / 2; distance; distance /= 2)
    x = operation(x, __shfl_xor_sync(0xFFFFFFFF, x, distance));
  return x;
}

__device__ float sum_over_warp(float x) {
  return over_warp(x, [](float a, float b) { return __fadd_rn(a, b); });
}

template <typename T, int Width>
__device__ void softmax(const T* x, T* y, int rows, int columns) {
  constexpr int Steps = Most / Warp / Width;
  const int row = blockIdx.x * (Threads / Warp) + threadIdx.x / Warp, lane = threadIdx.x % Warp;
  if (row >= rows) return;
  float values[Steps][Width], most = -INFINITY, total = 0;
  // Beyond the row, and in the turns that it does not need, there is -inf, which becomes 0.
#pragma unroll
  for (int i = 0; i < Steps; i++) {
    const int column = (i * Warp + lane) * Width;
    load<T, Width>(values[i], x + row * columns + column, column < columns, -INFINITY);
#pragma unroll
    for (int j = 0; j < Width; j++) most = fmaxf(most, values[i][j]);
  }
  most = over_warp(most, [](float a, float b) { return fmaxf(a, b); });
#pragma unroll
  for (int i = 0; i < Steps; i++)
#pragma unroll
    for (int j = 0; j < Width; j++) {
      values[i][j] = ex2_approx(__fmul_rn(__fsub_rn(values[i][j], most), Log2e));
      total = __fadd_rn(total, values[i][j]);
    }
  total = sum_over_warp(total);
#pragma unroll
  for (int i = 0; i < Steps; i++) {
    const int column = (i * Warp + lane) * Width;
#pragma unroll
    for (int j = 0; j < Width; j++) values[i][j] = div_full(values[i][j], total);
    store<T, Width>(y + row * columns + column, column < columns, values[i]);
  }
}

template <typename Pairs, int Width>
__device__ void softmax_of_pairs(const uint32_t* x, uint32_t* y, int rows, int columns) {
  constexpr int Steps = Most / Warp / Width;
  const int row = blockIdx.x * (Threads / Warp) + threadIdx.x / Warp, lane = threadIdx.x % Warp;
  if (row >= rows) return;
  const uint32_t least = Pairs::rounded(-INFINITY, -INFINITY), log2e = Pairs::rounded(Log2e, Log2e);
  uint32_t values[Steps][Width], most = least;
  float total = 0;
#pragma unroll
  for (int i = 0; i < Steps; i++) {
    const int column = (i * Warp + lane) * Width;
    load<uint32_t, Width>(values[i], x + row * columns + column, column < columns, least);
#pragma unroll
    for (int j = 0; j < Width; j++) most = Pairs::larger(most, values[i][j]);
  }
  most = over_warp(most, [](uint32_t a, uint32_t b) { return Pairs::larger(a, b); });
  most = Pairs::larger(most, __byte_perm(most, 0, 0x1032));  // of both halves, in both
#pragma unroll
  for (int i = 0; i < Steps; i++)
#pragma unroll
    for (int j = 0; j < Width; j++) {
      values[i][j] = Pairs::ex2(Pairs::product(Pairs::difference(values[i][j], most), log2e));
      const float2 both = widened_pair<Pairs>(values[i][j]);
      total = __fadd_rn(__fadd_rn(total, both.x), both.y);
    }
  const float factor = rcp_approx(sum_over_warp(total));
#pragma unroll
  for (int i = 0; i < Steps; i++) {
    const int column = (i * Warp + lane) * Width;
#pragma unroll
    for (int j = 0; j < Width; j++) {
      const float2 both = widened_pair<Pairs>(values[i][j]);
      values[i][j] = Pairs::rounded(__fmul_rn(both.x, factor), __fmul_rn(both.y, factor));
    }
    store<uint32_t, Width>(y + row * columns + column, column < columns, values[i]);
  }
}

template <typename T, int Width>
__device__ void rmsnorm(const T* x, const T* weights, T* y, int columns) {
  __shared__ alignas(16) float sums[Threads / Warp];
  const int row = blockIdx.x, thread = threadIdx.x;
  float values[Width], total = 0;
  for (int column = thread * Width; column < columns; column += Threads * Width) {
    load<T, Width>(values, x + row * columns + column, true, 0.0f);
#pragma unroll
    for (int j = 0; j < Width; j++) total = __fmaf_rn(values[j], values[j], total);
  }
  total = sum_over_warp(total);
  if (thread % Warp == 0) sums[thread / Warp] = total;
  __syncthreads();
  total = sums[0];
#pragma unroll
  for (int i = 1; i < Threads / Warp; i++) total = __fadd_rn(total, sums[i]);
  const float factor = rsqrt_approx(__fadd_rn(__fdiv_rn(total, float(columns)), Epsilon));
  for (int column = thread * Width; column < columns; column += Threads * Width) {
    float those[Width];
    load<T, Width>(values, x + row * columns + column, true, 0.0f);
    load<T, Width>(those, weights + column, true, 0.0f);
#pragma unroll
    for (int j = 0; j < Width; j++) values[j] = __fmul_rn(__fmul_rn(values[j], factor), those[j]);
    store<T, Width>(y + row * columns + column, true, values);
  }
}

template <typename T, int Width>
__device__ void gelu(const T* x, T* y, int count) {
  const int first = (blockIdx.x * Threads + threadIdx.x) * Width;
  float values[Width];
  load<T, Width>(values, x + first, first < count, 0.0f);
#pragma unroll
  for (int j = 0; j < Width; j++) {
    const float v = values[j];
    const float inner = __fmul_rn(v, __fmaf_rn(__fmul_rn(v, v), Cubic, Linear)), half = __fmul_rn(v, 0.5f);
    values[j] = __fmaf_rn(half, tanh_approx(inner), half);
  }
  store<T, Width>(y + first, first < count, values);
}

template <typename Pairs, int Width>
__device__ void gelu_of_pairs(const uint32_t* x, uint32_t* y, int count) {
  const uint32_t cubic = Pairs::rounded(Cubic, Cubic), linear = Pairs::rounded(Linear, Linear);
  const uint32_t one_half = Pairs::rounded(0.5f, 0.5f);
  const int first = (blockIdx.x * Threads + threadIdx.x) * Width;
  uint32_t values[Width];
  load<uint32_t, Width>(values, x + first, first < count, 0u);
#pragma unroll
  for (int j = 0; j < Width; j++) {
    const uint32_t v = values[j], cube = Pairs::multiplied_and_added(Pairs::product(v, v), cubic, linear);
    const uint32_t inner = Pairs::product(v, cube), half = Pairs::product(v, one_half);
    values[j] = Pairs::multiplied_and_added(half, Pairs::tanh(inner), half);
  }
  store<uint32_t, Width>(y + first, first < count, values);
}

}  // namespace

#define KERNELS(KIND, TYPE)                                                                              \
  extern "C" __global__ void __launch_bounds__(Threads)                                                  \
      softmax_##KIND(const TYPE* x, TYPE* y, int rows, int columns) {                                    \
    columns % 4 ? softmax<TYPE, 1>(x, y, rows, columns) : softmax<TYPE, 4>(x, y, rows, columns);         \
  }                                                                                                      \
  extern "C" __global__ void __launch_bounds__(Threads)                                                  \
      rmsnorm_##KIND(const TYPE* x, const TYPE* weights, TYPE* y, int columns) {                         \
    columns % 4 ? rmsnorm<TYPE, 1>(x, weights, y, columns) : rmsnorm<TYPE, 4>(x, weights, y, columns);   \
  }                                                                                                      \
  extern "C" __global__ void __launch_bounds__(Threads) gelu_##KIND(const TYPE* x, TYPE* y, int count) { \
    count % 4 ? gelu<TYPE, 1>(x, y, count) : gelu<TYPE, 4>(x, y, count);                                 \
  }

KERNELS(f32, float)
KERNELS(f16, __half)
KERNELS(bf16, __nv_bfloat16)

#define KERNELS_OF_PAIRS(KIND)                                                                                     \
  extern "C" __global__ void __launch_bounds__(Threads)                                                            \
      softmax_##KIND(const uint32_t* x, uint32_t* y, int rows, int columns) {                                      \
    columns % 4 ? softmax_of_pairs<KIND, 1>(x, y, rows, columns) : softmax_of_pairs<KIND, 4>(x, y, rows, columns); \
  }                                                                                                                \
  extern "C" __global__ void __launch_bounds__(Threads) gelu_##KIND(const uint32_t* x, uint32_t* y, int count) {   \
    count % 4 ? gelu_of_pairs<KIND, 1>(x, y, count) : gelu_of_pairs<KIND, 4>(x, y, count);                         \
  }

KERNELS_OF_PAIRS(f16x2)
KERNELS_OF_PAIRS(bf16x2)
