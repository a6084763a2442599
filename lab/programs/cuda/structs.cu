// Structs by value: pointers, small members, arrays that are indexed at run time, constants and tables in memory.

#include <cstdint>

struct Layer {
  const float* weights;
  int stride;
  float scale;
  bool relu;
  unsigned char shifts[3];
};

struct Parameters {
  Layer layers[3];
  double bias;
  short offsets[5];
  char tag;
  float* output;
  long long count;
};

struct alignas(16) Quad {
  float x, y, z, w;
};

__constant__ float table[8] = {1.5f, -2.25f, 3.125f, 0.5f, -0.0f, 1e-30f, 7.0f, 1.0f / 3.0f};
__device__ int places[4] = {3, 1, 0, 2};
__device__ const int* place = &places[1];

extern "C" __global__ void structs_layers(const float* x, const Parameters p) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  float value = x[at];
  for (int i = 0; i < 3; i++) {
    const Layer& layer = p.layers[(at + i) % 3];
    value = value * layer.weights[at % layer.stride] + layer.scale * layer.shifts[at % 3];
    if (layer.relu && value < 0) value = 0;
  }
  p.output[at] = float(value + p.bias) + p.offsets[at % 5] + p.tag + table[at & 7] + place[at & 1];
}

extern "C" __global__ void structs_quads(Quad factor, const Quad* x, Quad* y, Quad addend, char number) {
  const int at = threadIdx.x;
  if (at >= number) return;
  Quad q = x[at];
  q.x = q.x * factor.x + addend.x;
  q.y = q.y * factor.y - addend.y;
  q.z = (q.z - factor.z) * addend.z;
  q.w = q.w / factor.w + addend.w;
  y[at] = q;
}
