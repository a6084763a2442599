// Experiment 9: addresses with the rank of another block, blocks and threads that have exited. CASE is a name below.
// Rank 0 of a cluster of two (or the only block) does it. counts: what it found, as the case says; a fault is a result.

enum { LD_OWN_SPACE, ST_OWN_SPACE,                             // ld, st.shared::cta at the other block
       LOAD_THERE_CTA, LOAD_THERE_CLUSTER, MBARRIER_THERE,     // counts[0, 1]: words there, here; [2, 3]: phases there, here
       MAPA_5, MAPA_5_LD, MAPA_5_ST,                           // counts[0]: the address
       EXITED_LD, EXITED_ST, EXITED_ATOM, EXITED_ARRIVE, EXITED_ST_ASYNC, EXITED_LOAD,
       BARRIER_THREADS_EXITED, BARRIER_BLOCK_EXITED,           // counts[0]: threads behind the barrier
       SHARED_TO_SHARED };                                     // counts[0]: words copied; counts[1]: the phase completed

DEVICE u32 at_rank(u32 address, u32 rank) {
  u32 there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}
DEVICE u32 completes(u32 barrier) {
  u32 is = 0;
  for (int n = 0; n < 200 && !is; n++)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(is) : "r"(barrier) : "memory");
  return is;
}
DEVICE void remote(u32 there, u32 far, u32* in, u64* counts) {  // what EXITED_... do
  u32 found = 0;
  if (CASE == EXITED_LD || CASE == MAPA_5_LD)
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(found) : "r"(there) : "memory");
  if (CASE == EXITED_ST || CASE == MAPA_5_ST) asm volatile("st.shared::cluster.u32 [%0], 1;" ::"r"(there) : "memory");
  if (CASE == EXITED_ATOM)
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], 1;" : "=r"(found) : "r"(there) : "memory");
  if (CASE == EXITED_ARRIVE)
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(far) : "memory");
  if (CASE == EXITED_ST_ASYNC)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], 1, [%1];" ::"r"(there), "r"(far)
                 : "memory");
  if (CASE == EXITED_LOAD) load_in_bulk(there, in, 256, far);
  counts[1] = found;
}

extern "C" __global__ void prepare(PARAMETERS) {
  if (blockIdx.x == 0 && threadIdx.x < 64) in[threadIdx.x] = 7;
}

extern "C" __global__ void __launch_bounds__(128) cell(PARAMETERS) {
  __shared__ alignas(128) u32 words[64];
  __shared__ alignas(128) u32 copied[64];
  __shared__ alignas(8) u64 full;
  const u32 t = threadIdx.x, barrier = in_shared(&full), here = in_shared(words);
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (t < 64) words[t] = 3, copied[t] = 0;
  if (t == 0) init(barrier, 1);
  PROXY_FENCE("");
  __syncthreads();
  if (CASE == SHARED_TO_SHARED) {
    if (t == 0) {
      expect(barrier, 256);
      asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                   ::"r"(in_shared(copied)), "r"(here), "r"(barrier) : "memory");
      const u32 is = completes(barrier);
      u32 brought = 0;
      for (int i = 0; i < 64; i++) brought += ((volatile u32*)copied)[i] == 3;
      if (rank == 0) counts[0] = brought, counts[1] = is;
    }
    return;
  }
  if (CASE == BARRIER_THREADS_EXITED && rank == 1 && t >= 64) return;
  if (CASE == BARRIER_BLOCK_EXITED && rank == 1) return;
  if (CASE == BARRIER_THREADS_EXITED || CASE == BARRIER_BLOCK_EXITED) {
    spin(100000);
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    add(counts, 1);
    return;
  }
  barrier_of_cluster();
  const u32 there = at_rank(here, 1), far = at_rank(barrier, 1);
  if (CASE >= EXITED_LD) {
    if (rank == 0 && t == 0) {
      spin(1000000);  // the other block has left
      remote(there, far, in, counts);
      spin(1000000);
      counts[0] = 1;
    }
    return;
  }
  if (CASE == LOAD_THERE_CTA || CASE == LOAD_THERE_CLUSTER || CASE == MBARRIER_THERE) {
    if (t == 0) expect(barrier, 256);
    barrier_of_cluster();
    if (rank == 0 && t == 0) {
      if (CASE == LOAD_THERE_CTA)
        asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(there),
                     "l"(in), "r"(barrier) : "memory");
      else load_in_bulk(CASE == MBARRIER_THERE ? here : there, in, 256, CASE == MBARRIER_THERE ? far : barrier);
    }
    if (t == 0) {
      const u32 is = completes(barrier);
      u32 brought = 0;
      for (int i = 0; i < 64; i++) brought += ((volatile u32*)words)[i] == 7;
      counts[1 - rank] = brought, counts[3 - rank] = is;
    }
  } else if (rank == 0 && t == 0) {
    u32 found = 0;
    const u32 fifth = at_rank(0x400, 5);
    if (CASE == LD_OWN_SPACE) asm volatile("ld.shared::cta.u32 %0, [%1];" : "=r"(found) : "r"(there) : "memory");
    if (CASE == ST_OWN_SPACE) asm volatile("st.shared::cta.u32 [%0], 9;" ::"r"(there) : "memory");
    if (CASE == MAPA_5_LD || CASE == MAPA_5_ST) remote(fifth, fifth, in, counts);
    counts[0] = CASE >= MAPA_5 ? fifth : found;
  }
  barrier_of_cluster();
}
