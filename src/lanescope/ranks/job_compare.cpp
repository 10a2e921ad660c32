// Two jobs differ in their programs, machines and numbers of ranks, so nothing is matched but ranks by
// number and collectives by purpose of the group, name, size and type. The parts of a step add up, so
// their changes do, too. Waits and transfers are known only as well as the clocks: a change of them counts
// when it is larger than both jobs' clock errors together. How much of a wait computation hides is known within bounds
// only (job_waits.cpp), and a change within these may be none.
#include "lanescope/ranks/job_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {
namespace {

constexpr double kCallsShare = 0.1, kTimeShare = 0.1, kEffectShare = 0.01;
constexpr double kLeastCalls = 0.5;
constexpr double kMostKernels = 1.5;  // times as many are another unit
constexpr auto kWaits = static_cast<std::size_t>(JobPart::kWaits),
               kTransfer = static_cast<std::size_t>(JobPart::kTransfer);

std::int64_t sum(const JobParts& parts) {
  std::int64_t all = 0;
  for (const std::int64_t part : parts) all += part;
  return all;
}

JobParts mean_parts(const Job& job) {
  JobParts mean{};
  for (const RankTimes& times : job.times) {
    const JobParts parts = parts_of(times);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += parts[i];
  }
  for (std::int64_t& part : mean) part /= static_cast<std::int64_t>(job.times.size());
  return mean;
}

bool knows_waits(const Job& job) {
  return std::all_of(job.compared.begin(), job.compared.end(),
                     [&](std::uint32_t rank) { return job.knows_waits(rank); });
}

// Mean over the compared ranks.
std::int64_t most_waits(const Job& job) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < job.times.size(); ++i) {
    const RankTimes& times = job.times[i];
    sum += job.knows_waits(job.compared[i]) ? times.most_exposed_wait_ns() : times.exposed_ns;
  }
  return sum / static_cast<std::int64_t>(job.times.size());
}

std::int64_t largest_clock_error(const Job& job) {
  std::int64_t error = 0;
  for (const std::uint32_t rank : job.compared) error = std::max(error, job.clocks[rank].error_ns);
  return error;
}

const std::string& unit_of(const Job& job) { return job.ranks[job.compared.front()].step_unit; }

// Computing kernels a steady step, mean over the compared ranks.
double kernels_of(const Job& job) {
  double kernels = 0, steps = 0;
  for (const std::uint32_t rank : job.compared)
    for (const RankStep& step : job.ranks[rank].steps)
      if (step.steady) {
        kernels += static_cast<double>(step.kernels);
        ++steps;
      }
  return steps > 0 ? kernels / steps : 0;
}

// A step that was found may be a part of a step of the other job: one of 20 updates.
bool may_be_other_units(const Job& a, const Job& b) {
  if (unit_of(a) == unit_of(b)) return false;
  const double of_a = kernels_of(a), of_b = kernels_of(b);
  return std::min(of_a, of_b) <= 0 || std::max(of_a, of_b) > kMostKernels * std::min(of_a, of_b);
}

std::string unit_text(const Job& job) {
  return unit_of(job).empty() ? "what prof.step() marks" : "\"" + unit_of(job) + "\"";
}

using SideKey = std::pair<std::string, std::string>;  // purpose of the group, kind

