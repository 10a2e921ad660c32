#include "lanescope/explain/measures.h"
#include "lanescope/analysis/launching_calls.h"

#include <algorithm>
#include <unordered_set>

#include "lanescope/explain/memory_end.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain {

using analysis::IdleCause;

namespace {

constexpr Measure time_part(const char* key, const char* meaning) {
  return {key, MeasureUnit::kTime, true, true, meaning};
}

// Order is that of `--write-budget` and of docs/formats/budget.md.
constexpr Measure kMeasures[] = {
    {"steps", MeasureUnit::kCount, false, false, "steady steps in the trace"},
    {"wall", MeasureUnit::kTime, false, true, "the mean step on the device"},
    {"median_wall", MeasureUnit::kTime, false, false, "the median step on the device"},
    {"longest_wall", MeasureUnit::kTime, false, false, "the longest step on the device"},
    {"cpu_wall", MeasureUnit::kTime, false, true, "the mean step on the CPU"},
    time_part("compute", "kernels that are no communication"),
    time_part("exposed_communication", "communication while nothing computes"),
    time_part("exposed_copy", "copies and memsets while nothing else runs"),
    time_part("idle", "nothing runs on any stream of the device"),
    time_part("waiting_for_cpu", "idle because the CPU was late"),
    time_part("host_late", "idle: the CPU had not launched yet"),
    time_part("after_sync", "idle: the queue was empty after a CPU wait"),
    time_part("launch_latency", "idle: launches on their way"),
    time_part("between_queued", "idle: between queued work"),
    time_part("waiting", "idle: launched but waiting, unexplained"),
    time_part("profiler", "idle: the profiler's own work"),
    time_part("before_first_work", "idle: before the first launch"),
    time_part("after_last_work", "idle: nothing launched any more"),
    time_part("unknown", "idle: no launch in the trace"),
    {"host_waits", MeasureUnit::kCount, false, true, "calls in which the CPU may wait for the GPU"},
    {"kernels", MeasureUnit::kCount, false, true, "kernels that began"},
    {"launches", MeasureUnit::kCount, false, true, "calls that started GPU work; a graph is one"},
    {"copies", MeasureUnit::kCount, false, true, "copies that began"},
    {"copy_bytes", MeasureUnit::kBytes, false, true, "bytes of these copies"},
    {"memsets", MeasureUnit::kCount, false, true, "memsets that began"},
    {"peak_memory", MeasureUnit::kBytes, false, false,
     "most GPU memory that torch's allocator had given out"},
    {"peak_reserved", MeasureUnit::kBytes, false, false,
     "most GPU memory that torch's allocator held"},
};

constexpr std::pair<std::string_view, IdleCause> kCauses[] = {
    {"host_late", IdleCause::kHostLate},
    {"after_sync", IdleCause::kAfterSync},
    {"launch_latency", IdleCause::kLaunchLatency},
    {"between_queued", IdleCause::kBetweenQueued},
    {"waiting", IdleCause::kWaiting},
    {"profiler", IdleCause::kProfiler},
    {"before_first_work", IdleCause::kBeforeFirstWork},
    {"after_last_work", IdleCause::kAfterLastWork},
    {"unknown", IdleCause::kUnknown},
};

std::int64_t wall_part(const Facts& facts, std::string_view key) {
  const auto& part = facts.wall.partition;
  if (key == "wall") return part.wall_ns;
  if (key == "compute") return part.compute_ns;
  if (key == "exposed_communication") return part.exposed_communication_ns;
  if (key == "exposed_copy") return part.exposed_copy_ns;
  if (key == "idle") return part.idle_ns;
  if (key == "waiting_for_cpu") return facts.waiting_for_cpu_ns();
  const auto cause = find_idle_cause(key);
  return cause ? facts.wall.idle_by(*cause) : 0;
}

bool needs_launches(std::string_view key) {
  return key == "host_waits" || key == "launches" || key == "waiting_for_cpu" ||
         (find_idle_cause(key) && key != "unknown" && key != "profiler");
}

Measured peak(const Facts& facts, ArgKey key) {
  const Trace& trace = *facts.trace;
  if (!has_memory_to_the_end(facts)) return Unmeasured{kMemoryToTheEnd};
  std::optional<std::int64_t> most;
  for (std::uint32_t i = 0; i < trace.instants().size(); ++i) {
    if (!is_device_memory(facts, i)) continue;
    const auto value = trace.args(trace.instants().args[i]).integer(key);
    if (value) most = std::max(most.value_or(*value), *value);
  }
  if (!most)
    return Unmeasured{
        "allocations of GPU memory in the trace (record with profile_memory=True, or "
        "lanescope record --memory)"};
  return MeasuredValue{*most, 1};
}

Measured count_work(const Facts& facts, std::string_view key) {
  const Trace& trace = *facts.trace;
  const CategoryKind kind = key == "kernels"   ? CategoryKind::kKernel
                            : key == "memsets" ? CategoryKind::kGpuMemset
                                               : CategoryKind::kGpuMemcpy;
  const auto steps = static_cast<std::int64_t>(facts.selection.steady.size());
  std::int64_t count = 0, bytes = 0, with_bytes = 0;
  for (const auto& work : facts.device().timeline.work) {
    if (trace.kind(work.slice) != kind || !inside(facts.steady_windows, work.start_ns)) continue;
    ++count;
    const auto size = trace.slice_args(work.slice).integer(ArgKey::kBytes);
    if (!size || *size < 0) continue;
    ++with_bytes;
    bytes += std::min(*size, (std::int64_t{1} << 62) - bytes);
  }
  if (key != "copy_bytes") return MeasuredValue{count, steps};
  if (with_bytes < count)
    return Unmeasured{"the size of every copy (the argument bytes of gpu_memcpy events)"};
  return MeasuredValue{bytes, steps};
}

Measured step_length(const Facts& facts, bool longest) {
  std::vector<std::int64_t> lengths;
  for (const std::size_t index : facts.selection.steady)
    lengths.push_back(facts.device().windows[index].length_ns());
  const auto statistics = analysis::step_statistics(lengths);
  return MeasuredValue{longest ? statistics.longest_ns : statistics.median_ns, 1};
}

}  // namespace

