// The table of key_averages for programs: JSON and CSV, with exact integers.
#include <fmt/format.h>

#include "lanescope/names/kernel_name.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/key_averages_rows.h"
#include "lanescope/report/key_averages_table.h"

namespace lanescope::report {
namespace {

using analysis::KeyAverage;
using analysis::KeyAverages;
using analysis::TableStyle;

struct Sums {
  std::int64_t self_cpu_ns = 0, self_device_ns = 0;
};

Sums sums_of(const KeyAverages& table) {
  Sums sums;
  for (const KeyAverage& row : table.rows) {
    sums.self_cpu_ns += row.self_cpu_time_total_ns;
    if (row.on_device && !row.is_annotation) sums.self_device_ns += row.self_device_time_total_ns;
  }
  return sums;
}

void write_json_row(const KeyAverage& row, const Sums& sums, JsonWriter& json) {
  json.begin_object().text("name", row.name);
  if (row.on_device && !row.is_annotation) {
    const names::KernelName name = names::parse_kernel_name(row.name);
    if (name.known()) json.text("readable_name", name.text);
  }
  if (!row.overload_name.empty()) json.text("overload_name", row.overload_name);
  if (!row.input_shapes.empty()) json.text("input_shapes", row.input_shapes);
  if (!row.stack.empty()) {
    json.begin_array("stack");
    for (const std::string& frame : row.stack) json.text({}, frame);
    json.end_array();
  }
  json.boolean("on_device", row.on_device)
      .boolean("is_annotation", row.is_annotation)
      .boolean("is_top_level", row.is_top_level);
  json.integer("count", row.count);
  json.integer("cpu_time_total_ns", row.cpu_time_total_ns)
      .integer("self_cpu_time_total_ns", row.self_cpu_time_total_ns);
  json.integer("device_time_total_ns", row.device_time_total_ns)
      .integer("self_device_time_total_ns", row.self_device_time_total_ns);
  const auto ratio = [&](std::string_view key, std::int64_t part, std::int64_t whole) {
    if (whole == 0)
      json.null(key);
    else
      json.real(key, static_cast<double>(part) / static_cast<double>(whole));
  };
  ratio("self_cpu_time_ratio", row.self_cpu_time_total_ns, sums.self_cpu_ns);
  ratio("self_device_time_ratio", row.is_annotation ? 0 : row.self_device_time_total_ns,
        sums.self_device_ns);
  json.integer("cpu_memory_bytes", row.cpu_memory_bytes)
      .integer("self_cpu_memory_bytes", row.self_cpu_memory_bytes);
  json.integer("device_memory_bytes", row.device_memory_bytes)
      .integer("self_device_memory_bytes", row.self_device_memory_bytes);
  json.integer("flops_count", row.flops).end_object();
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of("\",\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace

Result<std::string> key_averages_json(const KeyAverages& table, const TableOptions& options) {
  LANESCOPE_TRY(auto rows, sorted_rows(table, options.sort_by));
  const Sums sums = sums_of(table);
  JsonWriter json("table");
  json.text("style", table.style == TableStyle::kTorch ? "torch" : "lanescope");
  json.text("device", table.device);
  json.integer("window_ns", table.window_ns).integer("device_busy_ns", table.device_busy_ns);
  json.integer("device_count", table.device_count)
      .integer("device_window_ns", table.device_window_ns);
  json.integer("self_cpu_time_total_ns", sums.self_cpu_ns)
      .integer("self_device_time_total_ns", sums.self_device_ns);
  json.integer("row_count", table.rows.size());
  const analysis::TorchEventsNotes& notes = table.corrections;
  json.begin_object("corrections");
  json.integer("unlaunched_count", notes.unlaunched_count)
      .integer("unlaunched_ns", notes.unlaunched_ns);
  json.integer("before_first_step_count", notes.before_first_step_count)
      .integer("before_first_step_ns", notes.before_first_step_ns);
  json.integer("overhead_claim_count", notes.overhead_claim_count)
      .integer("overhead_claim_ns", notes.overhead_claim_ns);
  json.integer("annotation_span_ns", table.annotation_span_ns)
      .integer("annotation_busy_ns", table.annotation_busy_ns);
  json.integer("python_frame_count", notes.python_frame_count);
  json.integer("other_thread_memory_count", notes.other_thread_memory_count).end_object();
  json.begin_array("rows");
  for (const KeyAverage* row : shown_rows(rows, options)) write_json_row(*row, sums, json);
  json.end_array();
  return json.take();
}

Result<std::string> key_averages_csv(const KeyAverages& table, const TableOptions& options) {
  LANESCOPE_TRY(auto rows, sorted_rows(table, options.sort_by));
  std::string out =
      "name,overload_name,input_shapes,stack,on_device,is_annotation,is_top_level,count,cpu_time_"
      "total_ns,"
      "self_cpu_time_total_ns,device_time_total_ns,self_device_time_total_ns,cpu_memory_bytes,self_"
      "cpu_memory_bytes,"
      "device_memory_bytes,self_device_memory_bytes,flops_count\r\n";
  for (const KeyAverage* row : shown_rows(rows, options)) {
    out += fmt::format(
        "{},{},{},{},{:d},{:d},{:d},{},{},{},{},{},{},{},{},{},{}\r\n", csv_cell(row->name),
        csv_cell(row->overload_name), csv_cell(row->input_shapes),
        csv_cell(fmt::format("{}", fmt::join(row->stack, ";"))), row->on_device, row->is_annotation,
        row->is_top_level, row->count, row->cpu_time_total_ns, row->self_cpu_time_total_ns,
        row->device_time_total_ns, row->self_device_time_total_ns, row->cpu_memory_bytes,
        row->self_cpu_memory_bytes, row->device_memory_bytes, row->self_device_memory_bytes,
        row->flops);
  }
  return out;
}

}  // namespace lanescope::report
