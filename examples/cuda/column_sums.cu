// The twin of ../column_sums.py: sums of columns in f32, by copies in bulk through a ring of four stages. Thread 0
// copies, warps 1 to 4 add; the order of the sums is that of the rows.

#include "warp.cuh"

namespace {

constexpr int Stages = 4, Rows = 4, Columns = 512, Warps = 4;
constexpr uint32_t Line = 4 * Columns;  // bytes of a row

struct Shared {
  float tile[Stages][Rows][Columns];
  float sums[Columns];
  uint64_t full[Stages], empty[Stages];
};

__device__ void init(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

__device__ void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ void expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

__device__ void wait(uint64_t* barrier, uint32_t parity) {
  uint32_t complete;
  do {
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(complete)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
  } while (!complete);
}

__device__ void load(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

}  // namespace

extern "C" __global__ void column_sums(const float* x, float* y, int rows, int columns) {
  __shared__ __align__(128) Shared s;
  const int steps = (rows + Rows - 1) / Rows;
  const float* from = x + blockIdx.x * Columns;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Stages; stage++) {
      init(&s.full[stage], 1);
      init(&s.empty[stage], Warps);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int step = 0; step < steps; step++) {
      const int stage = step % Stages, many = min(Rows, rows - step * Rows);
      wait(&s.empty[stage], (step / Stages + 1) % 2);
      expect(&s.full[stage], many * Line);
      for (int row = 0; row < many; row++)
        load(s.tile[stage][row], from + static_cast<size_t>(step * Rows + row) * columns, Line, &s.full[stage]);
    }
  } else if (threadIdx.x >= 32) {
    const int at = (threadIdx.x - 32) * 4;
    float sums[4] = {};
    for (int step = 0; step < steps; step++) {
      const int stage = step % Stages, many = min(Rows, rows - step * Rows);
      wait(&s.full[stage], step / Stages % 2);
      for (int row = 0; row < many; row++) {
        const float4 values = *reinterpret_cast<const float4*>(&s.tile[stage][row][at]);
        sums[0] = __fadd_rn(sums[0], values.x);
        sums[1] = __fadd_rn(sums[1], values.y);
        sums[2] = __fadd_rn(sums[2], values.z);
        sums[3] = __fadd_rn(sums[3], values.w);
      }
      __syncwarp();
      if (threadIdx.x % 32 == 0) arrive(&s.empty[stage]);
    }
    *reinterpret_cast<float4*>(&s.sums[at]) = make_float4(sums[0], sums[1], sums[2], sums[3]);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + blockIdx.x * Columns),
                 "r"(shared_address(s.sums)), "r"(Line)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
