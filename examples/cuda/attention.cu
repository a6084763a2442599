// The twin of ../attention.py: the same tiles, buffers and order of instructions. O = softmax(Q K^T / 8) V, each
// [heads, length, 64]. 2^x and 1 / l are the special-function unit's; what is neither its nor the matrix unit's is
// written with intrinsics, which the compiler neither contracts nor reorders.

#include <cmath>
#include <type_traits>

#include "warp.cuh"

namespace {

constexpr int Dimension = 64, Threads = 128, Queries = 64, Keys = 64, Warp = 16, Piece = 16;
constexpr int Row = Dimension * 2, Tile = Keys * Row;
using TileSwizzle = Swizzle<3, 4, 3>;

constexpr float Scale = 0x1.715476p-3f;  // log2(e) / sqrt(64)

template <typename T>
__device__ uint32_t pack(float high, float low) {
  uint32_t both;
  if constexpr (std::is_same_v<T, __half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

template <typename T>
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t* b) {
  if constexpr (std::is_same_v<T, __half>)
    mma_f16(d, a, b);
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <typename T, bool Causal>
__device__ void attention(const T* q, const T* k, const T* v, T* o, int length) {
  __shared__ alignas(1024) uint8_t memory[5 * Tile];  // Q, and two buffers of K and V
  const uint32_t shared = shared_address(memory);
  const int thread = threadIdx.x, lane = thread % 32, row_of_warp = thread / 32 * Warp;
  const int tile_of_block = blockIdx.x;
  const int64_t head = int64_t(blockIdx.y) * length;

  // 64 rows of a head; those beyond its end become 0.
  auto copy = [&](uint32_t to, const T* source, int row0) {
#pragma unroll
    for (int i = thread; i < Tile / Piece; i += Threads) {
      const int row = i / (Row / Piece), piece = i % (Row / Piece);
      copy_async(shared + to + TileSwizzle::at(i * Piece), source + (head + row0 + row) * Dimension + piece * 8,
                 row0 + row < length ? Piece : 0);
    }
  };
  auto copy_keys = [&](int tile) {
    const uint32_t buffer = Tile + tile % 2 * (2 * Tile);
    copy(buffer, k, tile * Keys);
    copy(buffer + Tile, v, tile * Keys);
    commit_group();
  };

  const int query[2] = {tile_of_block * Queries + row_of_warp + lane / 4,
                        tile_of_block * Queries + row_of_warp + 8 + lane / 4};
  float top[2] = {-INFINITY, -INFINITY}, total[2] = {}, output[Dimension / 8][4] = {};
  uint32_t queries[Dimension / 16][4];

  copy(0, q, tile_of_block * Queries);
  copy_keys(0);
  const int all_tiles = (length + Keys - 1) / Keys, tiles = Causal ? tile_of_block + 1 : all_tiles;
  for (int tile = 0; tile < tiles; tile++) {
    wait_group<0>();
    __syncthreads();  // this tile's buffer is full for all, and nobody reads the other any more
    if (tile + 1 < tiles) copy_keys(tile + 1);
    const uint32_t keys = shared + Tile + tile % 2 * (2 * Tile), values = keys + Tile;
    if (tile == 0) {
#pragma unroll
      for (int d = 0; d < Dimension / 16; d++)
        load_matrices(queries[d],
                      shared + TileSwizzle::at((row_of_warp + lane % 16) * Row + d * 32 + lane / 16 * Piece));
    }

    float scores[Keys / 8][4] = {};
#pragma unroll
    for (int d = 0; d < Dimension / 16; d++)
#pragma unroll
      for (int j = 0; j < Keys / 16; j++) {
        uint32_t x[4];
        load_matrices(
            x, keys + TileSwizzle::at((j * 16 + lane / 16 * 8 + lane % 8) * Row + d * 32 + lane / 8 % 2 * Piece));
        multiply<T>(scores[2 * j], queries[d], x);
        multiply<T>(scores[2 * j + 1], queries[d], x + 2);
      }

#pragma unroll
    for (int j = 0; j < Keys / 8; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        scores[j][i] = __fmul_rn(scores[j][i], Scale);
        if (Causal || tile == all_tiles - 1) {
          const int key = tile * Keys + j * 8 + lane % 4 * 2 + i % 2;
          if (!(key < length && (!Causal || key <= query[i / 2]))) scores[j][i] = -INFINITY;
        }
      }

    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float most = top[half];
#pragma unroll
      for (int j = 0; j < Keys / 8; j++) most = fmaxf(fmaxf(most, scores[j][2 * half]), scores[j][2 * half + 1]);
      most = max_over_quad(most);
      factor[half] = ex2_approx(__fsub_rn(top[half], most));
      top[half] = most;
      total[half] = __fmul_rn(total[half], factor[half]);
#pragma unroll
      for (int j = 0; j < Keys / 8; j++)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; i++) {
          scores[j][i] = ex2_approx(__fsub_rn(scores[j][i], most));
          total[half] = __fadd_rn(total[half], scores[j][i]);
        }
    }

#pragma unroll
    for (int j = 0; j < Dimension / 8; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) output[j][i] = __fmul_rn(output[j][i], factor[i / 2]);
#pragma unroll
    for (int n = 0; n < Keys / 16; n++) {
      const float(&x)[4] = scores[2 * n], (&y)[4] = scores[2 * n + 1];
      const uint32_t fragment[4] = {pack<T>(x[1], x[0]), pack<T>(x[3], x[2]), pack<T>(y[1], y[0]),
                                    pack<T>(y[3], y[2])};
#pragma unroll
      for (int j = 0; j < Dimension / 16; j++) {
        uint32_t z[4];
        load_matrices_transposed(
            z, values + TileSwizzle::at((n * 16 + lane % 16) * Row + j * 32 + lane / 16 * Piece));
        multiply<T>(output[2 * j], fragment, z);
        multiply<T>(output[2 * j + 1], fragment, z + 2);
      }
    }
  }

  // Through shared memory, where Q was, to whole pieces; a warp uses its own rows alone.
  __syncwarp();
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const float factor = rcp_approx(sum_over_quad(total[half]));
    const int row = row_of_warp + half * 8 + lane / 4;
#pragma unroll
    for (int j = 0; j < Dimension / 8; j++) {
      const float low = __fmul_rn(output[j][2 * half], factor), high = __fmul_rn(output[j][2 * half + 1], factor);
      *reinterpret_cast<uint32_t*>(memory + TileSwizzle::at(row * Row + j * Piece + lane % 4 * 4)) =
          pack<T>(high, low);
    }
  }
  __syncwarp();
#pragma unroll
  for (int first = 0; first < Warp; first += 32 * Piece / Row) {
    const int row = row_of_warp + first + lane / (Row / Piece), piece = lane % (Row / Piece);
    const uint4 x = *reinterpret_cast<const uint4*>(memory + TileSwizzle::at(row * Row + piece * Piece));
    const int to = tile_of_block * Queries + row;
    if (to < length) *reinterpret_cast<uint4*>(o + (head + to) * Dimension + piece * 8) = x;
  }
}

}  // namespace

#define KERNEL(NAME, TYPE, CAUSAL)                                                                              \
  extern "C" __global__ void __launch_bounds__(Threads)                                                         \
      NAME(const TYPE* q, const TYPE* k, const TYPE* v, TYPE* o, int length) {                                  \
    attention<TYPE, CAUSAL>(q, k, v, o, length);                                                                \
  }

KERNEL(attention_f16, __half, false)
KERNEL(attention_f16_causal, __half, true)
KERNEL(attention_bf16, __nv_bfloat16, false)
KERNEL(attention_bf16_causal, __nv_bfloat16, true)
