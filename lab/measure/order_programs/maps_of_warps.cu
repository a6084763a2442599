// Experiment 14: a warp changes the address in a tensor map in shared memory, copies it to global memory by
// tensormap.cp_fenceproxy, and lane 0 copies a box by it. WRITER says which lanes write; SYNCED, whether the warp meets
// between the writes and the copy. STRESS stores to one bank before, so that the writes wait in a queue.
// counts[0]: copies by the old map; counts[1]: copies by neither.

enum { LANE_0, LANE_31, EACH_LANE, LATE_LANE, REPLACE_31 };  // WRITER
DEVICE u64 map_word(int k, const void* address) {  // as in experiment 3: 64 elements of u32, a box of all
  return k == 0 ? (u64)address : k == 1 ? 2ull << 7 : k == 4 ? 63ull : k == 6 ? 63ull << 56 : 0ull;
}
DEVICE void store_word(u64* to, u64 word) {
  asm volatile("st.shared.u64 [%0], %1;" ::"r"(in_shared(to)), "l"(word) : "memory");
}

extern "C" __global__ void prepare(PARAMETERS) {  // 256 bytes of ones, 256 bytes of twos
  if (blockIdx.x == 0 && threadIdx.x < 128) in[threadIdx.x] = 1 + threadIdx.x / 64;
}

extern "C" __global__ void __launch_bounds__(32) cell(PARAMETERS) {
  __shared__ alignas(128) u32 box[64];
  __shared__ alignas(128) u64 own[16];
  __shared__ alignas(128) u32 area[1024];
  __shared__ alignas(8) u64 full;
  const u32 lane = threadIdx.x, barrier = in_shared(&full);
  u64* map = (u64*)out + blockIdx.x * 16;
  for (u32 i = lane; i < 64; i += 32) box[i] = 0;
  if (lane < 16) own[lane] = map_word(lane, in + 64);
  if (lane == 0) init(barrier, 1);
  PROXY_FENCE("");
  __syncwarp();
  u32 late = 0, odd = 0;
  for (int n = 0; n < trials; n++) {
    const u32* young = in + (n & 1) * 64;
    if (STRESS) stress(in_shared(area), lane, 32);
    if (WRITER == LANE_0 && lane == 0) store_word(own, (u64)young);
    if (WRITER == LANE_31 && lane == 31) store_word(own, (u64)young);
    if (WRITER == EACH_LANE && lane < 16) store_word(own + (lane ^ n & 15), map_word(lane ^ n & 15, young));
    if (WRITER == LATE_LANE && lane == (n & 31)) {
      spin(200);
      store_word(own, (u64)young);
    }
    if (WRITER == REPLACE_31 && lane == 31)
      asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(in_shared(own)),
                   "l"(young) : "memory");
    if (SYNCED) asm volatile("bar.warp.sync -1;" ::: "memory");
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
                 ::"l"(map), "r"(in_shared(own)) : "memory");
    if (lane == 0) {
      asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
      expect(barrier, 256);
      asm volatile(
        "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(
          in_shared(box)), "l"(map), "r"(0), "r"(barrier) : "memory");
      wait(barrier, n & 1);
      const u32 x = *(volatile u32*)box, is = 1 + (n & 1), was = 2 - (n & 1);
      late += x == was, odd += x != is && x != was;
      PROXY_FENCE("");
    }
    asm volatile("bar.warp.sync -1;" ::: "memory");
  }
  add(counts, late), add(counts + 1, odd);
}