std::map<SideKey, CollectiveSide> sides_of(const Job& job) {
  struct Found {
    std::uint64_t groups = 0, calls = 0;
    std::vector<std::int64_t> together;
    std::vector<double> bandwidths;
  };
  std::map<SideKey, Found> found;
  for (const CollectiveRate& rate : job.rates) {
    const MatchedGroup& group = job.matching.groups[rate.group];
    const bool described = !group.description.empty() && group.description != "undefined";
    Found& side = found[{described ? group.description : group.name, rate.kind}];
    ++side.groups;
    side.calls += rate.count;
    side.together.push_back(rate.together_ns);
    if (rate.bus_bandwidth > 0) side.bandwidths.push_back(rate.bus_bandwidth);
  }
  std::map<SideKey, CollectiveSide> sides;
  const auto steps = static_cast<double>(std::max<std::size_t>(1, job.steps.size()));
  for (auto& [key, side] : found) {
    CollectiveSide out;
    out.per_step = static_cast<double>(side.calls) / static_cast<double>(side.groups) / steps;
    out.together_ns = analysis::lower_median(std::move(side.together));
    std::sort(side.bandwidths.begin(), side.bandwidths.end());
    if (!side.bandwidths.empty()) out.bus_bandwidth = side.bandwidths[side.bandwidths.size() / 2];
    sides.emplace(key, out);
  }
  return sides;
}

double cost(const std::optional<CollectiveSide>& side) {
  return side ? side->per_step * static_cast<double>(std::max<std::int64_t>(0, side->together_ns))
              : 0;
}

class Comparer {
 public:
  Comparer(const Job& a, const Job& b) : a_(a), b_(b) {}

  JobComparison run() {
    out_.a = mean_parts(a_);
    out_.b = mean_parts(b_);
    out_.a_most_waits_ns = most_waits(a_);
    out_.b_most_waits_ns = most_waits(b_);
    out_.a_waits_known = knows_waits(a_);
    out_.b_waits_known = knows_waits(b_);
    out_.a_step_ns = sum(out_.a);
    out_.b_step_ns = sum(out_.b);
    out_.limit_ns = least_difference_ns(std::max(out_.a_step_ns, out_.b_step_ns));
    error_ns_ = largest_clock_error(a_) + largest_clock_error(b_);
    out_.clock_limit_ns = std::max(out_.limit_ns, error_ns_);
    compare_ranks();
    compare_collectives();
    return std::move(out_);
  }

 private:
  static std::map<std::int64_t, const RankTimes*> times_of(const Job& job) {
    std::map<std::int64_t, const RankTimes*> out;
    for (std::size_t i = 0; i < job.compared.size(); ++i)
      out.emplace(job.numbers[job.compared[i]], &job.times[i]);
    return out;
  }

  void compare_ranks() {
    const auto a = times_of(a_), b = times_of(b_);
    for (const auto& [rank, times] : a)
      if (const auto other = b.find(rank); other != b.end())
        out_.ranks.push_back(change_of(rank, *times, *other->second));
      else
        out_.only_a.push_back(rank);
    for (const auto& [rank, times] : b)
      if (!a.contains(rank)) out_.only_b.push_back(rank);
  }

  RankChange change_of(std::int64_t rank, const RankTimes& a, const RankTimes& b) const {
    RankChange change;
    change.rank = rank;
    change.a = parts_of(a);
    change.b = parts_of(b);
    change.a_own_ns = a.own_ns;
    change.b_own_ns = b.own_ns;
    change.own_changed = std::llabs(b.own_ns - a.own_ns) > out_.limit_ns;
    change.waits_changed = std::llabs(change.b[kWaits] - change.a[kWaits]) > out_.clock_limit_ns;
    std::int64_t most = -1;
    for (const JobPart part :
         {JobPart::kCompute, JobPart::kCpuIdle, JobPart::kOtherIdle, JobPart::kCopies}) {
      const auto i = static_cast<std::size_t>(part);
      const std::int64_t delta = std::llabs(change.b[i] - change.a[i]);
      if (delta <= most) continue;
      most = delta;
      change.most_changed = part;
    }
    return change;
  }

