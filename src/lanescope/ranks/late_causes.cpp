#include "lanescope/ranks/late_causes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/host_lateness.h"
#include "lanescope/simulate/recording_cost.h"

namespace lanescope::ranks {
namespace {

using analysis::lower_median;

// A part of a step: the late ranks' mean minus the others' median, in ns.
template <class Part>
std::int64_t longer_by(const Job& job, const std::set<std::size_t>& late, Part part) {
  std::vector<std::int64_t> others;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < job.times.size(); ++i)
    if (late.contains(i))
      sum += part(job.times[i]);
    else
      others.push_back(part(job.times[i]));
  return sum / static_cast<std::int64_t>(late.size()) - lower_median(std::move(others));
}

bool is_input(const std::string& name) { return name.find("DataLoader") != std::string::npos; }

// What the CPU of the late rank does longest while its device waits, compared with the same on another rank.
void find_host_part(const Job& job, const std::set<std::size_t>& late, JobVerdict& verdict) {
  const std::uint32_t rank = job.compared[*late.begin()];
  std::vector<std::vector<HostPart>> others;
  for (std::size_t i = 0; i < job.compared.size(); ++i)
    if (!late.contains(i)) others.push_back(job.ranks[job.compared[i]].host_parts);
  std::int64_t most = 0;
  for (const HostPart& part : job.ranks[rank].host_parts) {
    std::vector<std::int64_t> same;
    for (const auto& parts : others) {
      const auto found = std::find_if(parts.begin(), parts.end(),
                                      [&](const HostPart& each) { return each.name == part.name; });
      same.push_back(found == parts.end() ? 0 : found->time_ns);
    }
    const std::int64_t more = part.time_ns - lower_median(std::move(same));
    if (more <= most) continue;
    most = more;
    verdict.host_part = part.name;
  }
  std::int64_t steady = 0;
  for (const RankStep& step : job.ranks[rank].steps) steady += step.steady ? 1 : 0;
  verdict.host_part_ns = steady > 0 ? most / steady : 0;
}

// A CPU that ran ahead is late earlier than its device waits: what it does then is not what made it late.
void find_earlier_part(const Job& job, const std::set<std::size_t>& late, JobVerdict& verdict) {
  if (is_input(verdict.host_part) || verdict.host_part.starts_with("code without events")) return;
  const HostLateness lateness = measure_host_lateness(job, verdict.threshold_ns);
  if (!lateness.known) return;
  std::int64_t least = INT64_MAX;
  bool in_loader = true;
  for (const std::size_t i : late) {
    least = std::min(least, lateness.mean_ns[i]);
    in_loader = in_loader && lateness.mostly_in_loader[i];
  }
  if (least * 2 < verdict.late_ns || least <= verdict.host_part_ns) return;
  verdict.host_part = in_loader ? "the DataLoader" : "code without events";
  verdict.host_part_ns = least;
  verdict.host_part_is_of_step = true;
}

// A CPU that is slower in everything has no part that stands out.
void find_slow_cpu(const Job& job, const std::set<std::size_t>& late, JobVerdict& verdict) {
  constexpr double kSlower = 1.2;
  if (verdict.causes.front().cause != LateCause::kHost || !verdict.same_kernels.value_or(false) ||
      verdict.host_part_ns * 2 > verdict.causes.front().longer_ns)
    return;
  std::int64_t least = INT64_MAX;
  std::vector<std::int64_t> others;
  for (std::size_t i = 0; i < job.times.size(); ++i)
    if (late.contains(i))
      least = std::min(least, job.times[i].host_work_ns);
    else
      others.push_back(job.times[i].host_work_ns);
  const std::int64_t usual = lower_median(std::move(others));
  if (usual <= 0 || static_cast<double>(least) < kSlower * static_cast<double>(usual)) return;
  verdict.host_work_ns = least;
  verdict.others_work_ns = usual;
}

// The upper end of what recording costs the late ranks' CPUs, and what these do longer in a step.
void find_profilers_part(const Job& job, const std::set<std::size_t>& late, JobVerdict& verdict) {
  if (verdict.causes.front().cause != LateCause::kHost) return;
  const HostLateness lateness = measure_host_lateness(job, verdict.threshold_ns);
  if (!lateness.known) return;
  const auto count = static_cast<std::int64_t>(late.size());
  std::int64_t recording = 0, outside = 0;
  for (const std::size_t i : late) {
    recording += job.times[i].host_recording_ns;
    outside += lateness.mean_ns[i];
  }
  verdict.profiler_ns =
      static_cast<std::int64_t>(simulate::kMostRecording * static_cast<double>(recording / count));
  verdict.more_work_ns = longer_by(job, late, [](const RankTimes& t) { return t.host_work_ns; });
  verdict.more_outside_ns = outside / count;
}

// Equal kernels that take longer mean a slow GPU; other kernels or grids mean other work.
void find_kernels(const Job& job, const std::set<std::size_t>& late, JobVerdict& verdict) {
  const auto hashes = [&](std::size_t compared) {
    std::vector<std::uint64_t> out;
    for (const RankStep& step : job.ranks[job.compared[compared]].steps)
      if (step.steady) out.push_back(step.shapes_hash);
    return out;
  };
  if (verdict.steps == 0 || job.ranks[job.compared.front()].steps.front().kernels == 0) return;
  std::size_t other = 0;
  while (late.contains(other)) ++other;
  verdict.same_kernels = std::all_of(late.begin(), late.end(),
                                     [&](std::size_t i) { return hashes(i) == hashes(other); });
}

}  // namespace

// Own time = compute + copies + idle.
void find_causes(const Job& job, const std::set<std::size_t>& late, JobVerdict& verdict) {
  const auto longer = [&](auto part) { return longer_by(job, late, part); };
  find_host_part(job, late, verdict);
  find_earlier_part(job, late, verdict);
  const LateCause host = is_input(verdict.host_part) ? LateCause::kInput : LateCause::kHost;
  verdict.causes = {{LateCause::kCompute, longer([](const RankTimes& t) { return t.compute_ns; })},
                    {host, longer([](const RankTimes& t) { return t.cpu_idle_ns(); })},
                    {LateCause::kCopies, longer([](const RankTimes& t) { return t.copy_ns; })},
                    {LateCause::kOtherIdle,
                     longer([](const RankTimes& t) { return t.idle_ns() - t.cpu_idle_ns(); })}};
  sort_rows(verdict.causes.begin(), verdict.causes.end(),
            [](const CausePart& a, const CausePart& b) { return a.longer_ns > b.longer_ns; });
  find_kernels(job, late, verdict);
  find_slow_cpu(job, late, verdict);
  find_profilers_part(job, late, verdict);
}

}  // namespace lanescope::ranks
