#include "grains.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
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

// A word for each grain, by pages: the word of all grains of a page, or `mixed`, and then each has its own.
constexpr size_t page_bits = 7, page = size_t(1) << page_bits;
constexpr uint64_t mixed = ~uint64_t(0);

template <class Word>
struct Table {
  Table(Vector<Word> table, Vector<Word> of_pages)
      : words(table.data()), pages(of_pages.data()), count(table.shape(0)) {
    if (of_pages.shape(0) != (count + page - 1) >> page_bits) refuse("not as many pages as a table has");
  }
  // Calls `body` with a word and the grains, from the first on, that have it, until it returns false; whether none has.
  template <class Body>
  bool runs(size_t first, size_t each, Body body) const {
    for (size_t at = first, end = first + each; at < end;) {
      size_t until = std::min(end, ((at >> page_bits) + 1) << page_bits);
      if (const uint64_t one = pages[at >> page_bits]; one != mixed) {
        while (until < end && pages[until >> page_bits] == one) until = std::min(end, until + page);
        if (!body(one, at, until)) return false;
      } else {
        for (size_t k = at; k < until; k++)
          if (!body(words[k], k, k + 1)) return false;
      }
      at = until;
    }
    return true;
  }
  // Asks for the word of a grain, which is needed soon.
  void soon(size_t at) const {
    if (pages[at >> page_bits] == mixed) __builtin_prefetch(words + at);
  }
  // Gives each grain of a page a word of its own.
  void mix(size_t number) const {
    if (pages[number] == mixed) return;
    std::fill(words + (number << page_bits), words + std::min(count, (number + 1) << page_bits), pages[number]);
    pages[number] = mixed;
  }
  void mix(const Touched& touched) const {
    for (size_t i = 0; i < touched.n; i++)
      for (size_t p = size_t(touched.first[i]) >> page_bits; p <= (touched.first[i] + touched.each - 1) >> page_bits;
           p++)
        mix(p);
  }
  // Writes one word for grains.
  void put(size_t first, size_t each, uint64_t word) const {
    for (size_t at = first, end = first + each; at < end;) {
      const size_t number = at >> page_bits, begin = number << page_bits;
      const size_t whole = std::min(count, begin + page), until = std::min(end, whole);
      if (const size_t last = end >> page_bits; at == begin && last > number) {  // whole pages
        std::fill(pages + number, pages + last, word);
        at = last << page_bits;
        continue;
      }
      if (at == begin && until == whole) {
        pages[number] = word;
      } else if (pages[number] != word) {
        mix(number);
        std::fill(words + at, words + until, word);
      }
      at = until;
    }
  }
  Word *words, *pages;
  size_t count;
};
using Kept = Table<uint64_t>;
using Known = Table<const uint64_t>;

// Whether all that a table has of grains is nothing, a thread's own, or of its block and before a time.
bool ordered(KnownWords table, KnownWords pages, Places first, size_t each, KnownWords words, uint64_t thread_bit,
             uint64_t block_bit, uint64_t time_bit, uint64_t last_time, uint64_t floor) {
  const Known known(table, pages);
  const Touched touched(first, each, known.count);
  touched.of(words);
  const uint64_t* who = words.data();
  for (size_t i = 0; i < touched.n; i++) {
    const bool so = known.runs(touched.first[i], each, [&](uint64_t other, size_t, size_t) {
      const uint64_t differ = other ^ who[i];
      if (other == 0 || differ >> thread_bit == 0) return true;
      return differ >> block_bit == 0 && (other >> time_bit & last_time) < floor;
    });
    if (!so) return false;
  }
  return true;
}

