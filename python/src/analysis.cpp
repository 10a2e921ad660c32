// analysis and report: torch's event list as columns, key averages as rows, tables as text.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cmath>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "bindings.h"
#include "lanescope/analysis/call_stacks.h"
#include "lanescope/analysis/dispatch_tree.h"
#include "lanescope/analysis/key_averages.h"
#include "lanescope/analysis/operator_inputs.h"
#include "lanescope/analysis/torch_events.h"
#include "lanescope/analysis/trace_info.h"
#include "lanescope/names/event_name.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/dispatch_tree_text.h"
#include "lanescope/report/key_averages_table.h"
#include "lanescope/report/trace_info_text.h"

namespace lanescope::python {
namespace {

using analysis::KeyAverage;
using analysis::KeyAverages;
using analysis::TableStyle;
using analysis::TorchEvent;
using analysis::TorchEvents;

TableStyle parse_style(const std::string& text) {
  if (text == "torch") return TableStyle::kTorch;
  if (text == "lanescope") return TableStyle::kLanescope;
  raise({Errc::kInvalidArgument, "style is \"torch\" or \"lanescope\"; found \"" + text + "\""});
}

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

py::list strings(const std::vector<std::string>& texts) {
  py::list list;
  for (const std::string& text : texts) list.append(to_str(text));
  return list;
}

py::list kept(const TorchEvents& list) {
  py::list indexes;
  for (std::size_t i = 0; i < list.events.size(); ++i) {
    if (!list.events[i].is_removed) indexes.append(i);
  }
  return indexes;
}

KeyAverage total_of(const KeyAverages& table) {
  KeyAverage total;
  total.name = "Total";
  for (const KeyAverage& row : table.rows) {
    total.count += row.count;
    total.cpu_time_total_ns += row.cpu_time_total_ns;
    total.self_cpu_time_total_ns += row.self_cpu_time_total_ns;
    total.device_time_total_ns += row.device_time_total_ns;
    total.self_device_time_total_ns += row.self_device_time_total_ns;
    total.cpu_memory_bytes += row.cpu_memory_bytes;
    total.self_cpu_memory_bytes += row.self_cpu_memory_bytes;
    total.device_memory_bytes += row.device_memory_bytes;
    total.self_device_memory_bytes += row.self_device_memory_bytes;
    total.flops += row.flops;
    total.cpu_time_total_us += row.cpu_time_total_us;
    total.self_cpu_time_total_us += row.self_cpu_time_total_us;
    total.device_time_total_us += row.device_time_total_us;
    total.self_device_time_total_us += row.self_device_time_total_us;
  }
  return total;
}

// A table of rows that Python has: a user's own choice of events, sorted or filtered. One tuple a
// row, in the order of the fields below.
KeyAverages averages_of_rows(std::string device, bool profile_memory, bool with_flops,
                             const py::iterable& rows) {
  KeyAverages table;
  table.device = std::move(device);
  table.profile_memory = profile_memory;
  table.with_flops = with_flops;
  const auto ns = [](double us) { return static_cast<std::int64_t>(std::llround(us * 1000.0)); };
  for (const py::handle item : rows) {
    const auto fields = item.cast<py::tuple>();
    std::size_t next = 0;
    const auto take = [&](auto& into) {
      into = fields[next++].cast<std::remove_reference_t<decltype(into)>>();
    };
    KeyAverage row;
    take(row.name);
    take(row.overload_name);
    take(row.input_shapes);
    take(row.stack);
    take(row.on_device);
    take(row.is_annotation);
    take(row.is_async);
    take(row.is_top_level);
    take(row.count);
    take(row.cpu_time_total_us);
    take(row.self_cpu_time_total_us);
    take(row.device_time_total_us);
    take(row.self_device_time_total_us);
    take(row.cpu_memory_bytes);
    take(row.self_cpu_memory_bytes);
    take(row.device_memory_bytes);
    take(row.self_device_memory_bytes);
    take(row.flops);
    row.cpu_time_total_ns = ns(row.cpu_time_total_us);
    row.self_cpu_time_total_ns = ns(row.self_cpu_time_total_us);
    row.device_time_total_ns = ns(row.device_time_total_us);
    row.self_device_time_total_ns = ns(row.self_device_time_total_us);
    table.rows.push_back(std::move(row));
  }
  return table;
}

KeyAverages averages_of(const Trace& trace, const std::string& style, bool by_shape, int by_stack,
                        bool by_overload, std::optional<bool> profile_memory,
                        std::optional<bool> with_flops) {
  analysis::KeyAveragesOptions options;
  options.style = parse_style(style);
  options.group_by_input_shape = by_shape;
  options.group_by_stack_n = by_stack;
  options.group_by_overload_name = by_overload;
  KeyAverages table =
      value_or_raise(without_gil([&] { return analysis::compute_key_averages(trace, options); }));
  if (profile_memory) table.profile_memory = *profile_memory;
  if (with_flops) table.with_flops = *with_flops;
  return table;
}

report::TableOptions table_options(std::optional<std::string> sort_by, int row_limit,
                                   std::optional<int> src_width, std::optional<int> name_width,
                                   std::optional<int> shapes_width,
                                   std::optional<std::string> header, bool top_level,
                                   std::optional<std::string> unit) {
  report::TableOptions options;
  options.sort_by = std::move(sort_by).value_or("");
  options.row_limit = row_limit;
  options.max_src_column_width = src_width;
  options.max_name_column_width = name_width;
  options.max_shapes_column_width = shapes_width;
  options.header = std::move(header);
  options.top_level_events_only = top_level;
  if (unit) options.time_unit = value_or_raise(report::parse_time_unit(*unit));
  return options;
}

template <typename Writer>
auto rows_as(Writer writer) {
  return [writer](const KeyAverages& table, std::optional<std::string> sort_by, int row_limit) {
    report::TableOptions options;
    options.sort_by = std::move(sort_by).value_or("");
    options.row_limit = row_limit;
    return to_str(value_or_raise(writer(table, options)));
  };
}

void bind_events(py::module_& m) {
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
        const TableStyle parsed = parse_style(style);
        return without_gil([&] { return analysis::build_torch_events(trace, parsed, own_frames); });
      },
      py::arg("trace"), py::kw_only(), py::arg("style") = "torch", py::arg("own_frames") = false);
}

