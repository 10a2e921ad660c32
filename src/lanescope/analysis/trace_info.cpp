#include "lanescope/analysis/trace_info.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/analysis/launch_owners.h"
#include "lanescope/analysis/steps.h"
#include "lanescope/base/json_value.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/model/nearly_sorted.h"
#include "lanescope/model/simulated_by.h"

namespace lanescope::analysis {
namespace {

std::optional<JsonValue> metadata_value(const Trace& trace, std::string_view key) {
  const auto json = trace.metadata_json(key);
  return json ? parse_json(*json) : std::nullopt;
}

std::string metadata_text(const Trace& trace, std::string_view key) {
  const auto value = metadata_value(trace, key);
  return value && value->is_string() ? value->text : "";
}

std::optional<std::int64_t> integer_of(const JsonValue& object,
                                       std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const JsonValue* value = object.find(name); value && value->integer) return value->integer;
  return std::nullopt;
}

bool has_metadata_prefix(const Trace& trace, std::string_view prefix) {
  return std::any_of(trace.metadata().begin(), trace.metadata().end(), [&](const Metadata& entry) {
    return trace.text(entry.key).starts_with(prefix);
  });
}

bool has_process_named(const Trace& trace, std::string_view part) {
  return std::any_of(trace.processes().begin(), trace.processes().end(),
                     [&](const Process& process) {
                       return trace.text(process.name).find(part) != std::string_view::npos ||
                              (process.pid.is_text && trace.text(process.pid.text) == part);
                     });
}

bool has_category(const Trace& trace, std::string_view text) {
  return std::any_of(trace.categories().begin(), trace.categories().end(),
                     [&](const Category& category) { return trace.text(category.text) == text; });
}

bool has_whole_microseconds(const Trace& trace) {
  const auto& starts = trace.slices().start_ns;
  return !starts.empty() &&
         std::all_of(starts.begin(), starts.end(), [](std::int64_t ns) { return ns % 1000 == 0; });
}

// Traces do not name their writer's version; each line below is a key or a habit of some versions.
struct OtherProgram {
  const char *name, *process, *category, *metadata;  // any of these shows it; null: none
};
constexpr OtherProgram kOtherPrograms[] = {
    {"VizTracer", nullptr, nullptr, "viztracer_metadata"},
    {"py-spy", nullptr, "py-spy", nullptr},
    {"JAX or TensorFlow (XProf)", "/host:CPU", nullptr, nullptr},
    {"a browser (Chrome DevTools)", nullptr, "devtools.timeline", nullptr},
    {"clang (-ftime-trace)", "clang", nullptr, nullptr},
    {"NCCL (its profiler plugin)", nullptr, "GROUP_API", nullptr},
    {"torch.compile (its own log, TORCH_TRACE)", nullptr, "dynamo_timed", nullptr},
    {"Node.js", nullptr, "node,node.fs,node.fs.async", nullptr},
    {"Node.js", nullptr, "node.async_hooks", nullptr},
    {"Node.js", nullptr, "node,node.bootstrap", nullptr},
};

void find_producer(const Trace& trace, TraceInfo& info) {
  auto& evidence = info.producer_evidence;
  if (has_metadata_prefix(trace, "lanescope")) {
    info.producer = "lanescope";
    evidence.push_back("metadata of lanescope's own");
  } else if (const std::string writer = metadata_text(trace, "recordedBy");
             writer == "Nsight Systems" || writer == "Perfetto") {  // says the format's reader
    info.producer = writer;
    evidence.push_back("the format of the file");
  } else if (has_process_named(trace, "Ascend Hardware") || has_process_named(trace, "CANN")) {
    info.producer = "Ascend PyTorch Profiler";
    evidence.push_back("processes named CANN or Ascend Hardware");
  } else if (trace.metadata_json("schemaVersion") || has_category(trace, "Trace")) {
    info.producer = "torch.profiler (Kineto)";
    evidence.push_back(trace.metadata_json("schemaVersion") ? "schemaVersion"
                                                            : "a capture span of category Trace");
  } else if (has_process_named(trace, "CPU functions")) {
    info.producer = "torch.autograd.profiler (export of its own)";
    evidence.push_back("a process called CPU functions");
  } else if (has_category(trace, "cpu_op") || has_category(trace, "Operator")) {
    info.producer = "torch.profiler (Kineto)";
    evidence.push_back("its categories");
  } else {
    const std::string other = other_program_of(trace);
    info.producer = other.empty() ? "unknown" : other;
    if (!other.empty()) evidence.push_back("names in the file");
  }
  if (!info.producer.starts_with("torch.profiler")) return;
  if (has_category(trace, "Operator")) evidence.push_back("category Operator (torch 1.x)");
  if (has_whole_microseconds(trace)) evidence.push_back("whole microseconds only (an old version)");
  if (trace.metadata_json("host_name"))
    evidence.push_back("host_name (newer than torch 2.11)");
  else if (trace.metadata_json("baseTimeNanoseconds"))
    evidence.push_back(
        "baseTimeNanoseconds without host_name (torch 2.11 and some older versions)");
}

void tell_simulated(const Trace& trace, TraceInfo& info) {
  const std::string by = metadata_text(trace, kSimulatedBy);
  if (!by.empty()) info.producer = "simulated by " + by + "; recorded by " + info.producer;
}

void find_devices(const Trace& trace, TraceInfo& info) {
  for (const char* key : {"deviceProperties", "computeProperties"}) {
    const auto json = trace.metadata_json(key);
    if (!json) continue;
    for (const GpuDevice& gpu : parse_gpu_devices(*json)) {
      TraceInfo::Device device;
      device.id = gpu.id;
      device.name = gpu.name;
      device.memory_bytes = gpu.memory_bytes;
      device.compute_major = gpu.compute_major;
      device.compute_minor = gpu.compute_minor;
      device.multiprocessor_count = gpu.sm_count;
      device.l2_bytes = gpu.l2_bytes;
      device.memory_bandwidth_bytes_per_s = gpu.memory_bandwidth_bytes_per_s;
      if (const GpuSpec* spec = find_gpu_spec(gpu)) {
        device.data_sheet = spec->source;
        device.peak = spec->peak;
        if (!device.l2_bytes) device.l2_bytes = spec->l2_bytes;
        if (!device.memory_bandwidth_bytes_per_s)
          device.memory_bandwidth_bytes_per_s =
              static_cast<std::int64_t>(spec->memory_bandwidth_bytes_per_s);
      }
      info.devices.push_back(std::move(device));
    }
  }
}

void find_options(const Trace& trace, TraceInfo& info) {
  for (const char* key :
       {"record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"})
    if (const auto value = metadata_value(trace, key);
        value && (value->integer.value_or(0) == 1 || value->boolean))
      info.recorded_with.emplace_back(key);
  for (const Metadata& entry : trace.metadata())
    if (trace.text(entry.key).ends_with("_version"))
      info.versions.emplace_back(trace.text(entry.key), trace.text(entry.json));
}

void find_job(const Trace& trace, TraceInfo& info) {
  const auto job = metadata_value(trace, "distributedInfo");
  if (!job || !job->is_object()) return;
  info.rank = integer_of(*job, {"rank"});
  info.world_size = integer_of(*job, {"world_size"});
  if (const JsonValue* backend = job->find("backend"); backend && backend->is_string())
    info.distributed_backend = backend->text;
}

void find_steps(const Trace& trace, TraceInfo& info) {
  if (trace.steps().empty()) return;
  std::vector<std::int64_t> lengths;
  for (const Step& step : trace.steps()) lengths.push_back(trace.dur_ns(step.slice));
  std::sort(lengths.begin(), lengths.end());
  info.steps = {lengths.size(),  trace.steps().front().number, trace.steps().back().number,
                lengths.front(), median_of_steps(lengths),     lengths.back()};
}

void count_tracks(const Trace& trace, TraceInfo& info) {
  for (const Track& track : trace.tracks()) {
    const bool is_stream = track.kind == TrackKind::kStream;
    if (track.slice_count == 0 || (!is_stream && track.kind != TrackKind::kThread)) continue;
    if (trace.kind(SliceId{track.first_slice}) == CategoryKind::kTrace)
      continue;  // the window, not a thread
    TraceInfo::TrackRow row;
    const Process& process = trace.process(track.process);
    row.process = trace.text(process.name);
    row.name = trace.text(track.name);
    row.slice_count = track.slice_count;
    if (!process.pid.is_text) row.pid = process.pid.number;
    if (!track.tid.is_text) row.tid = track.tid.number;
    if (is_stream) {
      row.pid = track.device ? std::optional<std::int64_t>(*track.device) : std::nullopt;
      row.tid = track.stream;
    }
    if (row.name.empty() && track.tid.is_text) row.name = trace.text(track.tid.text);
    if (row.process.empty() && process.pid.is_text) row.process = trace.text(process.pid.text);
    IntervalUnion busy;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
      if (!is_stream || is_device_work(trace.kind(SliceId{i})))
        busy.add(trace.start_ns(SliceId{i}), trace.end_ns(SliceId{i}));
    busy.finish();
    row.busy_ns = busy.length_ns();
    (is_stream ? info.streams : info.threads).push_back(std::move(row));
  }
}

// Python frames lie in each other, tens deep: their durations added up say nothing.
std::int64_t union_by_thread(const Trace& trace, CategoryId category) {
  std::int64_t total_ns = 0;
  for (const Track& track : trace.tracks()) {
    IntervalUnion covered;
    for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
      if (trace.slices().category[i] == category)
        covered.add(trace.start_ns(SliceId{i}), trace.end_ns(SliceId{i}));
    covered.finish();
    total_ns += covered.length_ns();
  }
  return total_ns;
}

void count_categories(const Trace& trace, TraceInfo& info) {
  std::vector<TraceInfo::CategoryRow> rows(trace.categories().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].text = trace.text(trace.categories()[i].text);
    rows[i].kind = trace.categories()[i].kind;
  }
  for (std::size_t i = 0; i < trace.slices().size(); ++i) {
    TraceInfo::CategoryRow& row = rows[raw(trace.slices().category[i])];
    ++row.slice_count;
    row.total_ns += trace.slices().dur_ns[i];
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].kind == CategoryKind::kPythonFunction)
      rows[i].total_ns = union_by_thread(trace, static_cast<CategoryId>(i));
  for (const CategoryId category : trace.instants().category) ++rows[raw(category)].instant_count;
  for (TraceInfo::CategoryRow& row : rows)
    if (row.slice_count + row.instant_count > 0) info.categories.push_back(std::move(row));
  sort_rows(info.categories.begin(), info.categories.end(), [](const auto& a, const auto& b) {
    return a.slice_count + a.instant_count > b.slice_count + b.instant_count;
  });
}

