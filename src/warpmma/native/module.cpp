// The binding: parameters, plans and runs. See arithmetic/dispatch/native.py for the Python side.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cfenv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "check.hpp"
#include "grains.hpp"
#include "memory.hpp"

namespace nb = nanobind;

namespace warpmma {
namespace {

int mode(Rounding rounding) {
  switch (rounding) {
    case Rounding::rn:
      return FE_TONEAREST;
    case Rounding::rz:
      return FE_TOWARDZERO;
    case Rounding::rm:
      return FE_DOWNWARD;
    case Rounding::rp:
      return FE_UPWARD;
  }
  refuse("there is no such rounding mode");
}

// IEEE 754's default environment, or with another rounding mode; what was there comes back at the end. A caller may
// have asked its processor to flush subnormals.
class Environment {
 public:
  explicit Environment(Rounding rounding) {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
    std::fesetround(mode(rounding));
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

void execute(const Plan& plan, int level, nb::handle a, nb::handle b, nb::handle c, nb::handle d, bool registers,
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
  const Job job = plan.job(of, registers, m, n, k, given);
  nb::gil_scoped_release release;
  Environment environment(plan.parameters().rounding);
  of.run(plan.parameters(), job);
}

void execute_function(const FunctionPlan& plan, int level, nb::handle codes, nb::handle dividend, nb::handle out) {
  const Level& of = level_of(level);
  const View views[] = {View(codes, "codes"), View(dividend, "dividend"), View(out, "out", true)};
  const FunctionJob job = plan.job(views[0].operand(), views[1].operand(), views[2].operand());
  nb::gil_scoped_release release;
  Environment environment(Rounding::rn);
  of.functions(plan.tables(), job);
}

void execute_elements(const ElementPlan& plan, int level, nb::handle a, nb::handle b, nb::handle c, nb::handle out,
                      int parts, int part) {
  const Level& of = level_of(level);
  const View views[] = {View(a, "a"), View(b, "b"), View(c, "c"), View(out, "out", true)};
  const ElementJob job =
      plan.job(views[0].operand(), views[1].operand(), views[2].operand(), views[3].operand(), parts, part);
  nb::gil_scoped_release release;
  Environment environment(Rounding::rn);
  of.elements(plan.parameters(), job);
}

// A field of parameters; an enumeration's as its number, for whatever that is, the check sees it.
template <class Class, class Value>
void bind(nb::class_<Class>& to, const char* name, Value Class::* field, const char* what) {
  if constexpr (std::is_enum_v<Value>)
    to.def_prop_rw(
        name, [field](const Class& x) { return static_cast<int>(x.*field); },
        [field](Class& x, int value) { x.*field = static_cast<Value>(value); }, what);
  else
    to.def_rw(name, field, what);
}

nb::list levels() {
  nb::list found;
  int number = 0;
  for (const Level& level : kLevels) {
    if (level.supported()) found.append(nb::make_tuple(level.name, number, level.width, level.rows));
    number++;
  }
  return found;
}

}  // namespace
}  // namespace warpmma

NB_MODULE(_native, m) {
  using namespace warpmma;
  nb::set_leak_warnings(false);

  nb::enum_<Unit> unit(m, "Unit", nb::is_arithmetic());
  nb::enum_<Rounding> rounding(m, "Rounding", nb::is_arithmetic());
  nb::enum_<Law> law(m, "Law", nb::is_arithmetic());
  nb::enum_<After> after(m, "After", nb::is_arithmetic());
  nb::enum_<ElementOp> element_op(m, "ElementOp", nb::is_arithmetic());
  nb::enum_<Element> element(m, "Element", nb::is_arithmetic());
  nb::enum_<Comparison> comparison(m, "Comparison", nb::is_arithmetic());
#define UNIT(name) unit.value(#name, Unit::name);
#define ROUNDING(name) rounding.value(#name, Rounding::name);
#define LAW(name) law.value(#name, Law::name);
#define AFTER(name) after.value(#name, After::name);
#define ELEMENT_OP(name) element_op.value(#name, ElementOp::name);
#define ELEMENT(name) element.value(#name, Element::name);
#define COMPARISON(name) comparison.value(#name, Comparison::name);
  WARPMMA_UNITS(UNIT)
  WARPMMA_ROUNDINGS(ROUNDING)
  WARPMMA_LAWS(LAW)
  WARPMMA_AFTERS(AFTER)
  WARPMMA_ELEMENT_OPS(ELEMENT_OP)
  WARPMMA_ELEMENTS(ELEMENT)
  WARPMMA_COMPARISONS(COMPARISON)

  nb::class_<Format> format(m, "Format");
  nb::class_<Table> table(m, "Table");
  nb::class_<Parameters> parameters(m, "Parameters");
  nb::class_<Scaling> scaling(m, "Scaling");
  nb::class_<Step> step(m, "Step");
  nb::class_<Kept> kept(m, "Kept");
  nb::class_<FunctionParameters> function(m, "FunctionParameters");
  nb::class_<ElementParameters> elementwise(m, "ElementParameters");
  format.def(nb::init<>());
  table.def(nb::init<>());
  parameters.def(nb::init<>());
  scaling.def(nb::init<>());
  step.def(nb::init<>());
  kept.def(nb::init<>());
  function.def(nb::init<>());
  elementwise.def(nb::init<>());
#define OF_FORMAT(type, name, initial, what) bind(format, #name, &Format::name, what);
#define OF_TABLE(type, name, initial, what) bind(table, #name, &Table::name, what);
#define OF_PARAMETERS(type, name, initial, what) bind(parameters, #name, &Parameters::name, what);
#define OF_SCALING(type, name, initial, what) bind(scaling, #name, &Scaling::name, what);
#define OF_STEP(type, name, initial, what) bind(step, #name, &Step::name, what);
#define OF_KEPT(type, name, initial, what) bind(kept, #name, &Kept::name, what);
#define OF_ELEMENTS(type, name, initial, what) bind(elementwise, #name, &ElementParameters::name, what);
#define OF_FUNCTION(type, name, initial, what) bind(function, #name, &FunctionParameters::name, what);
  WARPMMA_FORMAT(OF_FORMAT)
  WARPMMA_TABLE(OF_TABLE)
  WARPMMA_PARAMETERS(OF_PARAMETERS)
  WARPMMA_SCALING(OF_SCALING)
  WARPMMA_STEP(OF_STEP)
  WARPMMA_KEPT(OF_KEPT)
  WARPMMA_FUNCTION(OF_FUNCTION)
  WARPMMA_ELEMENTWISE(OF_ELEMENTS)

  bind_memory(m);
  bind_grains(m);
  nb::class_<Plan>(m, "Plan").def(nb::init<const Parameters&>());
  nb::class_<FunctionPlan>(m, "FunctionPlan").def(nb::init<const FunctionParameters&>());
  nb::class_<ElementPlan>(m, "ElementPlan").def(nb::init<const ElementParameters&>());
  m.def("levels", &levels);
  m.def("execute_elements", &execute_elements, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(),
        nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg());
  m.def("execute_function", &execute_function, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(),
        nb::arg().none());
  m.def("execute", &execute, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(),
        nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(),
        nb::arg().none(), nb::arg() = std::vector<std::pair<int64_t, bool>>(), nb::arg().none() = nb::none());
}
