#include "lanescope/ranks/cpu_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lanescope/ranks/roster.h"
#include "lanescope/simulate/recording_cost.h"

namespace lanescope::ranks {
namespace {

constexpr double kCpuBoundShare = 0.15;  // of a step, without what recording may have cost

double ms(double ns) { return ns / 1e6; }

// The upper end of what recording cost a rank's CPU, in ns a step; at most what its device waits.
double recording_ns(const RankTimes& times) {
  return std::min(simulate::kMostRecording * static_cast<double>(times.host_recording_ns),
                  static_cast<double>(times.cpu_idle_ns()));
}

}  // namespace

std::string cpu_bound_text(const Job& job, const JobVerdict& verdict) {
  std::vector<std::int64_t> ranks;
  double idle = 0, wall = 0, recording = 0;
  for (std::size_t i = 0; i < job.times.size(); ++i) {
    const RankTimes& times = job.times[i];
    const std::int64_t rank = job.numbers[job.compared[i]];
    if (job.ranks[job.compared[i]].device_count == 0) return {};
    if (std::find(verdict.ranks.begin(), verdict.ranks.end(), rank) != verdict.ranks.end())
      continue;
    const auto idle_ns = static_cast<double>(times.cpu_idle_ns());
    if (idle_ns - recording_ns(times) < kCpuBoundShare * static_cast<double>(times.wall_ns) ||
        times.wall_ns <= 0)
      continue;
    ranks.push_back(rank);
    idle += idle_ns;
    wall += static_cast<double>(times.wall_ns);
    recording += recording_ns(times);
  }
  if (ranks.empty()) return {};
  const auto count = static_cast<double>(ranks.size());
  const bool one = ranks.size() == 1;
  return fmt::format(
      "The {}{} of {} {} {} {:.2f} ms of a step ({:.0f} %) for {}{}. lanescope explain says what "
      "the {} "
      "then.",
      verdict.device, one ? "" : "s", one ? "rank" : "ranks", ranks_text(ranks),
      one ? "waits" : "wait", ms(idle / count), 100 * idle / wall, one ? "its CPU" : "their CPUs",
      recording < 0.01 * wall
          ? ""
          : fmt::format(", of which up to {:.2f} ms may be the profiler's own work",
                        ms(recording / count)),
      one ? "CPU does" : "CPUs do");
}

}  // namespace lanescope::ranks
