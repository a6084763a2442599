// A tile of D and its threads: TX x TX of them, each with RM rows and RN columns in runs of 16 bytes of a panel, so
// that a warp reads a row of it without conflicts.

constexpr int THREADS = TX * TX, TM = RM * TX, TN = RN * TX, RUN_OF_COLUMNS = sizeof(Code) == 8 ? 2 : 4;

// Which column of the tile a thread's number s is.
__device__ __forceinline__ int column(int x, int s) {
  return s / RUN_OF_COLUMNS * (TX * RUN_OF_COLUMNS) + x * RUN_OF_COLUMNS + s % RUN_OF_COLUMNS;
}

// Consecutive elements of a panel, sixteen or eight bytes at a time; `to` need not be aligned as these are.
template <int N, class Element>
__device__ __forceinline__ void take(const Element* from, Element* to) {
  constexpr int bytes = N * int(sizeof(Element));
  if constexpr (bytes % 16 == 0) {
    EACH (i, bytes / 16) {
      const uint4 x = reinterpret_cast<const uint4*>(from)[i];
      memcpy(to + i * (16 / sizeof(Element)), &x, 16);
    }
  } else {
    EACH (i, N) to[i] = from[i];
  }
}

// The columns of a thread in one row of a panel.
template <class Element>
__device__ __forceinline__ void take_columns(const Element* row, int x, Element* to) {
  EACH (run, RN / RUN_OF_COLUMNS)
    take<RUN_OF_COLUMNS>(row + run * TX * RUN_OF_COLUMNS + x * RUN_OF_COLUMNS, to + run * RUN_OF_COLUMNS);
}
