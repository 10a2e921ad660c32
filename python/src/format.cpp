// format: trace files to a Trace and back.
#include <memory>
#include <string>
#include <utility>

#include "bindings.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"

namespace lanescope::python {
namespace {

std::shared_ptr<Trace> read(const std::string& path, const py::object& progress) {
  format::ReadOptions options;
  if (!progress.is_none()) {
    options.progress = [&progress](std::uint64_t done, std::uint64_t total) {
      const py::gil_scoped_acquire acquire;
      try {
        progress(done, total);
      } catch (py::error_already_set& error) {
        error.discard_as_unraisable("lanescope.read_trace: progress");
      }
    };
  }
  return std::make_shared<Trace>(
      value_or_raise(without_gil([&] { return format::open_indexed(path, options); })));
}

void write(const Trace& trace, const std::string& path) {
  value_or_raise(without_gil([&] { return format::write_kineto_json(trace, path); }));
}

}  // namespace

void bind_format(py::module_& m) {
  m.def("read_trace", &read, py::arg("path"), py::arg("progress") = py::none());
  m.def("write_kineto_json", &write, py::arg("trace"), py::arg("path"));
  m.def(
      "kineto_json",
      [](const Trace& trace) {
        return to_str(without_gil([&] { return format::kineto_json_text(trace); }));
      },
      py::arg("trace"));
}

}  // namespace lanescope::python
