// The product of CUTLASS's example 52: rows of A and of C are gathered, those of D scattered: `gather ROWS N K GATHERED
// HIGH`, as `printed_launch.h` describes it. The folders `examples` and `examples/common` of CUTLASS have headers.

#include "printed_launch.h"

#include <cutlass/epilogue/collective/default_epilogue.hpp>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>

#include "52_hopper_gather_scatter_fusion/gather_gemm.hpp"
#include "52_hopper_gather_scatter_fusion/scatter_epilogue.hpp"
#include "gather_tensor.hpp"

#include <cstdlib>
#include <new>

using namespace cute;
using cutlass::half_t;
using cutlass::layout::ColumnMajor;
using cutlass::layout::RowMajor;
using Gather = example::IndexedGather<int>;
using StrideA = cutlass::gemm::TagToStrideA_t<RowMajor>;
using StrideB = cutlass::gemm::TagToStrideB_t<ColumnMajor>;
using StrideC = cutlass::gemm::TagToStrideC_t<RowMajor>;
using Sum =
    cutlass::epilogue::thread::LinearCombination<half_t, 1, float, float, cutlass::epilogue::thread::ScaleType::Default,
                                                 cutlass::FloatRoundStyle::round_to_nearest, half_t>;
using Epilogue = cutlass::epilogue::collective::detail::Sm90TmaWarpSpecializedAdapter<
    cutlass::epilogue::collective::EpilogueGatherScatter<StrideC, StrideC, Sum, cutlass::gemm::EpilogueDefault, Gather,
                                                         Gather>>;
using Mainloop =
    cutlass::gemm::collective::CollectiveBuilder<cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, half_t, RowMajor,
                                                 8, half_t, ColumnMajor, 8, float, Shape<_128, _128, _64>,
                                                 Shape<_1, _1, _1>, cutlass::gemm::collective::StageCountAuto,
                                                 cutlass::gemm::KernelCpAsyncWarpSpecialized>::CollectiveOp;
using Kernel =
    cutlass::gemm::kernel::GemmGather<Shape<int, int, int, int>, Mainloop, Epilogue, void, Gather, example::NoGather>;
template __global__ void cutlass::device_kernel<Kernel>(CUTLASS_GRID_CONSTANT Kernel::Params const);

[[gnu::noinline]] static int describe(char** values) {
  const auto number = [&](int i) { return int(std::strtol(values[i], nullptr, 0)); };
  const int rows = number(1), n = number(2), k = number(3), gathered = number(4);
  std::vector<int> order;                                                   // the kernel reads indices of a whole tile
  for (int i = 0; i < gathered; ++i) order.push_back((i * 37 + 5) % rows);  // all different: 37 and ROWS are coprime
  order.resize((order.size() + 127) / 128 * 128);
  const half_t* a = buffer<half_t>("a", std::size_t(rows) * k);
  const half_t* b = buffer<half_t>("b", std::size_t(n) * k);
  const half_t* c = buffer<half_t>("c", std::size_t(rows) * n);
  half_t* d = buffer<half_t>("d", std::size_t(rows) * n, "out");
  const int* indices = stored("indices", order);
  const auto stride_a = cutlass::make_cute_packed_stride(StrideA{}, make_shape(rows, k, 1));
  const auto stride_b = cutlass::make_cute_packed_stride(StrideB{}, make_shape(n, k, 1));
  const auto stride_c = cutlass::make_cute_packed_stride(StrideC{}, make_shape(rows, n, 1));
  const Kernel::Arguments made{cutlass::gemm::GemmUniversalMode::kGemm,
                               {gathered, n, k, 1},
                               {a, stride_a, b, stride_b},
                               {{0.75f, -0.5f}, c, stride_c, d, stride_c, Gather{indices}, Gather{indices}},
                               {},
                               {},
                               Gather{indices},
                               {}};
  alignas(128) static unsigned char room[sizeof(Kernel::Params)];
  std::memset(room, int(high), sizeof room);
  const auto& parameters = *new (room) Kernel::Params(Kernel::to_underlying_arguments(made, nullptr));
  print_launch(Kernel::get_grid_shape(parameters), Kernel::get_block_shape(), dim3(1, 1, 1), Kernel::SharedStorageSize,
               parameters);
  return 0;
}

int main(int count, char** values) {
  if (count != 6) return 1;
  high = std::strtoul(values[5], nullptr, 0);
  fill_stack();
  return describe(values);
}
