// The PTX instructions of the examples, one function each.
#pragma once

#include <cuda_fp16.h>
#include <cuda_bf16.h>

#include <cstdint>

// An XOR of address bits: `Bits` of them, from `Shift` places higher, onto those from `Base` on.
template <int Bits, int Base, int Shift>
struct Swizzle {
  __device__ static uint32_t at(uint32_t address) {
    return address ^ ((address >> Shift) & (((1u << Bits) - 1) << Base));
  }
};

struct NoSwizzle {
  __device__ static uint32_t at(uint32_t address) { return address; }
};

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// 16 bytes, the first `size` of them copied and the others 0.
__device__ inline void copy_async(uint32_t to, const void* from, uint32_t size) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size) : "memory");
}

__device__ inline void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int Groups>
__device__ inline void wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
}

__device__ inline void load_matrices(uint32_t (&d)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address)
               : "memory");
}

__device__ inline void load_matrices_transposed(uint32_t (&d)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address)
               : "memory");
}

// Functions of the special-function unit.
__device__ inline float ex2_approx(float x) {
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
}

__device__ inline float rcp_approx(float x) {
  asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
}

__device__ inline float rsqrt_approx(float x) {
  asm("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
}

__device__ inline float tanh_approx(float x) {
  asm("tanh.approx.f32 %0, %0;" : "+f"(x));
  return x;
}

__device__ inline float div_full(float x, float y) {
  float quotient;
  asm("div.full.f32 %0, %1, %2;" : "=f"(quotient) : "f"(x), "f"(y));
  return quotient;
}

// Over the four lanes that hold one row of an accumulator.
__device__ inline float max_over_quad(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, 2));
}

__device__ inline float sum_over_quad(float x) {
  x = __fadd_rn(x, __shfl_xor_sync(0xFFFFFFFF, x, 1));
  return __fadd_rn(x, __shfl_xor_sync(0xFFFFFFFF, x, 2));
}

// d += a b
__device__ inline void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int Selector>
__device__ inline void mma_sparse_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[4],
                                      uint32_t metadata) {
  asm volatile(
      "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, %13;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(metadata),
        "n"(Selector));
}

__device__ inline void mma_s8(int (&d)[4], const uint32_t (&a)[4], const uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