py::str tree_of(const Trace& trace, std::optional<std::int64_t> step, const std::string& op,
                int max_depth, int width, int max_rows, bool json) {
  analysis::DispatchTreeOptions options;
  options.step = step;
  options.op = op;
  options.max_depth = max_depth;
  report::TreeTextOptions text;
  text.width = width;
  text.max_rows = max_rows;
  return to_str(value_or_raise(without_gil([&]() -> Result<std::string> {
    LANESCOPE_TRY(const auto tree, analysis::compute_dispatch_tree(trace, options));
    return json ? report::dispatch_tree_json(tree) : report::dispatch_tree_text(tree, text);
  })));
}

py::str info_of(const Trace& trace, bool json) {
  return to_str(without_gil([&] {
    const analysis::TraceInfo info = analysis::compute_trace_info(trace);
    return json ? report::trace_info_json(info) : report::trace_info_text(info);
  }));
}

// Texts of a kernel's name as Python has them: absent is None.
template <std::string names::KernelName::*kField>
std::optional<py::str> text_of_name(const names::KernelName& name) {
  return (name.*kField).empty() ? std::nullopt : std::optional<py::str>(to_str(name.*kField));
}

void bind_kernel_name(py::module_& m) {
  using names::KernelName;
  py::class_<KernelName>(m, "KernelName")
      .def_property_readonly("text", [](const KernelName& name) { return to_str(name.text); })
      .def_property_readonly("known", &KernelName::known)
      .def_property_readonly("library", &text_of_name<&KernelName::library>)
      .def_property_readonly("kind", &text_of_name<&KernelName::kind>)
      .def_property_readonly("operation", &text_of_name<&KernelName::operation>)
      .def_property_readonly("variant", &text_of_name<&KernelName::variant>)
      .def_property_readonly("architecture", &text_of_name<&KernelName::architecture>)
      .def_property_readonly("input_type", &text_of_name<&KernelName::input_type>)
      .def_property_readonly("accumulate_type", &text_of_name<&KernelName::accumulate_type>)
      .def_property_readonly("output_type", &text_of_name<&KernelName::output_type>)
      .def_property_readonly(
          "tile",
          [](const KernelName& name) {
            using Tile = std::tuple<std::uint32_t, std::uint32_t, std::optional<std::uint32_t>>;
            return name.tile ? std::optional<Tile>(std::in_place, name.tile->m, name.tile->n,
                                                   name.tile->k)
                             : std::nullopt;
          })
      .def_readonly("stages", &KernelName::stages)
      .def_property_readonly("warps", &text_of_name<&KernelName::warps>)
      .def_property_readonly("cluster", &text_of_name<&KernelName::cluster>)
      .def_property_readonly("layout", &text_of_name<&KernelName::layout>)
      .def_property_readonly("epilogue",
                             [](const KernelName& name) { return strings(name.epilogue); })
      .def_readonly("split_k", &KernelName::split_k)
      .def_readonly("split_k_count", &KernelName::split_k_count)
      .def_property_readonly("fused", [](const KernelName& name) { return strings(name.fused); })
      .def_readonly("vector_width", &KernelName::vector_width)
      .def_property_readonly("algorithm", &text_of_name<&KernelName::algorithm>)
      .def_property_readonly("protocol", &text_of_name<&KernelName::protocol>)
      .def_property_readonly("reduction", &text_of_name<&KernelName::reduction>)
      .def("__repr__", [](const KernelName& name) {
        return to_str("<lanescope.KernelName " + name.text + ">");
      });
  m.def(
      "kernel_name", [](const std::string& text) { return names::parse_kernel_name(text); },
      py::arg("text"));
}

