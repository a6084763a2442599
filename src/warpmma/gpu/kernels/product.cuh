// A product of batches of matrices, a tile of D for each block: loads, chains along k, results.

// In elements; `outer` is of rows of A and C and of columns of B, `along` the other.
struct Strides {
  s64 batch, outer, along;
};

struct Product {
  const void *a, *b, *c;
  const u8 *chosen, *scale_a, *scale_b;  // of a sparse A: which row of its instruction each stored element meets
  const float* alpha;
  void* d;
  Strides of_a, of_b, of_c, of_chosen, of_scale_a, of_scale_b;
  s64 of_alpha;
  int m, n, k;                       // k as A has it: of a sparse one what is stored
  int blocks;                        // scales of a row
  int instructions, promote;         // of all of k; of a chain within a slice
  int slices, lengths[MOST_SLICES];  // in instructions
};

template <class Format>
__device__ __forceinline__ Code code_at(const void* from, s64 index) {
  if constexpr (Format::bytes == 1) return static_cast<const u8*>(from)[index];
  if constexpr (Format::bytes == 2) return static_cast<const u16*>(from)[index];
  if constexpr (Format::bytes == 4) return static_cast<const u32*>(from)[index];
  return Code(static_cast<const u64*>(from)[index]);
}

#if !BY_INSTRUCTION
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

#if SPARSE
// Stored elements of a sparse A go where they meet a row of B; the places between them are of no element.
__device__ __forceinline__ void put_stored(const Product& g, Panels& p, s64 batch, int row, int start) {
  for (int at = int(threadIdx.x); at < CHUNK * TM; at += THREADS) put_absent(p, at % CHUNK, at / CHUNK);
  __syncthreads();
  for (int at = int(threadIdx.x); at < CHUNK / 2 * TM; at += THREADS) {
    const int lane = at / (CHUNK / 2);
    const int i = row + lane, k = start / 2 + at % (CHUNK / 2), instruction = k / (INSTRUCTION / 2);
    if (i >= g.m || k >= g.k) continue;  // padding would meet padding
    const int met = g.chosen[batch * g.of_chosen.batch + i * g.of_chosen.outer + k * g.of_chosen.along];
    put_a(p, instruction * INSTRUCTION - start + PLACE[met], lane,
          code_at<A>(g.a, batch * g.of_a.batch + i * g.of_a.outer + k * g.of_a.along));
  }
}
#endif

// Block scales of a chunk, which is whole steps of one instruction; beyond the matrix they are of code 0.
__device__ __forceinline__ void load_scales(const Product& g, Panels& p, s64 batch, int row, int column, int start) {
#if SCALES
  constexpr int each = CHUNK * SCALES / INSTRUCTION;
  const int first = start / INSTRUCTION * SCALES + start % INSTRUCTION * SCALES / INSTRUCTION;
  for (int at = int(threadIdx.x); at < each * (TM + TN); at += THREADS) {
    const int s = at / (TM + TN), lane = at % (TM + TN);
    const bool of_a = lane < TM, there = first + s < g.blocks && (of_a ? row + lane < g.m : column + lane - TM < g.n);
    const Strides& of = of_a ? g.of_scale_a : g.of_scale_b;
    const s64 index = batch * of.batch + (of_a ? row + lane : column + lane - TM) * of.outer + (first + s) * of.along;
    put_scale(p, s, lane, there ? (of_a ? g.scale_a : g.scale_b)[index] : 0);
  }
#endif
}

#endif

// Elements of C as accumulators, and results as codes.
template <class Format>
__device__ __forceinline__ Value value_of(Code code) {
  if constexpr (Format::integer)
    return Value(code);
  else if constexpr (Format::width == 64)
    return __longlong_as_double(s64(code));
  else
    return decode<Format>(u32(code));
}

template <class Format, class Rounded>
__device__ __forceinline__ u64 result_of(Value value, const Product& g, s64 batch) {
  if constexpr (Format::integer) {
    return u32(value);
  } else if constexpr (Format::width == 64) {
    return u64(__double_as_longlong(value));
  } else {
    float x = value;
#if HAS_ALPHA
    const float alpha = g.alpha[batch * g.of_alpha];
    x = Format::width == 32 ? x * alpha : decode<Format>(encode<Format>(double(x) * double(alpha)));
#endif
    if constexpr (Rounded::width == 32 && Rounded::padding == 0)
      return (bits(x) & MAGNITUDE) > INFINITE ? NOT_A_NUMBER : bits(x);
    else
      return encode<Rounded>(double(x));
  }
}

