// Arrays of each thread that are indexed at run time, of several types, by pointers and in unions.

#include <cstdint>

extern "C" __global__ void locals_sort(const short* x, short* y, int number) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= number) return;
  short own[24];
  int size = 0;
  for (int i = 0; i < 24; i++) {
    const short value = x[at * 24 + i];
    int to = size++;
    while (to > 0 && own[to - 1] > value) own[to] = own[to - 1], to--;
    own[to] = value;
  }
  for (int i = 0; i < 24; i++) y[at * 24 + i] = own[i];
}

// A small machine with a stack; its program is the same for all, its numbers are not.
extern "C" __global__ void locals_stack(const unsigned char* program, int length, const double* x, double* y,
                                        int number) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= number) return;
  double stack[8] = {};
  int top = 0;
  for (int i = 0; i < length; i++) {
    const double a = stack[top & 7], b = stack[top - 1 & 7];
    switch (program[i]) {
      case 0: top++; stack[top & 7] = x[at]; break;
      case 1: top++; stack[top & 7] = i; break;
      case 2: top--; stack[top & 7] = a + b; break;
      case 3: top--; stack[top & 7] = a * b; break;
      case 4: top--; stack[top & 7] = a > b ? a - b : b / (1 + a * a); break;
      case 5: top += a > 0 ? 1 : 2; stack[top & 7] = a; break;
      default: stack[top & 7] = -a;
    }
  }
  double sum = 0;
  for (int i = 0; i < 8; i++) sum = sum * 0.5 + stack[i];
  y[at] = sum;
}

extern "C" __global__ void locals_views(const uint32_t* x, uint32_t* y, int number) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= number) return;
  union {
    uint32_t words[6];
    unsigned char bytes[24];
    unsigned short halves[12];
  } own;
  for (int i = 0; i < 6; i++) own.words[i] = x[at] * (2 * i + 1);
  unsigned char* byte = &own.bytes[x[at] % 24];
  for (int i = 0; i < 5; i++) {
    *byte += i + 1;
    byte = &own.bytes[*byte % 24];
    own.halves[(x[at] >> i) % 12] ^= 0x5A5A >> i;
  }
  uint32_t sum = 0;
  for (int i = 0; i < 6; i++) sum = sum * 31 + own.words[i];
  y[at] = sum;
}
