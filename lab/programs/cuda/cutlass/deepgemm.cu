// DeepGEMM's kernels for sm_90a, instantiated for one of CASE as its host code does for these blocks: `deepgemm M N K
// GROUPS HIGH`, as `printed_launch.h` describes it. Its own host code needs PyTorch.

#include "printed_launch.h"

#include <deep_gemm/impls/sm90_bf16_gemm.cuh>
#include <deep_gemm/impls/sm90_fp8_gemm_1d1d.cuh>
#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>

#include <cstdlib>

using namespace deep_gemm;
using Major = cute::UMMA::Major;

constexpr int rounded(int value, int unit) { return (value + unit - 1) / unit * unit; }

#define SCALES 2  // 0: none, 1: of 128 elements of each row of A and of B, 2: of B for blocks of 128 x 128
#define BLOCKS 1  // of a cluster
#define TYPE GemmType::Normal
#if CASE == 0  // one block after the other; blocks of N that are not those of the scales
constexpr int BLOCK_M = 64, BLOCK_N = 96, SMS = 2;
#elif CASE == 1  // clusters of two with multicast
#undef BLOCKS
#define BLOCKS 2
constexpr int BLOCK_M = 128, BLOCK_N = 128, SMS = 2;
#elif CASE == 2  // groups of rows of A, each with its own B
#undef TYPE
#define TYPE GemmType::MGroupedContiguous
constexpr int BLOCK_M = 128, BLOCK_N = 128, SMS = 3;
#elif CASE == 3  // scales of rows of both, sums added to D
#undef SCALES
#define SCALES 1
constexpr int BLOCK_M = 128, BLOCK_N = 120, SMS = 2;
#elif CASE == 4  // bf16
#undef SCALES
#define SCALES 0
constexpr int BLOCK_M = 128, BLOCK_N = 128, SMS = 2;
#endif

using Input = std::conditional_t<SCALES == 0, cutlass::bfloat16_t, cutlass::float_e4m3_t>;
using Output = std::conditional_t<SCALES == 1, float, cutlass::bfloat16_t>;
constexpr int BLOCK_K = 128 / sizeof(Input), GROUPS = TYPE == GemmType::Normal ? 1 : 2, K_OF_LIMIT = 4096;
constexpr int SWIZZLE_D = SCALES == 1 ? 0 : BLOCK_N * 2 % 128 == 0 ? 128 : 64;
constexpr int OF_D = rounded(BLOCK_M * BLOCK_N * int(sizeof(Output)), 1024);
constexpr int OF_SCALES = SCALES == 2 ? rounded(K_OF_LIMIT / BLOCK_K * 4 * (BLOCK_K % BLOCK_N == 0 ? 1 : 2), 8) : 0;
constexpr int OF_STAGE = (BLOCK_M + BLOCK_N) * 128 + (SCALES ? rounded(BLOCK_M * 4, 128) : 0) +
                         (SCALES == 1 ? rounded(BLOCK_N * 4, 128) : 0);
constexpr int STAGES = cute::min((232448 - OF_D - 256 - OF_SCALES) / OF_STAGE, 16);
constexpr int SHARED = OF_D + 256 + OF_SCALES + STAGES * OF_STAGE;
constexpr int LOADING = 128, COMPUTING = BLOCK_M <= 64 ? 128 : 256;

