// A product by the GPU's own instruction: a tile of D for each warp, or for each warpgroup. Fragments are gathered from
// the matrices by the formulas of their layouts, which instruction_kernel.py writes, as it does `issue`.

constexpr int TEAMS = THREADS / TEAM;

// Sets of bits as registers of a kind.
__device__ __forceinline__ void as_word(u64 x, u32& word) { word = u32(x); }
__device__ __forceinline__ void as_word(u64 x, float& word) { word = number(u32(x)); }
__device__ __forceinline__ void as_word(u64 x, double& word) { word = __longlong_as_double(s64(x)); }
__device__ __forceinline__ u64 as_bits(u32 word) { return word; }
__device__ __forceinline__ u64 as_bits(float word) { return bits(word); }
__device__ __forceinline__ u64 as_bits(double word) { return u64(__double_as_longlong(word)); }

// An element of A or B; upper bits of a code are ignored.
template <class Format>
__device__ __forceinline__ u64 element(const void* from, const Strides& of, s64 batch, int outer, int along) {
  const u64 code = code_at<Format>(from, batch * of.batch + outer * of.outer + along * of.along);
  if constexpr (TO_TF32) return to_tf32(u32(code));
  return Format::width < 64 ? code & ((1ull << Format::width % 64) - 1) : code;
}

// Fills registers with a thread's elements.
template <class Fragment, class Get>
__device__ __forceinline__ void gather(typename Fragment::Word (&to)[Fragment::registers], Get get) {
  EACH (r, Fragment::registers) {
    u64 word = 0;
    ALONG (p, Fragment::each) word |= u64(get(r * Fragment::each + p)) << (p * Fragment::slot + Fragment::shift);
    as_word(word, to[r]);
  }
}

// Calls with the number and the code of each of a thread's elements.
template <class Fragment, class Take>
__device__ __forceinline__ void scatter(const typename Fragment::Word (&from)[Fragment::registers], Take take) {
  constexpr u64 mask = Fragment::slot < 64 ? (1ull << Fragment::slot % 64) - 1 : ~0ull;
  EACH (r, Fragment::registers)
    EACH (p, Fragment::each) take(r * Fragment::each + p, as_bits(from[r]) >> p * Fragment::slot & mask);
}

#if SPARSE
// The nibbles of a thread: of each group the places of its stored elements, from the rows that they meet. Beyond A they
// are those of the first two, where B has no rows.
__device__ __forceinline__ u32 metadata_of(const Product& g, s64 batch, int thread, int row, int start) {
  constexpr int kept = WIDTH / 2;
  u32 word = 0;
  EACH (i, 8) {
    const int at = row + Metadata::row(thread, i), group = Metadata::column(thread, i);
    const int stored = start / 2 + group * kept;
    u32 first = 0, second = 1;
    if (at < g.m && stored < g.k) {
      const s64 index = batch * g.of_chosen.batch + at * g.of_chosen.outer + stored * g.of_chosen.along;
      first = (g.chosen[index] - group * WIDTH) * 4 / WIDTH;
      second = kept == 1 ? first + 1 : (g.chosen[index + kept / 2 * g.of_chosen.along] - group * WIDTH) * 4 / WIDTH;
    }
    word |= (first | second << 2) << 4 * i;
  }
  return word;
}
#endif

#if WARPGROUP
// Puts B where its descriptor says, and returns that. Its threads wait for each other by a barrier of their own.
__device__ __forceinline__ u64 put_b(const Product& g, u32* into, s64 batch, int column, int start, int k_most) {
  constexpr int each = 32 / BITS_OF_B, words = OCTETS / 4;
  const int thread = int(threadIdx.x) % TEAM, team = int(threadIdx.x) / TEAM;
  asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(TEAM) : "memory");