void find_issues(const Trace& trace, TraceInfo& info) {
  for (const Severity severity : {Severity::kLost, Severity::kRepaired, Severity::kNote}) {
    for (std::size_t i = 0; i < kImportIssueCount; ++i) {
      const auto issue = static_cast<ImportIssue>(i);
      const ImportStats::Counter& counter = trace.import_stats()[issue];
      if (counter.count > 0 && import_issue_info(issue).severity == severity)
        info.issues.push_back({issue, counter.count, counter.first_offset});
    }
  }
}

}  // namespace

std::string other_program_of(const Trace& trace) {
  if (has_category(trace, "cpu_op") || has_category(trace, "kernel")) return {};
  for (const OtherProgram& program : kOtherPrograms)
    if ((program.process && has_process_named(trace, program.process)) ||
        (program.category && has_category(trace, program.category)) ||
        (program.metadata && trace.metadata_json(program.metadata)))
      return program.name;
  if (has_category(trace, "Session") && has_category(trace, "Node")) return "ONNX Runtime";
  return {};
}

namespace {

void list_counters(const Trace& trace, TraceInfo& info) {
  const CounterColumns& counters = trace.counters();
  for (std::size_t i = 0; i < counters.size();) {  // by track
    const TrackId id = counters.track[i];
    const Track& track = trace.track(id);
    const Process& process = trace.processes()[raw(track.process)];
    TraceInfo::CounterRow row;
    row.process = trace.text(process.labels != kNone<StringId> ? process.labels : process.name);
    if (row.process.empty() && !process.pid.is_text)
      row.process = std::to_string(process.pid.number);
    row.name = trace.text(track.name);
    row.series = trace.text(track.series);
    row.smallest = row.largest = counters.value[i];
    double sum = 0;
    for (; i < counters.size() && counters.track[i] == id; ++i, ++row.sample_count) {
      row.smallest = std::min(row.smallest, counters.value[i]);
      row.largest = std::max(row.largest, counters.value[i]);
      sum += counters.value[i];
    }
    row.mean = sum / static_cast<double>(row.sample_count);
    info.counters.push_back(std::move(row));
  }
}

}  // namespace