template <class T>
static CUtensorMap map_of(const T* tensor, int columns, int rows, int box_columns, int box_rows, int stride,
                          int swizzle) {
  constexpr CUtensorMapDataType type = std::is_same_v<T, float>                 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                       : std::is_same_v<T, cutlass::bfloat16_t> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                                                : CU_TENSOR_MAP_DATA_TYPE_UINT8;
  CUtensorMap made;
  const cuuint64_t dims[2] = {cuuint64_t(columns), cuuint64_t(rows)}, strides[1] = {stride * sizeof(T)};
  const cuuint32_t box[2] = {cuuint32_t(swizzle ? swizzle / int(sizeof(T)) : box_columns), cuuint32_t(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  const CUtensorMapSwizzle how = swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                 : swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                 : CU_TENSOR_MAP_SWIZZLE_NONE;
  cuTensorMapEncodeTiled(&made, type, 2, const_cast<T*>(tensor), dims, strides, box, steps,
                         CU_TENSOR_MAP_INTERLEAVE_NONE, how, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return made;
}

#if SCALES == 2
#define KERNEL                                                                                                        \
  sm90_fp8_gemm_1d2d_impl<Major::K, 0, 0, 0, GROUPS, BLOCK_M, BLOCK_N, BLOCK_K, 128, 128, SWIZZLE_D, STAGES, LOADING, \
                          COMPUTING, BLOCKS, false, SMS, TYPE, cutlass::bfloat16_t,                                   \
                          epilogue::transform::EpilogueIdentity>
#elif SCALES == 1
#define KERNEL                                                                                                      \
  sm90_fp8_gemm_1d1d_impl<0, 0, 0, GROUPS, BLOCK_M, BLOCK_N, BLOCK_K, 128, 128, STAGES, LOADING, COMPUTING, BLOCKS, \
                          false, SMS, TYPE, float>
#else
#define KERNEL                                                                                                     \
  sm90_bf16_gemm_impl<Major::K, Major::K, 0, 0, 0, GROUPS, BLOCK_M, BLOCK_N, BLOCK_K, 128, 128, SWIZZLE_D, STAGES, \
                      LOADING, COMPUTING, BLOCKS, false, SMS, TYPE, false, cutlass::bfloat16_t>
#endif

template <class... Values>
static void describe_launch(void (*)(Values...), std::common_type_t<Values>... values) {
  print_launch(dim3(SMS, 1, 1), dim3(LOADING + COMPUTING, 1, 1), dim3(BLOCKS, 1, 1), SHARED, values...);
}

int main(int count, char** values) {
  if (count != 6) return 1;
  const auto number = [&](int i) { return int(std::strtol(values[i], nullptr, 0)); };
  const int m = number(1), n = number(2), k = number(3), groups = number(4), blocks = (k + 127) / 128;
  high = number(5);
  if (groups != GROUPS || k > K_OF_LIMIT) return 2;
  auto* a = buffer<Input>("a", std::size_t(m) * k);
  auto* b = buffer<Input>("b", std::size_t(groups) * n * k);
  auto* d = buffer<Output>("d", std::size_t(m) * n, SCALES == 1 ? "result" : "out");
  const auto map_a = map_of(a, k, m, BLOCK_K, BLOCK_M, k, 128);
  const auto map_b = map_of(b, k, n * groups, BLOCK_K, BLOCK_N, k, 128);
  const auto map_d = map_of(d, n, m, BLOCK_N, SCALES == 1 ? 64 : BLOCK_M, n, SWIZZLE_D);
  int* layout = nullptr;
  if (GROUPS > 1) {  // each group has as many rows
    std::vector<int> of_rows;
    for (int row = 0; row < m; ++row) of_rows.push_back(row * groups / m);
    layout = stored("layout", of_rows);
  }
#if SCALES
  const int wide_a = rounded(m, 4), wide_b = rounded(n, 4);
  auto* scales_a = buffer<float>("scales_a", std::size_t(wide_a) * blocks);
  const auto map_scales_a = map_of(scales_a, wide_a, blocks, BLOCK_M, 1, wide_a, 0);
#endif
#if SCALES == 2
  auto* scales_b = buffer<float>("scales_b", std::size_t(groups) * ((n + 127) / 128) * blocks);
  describe_launch(&KERNEL, scales_b, layout, m, n, k, map_a, map_b, map_d, map_scales_a);
#elif SCALES == 1
  auto* scales_b = buffer<float>("scales_b", std::size_t(wide_b) * blocks);
  const auto map_scales_b = map_of(scales_b, wide_b, blocks, BLOCK_N, 1, wide_b, 0);
  describe_launch(&KERNEL, nullptr, nullptr, layout, nullptr, m, n, k, map_a, map_b, map_scales_a, map_scales_b, map_d);
#else
  describe_launch(&KERNEL, layout, m, n, k, map_a, map_b, map_d);
#endif
}
