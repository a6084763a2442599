// The binding: plans and runs. See arithmetic/native.py for the Python side.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cfenv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"

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

// An array of Python's for as long as it is looked at. Its elements stay where they are without the interpreter's lock.
class View {
 public:
  explicit View(nb::handle array, const char* name, bool written = false) {
    operand_.name = name;
    if (array.is_none()) return;
    if (PyObject_GetBuffer(array.ptr(), &buffer_, written ? PyBUF_RECORDS : PyBUF_RECORDS_RO) != 0) {
      PyErr_Clear();
      throw std::invalid_argument(std::string(name) + (written ? " is no array that can be written" : " is no array"));
    }
    operand_.given = true;
    operand_.data = static_cast<const char*>(buffer_.buf);
    operand_.size = static_cast<int>(buffer_.itemsize);
    operand_.dimensions = buffer_.ndim;
    const std::string_view format = buffer_.format ? buffer_.format : "";
    operand_.whole_numbers = format.size() == 1 && std::string_view("BHILQ").find(format) != std::string_view::npos;
    if (buffer_.ndim < 1 || buffer_.ndim > 4) {
      PyBuffer_Release(&buffer_);
      throw std::invalid_argument(std::string(name) + " does not have 1 to 4 dimensions");
    }
    std::copy_n(buffer_.shape, buffer_.ndim, operand_.shape.begin());
    std::copy_n(buffer_.strides, buffer_.ndim, operand_.stride.begin());
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() { PyBuffer_Release(&buffer_); }
  const Operand& operand() const { return operand_; }

 private:
  Py_buffer buffer_ = {};
  Operand operand_;
};

void execute(const Checked& checked, int level, nb::handle a, nb::handle b, nb::handle c, nb::handle d, bool registers,
             int64_t m, int64_t n, int64_t k, nb::handle chosen, nb::handle scale_a, nb::handle scale_b,
             const std::vector<std::pair<int64_t, bool>>& ends, nb::handle sums) {
  const Level& of = level_of(level);
  const View views[] = {View(a, "A"),
                        View(b, "B"),
                        View(c, "C"),
                        View(d, "D", true),
                        View(chosen, "chosen"),
                        View(scale_a, "scale_a"),
                        View(scale_b, "scale_b"),
                        View(sums, "sums", true)};
  Operands given = {views[0].operand(), views[1].operand(), views[2].operand(),
                    views[3].operand(), views[4].operand(), views[5].operand(),
                    views[6].operand(), views[7].operand(), {}};
  for (const auto& [after, slice] : ends) given.ends.push_back({after, slice});
  const Job job = checked.job(of, registers, m, n, k, given);
  nb::gil_scoped_release release;
  Environment environment(checked.plan().rounding);
  of.run(checked.plan(), job);
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
      .def_rw("d", &Plan::d)
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
      .def_rw("width", &Plan::width)
      .def_rw("rows", &Plan::rows)
      .def_rw("matrices", &Plan::matrices)
      .def_rw("registers", &Plan::registers)
      .def_rw("per_register", &Plan::per_register)
      .def_rw("a_table", &Plan::a_table)
      .def_rw("b_table", &Plan::b_table)
      .def_rw("c_table", &Plan::c_table)
      .def_rw("d_flat", &Plan::d_flat)
      .def_rw("d_shift", &Plan::d_shift);
  nb::class_<Checked>(m, "Checked").def(nb::init<const Plan&>());
  m.def("execute", &execute, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(),
        nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(),
        nb::arg().none(), nb::arg() = std::vector<std::pair<int64_t, bool>>(), nb::arg().none() = nb::none());
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
