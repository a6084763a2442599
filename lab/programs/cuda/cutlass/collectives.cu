// Kernels of CUTLASS 3 for sm_90a, instantiated for one of CASE; as a host program it prints how one is launched:
// `collectives M N K L SMS SPLITS HIGH`, as `printed_launch.h` describes it. Batches, or groups, are L.

#define CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL 1
#include "printed_launch.h"

#include <cutlass/cutlass.h>
#include <cutlass/detail/blockwise_scale_layout.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/collective/default_epilogue.hpp>
#include <cutlass/epilogue/fusion/operations.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>

#include <cstdlib>
#include <new>

using namespace cute;
using cutlass::bfloat16_t;
using cutlass::float_e4m3_t;
using cutlass::float_e5m2_t;
using cutlass::half_t;
using cutlass::tfloat32_t;
using cutlass::layout::ColumnMajor;
using cutlass::layout::RowMajor;
namespace fusion = cutlass::epilogue::fusion;
namespace gemm = cutlass::gemm;

// ------------------------------------------------------------------------------------------------------------ kernels

struct Defaults {
  using A = half_t;
  using B = half_t;
  using C = half_t;
  using D = half_t;
  using Sum = float;
  using LayoutA = RowMajor;
  using LayoutB = ColumnMajor;
  using LayoutC = RowMajor;
  using Tile = Shape<_128, _128, _64>;
  using Cluster = Shape<_1, _1, _1>;
  using Scheduler = void;
  using Operator = cutlass::arch::OpClassTensorOp;
  using Fusion = void;  // alpha * sum + beta * c
  static constexpr int bytes_of_alignment = 16;
};
using Pingpong = gemm::KernelTmaWarpSpecializedPingpong;
using Cooperative = gemm::KernelTmaWarpSpecializedCooperative;
using StorePingpong = cutlass::epilogue::TmaWarpSpecialized;
using StoreCooperative = cutlass::epilogue::TmaWarpSpecializedCooperative;
using StoreDirectly = cutlass::epilogue::NoSmemWarpSpecialized;

