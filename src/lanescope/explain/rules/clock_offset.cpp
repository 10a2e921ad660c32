// GPU work begins before the call that launched it: the two clocks of the file do not agree.
#include <algorithm>
#include <optional>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

// Files with whole microseconds may be off by one at either end.
constexpr std::int64_t kRoundingNs = 1'000;

struct EarlyWork {
  std::uint64_t early_count = 0;
  std::uint64_t pairs = 0;
  std::int64_t most_ns = 0;
  std::int64_t median_ns = 0;
  std::int64_t first_half = 0;
  std::int64_t second_half = 0;
  SliceId worst = kNone<SliceId>;
};

std::optional<EarlyWork> measure_clock_offset(const Facts& facts) {
  const Trace& trace = *facts.trace;
  struct Pair {
    std::int64_t time_ns, early_ns;
    SliceId work;
  };
  std::vector<Pair> early;
  std::uint64_t pairs = 0;
  for (const DeviceFacts& device : facts.devices) {
    for (const auto& work : device.timeline.work) {
      const SliceId launch = facts.links.launch_of[raw(work.slice)];
      if (launch == kNone<SliceId>) continue;
      ++pairs;
      const std::int64_t early_ns = trace.start_ns(launch) - work.start_ns;
      if (early_ns > kRoundingNs) early.push_back({work.start_ns, early_ns, work.slice});
    }
  }
  // One pair alone may be a correlation id that was used twice.
  if (early.size() < 3 || early.size() * 1000 <= pairs) return std::nullopt;
  const auto most = std::max_element(early.begin(), early.end(), [](const Pair& a, const Pair& b) {
    return a.early_ns < b.early_ns;
  });
  std::vector<std::int64_t> lengths;
  for (const Pair& pair : early) lengths.push_back(pair.early_ns);
  const auto& work = facts.device().timeline.work;
  const std::int64_t middle = work.front().start_ns / 2 + work.back().start_ns / 2;
  std::int64_t first_half = 0, second_half = 0;
  for (const Pair& pair : early) {
    std::int64_t& half = pair.time_ns < middle ? first_half : second_half;
    half = std::max(half, pair.early_ns);
  }
  return EarlyWork{.early_count = early.size(),
                   .pairs = pairs,
                   .most_ns = most->early_ns,
                   .median_ns = analysis::lower_median(std::move(lengths)),
                   .first_half = first_half,
                   .second_half = second_half,
                   .worst = most->work};
}

// True: a tenth of all work is early, half of it by a twentieth of a step or more. Then findings
// about idle times and waits are wrong.
bool is_large(const Facts& facts, const EarlyWork& found) {
  return found.early_count * 10 >= found.pairs &&
         found.median_ns >= facts.per_step(facts.steady_wall_ns()) / 20;
}

Finding tell_clock_offset(const Facts& facts, const EarlyWork& found) {
  Finding finding;
  finding.kind = FindingKind::kTrust;
  finding.verdict =
      say(facts,
          "{} of {} [piece|pieces] of GPU work [begins|begin] before the call that "
          "launched them, by up to {}: the clocks of CPU and GPU do not agree in this "
          "file. Gaps and latencies shorter than that cannot be trusted.",
          {count(found.early_count), count(found.pairs), ns(found.most_ns)});
  finding.at_stake_ns = found.most_ns;
  finding.arithmetic.push_back(
      say("the GPU's times would have to move by {} or more to come after their launches; half of "
          "these pairs need {} or more",
          {ns(found.most_ns), ns(found.median_ns)}));
  finding.arithmetic.push_back(
      say("first half of the recording up to {}, second half up to {}: {}",
          {ns(found.first_half), ns(found.second_half),
           text(found.first_half > 2 * found.second_half || found.second_half > 2 * found.first_half
                    ? "the clocks drift apart"
                    : "the difference stays about the same")}));
  finding.evidence.push_back(
      {found.worst, say("begins {} before its launch", {ns(found.most_ns)})});
  finding.try_next = {
      "use durations, and the order of events on the CPU or on the GPU; do not compare times of "
      "CPU and GPU that differ by less than this",
      "record again with a newer driver or torch; suspending the machine or changing its clock can "
      "cause this"};
  if (is_large(facts, found)) {
    finding.brief =
        say("the clocks of CPU and GPU disagree by {} and more: idle times and waits are wrong",
            {ns(found.median_ns)});
  }
  finding.confidence = found.early_count >= 20 ? Confidence::kHigh : Confidence::kMedium;
  finding.sample_count = found.pairs;
  finding.sample_noun = "pair";
  return finding;
}

}  // namespace

extern constinit const Rule clock_offset_rule = {
    .id = "clock-offset",
    .question = "do the clocks of CPU and GPU agree?",
    .meant_by = "trust reliable",
    .order = 260,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_clock_offset, tell_clock_offset>,
    .warns_of_loss = true,
};

}  // namespace lanescope::explain::rules
