#include "lanescope/report/trace_info_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "lanescope/report/json_writer.h"
#include "lanescope/report/text_format.h"
#include "lanescope/report/thinning_text.h"

namespace lanescope::report {
namespace {

using analysis::TraceInfo;

constexpr std::size_t kLabel = 12;
constexpr std::size_t kMostTracks = 20;

std::string utc(std::int64_t unix_ns) {
  std::int64_t seconds = unix_ns / 1'000'000'000, rest = unix_ns % 1'000'000'000;
  if (rest < 0) {
    rest += 1'000'000'000;
    --seconds;
  }
  const std::time_t time = seconds;
  std::tm parts{};
  if (!gmtime_r(&time, &parts)) return fmt::format("{} ns since 1970", unix_ns);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:09} UTC", parts, rest);
}

const char* severity_name(Severity severity) {
  return severity == Severity::kLost       ? "lost"
         : severity == Severity::kRepaired ? "repaired"
                                           : "note";
}

// The known peak rates, always in the same order.
std::vector<std::pair<const char*, double>> known_rates(const GpuPeakRates& peak) {
  std::vector<std::pair<const char*, double>> rates;
  const auto add = [&](const char* name, std::optional<double> rate) {
    if (rate) rates.emplace_back(name, *rate);
  };
  add("fp64", peak.fp64);
  add("fp64_matrix", peak.fp64_matrix);
  add("fp32", peak.fp32);
  add("tf32", peak.tf32);
  add("bf16", peak.bf16);
  add("fp16", peak.fp16);
  add("fp8", peak.fp8);
  add("int8", peak.int8);
  return rates;
}

class InfoText {
 public:
  explicit InfoText(const TraceInfo& info) : info_(info) {}

  std::string run() {
    write_origin();
    write_devices();
    write_time();
    write_tracks("threads", info_.threads, false);
    write_tracks("streams", info_.streams, true);
    write_categories();
    write_sizes();
    write_issues();
    return std::move(out_);
  }

 private:
  void fact(std::string_view label, std::string_view text) {
    out_ += pad_right(label, kLabel) + one_line(text) + '\n';
  }

  void write_origin() {
    std::string evidence;
    for (const std::string& each : info_.producer_evidence)
      evidence += (evidence.empty() ? "" : "; ") + each;
    fact("written by", info_.producer + (evidence.empty() ? "" : "; signs: " + evidence));
    if (!info_.host_name.empty()) fact("host", one_line(info_.host_name));
    std::string options;
    for (const std::string& each : info_.recorded_with)
      options += (options.empty() ? "" : ", ") + each;
    fact("options", options.empty() ? "none on, or not in the file" : options);
    std::string versions;
    for (const auto& [key, value] : info_.versions)
      versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", key, value);
    if (!versions.empty()) fact("versions", one_line(versions));
    if (info_.rank || info_.world_size)
      fact(
          "job",
          fmt::format(
              "rank {} of {}{}", info_.rank ? std::to_string(*info_.rank) : "unknown",
              info_.world_size ? std::to_string(*info_.world_size) : "unknown",
              info_.distributed_backend.empty() ? "" : ", " + one_line(info_.distributed_backend)));
  }

  void write_devices() {
    if (info_.devices.empty()) fact("devices", "none described in the file");
    for (const TraceInfo::Device& device : info_.devices) {
      std::string text = fmt::format("{}: {}", device.id ? std::to_string(*device.id) : "?",
                                     device.name.empty() ? "unnamed" : one_line(device.name));
      if (device.memory_bytes) text += ", " + format_size(*device.memory_bytes);
      if (device.multiprocessor_count)
        text += fmt::format(", {} multiprocessors", *device.multiprocessor_count);
      if (device.compute_major)
        text += fmt::format(", compute capability {}.{}", *device.compute_major,
                            device.compute_minor.value_or(0));
      fact(&device == &info_.devices.front() ? "devices" : "", text);
      write_limits(device);
    }
  }

