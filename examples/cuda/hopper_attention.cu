// The twin of ../hopper_attention.py: O = softmax(Q K^T scale) V of one head, each [length, 64 or 128] in f16.
//
// A block takes 128 queries: one thread copies them, and then tiles of 64 keys and values into a ring of two stages; two
// warpgroups attend, each for 64 queries. Both products are `wgmma`: of Q and K from shared memory, with the scores in
// registers, and of the probabilities there and V. The order of operations is that of ../attention.py.

#include <cmath>

#include "hopper.cuh"

namespace {

constexpr int Queries = 128, Keys = 64, Stages = 2, Consumers = 2, Warpgroup = 128;
constexpr int Rows = Queries / Consumers, Panel = 64;  // of a consumer; elements of a row of 128 bytes

template <int Head>
struct alignas(1024) Shared {
  static constexpr int Panels = Head / Panel;
  __half q[Panels][Queries * Panel];  // and O in the end
  __half k[Stages][Panels][Keys * Panel];
  __half v[Stages][Panels][Keys * Panel];
  uint64_t q_full, full[Stages], empty[Stages];
};

// The thread that copies.
template <int Head>
__device__ void copy(Shared<Head>& shared, const TensorMap& q, const TensorMap& k, const TensorMap& v, int tiles) {
  arrive_expecting(&shared.q_full, sizeof(shared.q));
  for (int p = 0; p < shared.Panels; p++) load_box(shared.q[p], q, p * Panel, blockIdx.x * Queries, &shared.q_full);
  for (int tile = 0; tile < tiles; tile++) {
    const int s = tile % Stages, turn = tile / Stages;
    if (turn > 0) wait(&shared.empty[s], (turn - 1) % 2);
    arrive_expecting(&shared.full[s], sizeof(shared.k[s]) + sizeof(shared.v[s]));
    for (int p = 0; p < shared.Panels; p++) {
      load_box(shared.k[s][p], k, p * Panel, tile * Keys, &shared.full[s]);
      load_box(shared.v[s][p], v, p * Panel, tile * Keys, &shared.full[s]);
    }
  }
}

// Scores of 64 queries and the keys of a stage.
template <int Head>
__device__ void multiply_keys(float (&scores)[Keys / 2], Shared<Head>& shared, int s, int consumer) {
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < Head; i += 16) {
    const __half* q = &shared.q[i / Panel][consumer * Rows * Panel + i % Panel];
    wgmma_f16(scores, descriptor(q), descriptor(&shared.k[s][i / Panel][i % Panel]), i > 0);
  }
  wgmma_commit();
  wgmma_wait<0>(scores);
}

// Make probabilities of scores, whose rows have the maximum and the sum so far; scale the output to the new maximum.
template <int Registers>
__device__ void soften(float (&scores)[Keys / 2], float (&out)[Registers], float (&max)[2], float (&sum)[2],
                       float scale) {
#pragma unroll
  for (int half = 0; half < 2; half++) {  // the lane's row, and the one 8 below: of four registers, two
    float highest = max[half];
#pragma unroll
    for (int i = 2 * half; i < Keys / 2; i += 4) highest = fmaxf(fmaxf(highest, scores[i]), scores[i + 1]);
    highest = max_over_quad(highest);
    const float shrink = ex2_approx(__fmul_rn(__fsub_rn(max[half], highest), scale));
    const float lowered = __fmul_rn(highest, -scale);
    sum[half] = __fmul_rn(sum[half], shrink);
    max[half] = highest;
#pragma unroll
    for (int i = 2 * half; i < Keys / 2; i += i % 2 ? 3 : 1) {
      scores[i] = ex2_approx(fmaf(scores[i], scale, lowered));
      sum[half] = __fadd_rn(sum[half], scores[i]);
    }
#pragma unroll
    for (int i = 2 * half; i < Registers; i += i % 2 ? 3 : 1) out[i] = __fmul_rn(out[i], shrink);
  }
}

