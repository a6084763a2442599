// One run of a plan: which operands, and where they lie. check.hpp makes it of arrays.
#pragma once

#include <cstdint>
#include <vector>

namespace warpmma {

// An operand: a matrix of codes, or registers (then only `data` and `batch` count).
struct Source {
  const char* data = nullptr;
  int size = 0;                             // bytes of an element
  int64_t batch = 0, outer = 0, along = 0;  // strides in elements: to the next batch, row (or column), and k
};

// Of partial sums: where a chain ends, and whether a slice of k ends there too.
struct End {
  int64_t after = 0;  // instructions of the job
  bool slice = false;
};

struct Job {
  int64_t batch = 0, m = 0, n = 0, k = 0;  // k in stored products
  Source a, b, c, chosen, scale_a, scale_b;
  char* d = nullptr;  // codes of D or registers, contiguous
  int d_size = 0;
  bool registers = false;
  // Where chains end, ascending and not beyond k; the next begins at +0. What a chain came to is added in f32: to the
  // sum of its slice, and that to the total at the slice's end. Both are codes of f32, [batch][m][n], read and written.
  std::vector<End> ends;
  char *slice_sum = nullptr, *total = nullptr;
};

// End a run, or do not begin one, with an error that Python sees.
[[noreturn]] void refuse(const char* what);

}  // namespace warpmma
