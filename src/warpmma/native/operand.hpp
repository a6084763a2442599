// An array as its owner describes it, and what the checks of all plans ask of one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "job.hpp"

namespace warpmma {

struct Operand {
  const char* name = "";  // for messages
  bool given = false, whole_numbers = false;
  const char* data = nullptr;
  int size = 0, dimensions = 0;                    // bytes of an element; at most 4
  std::array<int64_t, 4> shape = {}, stride = {};  // strides in bytes
};

[[noreturn]] void wrong(const Operand& x, const std::string& what);

inline void require(bool fulfilled, const char* what) {
  if (!fulfilled) refuse(what);
}

std::string text(const std::array<int64_t, 4>& shape, int dimensions);

// What a unit reads: whole numbers at addresses that their size divides.
void check_elements(const Operand& x);

// Whether elements follow each other, from dimension `from` on.
bool contiguous(const Operand& x, int from);

// The addresses from an array's first byte to its last; none of an empty one. What lies between its rows counts too.
std::pair<uintptr_t, uintptr_t> span(const Operand& x);

// What is written, and something that is read meanwhile.
void check_apart(const Operand& written, const Operand& other);

}  // namespace warpmma
