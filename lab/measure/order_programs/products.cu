// Experiments 10 and 11: what differs inside a warpgroup, and wgmma.fence dropped or moved. CASE is a name below.
// Experiment 10: counts[0]: threads with what the first warp (or lane) says; counts[1]: with what the others say;
// counts[2]: with neither; "the first" is warp 0, lane 0, or the lane that differs. Experiment 11: counts[0]: threads
// with a wrong D.

enum { B_OF_WARP_0, A_OF_WARP_0, B_OF_LANE_0, TRUE_IN_WARP_0, FALSE_IN_WARP_0, TRUE_IN_LANE_5, FALSE_IN_LANE_5,
       SKIPPED_BY_WARP_3, SKIPPED_BY_LANE_5, WARP_3_EXITED,
       NO_FENCE, FENCE_BEFORE_WRITES, D_CHANGED, A_OVERWRITTEN };  // CASE

extern "C" __global__ void prepare(PARAMETERS) {}

extern "C" __global__ void __launch_bounds__(128) cell(PARAMETERS) {
  __shared__ alignas(1024) u32 one[512];
  __shared__ alignas(1024) u32 two[512];
  __shared__ volatile float start;
  const u32 t = threadIdx.x, lane = t & 31, warp = t / 32;
  u32 state = random_state(seed, blockIdx.x * 4 + warp), same = 0, other = 0, neither = 0;
  store_words(in_shared(one) + t * 16, ONES);
  store_words(in_shared(two) + t * 16, 0x40004000);
  if (t == 0) start = 100;
  PROXY_FENCE("");
  __syncthreads();
  if (CASE == WARP_3_EXITED && warp == 3) return;
  const u64 ones = descriptor(in_shared(one)), twos = descriptor(in_shared(two));
  for (int n = 0; n < trials; n++) {
    spin(random_word(state) % 2000);
    REGISTERS_OF_ONES(a);
    float d[32], right = 16, wrong = 32;
    const float from = start;
#pragma unroll
    for (int i = 0; i < 32; i++) d[i] = from;
    if (CASE < NO_FENCE || CASE == D_CHANGED || CASE == A_OVERWRITTEN) wgmma_fence();
    if (CASE == B_OF_WARP_0) product_of_registers(d, a, warp ? twos : ones, 0);
    if (CASE == A_OF_WARP_0) product_of_tiles(d, warp ? twos : ones, ones, 0);
    if (CASE == B_OF_LANE_0) product_of_registers(d, a, lane ? twos : ones, 0);
    if (CASE >= TRUE_IN_WARP_0 && CASE <= FALSE_IN_LANE_5) {
      const bool is = CASE <= FALSE_IN_WARP_0 ? warp == 0 : lane == 5, onto = CASE == TRUE_IN_WARP_0 || CASE == TRUE_IN_LANE_5;
      product_of_registers(d, a, ones, is == onto);
      right = onto ? 116 : 16, wrong = onto ? 16 : 116;
    }
    if (CASE == SKIPPED_BY_WARP_3 || CASE == SKIPPED_BY_LANE_5) {
      const u32 guard = CASE == SKIPPED_BY_WARP_3 ? warp != 3 : lane != 5;
      asm volatile("{ .reg .pred p; setp.ne.u32 p, %34, 0;\n@p " PRODUCT D_LIST ", {%32, %32, %32, %32}, %33, 0, 1, 1, 0; }"
                   : D_PLACES(d) : "r"(ONES), "l"(ones), "r"(guard) : "memory");
    }
    if (CASE == WARP_3_EXITED) product_of_registers(d, a, ones, 0);
    if (CASE == NO_FENCE) product_of_registers(d, a, ones, 1), right = 116;
    if (CASE == FENCE_BEFORE_WRITES) {
      wgmma_fence();
      const float again = start;
#pragma unroll
      for (int i = 0; i < 32; i++) asm volatile("mov.f32 %0, %1;" : "=f"(d[i]) : "f"(again + i) : "memory");
      product_of_registers(d, a, ones, 1);
    }
    if (CASE == D_CHANGED) {
      product_of_registers(d, a, ones, 0);
      wgmma_commit();
      wgmma_wait(d);
#pragma unroll
      for (int i = 0; i < 32; i++) asm volatile("add.f32 %0, %0, %1;" : "+f"(d[i]) : "f"(from) : "memory");
      product_of_registers(d, a, ones, 1);
      right = 132;
    }
    if (CASE == A_OVERWRITTEN) {
      u32 last;
      asm volatile("{ .reg .b32 a; mov.b32 a, %33;\n" PRODUCT D_LIST ", {a, a, a, a}, %34, 0, 1, 1, 0;\n"
                   "mov.b32 a, %35; wgmma.commit_group.sync.aligned; mov.b32 %32, a; }"
                   : D_PLACES(d), "=r"(last) : "r"(ONES), "l"(ones), "r"(0x40004000 + n) : "memory");
      wgmma_wait(d);
      neither += last != 0x40004000 + n;
    }
    wgmma_commit();
    wgmma_wait(d);
    u32 is_right, is_wrong;
    if (CASE == FENCE_BEFORE_WRITES) {
      is_right = 1, is_wrong = 0;
#pragma unroll
      for (int i = 0; i < 32; i++) is_right &= d[i] == 116.0f + i;
    } else {
      is_right = !differs(d, right), is_wrong = !differs(d, wrong);
    }
    same += is_right, other += is_wrong, neither += !is_right && !is_wrong;
    __syncthreads();
  }
  if (CASE >= NO_FENCE) {
    add(counts, (u64)trials - same + neither);
  } else {
    add(counts, same), add(counts + 1, other), add(counts + 2, neither);
  }
}