// Add the values of a stage, weighed: accumulators of f32 have the layout that A has in registers, in pairs.
template <int Head, int Registers>
__device__ void multiply_values(float (&out)[Registers], const float (&scores)[Keys / 2], Shared<Head>& shared, int s) {
  uint32_t weights[Keys / 4];
#pragma unroll
  for (int i = 0; i < Keys / 4; i++) weights[i] = pack_f16(scores[2 * i], scores[2 * i + 1]);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < Keys; i += 16)
    wgmma_f16(out, weights + i / 4, descriptor(&shared.v[s][0][i * Panel], sizeof(shared.v[s][0])));
  wgmma_commit();
  wgmma_wait<0>(out);
}

template <int Head>
__device__ void attend(const TensorMap& q, const TensorMap& k, const TensorMap& v, const TensorMap& o, int length,
                       float scale) {
  extern __shared__ uint8_t memory[];
  auto& shared = *reinterpret_cast<Shared<Head>*>(memory);
  const int warpgroup = threadIdx.x / Warpgroup, thread = threadIdx.x % Warpgroup, lane = thread % 32;
  const int tiles = (length + Keys - 1) / Keys;

  if (threadIdx.x == 0) {
    barrier_init(&shared.q_full, 1);
    for (int s = 0; s < Stages; s++) {
      barrier_init(&shared.full[s], 1);
      barrier_init(&shared.empty[s], Consumers * Warpgroup / 32);
    }
    barrier_init_fence();
  }
  __syncthreads();

  if (warpgroup == 0) {
    fewer_registers<40>();
    if (thread == 0) copy(shared, q, k, v, tiles);
    return;
  }

  more_registers<232>();
  const int consumer = warpgroup - 1;
  float out[Head / 2] = {}, max[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  wait(&shared.q_full, 0);
  for (int tile = 0; tile < tiles; tile++) {
    const int s = tile % Stages, turn = tile / Stages;
    wait(&shared.full[s], turn % 2);
    float scores[Keys / 2];
    multiply_keys(scores, shared, s, consumer);
    if (tile == tiles - 1) {  // beyond the last key there is nothing to see
#pragma unroll
      for (int i = 0; i < Keys / 2; i++)
        if (tile * Keys + i / 4 * 8 + lane % 4 * 2 + i % 2 >= length) scores[i] = -INFINITY;
    }
    soften(scores, out, max, sum, scale);
    multiply_values(out, scores, shared, s);
    if (lane == 0) arrive(&shared.empty[s]);
  }

#pragma unroll
  for (int half = 0; half < 2; half++) {
    const float inverse = rcp_approx(sum_over_quad(sum[half]));
#pragma unroll
    for (int i = 2 * half; i < Head / 2; i += i % 2 ? 3 : 1) out[i] = __fmul_rn(out[i], inverse);
  }

  // A warp has read its rows of Q itself, so O may take their place.
  const uint32_t at = (consumer * Rows + thread / 32 * 16 + lane % 16) * (Panel * 2) + lane / 16 * 16;
#pragma unroll
  for (int j = 0; j < Head / 16; j++) {
    const float* x = out + 8 * j;
    store_matrices(shared_address(shared.q[j * 16 / Panel]) + swizzled(at + j % 4 * 32), pack_f16(x[0], x[1]),
                   pack_f16(x[2], x[3]), pack_f16(x[4], x[5]), pack_f16(x[6], x[7]));
  }
  async_fence();
  warpgroup_sync(1 + consumer);
  if (thread == 0) {
    for (int p = 0; p < shared.Panels; p++)
      store_box(o, p * Panel, blockIdx.x * Queries + consumer * Rows, &shared.q[p][consumer * Rows * Panel]);
    store_wait();
  }
}

}  // namespace

#define KERNEL(name, head)                                                                                        \
  extern "C" __global__ void __launch_bounds__((1 + Consumers) * Warpgroup, 1)                                    \
      name(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,                              \
           const __grid_constant__ TensorMap v, const __grid_constant__ TensorMap o, int length, float scale) {   \
    attend<head>(q, k, v, o, length, scale);                                                                      \
  }

KERNEL(hopper_attention_64, 64)
KERNEL(hopper_attention_128, 128)