#if CASE == 0  // pingpong; batches
struct Config : Defaults {
  using Tile = Shape<_64, _128, _64>;
  using Schedule = Pingpong;
  using Store = StorePingpong;
};
#elif CASE == 1  // cooperative, cluster of 2x1 with multicast of B
struct Config : Defaults {
  using A = bfloat16_t;
  using B = bfloat16_t;
  using C = float;
  using D = float;
  using Cluster = Shape<_2, _1, _1>;
  using Schedule = Cooperative;
  using Store = StoreCooperative;
};
#elif CASE == 2  // basic warp-specialised TMA, both operands MN-major, cluster of 1x2 with multicast of A
struct Config : Defaults {
  using LayoutA = ColumnMajor;
  using LayoutB = RowMajor;
  using LayoutC = ColumnMajor;
  using Tile = Shape<_64, _64, _64>;
  using Cluster = Shape<_1, _2, _1>;
  using Schedule = gemm::KernelTmaWarpSpecialized;
  using Store = StorePingpong;
};
#elif CASE == 3  // TMA without specialised warps
struct Config : Defaults {
  using Tile = Shape<_64, _128, _64>;
  using C = float;
  using D = float;
  using Schedule = gemm::KernelTma;
  using Store = cutlass::epilogue::NoSmemWarpSpecialized;
};
#elif CASE == 4  // cp.async of 4 bytes, basic
struct Config : Defaults {
  using Tile = Shape<_64, _64, _64>;
  using Schedule = gemm::KernelCpAsyncWarpSpecialized;
  using Store = StoreDirectly;
  static constexpr int bytes_of_alignment = 4;
};
#elif CASE == 5  // cp.async of 8 bytes, cooperative
struct Config : Defaults {
  using A = bfloat16_t;
  using B = bfloat16_t;
  using C = float;
  using D = float;
  using Schedule = gemm::KernelCpAsyncWarpSpecializedCooperative;
  using Store = StoreDirectly;
  static constexpr int bytes_of_alignment = 8;
};
#elif CASE == 6  // cp.async of tf32, pingpong
struct Config : Defaults {
  using A = tfloat32_t;
  using B = tfloat32_t;
  using C = float;
  using D = float;
  using Tile = Shape<_64, _64, _32>;
  using Schedule = gemm::KernelCpAsyncWarpSpecializedPingpong;
  using Store = StoreDirectly;
  static constexpr int bytes_of_alignment = 8;
};
#elif CASE == 7  // cp.async by all warps
struct Config : Defaults {
  using Tile = Shape<_64, _64, _64>;
  using Schedule = gemm::KernelMultistage;
  using Store = StoreDirectly;
  static constexpr int bytes_of_alignment = 8;
};
#elif CASE == 8  // stream-K and split-K
#define STREAMK
struct Config : Defaults {
  using Schedule = Cooperative;
  using Store = StoreCooperative;
  using Scheduler = gemm::StreamKScheduler;
};
#elif CASE == 9   // tf32
struct Config : Defaults {
  using A = tfloat32_t;
  using B = tfloat32_t;
  using C = float;
  using D = float;
  using Tile = Shape<_128, _64, _32>;
  using Schedule = Cooperative;
  using Store = StoreCooperative;
};
#elif CASE == 10  // tf32, both MN-major: A comes from registers, B is transposed in shared memory
struct Config : Defaults {
  using A = tfloat32_t;
  using B = tfloat32_t;
  using C = float;
  using D = float;
  using LayoutA = ColumnMajor;
  using LayoutB = RowMajor;
  using Tile = Shape<_64, _64, _32>;
  using Schedule = gemm::KernelTmaWarpSpecialized;
  using Store = StorePingpong;
};
#elif CASE == 11  // s8
struct Config : Defaults {
  using A = int8_t;
  using B = int8_t;
  using C = int32_t;
  using D = int32_t;
  using Sum = int32_t;
  using Tile = Shape<_64, _128, _128>;
  using Schedule = Pingpong;
  using Store = StorePingpong;
};
#elif CASE == 12  // e4m3 with sums promoted to f32
struct Config : Defaults {
  using A = float_e4m3_t;
  using B = float_e4m3_t;
  using C = bfloat16_t;
  using D = bfloat16_t;
  using Tile = Shape<_128, _128, _128>;
  using Schedule = Cooperative;
  using Store = StoreCooperative;
};
#elif CASE == 13  // e4m3, fast accumulation
struct Config : Defaults {
  using A = float_e4m3_t;
  using B = float_e4m3_t;
  using C = float;
  using D = float;
  using Tile = Shape<_64, _128, _128>;
  using Schedule = gemm::KernelTmaWarpSpecializedPingpongFP8FastAccum;
  using Store = StorePingpong;
};
#elif CASE == 14  // e5m2 x e4m3
struct Config : Defaults {
  using A = float_e5m2_t;
  using B = float_e4m3_t;
  using C = half_t;
  using D = float_e4m3_t;
  using Tile = Shape<_64, _128, _128>;
  using Schedule = gemm::KernelTmaWarpSpecializedPingpong;
  using Store = StorePingpong;
};
#elif CASE == 15  // mixed: s8 x f16
struct Config : Defaults {
  using A = int8_t;
  using Schedule = Cooperative;
  using Store = StoreCooperative;
};
#elif CASE == 16  // mixed: e4m3 x bf16
struct Config : Defaults {
  using A = float_e4m3_t;
  using B = bfloat16_t;
  using C = float;
  using D = float;
  using Tile = Shape<_64, _128, _64>;
  using Schedule = Pingpong;
  using Store = StorePingpong;
};
#elif CASE == 17  // mixed: s4 with scales and zeros x f16
#define SCALED_GROUP 128
struct Config : Defaults {
  using A = cute::tuple<cutlass::int4b_t, half_t, half_t>;
  using Schedule = Cooperative;
  using Store = StoreCooperative;
};
#elif CASE == 18  // groups, cooperative
#define GROUPS
struct Config : Defaults {
  using Schedule = gemm::KernelPtrArrayTmaWarpSpecializedCooperative;
  using Store = cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative;
};
#elif CASE == 19  // groups, pingpong, e4m3
#define GROUPS
struct Config : Defaults {
  using A = float_e4m3_t;
  using B = float_e4m3_t;
  using LayoutC = ColumnMajor;
  using Tile = Shape<_64, _128, _128>;
  using Cluster = Shape<_2, _1, _1>;
  using Schedule = gemm::KernelPtrArrayTmaWarpSpecializedPingpongFP8FastAccum;
  using Store = cutlass::epilogue::PtrArrayTmaWarpSpecializedPingpong;
};
#elif CASE == 20  // batches by arrays of pointers
#define POINTERS
struct Config : Defaults {
  using Schedule = gemm::KernelPtrArrayTmaWarpSpecializedCooperative;
  using Store = cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative;
};
#elif CASE == 21  // sparse f16
#define SPARSE "meta16"
struct Config : Defaults {
  using C = float;
  using D = float;
  using Tile = Shape<_128, _128, _128>;
  using Schedule = Cooperative;
  using Store = StoreCooperative;
  using Operator = cutlass::arch::OpClassSparseTensorOp;
};
#elif CASE == 22  // sparse e4m3
#define SPARSE "meta8"
struct Config : Defaults {
  using A = float_e4m3_t;
  using B = float_e4m3_t;
  using Tile = Shape<_64, _128, _128>;
  using Schedule = gemm::KernelTmaWarpSpecializedPingpongFP8FastAccum;
  using Store = StorePingpong;
  using Operator = cutlass::arch::OpClassSparseTensorOp;
};
#elif CASE == 23  // sparse s8
#define SPARSE "meta8"
struct Config : Defaults {
  using A = int8_t;
  using B = int8_t;
  using C = int32_t;
  using D = int32_t;
  using Sum = int32_t;
  using Tile = Shape<_128, _128, _128>;
  using Schedule = Cooperative;
  using Store = StoreCooperative;
  using Operator = cutlass::arch::OpClassSparseTensorOp;
};
#elif CASE == 24  // e4m3 with a scale for each 128 x 128 block of A and of B
#define BLOCKWISE
struct Config : Defaults {
  using A = float_e4m3_t;
  using B = float_e4m3_t;
  using C = bfloat16_t;
  using D = bfloat16_t;
  using Tile = Shape<_128, _128, _128>;
  using Scales = cutlass::detail::Sm90BlockwiseScaleConfig<128, 128, 128>;
  using Schedule = gemm::KernelTmaWarpSpecializedCooperativeFP8Blockwise;
  using Store = StoreCooperative;
};
#elif CASE == 25  // e4m3 with a scale for 128 elements of each row of A, and for each 128 x 128 block of B
#define BLOCKWISE
struct Config : Defaults {
  using A = float_e4m3_t;
  using B = float_e4m3_t;
  using C = float;
  using D = float;
  using Tile = Shape<_64, _128, _128>;
  using Scales = cutlass::detail::Sm90BlockwiseScaleConfig<1, 128, 128>;
  using Schedule = gemm::KernelTmaWarpSpecializedPingpongFP8Blockwise;
  using Store = StorePingpong;
};
#elif CASE == 26  // bias for each row, GELU
#define BIAS
struct Config : Defaults {
  using Tile = Shape<_64, _128, _64>;
  using Schedule = Pingpong;
  using Store = StorePingpong;
  using Fusion = fusion::LinCombPerRowBiasEltAct<cutlass::epilogue::thread::GELU, half_t, float, half_t, half_t>;
};
#elif CASE == 27  // bias for each row, ReLU, a second output, factors and maxima of e4m3
#define BIAS
#define AUXILIARY
struct Config : Defaults {
  using A = float_e4m3_t;
  using B = float_e4m3_t;
  using C = half_t;
  using D = float_e4m3_t;
  using Tile = Shape<_128, _128, _128>;
  using LayoutC = ColumnMajor;
  using Cluster = Shape<_1, _2, _1>;
  using Schedule = gemm::KernelTmaWarpSpecializedCooperativeFP8FastAccum;
  using Store = StoreCooperative;
  using Fusion = fusion::ScaledLinCombPerRowBiasEltActAmaxAux<ColumnMajor, cutlass::epilogue::thread::ReLU,
                                                              float_e4m3_t, float, float_e4m3_t, float, half_t, half_t>;
};
#elif CASE == 28  // the largest two of each row, and softmax over them
struct Config : Defaults {
  using D = float;
  using C = float;
  using Tile = Shape<_64, _64, _64>;
  using Schedule = Pingpong;
  using Store = StorePingpong;
  using Fusion = fusion::LinCombTopKSoftmaxCol<2, float, float, float>;
};
#elif CASE == 29  // cluster of 2x2, D has no C
struct Config : Defaults {
  using C = void;
  using LayoutA = ColumnMajor;
  using Cluster = Shape<_2, _2, _1>;
  using Schedule = Cooperative;
  using Store = StoreCooperative;
};
#elif CASE == 30  // gradient of ReLU by the bits of a second input, and of its bias: sums of rows by atomics
#define BIAS_SUMS
struct Config : Defaults {
  using Tile = Shape<_64, _128, _64>;
  using Schedule = Pingpong;
  using Store = StorePingpong;
  using Fusion = fusion::LinCombDeEltActDePerRowBias<RowMajor, cutlass::epilogue::thread::dReLU, half_t, float,
                                                     cutlass::uint1b_t, float, half_t>;
};
#endif

