#include "memory.hpp"

#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "flat.hpp"

namespace nb = nanobind;

namespace warpmma {
namespace {

using Flags = Vector<const bool>;
using Bytes = Vector<const uint8_t>;

// Calls `body` with the number of bytes as a constant, where that is a power of two.
template <class Body>
void sized(size_t size, Body body) {
  switch (size) {
    case 1:
      return body(std::integral_constant<size_t, 1>());
    case 2:
      return body(std::integral_constant<size_t, 2>());
    case 4:
      return body(std::integral_constant<size_t, 4>());
    case 8:
      return body(std::integral_constant<size_t, 8>());
    case 16:
      return body(std::integral_constant<size_t, 16>());
    case 32:
      return body(std::integral_constant<size_t, 32>());
    default:
      return body(size);
  }
}

// The one piece of memory in which the bytes of all lanes lie, and where in it; -1 if there is none, -2 if no lane
// acts.
template <class Address>
std::pair<int64_t, int64_t> locate(Vector<const Address> address, Flags lanes, KnownWords starts, KnownWords ends,
                                   uint64_t size, uint64_t alignment, Vector<int64_t> offset) {
  const size_t n = address.shape(0);
  if (lanes.shape(0) != n || offset.shape(0) < n || starts.shape(0) != ends.shape(0) || alignment == 0)
    refuse("locate: arrays of different lengths");
  const Address* a = address.data();
  const bool* on = lanes.data();
  int64_t* to = offset.data();
  const size_t first = std::find(on, on + n, true) - on;
  if (first == n) return {-2, 0};
  const uint64_t* begin = starts.data();
  const size_t number = std::upper_bound(begin, begin + starts.shape(0), uint64_t(a[first])) - begin;
  if (number == 0) return {-1, 0};
  const uint64_t start = begin[number - 1], room = ends.data()[number - 1] - start;
  if (room < size) return {-1, 0};
  const uint64_t last = room - size;
  const bool power = (alignment & (alignment - 1)) == 0;
  const uint64_t low = alignment - 1;
  const uint64_t wrong = power ? 0 : alignment;
  uint64_t bad = 0, count = 0;
  if (size_t(std::count(on, on + n, true)) < n / 8) {  // few lanes act: look for them
    for (const bool* at = on + first; at; at = static_cast<const bool*>(std::memchr(at + 1, 1, on + n - at - 1))) {
      const uint64_t where = a[at - on], inside = where - start;
      if (inside > last || where % alignment != 0) return {-1, 0};
      to[count++] = int64_t(inside);
    }
    return {int64_t(number) - 1, int64_t(count)};
  }
  for (size_t i = 0; i < n; i++) {
    const uint64_t at = a[i], inside = at - start, acts = on[i];
    bad |= acts & (uint64_t(inside > last) | uint64_t((at & (power ? low : 0)) != 0));
    if (wrong) bad |= acts & uint64_t(at % wrong != 0);
    to[i] = int64_t(inside);
    count += acts;
  }
  if (bad) return {-1, 0};
  if (count < n) {
    size_t next = 0;
    for (size_t i = 0; i < n; i++) {
      to[next] = to[i];
      next += on[i];
    }
  }
  return {int64_t(number - 1), int64_t(count)};
}

void check_offsets(const int64_t* offset, size_t n, size_t most, size_t width) {
  uint64_t largest = 0;
  for (size_t i = 0; i < n; i++) largest = std::max(largest, uint64_t(offset[i]));
  if (n && (most < width || largest > most - width)) refuse("an offset beyond the memory");
}

void gather(Bytes memory, Places offset, size_t size, Vector<uint8_t> out) {
  const size_t n = offset.shape(0), most = memory.shape(0);
  if (out.shape(0) != n * size) refuse("gather: no room for what is read");
  const uint8_t* from = memory.data();
  const int64_t* at = offset.data();
  uint8_t* to = out.data();
  sized(size, [&](auto width) {
    check_offsets(at, n, most, width);
    for (size_t i = 0; i < n; i++) std::memcpy(to + i * width, from + at[i], width);
  });
}

void scatter(Vector<uint8_t> memory, Places offset, size_t size, Bytes data) {
  const size_t n = offset.shape(0), most = memory.shape(0);
  if (data.shape(0) != n * size) refuse("scatter: not as many bytes as places");
  uint8_t* to = memory.data();
  const int64_t* at = offset.data();
  const uint8_t* from = data.data();
  sized(size, [&](auto width) {
    check_offsets(at, n, most, width);
    for (size_t i = 0; i < n; i++) std::memcpy(to + at[i], from + i * width, width);
  });
}

// The access words of the lanes that are on; their warps get the time.
size_t who(KnownWords keys, Flags lanes, uint64_t time, uint64_t shifted, Vector<int64_t> touched, size_t warp,
           Words out) {
  const size_t all = lanes.shape(0), most = out.shape(0);
  if (keys.shape(0) != all || warp == 0 || touched.shape(0) * warp != all) refuse("who: arrays of different lengths");
  const bool* on = lanes.data();
  size_t next = 0;
  for (size_t first = 0; first < all; first += warp) {
    if (!std::memchr(on + first, 1, warp)) continue;
    touched.data()[first / warp] = int64_t(time);
    for (size_t i = first; i < first + warp; i++) {
      if (!on[i]) continue;
      if (next == most) refuse("who: no room for the words");
      out.data()[next++] = keys.data()[i] | shifted;
    }
  }
  return next;
}

// Adds where the memory of each lane's block begins to the offsets of the lanes that are on.
void in_blocks(Vector<int64_t> offset, Flags lanes, size_t block, int64_t stride, int64_t start) {
  const size_t all = lanes.shape(0), n = offset.shape(0);
  if (block == 0 || all % block != 0) refuse("in_blocks: not whole blocks");
  const bool* on = lanes.data();
  size_t next = 0;
  for (size_t first = 0; first < all; first += block) {
    const int64_t begin = int64_t(first / block) * stride + start;
    for (size_t i = first; i < first + block; i++) {
      if (!on[i]) continue;
      if (next == n) refuse("in_blocks: not as many offsets as lanes");
      offset.data()[next++] += begin;
    }
  }
}

// More than a cache holds: what is written does not have to be read from memory first, nor to be kept near.
constexpr size_t much = size_t(1) << 22;

// Copies bytes past the caches, where the processor can.
void stream(uint8_t* to, const uint8_t* from, size_t size) {
#if defined(__x86_64__)
  if (reinterpret_cast<uintptr_t>(to) % 16 == 0) {
    constexpr size_t line = 64;
    for (; size >= line; size -= line, to += line, from += line) {
      const auto* in = reinterpret_cast<const __m128i*>(from);
      auto* out = reinterpret_cast<__m128i*>(to);
      for (size_t i = 0; i < line / sizeof(__m128i); i++) _mm_stream_si128(out + i, _mm_loadu_si128(in + i));
    }
  }
#endif
  std::memcpy(to, from, size);
}

// Moves bytes of lanes from one piece of memory to another.
void move(Bytes from, Places origin, Vector<uint8_t> to, Places target, size_t size) {
  const size_t n = origin.shape(0);
  if (target.shape(0) != n) refuse("move: not as many targets as origins");
  check_offsets(origin.data(), n, from.shape(0), size);
  check_offsets(target.data(), n, to.shape(0), size);
  if (size == 0) return;
  if (n > much / size) {
    for (size_t i = 0; i < n; i++) stream(to.data() + target.data()[i], from.data() + origin.data()[i], size);
#if defined(__x86_64__)
    _mm_sfence();  // before another thread is told of it
#endif
    return;
  }
  for (size_t i = 0; i < n; i++) std::memcpy(to.data() + target.data()[i], from.data() + origin.data()[i], size);
}

// Between which offsets lanes begin, counted from the start of each block, if there are blocks.
std::pair<int64_t, int64_t> bounds(Places offset, uint64_t block) {
  uint64_t least = ~uint64_t(0), most = 0;
  for (size_t i = 0; i < offset.shape(0); i++) {
    const uint64_t at = block ? uint64_t(offset.data()[i]) % block : uint64_t(offset.data()[i]);
    least = std::min(least, at), most = std::max(most, at);
  }
  return {int64_t(least), int64_t(most)};
}

// Flags the pages, of so many bits of an offset, in which lanes write; where those begin that had no flag, in `found`.
size_t pages(Vector<bool> flags, Places offset, size_t size, size_t bits, Vector<int64_t> found) {
  const size_t n = offset.shape(0), count = flags.shape(0);
  size_t next = 0;
  for (size_t i = 0; i < n && size; i++) {
    const uint64_t first = uint64_t(offset.data()[i]) >> bits, last = (uint64_t(offset.data()[i]) + size - 1) >> bits;
    if (last >= count) refuse("pages: an offset beyond the memory");
    for (uint64_t page = first; page <= last; page++) {
      if (flags.data()[page]) continue;
      if (next == found.shape(0)) refuse("pages: no room for them");
      flags.data()[page] = true;
      found.data()[next++] = int64_t(page << bits);
    }
  }
  return next;
}

// As `scatter`, for the lanes that are on, in the order of an H200, in parts of a warp: `memory_engine.store`.
void store(Vector<uint8_t> memory, Places offset, size_t size, Bytes data, Flags lanes, size_t part) {
  const size_t n = offset.shape(0), most = memory.shape(0), all = lanes.shape(0);
  const bool* on = lanes.data();
  if (data.shape(0) != n * size || size_t(std::count(on, on + all, true)) != n || part == 0)
    refuse("store: not as many bytes or lanes as places");
  uint8_t* to = memory.data();
  const int64_t* at = offset.data();
  const uint8_t* from = data.data();
  sized(size, [&](auto width) {
    check_offsets(at, n, most, width);
    for (size_t first = 0, begin = 0; first < all; first += part) {
      const size_t end = begin + std::count(on + first, on + std::min(first + part, all), true);
      for (size_t i = end; i-- > begin;) std::memcpy(to + at[i], from + i * width, width);
      begin = end;
    }
  });
}

// The bytes of the lanes that are on, in the places of all lanes; 0 in the others.
void spread(Bytes data, size_t size, Flags lanes, Vector<uint8_t> out) {
  const size_t all = lanes.shape(0);
  const bool* on = lanes.data();
  if (out.shape(0) != all * size || data.shape(0) != size_t(std::count(on, on + all, true)) * size)
    refuse("spread: not as many bytes as lanes");
  const uint8_t* from = data.data();
  uint8_t* to = out.data();
  sized(size, [&](auto width) {
    for (size_t i = 0; i < all; i++, to += width) {
      if (on[i]) {
        std::memcpy(to, from, width);
        from += width;
      } else {
        std::memset(to, 0, width);
      }
    }
  });
}

// Registers of all lanes, each `[lane]`, from and to their words `[lane, word]`, which lie together.
template <class Body>
void columns(size_t count, size_t width, size_t size, Body body) {
  if (count == 0 || width == 0 || size % (count * width) != 0) refuse("registers of different lengths");
  const size_t n = size / (count * width);
  sized(width, [&](auto bytes) {
    sized(count, [&](auto words) {
      for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < words; k++) body(k, i * bytes, (i * words + k) * bytes, bytes);
    });
  });
}

void join(const nb::list& registers, size_t width, Vector<uint8_t> out) {
  const uint8_t* from[32];
  const size_t count = registers.size(), size = out.shape(0);
  if (count > 32) refuse("join: more than 32 registers");
  for (size_t k = 0; k < count; k++) {
    const auto one = nb::cast<Bytes>(registers[k]);
    if (one.shape(0) * count != size) refuse("join: registers of different lengths");
    from[k] = one.data();
  }
  uint8_t* to = out.data();
  columns(count, width, size,
          [&](size_t k, size_t apart, size_t beside, auto bytes) { std::memcpy(to + beside, from[k] + apart, bytes); });
}

void split(Bytes data, size_t count, size_t width, Vector<uint8_t> out) {
  const size_t size = data.shape(0), each = count ? size / count : 0;
  if (out.shape(0) != size) refuse("split: no room for the registers");
  const uint8_t* from = data.data();
  uint8_t* to = out.data();
  columns(count, width, size, [&](size_t k, size_t apart, size_t beside, auto bytes) {
    std::memcpy(to + k * each + apart, from + beside, bytes);
  });
}

// For each row of so many words the number of the first row that is the same.
void alike(Vector<const int64_t> rows, size_t width, Vector<int64_t> first) {
  const size_t n = first.shape(0);
  if (rows.shape(0) != n * width) refuse("alike: not as many words as rows have");
  std::unordered_multimap<uint64_t, size_t> seen;
  for (size_t i = 0; i < n; i++) {
    const int64_t* row = rows.data() + i * width;
    if (i && std::equal(row, row + width, rows.data() + size_t(first.data()[i - 1]) * width)) {
      first.data()[i] = first.data()[i - 1];
      continue;
    }
    uint64_t parts[4] = {1, 2, 3, 4};  // side by side, as each takes several cycles a word
    for (size_t k = 0; k < width; k++)
      parts[k % 4] = (parts[k % 4] ^ uint64_t(row[k])) * 0x9E3779B97F4A7C15u + (parts[k % 4] >> 29);
    uint64_t hash = 0;
    for (const uint64_t part : parts) hash = (hash ^ part) * 0x9E3779B97F4A7C15u + (hash >> 29);
    const auto range = seen.equal_range(hash);
    const auto same = std::find_if(range.first, range.second, [&](const auto& one) {
      return std::equal(row, row + width, rows.data() + one.second * width);
    });
    first.data()[i] = int64_t(same == range.second ? i : same->second);
    if (same == range.second) seen.emplace(hash, i);
  }
}

}  // namespace

void bind_memory(nb::module_& m) {
  nb::module_ memory = m.def_submodule("memory");
  memory.def("locate", &locate<uint64_t>, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().noconvert());
  memory.def("locate", &locate<uint32_t>, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().noconvert());
  memory.def("gather", &gather, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg().noconvert());
  memory.def("scatter", &scatter, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg().noconvert());
  memory.def("move", &move, nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg());
  memory.def("bounds", &bounds);
  memory.def("who", &who, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(),
             nb::arg().noconvert());
  memory.def("in_blocks", &in_blocks, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  memory.def("pages", &pages, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert());
  memory.def("store", &store, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(),
             nb::arg().noconvert(), nb::arg());
  memory.def("join", &join, nb::arg(), nb::arg(), nb::arg().noconvert());
  memory.def("split", &split, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg().noconvert());
  memory.def("spread", &spread, nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert());
  memory.def("alike", &alike);
}

}  // namespace warpmma