TraceInfo describe_trace(const Trace& trace) {
  TraceInfo info;
  find_producer(trace, info);
  tell_simulated(trace, info);
  info.host_name = metadata_text(trace, "host_name");
  info.trace_id = metadata_text(trace, "trace_id");
  find_options(trace, info);
  find_devices(trace, info);
  find_job(trace, info);
  info.window_ns = trace.window_end_ns() - trace.window_start_ns();
  info.window_is_recorded = trace.has_window_span();
  // Old files have the whole Unix time in each ts and no base time; a ts after 2001 cannot be a
  // time since start-up.
  if (trace.base_time_ns() != 0 || trace.window_start_ns() > 1'000'000'000'000'000'000)
    info.window_start_unix_ns = saturating_end(trace.base_time_ns(), trace.window_start_ns());
  info.cost = find_recording_cost(trace);
  info.thinning = find_thinning(trace);
  find_steps(trace, info);
  info.slice_count = trace.slices().size();
  info.instant_count = trace.instants().size();
  info.flow_count = trace.flows().size();
  info.counter_sample_count = trace.counters().size();
  find_issues(trace, info);
  info.input_bytes = trace.import_stats().input_bytes;
  info.unpacked_bytes = trace.import_stats().unpacked_bytes;
  info.event_count = trace.import_stats().events;
  info.memory_bytes = trace.memory_bytes();
  return info;
}

TraceInfo compute_trace_info(const Trace& trace) {
  TraceInfo info = describe_trace(trace);
  count_tracks(trace, info);
  count_categories(trace, info);
  list_counters(trace, info);
  const LaunchCounts launches = compute_launch_owners(trace);
  info.device_work_count = launches.device_work_count;
  info.launched_count = launches.launched_count;
  return info;
}

}  // namespace lanescope::analysis
