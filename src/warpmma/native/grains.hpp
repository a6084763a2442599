// What is known of grains of simulated memory, for every access of every lane: see machine/base/grain_engine.py.
#pragma once

#include <nanobind/nanobind.h>

namespace warpmma {

void bind_grains(nanobind::module_& m);

}  // namespace warpmma
