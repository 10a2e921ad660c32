// The GPU's SMs work while this program has nothing on it: another process uses the same GPU.
#include <algorithm>
#include <cmath>
#include <optional>

#include "lanescope/explain/rules/hardware.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kActive = 10;                 // percent
constexpr double kLeastSharedGpuShare = 0.05;  // of the samples without work of this program

struct SharedGpu {
  std::uint64_t active_samples = 0, idle_samples = 0;
  std::int64_t active_ns = 0;
  double mean = 0;  // percent, in the active samples
};

// Launches whose work is missing would look like another process.
bool lacks_gpu_work(const Facts& facts) {
  if (facts.trace->import_stats()[ImportIssue::kDroppedRecords].count > 0 ||
      facts.kernel_launches.gpu_stops_early())
    return true;
  const auto& calls = facts.kernel_launches.calls;
  for (std::size_t i = 0; i < facts.kernel_launches.recorded; ++i)
    if (facts.links.launched_by(calls[i]).empty()) return true;
  return false;
}

Measurement<SharedGpu> measure_shared_gpu(const Facts& facts) {
  const auto& timeline = facts.device().timeline;
  const auto lanes = analysis::find_hardware_lanes(*facts.trace, timeline.device);
  const analysis::HardwareSeries* active = lanes ? lanes->find("SM active") : nullptr;
  if (!active || timeline.work.empty()) return NotChecked{need::kRecordHardware};
  if (lacks_gpu_work(facts)) return NotChecked{"all GPU work of this program (some was lost)"};
  SharedGpu found;
  double weighted = 0;
  const std::int64_t from_ns = timeline.work.front().start_ns;
  const std::int64_t to_ns = timeline.busy.back().end_ns;
  for (const SampleSpan& sample : sample_spans(*active, lanes->interval_ns)) {
    // One more sample on both sides: clocks differ a little, and writes leave the L2 cache late.
    const std::int64_t around = sample.end_ns - sample.start_ns;
    const std::int64_t start_ns = sample.start_ns - around, end_ns = sample.end_ns + around;
    if (start_ns < from_ns || end_ns > to_ns || !inside(facts.steady_windows, start_ns) ||
        !inside(facts.steady_windows, end_ns))
      continue;
    const auto times = timeline.time_within(start_ns, end_ns);
    if (std::any_of(times.begin(), times.end(), [](std::int64_t time) { return time > 0; }))
      continue;
    ++found.idle_samples;
    if (sample.value < kActive) continue;
    ++found.active_samples;
    found.active_ns += around;
    weighted += sample.value * static_cast<double>(around);
  }
  if (found.idle_samples < kFewestVerdictSamples)
    return NotChecked{"20 samples of the counters in which this program had no GPU work"};
  if (found.active_samples < analysis::kFewestHardwareSamples ||
      static_cast<double>(found.active_samples) <
          kLeastSharedGpuShare * static_cast<double>(found.idle_samples))
    return Quiet{};
  found.mean = weighted / static_cast<double>(found.active_ns);
  return found;
}

Finding tell_shared_gpu(const Facts& facts, const SharedGpu& found) {
  const Value active = count(found.active_samples), idle = count(found.idle_samples);
  Finding finding;
  finding.kind = FindingKind::kTrust;
  finding.verdict =
      say("Another process seems to use this GPU: in {} of {} samples in which this program ran "
          "nothing on it, about {} of its SMs worked.",
          {active, idle, ratio(std::llround(found.mean * 10), 1000)});
  finding.arithmetic.push_back(
      say("counted: samples of SM active in pauses of the GPU's work, one sample away from any "
          "work; active means 10 % or more"));
  finding.arithmetic.push_back(
      say("kernels may be slower than alone, and the counters' numbers of kernels are too high: "
          "they hold the other process's work"));
  finding.at_stake_ns = found.active_ns;
  finding.at_stake_ratio = share_of(found.active_ns, facts.wall.partition.wall_ns);
  finding.brief =
      say("Another process seems to use this GPU ({} of {} idle samples)", {active, idle});
  finding.try_next = {"`nvidia-smi` lists the processes; measure again with the GPU alone"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.idle_samples;
  finding.sample_noun = "sample";
  return finding;
}

}  // namespace

extern constinit const Rule shared_gpu_rule = {
    .id = "shared-gpu",
    .question = "does another process run kernels on this GPU?",
    .meant_by = "another process somebody else",
    .order = 594,
    .needs = {need::kGpuWork, need::kHardware},
    .run = measure_and_tell<measure_shared_gpu, tell_shared_gpu>,
};

}  // namespace lanescope::explain::rules
