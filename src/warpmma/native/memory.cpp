#include "memory.hpp"

#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

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
  memory.def("store", &store, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(),
             nb::arg().noconvert(), nb::arg());
  memory.def("join", &join, nb::arg(), nb::arg(), nb::arg().noconvert());
  memory.def("split", &split, nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg().noconvert());
  memory.def("spread", &spread, nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert());
  memory.def("alike", &alike);
}

}  // namespace warpmma
