#include "lanescope/report/roofline_text.h"

#include <fmt/format.h>

#include "lanescope/analysis/operator_inputs.h"
#include "lanescope/analysis/roofline_rows.h"
#include "lanescope/analysis/roofline_use.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/hardware_use_text.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {

using analysis::Roofline;
using analysis::RooflineClass;
using analysis::RooflineRow;
using analysis::RooflineTotals;
using explain::Facts;

namespace {

constexpr std::size_t kOperatorWidth = 34, kShapesWidth = 38, kKernelWidth = 44;

struct Peak {
  const char* name;
  std::optional<double> GpuPeakRates::*rate;
};
constexpr Peak kPeaks[] = {{"bf16", &GpuPeakRates::bf16},
                           {"fp16", &GpuPeakRates::fp16},
                           {"tf32", &GpuPeakRates::tf32},
                           {"fp32", &GpuPeakRates::fp32},
                           {"fp64_matrix", &GpuPeakRates::fp64_matrix},
                           {"fp64", &GpuPeakRates::fp64},
                           {"fp8", &GpuPeakRates::fp8},
                           {"int8", &GpuPeakRates::int8}};

std::string shapes_of(const Facts& facts, SliceId op) {
  const auto text = facts.trace->slice_args(op).text(ArgKey::kInputDims);
  return text ? analysis::torch_shapes_text(facts.trace->text(*text)) : std::string();
}

std::string percent(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.1f}%", *ratio * 100) : "--";
}

std::string header_text(const Facts& facts, const Roofline& roofline) {
  std::string out =
      fmt::format("Roofline of {} (device {}), the sum over {}\n",
                  roofline.device.name.empty() ? "a GPU that the trace does not describe"
                                               : one_line(roofline.device.name),
                  facts.device().timeline.device, step_count_text(facts));
  out += long_step_line(facts);
  if (roofline.spec) {
    out += "  peaks in T/s:";
    for (const Peak& peak : kPeaks)
      if (const auto rate = roofline.spec->peak.*peak.rate)
        out += fmt::format(" {} {:.1f},", peak.name, *rate / 1e12);
    out += fmt::format(" memory {:.2f} TB/s\n  from the {}\n",
                       *roofline.bandwidth_bytes_per_s / 1e12, roofline.spec->source);
  } else {
    out +=
        "  The peak rates of this GPU are not known, so there is no roof. \"of best\" compares "
        "each row with\n  the best row of its type in this trace. How close that one is to the "
        "GPU's "
        "limit is unknown.\n";
  }
  return out;
}

const char* above_peak_text(RooflineClass kind) {
  return kind == RooflineClass::kMemory
             ? "above the memory's peak: their data probably came from the L2 cache; if not, the "
               "estimate of their bytes is too high"
             : "above the peak rate: the estimate of their operations is too high, or the peak is "
               "not this GPU's";
}

constexpr const char* kMeasuredColumns =
    "\n  TFLOP/s, GB/s, limit and the column after it are the model from shapes. From \"moved\" on "
    "the columns\n  are measured by the GPU's counters: moved is measured bytes over those of the "
    "model, the others\n  are as in lanescope kernels. - is said on fewer than 5 samples.\n";

std::string measured_cells(const RooflineRow& row, const analysis::HardwareUse& use) {
  const auto moved = analysis::moved_ratio(row, use);
  return fmt::format("{:>8}", moved ? fmt::format("{:.2f}x", *moved) : "-") +
         hardware_use_cells(use);
}

// The last column of the model.
std::string limit_cell(const Roofline& roofline, const RooflineRow& row) {
  if (!roofline.spec) return percent(row.of_best_ratio);
  return row.is_above_peak ? "> peak" : percent(row.achieved_ratio);
}

