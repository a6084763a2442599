#include "operand.hpp"

#include <stdexcept>

namespace warpmma {

void refuse(const char* what) { throw std::invalid_argument(what); }

void wrong(const Operand& x, const std::string& what) { throw std::invalid_argument(std::string(x.name) + " " + what); }

std::string text(const std::array<int64_t, 4>& shape, int dimensions) {
  std::string out = "[";
  for (int i = 0; i < dimensions; i++) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

void check_elements(const Operand& x) {
  if (!x.given) wrong(x, "is missing");
  bool aligned = x.whole_numbers && reinterpret_cast<uintptr_t>(x.data) % x.size == 0;
  for (int i = 0; i < x.dimensions; i++) aligned &= x.shape[i] <= 1 || x.stride[i] % x.size == 0;
  if (!aligned) wrong(x, "is not of unsigned integers, aligned and in this machine's byte order");
}

bool contiguous(const Operand& x, int from) {
  int64_t stride = x.size;
  for (int i = x.dimensions - 1; i >= from; i--) {
    if (x.shape[i] > 1 && x.stride[i] != stride) return false;
    stride *= x.shape[i];
  }
  return true;
}

std::pair<uintptr_t, uintptr_t> span(const Operand& x) {
  uintptr_t first = reinterpret_cast<uintptr_t>(x.data), last = first + x.size;
  for (int i = 0; i < x.dimensions; i++) {
    if (x.shape[i] == 0) return {};
    (x.stride[i] < 0 ? first : last) += (x.shape[i] - 1) * x.stride[i];
  }
  return {first, last};
}

void check_apart(const Operand& written, const Operand& other) {
  const auto [first, last] = span(written);
  const auto [from, to] = span(other);
  if (written.given && other.given && first < to && from < last)
    wrong(written, "is written and shares memory with " + std::string(other.name));
}

}  // namespace warpmma
