#include "lanescope/ranks/lateness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "lanescope/analysis/steps.h"
#include "lanescope/ranks/roster.h"
#include "lanescope/ranks/slow_links.h"

namespace lanescope::ranks {
namespace {

double milliseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

// Mean of these ranks, or of all others: ns per step.
template <class Part>
std::int64_t mean_of(const Job& job, const JobVerdict& verdict, bool late, Part part) {
  std::int64_t sum = 0, count = 0;
  for (std::size_t i = 0; i < job.times.size(); ++i) {
    const std::int64_t rank = job.numbers[job.compared[i]];
    if (std::binary_search(verdict.ranks.begin(), verdict.ranks.end(), rank) != late) continue;
    sum += part(job.times[i]);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace

Lateness arrival_lateness(const Job& job) {
  Lateness out;
  for (const JobStep& step : job.steps) out.push_back(step.late_ns);
  return out;
}

Lateness own_lateness(const Job& job) {
  Lateness out;
  for (const JobStep& step : job.steps) {
    std::vector<std::int64_t> own;
    for (const RankTimes& times : step.times) own.push_back(times.own_ns);
    const std::int64_t usual = analysis::lower_median(own);
    for (std::int64_t& time : own) time = std::max<std::int64_t>(0, time - usual);
    out.push_back(std::move(own));
  }
  return out;
}

std::vector<std::int64_t> mean_lateness(const Job& job, const Lateness& lateness) {
  std::vector<std::int64_t> mean(job.times.size(), 0);
  for (std::size_t step = 0; step < lateness.size(); ++step)
    if (job.steps[step].steady)
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += lateness[step][i];
  const auto steps = static_cast<std::int64_t>(std::max<std::uint64_t>(1, job.steady_count()));
  for (std::int64_t& late : mean) late /= steps;
  return mean;
}

bool has_smaller_groups(const Job& job) {
  return job.groups.size() > 1 &&
         std::any_of(job.groups.begin(), job.groups.end(), [&](const GroupTimes& group) {
           return group.size > 1 && group.size < static_cast<std::int64_t>(job.compared.size());
         });
}

std::string smaller_groups_doubt(const Job& job, const JobVerdict& verdict) {
  const auto exposed = [](const RankTimes& times) { return times.exposed_ns; };
  const auto own = [](const RankTimes& times) { return times.own_ns; };
  if (mean_of(job, verdict, true, exposed) < verdict.late_ns) return {};
  const bool one = verdict.ranks.size() == 1;
  return fmt::format(
      "{} {} {:.2f} ms later than the others to collectives of a step ({:.0f} % of {:.2f} ms), "
      "but not by what {}: own times are {:.2f} ms there and {:.2f} ms on the others. {} may have "
      "made {} late",
      named_ranks(verdict.ranks), one ? "comes" : "come", milliseconds(verdict.late_ns),
      100.0 * static_cast<double>(verdict.late_ns) /
          static_cast<double>(std::max<std::int64_t>(1, verdict.step_ns)),
      milliseconds(verdict.step_ns), one ? "it does itself" : "they do themselves",
      milliseconds(mean_of(job, verdict, true, own)),
      milliseconds(mean_of(job, verdict, false, own)),
      slow_links_text(job).empty() ? "Collectives of smaller groups"
                                   : "The slow network (see below)",
      one ? "it" : "them");
}

}  // namespace lanescope::ranks
