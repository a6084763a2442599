// The engine's instruction sets and vector widths, the best first; each is a translation unit made of level.cpp.
#pragma once

#include "elements.hpp"
#include "functions.hpp"
#include "job.hpp"
#include "parameters.hpp"
#include "processor.hpp"

namespace warpmma {

void run_v4(const Parameters&, const Job&);
void run_v4_half(const Parameters&, const Job&);
void run_v3(const Parameters&, const Job&);
void run_plain(const Parameters&, const Job&);
void functions_v4(const FunctionTables&, const FunctionJob&);
void functions_v3(const FunctionTables&, const FunctionJob&);
void functions_plain(const FunctionTables&, const FunctionJob&);
void elements_v4(const ElementParameters&, const ElementJob&);
void elements_v3(const ElementParameters&, const ElementJob&);
void elements_plain(const ElementParameters&, const ElementJob&);

struct Level {
  const char* name;
  int width, rows;  // of a tile
  bool (*supported)();
  void (*run)(const Parameters&, const Job&);
  void (*functions)(const FunctionTables&, const FunctionJob&);
  void (*elements)(const ElementParameters&, const ElementJob&);
};

inline const Level kLevels[] = {
#if defined(__x86_64__)
    {"x86-64-v4", 16, 8, [] { return x86_64_level() >= 4; }, run_v4, functions_v4, elements_v4},
    {"x86-64-v4", 8, 8, [] { return x86_64_level() >= 4; }, run_v4_half, functions_v4, elements_v4},
    {"x86-64-v3", 8, 4, [] { return x86_64_level() >= 3; }, run_v3, functions_v3, elements_v3},
#endif
    {"plain", 4, 4, [] { return true; }, run_plain, functions_plain, elements_plain},
};

}  // namespace warpmma
