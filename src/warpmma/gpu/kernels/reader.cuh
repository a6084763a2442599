// What a block reads of a matrix: a chunk of rows of A, or of columns of B, at a time.

// Where in the order of the steps a product of an instruction is; of a sparse A of its 2 k.
__device__ __constant__ short PLACE[] = {PLACES};

__device__ __forceinline__ int place_of(int k) {
  return IN_ORDER ? k : k / INSTRUCTION * INSTRUCTION + PLACE[k % INSTRUCTION];
}

// A few codes that follow each other in memory, as they lie there.
template <class Format>
struct Packed {
  static constexpr int count = Format::bytes == 8 ? 2 : 4, words = count * Format::bytes / 4;
  u32 word[words];
  __device__ __forceinline__ Code code(int i) const {
    if constexpr (Format::bytes == 1) return word[0] >> 8 * i & 0xFF;
    if constexpr (Format::bytes == 2) return word[i / 2] >> 16 * (i & 1) & 0xFFFF;
    if constexpr (Format::bytes == 4) return word[i];
    if constexpr (Format::bytes == 8) return Code(word[2 * i % words] | u64(word[(2 * i + 1) % words]) << 32);
  }
  __device__ __forceinline__ void set(int i, Code code) {
    if constexpr (Format::bytes == 1) word[0] |= u32(code) << 8 * i;
    if constexpr (Format::bytes == 2) word[i / 2] |= u32(code) << 16 * (i & 1);
    if constexpr (Format::bytes == 4) word[i] = u32(code);
    if constexpr (Format::bytes == 8) word[2 * i % words] = u32(code), word[(2 * i + 1) % words] = u32(u64(code) >> 32);
  }
};

// Reads a matrix chunk by chunk: LANES rows of A, or columns of B. Codes of a chunk are fetched into registers, while
// the chunk before is computed, and put into a panel then. A thread reads several neighbours at once, if they are
// neighbours in memory and aligned: along k, or across it.
template <class Format, int LANES>
struct Reader {
  typedef Packed<Format> Codes;
  static constexpr int many = Codes::count, units = CHUNK * LANES / many / THREADS;
  static_assert(units * many * THREADS == CHUNK * LANES, "every thread reads as much");

  const char* at;     // of the thread's first code of the chunk to be fetched
  int lanes, length;  // what the matrix has from there on
  short k, lane;      // of the thread in the chunk
  bool across, whole;
  Codes codes[units];

  static __device__ __forceinline__ int fast(bool across) { return (across ? LANES : CHUNK) / many; }

  __device__ __forceinline__ Reader(const void* from, const Strides& of, s64 batch, int first, int most, int k_most) {
    across = of.outer == 1 && of.along != 1;
    const int thread = int(threadIdx.x), each = fast(across);
    k = short(across ? thread / each : thread % each * many);
    lane = short(across ? thread % each * many : thread / each);
    lanes = most - first - lane;
    length = k_most - k;
    const s64 start = batch * of.batch + first * of.outer;
    whole = (across ? of.outer : of.along) == 1 && (across ? of.along : of.outer) % many == 0 &&
            (u64(from) + u64(start) * Format::bytes) % (many * Format::bytes) == 0;
    at = static_cast<const char*>(from) + (start + lane * of.outer + k * of.along) * Format::bytes;
  }

  __device__ __forceinline__ void fetch(const Strides& of) {
    const int step_k = across ? THREADS / fast(true) : 0, step_lane = across ? 0 : THREADS / fast(false);
    const s64 step = (across ? step_k * of.along : step_lane * of.outer) * Format::bytes;
    EACH (u, units) {
      const char* p = at + u * step;
      const int mine = lanes - u * step_lane, left = length - u * step_k;
      EACH (w, Codes::words) codes[u].word[w] = 0;
      if (whole && mine >= (across ? many : 1) && left >= (across ? 1 : many)) {
        if constexpr (Codes::words == 1) {
          codes[u].word[0] = *reinterpret_cast<const u32*>(p);
        } else if constexpr (Codes::words == 2) {
          const uint2 x = *reinterpret_cast<const uint2*>(p);
          codes[u].word[0] = x.x, codes[u].word[1] = x.y;
        } else {
          const uint4 x = *reinterpret_cast<const uint4*>(p);
          codes[u].word[0] = x.x, codes[u].word[1] = x.y, codes[u].word[2] = x.z, codes[u].word[3] = x.w;
        }
      } else if (mine > 0 && left > 0) {
        const int most = across ? mine : left;
        EACH (i, many)
          if (i < most) codes[u].set(i, code_at<Format>(p, i * (across ? of.outer : of.along)));
      }
    }
    at += CHUNK * of.along * Format::bytes;
    length -= CHUNK;
  }

  template <class Put>
  __device__ __forceinline__ void put(Put into) const {
    const int step_k = across ? THREADS / fast(true) : 0, step_lane = across ? 0 : THREADS / fast(false);
    EACH (u, units)
      EACH (i, many)
        into(place_of(k + u * step_k + (across ? 0 : i)), lane + u * step_lane + (across ? i : 0), codes[u].code(i));
  }
};
