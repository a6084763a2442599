// Experiment 6: loads whose values have not come yet, a signal, and a copy in bulk over what they read.
// READERS threads load LOADS words each of 8 KB (32 at most), signal, and then look at the values; a thread that waits
// for the signal copies the next turn over them. SIGNAL, CONFLICTS and OVERWRITE choose the case; DELAY is in clocks.
// WAYS lanes of a load read one bank, a wavefront for each. A product has N columns and STEPS instructions; STRESS adds
// four warps that load from one bank all the time. COPY_SHARED copies from shared memory, which is near.
// counts[0]: threads that saw a word of a later turn; counts[1]: clocks of the issuer's fence, counts[2]: how many.

enum { ARRIVE, ARRIVE_RELAXED, ONE_ARRIVES, NAMED_BARRIER, FENCE_ARRIVE, PROXY_FENCE_ARRIVE, ISSUER_FENCE,  // SIGNAL
       ISSUER_FENCE_CTA, ISSUER_DELAY, USED_ARRIVE, PRODUCT_ARRIVE };
enum { COPY, STORES, COPY_SHARED };  // OVERWRITE
#ifndef WAYS
#define WAYS (CONFLICTS ? 32 : 0)
#define N 64
#define STEPS 1
#define STRESS 0
#endif
// Words that are not adjacent, or ptxas makes one load of four. With conflicts WAYS lanes read one bank, the others one
// each.
#define PLACE(k)                                                                                                     \
  (WAYS ? lane * (lane < WAYS ? 32 : 1) + ((k) & 15) * 2 + ((warp + (k) / 16) & 1) * 1024 : ((k) * READERS + t) & 2047)
#define TURN(n) (OVERWRITE == COPY_SHARED ? (n) & 1 : (n) & 15)
#define ORDERED_BY_BARRIER (SIGNAL == NAMED_BARRIER)

// Products into registers of their own, and a wait; A is ones. d0 of D is returned.
#define TEN(t) "d" #t "0,d" #t "1,d" #t "2,d" #t "3,d" #t "4,d" #t "5,d" #t "6,d" #t "7,d" #t "8,d" #t "9,"
#define D_8 "d0,d1,d2,d3"
#define D_64 TEN() TEN(1) TEN(2) "d30,d31"
#define D_128 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) "d60,d61,d62,d63"
#define D_256                                                                                                        \
  TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11)                                 \
  "d120,d121,d122,d123,d124,d125,d126,d127"
#define JOINED(a, b) a##b
#define D_OF(n) JOINED(D_, n)
#define TEXT_OF(n) #n
#define TEXT(n) TEXT_OF(n)
#define STEP(onto)                                                                                                   \
  "wgmma.mma_async.sync.aligned.m64n" TEXT(N) "k16.f32.f16.f16 {" D_OF(N) "}, {%1,%2,%3,%4}, %5, " #onto ", 1, 1, 0;\n"
