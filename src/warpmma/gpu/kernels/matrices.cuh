// Matrices of codes in memory, by strides.

// In elements; `outer` is of rows of A and C and of columns of B, `along` the other.
struct Strides {
  s64 batch, outer, along;
};

template <class Format>
__device__ __forceinline__ Code code_at(const void* from, s64 index) {
  if constexpr (Format::bytes == 1) return static_cast<const u8*>(from)[index];
  if constexpr (Format::bytes == 2) return static_cast<const u16*>(from)[index];
  if constexpr (Format::bytes == 4) return static_cast<const u32*>(from)[index];
  return Code(static_cast<const u64*>(from)[index]);
}
