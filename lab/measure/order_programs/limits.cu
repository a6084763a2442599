// Registers of setmaxnreg: who waits for which. Two warpgroups of 128 registers a thread, by the launch bounds; CASE says
// what they do. `times` is memory of the host, which is read also if the kernel never ends: of each warp of two blocks of
// one multiprocessor the ns after the first warp began at which it began, ended its setmaxnreg, and left.

enum { NONE_GIVES, GIVES_LATE, EXITS, EXITS_AFTER_ENOUGH, EXITS_AFTER_LESS, EXITS_BEFORE, BOTH_GIVE_IN_TURN,
       TAKES_IN_TURN, OTHER_BLOCK_GIVES };  // CASE
#define MS 1000000ull
DEVICE u64 now() {
  u64 ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}
DEVICE void until(u64 ns) {
  while (now() < ns) __nanosleep(1000);
}
#define GIVE(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 " #n ";" ::: "memory")
#define TAKE(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 " #n ";" ::: "memory")

// seats: a counter for each multiprocessor, and the place of the time at which the first warp began.
extern "C" __global__ void __launch_bounds__(256, 2) cell(volatile u64* times, u32* seats, u64* began) {
  __shared__ u32 seat;
  __shared__ u64 first;
  u32 processor;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
  if (threadIdx.x == 0) {
    seat = atomicAdd(seats + processor, 1);
    if (processor == 0 && seat == 0) *(volatile u64*)began = now();
  }
  __syncthreads();
  const bool both = CASE == OTHER_BLOCK_GIVES;
  if (processor || seat > (both ? 1 : 0)) return;
  if (threadIdx.x == 0) {
    while (!*(volatile u64*)began) {
    }
    first = *(volatile u64*)began;
  }
  __syncthreads();
  const u64 start = first + 20 * MS;  // all blocks that leave at once have left
  const u32 warp = threadIdx.x / 32, part = warp & 3;
  volatile u64* mine = times + (seat * 8 + warp) * 4;
  const bool writes = (threadIdx.x & 31) == 0;
#define NOTE(k)                                     \
  __syncwarp();                                     \
  if (writes) mine[k] = now() - first, __threadfence_system(); \
  __syncwarp()
  until(start);
  NOTE(0);
  if (warp < 4) {  // the warpgroup that gives, or leaves
    if (CASE == NONE_GIVES) {
      TAKE(232);
      NOTE(1);
    }
    if (CASE == GIVES_LATE) {
      until(start + 40 * MS);
      GIVE(24);
      NOTE(1);
      until(start + 100 * MS);
    }
    if (CASE == EXITS) until(start + 40 * MS);
    if (CASE == EXITS_AFTER_ENOUGH) {
      GIVE(24);
      NOTE(1);
    }
    if (CASE == EXITS_AFTER_LESS) {
      GIVE(64);
      NOTE(1);
      until(start + 40 * MS);
    }
    if (CASE == BOTH_GIVE_IN_TURN) {
      until(start + 20 * MS * (part + 1));
      GIVE(24);
      NOTE(1);
      until(start + 120 * MS);
    }
    if (CASE == TAKES_IN_TURN) {
      GIVE(24);
      NOTE(1);
      until(start + 120 * MS);
    }
    if (CASE == OTHER_BLOCK_GIVES) {
      if (seat == 0) {
        GIVE(24);
        NOTE(1);
      }
      until(start + (seat ? 200 : 100) * MS);
    }
  } else {  // the warpgroup that takes
    if (CASE == EXITS_AFTER_ENOUGH || CASE == EXITS_BEFORE) until(start + 40 * MS);
    if (CASE == TAKES_IN_TURN) until(start + 20 * MS * (part + 1));
    if (both && seat == 0) {
      until(start + 100 * MS);
    } else {
      TAKE(232);
      NOTE(1);
    }
  }
  NOTE(2);
}