template <std::string names::EventName::*kField>
std::optional<py::str> text_of_event(const names::EventName& name) {
  return (name.*kField).empty() ? std::nullopt : std::optional<py::str>(to_str(name.*kField));
}

void bind_event_name(py::module_& m) {
  using names::EventName;
  py::class_<EventName>(m, "EventName")
      .def_property_readonly("text", [](const EventName& name) { return to_str(name.text); })
      .def_property_readonly("known", &EventName::known)
      .def_property_readonly(
          "kind", [](const EventName& name) { return names::event_kind_name(name.kind); })
      .def_property_readonly("what", &text_of_event<&EventName::what>)
      .def_property_readonly("cpu_waits", &text_of_event<&EventName::cpu_waits>)
      .def_property_readonly("gpu_work", &text_of_event<&EventName::gpu_work>)
      .def_property_readonly("note", &text_of_event<&EventName::note>)
      .def_property_readonly("rule", &text_of_event<&EventName::rule>)
      .def_property_readonly("group", [](const EventName& name) { return to_str(name.group); })
      .def_property_readonly("details",
                             [](const EventName& name) {
                               py::dict details;
                               for (const auto& [key, value] : name.details)
                                 details[to_str(key)] = to_str(value);
                               return details;
                             })
      .def("__repr__",
           [](const EventName& name) { return to_str("<lanescope.EventName " + name.text + ">"); });
  m.def(
      "event_name", [](const std::string& text) { return names::explain_event_name(text); },
      py::arg("text"));
}

}  // namespace