  void write_limits(const TraceInfo::Device& device) {
    std::string text;
    if (device.memory_bandwidth_bytes_per_s)
      text = fmt::format("{} GB/s of memory bandwidth",
                         *device.memory_bandwidth_bytes_per_s / 1'000'000'000);
    if (device.l2_bytes)
      text += (text.empty() ? "" : ", ") + format_size(*device.l2_bytes) + " of L2 cache";
    if (!text.empty()) fact("", "   at most " + text);
    std::string rates;
    for (const auto& [name, rate] : known_rates(device.peak))
      rates += fmt::format("{}{} {:.4g}", rates.empty() ? "" : ", ", name, rate / 1e12);
    if (!rates.empty()) fact("", "   at most " + rates + " tera-operations/s, dense");
    if (!device.data_sheet.empty()) fact("", "   from the " + device.data_sheet);
  }

  void write_time() {
    fact("window",
         fmt::format(
             "{}{}", format_time_ns(info_.window_ns),
             info_.window_is_recorded ? "" : " (first start to last end; the file has no window)"));
    fact("began", info_.window_start_unix_ns
                      ? utc(*info_.window_start_unix_ns)
                      : "unknown: the file does not say when its times begin");
    if (info_.cost) fact("cost", recording_cost_text(*info_.cost));
    if (info_.cost && info_.cost->left_out_operators > 0)
      fact("left out",
           fmt::format("{} short operators", format_count(info_.cost->left_out_operators)));
    if (info_.thinning) fact("thinned", thinning_text(*info_.thinning));
    const TraceInfo::Steps& steps = info_.steps;
    if (steps.count == 0)
      fact("steps", "none (no ProfilerStep ranges)");
    else
      fact(
          "steps",
          fmt::format("{}, number {} to {}; CPU time of a step: shortest {}, median {}, longest {}",
                      format_count(steps.count), steps.first, steps.last,
                      format_time_ns(steps.shortest_ns), format_time_ns(steps.median_ns),
                      format_time_ns(steps.longest_ns)));
  }

  void write_tracks(std::string_view label, const std::vector<TraceInfo::TrackRow>& rows,
                    bool streams) {
    if (rows.empty()) fact(label, "none");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i == kMostTracks) {
        fact("", fmt::format("... {} more", format_count(rows.size() - i)));
        return;
      }
      const TraceInfo::TrackRow& row = rows[i];
      std::string name = row.name;
      // `lanescope merge` numbers processes of the n-th rank from (n + 1) x 100,000 and names them.
      if (streams && row.tid && row.pid.value_or(0) >= 100'000 && row.process.starts_with("rank "))
        name = fmt::format("{} stream {}", row.process, *row.tid);
      else if (streams && row.pid && row.tid)
        name = fmt::format("device {} stream {}", *row.pid, *row.tid);
      else if (name.empty() && row.tid)
        name = fmt::format("thread {}", *row.tid);
      while (name.ends_with(' ')) name.pop_back();
      if (!streams && !row.process.empty()) name += fmt::format(" of {}", row.process);
      fact(i == 0 ? label : "",
           fmt::format("{}  {:>11} slices  busy {}", pad_right(shorten(one_line(name), 48), 48),
                       format_count(row.slice_count), format_time_ns(row.busy_ns)));
    }
  }

  void write_categories() {
    for (const TraceInfo::CategoryRow& row : info_.categories) {
      std::string text =
          pad_right(shorten(row.text.empty() ? "(no category)" : one_line(row.text), 48), 48);
      text += fmt::format("  {:>11} ", format_count(row.slice_count + row.instant_count));
      const bool one = row.slice_count + row.instant_count == 1;
      text += row.slice_count == 0 ? fmt::format("instant{}", one ? "" : "s")
                                   : fmt::format("event{}  {} in total", one ? " " : "s",
                                                 format_time_ns(row.total_ns));
      fact(&row == &info_.categories.front() ? "events" : "", text);
    }
    if (info_.categories.empty()) fact("events", "none");
    if (info_.flow_count > 0) fact("arrows", format_count(info_.flow_count));
    write_counters();
    if (info_.device_work_count > 0)
      fact("launches",
           fmt::format("{} of {} kernels, copies and memsets have their launch call in the trace",
                       format_count(info_.launched_count), format_count(info_.device_work_count)));
  }

