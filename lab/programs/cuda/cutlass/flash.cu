// FlashAttention-3's forward kernel, instantiated for one of CASE, launched by its own host code: `flash BATCHES
// QUERIES KEYS HEADS HEADS_OF_KEYS SMS HIGH`, as `printed_launch.h` describes it.

#define CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL 1
#include "intercepted_launch.h"

#include "flash_fwd_launch_template.h"

#include <cmath>

#if CASE == 0
using Type = cutlass::half_t;
using Output = cutlass::half_t;
constexpr int SIZE = 64;
constexpr bool CAUSAL = false;
#elif CASE == 1
using Type = cutlass::bfloat16_t;
using Output = cutlass::bfloat16_t;
constexpr int SIZE = 128;
constexpr bool CAUSAL = true;
#elif CASE == 2
using Type = cutlass::float_e4m3_t;
using Output = cutlass::bfloat16_t;
constexpr int SIZE = 128;
constexpr bool CAUSAL = false;
#elif CASE == 3  // keys and values in pages, which cp.async gathers; query heads that share keys are packed; softcap
#define PAGES
using Type = cutlass::half_t;
using Output = cutlass::half_t;
constexpr int SIZE = 64;
constexpr bool CAUSAL = true;
#endif
#ifdef PAGES
constexpr bool PAGED = true;
constexpr int PAGE = 16;
#else
constexpr bool PAGED = false;
#endif

void prepare_varlen_num_blocks(Flash_fwd_params&, cudaStream_t, bool, int, int, bool) {}

[[gnu::noinline]] static void describe(char** values) {
  const auto number = [&](int i) { return int(std::strtol(values[i], nullptr, 0)); };
  const int batches = number(1), queries = number(2), keys = number(3), heads = number(4), heads_k = number(5);
  Flash_fwd_params made;
  std::memset(&made, 0, sizeof made);
  made.q_ptr = buffer<Type>("q", std::size_t(batches) * queries * heads * SIZE);
  made.k_ptr = buffer<Type>("k", std::size_t(batches) * keys * heads_k * SIZE);
  made.v_ptr = buffer<Type>("v", std::size_t(batches) * keys * heads_k * SIZE);
  made.o_ptr = buffer<Output>("o", std::size_t(batches) * queries * heads * SIZE, "out");
  made.softmax_lse_ptr = buffer<float>("lse", std::size_t(batches) * heads * queries, "out");
  made.tile_count_semaphore = buffer<int>("semaphore", 1, "zero");
  made.q_row_stride = made.o_row_stride = heads * SIZE;
  made.k_row_stride = made.v_row_stride = heads_k * SIZE;
  made.q_head_stride = made.k_head_stride = made.v_head_stride = made.o_head_stride = SIZE;
  made.q_batch_stride = made.o_batch_stride = std::int64_t(queries) * heads * SIZE;
  made.k_batch_stride = made.v_batch_stride = std::int64_t(keys) * heads_k * SIZE;
  made.v_dim_stride = 1;
  made.b = made.b_k = batches;
  made.h = heads;
  made.h_k = heads_k;
  made.seqlen_q = made.total_q = queries;
  made.seqlen_k = made.total_k = keys;
  made.d = made.dv = made.d_rounded = made.dv_rounded = SIZE;
  made.scale_softmax = 1 / std::sqrt(float(SIZE));
  made.window_size_left = -1;
  made.window_size_right = CAUSAL ? 0 : -1;
  made.is_causal = CAUSAL;
  made.num_splits = 1;
  made.arch = 90;
  made.num_sm = number(6);
#ifdef PAGES  // page i of a sequence lies where it comes in an order in which pages of all sequences alternate
  const int pages = keys / PAGE;
  std::vector<int> table;
  for (int i = 0; i < batches * pages; ++i) table.push_back(i % pages * batches + i / pages);
  made.page_table = stored("pages", table);
  made.page_table_batch_stride = pages;
  made.page_size = PAGE;
  made.num_pages = batches * pages;
  made.k_batch_stride = made.v_batch_stride = std::int64_t(PAGE) * heads_k * SIZE;
  made.softcap = 8;
  made.pack_gqa = true;
#endif
  run_flash_fwd<90, SIZE, SIZE, 1, Type, Output, CAUSAL, false, PAGED, false, PAGED, false, false, PAGED, false, false>(
      made, nullptr);
  print_maps();
  print_buffers();
}

int main(int count, char** values) {
  if (count != 8) return 1;
  high = std::strtoul(values[7], nullptr, 0);
  fill_stack();
  describe(values);
}
