// A product of batches of matrices, a tile of D for each block: loads, chains along k, results.

struct Strides { s64 batch, outer, along; };  // in elements; `outer` of rows of A and C or columns of B, `along` the other

struct Product {
  const void *a, *b, *c;
  const u8 *chosen, *scale_a, *scale_b;  // of a sparse A: which row of its instruction each stored element meets
  const float* alpha;
  void* d;
  Strides of_a, of_b, of_c, of_chosen, of_scale_a, of_scale_b;
  s64 of_alpha, batch, m, n, k;  // k as A has it: of a sparse one what is stored
  s64 blocks;                    // scales of a row
  s64 instructions, promote;     // of all of k; of a chain within a slice
  int slices, lengths[MOST_SLICES];  // in instructions
};

template <class Format>
__device__ __forceinline__ Code code_at(const void* from, s64 index) {
  if constexpr (Format::bytes == 1) return static_cast<const u8*>(from)[index];
  if constexpr (Format::bytes == 2) return static_cast<const u16*>(from)[index];
  if constexpr (Format::bytes == 4) return static_cast<const u32*>(from)[index];
  return Code(static_cast<const u64*>(from)[index]);
}

// The products of an instruction in the order of its steps, of a sparse A its stored elements too; and where one is.
__device__ __constant__ short ORDER[] = {IN_STEPS}, PLACE[] = {PLACES}, STORED[] = {STORED_IN_STEPS};

// Of the elements of a panel, its place in the order of the steps and its row or column, `along` faster or slower.
struct Lane {
  int place, lane;
  __device__ __forceinline__ Lane(int at, int lanes, bool along)
      : place(along ? at % CHUNK : at / lanes), lane(along ? at / CHUNK : at % lanes) {}
};

__device__ __forceinline__ s64 of_place(s64 place) {
  return IN_ORDER ? place : place / INSTRUCTION * INSTRUCTION + ORDER[place % INSTRUCTION];
}

__device__ __forceinline__ void load_a(const Product& g, Panels& p, s64 batch, s64 row, s64 start) {
  const s64 base = batch * g.of_a.batch;
#if SPARSE
  for (int at = int(threadIdx.x); at < CHUNK * TM; at += THREADS) put_absent(p, at % CHUNK, at / CHUNK);
  __syncthreads();
  constexpr int each = INSTRUCTION / 2;  // stored elements, in the order of their groups
  for (int at = int(threadIdx.x); at < CHUNK / 2 * TM; at += THREADS) {
    const s64 place = start / 2 + at % (CHUNK / 2), k = place / each * each + STORED[place % each];
    const int lane = at / (CHUNK / 2);
    const s64 i = row + lane;
    if (i >= g.m || k >= g.k) continue;  // padding would meet padding
    const int met = g.chosen[batch * g.of_chosen.batch + i * g.of_chosen.outer + k * g.of_chosen.along];
    put_a(p, int(place / each * INSTRUCTION - start) + PLACE[met], lane,
          code_at<A>(g.a, base + i * g.of_a.outer + k * g.of_a.along));
  }
#else
  for (int at = int(threadIdx.x); at < CHUNK * TM; at += THREADS) {
    const Lane x(at, TM, g.of_a.along == 1);
    const s64 i = row + x.lane, k = of_place(start + x.place);
    const bool there = i < g.m && k < g.k;
    put_a(p, x.place, x.lane, there ? code_at<A>(g.a, base + i * g.of_a.outer + k * g.of_a.along) : 0);
  }
#endif
}

__device__ __forceinline__ void load_b(const Product& g, Panels& p, s64 batch, s64 column, s64 start) {
  const s64 base = batch * g.of_b.batch, most = SPARSE ? 2 * g.k : g.k;
  for (int at = int(threadIdx.x); at < CHUNK * TN; at += THREADS) {
    const Lane x(at, TN, g.of_b.along == 1);
    const s64 j = column + x.lane, k = of_place(start + x.place);
    const bool there = j < g.n && k < most;
    put_b(p, x.place, x.lane, there ? code_at<B>(g.b, base + j * g.of_b.outer + k * g.of_b.along) : 0);
  }
}

