// The engine for one instruction set, WARPMMA_X86_64, and the tiles that it is built for: WARPMMA_TILES, which lists
// TILE(name, lanes, rows) for each, and FUNCTIONS(name, lanes) (CMakeLists.txt).
//
// The standard headers come first and are compiled for the oldest processor, so that no function of theirs that the
// linker may share needs a newer one; ours have internal linkage and are compiled for the level's. This is what
// `target_clones` does, but with vectors as wide as each set has them.
#include "level.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

// clang-format off: what follows the first is compiled for the instruction set
#include "instruction_set.hpp"
#include "around.hpp"
#include "engine.hpp"
// clang-format on

namespace warpmma {

#define TILE(name, width, rows)                        \
  void run_##name(const Parameters& p, const Job& j) { \
    if (p.unit == Unit::FmaChain)                      \
      Run<width, rows, uint64_t>(p, j).all();          \
    else                                               \
      Run<width, rows, uint32_t>(p, j).all();          \
  }
#define FUNCTIONS(name, width) \
  void functions_##name(const FunctionTables& t, const FunctionJob& j) { all<width>(t, j); }
WARPMMA_TILES

}  // namespace warpmma

#if WARPMMA_X86_64 && defined(__clang__)
#pragma clang attribute pop
#endif