// What is known of the order of accesses: `known_times`. A row has a time for each thread of the block, then one for
// each number of an mbarrier, then one for the groups of each thread, then for each warpgroup; a thread without a row
// has -1 in `rows`.
struct Proof {
  Proof(uint64_t thread_bit, uint64_t block_bit, uint64_t time_bit, uint64_t last_time, uint64_t floor,
        uint64_t first_block, uint64_t threads, uint64_t mbarrier, uint64_t groups, uint64_t warpgroup,
        Vector<const int64_t> rows, Vector<const uint32_t> times, uint64_t width)
      : thread_bit(thread_bit),
        block_bit(block_bit),
        time_bit(time_bit),
        last_time(last_time),
        floor(floor),
        first_block(first_block),
        threads(threads),
        mbarrier(mbarrier),
        groups(groups),
        warpgroup(warpgroup),
        numbers((uint64_t(1) << (block_bit - thread_bit)) - 1),
        rows(rows.data()),
        all(rows.shape(0)),
        times(times.data()),
        width(width),
        held(width ? times.shape(0) / width : 0) {
    if (width < 2 * threads + numbers + 1 + (numbers >> warpgroup_bits) + 1 || times.shape(0) < width)
      refuse("rows without room for all agents");
  }
  // The row of a thread, given by its word; null if it has none.
  const uint32_t* row(uint64_t mine) const {
    const uint64_t thread = mine >> thread_bit & numbers,
                   place = ((mine >> block_bit) - first_block) * threads + thread;
    if (thread >= threads || place >= all) refuse("words of threads beyond the batch");
    if (rows[place] >= int64_t(held)) refuse("a row beyond the rows");
    return rows[place] < 0 ? nullptr : times + uint64_t(rows[place]) * width;
  }
  enum Answer { yes, no, asks };
  // Whether an access happens before what a thread does that has a row; `asks` where it would tell, and there is none.
  Answer before(uint64_t other, uint64_t mine, const uint32_t* until) const {
    const uint64_t differ = other ^ mine;
    if (other == 0 || differ >> thread_bit == 0) return yes;
    const uint64_t time = other >> time_bit & last_time, number = other >> thread_bit & numbers;
    uint64_t agent = number;
    if (differ >> block_bit == mbarrier) {
      agent += threads;
    } else if (differ >> block_bit == warpgroup) {
      agent = 2 * threads + numbers + 1 + (number >> warpgroup_bits);
    } else {
      if (number >= threads) return no;
      if (differ >> block_bit == groups) {
        agent += threads + numbers + 1;
      } else {
        if (differ >> block_bit != 0) return no;
        if (time < floor) return yes;
      }
    }
    if (!until) return asks;
    return time < until[agent] ? yes : no;
  }
  static constexpr unsigned warpgroup_bits = 7;  // of the number of a warpgroup's first thread, which are 0
  uint64_t thread_bit, block_bit, time_bit, last_time, floor, first_block, threads, mbarrier, groups, warpgroup,
      numbers;
  const int64_t* rows;
  uint64_t all;
  const uint32_t* times;
  uint64_t width, held;
};

// The same as `ordered`, or before a time that `known_times` has in the row of the thread: 0. -1 if some access is not;
// otherwise how many lanes need a row and have none, with the lanes in `missing`.
int64_t ordered_by(KnownWords table, KnownWords pages, Places first, size_t each, KnownWords words, uint64_t thread_bit,
                   uint64_t block_bit, uint64_t time_bit, uint64_t last_time, uint64_t floor, uint64_t first_block,
                   uint64_t threads, uint64_t mbarrier, uint64_t groups, uint64_t warpgroup, Vector<const int64_t> rows,
                   Vector<const uint32_t> times, uint64_t width, Vector<int64_t> missing) {
  const Known known(table, pages);
  const Touched touched(first, each, known.count);
  touched.of(words);
  if (missing.shape(0) < touched.n) refuse("no room for the lanes without rows");
  const Proof proof(thread_bit, block_bit, time_bit, last_time, floor, first_block, threads, mbarrier, groups,
                    warpgroup, rows, times, width);
  const uint64_t* who = words.data();
  int64_t needed = 0;
  const uint32_t* last_row = nullptr;
  uint64_t last = 0, last_block = 0;  // a word that the last row has proved: neighbours often meet the same
  for (size_t i = 0; i < touched.n; i++) {
    if (i + ahead < touched.n) known.soon(touched.first[i + ahead]);
    const uint64_t mine = who[i];
    const uint32_t* until = proof.row(mine);
    bool open = false;
    if (until != last_row || mine >> block_bit != last_block) last = 0;
    last_row = until, last_block = mine >> block_bit;
    const bool so = known.runs(touched.first[i], each, [&](uint64_t other, size_t, size_t) {
      if (other == last) return true;
      const auto answer = proof.before(other, mine, until);
      if (answer == Proof::asks) open = true;
      if (answer == Proof::yes && until && (other ^ mine) >> thread_bit != 0) last = other;
      return answer != Proof::no;
    });
    if (!so) return -1;
    if (open) missing.data()[needed++] = int64_t(i);
  }
  return needed;
}

