// Experiment 12: what an arrival at another block's mbarrier carries, by its scope and that of the wait.
// Clusters of two. Each of the 128 threads of rank 1 writes a word, and arrives at the mbarrier of rank 0, whose
// thread of the same number waits and reads the word. ARRIVAL and WAITING are the qualifiers, DATA says where the word
// is, STRESS which stores precede it. counts[0]: threads that found an old word.

enum { IN_CONSUMER, IN_GLOBAL, IN_PRODUCER };    // DATA
enum { NO_STRESS, OWN_STORES, REMOTE_STORES };   // STRESS

DEVICE u32 at_rank(u32 address, u32 rank) {
  u32 there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}

extern "C" __global__ void prepare(PARAMETERS) {
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < (1 << 20); i += gridDim.x * blockDim.x) out[i] = 0;
}

extern "C" __global__ void __launch_bounds__(128) cell(PARAMETERS) {
  __shared__ u32 words[128];
  __shared__ alignas(128) u32 area[1024];
  __shared__ alignas(8) u64 full, empty;
  const u32 t = threadIdx.x, lane = t & 31;
  u32 rank, bad = 0, found;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  u32* far_word = out + (blockIdx.x / 2) * 128 + t;
  words[t] = 0;
  if (t == 0) init(in_shared(&full), 128), init(in_shared(&empty), 128);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  barrier_of_cluster();
  const u32 far_full = at_rank(in_shared(&full), 0), far_empty = at_rank(in_shared(&empty), 1);
  const u32 there = at_rank(in_shared(words + t), rank ^ 1), far_area = at_rank(in_shared(area), rank ^ 1);
  for (int n = 0; n < trials; n++) {
    if (rank == 1) {
      WAIT_FOR(".acquire.cluster", in_shared(&empty), n & 1);
      if (STRESS == OWN_STORES) stress(in_shared(area), lane, 16);
      if (STRESS == REMOTE_STORES)
        for (int k = 0; k < 16; k++)
          asm volatile("st.volatile.shared::cluster.u32 [%0], %1;" ::"r"(far_area + lane * 128 + k * 4), "r"(k) : "memory");
      if (DATA == IN_CONSUMER) asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(n + 1) : "memory");
      if (DATA == IN_GLOBAL) asm volatile("st.global.u32 [%0], %1;" ::"l"(far_word), "r"(n + 1) : "memory");
      if (DATA == IN_PRODUCER)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(in_shared(words + t)), "r"(n + 1) : "memory");
      asm volatile("mbarrier.arrive" ARRIVAL ".shared::cluster.b64 _, [%0];" ::"r"(far_full) : "memory");
    } else {
      if (DATA == IN_GLOBAL) {  // the line is in the L1 cache, with the word of an earlier turn
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(found) : "l"(far_word) : "memory");
        if (found > n) __trap();  // a use, so that the value has come
      }
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(far_empty) : "memory");
      WAIT_FOR(WAITING, in_shared(&full), n & 1);
      if (DATA == IN_CONSUMER) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(found) : "r"(in_shared(words + t)) : "memory");
      if (DATA == IN_GLOBAL) asm volatile("ld.global.u32 %0, [%1];" : "=r"(found) : "l"(far_word) : "memory");
      if (DATA == IN_PRODUCER) asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(found) : "r"(there) : "memory");
      bad += found != n + 1;
    }
  }
  barrier_of_cluster();
  add(counts, bad);
}
