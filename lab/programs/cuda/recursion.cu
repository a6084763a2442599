// Functions that call themselves and each other, functions by pointer, structs as results, under divergence.

#include <cstdint>

namespace {

struct Pair {
  int first;
  double second;
};

__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1) * 3; }
__device__ __noinline__ int odd(int n) { return n == 0 ? 2 : even(n - 1) + 5; }

__device__ __noinline__ void quicksort(int* x, int low, int high) {
  while (low < high) {
    const int pivot = x[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
      while (x[i] < pivot) i++;
      while (x[j] > pivot) j--;
      if (i <= j) {
        const int kept = x[i];
        x[i++] = x[j];
        x[j--] = kept;
      }
    }
    quicksort(x, low, j);
    low = i;
  }
}

__device__ __noinline__ Pair twice(Pair p) { return {p.first * 2 + 1, p.second * 0.5}; }
__device__ __noinline__ float add(float x, float y) { return x + y; }
__device__ __noinline__ float subtract(float x, float y) { return x - y; }
__device__ __noinline__ float multiply(float x, float y) { return x * y; }

using Function = float (*)(float, float);
__device__ Function functions[3] = {add, subtract, multiply};

}  // namespace

extern "C" __global__ void recursion_numbers(const int* x, int* y, int number) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= number) return;
  int value = 0;
  if (x[at] & 1) value = ackermann(x[at] >> 1 & 1, x[at] >> 2 & 3);
  value = value * 1000 + (x[at] & 2 ? even(x[at] >> 4 & 15) : odd(x[at] >> 5 & 7));
  y[at] = value;
}

extern "C" __global__ void recursion_sort(const int* x, int* y, int number, int size) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= number) return;
  int own[32];
  for (int i = 0; i < size; i++) own[i] = x[at * size + i];
  quicksort(own, 0, size - 1 - at % 3);
  for (int i = 0; i < size; i++) y[at * size + i] = own[i];
}

extern "C" __global__ void recursion_pointers(const float* x, const int* kinds, float* y, double* z, int number) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= number) return;
  const Function function = functions[kinds[at] % 3];
  float value = x[at];
  for (int i = 0; i < at % 4 + 1; i++) value = function(value, x[(at + i) % number]);
  Pair p{at, value};
  if (kinds[at] & 4) p = twice(twice(p));
  y[at] = value;
  z[at] = p.second + p.first;
}
