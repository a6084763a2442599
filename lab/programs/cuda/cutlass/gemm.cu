// device::Gemm of CUTLASS for sm_80, instantiated for one of CASE; as a host program it prints how a product is launched,
// and the bytes of its parameters: `gemm M N K SLICES A B C D E WORKSPACE`, of which the last six are addresses.

#include <cutlass/gemm/device/gemm.h>
#include <cutlass/gemm/device/gemm_sparse.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

using cutlass::gemm::GemmCoord;
using cutlass::layout::ColumnMajor;
using cutlass::layout::RowMajor;
using Tensor = cutlass::arch::OpClassTensorOp;
using Sm80 = cutlass::arch::Sm80;
template <int M, int N, int K>
using Shape = cutlass::gemm::GemmShape<M, N, K>;
template <typename T, int Count, typename Sum, typename Compute>
using Epilogue = cutlass::epilogue::thread::LinearCombination<T, Count, Sum, Compute>;
using Swizzle = cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>;

#if CASE == 0  // f16, sums in f32, all defaults
using Gemm = cutlass::gemm::device::Gemm<cutlass::half_t, RowMajor, cutlass::half_t, ColumnMajor, cutlass::half_t, RowMajor,
                                         float, Tensor, Sm80>;
#elif CASE == 1  // s8
using Gemm = cutlass::gemm::device::Gemm<int8_t, RowMajor, int8_t, ColumnMajor, int8_t, RowMajor, int32_t, Tensor, Sm80,
                                         Shape<128, 128, 64>, Shape<64, 64, 64>, Shape<16, 8, 32>>;
#elif CASE == 2  // tf32
using Gemm = cutlass::gemm::device::Gemm<float, RowMajor, float, ColumnMajor, float, RowMajor, float, Tensor, Sm80,
                                         Shape<64, 64, 32>, Shape<32, 32, 32>, Shape<16, 8, 8>>;
#elif CASE == 3  // f64
using Gemm = cutlass::gemm::device::Gemm<double, ColumnMajor, double, ColumnMajor, double, RowMajor, double, Tensor, Sm80,
                                         Shape<64, 64, 16>, Shape<32, 32, 16>, Shape<8, 8, 4>>;
#elif CASE == 4  // f16 with a sparse A
#define SPARSE
using Gemm = cutlass::gemm::device::SparseGemm<cutlass::half_t, RowMajor, cutlass::half_t, ColumnMajor, float, RowMajor, float,
                                               Tensor, Sm80, Shape<128, 128, 64>, Shape<64, 64, 64>, Shape<16, 8, 32>>;
#elif CASE == 5  // f16, both row-major, parts of k added in turn through semaphores
using Gemm = cutlass::gemm::device::Gemm<cutlass::half_t, RowMajor, cutlass::half_t, RowMajor, float, RowMajor, float, Tensor,
                                         Sm80, Shape<64, 64, 32>, Shape<32, 32, 32>, Shape<16, 8, 16>,
                                         Epilogue<float, 4, float, float>, Swizzle, 4, 8, 8, true>;
#endif

using Kernel = Gemm::GemmKernel;
template __global__ void cutlass::Kernel<Kernel>(Kernel::Params);

int main(int count, char** values) {
  if (count != 11) return 1;
  const auto number = [&](int i) { return std::strtoull(values[i], nullptr, 0); };
  const auto pointer = [&](int i) { return reinterpret_cast<void*>(number(i)); };
  const GemmCoord size(number(1), number(2), number(3));
  const int slices = number(4), m = size.m(), n = size.n(), k = size.k();
  const GemmCoord grid = Swizzle().get_tiled_shape(
      size, {Gemm::ThreadblockShape::kM, Gemm::ThreadblockShape::kN, Gemm::ThreadblockShape::kK}, slices);
#ifdef SPARSE
  const int stored = k / 2;
#else
  const int stored = k;
#endif
  using ElementA = Kernel::Mma::IteratorA::Element;
  using ElementB = Kernel::Mma::IteratorB::Element;
  const Gemm::LayoutA of_a = Gemm::LayoutA::packed({m, stored});
  const Gemm::LayoutB of_b = Gemm::LayoutB::packed({k, n});
  const Gemm::LayoutC of_c = Gemm::LayoutC::packed({m, n});
  const Gemm::EpilogueOutputOp::Params epilogue(Gemm::EpilogueOutputOp::ElementCompute(0.75f),
                                                Gemm::EpilogueOutputOp::ElementCompute(-0.5f));
  using C = Gemm::ElementC;
  alignas(16) static unsigned char bytes[sizeof(Kernel::Params)];
  std::memset(bytes, 0, sizeof bytes);
  new (bytes) Kernel::Params(size, grid, {static_cast<ElementA*>(pointer(5)), of_a},
                             {static_cast<ElementB*>(pointer(6)), of_b}, {static_cast<C*>(pointer(7)), of_c},
                             {static_cast<C*>(pointer(8)), of_c},
#ifdef SPARSE
                             {static_cast<Gemm::ElementE*>(pointer(9)),
                              Gemm::LayoutE::packed({m, k / Gemm::kSparse / Gemm::kElementsPerElementE})},
#endif
                             epilogue, static_cast<int*>(pointer(10)));
  const dim3 blocks = Swizzle().get_grid_shape(grid);
  std::printf("%u %u %u %d %zu\n", blocks.x, blocks.y, blocks.z, Kernel::kThreadCount, sizeof(Kernel::SharedStorage));
  for (unsigned char byte : bytes) std::printf("%02x", byte);
  std::printf("\n");
}
