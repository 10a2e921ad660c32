// format: trace files to a Trace and back.
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings.h"
#include "lanescope/format/index_file/index_place.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/profiler/newest_trace.h"
#include "lanescope/view/trace_part.h"

namespace lanescope::python {
namespace {

// The part that was asked for; a part without events is a Trace without rows.
Result<Trace> part_of(Trace whole, const view::PartAsked& asked, const view::StepNote& note) {
  if (!asked.is_given()) return whole;
  LANESCOPE_TRY(view::CroppedTrace part, view::take_part(whole, asked, view::Edges::kCut, note));
  return std::move(part.trace);
}

std::shared_ptr<Trace> read(const std::string& path, const py::object& progress,
                            const std::string& window, std::optional<std::int64_t> step,
                            const std::string& categories) {
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
  const view::PartAsked asked{window, step, categories};
  if (!window.empty() && step)
    value_or_raise(
        Result<void>(Error{Errc::kInvalidArgument, "expected a window or a step, found both"}));
  value_or_raise(view::parse_window(window));  // before a long read
  return std::make_shared<Trace>(value_or_raise(without_gil([&]() -> Result<Trace> {
    LANESCOPE_TRY(const format::IndexOptions index, format::index_options_from_environment());
    format::KeptSections kept;
    kept.layer = view::steps_layer();
    LANESCOPE_TRY(Trace whole, format::open_indexed(path, options, index, step ? &kept : nullptr));
    return part_of(std::move(whole), asked, {kept.note, kept.remember_note});
  })));
}

// Path, what to tell the user, and whether that says more than the folder did.
py::tuple newest_in(const std::string& folder) {
  const NewestTrace newest = value_or_raise(without_gil([&] { return newest_trace_in(folder); }));
  return py::make_tuple(newest.path, to_str(newest.line), newest.is_choice);
}

// About a file of another program under the name of the trace's index.
py::object other_file_text(const std::string& trace) {
  format::OtherFiles others;
  others.look_next_to(trace);
  const auto text = others.text();
  return text ? py::object(to_str(*text)) : py::object(py::none());
}

void write(const Trace& trace, const std::string& path) {
  value_or_raise(without_gil([&] { return format::write_kineto_json(trace, path); }));
}

}  // namespace

void bind_format(py::module_& m) {
  m.def("read_trace", &read, py::arg("path"), py::arg("progress") = py::none(), py::kw_only(),
        py::arg("window") = "", py::arg("step") = py::none(), py::arg("category") = "");
  m.def("other_file_text", &other_file_text, py::arg("trace"));
  m.def("newest_trace_in", &newest_in, py::arg("folder"));
  m.def("write_kineto_json", &write, py::arg("trace"), py::arg("path"));
  m.def(
      "kineto_json",
      [](const Trace& trace) {
        return to_str(without_gil([&] { return format::kineto_json_text(trace); }));
      },
      py::arg("trace"));
}

}  // namespace lanescope::python
