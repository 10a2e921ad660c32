// GPU work at the start of the trace that was launched before the recording began.
#include <algorithm>
#include <optional>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct EarlierWork {
  std::uint64_t works = 0;
  std::int64_t total_ns = 0;
  SliceId first = kNone<SliceId>;
};

std::optional<EarlierWork> measure_earlier_work(const Facts& facts) {
  std::uint64_t works = 0;
  std::int64_t total_ns = 0;
  SliceId first = kNone<SliceId>;
  for (const auto& work : facts.device().timeline.work) {
    if (!work.before_recording) continue;
    if (works++ == 0) first = work.slice;
    total_ns += work.end_ns - work.start_ns;
  }
  if (works == 0) return std::nullopt;
  return EarlierWork{.works = works, .total_ns = total_ns, .first = first};
}

Finding tell_earlier_work(const Facts& facts, const EarlierWork& found) {
  Finding finding;
  finding.kind = FindingKind::kTrust;
  finding.verdict =
      say(facts,
          "{} of {} [piece of GPU work was|pieces of GPU work were] launched before the recording "
          "began ({} of GPU time): left over from earlier steps, not part of these.",
          {count(found.works), count(facts.device().timeline.work.size()), ns(found.total_ns)});
  finding.at_stake_ns = found.total_ns;
  finding.arithmetic.push_back(
      say("the first step is counted from the end of this work; sums over all kernels, divided by "
          "the number of steps, include it and are too large"));
  finding.evidence.push_back({found.first, say("the first of them")});
  finding.try_next = {"change nothing, or synchronize before the recorded steps for a clean start"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = found.works;
  finding.sample_noun = "piece";
  return finding;
}

}  // namespace

extern constinit const Rule earlier_work_rule = {
    .id = "earlier-work",
    .question = "is there GPU work that was launched before the recording?",
    .order = 240,
    .needs = {need::kGpuWork, need::kLaunchCalls, need::kWholeFile},
    .run = measure_and_tell<measure_earlier_work, tell_earlier_work>,
};

}  // namespace lanescope::explain::rules
