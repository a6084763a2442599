// The binding: plans and runs. See arithmetic/native.py for the Python side.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cfenv>

#include "level.hpp"

namespace nb = nanobind;

namespace warpmma {
namespace {

// IEEE 754's default environment, or with another rounding mode; what was there comes back at the end. A caller may
// have asked its processor to flush subnormals.
class Environment {
 public:
  explicit Environment(int rounding) {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
    constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(modes[rounding]);
  }
  ~Environment() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
};

using Array = nb::ndarray<nb::ro, nb::device::cpu>;
using Ends = nb::ndarray<const int64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<uint32_t, nb::shape<2, -1, -1, -1>, nb::c_contig, nb::device::cpu>;

Source source(const Array& x, bool registers) {
  Source s;
  if (!x.is_valid()) return s;
  s.data = static_cast<const char*>(x.data());
  s.size = static_cast<int>(x.itemsize());
  s.batch = x.stride(0);
  if (!registers) {
    s.outer = x.stride(1);
    s.along = x.stride(2);
  }
  return s;
}

// Sums of f32 accumulators alone, of matrices; and where chains end.
void partial_sums(const Plan& p, Job& j, const Ends& ends, const Sums& sums) {
  const bool f32 = p.unit != Unit::integer && p.unit != Unit::popcount && p.unit != Unit::f64_chain && !p.half;
  const auto shape = [&](int axis) { return static_cast<int64_t>(sums.shape(axis)); };
  if (!f32 || j.registers || !ends.is_valid() || shape(1) != j.batch || shape(2) != j.m || shape(3) != j.n)
    throw nb::value_error("partial sums are of f32, [2, batch, m, n], and have ends");
  for (size_t i = 0; i < ends.shape(0); i++) {
    const int64_t after = ends(i, 0);
    if (after <= (i ? ends(i - 1, 0) : 0) || after > j.k / p.k)
      throw nb::value_error("chains end after 1 to all instructions, ascending");
    j.ends.push_back({after, ends(i, 1) != 0});
  }
  j.slice_sum = reinterpret_cast<char*>(sums.data());
  j.total = j.slice_sum + sums.nbytes() / 2;
}

void execute(const Plan& p, int level, const Array& a, const Array& b, const Array& c, const Array& d, bool registers,
             int64_t m, int64_t n, int64_t k, const Array& chosen, const Array& scale_a, const Array& scale_b,
             const Ends& ends, const Sums& sums) {
  Job j;
  j.batch = static_cast<int64_t>(d.shape(0));
  j.m = m;
  j.n = n;
  j.k = k;
  j.a = source(a, registers);
  j.b = source(b, registers);
  j.c = source(c, registers);
  j.chosen = source(chosen, false);
  j.scale_a = source(scale_a, false);
  j.scale_b = source(scale_b, false);
  // Columns of B are its outer dimension here, and so of its scales.
  std::swap(j.b.outer, j.b.along);
  std::swap(j.scale_b.outer, j.scale_b.along);
  j.d = const_cast<char*>(static_cast<const char*>(d.data()));
  j.d_size = static_cast<int>(d.itemsize());
  j.registers = registers;
  if (sums.is_valid()) partial_sums(p, j, ends, sums);
  nb::gil_scoped_release release;
  Environment environment(p.rounding);
  kLevels[level].run(p, j);
}

}  // namespace
}  // namespace warpmma

NB_MODULE(_native, m) {
  using namespace warpmma;
  nb::set_leak_warnings(false);
  nb::class_<Format>(m, "Format")
      .def(nb::init<>())
      .def_rw("integer", &Format::integer)
      .def_rw("width", &Format::width)
      .def_rw("fraction_bits", &Format::fraction_bits)
      .def_rw("emin", &Format::emin)
      .def_rw("nominal_emin", &Format::nominal_emin)
      .def_rw("magnitude", &Format::magnitude)
      .def_rw("special_from", &Format::special_from)
      .def_rw("infinity", &Format::infinity)
      .def_rw("is_signed", &Format::is_signed);
  nb::class_<Plan::Table>(m, "Table")
      .def(nb::init<>())
      .def_rw("word", &Plan::Table::word)
      .def_rw("shift", &Plan::Table::shift)
      .def_rw("mask", &Plan::Table::mask);
  nb::class_<Plan>(m, "Plan")
      .def(nb::init<>())
      .def_prop_rw(
          "unit", [](const Plan& p) { return static_cast<int>(p.unit); },
          [](Plan& p, int unit) { p.unit = static_cast<Unit>(unit); })
      .def_rw("a", &Plan::a)
      .def_rw("b", &Plan::b)
      .def_rw("c", &Plan::c)
      .def_rw("half", &Plan::half)
      .def_rw("fraction_bits", &Plan::fraction_bits)
      .def_rw("floor", &Plan::floor)
      .def_rw("result_bits", &Plan::result_bits)
      .def_rw("nearest", &Plan::nearest)
      .def_rw("after", &Plan::after)
      .def_rw("k", &Plan::k)
      .def_rw("b_k", &Plan::b_k)
      .def_rw("step", &Plan::step)
      .def_rw("steps", &Plan::steps)
      .def_rw("seeded", &Plan::seeded)
      .def_rw("saturate", &Plan::saturate)
      .def_rw("exclusive", &Plan::exclusive)
      .def_rw("rounding", &Plan::rounding)
      .def_rw("scales", &Plan::scales)
      .def_rw("sparse", &Plan::sparse)
      .def_rw("order", &Plan::order)
      .def_rw("scale_value", &Plan::scale_value)
      .def_rw("scale_exponent", &Plan::scale_exponent)
      .def_rw("matrices", &Plan::matrices)
      .def_rw("registers", &Plan::registers)
      .def_rw("per_register", &Plan::per_register)
      .def_rw("a_table", &Plan::a_table)
      .def_rw("b_table", &Plan::b_table)
      .def_rw("c_table", &Plan::c_table)
      .def_rw("d_flat", &Plan::d_flat)
      .def_rw("d_shift", &Plan::d_shift);
  m.def("execute", &execute, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(),
        nb::arg("ends").noconvert().none() = nb::none(), nb::arg("sums").noconvert().none() = nb::none());
  m.def("levels", [] {
    nb::list found;
    int number = 0;
    for (const Level& level : kLevels) {
      if (level.supported()) found.append(nb::make_tuple(level.name, number, level.width, level.rows));
      number++;
    }
    return found;
  });
}
