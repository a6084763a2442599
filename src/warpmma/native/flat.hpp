// Flat arrays of all lanes, as the binding gets them.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>

namespace warpmma {

template <class T>
using Vector = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Words = Vector<uint64_t>;
using KnownWords = Vector<const uint64_t>;
using Places = Vector<const int64_t>;

[[noreturn]] void refuse(const char* what);  // as of other operands

}  // namespace warpmma
