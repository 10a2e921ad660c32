// Shared by the binding files: one bind_* function per C++ folder, errors as exceptions, text as
// str.
#pragma once
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis {
enum class TableStyle : std::uint8_t;
}

namespace lanescope::python {

namespace py = pybind11;

void bind_base(py::module_& m);
void bind_model(py::module_& m);
void bind_format(py::module_& m);
void bind_names(py::module_& m);
void bind_analysis(py::module_& m);
void bind_torch_events(py::module_& m);
void bind_explain(py::module_& m);
void bind_ranks(py::module_& m);
void bind_record(py::module_& m);
void bind_record_function(py::module_& m);
void bind_sql(py::module_& m);
void bind_samples(py::module_& m);
void bind_stacks(py::module_& m);
void bind_tracer(py::module_& m);

// A Trace is shared: numpy views, tables and profiles keep it alive.
using TracePtr = std::shared_ptr<const Trace>;

// Sets the lanescope.Error subclass of `error.code` and throws. With the GIL.
[[noreturn]] void raise(const Error& error);

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}
inline void value_or_raise(Result<void> result) {
  if (!result) raise(result.error());
}

// Files hold bytes that promise to be UTF-8; what is not becomes U+FFFD.
py::str to_str(std::string_view text);

py::list strings(const std::vector<std::string>& texts);

// "torch" or "lanescope"; raises for another text.
analysis::TableStyle parse_style(const std::string& text);

// Runs `work` without the GIL and gives back its result.
template <typename Work>
auto without_gil(Work&& work) {
  py::gil_scoped_release release;
  return std::forward<Work>(work)();
}

}  // namespace lanescope::python
