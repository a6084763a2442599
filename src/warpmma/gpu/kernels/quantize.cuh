// Matrices rounded to narrow elements and block scales: what scaling/rules.py computes, a block of a matrix for each
// thread. `Input`, `Element` and `Scale` are formats; SIZE is that of a block, EMAX the largest element's exponent.
//
// Four passes; ue8m0 scales take the last alone: CLEAR the peaks of the matrices, find PEAKS, make tensor
// SCALES of them, and round ELEMENTS. Every operation is rounded once, to nearest even, or exact.

constexpr int THREADS = 256, MOST_DIMENSIONS = 16;
enum { CLEAR, PEAKS, SCALES, ELEMENTS };

struct Quantization {
  const void* x;
  u8 *elements, *scales;
  u32* tensor;        // for each matrix: its largest magnitude, then its scale
  s64 lanes, blocks;  // of a matrix: rows of A or columns of B, and blocks of each
  s64 lane, along;    // strides of x
  s64 element_lane, element_along, scale_lane, scale_block;  // of results, whose matrices are contiguous
  s64 sizes[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];      // of the batch of x, outermost first
  int dimensions, matrices, each, pass;                      // thread blocks of a matrix
  int across;  // whether threads that follow each other have lanes that do
};

template <class Format>
__device__ __forceinline__ float number_at(const void* x, s64 index) {
  if constexpr (Format::width == 64)
    return __double2float_rn(static_cast<const double*>(x)[index]);
  else if constexpr (Format::width == 32)
    return static_cast<const float*>(x)[index];
  else
    return decode<Format>(static_cast<const u16*>(x)[index]);
}

__device__ __forceinline__ int floor_of_log2(u32 magnitude) {  // of a finite f32 above zero
  const int field = int(magnitude >> FRACTION);
  return field ? field - BIAS : 31 - __clz(int(magnitude)) - (BIAS + FRACTION - 1);
}

extern "C" __global__ void __launch_bounds__(THREADS) quantize(const __grid_constant__ Quantization g) {
  if (g.pass == CLEAR || g.pass == SCALES) {
    const int matrix = int(blockIdx.x) * THREADS + int(threadIdx.x);
    if (matrix >= g.matrices) return;
    if (g.pass == CLEAR) {
      g.tensor[matrix] = 0;
      return;
    }
    const u32 peak = g.tensor[matrix];
    const float scale = __fdiv_rn(number(peak), 2688.0f);  // 448 * 6, the largest of both formats
    g.tensor[matrix] = peak >= INFINITE ? NOT_A_NUMBER : peak == 0 ? bits(1.0f) : max(bits(scale), 1u);
    return;
  }
  const s64 matrix = blockIdx.x / u32(g.each), unit = s64(blockIdx.x % u32(g.each)) * THREADS + threadIdx.x;
  const bool there = unit < g.lanes * g.blocks;
  const s64 inner = g.across ? g.lanes : g.blocks;
  const s64 lane = g.across ? unit % inner : unit / inner, block = g.across ? unit / inner : unit % inner;
  s64 start = lane * g.lane + block * SIZE * g.along, rest = matrix;
  for (int i = g.dimensions - 1; i >= 0; i--) start += rest % g.sizes[i] * g.strides[i], rest /= g.sizes[i];
  u32 peak = 0;
  if (there)
    for (int i = 0; i < SIZE; i++) peak = max(peak, bits(number_at<Input>(g.x, start + i * g.along)) & MAGNITUDE);
  if (g.pass == PEAKS) {
    for (int apart = 16; apart > 0; apart /= 2) peak = max(peak, __shfl_xor_sync(~0u, peak, apart));
    if (threadIdx.x % 32 == 0) atomicMax(&g.tensor[matrix], peak);
    return;
  }
  if (!there) return;
#if TENSOR_SCALES
  const u32 tensor = g.tensor[matrix];
  const bool endless = tensor > INFINITE;
  const float largest = number(peak), whole = number(tensor);
  const u32 scale = endless ? u32(Scale::of_nan) : encode<Scale>(double(__fdiv_rn(__fdiv_rn(largest, 6.0f), whole)));
  const float product = __fmul_rn(decode<Scale>(scale), whole);
  const float divisor = product > 0.0f ? product : number(INFINITE);
#else
  const bool endless = peak >= INFINITE;
  const int exponent = peak ? max(min(floor_of_log2(peak) - EMAX, BIAS), -BIAS) : -BIAS;
  const u32 scale = endless ? 0xFF : u32(exponent + BIAS);
  const double factor = wide_power(-exponent);
#endif
  g.scales[matrix * g.lanes * g.blocks + lane * g.scale_lane + block * g.scale_block] = u8(scale);
  u8* to = g.elements + matrix * g.lanes * g.blocks * SIZE + lane * g.element_lane + block * SIZE * g.element_along;
  for (int i = 0; i < SIZE; i += 4) {
    u32 codes = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const float x = number_at<Input>(g.x, start + (i + j) * g.along);
#if TENSOR_SCALES
      const double value = double(__fdiv_rn(x, divisor));
#else
      const double value = double(x) * factor;  // exact
#endif
      const u32 code = endless ? 0 : encode<Element>(value);
      if (g.across)
        to[(i + j) * g.element_along] = u8(code);
      else
        codes |= code << 8 * j;
    }
    if (!g.across) *reinterpret_cast<u32*>(to + i) = codes;  // blocks begin at multiples of their size
  }
}