// Which write has grains: where writes ascend by a search, elsewhere by a number for each grain between the first and
// the last. Made only if no two writes have a grain.
struct Writers {
  static constexpr int64_t none = -1, part = -2;  // of a run of grains that no write has; that writes have in part
  explicit Writers(const Touched& writes) : writes(writes), ascend(writes.ascend()), known(ascend) {
    if (ascend || !writes.n) return;
    const auto [least, most] = std::minmax_element(writes.first, writes.first + writes.n);
    begin = *least;
    const uint64_t range = uint64_t(*most - *least) + writes.each;
    if (range >> 26 || writes.n >> 31) return;
    if (of.size() < range) of.resize(range);
    for (; written < writes.n; written++) {
      uint32_t* at = of.data() + (writes.first[written] - begin);
      for (size_t k = 0; k < writes.each; k++)
        if (at[k]) {
          clear();
          return;
        }
      std::fill_n(at, writes.each, uint32_t(written + 1));
    }
    end = begin + int64_t(range);
    known = true;
  }
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;
  ~Writers() { clear(); }
  void clear() {
    for (size_t i = 0; i < written; i++) std::fill_n(of.data() + (writes.first[i] - begin), writes.each, 0u);
    written = 0;
  }
  // The write that has all of some grains, or `none` or `part`.
  int64_t at(int64_t first, int64_t length) {
    if (!ascend) {
      if (first >= end || first + length <= begin) return none;
      if (first < begin || first + length > end) return part;
      const uint32_t* place = of.data() + (first - begin);
      for (int64_t k = 1; k < length; k++)
        if (place[k] != place[0]) return part;
      return int64_t(place[0]) - 1;
    }
    const int64_t *all = writes.first, each = int64_t(writes.each), last = first + length;
    if (first < all[near] || (near + 1 < writes.n && first >= all[near + 1])) {
      const int64_t* next = std::upper_bound(all, all + writes.n, first);
      near = next == all ? 0 : size_t(next - all) - 1;
    }
    if (first < all[near]) return last <= all[near] ? none : part;
    if (last <= all[near] + each) return int64_t(near);
    return first >= all[near] + each && (near + 1 >= writes.n || last <= all[near + 1]) ? none : part;
  }
  const Touched& writes;
  bool ascend, known;
  int64_t begin = 0, end = 0;
  size_t near = 0, written = 0;
  static thread_local std::vector<uint32_t> of;  // one more than the number of the write; 0 between calls
};
thread_local std::vector<uint32_t> Writers::of;

// Rule 4 of `shadow_memory`: which reads of some grains, each by one lane, writes of others do not end, `kept`. A write
// ends the reads of its grains that happen before it. -1 if one does not or it is not known, or if a write has a part
// of a read's grains, or two writes have a grain; otherwise how many lanes of the writes need a row and have none, with
// the lanes in `missing`.
int64_t ends_reads(Places first, size_t each, KnownWords words, Places read_first, size_t read_each, KnownWords readers,
                   uint64_t thread_bit, uint64_t block_bit, uint64_t time_bit, uint64_t last_time, uint64_t floor,
                   uint64_t first_block, uint64_t threads, uint64_t mbarrier, uint64_t groups, uint64_t warpgroup,
                   Vector<const int64_t> rows, Vector<const uint32_t> times, uint64_t width, Vector<int64_t> missing,
                   Vector<bool> kept) {
  const Touched writes(first, each, ~size_t(0) >> 1), reads(read_first, read_each, ~size_t(0) >> 1);
  writes.of(words);
  reads.of(readers);
  if (missing.shape(0) < writes.n || kept.shape(0) != reads.n) refuse("no room for what is found");
  Writers writers(writes);
  if (!writes.n || !writers.known) return -1;
  const Proof proof(thread_bit, block_bit, time_bit, last_time, floor, first_block, threads, mbarrier, groups,
                    warpgroup, rows, times, width);
  std::vector<bool> asked(writes.n);
  for (size_t i = 0; i < reads.n; i++) {
    const int64_t by = writers.at(reads.first[i], int64_t(read_each));
    if (by == Writers::part) return -1;
    kept.data()[i] = by == Writers::none;
    if (by == Writers::none) continue;
    const uint64_t mine = words.data()[by];
    const auto answer = proof.before(readers.data()[i], mine, proof.row(mine));
    if (answer == Proof::no) return -1;
    if (answer == Proof::asks) asked[size_t(by)] = true;
  }
  int64_t needed = 0;
  for (size_t j = 0; j < writes.n; j++)
    if (asked[j]) missing.data()[needed++] = int64_t(j);
  return needed;
}

