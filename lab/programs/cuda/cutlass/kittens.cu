// ThunderKittens' products for sm_90a, one of CASE, launched by their own host code: `kittens M N K GRID HIGH`, as
// `printed_launch.h` describes it. Folders of headers: `include`, `prototype` and `kernels/gemm` of ThunderKittens.

#include "intercepted_launch.h"

#define main main_of_kittens
#if CASE == 0  // loads by all warps, without TMA
#include "educational_h100/level_05.cu"
#elif CASE == 1  // TMA, one warpgroup loads and two compute
#include "educational_h100/level_08.cu"
#elif CASE == 2  // a ring of stages, persistent blocks
#include "bf16_h100/bf16_h100_gemm.cu"
#elif CASE == 3  // the same for e4m3
#include "fp8_h100/fp8_h100_gemm.cu"
#endif
#undef main

extern "C" CUresult CUDAAPI cuGetErrorString(CUresult, const char** text) { return *text = "", CUDA_SUCCESS; }

[[gnu::noinline]] static void describe(char** values) {
  const auto number = [&](int i) { return int(std::strtol(values[i], nullptr, 0)); };
  const int m = number(1), n = number(2), k = number(3);
  [[maybe_unused]] const dim3 grid(number(4));
#if CASE == 3
  using Input = cutlass::float_e4m3_t;
  using Type = fp8e4m3;
#else
  using Input = cutlass::bfloat16_t;
  using Type = bf16;
#endif
  auto* a = reinterpret_cast<Type*>(buffer<Input>("a", std::size_t(m) * k));
  auto* b = reinterpret_cast<Type*>(buffer<Input>("b", std::size_t(n) * k));
  auto* c = reinterpret_cast<Type*>(buffer<Input>("c", std::size_t(m) * n, "out"));
#if CASE < 2
  matmul(a, b, c, n);
#else
#if CASE == 2
  using Product = matmul_template<2, 4, 8>;
#else
  using Product = matmul_template<8>;
#endif
  inner_run<Product>(a, b, c, m, n, k, grid, dim3(kittens::prototype::detail::NUM_THREADS_v<Product>));
#endif
  print_maps();
  print_buffers();
}

int main(int count, char** values) {
  if (count != 6) return 1;
  high = std::strtoul(values[5], nullptr, 0);
  fill_stack();
  describe(values);
}
