// Factors that are gathered from images, as those of convolutions: none of them is laid out in memory.
//
// 1. The number of a lane (a row of A, a column of B) and that of a k are digits, the last the fastest. Each digit
// moves
//    the address by a stride, and some coordinates by a step.
// 2. A coordinate is (first + the steps of all digits) / apart. Where each is whole, and inside of the image, the
//    element lies at its address, moved by the coordinates' strides; elsewhere it is +0.
// 3. A sum of steps is apart x whole + rest for a lane, apart x whole - rest for a k, 0 <= rest < apart. So a
// coordinate
//    is whole where the rests are equal, and is the sum of the two wholes then: nothing is divided for an element. The
//    rests of all coordinates are one number, the phase; that of a number beyond the matrix equals no other.
// 4. A tile's lanes are entered into a table once, those of a chunk's k while the chunk before is computed.

constexpr int DIGITS = 4, MOST_COORDINATES = 3;

struct Axis {  // steps: of each digit, for each coordinate
  s64 stride[DIGITS];
  int size[DIGITS], step[DIGITS][MOST_COORDINATES];
};

struct Gathered {
  s64 batch, stride[MOST_COORDINATES];
  Axis lane, k;
  int size[MOST_COORDINATES], apart[MOST_COORDINATES], first[MOST_COORDINATES];
  int across;  // whether neighbours in memory are lanes
};

// Where elements of the result lie: its rows are in runs, such as the places of one image.
struct Target {
  s64 batch, outer, along, column;
  int run;
  __device__ __forceinline__ s64 index(s64 matrix, int i, int j) const {
    return matrix * batch + i / run * outer + i % run * along + j * column;
  }
};

template <int COORDINATES>
struct Entry {
  s64 offset;
  int phase, whole[COORDINATES > 0 ? COORDINATES : 1];

  __device__ __forceinline__ void enter(const Gathered& of, const Axis& axis, int number, int total, bool of_k) {
    int sum[MOST_COORDINATES], left = number;
    EACH (c, COORDINATES) sum[c] = of_k ? 0 : -of.first[c];
    offset = phase = 0;
    EACH (from_last, DIGITS) {
      const int d = DIGITS - 1 - from_last, digit = d == 0 ? left : left % axis.size[d];
      left /= d == 0 ? 1 : axis.size[d];
      offset += digit * axis.stride[d];
      EACH (c, COORDINATES) sum[c] -= digit * axis.step[d][c];
    }
    EACH (c, COORDINATES) {
      const int x = of_k ? sum[c] : -sum[c], apart = of.apart[c];
      int floor = x / apart, rest = x - floor * apart;
      if (rest < 0) floor--, rest += apart;
      whole[c] = of_k ? -floor : floor;
      phase = phase * apart + rest;
      offset += whole[c] * of.stride[c];
    }
    if (number >= total) phase = of_k ? -1 : -2;
  }
};

// Reads a gathered matrix as `Reader` does a plain one. A thread has one lane and several k, or one k and several
// lanes, whichever are neighbours in memory.
template <class Format, int LANES, int COORDINATES>
struct Gatherer {
  static constexpr int each = CHUNK * LANES / THREADS;
  static_assert(each * THREADS == CHUNK * LANES && THREADS % CHUNK == 0 && THREADS % LANES == 0, "the threads' share");
  static_assert(2 * CHUNK <= THREADS && LANES <= THREADS, "a thread enters one number");

  struct Table {
    Entry<COORDINATES> lane[LANES], k[CHUNK];
  };

  Table& table;
  const char* from;
  int total;
  short k, lane;  // of the thread in the chunk
  bool across;
  Code codes[each];

  __device__ __forceinline__ Gatherer(Table& into, const void* matrix, const Gathered& of, s64 batch, int first,
                                      int most, int k_most)
      : table(into), total(k_most), across(of.across) {
    const int thread = int(threadIdx.x);
    from = static_cast<const char*>(matrix) + batch * of.batch * Format::bytes;
    k = short(across ? thread / LANES : thread % CHUNK);
    lane = short(across ? thread % LANES : thread / CHUNK);
    if (thread < LANES) table.lane[thread].enter(of, of.lane, first + thread, most, false);
  }

  // Enter a chunk's k, by some of the threads.
  __device__ __forceinline__ void enter(const Gathered& of, int start, int first_thread) {
    const int mine = int(threadIdx.x) - first_thread;
    if (u32(mine) < u32(CHUNK)) table.k[mine].enter(of, of.k, start + mine, total, true);
  }

  __device__ __forceinline__ void fetch(const Gathered& of) {
    const int step_k = across ? THREADS / LANES : 0, step_lane = across ? 0 : THREADS / CHUNK;
    EACH (i, each) {
      const Entry<COORDINATES>&x = table.lane[lane + i * step_lane], &y = table.k[k + i * step_k];
      bool there = x.phase == y.phase;
      EACH (c, COORDINATES) there = there & (u32(x.whole[c] + y.whole[c]) < u32(of.size[c]));
      codes[i] = there ? code_at<Format>(from, x.offset + y.offset) : Code(0);
    }
  }

  template <class Put>
  __device__ __forceinline__ void put(Put into) const {
    const int step_k = across ? THREADS / LANES : 0, step_lane = across ? 0 : THREADS / CHUNK;
    EACH (i, each) into(place_of(k + i * step_k), lane + i * step_lane, codes[i]);
  }
};
