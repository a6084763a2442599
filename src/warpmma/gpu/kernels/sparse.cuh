// A sparse A: groups of WIDTH columns, half of which are stored. A group has UNITS units of UNIT columns, which are
// stored together, and two indices of two bits, in one nibble. sparse_check.py writes the constants.

constexpr int KEPT = WIDTH / 2, UNIT = WIDTH / UNITS;
constexpr int OF_ROWS = 1, OF_INDICES = 2, OF_DENSE = 3;  // how A is given

// The column within its group of a stored element.
__device__ __forceinline__ int column_of(u32 nibble, int stored) {
  return int(nibble >> 2 * (2 * stored / KEPT) & 3) * WIDTH / 4 + stored % UNIT;
}

// Which units of a group have elements other than zero, a bit for each; `code_of` gives the code of a column. The bits
// of COUNTED tell a zero from other numbers.
template <class CodeOf>
__device__ __forceinline__ u32 occupied(CodeOf code_of) {
  u32 found = 0;
  EACH (k, WIDTH) found |= u32((u32(code_of(k)) & COUNTED) != 0) << k / UNIT;
  return found;
}

// The nibble by which a group is stored.
__device__ __forceinline__ u32 nibble_of(u32 occupied) { return u32(NIBBLES >> 4 * occupied) & 15; }