// ------------------------------------------------------------------------------------------------- as CUTLASS does it

template <class T>
struct First {
  using type = T;
};
template <class T, class... More>
struct First<cute::tuple<T, More...>> {
  using type = T;
};
using TypeA = First<Config::A>::type;
using TypeB = Config::B;
using TypeC = Config::C;
using TypeD = Config::D;
template <class T>
constexpr int aligned = Config::bytes_of_alignment * 8 / cutlass::sizeof_bits<T>::value;
template <>
constexpr int aligned<void> = Config::bytes_of_alignment * 8 / cutlass::sizeof_bits<TypeD>::value;

#if defined(GROUPS)
using Problem = gemm::GroupProblemShape<Shape<int, int, int>>;
using TagA = Config::LayoutA*;
using TagB = Config::LayoutB*;
using TagC = Config::LayoutC*;
#elif defined(POINTERS)
using Problem = gemm::ArrayProblemShape<Shape<int, int, int, int>>;
using TagA = Config::LayoutA;
using TagB = Config::LayoutB;
using TagC = Config::LayoutC;
#else
using Problem = Shape<int, int, int, int>;
using TagA = Config::LayoutA;
using TagB = Config::LayoutB;
using TagC = Config::LayoutC;
#endif
#ifdef BLOCKWISE
using MainTagA = cute::tuple<TagA, decltype(Config::Scales::deduce_layoutSFA())>;
using MainTagB = cute::tuple<TagB, decltype(Config::Scales::deduce_layoutSFB())>;
#else
using MainTagA = TagA;
using MainTagB = TagB;
#endif
using Compute = std::conditional_t<is_same_v<Config::Sum, int32_t>, float, Config::Sum>;
using Fusion = std::conditional_t<std::is_void_v<Config::Fusion>,
                                  fusion::LinearCombination<TypeD, Compute, TypeC, Compute>, Config::Fusion>;
