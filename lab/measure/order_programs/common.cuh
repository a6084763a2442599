// What the kernels of this folder share. Each `cell` has the same parameters: input that `prepare` fills, output,
// counters, the number of trials, a seed. A cell is chosen by -D: see lab/measure/order_cells.py.

typedef unsigned u32;
#pragma nv_diag_suppress 177, 550  // functions and loads that a cell does not use
typedef unsigned long long u64;
#define DEVICE static __device__ __forceinline__
#define PARAMETERS u32 *in, u32 *out, u64 *counts, int trials, u32 seed

DEVICE u32 in_shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE u32 clocks() {
  u32 now;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
  return now;
}
DEVICE void spin(u32 n) {
  u32 start = clocks();
  while (clocks() - start < n) {
  }
}
DEVICE u32 random_word(u32& state) {  // Marsaglia's xorshift
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  return state;
}
DEVICE u32 random_state(u32 seed, u32 number) { return (seed * 0x9E3779B9u ^ (number + 1) * 0x85EBCA6Bu) | 1; }

// mbarriers
DEVICE void init(u32 barrier, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
DEVICE void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
DEVICE void expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
#define WAIT_FOR(order, barrier, parity)                                                                             \
  asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity" order ".shared::cta.b64 p, [%0], %1;\n@!p bra W; }"     \
               ::"r"(barrier), "r"(parity) : "memory")
DEVICE void wait(u32 barrier, u32 parity) { WAIT_FOR("", barrier, parity); }
DEVICE void bar_sync(u32 name, u32 threads) { asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory"); }
DEVICE void bar_arrive(u32 name, u32 threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(name), "r"(threads) : "memory");
}
DEVICE void barrier_of_cluster() {
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

// copies in bulk, and the fence between the proxies
#define PROXY_FENCE(space) asm volatile("fence.proxy.async" space ";" ::: "memory")
DEVICE void load_in_bulk(u32 to, const void* from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
DEVICE void store_in_bulk(void* to, u32 from, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
               : "memory");
}
DEVICE void commit_bulk() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEVICE void wait_bulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
DEVICE void wait_bulk_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

DEVICE void store_words(u32 to, u32 word) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(word) : "memory");
}
// Stress: stores of all lanes of a warp to one bank, so that what follows waits in a queue. Volatile, or ptxas makes
// one store of four.
DEVICE void stress(u32 area, u32 lane, int stores) {
  for (int k = 0; k < stores; k++)
    asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(area + lane * 128 + (k & 31) * 4), "r"(k) : "memory");
}
// Two f16 of one small integer, exact below 2048.
DEVICE u32 halves(u32 number) {
  u32 pair;
  asm("{ .reg .b16 h; cvt.rn.f16.u32 h, %1; mov.b32 %0, {h, h}; }" : "=r"(pair) : "r"(number));
  return pair;
}
DEVICE void add(u64* counter, u64 number) {
  if (number) atomicAdd(counter, number);
}

// wgmma m64n64k16: D of 32 registers, operands without a swizzle, 2 KB of each side. All elements of an operand have
// one value, so that only its place matters.
#define D_LIST                                                                                                       \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "    \
  "%24, %25, %26, %27, %28, %29, %30, %31}"
#define D_PLACES(d)                                                                                                  \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),          \
      "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),           \
      "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),          \
      "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define PRODUCT "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
#define ONES 0x3C003C00u
DEVICE u64 descriptor(u32 address) {  // columns of 16 bytes 1024 bytes apart, groups of 8 rows 128 bytes apart
  return (u64)((address & 0x3FFFF) >> 4) | (u64)(1024 >> 4) << 16 | (u64)(128 >> 4) << 32;
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_wait(float* d) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" : D_PLACES(d)::"memory");
}
// D = A B (+ D if `onto`), A all ones in registers, or by descriptor.
// Four registers of ones that ptxas keeps: copies of a constant between products would serialise them.
#define REGISTERS_OF_ONES(a)                                                                                         \
  u32 a[4];                                                                                                          \
  asm volatile("mov.b32 %0, %4; mov.b32 %1, %4; mov.b32 %2, %4; mov.b32 %3, %4;"                                       \
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(ONES))
DEVICE void product_of_registers(float* d, const u32* a, u64 b, u32 onto) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %37, 0;\n" PRODUCT D_LIST ", {%32, %33, %34, %35}, %36, p, 1, 1, 0; }"
               : D_PLACES(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(onto) : "memory");
}
DEVICE void product_of_tiles(float* d, u64 a, u64 b, u32 onto) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %34, 0;\n" PRODUCT D_LIST ", %32, %33, p, 1, 1, 0, 0; }"
               : D_PLACES(d) : "l"(a), "l"(b), "r"(onto) : "memory");
}
DEVICE u32 differs(const float* d, float expected) {
  u32 found = 0;
#pragma unroll
  for (int i = 0; i < 32; i++) found |= d[i] != expected;
  return found;
}
