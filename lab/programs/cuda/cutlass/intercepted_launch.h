// Launches of a library's own host code, printed instead of made: the CUDA runtime's functions for that are defined
// here and found before those of libcudart.so (`-cudart shared`). The sizes of an entry's parameters, which the runtime
// takes from the machine code, are in the environment variable PARAMETERS: `ENTRY:SIZE,SIZE ENTRY:SIZE`.

#pragma once

#include "printed_launch.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <sstream>

static std::map<const void*, std::string>& entries() {  // before any constructor of a static object
  static std::map<const void*, std::string> found;
  return found;
}

extern "C" void __cudaRegisterFunction(void** module, const char* function, char* name, const char* device, int limit,
                                       uint3* thread, uint3* block, dim3* block_size, dim3* grid_size, int* warp_size) {
  entries()[function] = device;
  const auto next = reinterpret_cast<decltype(&__cudaRegisterFunction)>(dlsym(RTLD_NEXT, "__cudaRegisterFunction"));
  next(module, function, name, device, limit, thread, block, block_size, grid_size, warp_size);
}

static void print_step(const void* function, dim3 grid, dim3 block, dim3 cluster, std::size_t shared, void** values) {
  const std::string entry = entries()[function];
  print_grid(grid, block, cluster, shared, entry.c_str());
  std::istringstream all(std::getenv("PARAMETERS"));
  for (std::string one; all >> one;) {
    if (one.compare(0, entry.size() + 1, entry + ":") != 0) continue;
    std::istringstream sizes(one.substr(entry.size() + 1));
    for (std::string size; std::getline(sizes, size, ',');) {
      std::printf("parameters ");
      print_bytes(*values++, std::stoul(size));
    }
  }
}

extern "C" cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** values, std::size_t shared,
                                        cudaStream_t) {
  print_step(function, grid, block, dim3(1, 1, 1), shared, values);
  return cudaSuccess;
}

// What `<<<...>>>` calls: a kernel's handle is here its function.
extern "C" cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** values, std::size_t shared,
                                          cudaStream_t) {
  print_step(reinterpret_cast<const void*>(kernel), grid, block, dim3(1, 1, 1), shared, values);
  return cudaSuccess;
}

extern "C" cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** values) {
  dim3 cluster(1, 1, 1);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const auto& size = config->attrs[i].val.clusterDim;
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) cluster = dim3(size.x, size.y, size.z);
  }
  print_step(function, config->gridDim, config->blockDim, cluster, config->dynamicSmemBytes, values);
  return cudaSuccess;
}

// In device code these are functions of CUDA's headers: they get another name in C++.
extern "C" cudaError_t get_device(int* device) __asm__("cudaGetDevice");
extern "C" cudaError_t get_last_error() __asm__("cudaGetLastError");
extern "C" cudaError_t peek_at_last_error() __asm__("cudaPeekAtLastError");
extern "C" cudaError_t set_attribute(const void*, int, int) __asm__("cudaFuncSetAttribute");
extern "C" cudaError_t get_device(int* device) { return *device = 0, cudaSuccess; }
extern "C" cudaError_t get_last_error() { return cudaSuccess; }
extern "C" cudaError_t peek_at_last_error() { return cudaSuccess; }
extern "C" cudaError_t set_attribute(const void*, int, int) { return cudaSuccess; }
