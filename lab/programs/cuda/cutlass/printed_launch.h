// What the host program of a kernel prints, so that the kernel can be launched elsewhere: its buffers, its parameters,
// and what it passes to cuTensorMapEncodeTiled, which is defined here: no driver is needed.
//
//   map TYPE RANK ADDRESS DIMS.. STRIDES.. BOX.. STEPS.. INTERLEAVE SWIZZLE PROMOTION FILL
//   launch GRID.X GRID.Y GRID.Z BLOCK CLUSTER.X CLUSTER.Y CLUSTER.Z SHARED [ENTRY, if there are several]
//   parameters BYTES      of the launch before, for each parameter; padding changes with `high`, or from run to run
//   buffer NUMBER NAME KIND SIZE BYTES
//
// Buffer I lies at (`high` << 8 | I) << 32; a map in the parameters is its number between two copies of MARK. A buffer
// without bytes is filled by its kind: the type of its elements, `out`, `result`, `zero`, or metadata.

#pragma once

#include <cuda.h>

#include <cutlass/cutlass.h>
#include <cutlass/integer_subbyte.h>
#include <cutlass/numeric_types.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

static std::uint64_t high;
constexpr std::uint64_t MARK = 0x4d41505f4d41505full;

struct Buffer {
  std::string name, kind;
  std::size_t bytes;
  std::vector<unsigned char> data;  // empty: by its kind
};
static std::vector<Buffer> buffers;

template <class T>
constexpr const char* kind_of() {
  if constexpr (std::is_same_v<T, cutlass::half_t>) return "f16";
  if constexpr (std::is_same_v<T, cutlass::bfloat16_t>) return "bf16";
  if constexpr (std::is_same_v<T, cutlass::tfloat32_t> || std::is_same_v<T, float>) return "f32";
  if constexpr (std::is_same_v<T, cutlass::float_e4m3_t>) return "e4m3";
  if constexpr (std::is_same_v<T, cutlass::float_e5m2_t>) return "e5m2";
  if constexpr (std::is_same_v<T, int8_t>) return "s8";
  if constexpr (std::is_same_v<T, uint8_t>) return "u8";
  if constexpr (std::is_same_v<T, cutlass::int4b_t>) return "s4";
  if constexpr (std::is_same_v<T, int32_t>) return "s32";
  if constexpr (std::is_same_v<T, double>) return "f64";
  return "unknown";
}

template <class T>
T* buffer(const char* name, std::size_t elements, const char* kind = kind_of<T>()) {
  buffers.push_back({name, kind, (elements * cutlass::sizeof_bits<T>::value + 7) / 8, {}});
  return reinterpret_cast<T*>(high << 40 | std::uint64_t(buffers.size() - 1) << 32);
}

template <class T>
T* stored(const char* name, const std::vector<T>& values) {
  const auto* first = reinterpret_cast<const unsigned char*>(values.data());
  buffers.push_back({name, "bytes", values.size() * sizeof(T), {first, first + values.size() * sizeof(T)}});
  return reinterpret_cast<T*>(high << 40 | std::uint64_t(buffers.size() - 1) << 32);
}

static void print_bytes(const void* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::printf("%02x", static_cast<const unsigned char*>(from)[i]);
  std::printf("\n");
}

static void print_buffers() {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::printf("buffer %zu %s %s %zu ", i, buffers[i].name.c_str(), buffers[i].kind.c_str(), buffers[i].bytes);
    print_bytes(buffers[i].data.data(), buffers[i].data.size());
  }
}

struct Map {
  int type;
  unsigned rank;
  unsigned long long address, dims[5], strides[5];
  unsigned box[5], steps[5];
  int modes[4];
};
static std::vector<Map> maps;

extern "C" CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                                   void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                                   const cuuint32_t* box, const cuuint32_t* steps,
                                                   CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                                   CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  Map made = {int(type),
              rank,
              reinterpret_cast<unsigned long long>(address),
              {},
              {},
              {},
              {},
              {int(interleave), int(swizzle), int(promotion), int(fill)}};
  for (unsigned i = 0; i < rank; ++i) {
    made.dims[i] = dims[i];
    if (i + 1 < rank) made.strides[i] = strides[i];
    made.box[i] = box[i];
    made.steps[i] = steps[i];
  }
  const std::uint64_t words[3] = {MARK, maps.size(), MARK};
  std::memset(map, 0, sizeof *map);
  std::memcpy(map, words, sizeof words);
  maps.push_back(made);
  return CUDA_SUCCESS;
}

static void print_maps() {
  for (const Map& map : maps) {
    std::printf("map %d %u %llu", map.type, map.rank, map.address);
    for (unsigned i = 0; i < map.rank; ++i) std::printf(" %llu", map.dims[i]);
    for (unsigned i = 0; i + 1 < map.rank; ++i) std::printf(" %llu", map.strides[i]);
    for (unsigned i = 0; i < map.rank; ++i) std::printf(" %u", map.box[i]);
    for (unsigned i = 0; i < map.rank; ++i) std::printf(" %u", map.steps[i]);
    std::printf(" %d %d %d %d\n", map.modes[0], map.modes[1], map.modes[2], map.modes[3]);
  }
}

static void print_grid(dim3 grid, dim3 block, dim3 cluster, std::size_t shared, const char* entry = "") {
  std::printf("launch %u %u %u %u %u %u %u %zu %s\n", grid.x, grid.y, grid.z, block.x * block.y * block.z, cluster.x,
              cluster.y, cluster.z, shared, entry);
}

// Print a launch of the only kernel, and everything else.
template <class... Values>
static void print_launch(dim3 grid, dim3 block, dim3 cluster, std::size_t shared, const Values&... parameters) {
  print_maps();
  print_grid(grid, block, cluster, shared);
  ((std::printf("parameters "), print_bytes(&parameters, sizeof parameters)), ...);
  print_buffers();
}

// Fill the stack with `high`, so that padding in structs, which C++ leaves as it was, changes with it.
[[gnu::noinline]] static void fill_stack() {
  volatile unsigned char room[1 << 18];
  for (std::size_t i = 0; i < sizeof room; ++i) room[i] = static_cast<unsigned char>(high);
}
