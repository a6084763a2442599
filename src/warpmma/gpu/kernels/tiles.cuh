// The tile of D that a block computes: loads, and chains along k.

#if GATHERED
typedef Gatherer<A, TM, COORDINATES_A> OfA;
typedef Gatherer<B, TN, COORDINATES_B> OfB;
#else
typedef Reader<A, TM> OfA;
typedef Reader<B, TN> OfB;
#endif

#if SPARSE
// A group of a sparse A in place: all of its columns are given, or its stored elements and two indices.
__device__ __forceinline__ void put_group(const Product& g, Panels& p, s64 batch, int i, int lane, int group,
                                          int start) {
  const s64 row = batch * g.of_a.batch + i * g.of_a.outer;
  u32 nibble;
  if constexpr (SPARSE == OF_DENSE) {
    nibble = nibble_of(occupied([&](int k) { return code_at<A>(g.a, row + (s64(group) * WIDTH + k) * g.of_a.along); }));
  } else {
    const u8* at = g.chosen + batch * g.of_chosen.batch + i * g.of_chosen.outer + group * g.of_chosen.along;
    nibble = at[0] | at[g.of_index] << 2;
  }
  EACH (x, KEPT) {
    const int k = column_of(nibble, x);
    const s64 at = SPARSE == OF_DENSE ? s64(group) * WIDTH + k : s64(group) * KEPT + x;
    put_a(p, place_of(group * WIDTH + k - start), lane, code_at<A>(g.a, row + at * g.of_a.along));
  }
}

// Stored elements of a sparse A go where they meet a row of B; the places between them are of no element.
__device__ __forceinline__ void put_stored(const Product& g, Panels& p, s64 batch, int row, int start) {
  for (int at = int(threadIdx.x); at < CHUNK * TM; at += THREADS) put_absent(p, at % CHUNK, at / CHUNK);
  __syncthreads();
  if constexpr (SPARSE != OF_ROWS) {
    static_assert(CHUNK % WIDTH == 0, "a chunk has whole groups");
    for (int at = int(threadIdx.x); at < CHUNK / WIDTH * TM; at += THREADS) {
      const int lane = at / (CHUNK / WIDTH), group = start / WIDTH + at % (CHUNK / WIDTH);
      if (row + lane < g.m && group * KEPT < g.k) put_group(g, p, batch, row + lane, lane, group, start);
    }
    return;
  }
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

#ifdef GROUPED  // groups.cuh calls it
__device__ __forceinline__ void tile_of_product(const Product& g, u32 tile) {
#else
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) product(const __grid_constant__ Product g) {
  const u32 tile = blockIdx.x;
#endif
  __shared__ Panels p;
  const int x = int(threadIdx.x) % TX, y = int(threadIdx.x) / TX;
  const u32 rows = u32(g.m + TM - 1) / TM, columns = u32(g.n + TN - 1) / TN;
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
#if GATHERED
  constexpr int HALF = THREADS / 2;
  __shared__ OfA::Table table_a;
  __shared__ OfB::Table table_b;
  OfA of_a(table_a, g.a, g.of_a, batch, row, g.m, g.k);
  OfB of_b(table_b, g.b, g.of_b, batch, col, g.n, g.k);
  of_a.enter(g.of_a, 0, 0), of_b.enter(g.of_b, 0, HALF);
  __syncthreads();
  of_a.fetch(g.of_a), of_b.fetch(g.of_b);
  __syncthreads();
  of_a.enter(g.of_a, CHUNK, 0), of_b.enter(g.of_b, CHUNK, HALF);
#else
#if !SPARSE
  OfA of_a(g.a, g.of_a, batch, row, g.m, g.k);
  of_a.fetch(g.of_a);
#endif
  OfB of_b(g.b, g.of_b, batch, col, g.n, SPARSE ? 2 * g.k : g.k);
  of_b.fetch(g.of_b);
#endif
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
#if GATHERED  // the table's k of the next chunk have been read
    of_a.enter(g.of_a, start + 2 * CHUNK, 0), of_b.enter(g.of_b, start + 2 * CHUNK, HALF);
#endif
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
#if HAS_BIAS
      c[r][s] = with_bias(c[r][s], code_at<Result>(g.bias, batch * g.n + j));
#endif
      u64 code = result_of<D, Result>(c[r][s], g, batch);
#if AS_IT_IS
      if (g.instructions == 0)  // D is C, whatever its NaN are
        code = g.c ? code_at<C>(g.c, batch * g.of_c.batch + i * g.of_c.outer + j * g.of_c.along) : 0;
#endif
#if GATHERED
      put_result(g.d, g.of_d.index(batch, i, j), code);
#else
      put_result(g.d, (batch * g.m + i) * s64(g.n) + j, code);
#endif
    }
}
