// What a kernel prints: every kind of argument, under divergence, from functions.

#include <cstdio>

__device__ const char* const names[3] = {"one", "two", "three"};

__device__ __noinline__ void tell(int depth, int x) {
  printf("depth %d of %2d.%03d\n", depth, blockIdx.x, x);
  if (depth > 0) tell(depth - 1, x * 2 + 1);
}

extern "C" __global__ void printing(const int* x, const double* y, int* printed, int number) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= number) return;
  int n = printf("thread %d: %d %u %x %#X %o %c|%-8s|%8.3s|%%\n", at, x[at], x[at], x[at], x[at], x[at], 'a' + at % 26,
                 names[at % 3], names[2]);
  if (x[at] & 1)
    n += printf("odd %d: %f %e %g %.3f %+.2e %10.4f %a\n", at, y[at], y[at], y[at], y[at], y[at], y[at], y[at]);
  else
    n += printf("even %d: %lld %llx %hd %5d|%-5d|%05d|%+d %ld %p\n", at, (long long)x[at] << 20,
                (long long)x[at] * 0x100000001ll, short(x[at]), x[at] % 100, x[at] % 100, x[at] % 100, x[at], long(x[at]),
                (void*)(size_t)at);
  if (at % 8 == 0) tell(at % 3, at);
  printed[at] = n;
}