__device__ __forceinline__ void put_result(void* to, s64 index, u64 code) {
  if constexpr (Result::bytes == 1) static_cast<u8*>(to)[index] = u8(code);
  if constexpr (Result::bytes == 2) static_cast<u16*>(to)[index] = u16(code);
  if constexpr (Result::bytes == 4) static_cast<u32*>(to)[index] = u32(code);
  if constexpr (Result::bytes == 8) static_cast<u64*>(to)[index] = code;
}

// Where chains end: lengths of slices, and of chains within them, in instructions.
struct Ends {
  int slice_left, chain_left, slice;
  __device__ Ends(const Product& g) : slice(0) { begin(g); }
  __device__ void begin(const Product& g) {
    slice_left = g.lengths[slice];
    chain_left = min(g.promote, slice_left);
  }
};

#if !BY_INSTRUCTION
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) product(const __grid_constant__ Product g) {
  __shared__ Panels p;
  const int x = int(threadIdx.x) % TX, y = int(threadIdx.x) / TX;
  const u32 rows = u32(g.m + TM - 1) / TM, columns = u32(g.n + TN - 1) / TN, tile = blockIdx.x;
  const s64 batch = tile / columns / rows;
  const int row = int(tile / columns % rows) * TM, col = int(tile % columns) * TN;
  Value c[RM][RN];
#if AFTER || PARTIAL
  Value of_chain[RM][RN];
#endif
#if PARTIAL
  Value of_slice[RM][RN];
  Ends ends(g);
#endif
  EACH (r, RM)
    EACH (s, RN) {
      const int i = row + y * RM + r, j = col + column(x, s);
      const s64 index = batch * g.of_c.batch + i * g.of_c.outer + j * g.of_c.along;
      c[r][s] = value_of<C>(g.c && i < g.m && j < g.n ? code_at<C>(g.c, index) : 0);
#if AFTER || PARTIAL
      of_chain[r][s] = 0;
#endif
#if PARTIAL
      of_slice[r][s] = Value(-0.0);  // it changes no addend
#endif
    }
  int emin = AFTER || PARTIAL ? D::emin : C::emin, steps = 0;
#if !SPARSE
  Reader<A, TM> of_a(g.a, g.of_a, batch, row, g.m, g.k);
  of_a.fetch(g.of_a);
#endif
  Reader<B, TN> of_b(g.b, g.of_b, batch, col, g.n, SPARSE ? 2 * g.k : g.k);
  of_b.fetch(g.of_b);
  for (int start = 0; start < g.instructions * INSTRUCTION; start += CHUNK) {
    __syncthreads();
#if SPARSE
    put_stored(g, p, batch, row, start);
#else
    of_a.put([&](int place, int lane, Code code) { put_a(p, place, lane, code); });
    of_a.fetch(g.of_a);
#endif
    of_b.put([&](int place, int lane, Code code) { put_b(p, place, lane, code); });
    of_b.fetch(g.of_b);
    load_scales(g, p, batch, row, col, start);
    __syncthreads();
#if SETTLED
    settle(p, int(threadIdx.x));
    __syncthreads();
#endif
#pragma unroll 1
    for (int first = 0; first < CHUNK && start + first < g.instructions * INSTRUCTION; first += STEP) {
#if AFTER || PARTIAL
      step(p, first, y, x, of_chain, emin);
#else
      step(p, first, y, x, c, emin);
#endif
      emin = D::emin;
      if (++steps < INSTRUCTION / STEP) continue;
      steps = 0;
#if AFTER
      EACH (r, RM)
        EACH (s, RN) {
          const float sum = c[r][s] + of_chain[r][s];
          c[r][s] = D::width == 16 ? to_half(sum) : sum;
          of_chain[r][s] = 0;
        }
#endif
#if PARTIAL
      ends.slice_left--;
      if (--ends.chain_left > 0) continue;
      const bool whole = ends.slice_left == 0;
      EACH (r, RM)
        EACH (s, RN) {
          of_slice[r][s] = of_slice[r][s] + of_chain[r][s];
          of_chain[r][s] = 0;
          if (whole) {
            c[r][s] = c[r][s] + of_slice[r][s];
            of_slice[r][s] = Value(-0.0);
          }
        }
      if (whole && ends.slice + 1 < g.slices)
        ends.slice++, ends.begin(g);
      else
        ends.chain_left = min(g.promote, ends.slice_left);
#endif
    }
  }
  EACH (r, RM)
    EACH (s, RN) {
      const int i = row + y * RM + r, j = col + column(x, s);
      if (i >= g.m || j >= g.n) continue;
      u64 code = result_of<D, Result>(c[r][s], g, batch);
#if AS_IT_IS
      if (g.instructions == 0)  // D is C, whatever its NaN are
        code = g.c ? code_at<C>(g.c, batch * g.of_c.batch + i * g.of_c.outer + j * g.of_c.along) : 0;
#endif
      put_result(g.d, (batch * g.m + i) * s64(g.n) + j, code);
    }
}
#endif
