// How often z = z^2 + c may be done before z leaves the circle: loops that each lane leaves when it likes.

#include <cstdint>

namespace {

template <typename T>
__device__ int steps(T x0, T y0, int most, T& x, T& y) {
  x = y = 0;
  int i = 0;
  for (; i < most; i++) {
    const T x2 = x * x, y2 = y * y;
    if (x2 + y2 > T(4)) break;
    y = 2 * x * y + y0;
    x = x2 - y2 + x0;
  }
  return i;
}

}  // namespace

extern "C" __global__ void mandelbrot_f32(int* counts, float2* ends, int width, int height, float left, float top,
                                          float step, int most) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  float x, y;
  counts[row * width + column] = steps(left + column * step, top - row * step, most, x, y);
  ends[row * width + column] = make_float2(x, y);
}

extern "C" __global__ void mandelbrot_f64(int* counts, double* sizes, int width, int height, double left, double top,
                                          double step, int most) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  double x, y;
  counts[row * width + column] = steps(left + column * step, top - row * step, most, x, y);
  sizes[row * width + column] = x * x + y * y;
}

// Loops in loops, left from within, with continue and a switch.
extern "C" __global__ void collatz(const uint32_t* x, uint32_t* lengths, uint32_t* kinds, int number) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= number) return;
  uint32_t longest = 0, kind = 0;
  for (uint32_t start = x[at]; start < x[at] + 5; start++) {
    if (start % 3 == 0) continue;
    uint64_t value = start;
    uint32_t length = 0;
    while (value != 1) {
      value = value % 2 ? 3 * value + 1 : value / 2;
      if (++length > 200) goto done;
    }
    switch (length % 7) {
      case 0: kind += 1; break;
      case 1: kind ^= start; break;
      case 2: kind = kind << 3 | kind >> 29; [[fallthrough]];
      case 3: kind -= length; break;
      case 4: if (kind & 1) break; kind *= 5; break;
      case 5: kind = ~kind; break;
      default: kind += __brev(start);
    }
    longest = max(longest, length);
  }
done:
  lengths[at] = longest;
  kinds[at] = kind;
}
