// What is to be computed: the parameters of a recipe as numbers, and where elements sit in registers. The Python side
// (arithmetic/dispatch/native.py) fills them in; nothing runs on parameters that check.hpp has not made a plan of.
//
// Every enumerator and every field stands here alone: structs, bindings (module.cpp) and the numbers that Python
// uses are made from these lists, and `_native.pyi` is compared with them (tests/arithmetic/test_native_stub.py). The
// symbols are those of arithmetic/exact/reference.py.
#pragma once

#include <cstdint>
#include <vector>

namespace warpmma {

// As the records of arithmetic/recipes/units.py.
#define WARPMMA_UNITS(NAME) \
  NAME(FusedDotAdd)         \
  NAME(GroupedDotAdd)       \
  NAME(FmaChain)            \
  NAME(FloatChains)         \
  NAME(IntegerSum)          \
  NAME(Popcount)

// As PTX has them; of the f64 chain alone.
#define WARPMMA_ROUNDINGS(NAME) NAME(rn) NAME(rz) NAME(rm) NAME(rp)

#define WARPMMA_NAME(name) name,
enum class Unit : int { WARPMMA_UNITS(WARPMMA_NAME) };
enum class Rounding : int { WARPMMA_ROUNDINGS(WARPMMA_NAME) };
#undef WARPMMA_NAME

// Type, name, value at first, what it is.
#define WARPMMA_FORMAT(FIELD)                                                                         \
  FIELD(bool, integer, false, "else floating-point, in the pattern of IEEE 754")                      \
  FIELD(int, width, 0, "bits of a code")                                                              \
  FIELD(int, fraction_bits, 0, "of the code's field, padding included")                               \
  FIELD(int, emin, 0, "least exponent")                                                               \
  FIELD(int, nominal_emin, 0, "least nominal exponent; another's where elements are converted first") \
  FIELD(uint32_t, magnitude, 0, "mask of the bits that matter, but for the sign")                     \
  FIELD(uint32_t, special_from, 0, "least magnitude that is an infinity or NaN")                      \
  FIELD(uint32_t, infinity, 0, "magnitude of infinity; one that does not occur where there is none")  \
  FIELD(bool, is_signed, false, "of an integer")

#define WARPMMA_TABLE(FIELD)                                               \
  FIELD(std::vector<int32_t>, word, {}, "of each element: which register") \
  FIELD(std::vector<int32_t>, shift, {}, "how far it lies above bit 0")    \
  FIELD(uint32_t, mask, 0, "of an element's bits")

// The last ones are of registers alone; tables are in the order of panels and tiles, matrix by matrix.
#define WARPMMA_PARAMETERS(FIELD)                                                                     \
  FIELD(Unit, unit, Unit::FusedDotAdd, "")                                                            \
  FIELD(Format, a, {}, "")                                                                            \
  FIELD(Format, b, {}, "")                                                                            \
  FIELD(Format, c, {}, "")                                                                            \
  FIELD(Format, d, {}, "")                                                                            \
  FIELD(int, fraction_bits, 0, "F")                                                                   \
  FIELD(int, floor, 0, "Z")                                                                           \
  FIELD(int, result_bits, 23, "fraction bits of the result")                                          \
  FIELD(bool, nearest, false, "rounding of the result")                                               \
  FIELD(bool, after, false, "C is added last")                                                        \
  FIELD(int, k, 0, "products of one instruction; of a sparse one, stored ones")                       \
  FIELD(int, b_k, 0, "rows of B in one instruction")                                                  \
  FIELD(int, step, 0, "products of one step: of a fused step, a group, or a chain")                   \
  FIELD(int, steps, 1, "")                                                                            \
  FIELD(bool, seeded, false, "an f32 chain begins with its first product")                            \
  FIELD(bool, saturate, false, "integers are clamped")                                                \
  FIELD(bool, exclusive, false, "ones are counted of xor; else of and")                               \
  FIELD(Rounding, rounding, Rounding::rn, "of the f64 chain")                                         \
  FIELD(int, scales, 0, "block scales of a row in one instruction")                                   \
  FIELD(bool, sparse, false, "")                                                                      \
  FIELD(std::vector<int32_t>, order, {}, "which product comes where in the steps")                    \
  FIELD(std::vector<double>, scale_value, {}, "of all 256 codes of a scale")                          \
  FIELD(std::vector<int32_t>, scale_exponent, {}, "")                                                 \
  FIELD(int, width, 0, "lanes of the level's tiles")                                                  \
  FIELD(int, rows, 0, "rows of the level's tiles")                                                    \
  FIELD(int, matrices, 1, "that one warp holds")                                                      \
  FIELD(int, registers, 0, "of D, in a lane")                                                         \
  FIELD(int, per_register, 1, "elements of D")                                                        \
  FIELD(Table, a_table, {}, "")                                                                       \
  FIELD(Table, b_table, {}, "")                                                                       \
  FIELD(Table, c_table, {}, "")                                                                       \
  FIELD(std::vector<int32_t>, d_flat, {}, "of each element of D's registers: its place in the tiles") \
  FIELD(std::vector<int32_t>, d_shift, {}, "how far each of a register's elements lies above bit 0")

#define WARPMMA_FIELD(type, name, initial, what) type name = initial;

// A number format of at most 32 bits, or f64, of which only the width counts.
struct Format {
  WARPMMA_FORMAT(WARPMMA_FIELD)
};

// Where the elements of an operand sit in registers.
struct Table {
  WARPMMA_TABLE(WARPMMA_FIELD)
};

struct Parameters {
  WARPMMA_PARAMETERS(WARPMMA_FIELD)
  bool half = false;  // D is f16, says the check; else it is f32 (or s32, or f64)
};

#undef WARPMMA_FIELD

}  // namespace warpmma