#define MORE_OF(n) MORE_##n  // not JOINED, which STEP uses
#define MORE(n) MORE_OF(n)
#define MORE_1
#define MORE_2 STEP(1)
#define MORE_4 STEP(1) STEP(1) STEP(1)
DEVICE float product_and_wait(const u32* a, u64 b) {
  float d;
  asm volatile("{ .reg .f32 d<128>;\nwgmma.fence.sync.aligned;\n" STEP(0) MORE(STEPS)
               "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nmov.f32 %0, d0; }"
               : "=f"(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory");
  return d;
}

extern "C" __global__ void prepare(PARAMETERS) {  // 16 turns of 8 KB
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < 16 * 2048; i += gridDim.x * blockDim.x)
    in[i] = (i / 2048) << 16 | i % 2048;
}

DEVICE u32 others(const u32* word, u32 turn, u32 lane, u32 warp, u32 t) {  // words of other turns
  u32 found = 0;
#pragma unroll
  for (int k = 0; k < LOADS; k++) found += word[k] != (turn | PLACE(k));
  return found;
}

extern "C" __global__ void __launch_bounds__(READERS + 32 + 128 * STRESS) cell(PARAMETERS) {
  __shared__ alignas(1024) u32 buffer[2048];
  __shared__ alignas(1024) u32 tile[SIGNAL == PRODUCT_ARRIVE ? N * 8 : 4];
  __shared__ alignas(1024) u32 sources[OVERWRITE == COPY_SHARED ? 4096 : 4];  // two turns
  __shared__ u32 turns[16], over;
  __shared__ alignas(8) u64 full, empty;
  const u32 t = threadIdx.x, lane = t & 31, warp = t / 32;
  const u32 fulls = in_shared(&full), empties = in_shared(&empty);
  if (t < 16) turns[t] = TURN(t) << 16;
  if (OVERWRITE == COPY_SHARED) {
    for (u32 i = t; i < 4096; i += blockDim.x) sources[i] = (i / 2048) << 16 | i % 2048;
    PROXY_FENCE("");
  }
  if (t == 0) over = 0, init(fulls, 1), init(empties, SIGNAL == ONE_ARRIVES ? READERS / 32 : READERS);
  if (SIGNAL == PRODUCT_ARRIVE && t < 128) {
    for (u32 i = t; i < N * 2; i += 128) store_words(in_shared(tile) + i * 16, ONES);
    PROXY_FENCE("");
  }
  __syncthreads();
  u32 bad = 0;
  if (t >= READERS + 32) {
    while (!*(volatile u32*)&over) {
      u32 ignored;
#pragma unroll
      for (int k = 0; k < 8; k++)
        asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(ignored) : "r"(in_shared(buffer) + lane * 128 + k * 8)
                     : "memory");
    }
  } else if (t >= READERS) {
    u64 waited = 0;
    for (int n = 0; n < trials; n++) {
      if (n) {
        if (ORDERED_BY_BARRIER) bar_sync(1, READERS + 32);
        else wait(empties, (n - 1) & 1);
      }
      u32 start = clocks();
      if (SIGNAL == ISSUER_FENCE) PROXY_FENCE("");
      if (SIGNAL == ISSUER_FENCE_CTA) PROXY_FENCE(".shared::cta");
      if (SIGNAL == ISSUER_DELAY) spin(DELAY);
      waited += clocks() - start;
      const u32* source = in + (n & 15) * 2048;
      if (OVERWRITE == COPY) {
        if (lane == 0) expect(fulls, 8192), load_in_bulk(in_shared(buffer), source, 8192, fulls);
      } else if (OVERWRITE == COPY_SHARED) {
        if (lane == 0) {
          expect(fulls, 8192);
          asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         in_shared(buffer)), "r"(in_shared(sources) + (n & 1) * 8192), "r"(8192), "r"(fulls) : "memory");
        }
      } else {
        for (u32 i = lane; i < 2048; i += 32)
          asm volatile("st.shared.u32 [%0], %1;" ::"r"(in_shared(buffer) + i * 4), "r"((n & 15) << 16 | i) : "memory");
        __syncwarp();
        if (lane == 0) arrive(fulls);
      }
      __syncwarp();
    }
    *(volatile u32*)&over = 1;
    if (lane == 0) add(counts + 1, waited), add(counts + 2, trials);
    if (ORDERED_BY_BARRIER) bar_sync(1, READERS + 32);
  } else {
    for (int n = 0; n < trials; n++) {
      u32 word[LOADS], found = 0, turn;
      wait(fulls, n & 1);
#pragma unroll
      for (int k = 0; k < LOADS; k++)
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word[k]) : "r"(in_shared(buffer) + PLACE(k) * 4) : "memory");
      if (SIGNAL == USED_ARRIVE) {
        found = others(word, TURN(n) << 16, lane, warp, t);
        asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0x12345; @p trap; }" ::"r"(found) : "memory");
      }
      if (SIGNAL == PRODUCT_ARRIVE) {  // a product that is waited for
        REGISTERS_OF_ONES(a);
        const u64 tiles = (in_shared(tile) & 0x3FFFF) >> 4 | (u64)N << 16 | (u64)(128 >> 4) << 32;
        bad += product_and_wait(a, tiles) != 16 * STEPS;
      }
      if (SIGNAL == FENCE_ARRIVE) asm volatile("fence.acq_rel.cta;" ::: "memory");
      if (SIGNAL == PROXY_FENCE_ARRIVE) PROXY_FENCE("");
      if (SIGNAL == ARRIVE_RELAXED) {
        asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(empties) : "memory");
      } else if (SIGNAL == ONE_ARRIVES) {
        __syncwarp();
        if (lane == 0) arrive(empties);
      } else if (ORDERED_BY_BARRIER) {
        bar_arrive(1, READERS + 32);
      } else {
        arrive(empties);
      }
      // Read behind the signal: otherwise ptxas moves the comparisons before it.
      asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(turn) : "r"(in_shared(turns + (n & 15))) : "memory");
      if (SIGNAL != USED_ARRIVE) found = others(word, turn, lane, warp, t);
      bad += found != 0;
    }
    add(counts, bad);
  }
}
