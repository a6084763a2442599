// What a Hopper product is made of, one function for each instruction: mbarriers, tensor copies (TMA), `wgmma` and its
// descriptors, clusters, registers. Compile for sm_90a.
#pragma once

#include "warp.cuh"

struct alignas(64) TensorMap {  // CUtensorMap of cuda.h: a kernel takes it as `const __grid_constant__ TensorMap`
  uint64_t words[16];
};

// ---- mbarriers: a phase ends when all arrivals and all announced bytes have come

__device__ inline void barrier_init(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Let copies, and the other blocks of a cluster, see the barriers that this thread has initialised.
__device__ inline void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrive at the barrier in the same place of another block of the cluster.
__device__ inline void arrive_at(uint64_t* barrier, uint32_t rank) {
  asm volatile(
      "{ .reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

// Arrive, and announce the bytes that copies will bring.
__device__ inline void arrive_expecting(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

// Wait until the phase of this parity is complete: of phases 0, 1, 2... the parity is 0, 1, 0...
__device__ inline void wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again; }" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// ---- tensor copies: one thread issues them; coordinates are the column and the row of the box's first element

__device__ inline void load_box(void* to, const TensorMap& map, int column, int row, uint64_t* full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(full))
      : "memory");
}

// To the same place in the blocks of `mask`; each one's barrier counts the bytes.
__device__ inline void load_box_to_blocks(void* to, const TensorMap& map, int column, int row, uint64_t* full,
                                          uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(full)), "h"(mask)
      : "memory");
}

__device__ inline void store_box(const TensorMap& map, int column, int row, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
               "r"(column), "r"(row), "r"(shared_address(from))
               : "memory");
}

__device__ inline void store_wait() {
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

// What this thread has written to shared memory may be read by tensor copies and by `wgmma`.
__device__ inline void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- tiles in shared memory: rows of 128 bytes, at a multiple of 1024, as copies with a swizzle of 128 bytes lay them

// Where the byte `at` of such a tile is: the 16-byte pieces of a row are permuted by its row modulo 8.
__device__ inline uint32_t swizzled(uint32_t at) { return Swizzle<3, 4, 3>::at(at); }

// The matrix descriptor of a tile: its start, the bytes from one panel of 128 bytes to the next, 1024 bytes from eight
// rows to the next, and the code of the swizzle. Addresses and steps are in units of 16 bytes. The start has 18 bits: in
// a cluster, those above say which block's memory it is.
__device__ inline uint64_t descriptor(const void* tile, uint32_t panel = 16) {
  const uint32_t start = shared_address(tile) & 0x3FFFF;
  return uint64_t(start >> 4) | uint64_t(panel >> 4) << 16 | uint64_t(1024 >> 4) << 32 | 1ull << 62;
}

// ---- wgmma: all 128 threads of a warpgroup

__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Wait for all groups but the last few.
template <int Groups>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Groups) : "memory");
}

// The same, before D is used: the compiler sees no tie between the wait and the registers, and might move their use up.
template <int Groups, int Registers>
__device__ inline void wgmma_wait(float (&d)[Registers]) {
  wgmma_wait<Groups>();
#pragma unroll
  for (int i = 0; i < Registers; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// Registers of D, in the order of the instruction.
#define TEN(i) "%" #i "0, %" #i "1, %" #i "2, %" #i "3, %" #i "4, %" #i "5, %" #i "6, %" #i "7, %" #i "8, %" #i "9"
#define FIRST "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9"
#define D32 "{" FIRST ", " TEN(1) ", " TEN(2) ", %30, %31}"
#define D64 "{" FIRST ", " TEN(1) ", " TEN(2) ", " TEN(3) ", " TEN(4) ", " TEN(5) ", %60, %61, %62, %63}"
#define F8(d, i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define F32(d, i) F8(d, i), F8(d, i + 8), F8(d, i + 16), F8(d, i + 24)

// D = A B, or D + A B if `add`: A is 64 x 16, B is 128 x 16 (its rows are columns of D).
__device__ inline void wgmma_f16(float (&d)[64], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.b32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " D64 ", %64, %65, add, 1, 1, 0, 0; }"
      : F32(d, 0), F32(d, 32)
      : "l"(a), "l"(b), "r"(int(add)));
}

// The same with B of 64 x 16.
__device__ inline void wgmma_f16(float (&d)[32], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.b32 add, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " D32 ", %32, %33, add, 1, 1, 0, 0; }"
      : F32(d, 0)
      : "l"(a), "l"(b), "r"(int(add)));
}

// D += A B with A in registers, and B as 16 rows of 64 or 128: the last 1 says that its rows are rows.
__device__ inline void wgmma_f16(float (&d)[32], const uint32_t* a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " D32 ", {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
      : F32(d, 0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ inline void wgmma_f16(float (&d)[64], const uint32_t* a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " D64 ", {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
      : F32(d, 0), F32(d, 32)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// D = A B, or D + A B: A is 64 x 32, B is 128 x 32, of e4m3.
__device__ inline void wgmma_e4m3(float (&d)[64], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{ .reg .pred add; setp.ne.b32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " D64 ", %64, %65, add, 1, 1; }"
      : F32(d, 0), F32(d, 32)
      : "l"(a), "l"(b), "r"(int(add)));
}

#undef TEN
#undef FIRST
#undef D32
#undef D64
#undef F8
#undef F32

// ---- warpgroups and clusters

// Registers of each thread of this warpgroup: fewer, or more as soon as others have given theirs back.
template <int Registers>
__device__ inline void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
__device__ inline void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// Wait for the threads of one warpgroup: barrier 0 is that of __syncthreads().
__device__ inline void warpgroup_sync(int barrier) {
  asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory");
}

__device__ inline uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// Four 8x8 matrices of 16 bits to shared memory; lane i has the address of row i % 8 of matrix i / 8.
__device__ inline void store_matrices(uint32_t address, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

// Two floats, rounded to f16: the first in the lower half.
__device__ inline uint32_t pack_f16(float low, float high) {
  uint32_t both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
