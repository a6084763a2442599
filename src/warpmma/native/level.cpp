// The engine for one instruction set and vector width, which the build names (CMakeLists.txt).
//
// `flatten` inlines all of it into one function with that instruction set: nothing compiled for a newer processor can be
// linked into what an older one runs. This is what `target_clones` does, but with vectors as wide as each set has them.
#include "engine.hpp"
#include "level.hpp"

#define WARPMMA_JOIN(a, b) a##b
#define WARPMMA_RUN(name) WARPMMA_JOIN(run_, name)

#if defined(WARPMMA_ARCH) && defined(__x86_64__)
#define WARPMMA_TARGET __attribute__((target("arch=" WARPMMA_ARCH), flatten))
#else
#define WARPMMA_TARGET __attribute__((flatten))
#endif

namespace warpmma {

#if !defined(WARPMMA_ARCH) || defined(__x86_64__)
WARPMMA_TARGET void WARPMMA_RUN(WARPMMA_NAME)(const Plan& p, const Job& j) {
  if (p.unit == Unit::f64_chain)
    run<WARPMMA_WIDTH, WARPMMA_ROWS, uint64_t>(p, j);
  else
    run<WARPMMA_WIDTH, WARPMMA_ROWS, uint32_t>(p, j);
}
#endif

}  // namespace warpmma
