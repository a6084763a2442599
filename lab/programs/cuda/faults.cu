// Kernels with a fault each, and what mends it where `mended` is not 0. A line that a report must name ends in "fault",
// with the name of its kernel; the kind of hazard is in the table of the test.

#include <cstdint>

// A barrier is left out between what a warp writes and what another reads.
extern "C" __global__ void no_barrier(const int* x, int* y, int mended) {
  __shared__ int values[64];
  values[threadIdx.x] = x[threadIdx.x];  // fault no_barrier
  if (mended) __syncthreads();
  y[threadIdx.x] = values[63 - threadIdx.x];  // fault no_barrier
}

// A loop has the barrier after its loads, and not the one before the next turn's stores.
extern "C" __global__ void one_barrier(const float* x, float* y, int turns, int mended) {
  __shared__ float tile[128];
  float sum = 0;
  for (int i = 0; i < turns; i++) {
    tile[threadIdx.x] = x[i * 128 + threadIdx.x];  // fault one_barrier
    __syncthreads();
    for (int j = 0; j < 8; j++) sum += tile[(threadIdx.x * 8 + j) % 128];  // fault one_barrier
    if (mended) __syncthreads();
  }
  y[threadIdx.x] = sum;
}

// The index in shared memory is one too far: behind it lies another variable.
extern "C" __global__ void far_shared(const float* x, float* y, int mended) {
  __shared__ float values[64], more[64];
  values[threadIdx.x] = x[threadIdx.x];
  more[threadIdx.x] = 2 * x[threadIdx.x];
  __syncthreads();
  const int next = mended ? (threadIdx.x + 1) % 64 : threadIdx.x + 1;
  const float difference = values[next] - values[threadIdx.x];  // fault far_shared
  y[threadIdx.x] = difference + more[63 - threadIdx.x];
}

// The bound of a loop over global memory is <= where it should be <.
extern "C" __global__ void far_global(const float* x, float* y, int number, int mended) {
  const int last = mended ? number - 1 : number;
  for (int i = threadIdx.x; i <= last; i += blockDim.x) {
    const float twice = 2 * x[i];  // fault far_global
    y[i] = twice;
  }
}

// The array that a kernel has in its registers is indexed one too far: local memory.
extern "C" __global__ void far_local(const int* x, int* y, int size, int mended) {
  int own[8];
  for (int i = 0; i < 8; i++) own[i] = x[threadIdx.x] + i;
  int sum = 0;
  for (int i = 0; i < size - (mended ? 1 : 0); i++) sum += own[i * 8];  // fault far_local
  y[threadIdx.x] = sum;
}

// Lanes of a warp exchange by shared memory, and nothing makes them wait for each other.
extern "C" __global__ void no_syncwarp(const int* x, int* y, int mended) {
  __shared__ int values[32];
  values[threadIdx.x] = x[threadIdx.x];  // fault no_syncwarp
  if (mended) __syncwarp();
  int sum = values[31 - threadIdx.x];  // fault no_syncwarp
  y[threadIdx.x] = sum;
}

// A block hands over data by a flag, without a fence between.
extern "C" __global__ void no_fence(int* data, volatile int* flag, int* y, int mended) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x * 3;  // fault no_fence
    __syncthreads();
    if (mended) __threadfence();
    if (threadIdx.x == 0) *flag = 1;
  } else {
    if (threadIdx.x == 0) {
      while (*flag == 0) {
      }
      if (mended) __threadfence();
    }
    __syncthreads();
    y[threadIdx.x] = *(volatile int*)&data[threadIdx.x];  // fault no_fence
  }
}

// The flag itself is written as any word, and not as a volatile or an atomic one.
extern "C" __global__ void plain_flag(int* data, int* flag, int* y, int mended) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      data[0] = 5;
      __threadfence();
      if (mended) *(volatile int*)flag = 1;
      else *flag = 1;  // fault plain_flag
    }
  } else if (threadIdx.x == 0) {
    while (*(volatile int*)flag == 0) {  // fault plain_flag
    }
    __threadfence();
    y[0] = data[0];
  }
}

// An asynchronous copy is read before it was waited for.
extern "C" __global__ void no_wait(const float4* x, float4* y, int mended) {
  __shared__ alignas(16) float4 values[32];
  const uint32_t to = __cvta_generic_to_shared(&values[threadIdx.x]);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + threadIdx.x) : "memory");  // fault no_wait
  asm volatile("cp.async.commit_group;" ::: "memory");
  if (mended) asm volatile("cp.async.wait_group 0;" ::: "memory");
  y[threadIdx.x] = values[threadIdx.x];  // fault no_wait
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// Half of a block's warps go another way, and the barrier is on one way alone.
extern "C" __global__ void half_barrier(const int* x, int* y, int mended) {
  __shared__ int values[64];
  values[threadIdx.x] = x[threadIdx.x];
  int other = 0;
  if (threadIdx.x < 32 || mended) {
    __syncthreads();  // fault half_barrier
    other = values[threadIdx.x ^ 1];
  } else {
    asm volatile("barrier.sync 1, 64;" ::: "memory");  // fault half_barrier
  }
  y[threadIdx.x] = other;
}

// What nobody wrote is read from shared memory.
extern "C" __global__ void unwritten(const int* x, int* y, int mended) {
  __shared__ int values[64];
  if (threadIdx.x < 63 || mended) values[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = values[63 - threadIdx.x];  // fault unwritten
}

// Two blocks write one word.
extern "C" __global__ void same_word(int* y, int mended) {
  if (threadIdx.x == 0) {
    int* place = mended ? y + blockIdx.x : y;
    *place = blockIdx.x;  // fault same_word
  }
}