// Block scales of a chunk, which is whole steps of one instruction; beyond the matrix they are of code 0.
__device__ __forceinline__ void load_scales(const Product& g, Panels& p, s64 batch, s64 row, s64 column, s64 start) {
#if SCALES
  constexpr int each = CHUNK * SCALES / INSTRUCTION;
  const s64 first = start * SCALES / INSTRUCTION;
  for (int at = int(threadIdx.x); at < each * (TM + TN); at += THREADS) {
    const int s = at / (TM + TN), lane = at % (TM + TN);
    const bool of_a = lane < TM, there = first + s < g.blocks && (of_a ? row + lane < g.m : column + lane - TM < g.n);
    const Strides& of = of_a ? g.of_scale_a : g.of_scale_b;
    const s64 index = batch * of.batch + (of_a ? row + lane : column + lane - TM) * of.outer + (first + s) * of.along;
    put_scale(p, s, lane, there ? (of_a ? g.scale_a : g.scale_b)[index] : 0);
  }
#endif
}

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
  s64 slice_left, chain_left;
  int slice;
  __device__ Ends(const Product& g) : slice(0) { begin(g); }
  __device__ void begin(const Product& g) {
    slice_left = g.lengths[slice];
    chain_left = min(g.promote, slice_left);
  }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) product(const __grid_constant__ Product g) {
  __shared__ Panels p;
  const int x = int(threadIdx.x) % TX, y = int(threadIdx.x) / TX;
  const s64 rows = (g.m + TM - 1) / TM, columns = (g.n + TN - 1) / TN, tile = blockIdx.x;
  const s64 batch = tile / (rows * columns), row = tile / columns % rows * TM, col = tile % columns * TN;
  Value c[RM][RN];
#if AFTER || PARTIAL
  Value of_chain[RM][RN];
#endif
#if PARTIAL
  Value of_slice[RM][RN];
  Ends ends(g);
#endif
  EACH(r, RM) EACH(s, RN) {
    const s64 i = row + y * RM + r, j = col + column(x, s);
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
  for (s64 start = 0; start < g.instructions * INSTRUCTION; start += CHUNK) {
    __syncthreads();
    load_a(g, p, batch, row, start);
    load_b(g, p, batch, col, start);
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
      EACH(r, RM) EACH(s, RN) {
        const float sum = c[r][s] + of_chain[r][s];
        c[r][s] = D::width == 16 ? to_half(sum) : sum;
        of_chain[r][s] = 0;
      }
#endif
#if PARTIAL
      ends.slice_left--;
      if (--ends.chain_left > 0) continue;
      const bool whole = ends.slice_left == 0;
      EACH(r, RM) EACH(s, RN) {
        of_slice[r][s] = of_slice[r][s] + of_chain[r][s];
        of_chain[r][s] = 0;
        if (whole) {
          c[r][s] = c[r][s] + of_slice[r][s];
          of_slice[r][s] = Value(-0.0);
        }
      }
      if (whole && ends.slice + 1 < g.slices) ends.slice++, ends.begin(g);
      else ends.chain_left = min(g.promote, ends.slice_left);
#endif
    }
  }
  EACH(r, RM) EACH(s, RN) {
    const s64 i = row + y * RM + r, j = col + column(x, s);
    if (i >= g.m || j >= g.n) continue;
    u64 code = result_of<D, Result>(c[r][s], g, batch);
#if AS_IT_IS
    if (g.instructions == 0)  // D is C, whatever its NaN are
      code = g.c ? code_at<C>(g.c, batch * g.of_c.batch + i * g.of_c.outer + j * g.of_c.along) : 0;
#endif
    put_result(g.d, (batch * g.m + i) * g.n + j, code);
  }
}
