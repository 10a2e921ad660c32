// Some ranks run on slower CPUs, and a profiler slows all that a CPU does. Then operators take longer, too,
// and time outside of them may be longer by the same factor without a cause of its own. Only what exceeds
// that counts.
//
// Example: the others need 2 ms outside of operators and 5 ms in them, this rank 9 ms and 6 ms. Its CPU is 1.2
// times as slow, so 2.4 ms would be usual: it is 6.6 ms late.
#include "lanescope/ranks/host_lateness.h"

#include <algorithm>

#include "lanescope/analysis/steps.h"

namespace lanescope::ranks {
namespace {

using analysis::lower_median;

constexpr double kLeastLateShare = 0.75;
constexpr std::uint64_t kLeastSteps = 3;
// More is no slower CPU. The bound also keeps sums over damaged summaries in range.
constexpr double kMostSlowness = 3;

std::int64_t free_time(const RankTimes& times) {
  return times.host_outside_ns + times.host_loader_ns;
}

template <class Part>
std::int64_t usual(const std::vector<RankTimes>& times, Part part) {
  std::vector<std::int64_t> values;
  for (const RankTimes& rank : times) values.push_back(part(rank));
  return lower_median(std::move(values));
}

}  // namespace

HostLateness measure_host_lateness(const Job& job, std::int64_t least_ns) {
  HostLateness out;
  const std::size_t ranks = job.times.size();
  out.mean_ns.assign(ranks, 0);
  out.steps.assign(ranks, 0);
  out.mostly_in_loader.assign(ranks, false);
  const std::uint64_t steps = job.steady_count();
  if (ranks < 2 || steps == 0) return out;
  for (const RankTimes& times : job.times)
    if (times.host_work_ns <= 0) return out;
  out.known = true;
  const std::int64_t work =
      usual(job.times, [](const RankTimes& times) { return times.host_work_ns; });
  std::vector<double> slowness;
  for (const RankTimes& times : job.times)
    slowness.push_back(std::clamp(static_cast<double>(times.host_work_ns) /
                                      static_cast<double>(std::max<std::int64_t>(1, work)),
                                  1.0, kMostSlowness));
  for (const JobStep& step : job.steps) {
    if (!step.steady) continue;
    const auto usual_ns = static_cast<double>(usual(step.times, free_time));
    for (std::size_t i = 0; i < ranks; ++i) {
      const std::int64_t late =
          free_time(step.times[i]) - static_cast<std::int64_t>(slowness[i] * usual_ns);
      out.mean_ns[i] += late;
      out.steps[i] += late > least_ns / 2 ? 1 : 0;
    }
  }
  const std::int64_t loader =
      usual(job.times, [](const RankTimes& times) { return times.host_loader_ns; });
  for (std::size_t i = 0; i < ranks; ++i) {
    out.mean_ns[i] /= static_cast<std::int64_t>(steps);
    out.mostly_in_loader[i] = (job.times[i].host_loader_ns - loader) * 2 > out.mean_ns[i];
  }
  return out;
}

std::vector<std::size_t> find_late_hosts(const Job& job, const HostLateness& lateness,
                                         std::int64_t least_ns) {
  std::vector<std::size_t> late;
  const std::uint64_t steps = job.steady_count();
  if (!lateness.known || steps < kLeastSteps) return late;
  std::int64_t least_late = INT64_MAX, most_other = INT64_MIN;
  for (std::size_t i = 0; i < lateness.mean_ns.size(); ++i) {
    if (lateness.mean_ns[i] > least_ns &&
        static_cast<double>(lateness.steps[i]) >= kLeastLateShare * static_cast<double>(steps)) {
      late.push_back(i);
      least_late = std::min(least_late, lateness.mean_ns[i]);
    } else {
      most_other = std::max(most_other, lateness.mean_ns[i]);
    }
  }
  // One that stands out, not the upper end of what differs from rank to rank.
  if (late.size() * 2 > lateness.mean_ns.size() || most_other * 2 > least_late) late.clear();
  return late;
}

}  // namespace lanescope::ranks
