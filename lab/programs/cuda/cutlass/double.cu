// CUTLASS 2's product of f64 with the matrix instruction of sm_90, launched by its own host code: `double M N K HIGH`,
// as `printed_launch.h` describes it.

#include "intercepted_launch.h"

#include <cutlass/gemm/device/gemm.h>

using cutlass::layout::ColumnMajor;
using cutlass::layout::RowMajor;
template <int M, int N, int K>
using Shape = cutlass::gemm::GemmShape<M, N, K>;
using Gemm = cutlass::gemm::device::Gemm<double, ColumnMajor, double, ColumnMajor, double, RowMajor, double,
                                         cutlass::arch::OpClassTensorOp, cutlass::arch::Sm90, Shape<64, 64, 16>,
                                         Shape<32, 32, 16>, Shape<16, 8, 4>,
                                         cutlass::epilogue::thread::LinearCombination<double, 1, double, double>,
                                         cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, 4>;

[[gnu::noinline]] static int describe(char** values) {
  const auto number = [&](int i) { return int(std::strtol(values[i], nullptr, 0)); };
  const int m = number(1), n = number(2), k = number(3);
  double* a = buffer<double>("a", std::size_t(m) * k);
  double* b = buffer<double>("b", std::size_t(n) * k);
  double* c = buffer<double>("c", std::size_t(m) * n);
  double* d = buffer<double>("d", std::size_t(m) * n, "out");
  Gemm gemm;
  const auto status = gemm({{m, n, k}, {a, m}, {b, k}, {c, n}, {d, n}, {0.75, -0.5}});
  print_buffers();
  return int(status);
}

int main(int count, char** values) {
  if (count != 5) return 1;
  high = std::strtoul(values[4], nullptr, 0);
  fill_stack();
  return describe(values);
}
