// Where CPUs are the limit, ranks run late in turn, and the others wait for them: the device of a rank is idle because
// of its own CPU or of another rank's. So what counts is the part of a step in which no rank's device has work.
//
// Example: a step takes 10 ms, and the devices of both ranks work 4 ms. CPUs make them wait 6 ms, now here, now there.
// Recording cost up to 3 ms, so a step without it takes 7 ms or more, of which 3 ms are waits for CPUs: 43 %.
#include "lanescope/ranks/cpu_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lanescope/simulate/recording_cost.h"

namespace lanescope::ranks {
namespace {

constexpr double kCpuBoundShare = 0.15;  // of a step without the profiler

double idle_ms(double ns) { return ns / 1e6; }

// What a rank's device does, and waits for other reasons than its CPU or a late rank.
std::int64_t device_ns(const RankTimes& times) {
  return times.wall_ns - times.cpu_idle_ns() - times.exposed_wait_ns;
}

// Whether the verdict holds this rank's CPU responsible already. Rotating work is nobody's.
std::vector<bool> named_ranks(const Job& job, const JobVerdict& verdict) {
  std::vector<bool> named(job.times.size(), false);
  if (verdict.kind == VerdictKind::kRotating) return named;
  for (std::size_t i = 0; i < named.size(); ++i)
    named[i] = std::find(verdict.ranks.begin(), verdict.ranks.end(),
                         job.numbers[job.compared[i]]) != verdict.ranks.end();
  return named;
}

// In which no device has work, as far as the CPU of a rank that is not named explains it.
std::int64_t without_work_ns(const JobStep& step, const std::vector<bool>& named) {
  std::int64_t least = INT64_MAX, most_idle = 0;
  for (std::size_t i = 0; i < step.times.size(); ++i) {
    least = std::min(least, step.times[i].wall_ns - device_ns(step.times[i]));
    if (!named[i]) most_idle = std::max(most_idle, step.times[i].cpu_idle_ns());
  }
  return std::max<std::int64_t>(0, std::min(least, most_idle));
}

}  // namespace

std::string cpu_bound_text(const Job& job, const JobVerdict& verdict) {
  const std::uint64_t steps = job.steady_count();
  if (job.times.empty() || steps == 0) return {};
  for (const std::uint32_t rank : job.compared)
    if (job.ranks[rank].device_count == 0) return {};
  const std::vector<bool> named = named_ranks(job, verdict);
  double idle = 0, wall = 0, recording = 0;
  for (const JobStep& step : job.steps)
    if (step.steady)
      idle += static_cast<double>(without_work_ns(step, named)) / static_cast<double>(steps);
  for (const RankTimes& times : job.times) {
    wall += static_cast<double>(times.wall_ns) / static_cast<double>(job.times.size());
    recording = std::max(recording,
                         simulate::kMostRecording * static_cast<double>(times.host_recording_ns));
  }
  recording = std::min(recording, idle);
  const double certain = idle - recording;
  if (wall <= 0 || certain < kCpuBoundShare * (wall - recording) ||
      certain < static_cast<double>(least_difference_ns(static_cast<std::int64_t>(wall))))
    return {};
  return fmt::format(
      "No {} has work for {:.2f} ms of a step ({:.0f} %), because the CPUs are late with it{}. "
      "lanescope explain says what the CPUs do then.",
      verdict.device, idle_ms(idle), 100 * idle / wall,
      recording < 0.01 * wall
          ? ""
          : fmt::format("; up to {:.2f} ms of that may be the profiler's own work",
                        idle_ms(recording)));
}

}  // namespace lanescope::ranks
