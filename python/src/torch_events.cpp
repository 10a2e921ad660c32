// analysis: torch's event list, as rows and as columns.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "bindings.h"
#include "lanescope/analysis/call_stacks.h"
#include "lanescope/analysis/operator_inputs.h"
#include "lanescope/analysis/torch_events.h"

namespace lanescope::python {
namespace {

using analysis::TorchEvent;
using analysis::TorchEvents;

// One event, as the package's FunctionEvent reads it.
struct EventRow {
  std::optional<std::uint32_t> slice, parent;
  std::string name;
  double start_us = 0, end_us = 0;
  std::uint32_t thread = 0;
  bool on_device = false, is_annotation = false, is_async = false;
  std::int64_t cpu_memory_bytes = 0, device_memory_bytes = 0;
  std::vector<std::uint32_t> kernels, children;
  std::string category, overload;
  py::object process = py::none(), os_thread = py::none();  // as the trace has them
};

py::object number_or_none(const Scalar& scalar) {
  return scalar.is_text ? py::object(py::none()) : py::int_(scalar.number);
}

EventRow row_of(const TorchEvents& list, const Trace& trace, std::size_t at) {
  if (at >= list.events.size()) throw py::index_error("event " + std::to_string(at));
  const TorchEvent& event = list.events[at];
  EventRow row;
  if (event.slice != kNone<SliceId>) row.slice = raw(event.slice);
  if (event.parent != TorchEvent::kNoEvent) row.parent = event.parent;
  row.name = list.names[event.name];
  row.start_us = event.start_us;
  row.end_us = event.end_us;
  row.thread = event.thread;
  row.on_device = event.on_device;
  row.is_annotation = event.is_annotation;
  row.is_async = event.is_async;
  row.cpu_memory_bytes = event.cpu_memory_bytes;
  row.device_memory_bytes = event.device_memory_bytes;
  row.overload = list.names[event.overload];
  if (event.slice != kNone<SliceId>) {
    const CategoryId category = trace.slices().category[raw(event.slice)];
    row.category = trace.text(trace.categories()[raw(category)].text);
    const Track& track = trace.track(event.slice);
    row.os_thread = number_or_none(track.tid);
    if (track.process != kNone<ProcessId>)
      row.process = number_or_none(trace.process(track.process).pid);
  }
  const auto kernels = list.kernels.begin() + event.kernels_first;
  row.kernels.assign(kernels, kernels + event.kernels_count);
  for (std::uint32_t child = event.first_child; child != TorchEvent::kNoEvent;
       child = list.events[child].next_sibling) {
    row.children.push_back(child);
  }
  return row;
}

std::uint64_t flops_of(const TorchEvents& list, const Trace& trace, std::size_t at) {
  if (at >= list.events.size()) throw py::index_error("event " + std::to_string(at));
  const TorchEvent& event = list.events[at];
  if (event.slice == kNone<SliceId> || trace.kind(event.slice) != CategoryKind::kCpuOp) return 0;
  const ArgsView args = trace.slice_args(event.slice);
  const auto text = [&](ArgKey key) {
    const auto id = args.text(key);
    return id ? trace.text(*id) : std::string_view();
  };
  return analysis::count_flops({list.names[event.name], text(ArgKey::kInputDims),
                                text(ArgKey::kInputType), text(ArgKey::kConcreteInputs)});
}

template <typename T>
py::object field_view(const py::object& owner, const TorchEvents& list, T TorchEvent::*field) {
  using Value = typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>,
                                            std::type_identity<T>>::type;
  const T* first = list.events.empty() ? nullptr : &(list.events.front().*field);
  py::array_t<Value> array({static_cast<py::ssize_t>(list.events.size())},
                           {static_cast<py::ssize_t>(sizeof(TorchEvent))},
                           reinterpret_cast<const Value*>(first), owner);
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

py::object column(const py::object& self, const std::string& name) {
  const auto& list = self.cast<const TorchEvents&>();
  if (name == "slice") return field_view(self, list, &TorchEvent::slice);
  if (name == "name_id") return field_view(self, list, &TorchEvent::name);
  if (name == "start_us") return field_view(self, list, &TorchEvent::start_us);
  if (name == "end_us") return field_view(self, list, &TorchEvent::end_us);
  if (name == "thread") return field_view(self, list, &TorchEvent::thread);
  if (name == "on_device") return field_view(self, list, &TorchEvent::on_device);
  if (name == "is_annotation") return field_view(self, list, &TorchEvent::is_annotation);
  if (name == "is_removed") return field_view(self, list, &TorchEvent::is_removed);
  if (name == "parent") return field_view(self, list, &TorchEvent::parent);
  if (name == "cpu_memory_bytes") return field_view(self, list, &TorchEvent::cpu_memory_bytes);
  if (name == "device_memory_bytes")
    return field_view(self, list, &TorchEvent::device_memory_bytes);
  raise({Errc::kInvalidArgument, "no column \"" + name +
                                     "\"; there are slice, name_id, start_us, end_us, thread, "
                                     "on_device, is_annotation, is_removed, parent, "
                                     "cpu_memory_bytes, device_memory_bytes"});
}

py::list kept(const TorchEvents& list) {
  py::list indexes;
  for (std::size_t i = 0; i < list.events.size(); ++i) {
    if (!list.events[i].is_removed) indexes.append(i);
  }
  return indexes;
}

}  // namespace

void bind_torch_events(py::module_& m) {
  py::class_<EventRow>(m, "EventRow")
      .def_readonly("slice", &EventRow::slice)
      .def_readonly("parent", &EventRow::parent)
      .def_property_readonly("name", [](const EventRow& row) { return to_str(row.name); })
      .def_readonly("start_us", &EventRow::start_us)
      .def_readonly("end_us", &EventRow::end_us)
      .def_readonly("thread", &EventRow::thread)
      .def_readonly("on_device", &EventRow::on_device)
      .def_readonly("is_annotation", &EventRow::is_annotation)
      .def_readonly("is_async", &EventRow::is_async)
      .def_readonly("cpu_memory_bytes", &EventRow::cpu_memory_bytes)
      .def_readonly("device_memory_bytes", &EventRow::device_memory_bytes)
      .def_readonly("kernels", &EventRow::kernels)
      .def_property_readonly("category", [](const EventRow& row) { return to_str(row.category); })
      .def_property_readonly("overload", [](const EventRow& row) { return to_str(row.overload); })
      .def_readonly("process", &EventRow::process)
      .def_readonly("os_thread", &EventRow::os_thread)
      .def_readonly("children", &EventRow::children);
  py::class_<TorchEvents>(m, "TorchEvents")
      .def("__len__", [](const TorchEvents& list) { return list.events.size(); })
      .def_property_readonly("device", [](const TorchEvents& list) { return to_str(list.device); })
      .def_property_readonly("names", [](const TorchEvents& list) { return strings(list.names); })
      .def_property_readonly("kept", &kept)
      .def("row", &row_of, py::arg("trace"), py::arg("at"))
      .def("flops", &flops_of, py::arg("trace"), py::arg("at"))
      .def("column", &column, py::arg("name"));
  py::class_<analysis::CallStacks>(m, "CallStacks")
      .def(
          "of",
          [](const analysis::CallStacks& all, std::size_t at) {
            if (at >= all.stack_of.size()) throw py::index_error("event " + std::to_string(at));
            return strings(all.stacks[all.stack_of[at]]);
          },
          py::arg("at"));
  m.def(
      "call_stacks",
      [](const Trace& trace, const TorchEvents& list) {
        return without_gil([&] { return analysis::build_call_stacks(trace, list); });
      },
      py::arg("trace"), py::arg("events"));
  m.def(
      "torch_events",
      [](const Trace& trace, const std::string& style, bool own_frames) {
        const analysis::TableStyle parsed = parse_style(style);
        return without_gil([&] { return analysis::build_torch_events(trace, parsed, own_frames); });
      },
      py::arg("trace"), py::kw_only(), py::arg("style") = "torch", py::arg("own_frames") = false);
}

}  // namespace lanescope::python
