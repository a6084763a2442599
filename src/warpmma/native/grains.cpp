#include "grains.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "flat.hpp"

namespace nb = nanobind;

namespace warpmma {
namespace {

// Grains of lanes: from the first of each of them on so many, all of them in a table.
struct Touched {
  Touched(Places first, size_t each, size_t table) : first(first.data()), n(first.shape(0)), each(each) {
    uint64_t largest = 0;
    for (size_t i = 0; i < n; i++) largest = std::max(largest, uint64_t(this->first[i]));
    if (n && (each > table || largest > table - each)) refuse("a grain beyond the memory");
  }
  void of(KnownWords words) const {
    if (words.shape(0) != n) refuse("not as many words as lanes with grains");
  }
  // Calls `body` with the lane, its number among all grains, and the grain.
  template <class Body>
  void every(Body body) const {
    if (each == 1) {  // as it mostly is
      for (size_t i = 0; i < n; i++) body(i, i, first[i]);
      return;
    }
    for (size_t i = 0, g = 0; i < n; i++)
      for (size_t k = 0; k < each; k++, g++) body(i, g, first[i] + int64_t(k));
  }
  // Whether the grains of each lane are above those of the lane before; so none is that of two lanes.
  bool ascend() const {
    bool so = true;
    for (size_t i = 1; i < n; i++) so &= first[i] >= first[i - 1] + int64_t(each);
    return so;
  }
  const int64_t* first;
  size_t n, each;
};

// How many lanes ahead a table is asked for: its memory is far larger than a cache, and lanes of a warp are neighbours.
constexpr size_t ahead = 64;

// Whether all that a table has of grains is nothing, a thread's own, or of its block and before a time.
bool ordered(KnownWords table, Places first, size_t each, KnownWords words, uint64_t thread_bit, uint64_t block_bit,
             uint64_t time_bit, uint64_t last_time, uint64_t floor) {
  const Touched touched(first, each, table.shape(0));
  touched.of(words);
  const uint64_t *known = table.data(), *who = words.data();
  for (size_t i = 0; i < touched.n; i++) {
    const uint64_t* at = known + touched.first[i];
    for (size_t k = 0; k < each; k++) {
      const uint64_t other = at[k], differ = other ^ who[i];
      if (other == 0 || differ >> thread_bit == 0) continue;
      if (differ >> block_bit != 0 || (other >> time_bit & last_time) >= floor) return false;
    }
  }
  return true;
}

// The same, or before a time that `known_times` has in the row of the thread: 0. -1 if some access is not; otherwise
// how many lanes need a row and have none (-1 in `rows`), with the lanes in `missing`. A row has a time for each thread
// of the block, then one for each number of an mbarrier.
int64_t ordered_by(KnownWords table, Places first, size_t each, KnownWords words, uint64_t thread_bit,
                   uint64_t block_bit, uint64_t time_bit, uint64_t last_time, uint64_t floor, uint64_t first_block,
                   uint64_t threads, uint64_t mbarrier, Vector<const int64_t> rows, Vector<const uint32_t> times,
                   uint64_t width, Vector<int64_t> missing) {
  const Touched touched(first, each, table.shape(0));
  touched.of(words);
  if (missing.shape(0) < touched.n) refuse("no room for the lanes without rows");
  const uint64_t *known = table.data(), *who = words.data();
  const uint64_t numbers = (uint64_t(1) << (block_bit - thread_bit)) - 1;
  if (width < threads + numbers + 1 || times.shape(0) < width) refuse("rows without room for all agents");
  const uint64_t all = rows.shape(0), held = times.shape(0) / width;
  int64_t needed = 0, last_row = -1;
  uint64_t last = 0, last_block = 0;  // a word that the last row has proved: neighbours often meet the same
  for (size_t i = 0; i < touched.n; i++) {
    if (i + ahead < touched.n) __builtin_prefetch(known + touched.first[i + ahead]);
    const uint64_t* at = known + touched.first[i];
    const uint64_t mine = who[i], thread = mine >> thread_bit & numbers;
    const uint64_t place = ((mine >> block_bit) - first_block) * threads + thread;
    if (thread >= threads || place >= all) refuse("words of threads beyond the batch");
    const int64_t row = rows.data()[place];
    if (row >= int64_t(held)) refuse("a row beyond the rows");
    const uint32_t* until = row < 0 ? nullptr : times.data() + uint64_t(row) * width;
    bool open = false;
    if (row != last_row || mine >> block_bit != last_block) last = 0;
    last_row = row, last_block = mine >> block_bit;
    for (size_t k = 0; k < each; k++) {
      const uint64_t other = at[k], differ = other ^ mine;
      if (other == last || other == 0 || differ >> thread_bit == 0) continue;
      const uint64_t time = other >> time_bit & last_time, number = other >> thread_bit & numbers;
      uint64_t agent = number;
      if (differ >> block_bit == mbarrier) {
        agent += threads;
      } else {
        if (differ >> block_bit != 0 || number >= threads) return -1;
        if (time < floor) continue;
      }
      if (!until)
        open = true;
      else if (time >= until[agent])
        return -1;
      else
        last = other;
    }
    if (open) missing.data()[needed++] = int64_t(i);
  }
  return needed;
}

// Whether the grains of each lane have one word, which stands in `out` then.
bool uniform(KnownWords table, Places first, size_t each, Words out) {
  const Touched touched(first, each, table.shape(0));
  if (out.shape(0) != touched.n || each == 0) refuse("not as many words as lanes with grains");
  for (size_t i = 0; i < touched.n; i++) {
    const uint64_t *at = table.data() + touched.first[i], one = at[0];
    uint64_t differ = 0;
    for (size_t k = 1; k < each; k++) differ |= at[k] ^ one;
    if (differ) return false;
    out.data()[i] = one;
  }
  return true;
}

// Notes words in a table; whether each of them stands where it was noted.
bool note(Words table, Places first, size_t each, KnownWords words) {
  const Touched touched(first, each, table.shape(0));
  touched.of(words);
  uint64_t* known = table.data();
  const uint64_t* who = words.data();
  if (touched.ascend()) {
    for (size_t i = 0; i < touched.n; i++) std::fill_n(known + touched.first[i], each, who[i]);
    return true;
  }
  touched.every([=](size_t i, size_t, int64_t at) { known[at] = who[i]; });
  uint64_t differ = 0;
  touched.every([&](size_t i, size_t, int64_t at) { differ |= known[at] ^ who[i]; });
  return differ == 0;
}

// Rule 3 of `shadow_memory`, exactly as its slow form.
void count_readers(Words last, Words lane, Words other, Places first, size_t each, KnownWords words,
                   uint64_t thread_bit, uint64_t warp_bit, uint64_t block_bit) {
  if (lane.shape(0) != last.shape(0) || other.shape(0) != last.shape(0)) refuse("tables of different lengths");
  const Touched touched(first, each, last.shape(0));
  touched.of(words);
  uint64_t *latest = last.data(), *within = lane.data(), *far = other.data();
  const uint64_t* who = words.data();
  if (touched.ascend()) {  // each the only one there
    for (size_t i = 0; i < touched.n; i++) {
      if (i + ahead < touched.n) __builtin_prefetch(latest + touched.first[i + ahead], 1);
      uint64_t* at = latest + touched.first[i];
      const uint64_t now = who[i];
      uint64_t others = 0;
      for (size_t k = 0; k < each; k++) others |= at[k] ? (at[k] ^ now) >> thread_bit : 0;
      for (size_t k = 0; others && k < each; k++) {
        const uint64_t known = at[k], place = uint64_t(touched.first[i]) + k;
        if (known == 0 || (known ^ now) >> thread_bit == 0) continue;
        if ((known ^ now) >> warp_bit == 0) {
          within[place] = known;
          continue;
        }
        const uint64_t here = now >> block_bit, held = far[place];
        if (held == 0 || held >> block_bit == here || known >> block_bit != here) far[place] = known;
      }
      std::fill_n(at, each, now);
    }
    return;
  }
  std::unique_ptr<uint64_t[]> before(new uint64_t[touched.n * each]);
  uint64_t others = 0;
  touched.every([&](size_t i, size_t g, int64_t at) {
    if (i + ahead < touched.n) __builtin_prefetch(latest + touched.first[i + ahead], 1);
    const uint64_t known = before[g] = latest[at];
    others |= uint64_t(known != 0 && (known ^ who[i]) >> thread_bit != 0);
  });
  touched.every([=](size_t i, size_t, int64_t at) { latest[at] = who[i]; });
  touched.every([&](size_t i, size_t, int64_t at) { others |= latest[at] ^ who[i]; });
  if (others == 0) return;  // each the only one there, and before
  struct Far {
    int64_t place;
    uint64_t word;
    bool elsewhere, keep;
  };
  std::vector<Far> found;
  for (int round = 0; round < 2; round++) {
    found.clear();
    touched.every([&](size_t i, size_t g, int64_t at) {
      const uint64_t known = round ? who[i] : before[g], now = latest[at];
      if (known == 0 || (known ^ now) >> thread_bit == 0) return;
      if ((known ^ now) >> warp_bit == 0) {
        within[at] = known;
        return;
      }
      const uint64_t here = now >> block_bit, held = far[at];
      const bool elsewhere = known >> block_bit != here;
      found.push_back({at, known, elsewhere, held != 0 && held >> block_bit != here && !elsewhere});
    });
    for (const Far& x : found)
      if (!x.keep) far[x.place] = x.word;
    for (const Far& x : found)
      if (x.elsewhere) far[x.place] = x.word;
  }
}

// Whether all of some flags are set.
bool all_set(Vector<const bool> flags, Places first, size_t each) {
  const Touched touched(first, each, flags.shape(0));
  const bool* set = flags.data();
  for (size_t i = 0; i < touched.n; i++)
    if (!std::all_of(set + touched.first[i], set + touched.first[i] + each, [](bool x) { return x; })) return false;
  return true;
}

// Whether a table has nothing of some grains.
bool none(KnownWords table, Places first, size_t each) {
  const Touched touched(first, each, table.shape(0));
  const uint64_t* known = table.data();
  uint64_t any = 0;
  touched.every([&](size_t, size_t, int64_t at) { any |= known[at]; });
  return any == 0;
}

// Puts one value into a table.
template <class T>
void fill(Vector<T> table, Places first, size_t each, T value) {
  const Touched touched(first, each, table.shape(0));
  T* known = table.data();
  for (size_t i = 0; i < touched.n; i++) std::fill_n(known + touched.first[i], each, value);
}

}  // namespace

void bind_grains(nb::module_& m) {
  nb::module_ grains = m.def_submodule("grains");
  grains.def("ordered", &ordered);
  grains.def("ordered_by", &ordered_by);
  grains.def("uniform", &uniform);
  grains.def("note", &note);
  grains.def("count_readers", &count_readers);
  grains.def("all_set", &all_set);
  grains.def("none", &none);
  grains.def("fill", &fill<uint64_t>, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg());
  grains.def("fill", &fill<bool>, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg());
}

}  // namespace warpmma
