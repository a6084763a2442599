// Sums of rows: a block for each, its warps' sums meet in shared memory.
//
// nvcc -ptx -arch=sm_80 -lineinfo row_sums.cu -o ../row_sums.ptx

extern "C" __global__ void __launch_bounds__(128) row_sums(const float* x, float* sums, int columns) {
  __shared__ float of_warps[4];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = 0;
  for (int at = threadIdx.x; at < columns; at += 128) sum += x[(size_t)blockIdx.x * columns + at];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = (of_warps[0] + of_warps[1]) + (of_warps[2] + of_warps[3]);
}