  void compare_collectives() {
    const auto a = sides_of(a_), b = sides_of(b_);
    std::map<SideKey, CollectiveChange> all;
    for (const auto& [key, side] : a) all[key].a = side;
    for (const auto& [key, side] : b) all[key].b = side;
    out_.collective_kinds = all.size();
    for (auto& [key, change] : all) {
      change.group = key.first;
      change.kind = key.second;
      if (judge(change)) out_.collectives.push_back(std::move(change));
    }
    sort_rows(out_.collectives.begin(), out_.collectives.end(),
              [](const CollectiveChange& x, const CollectiveChange& y) {
                return std::llabs(x.step_ns) > std::llabs(y.step_ns);
              });
    out_.collective_changes = out_.collectives.size();
    if (out_.collectives.size() > kMostCollectiveChanges)
      out_.collectives.resize(kMostCollectiveChanges);
  }

  // Calls that are made once in a recording, such as those of a start, are no part of a step.
  bool judge(CollectiveChange& change) const {
    const double calls_a = change.a ? change.a->per_step : 0;
    const double calls_b = change.b ? change.b->per_step : 0;
    change.step_ns = std::llround(cost(change.b) - cost(change.a));
    change.count_changed = std::abs(calls_b - calls_a) >
                           std::max(kLeastCalls, kCallsShare * std::max(calls_a, calls_b));
    if (!change.a || !change.b) return change.count_changed;
    const std::int64_t delta = std::llabs(change.b->together_ns - change.a->together_ns);
    const auto shorter =
        static_cast<double>(std::min(change.a->together_ns, change.b->together_ns));
    const double effect = std::max(calls_a, calls_b) * static_cast<double>(delta);
    change.time_changed = delta > error_ns_ && static_cast<double>(delta) > kTimeShare * shorter &&
                          effect > kEffectShare * static_cast<double>(out_.a_step_ns);
    return change.count_changed || change.time_changed;
  }

  const Job& a_;
  const Job& b_;
  std::int64_t error_ns_ = 0;
  JobComparison out_;
};

}  // namespace

const char* job_part_name(JobPart part) {
  switch (part) {
    case JobPart::kCompute:
      return "compute";
    case JobPart::kCpuIdle:
      return "cpu_idle";
    case JobPart::kOtherIdle:
      return "other_idle";
    case JobPart::kCopies:
      return "copies";
    case JobPart::kTransfer:
      return "transfer";
    case JobPart::kWaits:
      return "waits";
  }
  return "";
}

JobParts parts_of(const RankTimes& times) {
  return {times.compute_ns, times.cpu_idle_ns(),         times.idle_ns() - times.cpu_idle_ns(),
          times.copy_ns,    times.exposed_transfer_ns(), times.exposed_wait_ns};
}

bool JobComparison::changed(JobPart part) const {
  const auto i = static_cast<std::size_t>(part);
  if (part == JobPart::kWaits)
    return std::max(b[i] - a_most_waits_ns, a[i] - b_most_waits_ns) > clock_limit_ns;
  if (part == JobPart::kTransfer) {
    const std::int64_t a_least = a[kTransfer] + a[kWaits] - a_most_waits_ns;
    const std::int64_t b_least = b[kTransfer] + b[kWaits] - b_most_waits_ns;
    return std::max(b_least - a[i], a_least - b[i]) > clock_limit_ns;
  }
  return std::llabs(b[i] - a[i]) > limit_ns;
}

Result<JobComparison> compare_jobs(const Job& a, const Job& b) {
  for (const auto& [job, name] : {std::pair(&a, "the first job"), std::pair(&b, "the second job")})
    if (job->times.empty())
      return Error{Errc::kInvalidArgument,
                   std::string("expected ranks with whole steps in both jobs; ") + name +
                       " has none (lanescope ranks shows what it has)"};
  if (may_be_other_units(a, b))
    return Error{
        Errc::kInvalidArgument,
        fmt::format(
            "expected steps of the same kind in both jobs; a step is {} with {:.0f} kernels in the "
            "first "
            "job, {} with {:.0f} in the second: call prof.step() once per iteration in both",
            unit_text(a), kernels_of(a), unit_text(b), kernels_of(b))};
  return Comparer(a, b).run();
}

}  // namespace lanescope::ranks