  void write_counters() {
    for (std::size_t i = 0; i < info_.counters.size(); ++i) {
      if (i == kMostTracks) {
        fact("", fmt::format("and {} more", info_.counters.size() - i));
        break;
      }
      const TraceInfo::CounterRow& row = info_.counters[i];
      std::string name = row.name;
      if (!row.series.empty() && row.series != row.name) name += " (" + row.series + ")";
      if (!row.process.empty()) name += " of " + row.process;
      fact(i == 0 ? "counters" : "",
           fmt::format("{}  {:>11} {}  {:.6g} to {:.6g}, mean {:.6g}",
                       pad_right(shorten(one_line(name), 48), 48), format_count(row.sample_count),
                       row.sample_count == 1 ? "sample " : "samples", row.smallest, row.largest,
                       row.mean));
    }
  }

  void write_sizes() {
    std::string text = format_size(static_cast<std::int64_t>(info_.input_bytes));
    if (info_.unpacked_bytes != info_.input_bytes && info_.unpacked_bytes > 0)
      text += fmt::format(", unpacked {}",
                          format_size(static_cast<std::int64_t>(info_.unpacked_bytes)));
    fact("file", fmt::format("{}, {} events", text, format_count(info_.event_count)));
    std::string memory = format_size(static_cast<std::int64_t>(info_.memory_bytes));
    if (info_.event_count > 0)
      memory += fmt::format(" ({} bytes an event)", info_.memory_bytes / info_.event_count);
    fact("in memory", memory);
  }

  void write_issues() {
    if (info_.issues.empty()) fact("damage", "none: everything in the file was understood");
    for (const TraceInfo::Issue& issue : info_.issues) {
      const ImportIssueInfo& about = import_issue_info(issue.issue);
      std::string text = fmt::format("{}: {} x{}: {}", severity_name(about.severity), about.name,
                                     format_count(issue.count), about.description);
      if (issue.first_offset)
        text += fmt::format(", first at byte {}", format_count(*issue.first_offset));
      fact(&issue == &info_.issues.front() ? "damage" : "", text);
    }
  }

  const TraceInfo& info_;
  std::string out_;
};

void optional_integer(JsonWriter& json, std::string_view key, std::optional<std::int64_t> value) {
  if (value)
    json.integer(key, *value);
  else
    json.null(key);
}

void write_json_tracks(JsonWriter& json, std::string_view key,
                       const std::vector<TraceInfo::TrackRow>& rows, bool streams) {
  json.begin_array(key);
  for (const TraceInfo::TrackRow& row : rows) {
    json.begin_object().text("process", row.process).text("name", row.name);
    optional_integer(json, streams ? "device" : "pid", row.pid);
    optional_integer(json, streams ? "stream" : "tid", row.tid);
    json.integer("slice_count", row.slice_count).integer("busy_ns", row.busy_ns).end_object();
  }
  json.end_array();
}

void write_json_budget(JsonWriter& json, const TraceInfo& info) {
  if (info.cost)
    json.real("budget_ratio", info.cost->budget_ratio)
        .real("cost_ratio", info.cost->share_ratio)
        .real("always_recorded_ratio", info.cost->always_recorded_ratio)
        .integer("left_out_operators", info.cost->left_out_operators);
  if (!info.thinning) return;
  json.begin_object("thinned")
      .integer("without_inputs_ns", info.thinning->without_inputs_ns)
      .integer("without_stacks_ns", info.thinning->without_stacks_ns)
      .integer("without_short_operators_ns", info.thinning->without_short_operators_ns)
      .integer("short_operator_ns", info.thinning->short_ns)
      .integer("operators_in_parts_ns", info.thinning->operators_in_parts_ns)
      .integer("paused_ns", info.thinning->paused_ns)
      .integer("ranges_paused_ns", info.thinning->ranges_paused_ns)
      .integer("pause_count", info.thinning->pause_count);
  if (info.thinning->memory_end_ns)
    json.integer("with_memory_ns", info.thinning->with_memory_ns);
  else
    json.null("with_memory_ns");
  json.end_object();
}

void write_json_issues(JsonWriter& json, const TraceInfo& info) {
  json.begin_array("issues");
  for (const TraceInfo::Issue& issue : info.issues) {
    const ImportIssueInfo& about = import_issue_info(issue.issue);
    json.begin_object()
        .text("name", about.name)
        .text("severity", severity_name(about.severity))
        .integer("count", issue.count);
    if (issue.first_offset) json.integer("first_offset_bytes", *issue.first_offset);
    json.text("description", about.description).end_object();
  }
  json.end_array();
}

}  // namespace

