// Collectives run while nothing computes.
#include <map>
#include <optional>
#include <string>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/bound.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::WorkClass;

namespace {

struct ExposedCommunication {
  std::map<std::string_view, std::pair<std::int64_t, SliceId>> by_name;  // exposed time, the run
  std::uint64_t calls = 0;
  Bound bound;
  bool computes_longer = false;  // the GPU computes for longer than it is idle
};

std::optional<ExposedCommunication> measure_communication_bound(const Facts& facts) {
  const auto& part = facts.wall.partition;
  const std::int64_t exposed = part.exposed_communication_ns;
  if (is_thin(facts) || share_of(exposed, part.wall_ns) <= kBoundingCommunicationRatio)
    return std::nullopt;

  // The kernel whose runs were exposed longest.
  std::map<std::string_view, std::pair<std::int64_t, SliceId>> by_name;
  std::int64_t longest_run = -1;
  std::uint64_t calls = 0;
  for (const DeviceWork& work : facts.device().timeline.work) {
    if (work.work != WorkClass::kCommunication || !inside(facts.steady_windows, work.start_ns))
      continue;
    ++calls;
    const auto times = facts.device().timeline.time_within(work.start_ns, work.end_ns);
    const std::int64_t alone = times[static_cast<std::size_t>(WorkClass::kCommunication)];
    auto& [total, slice] = by_name[facts.trace->name(work.slice)];
    total += alone;
    if (alone > longest_run) {
      longest_run = alone;
      slice = work.slice;
    }
  }
  return ExposedCommunication{.by_name = std::move(by_name),
                              .calls = calls,
                              .bound = find_bound(facts),
                              .computes_longer = part.compute_ns > part.idle_ns};
}

Finding tell_communication_bound(const Facts& facts, const ExposedCommunication& found) {
  const auto& part = facts.wall.partition;
  const std::int64_t exposed = part.exposed_communication_ns;
  Finding finding;
  // A step with more compute, or more idle time, has another limit.
  const bool bounds = found.bound == Bound::kCommunication;
  finding.kind = bounds ? FindingKind::kBound : FindingKind::kCost;
  finding.verdict =
      say(facts,
          bounds ? "Communication-bound: {} of [a step's] {} ({}) went to communication while the "
                   "GPU computed nothing."
                 : "{} of [a step's] {} ({}) went to communication while the GPU computed nothing; "
                   "the GPU " +
                       std::string(found.computes_longer ? "computed" : "was idle") +
                       " for longer: {}.",
          {linked(ns(facts.per_step(exposed)), shows::kCommunication),
           linked(ns(facts.per_step(part.wall_ns)), shows::kStep),
           linked(ratio(exposed, part.wall_ns), shows::kCommunication)});
  if (!bounds)
    finding.verdict.values.push_back(
        linked(ratio(found.computes_longer ? part.compute_ns : part.idle_ns, part.wall_ns),
               found.computes_longer ? shows::kCompute : shows::kIdle));
  finding.at_stake_ns = facts.per_step(exposed);
  finding.at_stake_ratio = share_of(exposed, part.wall_ns);
  finding.arithmetic.push_back(
      say(facts, "{} communication [kernel|kernels] [in {} steps]; compute {}, idle {} [per step]",
          {count(found.calls), count(facts.selection.steady.size()),
           ns(facts.per_step(part.compute_ns)), ns(facts.per_step(part.idle_ns))}));
  finding.arithmetic.push_back(
      say("a communication kernel also waits for the slowest rank: the trace of one rank does not "
          "show whether the links are slow or another rank is late"));
  for (const auto& [label, entry] : found.by_name)
    if (entry.second != kNone<SliceId> && entry.first > 0)
      finding.evidence.push_back(
          {entry.second, say(facts, "{}: exposed {} [per step]",
                             {kernel(label), ns(facts.per_step(entry.first))})});
  sort_rows(finding.evidence.begin(), finding.evidence.end(),
            [](const Evidence& a, const Evidence& b) {
              return a.text.values[1].integer > b.text.values[1].integer;
            });
  if (finding.evidence.size() > 3) finding.evidence.resize(3);
  finding.try_next = {
      "record the other ranks too, and compare when each one begins the same collective: this "
      "trace alone cannot tell a late rank from slow links",
      "overlap communication with compute: start each collective as soon as its input is ready "
      "(serial-communication says whether they overlap)"};
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  finding.brief = say("The GPU waits for communication and computes nothing meanwhile");
  finding.action = say("Compare with the other ranks' traces; overlap communication with compute");
  return finding;
}

}  // namespace

extern constinit const Rule communication_bound_rule = {
    .id = "communication-bound",
    .question = "is the step waiting for communication?",
    .meant_by = "network rank balance imbalance straggler",
    .order = 30,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_communication_bound, tell_communication_bound>,
    .bounds_step = true,
    .is_regression = true,
};

}  // namespace lanescope::explain::rules