std::string classes_text(const Roofline& roofline) {
  std::string out = fmt::format("\n  {:<12}{:>9}{:>13}{:>10}{:>11}\n", "limited by", "calls",
                                "time", "of busy", "achieved");
  for (std::size_t i = 0; i < analysis::kRooflineClassCount; ++i) {
    const auto kind = static_cast<RooflineClass>(i);
    const RooflineTotals& totals = roofline.of(kind);
    if (totals.calls == 0) continue;
    const bool is_rated = kind == RooflineClass::kCompute || kind == RooflineClass::kMemory;
    const auto achieved =
        is_rated && totals.time_ns > 0
            ? std::optional(std::min(1.0, totals.floor_ns / static_cast<double>(totals.time_ns)))
            : std::nullopt;
    out += fmt::format(
        "  {:<12}{:>9}{:>13}{:>10}{:>11}\n", roofline_class_name(kind), format_count(totals.calls),
        format_time_ns(totals.time_ns),
        format_percent(static_cast<double>(totals.time_ns), static_cast<double>(roofline.busy_ns)),
        percent(achieved));
  }
  out += fmt::format("  {:<12}{:>9}{:>13}\n", "busy", "", format_time_ns(roofline.busy_ns));
  for (const RooflineClass kind : {RooflineClass::kMemory, RooflineClass::kCompute}) {
    const RooflineTotals& totals = roofline.of(kind);
    if (totals.above_peak_calls == 0) continue;
    out +=
        wrapped("  ", fmt::format("{} of the {} calls ({}) ran {}; \"achieved\" counts them as "
                                  "100%",
                                  format_count(totals.above_peak_calls), roofline_class_name(kind),
                                  format_time_ns(totals.above_peak_ns), above_peak_text(kind)));
  }
  return out;
}

}  // namespace

std::string roofline_text(const Facts& facts, const Roofline& roofline, std::size_t most) {
  if (!facts.main_device)
    return "The trace holds no GPU work to compare with a GPU's peak; lanescope table shows the "
           "CPU's operators.\n";
  std::string out = header_text(facts, roofline) + classes_text(roofline);
  if (!roofline.has_shapes)
    return out + "\nNo operator has recorded input shapes: record with record_shapes=True.\n";
  const auto rows = compute_roofline_rows(*facts.trace, roofline);
  if (rows.empty())
    return out +
           "\nNone of the operators with GPU work is one that a roofline knows "
           "(docs/definitions/kernels.md#roofline).\n";
  const auto uses = measure_roofline_rows(*facts.trace, facts.device().timeline, roofline, rows);
  if (!uses.empty()) out += kMeasuredColumns;
  const char* last = roofline.spec ? "achieved" : "of best";
  out += fmt::format("\n  {}{}{:>7}{:>12}{:>12}{:>9}{:>9}  {:<8}{:>9}{}  kernel\n",
                     pad_right("operator", kOperatorWidth + 1), pad_right("shapes", kShapesWidth),
                     "calls", "time", "median", "TFLOP/s", "GB/s", "limit", last,
                     uses.empty() ? "" : fmt::format("{:>8}", "moved") + hardware_use_header());
  for (std::size_t i = 0; i < rows.size() && i < most; ++i) {
    const RooflineRow& row = rows[i];
    out += fmt::format(
        "  {} {}{:>7}{:>12}{:>12}{:>9.1f}{:>9.0f}  {:<8}{:>9}{}  {}\n",
        pad_right(shorten(one_line(facts.trace->name(row.op)), kOperatorWidth), kOperatorWidth),
        pad_right(shorten(one_line(shapes_of(facts, row.op)), kShapesWidth - 1), kShapesWidth),
        format_count(row.calls), format_time_ns(row.time_ns), format_time_ns(row.median_ns),
        row.flops_per_s / 1e12, row.bytes_per_s / 1e9, roofline_class_name(row.kind),
        limit_cell(roofline, row), uses.empty() ? "" : measured_cells(row, uses[i]),
        shorten(one_line(names::readable_kernel_name(facts.trace->name(row.kernel))),
                kKernelWidth));
  }
  if (rows.size() > most) out += fmt::format("  and {} more rows\n", rows.size() - most);
  return out;
}