using Epilogue =
    cutlass::epilogue::collective::CollectiveBuilder<cutlass::arch::Sm90, Config::Operator, Config::Tile,
                                                     Config::Cluster, cutlass::epilogue::collective::EpilogueTileAuto,
                                                     Config::Sum, Compute, TypeC, TagC, aligned<TypeC>, TypeD, TagC,
                                                     aligned<TypeD>, Config::Store, Fusion>::CollectiveOp;
using Mainloop = gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, Config::Operator, Config::A, MainTagA, aligned<TypeA>, TypeB, MainTagB, aligned<TypeB>,
    Config::Sum, Config::Tile, Config::Cluster,
    gemm::collective::StageCountAutoCarveout<int(sizeof(typename Epilogue::SharedStorage))>,
    Config::Schedule>::CollectiveOp;
using Kernel = gemm::kernel::GemmUniversal<Problem, Mainloop, Epilogue, Config::Scheduler>;
template __global__ void cutlass::device_kernel<Kernel>(CUTLASS_GRID_CONSTANT Kernel::Params const);

static std::size_t rounded(std::size_t bits) { return (bits + 1023) / 1024 * 1024; }

template <class Stride>
auto packed(int rows, int columns, int batches) {
  return cutlass::make_cute_packed_stride(Stride{}, cute::make_shape(rows, columns, batches));
}

template <class T, class Arguments>
void put_c(Arguments& epilogue, std::size_t elements) {
  if constexpr (!std::is_void_v<T>) epilogue.ptr_C = buffer<T>("c", elements);
}

