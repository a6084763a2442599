// Experiment 3: a thread copies a box by a tensor map in global memory, rewrites the map, and copies again.
// OPERATION says whether it loads or stores, BEFORE and AFTER what it does before and after it rewrites WORDS words of
// the map. counts[0]: first copies by the new map; counts[1]: second copies by the old one; counts[2]: anything else.
// ptxas moves a store to global memory before wait_group.read; WAIT_READ_SYNC has a fence between the two.

enum { LOADS, BOX_STORES };                                                        // OPERATION
enum { NOTHING, WAIT_MBARRIER, WAIT_READ, WAIT_READ_SYNC, WAIT_GROUP };            // BEFORE
enum { NONE, THREADFENCE, PROXY, RELEASE, ACQUIRE, RELEASE_ACQUIRE };              // AFTER
DEVICE void release_map() { asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory"); }
DEVICE void acquire_map(const void* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}
DEVICE void load_box(u32 to, const void* map, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
               ::"r"(to), "l"(map), "r"(0), "r"(barrier) : "memory");
}
DEVICE void store_box(const void* map, u32 from) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%1}], [%2];" ::"l"(map), "r"(0),
               "r"(from) : "memory");
}
// The words of a map of one dimension: 64 elements of u32 at `address`, a box of all.
DEVICE u64 map_word(int k, const void* address) {
  return k == 0 ? (u64)address : k == 1 ? 2ull << 7 : k == 4 ? 63ull : k == 6 ? 63ull << 56 : 0ull;
}

extern "C" __global__ void prepare(PARAMETERS) {  // 256 bytes of ones, 256 bytes of twos
  if (blockIdx.x == 0 && threadIdx.x < 128) in[threadIdx.x] = 1 + threadIdx.x / 64;
}

extern "C" __global__ void __launch_bounds__(32) cell(PARAMETERS) {
  __shared__ alignas(128) u32 first[64];
  __shared__ alignas(128) u32 second[64];
  __shared__ alignas(8) u64 full[2];
  for (u32 i = threadIdx.x; i < 64; i += 32) first[i] = second[i] = 0;
  PROXY_FENCE("");
  __syncwarp();
  if (threadIdx.x) return;
  u64* map = (u64*)out + blockIdx.x * 16;
  u32* rows = in + (OPERATION == LOADS ? 0 : 128 * (1 + blockIdx.x));  // two boxes
  const u32 one = in_shared(&full[0]), two = in_shared(&full[1]);
  init(one, 1), init(two, 1);
  u32 early = 0, late = 0, odd = 0;
  for (int n = 0; n < trials; n++) {
    const u32 *old = rows + (n & 1) * 64, *young = rows + (~n & 1) * 64;
    for (int k = 0; k < 16; k++) ((volatile u64*)map)[k] = map_word(k, old);
    release_map();
    acquire_map(map);
    if (OPERATION == LOADS) {
      expect(one, 256), expect(two, 256);
      load_box(in_shared(first), map, one);
    } else {
      *(volatile u32*)first = 2 * n + 1, *(volatile u32*)second = 2 * n + 2;
      PROXY_FENCE("");
      store_box(map, in_shared(first));
    }
    if (BEFORE >= WAIT_READ) commit_bulk();
    if (BEFORE == WAIT_READ || BEFORE == WAIT_READ_SYNC) wait_bulk_read();
    if (BEFORE == WAIT_READ_SYNC) asm volatile("fence.acq_rel.cta;" ::: "memory");
    if (BEFORE == WAIT_GROUP) wait_bulk();
    if (BEFORE == WAIT_MBARRIER) wait(one, n & 1);
    for (int k = 0; k < WORDS; k++) ((volatile u64*)map)[k] = map_word(k, young);
    if (AFTER == THREADFENCE) __threadfence();
    if (AFTER == PROXY) PROXY_FENCE("");
    if (AFTER == RELEASE || AFTER == RELEASE_ACQUIRE) release_map();
    if (AFTER == ACQUIRE || AFTER == RELEASE_ACQUIRE) acquire_map(map);
    if (OPERATION == LOADS) {
      load_box(in_shared(second), map, two);
      if (BEFORE != WAIT_MBARRIER) wait(one, n & 1);
      wait(two, n & 1);
      const u32 x = *(volatile u32*)first, y = *(volatile u32*)second, was = 1 + (n & 1), is = 2 - (n & 1);
      early += x == is, late += y == was;
      odd += (x != is && x != was) || (y != is && y != was);
    } else {
      store_box(map, in_shared(second)), commit_bulk(), wait_bulk();
      const u32 x = *(volatile u32*)old, y = *(volatile u32*)young;
      late += x == 2 * n + 2, early += x != 2 * n + 1 && x != 2 * n + 2;
      odd += x == 2 * n + 1 && y != 2 * n + 2;
    }
    PROXY_FENCE("");
  }
  add(counts, early), add(counts + 1, late), add(counts + 2, odd);
}