void bind_analysis(py::module_& m) {
  bind_events(m);
  bind_kernel_name(m);
  bind_event_name(m);
  m.def("dispatch_tree", &tree_of, py::arg("trace"), py::kw_only(), py::arg("step"), py::arg("op"),
        py::arg("max_depth"), py::arg("width"), py::arg("max_rows"), py::arg("json"));
  m.def("trace_info", &info_of, py::arg("trace"), py::kw_only(), py::arg("json"));
  py::class_<KeyAverage>(m, "KeyAverage")
      .def_property_readonly("name", [](const KeyAverage& row) { return to_str(row.name); })
      .def_property_readonly("overload_name",
                             [](const KeyAverage& row) { return to_str(row.overload_name); })
      .def_property_readonly("input_shapes",
                             [](const KeyAverage& row) { return to_str(row.input_shapes); })
      .def_property_readonly("stack", [](const KeyAverage& row) { return strings(row.stack); })
      .def_readonly("on_device", &KeyAverage::on_device)
      .def_readonly("is_annotation", &KeyAverage::is_annotation)
      .def_readonly("is_async", &KeyAverage::is_async)
      .def_readonly("is_top_level", &KeyAverage::is_top_level)
      .def_readonly("first_event", &KeyAverage::first_event)
      .def_readonly("count", &KeyAverage::count)
      .def_readonly("cpu_memory_bytes", &KeyAverage::cpu_memory_bytes)
      .def_readonly("self_cpu_memory_bytes", &KeyAverage::self_cpu_memory_bytes)
      .def_readonly("device_memory_bytes", &KeyAverage::device_memory_bytes)
      .def_readonly("self_device_memory_bytes", &KeyAverage::self_device_memory_bytes)
      .def_readonly("flops", &KeyAverage::flops)
      .def_readonly("cpu_time_total_us", &KeyAverage::cpu_time_total_us)
      .def_readonly("self_cpu_time_total_us", &KeyAverage::self_cpu_time_total_us)
      .def_readonly("device_time_total_us", &KeyAverage::device_time_total_us)
      .def_readonly("self_device_time_total_us", &KeyAverage::self_device_time_total_us);
  py::class_<KeyAverages>(m, "KeyAverages")
      .def("__len__", [](const KeyAverages& table) { return table.rows.size(); })
      .def_property_readonly("device",
                             [](const KeyAverages& table) { return to_str(table.device); })
      .def_readonly("profile_memory", &KeyAverages::profile_memory)
      .def_readonly("with_flops", &KeyAverages::with_flops)
      .def_readonly("rows", &KeyAverages::rows)
      .def("total", &total_of)
      .def(
          "table",
          [](const KeyAverages& table, std::optional<std::string> sort_by, int row_limit,
             std::optional<int> src_width, std::optional<int> name_width,
             std::optional<int> shapes_width, std::optional<std::string> header, bool top_level,
             std::optional<std::string> unit) {
            const report::TableOptions options =
                table_options(std::move(sort_by), row_limit, src_width, name_width, shapes_width,
                              std::move(header), top_level, std::move(unit));
            return to_str(value_or_raise(
                without_gil([&] { return report::key_averages_text(table, options); })));
          },
          py::kw_only(), py::arg("sort_by"), py::arg("row_limit"), py::arg("max_src_column_width"),
          py::arg("max_name_column_width"), py::arg("max_shapes_column_width"), py::arg("header"),
          py::arg("top_level_events_only"), py::arg("time_unit"))
      .def("json", rows_as(&report::key_averages_json), py::kw_only(), py::arg("sort_by"),
           py::arg("row_limit"))
      .def("csv", rows_as(&report::key_averages_csv), py::kw_only(), py::arg("sort_by"),
           py::arg("row_limit"));
  m.def("key_averages", &averages_of, py::arg("trace"), py::kw_only(), py::arg("style") = "torch",
        py::arg("group_by_input_shape") = false, py::arg("group_by_stack_n") = 0,
        py::arg("group_by_overload_name") = false, py::arg("profile_memory") = py::none(),
        py::arg("with_flops") = py::none());
  m.def("key_averages_of_rows", &averages_of_rows, py::arg("device"), py::arg("profile_memory"),
        py::arg("with_flops"), py::arg("rows"));
}

}  // namespace lanescope::python
