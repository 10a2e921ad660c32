// analysis and report: key averages as rows and as text, trees, what a trace holds.
#include <pybind11/stl.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "bindings.h"
#include "lanescope/analysis/dispatch_tree.h"
#include "lanescope/analysis/key_averages.h"
#include "lanescope/analysis/trace_info.h"
#include "lanescope/report/dispatch_tree_text.h"
#include "lanescope/report/key_averages_table.h"
#include "lanescope/report/trace_info_text.h"

namespace lanescope::python {
namespace {

using analysis::KeyAverage;
using analysis::KeyAverages;

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

}  // namespace

analysis::TableStyle parse_style(const std::string& text) {
  if (text == "torch") return analysis::TableStyle::kTorch;
  if (text == "lanescope") return analysis::TableStyle::kLanescope;
  raise({Errc::kInvalidArgument, "style is \"torch\" or \"lanescope\"; found \"" + text + "\""});
}

void bind_analysis(py::module_& m) {
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
  m.def("table_sort_keys", [] {
    py::list keys;
    for (const std::string_view key : report::table_sort_keys()) keys.append(to_str(key));
    return keys;
  });
  m.def("key_averages_of_rows", &averages_of_rows, py::arg("device"), py::arg("profile_memory"),
        py::arg("with_flops"), py::arg("rows"));
}

}  // namespace lanescope::python
