// What simulated memory does for every access of every lane: see machine/base/memory_engine.py.
#pragma once

#include <nanobind/nanobind.h>

namespace warpmma {

void bind_memory(nanobind::module_& m);

}  // namespace warpmma