#pragma unroll 1
  for (int at = thread; at < COLUMNS * words; at += TEAM) {
    const int line = at / words, word = at % words, octet = 4 * word;
    u32 codes = 0;
    ALONG (p, each) {
      const int j = column + line, k = start + word * each + p;
      if (j < g.n && k < k_most) codes |= u32(element<B>(g.b, g.of_b, batch, j, k)) << p * BITS_OF_B;
    }
    into[(line % 8 * 16 + line / 8 * GROUP_OF_LINES + octet / 16 * PANEL + octet % 16) / 4] = codes;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(TEAM) : "memory");
  return DESCRIPTOR | u64(__cvta_generic_to_shared(into) >> 4);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS) product(const __grid_constant__ Product g) {
#if WARPGROUP
  __shared__ __align__(128) u32 panels[TEAMS][COLUMNS * OCTETS / 4];
#endif
  const int thread = int(threadIdx.x) % TEAM, team = int(threadIdx.x) / TEAM;
  const u32 rows = u32(g.m + TEAMS * ROWS - 1) / (TEAMS * ROWS);
  const u32 columns = u32(g.n + COLUMNS * SIDE_BY_SIDE - 1) / (COLUMNS * SIDE_BY_SIDE), tile = blockIdx.x;
  const s64 batch = tile / columns / rows;
  const int row = (int(tile / columns % rows) * TEAMS + team) * ROWS;
  const int column = int(tile % columns) * (COLUMNS * SIDE_BY_SIDE), k_most = SPARSE ? 2 * g.k : g.k;
  if (row >= g.m) return;

  // Where element i of C and D is, and of which index.
  const auto row_of = [&](int i) { return row + FragmentD::row(thread, i); };
  const auto column_of = [&](int i) {
    return column + FragmentD::column(thread, i) + COLUMNS * FragmentD::matrix(thread, i);
  };
  const auto code_of_c = [&](int i, int j) -> u64 {
    if (!g.c || i >= g.m || j >= g.n) return 0;
    return code_at<C>(g.c, batch * g.of_c.batch + i * g.of_c.outer + j * g.of_c.along);
  };

  FragmentC::Word c[FragmentC::registers];
  FragmentD::Word d[FragmentD::registers];
  gather<FragmentC>(c, [&](int i) {
    return code_of_c(row + FragmentC::row(thread, i),
                     column + FragmentC::column(thread, i) + COLUMNS * FragmentC::matrix(thread, i));
  });
#if NEXT_C
  EACH (r, FragmentD::registers) d[r] = c[r];
#endif
#if PARTIAL
  Value total[FragmentD::registers], of_slice[FragmentD::registers];
  EACH (r, FragmentD::registers) total[r] = c[r], of_slice[r] = Value(-0.0), c[r] = d[r] = 0;
  Ends ends(g);
#endif
#pragma unroll 1
  for (int index = 0; index < g.instructions; index++) {
    const int start = index * INSTRUCTION, start_of_a = SPARSE ? start / 2 : start;
    FragmentA::Word a[FragmentA::registers];
    gather<FragmentA>(a, [&](int i) -> u64 {
      const int at = row + FragmentA::row(thread, i), k = start_of_a + FragmentA::column(thread, i);
      return at < g.m && k < g.k ? element<A>(g.a, g.of_a, batch, at, k) : 0;
    });
    u32 metadata = 0;
#if SPARSE
    metadata = metadata_of(g, batch, thread, row, start);
#endif
#if WARPGROUP
    const u64 b = put_b(g, panels[team], batch, column, start, k_most);
#else
    FragmentB::Word b[FragmentB::registers];
    gather<FragmentB>(b, [&](int i) -> u64 {
      const int k = start + FragmentB::row(thread, i);
      const int j = column + FragmentB::column(thread, i) + COLUMNS * FragmentB::matrix(thread, i);
      return k < k_most && j < g.n ? element<B>(g.b, g.of_b, batch, j, k) : 0;
    });
#endif
    issue(a, b, c, d, metadata);
#if NEXT_C
    EACH (r, FragmentD::registers) c[r] = d[r];
#endif
#if PARTIAL
    ends.slice_left--;
    if (--ends.chain_left > 0) continue;
    const bool whole = ends.slice_left == 0;
    EACH (r, FragmentD::registers) {
      of_slice[r] = of_slice[r] + d[r];
      c[r] = d[r] = 0;
      if (whole) {
        total[r] = total[r] + of_slice[r];
        of_slice[r] = Value(-0.0);
      }
    }
    if (whole && ends.slice + 1 < g.slices)
      ends.slice++, ends.begin(g);
    else
      ends.chain_left = min(g.promote, ends.slice_left);
#endif
  }
#if PARTIAL
  EACH (r, FragmentD::registers) d[r] = total[r];
#endif
  scatter<FragmentD>(d, [&](int element, u64 code) {
    const int i = row_of(element), j = column_of(element);
    if (i >= g.m || j >= g.n) return;
    u64 result = code;
#if !REGISTERS_AS_THEY_ARE
    result = result_of<D, Result>(value_of<D>(Code(code)), g, batch);
#endif
#if AS_IT_IS
    if (g.instructions == 0) result = code_of_c(i, j);  // D is C, whatever its NaN are
#endif
    put_result(g.d, (batch * g.m + i) * s64(g.n) + j, result);
  });
}