[[gnu::noinline]] static int describe(char** values) {
  const auto number = [&](int i) { return int(std::strtol(values[i], nullptr, 0)); };
  const int m = number(1), n = number(2), k = number(3), l = number(4), sms = number(5), splits = number(6);
  (void)splits;
  Kernel::Arguments made{};
  made.hw_info.sm_count = sms;
#if defined(GROUPS) || defined(POINTERS)
  using StrideA = typename Kernel::InternalStrideA;
  using StrideB = typename Kernel::InternalStrideB;
  using StrideC = typename Kernel::InternalStrideC;
  std::vector<Shape<int, int, int>> shapes;
  std::vector<StrideA> strides_a;
  std::vector<StrideB> strides_b;
  std::vector<StrideC> strides_c;
  const std::size_t of_a = rounded(std::size_t(m) * k * 8) / 8, of_b = rounded(std::size_t(n) * k * 8) / 8,
                    of_c = rounded(std::size_t(m) * n * 8) / 8;
  TypeA* a = buffer<TypeA>("a", of_a * l);
  TypeB* b = buffer<TypeB>("b", of_b * l);
  TypeC* c = buffer<TypeC>("c", of_c * l);
  TypeD* d = buffer<TypeD>("d", of_c * l, "out");
  std::vector<const TypeA*> pointers_a;
  std::vector<const TypeB*> pointers_b;
  std::vector<const TypeC*> pointers_c;
  std::vector<TypeD*> pointers_d;
  for (int i = 0; i < l; ++i) {
    pointers_a.push_back(a + of_a * i);
    pointers_b.push_back(b + of_b * i);
    pointers_c.push_back(c + of_c * i);
    pointers_d.push_back(d + of_c * (l - 1 - i));
#ifdef GROUPS  // each smaller than the one before; of the third there is nothing
    const int rows = i == 2 ? 0 : m - 24 * i, columns = n - 16 * i, depth = k - 32 * i;
    shapes.push_back({rows, columns, depth});
    strides_a.push_back(packed<StrideA>(rows, depth, 1));
    strides_b.push_back(packed<StrideB>(columns, depth, 1));
    strides_c.push_back(packed<StrideC>(rows, columns, 1));
#endif
  }
  made.mainloop.ptr_A = stored("pointers_a", pointers_a);
  made.mainloop.ptr_B = stored("pointers_b", pointers_b);
  made.epilogue.ptr_C = stored("pointers_c", pointers_c);
  made.epilogue.ptr_D = stored("pointers_d", pointers_d);
#ifdef GROUPS
  made.mode = gemm::GemmUniversalMode::kGrouped;
  made.problem_shape = {l, stored("shapes", shapes), shapes.data()};
  made.mainloop.dA = stored("strides_a", strides_a);
  made.mainloop.dB = stored("strides_b", strides_b);
  made.epilogue.dC = stored("strides_c", strides_c);
  made.epilogue.dD = stored("strides_d", strides_c);
#else
  made.mode = gemm::GemmUniversalMode::kArray;
  made.problem_shape = {{m, n, k, l}};
  made.mainloop.dA = packed<StrideA>(m, k, l);
  made.mainloop.dB = packed<StrideB>(n, k, l);
  made.epilogue.dC = packed<StrideC>(m, n, l);
  made.epilogue.dD = packed<StrideC>(m, n, l);
#endif
#else
  made.mode = gemm::GemmUniversalMode::kGemm;
  made.problem_shape = {m, n, k, l};
#ifdef SPARSE
  using Sparse = typename Mainloop::SparseConfig;
  made.mainloop.layout_a = Sparse::fill_layoutA(made.problem_shape);
  made.mainloop.layout_e = Sparse::fill_layoutE(made.problem_shape);
  made.mainloop.ptr_A =
      reinterpret_cast<decltype(made.mainloop.ptr_A)>(buffer<TypeA>("a", cosize(made.mainloop.layout_a) / 2));
  made.mainloop.ptr_E = reinterpret_cast<decltype(made.mainloop.ptr_E)>(
      buffer<uint8_t>("e",
                      cosize(made.mainloop.layout_e) * sizeof(typename Mainloop::ElementE) /
                          Mainloop::SparseConfig::ElementEMmaSparsity::value,
                      SPARSE));
#else
  made.mainloop.ptr_A = buffer<TypeA>("a", std::size_t(m) * k * l);
  made.mainloop.dA = packed<typename Kernel::StrideA>(m, k, l);
#endif
  made.mainloop.ptr_B = buffer<TypeB>("b", std::size_t(n) * k * l);
  made.mainloop.dB = packed<typename Kernel::StrideB>(n, k, l);
  put_c<TypeC>(made.epilogue, std::size_t(m) * n * l);
  made.epilogue.dC = packed<typename Kernel::StrideC>(m, n, l);
  made.epilogue.ptr_D = buffer<TypeD>("d", std::size_t(m) * n * l, "out");
  made.epilogue.dD = packed<typename Kernel::StrideD>(m, n, l);
#ifdef SCALED_GROUP
  const int groups = (k + SCALED_GROUP - 1) / SCALED_GROUP;
  made.mainloop.ptr_S = buffer<half_t>("scales", std::size_t(m) * groups * l);
  made.mainloop.ptr_Z = buffer<half_t>("zeros", std::size_t(m) * groups * l);
  made.mainloop.dS = packed<typename Mainloop::StrideScale>(m, groups, l);
  made.mainloop.group_size = SCALED_GROUP;
#endif
#ifdef BLOCKWISE
  made.mainloop.layout_SFA = Config::Scales::tile_atom_to_shape_SFA(make_shape(m, n, k, l));
  made.mainloop.layout_SFB = Config::Scales::tile_atom_to_shape_SFB(make_shape(m, n, k, l));
  made.mainloop.ptr_SFA = buffer<float>("scales_a", size(filter_zeros(made.mainloop.layout_SFA)));
  made.mainloop.ptr_SFB = buffer<float>("scales_b", size(filter_zeros(made.mainloop.layout_SFB)));
#endif
#endif
  made.epilogue.thread.alpha = 0.75f;
  made.epilogue.thread.beta = std::is_void_v<TypeC> ? 0.f : -0.5f;
#ifdef BIAS
  made.epilogue.thread.bias_ptr = buffer<half_t>("bias", m);
#endif
#ifdef BIAS_SUMS
  made.epilogue.thread.dbias_ptr = buffer<float>("sums", m, "result");
  made.epilogue.thread.aux_ptr =
      reinterpret_cast<const cutlass::uint1b_t*>(buffer<uint8_t>("signs", std::size_t(m) * n * l / 8));
  made.epilogue.thread.dAux = made.epilogue.dD;
#endif
#ifdef AUXILIARY
  made.epilogue.thread.scale_a = 0.5f;
  made.epilogue.thread.scale_b = 0.25f;
  made.epilogue.thread.scale_c = 2.f;
  made.epilogue.thread.scale_d = 1.5f;
  made.epilogue.thread.scale_aux = 0.75f;
  made.epilogue.thread.aux_ptr = buffer<float_e4m3_t>("auxiliary", std::size_t(m) * n * l, "out");
  made.epilogue.thread.dAux = made.epilogue.dD;
  made.epilogue.thread.amax_D_ptr = buffer<float>("largest", 1, "result");
  made.epilogue.thread.amax_aux_ptr = buffer<float>("largest_auxiliary", 1, "result");
#endif
#ifdef STREAMK
  using Mode = cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90StreamKParams::DecompositionMode;
  made.scheduler.splits = splits;
  made.scheduler.decomposition_mode = splits > 1 ? Mode::SplitK : Mode::StreamK;
#endif
  if (!Kernel::can_implement(made)) return 2;
  const std::size_t bytes = Kernel::get_workspace_size(made);
  void* workspace = bytes ? buffer<unsigned char>("workspace", bytes, "zero") : nullptr;
  alignas(128) static unsigned char room[sizeof(Kernel::Params)];
  std::memset(room, int(high), sizeof room);
  const auto& parameters = *new (room) Kernel::Params(Kernel::to_underlying_arguments(made, workspace));
  using Cluster = typename Kernel::DispatchPolicy::ClusterShape;
  print_launch(Kernel::get_grid_shape(parameters), Kernel::get_block_shape(),
               dim3(size<0>(Cluster{}), size<1>(Cluster{}), size<2>(Cluster{})), Kernel::SharedStorageSize, parameters);
  return 0;
}

int main(int count, char** values) {
  if (count != 8) return 1;
  high = std::strtoul(values[7], nullptr, 0);
  fill_stack();
  return describe(values);
}