namespace {

void ratio_or_null(JsonWriter& json, std::string_view key, const std::optional<double>& value) {
  if (value)
    json.real(key, *value);
  else
    json.null(key);
}

void device_json(JsonWriter& json, const Facts& facts, const Roofline& roofline) {
  json.begin_object("device");
  json.integer("id", facts.device().timeline.device);
  json.text("name", roofline.device.name);
  ratio_or_null(json, "memory_bandwidth_bytes_per_s", roofline.bandwidth_bytes_per_s);
  json.begin_object("peak_per_s");
  if (roofline.spec)
    for (const Peak& peak : kPeaks) ratio_or_null(json, peak.name, roofline.spec->peak.*peak.rate);
  json.end_object();
  if (roofline.spec)
    json.text("source", roofline.spec->source);
  else
    json.null("source");
  json.end_object();
}

void row_json(JsonWriter& json, const Facts& facts, const Roofline& roofline,
              const RooflineRow& row, const analysis::HardwareUse* use) {
  const analysis::OperatorWork& work = roofline.works[row.work];
  json.begin_object();
  json.text("operator", facts.trace->name(row.op));
  json.text("shapes", shapes_of(facts, row.op));
  json.text("kind", operator_kind_name(work.kind));
  json.text("type", work.type);
  json.text("kernel", facts.trace->name(row.kernel));
  json.integer("count", row.calls);
  json.integer("time_ns", row.time_ns);
  json.integer("median_ns", row.median_ns);
  json.real("flops_count", work.flops);
  json.real("least_bytes", work.bytes);
  json.real("flops_per_s", row.flops_per_s);
  json.real("bytes_per_s", row.bytes_per_s);
  json.text("limited_by", roofline_class_name(row.kind));
  ratio_or_null(json, "achieved_ratio", row.achieved_ratio);
  json.boolean("is_above_peak", row.is_above_peak);
  ratio_or_null(json, "of_best_ratio", row.of_best_ratio);
  if (use) {
    ratio_or_null(json, "moved_ratio", analysis::moved_ratio(row, *use));
    write_hardware_use(json, *use);
  }
  json.end_object();
}

}  // namespace

std::string roofline_json(const Facts& facts, const Roofline& roofline) {
  JsonWriter json("roofline");
  if (!facts.main_device) {
    json.null("device");
    return json.take();
  }
  device_json(json, facts, roofline);
  json.boolean("steps_are_marked", facts.steps.marked);
  json.integer("steady_step_count", facts.selection.steady.size());
  json.boolean("has_shapes", roofline.has_shapes);
  json.integer("busy_ns", roofline.busy_ns);
  json.begin_object("classes");
  for (std::size_t i = 0; i < analysis::kRooflineClassCount; ++i) {
    const RooflineTotals& totals = roofline.totals[i];
    json.begin_object(roofline_class_name(static_cast<RooflineClass>(i)));
    json.integer("count", totals.calls);
    json.integer("time_ns", totals.time_ns);
    json.real("floor_ns", totals.floor_ns);
    json.integer("above_peak_count", totals.above_peak_calls);
    json.integer("above_peak_ns", totals.above_peak_ns);
    json.real("flops_count", totals.flops);
    json.real("least_bytes", totals.bytes);
    json.end_object();
  }
  json.end_object();
  json.begin_array("rows");
  const auto rows = compute_roofline_rows(*facts.trace, roofline);
  const auto uses = measure_roofline_rows(*facts.trace, facts.device().timeline, roofline, rows);
  for (std::size_t i = 0; i < rows.size(); ++i)
    row_json(json, facts, roofline, rows[i], uses.empty() ? nullptr : &uses[i]);
  json.end_array();
  return json.take();
}

}  // namespace lanescope::report