std::string trace_info_text(const TraceInfo& info) { return InfoText(info).run(); }

std::string trace_info_json(const TraceInfo& info) {
  JsonWriter json("info");
  json.text("producer", info.producer).begin_array("producer_evidence");
  for (const std::string& each : info.producer_evidence) json.text({}, each);
  json.end_array()
      .text("host_name", info.host_name)
      .text("trace_id", info.trace_id)
      .begin_array("recorded_with");
  for (const std::string& each : info.recorded_with) json.text({}, each);
  json.end_array().begin_object("versions");
  for (const auto& [key, value] : info.versions) json.text(key, value);
  json.end_object().begin_array("devices");
  for (const TraceInfo::Device& device : info.devices) {
    json.begin_object().text("name", device.name);
    optional_integer(json, "id", device.id);
    optional_integer(json, "memory_bytes", device.memory_bytes);
    optional_integer(json, "multiprocessor_count", device.multiprocessor_count);
    optional_integer(json, "compute_major", device.compute_major);
    optional_integer(json, "compute_minor", device.compute_minor);
    optional_integer(json, "l2_bytes", device.l2_bytes);
    optional_integer(json, "memory_bandwidth_bytes_per_s", device.memory_bandwidth_bytes_per_s);
    json.begin_object("peak_operations_per_s");
    for (const auto& [name, rate] : known_rates(device.peak))
      json.integer(name, static_cast<std::int64_t>(rate));
    json.end_object().text("data_sheet", device.data_sheet).end_object();
  }
  json.end_array();
  optional_integer(json, "rank", info.rank);
  optional_integer(json, "world_size", info.world_size);
  json.text("distributed_backend", info.distributed_backend);
  json.integer("window_ns", info.window_ns).boolean("window_is_recorded", info.window_is_recorded);
  optional_integer(json, "window_start_unix_ns", info.window_start_unix_ns);
  write_json_budget(json, info);
  json.begin_object("steps").integer("count", info.steps.count);
  if (info.steps.count > 0)
    json.integer("first", info.steps.first)
        .integer("last", info.steps.last)
        .integer("shortest_ns", info.steps.shortest_ns)
        .integer("median_ns", info.steps.median_ns)
        .integer("longest_ns", info.steps.longest_ns);
  json.end_object();
  write_json_tracks(json, "threads", info.threads, false);
  write_json_tracks(json, "streams", info.streams, true);
  json.begin_array("categories");
  for (const TraceInfo::CategoryRow& row : info.categories)
    json.begin_object()
        .text("category", row.text)
        .text("kind", category_kind_name(row.kind))
        .integer("slice_count", row.slice_count)
        .integer("instant_count", row.instant_count)
        .integer("total_ns", row.total_ns)
        .end_object();
  json.end_array();
  json.begin_array("counters");
  for (const TraceInfo::CounterRow& row : info.counters)
    json.begin_object()
        .text("process", row.process)
        .text("name", row.name)
        .text("series", row.series)
        .integer("sample_count", row.sample_count)
        .real("smallest", row.smallest)
        .real("mean", row.mean)
        .real("largest", row.largest)
        .end_object();
  json.end_array();
  json.integer("slice_count", info.slice_count).integer("instant_count", info.instant_count);
  json.integer("flow_count", info.flow_count)
      .integer("counter_sample_count", info.counter_sample_count);
  json.integer("device_work_count", info.device_work_count)
      .integer("launched_count", info.launched_count);
  write_json_issues(json, info);
  json.integer("input_bytes", info.input_bytes).integer("unpacked_bytes", info.unpacked_bytes);
  json.integer("event_count", info.event_count).integer("memory_bytes", info.memory_bytes);
  return json.take();
}

}  // namespace lanescope::report
