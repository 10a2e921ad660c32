#include "lanescope/explain/rules/python_lock.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sampled_code.h"

namespace lanescope::explain::rules {

bool has_lock_samples(const Facts& facts) {
  return facts.trace->metadata_json("lanescope_python_lock").has_value();
}

Measurement<SampledLock> measure_lock(const Facts& facts, LockHolder SampledLock::*kind,
                                      double least_share) {
  const auto windows = facts.steady_cpu_windows();
  auto found = find_sampled_lock(*facts.trace, program_thread(facts), windows);
  if (!found || found->samples < kLeastSamples)
    return NotChecked{
        "30 samples of the thread that launches, or runs the steps, in the steady steps"};
  const LockHolder& holder = (*found).*kind;
  if (holder.samples < kLeastSamples || share_of(holder.samples, found->samples) < least_share)
    return Quiet{};
  return *std::move(found);
}

std::vector<Value> lock_share(const SampledLock& found, const LockHolder& kind) {
  return {ratio(kind.samples, found.samples), count(static_cast<std::uint64_t>(kind.samples)),
          count(static_cast<std::uint64_t>(found.samples))};
}

Finding lock_finding(const Facts& facts, const SampledLock& found, const LockHolder& kind) {
  Finding finding;
  finding.kind = FindingKind::kWhere;
  const double share = static_cast<double>(kind.samples) /
                       static_cast<double>(std::max<std::int64_t>(found.samples, 1));
  const auto held_ns =
      static_cast<std::int64_t>(std::min(share, 1.0) * static_cast<double>(facts.steady_wall_ns()));
  finding.at_stake_ns = facts.per_step(held_ns);
  finding.at_stake_ratio = share_of(held_ns, facts.steady_wall_ns());
  finding.evidence.push_back(
      {kind.longest,
       say("{} of these samples on thread {}, {} of them in {}",
           {count(static_cast<std::uint64_t>(kind.of_thread)), name(std::to_string(kind.thread)),
            count(static_cast<std::uint64_t>(kind.of_function)), name(kind.function)})});
  finding.confidence = kind.samples >= 300 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = static_cast<std::uint64_t>(found.samples);
  finding.sample_noun = "sample";
  return finding;
}

}  // namespace lanescope::explain::rules
