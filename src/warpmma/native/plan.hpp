// What is to be computed: the parameters of a recipe as numbers, and where operands lie. The Python side fills these in
// (arithmetic/native.py); the symbols are those of arithmetic/reference.py. Nothing runs that check.hpp has not seen.
#pragma once

#include <cstdint>
#include <vector>

namespace warpmma {

enum class Unit { fused, grouped, f64_chain, f32_chains, integer, popcount };

// A number format of at most 32 bits: floating-point in the pattern of IEEE 754, or an integer.
struct Format {
  bool integer = false;
  int width = 0;              // bits of a code
  int fraction_bits = 0;      // of the code's field, padding included
  int emin = 0;               // least exponent
  int nominal_emin = 0;       // least nominal exponent; another's where elements are converted first
  uint32_t magnitude = 0;     // mask of the bits that matter, but for the sign
  uint32_t special_from = 0;  // least magnitude that is an infinity or NaN
  uint32_t infinity = 0;      // magnitude of infinity; one that does not occur where there is none
  bool is_signed = false;     // of an integer
};

struct Plan {
  Unit unit = Unit::fused;
  Format a, b, c, d;
  bool half = false;  // D is f16, says the check; else it is f32 (or s32, or f64)
  int fraction_bits = 0, floor = 0, result_bits = 23;
  bool nearest = false;  // rounding of the result
  bool after = false;    // C is added last
  int k = 0;             // products of one instruction; of a sparse one, stored ones
  int b_k = 0;           // rows of B in one instruction
  int step = 0;          // products of one step: of a fused step, a group, or a chain
  int steps = 1;
  bool seeded = false;     // an f32 chain begins with its first product
  bool saturate = false;   // integers are clamped
  bool exclusive = false;  // popcount of xor; else of and
  int rounding = 0;        // of the f64 chain, as of <cfenv>
  int scales = 0;          // block scales of a row in one instruction
  bool sparse = false;
  std::vector<int32_t> order;       // which product comes where in the steps
  std::vector<double> scale_value;  // of all 256 codes of a scale
  std::vector<int32_t> scale_exponent;

  // Registers: how many matrices one warp holds, and where elements sit.
  struct Table {
    std::vector<int32_t> word, shift;
    uint32_t mask = 0;
  };
  int width = 0, rows = 0;  // of the level's tiles
  int matrices = 1, registers = 0, per_register = 1;
  Table a_table, b_table, c_table;  // in the order of panels and tiles, matrix by matrix
  std::vector<int32_t> d_flat, d_shift;
};

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