// Whether the grains of each lane have one word, which stands in `out` then.
bool uniform(KnownWords table, KnownWords pages, Places first, size_t each, Words out) {
  const Known known(table, pages);
  const Touched touched(first, each, known.count);
  if (out.shape(0) != touched.n || each == 0) refuse("not as many words as lanes with grains");
  for (size_t i = 0; i < touched.n; i++) {
    const size_t begin = touched.first[i];
    const bool so = known.runs(begin, each, [&](uint64_t word, size_t at, size_t) {
      if (at == begin) out.data()[i] = word;
      return word == out.data()[i];
    });
    if (!so) return false;
  }
  return true;
}

// The words of all grains of lanes, in order.
void words_of(KnownWords table, KnownWords pages, Places first, size_t each, Words out) {
  const Known known(table, pages);
  const Touched touched(first, each, known.count);
  if (out.shape(0) != touched.n * each) refuse("not as many words as grains");
  for (size_t i = 0; i < touched.n; i++)
    known.runs(touched.first[i], each, [&](uint64_t word, size_t at, size_t until) {
      std::fill_n(out.data() + i * each + (at - touched.first[i]), until - at, word);
      return true;
    });
}

// Notes words in a table; whether each of them stands where it was noted.
bool note(Words table, Words pages, Places first, size_t each, KnownWords words) {
  const Kept known(table, pages);
  const Touched touched(first, each, known.count);
  touched.of(words);
  const uint64_t* who = words.data();
  if (touched.ascend()) {
    for (size_t i = 0; i < touched.n; i++) known.put(touched.first[i], each, who[i]);
    return true;
  }
  known.mix(touched);
  touched.every([=](size_t i, size_t, int64_t at) { known.words[at] = who[i]; });
  uint64_t differ = 0;
  touched.every([&](size_t i, size_t, int64_t at) { differ |= known.words[at] ^ who[i]; });
  return differ == 0;
}

// Rule 3 of `shadow_memory`, exactly as its slow form.
void count_readers(Words last, Words lane, Words other, Words last_pages, Words lane_pages, Words other_pages,
                   Places first, size_t each, KnownWords words, uint64_t thread_bit, uint64_t warp_bit,
                   uint64_t block_bit) {
  if (lane.shape(0) != last.shape(0) || other.shape(0) != last.shape(0)) refuse("tables of different lengths");
  const Kept latest_of(last, last_pages), within_of(lane, lane_pages), far_of(other, other_pages);
  const Touched touched(first, each, latest_of.count);
  touched.of(words);
  for (const Kept* one : {&latest_of, &within_of, &far_of}) one->mix(touched);
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
    if (std::memchr(set + touched.first[i], 0, each)) return false;
  return true;
}

// Sets or clears flags.
void set(Vector<bool> flags, Places first, size_t each, bool value) {
  const Touched touched(first, each, flags.shape(0));
  for (size_t i = 0; i < touched.n; i++) std::fill_n(flags.data() + touched.first[i], each, value);
}

// Whether a table has nothing of some grains.
bool none(KnownWords table, KnownWords pages, Places first, size_t each) {
  const Known known(table, pages);
  const Touched touched(first, each, known.count);
  for (size_t i = 0; i < touched.n; i++)
    if (!known.runs(touched.first[i], each, [](uint64_t word, size_t, size_t) { return word == 0; })) return false;
  return true;
}

// Whether values are those of a first block, more by a step in each block that follows.
bool repeats(KnownWords values, size_t blocks, uint64_t step) {
  const size_t each = blocks ? values.shape(0) / blocks : 0;
  if (each * blocks != values.shape(0)) refuse("repeats: blocks of different lengths");
  const uint64_t* first = values.data();
  for (size_t b = 1; b < blocks; b++) {
    const uint64_t *of = first + b * each, more = b * step;
    uint64_t differ = 0;
    for (size_t i = 0; i < each; i++) differ |= of[i] ^ (first[i] + more);
    if (differ) return false;
  }
  return true;
}

// Puts one word into a table.
void fill(Words table, Words pages, Places first, size_t each, uint64_t value) {
  const Kept known(table, pages);
  const Touched touched(first, each, known.count);
  for (size_t i = 0; i < touched.n; i++) known.put(touched.first[i], each, value);
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
  grains.def("fill", &fill);
  grains.def("repeats", &repeats);
  grains.def("set", &set, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg());
  grains.def("ends_reads", &ends_reads);
  grains.def("words_of", &words_of);
  grains.attr("page") = page;
}

}  // namespace warpmma
