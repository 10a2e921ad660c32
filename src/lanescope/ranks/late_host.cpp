#include "lanescope/ranks/late_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "lanescope/ranks/group_times.h"
#include "lanescope/ranks/roster.h"

namespace lanescope::ranks {

std::string late_host_text(const Job& job, const JobVerdict& verdict) {
  if (verdict.kind != VerdictKind::kStraggler || verdict.ranks.size() < 2) return {};
  const bool more_work = !verdict.causes.empty() &&
                         verdict.causes.front().cause == LateCause::kCompute &&
                         !verdict.same_kernels.value_or(true);
  if (more_work) return {};  // the machine did not choose it
  std::set<std::string> late, others;
  for (const std::uint32_t rank : job.compared) {
    const std::string& host = job.ranks[rank].host_name;
    if (!is_plain_name(host) || host == "localhost") return {};
    const bool is_late = std::find(verdict.ranks.begin(), verdict.ranks.end(), job.numbers[rank]) !=
                         verdict.ranks.end();
    (is_late ? late : others).insert(host);
  }
  if (late.size() != 1 || others.empty() || others.contains(*late.begin())) return {};
  return fmt::format(
      "Ranks {} are all ranks of host {}: look at that machine first (clocks, cooling, other "
      "programs, its disks) and then at the program.",
      ranks_text(verdict.ranks), *late.begin());
}

}  // namespace lanescope::ranks