std::span<const Measure> all_measures() { return kMeasures; }

const Measure* find_measure(std::string_view key) {
  const auto* found = std::find_if(std::begin(kMeasures), std::end(kMeasures),
                                   [&](const Measure& each) { return key == each.key; });
  return found == std::end(kMeasures) ? nullptr : found;
}

bool is_device_memory(const Facts& facts, std::uint32_t instant) {
  const std::int64_t device = facts.device().timeline.device;
  const ArgsView args = facts.trace->args(facts.trace->instants().args[instant]);
  // Device type 0 is the CPU; an allocator that does not say which device means the only one.
  return args.integer(ArgKey::kDeviceType).value_or(0) != 0 &&
         args.integer(ArgKey::kDeviceId).value_or(device) == device;
}

std::optional<IdleCause> find_idle_cause(std::string_view key) {
  for (const auto& [name, cause] : kCauses)
    if (key == name) return cause;
  return {};
}

std::vector<SliceId> find_host_waits(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  std::int64_t last_launch_ns = 0;
  std::vector<SliceId> waits;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!is_api_call(trace.kind(id))) continue;
    if (analysis::launches_work(trace, facts.links, id))
      last_launch_ns = std::max(last_launch_ns, trace.start_ns(id));
    if (!inside(cpu_windows, trace.start_ns(id)) ||
        !analysis::is_blocking_call(trace, facts.links, id))
      continue;
    // An operator that copies and then waits for its copy waits once.
    const bool is_same_wait = !waits.empty() && facts.links.launched_by(id).empty() &&
                              !facts.links.launched_by(waits.back()).empty() &&
                              facts.links.op_of[i] != kNone<SliceId> &&
                              facts.links.op_of[i] == facts.links.op_of[raw(waits.back())];
    if (!is_same_wait) waits.push_back(id);
  }
  std::erase_if(waits, [&](SliceId id) { return trace.start_ns(id) > last_launch_ns; });
  return waits;
}

Measured compute_measure(const Facts& facts, const Measure& measure) {
  const std::string_view key = measure.key;
  const auto steps = static_cast<std::int64_t>(facts.selection.steady.size());
  if (key == "steps") return MeasuredValue{facts.steps.marked ? steps : 0, 1};
  if (steps == 0) return Unmeasured{"events (the trace is empty)"};
  if (key == "cpu_wall") {
    std::int64_t sum = 0;
    for (const auto& window : facts.steady_cpu_windows()) sum += window.length_ns();
    return MeasuredValue{sum, steps};
  }
  if (!facts.main_device) return Unmeasured{rules::need::kGpuWork.missing};
  if (needs_launches(key) && !rules::has_launches(facts))
    return Unmeasured{rules::need::kLaunchCalls.missing};
  if (key == "median_wall" || key == "longest_wall")
    return step_length(facts, key == "longest_wall");
  if (key == "host_waits")
    return MeasuredValue{static_cast<std::int64_t>(find_host_waits(facts).size()), steps};
  if (key == "launches")
    return MeasuredValue{static_cast<std::int64_t>(facts.launches.launch_call_count), steps};
  if (key == "peak_memory") return peak(facts, ArgKey::kTotalAllocated);
  if (key == "peak_reserved") return peak(facts, ArgKey::kTotalReserved);
  if (measure.unit != MeasureUnit::kTime) return count_work(facts, key);
  return MeasuredValue{wall_part(facts, key), steps};
}

}  // namespace lanescope::explain
