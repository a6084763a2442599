// Experiment 5: whose proxy fence makes generic writes visible to the async proxy?
// 128 threads write 2 KB, each 16 bytes; another group reads them: a bulk store, or wgmma (B or A by descriptor).
// WRITER, FENCE, READER and STRESS are names below. counts[0]: threads that found a value of an earlier trial.

enum { ST_V4, STMATRIX, CP_ASYNC, CP_ASYNC_UNWAITED, CP_ASYNC_4, CP_ASYNC_MBARRIER };           // WRITER
enum { BULK_STORE, WGMMA_B, WGMMA_A };                                                          // READER
enum { NO_STRESS, STORES_16, STORES_64, COPIES_16, LOADS_OF_OTHERS };                           // STRESS
enum { NONE, BY_WRITER, BY_WRITER_CTA, BY_ISSUER, BY_THIRD, BY_UNORDERED_THIRD, WRONG_SPACE,    // FENCE: bar.sync
       SELF, SELF_NONE, SELF_FENCE, SELF_WRONG_SPACE };                                         // the writer issues

DEVICE void copy_async(u32 to, const u32* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
DEVICE void copy_async_4(u32 to, const u32* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

extern "C" __global__ void prepare(PARAMETERS) {  // 1000 values of 2 KB
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < 512000; i += gridDim.x * blockDim.x)
    in[i] = halves(1 + i / 512);
}

extern "C" __global__ void __launch_bounds__(288) cell(PARAMETERS) {
  __shared__ alignas(1024) u32 tile[512];
  __shared__ alignas(1024) u32 ones[512];
  __shared__ alignas(128) u32 areas[4096];
  __shared__ alignas(8) u64 landed;
  const u32 t = threadIdx.x, lane = t & 31, warp = t / 32, group = t / 128;
  const u32 area = in_shared(areas) + (warp & 3) * 4096;
  const bool self = FENCE >= SELF, by_mbarrier = WRITER == CP_ASYNC_MBARRIER;
  u32 *mine = out + blockIdx.x * 512, bad = 0;
  u64 tiles = descriptor(in_shared(tile)), one = descriptor(in_shared(ones));
  for (u32 i = t; i < 512; i += 288) tile[i] = 0, ones[i] = ONES;
  if (t == 0) init(in_shared(&landed), 128);
  PROXY_FENCE("");
  __syncthreads();
  for (int n = 0; n < trials; n++) {
    const u32 number = 1 + (n + seed) % 1000, word = halves(number), mine16 = in_shared(tile) + (t & 127) * 16;
    const u32* source = in + (number - 1) * 512 + (t & 127) * 4;
    if (STRESS == LOADS_OF_OTHERS && group)
      for (int k = 0; k < 32; k++) {
        u32 lost;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(lost) : "r"(area + lane * 128 + k * 4) : "memory");
      }
    if (group == 0) {
      if (STRESS == STORES_16 || STRESS == STORES_64) stress(area, lane, STRESS == STORES_16 ? 16 : 64);
      if (STRESS == COPIES_16)
        for (int k = 0; k < 16; k++) copy_async_4(area + lane * 128 + k * 4, source);
      if (WRITER == ST_V4) store_words(mine16, word);
      if (WRITER == STMATRIX)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %1, %1, %1};" ::"r"(mine16), "r"(word)
                     : "memory");
      if (WRITER == CP_ASYNC || WRITER == CP_ASYNC_UNWAITED || by_mbarrier) copy_async(mine16, source);
      if (WRITER == CP_ASYNC_4)
        for (int k = 0; k < 4; k++) copy_async_4(mine16 + k * 4, source + k);
      if (WRITER == CP_ASYNC || WRITER == CP_ASYNC_4) asm volatile("cp.async.wait_all;" ::: "memory");
      if (by_mbarrier)
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(in_shared(&landed)) : "memory");
      if (FENCE == BY_WRITER || FENCE == SELF_FENCE) PROXY_FENCE("");
      if (FENCE == BY_WRITER_CTA) PROXY_FENCE(".shared::cta");
      if (FENCE == WRONG_SPACE || FENCE == SELF_WRONG_SPACE) PROXY_FENCE(".global");
    }
    if (!self && FENCE == BY_THIRD) {
      if (group != 1) bar_sync(1, 160);
      if (group == 2) PROXY_FENCE("");
      if (group != 0) bar_sync(2, 160);
    } else if (by_mbarrier) {
      if (group == 1) wait(in_shared(&landed), n & 1);
    } else if (!self) {
      bar_sync(1, 288);
    }
    if (FENCE == BY_UNORDERED_THIRD && group == 2) PROXY_FENCE("");
    if (FENCE == BY_ISSUER && group == 1) PROXY_FENCE("");
    if (group == (self ? 0 : 1)) {
      if (READER == BULK_STORE) {
        if (self) {
          store_in_bulk(mine + t * 4, mine16, 16), commit_bulk(), wait_bulk();
        } else {
          if (t == 128) store_in_bulk(mine, in_shared(tile), 2048), commit_bulk(), wait_bulk();
          bar_sync(3, 128);
        }
        u32 x, y, z, w;
        asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(mine + (t & 127) * 4) : "memory");
        bad += x != word || y != word || z != word || w != word;
      } else {
        float d[32] = {};
        REGISTERS_OF_ONES(a);
        wgmma_fence();
        if (READER == WGMMA_B) product_of_registers(d, a, tiles, 0);
        if (READER == WGMMA_A) product_of_tiles(d, tiles, one, 0);
        wgmma_commit();
        wgmma_wait(d);
        bad += differs(d, 16.0f * number);
      }
    }
    if (group == 0) asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
  }
  add(counts, bad);
}
