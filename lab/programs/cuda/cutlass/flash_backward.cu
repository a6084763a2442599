// FlashAttention-3's backward pass for heads of 64 elements of bf16: three kernels, launched by its own host code:
// `flash_backward BATCHES QUERIES KEYS HEADS HIGH`, as `printed_launch.h` describes it.

#define CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL 1
#include "intercepted_launch.h"

#include "flash_bwd_launch_template.h"

#include <cmath>

using Type = cutlass::bfloat16_t;
constexpr int SIZE = 64, ROWS = 128;
constexpr bool CAUSAL = CASE == 1;

[[gnu::noinline]] static void describe(char** values) {
  const auto number = [&](int i) { return int(std::strtol(values[i], nullptr, 0)); };
  const int batches = number(1), queries = number(2), keys = number(3), heads = number(4);
  const std::size_t of_queries = std::size_t(batches) * queries * heads, of_keys = std::size_t(batches) * keys * heads;
  const int padded = (queries + ROWS - 1) / ROWS * ROWS, padded_keys = (keys + 127) / 128 * 128;
  const std::size_t of_rows = std::size_t(batches) * heads * padded;
  Flash_bwd_params made;
  std::memset(&made, 0, sizeof made);
  made.q_ptr = buffer<Type>("q", of_queries * SIZE);
  made.k_ptr = buffer<Type>("k", of_keys * SIZE);
  made.v_ptr = buffer<Type>("v", of_keys * SIZE);
  made.o_ptr = buffer<Type>("o", of_queries * SIZE);
  made.do_ptr = buffer<Type>("do", of_queries * SIZE);
  made.softmax_lse_ptr = buffer<float>("lse", of_queries);
  made.dq_ptr = buffer<Type>("dq", of_queries * SIZE, "out");
  made.dk_ptr = buffer<Type>("dk", of_keys * SIZE, "out");
  made.dv_ptr = buffer<Type>("dv", of_keys * SIZE, "out");
  made.dsoftmax_sum = buffer<float>("sums", of_rows, "scratch");
  made.softmax_lse_log2_ptr = buffer<float>("lse_log2", of_rows, "scratch");
  made.dq_accum_ptr = buffer<float>("dq_sums", of_rows * SIZE, "scratch");
  made.dq_semaphore = buffer<int>("semaphore", of_rows / ROWS, "scratch");
  made.q_row_stride = made.o_row_stride = made.do_row_stride = made.dq_row_stride = heads * SIZE;
  made.k_row_stride = made.v_row_stride = made.dk_row_stride = made.dv_row_stride = heads * SIZE;
  made.q_head_stride = made.k_head_stride = made.v_head_stride = made.o_head_stride = SIZE;
  made.do_head_stride = made.dq_head_stride = made.dk_head_stride = made.dv_head_stride = SIZE;
  made.q_batch_stride = made.o_batch_stride = std::int64_t(queries) * heads * SIZE;
  made.do_batch_stride = made.dq_batch_stride = made.q_batch_stride;
  made.k_batch_stride = made.v_batch_stride = std::int64_t(keys) * heads * SIZE;
  made.dk_batch_stride = made.dv_batch_stride = made.k_batch_stride;
  made.v_dim_stride = 1;
  made.b = made.b_k = batches;
  made.h = made.h_k = heads;
  made.seqlen_q = queries;
  made.seqlen_k = keys;
  made.total_q = batches * queries;
  made.total_k = batches * keys;
  made.seqlen_q_rounded = padded;
  made.seqlen_k_rounded = padded_keys;
  made.d = made.dv = made.d_rounded = made.dv_rounded = SIZE;
  made.scale_softmax = 1 / std::sqrt(float(SIZE));
  made.window_size_left = -1;
  made.window_size_right = CAUSAL ? 0 : -1;
  made.is_causal = CAUSAL;
  made.arch = 90;
  made.num_sm = 132;
  run_flash_bwd<90, SIZE, ROWS, 128, Type, CAUSAL, false, false, false, false, false, 2, 2, true, false, false, 2, 1, 2,
                2, false>(made, nullptr);
  print_maps();
  print_buffers();
}

int main(int count, char** values) {
  if (count != 6) return 1;
  high = std::strtoul(values[5], nullptr, 0);
  fill_stack();
  describe(values);
}
