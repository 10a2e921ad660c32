#include "lanescope/report/kernel_groups_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/analysis/operator_inputs.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/hardware_use_text.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {

using analysis::KernelGroup;
using analysis::WorkClass;
using explain::Facts;

namespace {

constexpr std::size_t kOpWidth = 58;

const char* class_name(WorkClass work) {
  switch (work) {
    case WorkClass::kCompute:
      return "compute";
    case WorkClass::kCommunication:
      return "communication";
    case WorkClass::kCopy:
      return "copy";
  }
  return "";
}

std::string text_argument(const Trace& trace, SliceId slice, ArgKey key) {
  const auto text = slice == kNone<SliceId> ? std::nullopt : trace.slice_args(slice).text(key);
  return text ? std::string(trace.text(*text)) : std::string();
}

// "aten::mm [[64, 64], [64, 64]]", "[132, 1, 1] x [384, 1, 1]".
std::string origin(const Trace& trace, const KernelGroup& group) {
  if (group.op == kNone<SliceId>) return {};
  const std::string shapes =
      analysis::torch_shapes_text(text_argument(trace, group.op, ArgKey::kInputDims));
  return std::string(trace.name(group.op)) + (shapes == "[]" ? "" : " " + shapes);
}
std::string launch_shape(const Trace& trace, const KernelGroup& group) {
  const std::string grid = text_argument(trace, group.median_call, ArgKey::kGrid);
  if (grid.empty()) return {};
  return grid + " x " + text_argument(trace, group.median_call, ArgKey::kBlock);
}

double bandwidth(const KernelGroup& group) {
  return static_cast<double>(group.bytes) /
         static_cast<double>(std::max<std::int64_t>(group.total_ns, 1));
}

std::int64_t busy_of(const Facts& facts) {
  return facts.wall.partition.wall_ns - facts.wall.partition.idle_ns;
}

}  // namespace

std::string kernel_groups_text(const Facts& facts, const std::vector<KernelGroup>& groups,
                               const std::vector<analysis::HardwareUse>& uses, std::size_t most) {
  if (!facts.main_device)
    return "The trace holds no GPU work, so no kernels; lanescope table shows the CPU's "
           "operators.\n";
  const Trace& trace = *facts.trace;
  std::uint64_t pieces = 0;
  for (const KernelGroup& group : groups) pieces += group.count;
  std::string out = fmt::format(
      "GPU work of device {} in {}: {} {} in {} {}, busy {} of {}\n",
      facts.device().timeline.device, step_count_text(facts), format_count(pieces),
      pieces == 1 ? "piece" : "pieces", groups.size(), groups.size() == 1 ? "group" : "groups",
      format_time_ns(busy_of(facts)), format_time_ns(facts.wall.partition.wall_ns));
  out += long_step_line(facts);
  out += fmt::format("\n{:>9}{:>13}{:>9}{:>12}{:>12}{:>12}{:>12}", "calls", "time", "of busy",
                     "median", "MAD", "p95", "longest");
  if (!uses.empty()) out += hardware_use_header();
  out += "  work\n";
  for (std::size_t i = 0; i < groups.size() && i < most; ++i) {
    const KernelGroup& group = groups[i];
    out += fmt::format(
        "{:>9}{:>13}{:>9}{:>12}{:>12}{:>12}{:>12}", format_count(group.count),
        format_time_ns(group.busy_ns),
        format_percent(static_cast<double>(group.busy_ns), static_cast<double>(busy_of(facts))),
        format_time_ns(group.median_ns), format_time_ns(group.mad_ns), format_time_ns(group.p95_ns),
        format_time_ns(group.longest_ns));
    if (!uses.empty()) out += hardware_use_cells(uses[i]);
    out += "  " + one_line(names::readable_kernel_name(trace.name(group.median_call)));
    if (group.work == WorkClass::kCopy)
      out += fmt::format(", {} at {:.1f} GB/s", format_size(group.bytes), bandwidth(group));
    const std::string from = origin(trace, group);
    if (!from.empty()) out += "  < " + shorten(one_line(from), kOpWidth);
    const std::string shape = launch_shape(trace, group);
    if (!shape.empty()) out += "  " + one_line(shape);
    out += '\n';
  }
  if (groups.size() > most)
    out += fmt::format("and {} more {} (--rows)\n", groups.size() - most,
                       groups.size() - most == 1 ? "group" : "groups");
  return out;
}

std::string kernel_groups_json(const Facts& facts, const std::vector<KernelGroup>& groups,
                               const std::vector<analysis::HardwareUse>& uses,
                               std::span<const SliceId> originals) {
  const Trace& trace = *facts.trace;
  JsonWriter json("kernels");
  if (facts.main_device)
    json.integer("device", facts.device().timeline.device);
  else
    json.null("device");
  json.boolean("steps_are_marked", facts.steps.marked);
  json.integer("steady_step_count", facts.selection.steady.size());
  json.integer("wall_ns", facts.wall.partition.wall_ns);
  json.integer("busy_ns", busy_of(facts));
  json.begin_array("groups");
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const KernelGroup& group = groups[i];
    json.begin_object();
    json.text("name", trace.name(group.median_call));
    json.text("readable_name", names::readable_kernel_name(trace.name(group.median_call)));
    json.text("work", class_name(group.work));
    json.text("operator", group.op == kNone<SliceId> ? std::string_view() : trace.name(group.op));
    json.text("input_dims", text_argument(trace, group.op, ArgKey::kInputDims));
    json.text("grid", text_argument(trace, group.median_call, ArgKey::kGrid));
    json.text("block", text_argument(trace, group.median_call, ArgKey::kBlock));
    json.integer("count", group.count);
    json.integer("total_ns", group.total_ns);
    json.integer("busy_ns", group.busy_ns);
    json.integer("shortest_ns", group.shortest_ns);
    json.integer("median_ns", group.median_ns);
    json.integer("mad_ns", group.mad_ns);
    json.integer("p95_ns", group.p95_ns);
    json.integer("longest_ns", group.longest_ns);
    json.integer("bytes", group.bytes);
    json.integer("median_event_index",
                 raw(originals.empty() ? group.median_call : originals[raw(group.median_call)]));
    if (!uses.empty()) write_hardware_use(json, uses[i]);
    json.end_object();
  }
  json.end_array();
  return json.take();
}

}  // namespace lanescope::report
