// The first collective of a process group creates its communicator, and the CPU waits for that.
#include <algorithm>
#include <map>
#include <optional>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr std::int64_t kShortestSetupNs = 5'000'000;

struct FirstCollective {
  std::int64_t first_ns = 0, usual_ns = 0, longest_ns = 0;  // usual, longest: of the others
  std::size_t others = 0;
  SliceId slice = kNone<SliceId>;
};

// Looks only at calls, not at kernels: on the GPU a first collective is just as often long because
// another rank came late, and the trace of one rank cannot show that.
std::optional<FirstCollective> measure_first_collective(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::map<std::uint32_t, std::vector<SliceId>> by_group;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp) continue;
    const ArgsView args = trace.slice_args(id);
    if (!args.has(ArgKey::kCollectiveName)) continue;
    by_group[raw(args.text(ArgKey::kProcessGroupName).value_or(kNone<StringId>))].push_back(id);
  }
  FirstCollective worst;
  for (auto& [group, calls] : by_group) {
    sort_rows(calls.begin(), calls.end(),
              [&](SliceId a, SliceId b) { return trace.start_ns(a) < trace.start_ns(b); });
    // NCCL's first call has calls of its own inside, which take as long as it does.
    std::erase_if(calls, [&, first = calls.front()](SliceId call) {
      return call != first && trace.end_ns(call) <= trace.end_ns(first) &&
             trace.slices().track[raw(call)] == trace.slices().track[raw(first)];
    });
    if (calls.size() < 5) continue;
    std::vector<std::int64_t> others;
    for (std::size_t i = 1; i < calls.size(); ++i) others.push_back(trace.dur_ns(calls[i]));
    const std::int64_t first_ns = trace.dur_ns(calls.front());
    const std::int64_t longest_ns = *std::max_element(others.begin(), others.end());
    const std::int64_t usual_ns = analysis::lower_median(std::move(others));
    if (first_ns < kShortestSetupNs || first_ns < 10 * wide(usual_ns) ||
        first_ns < 3 * wide(longest_ns) || first_ns <= worst.first_ns)
      continue;
    worst = {first_ns, usual_ns, longest_ns, calls.size() - 1, calls.front()};
  }
  if (worst.slice == kNone<SliceId>) return std::nullopt;
  return worst;
}

Finding tell_first_collective(const Facts& facts, const FirstCollective& found) {
  const Trace& trace = *facts.trace;
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict = say(
      "The first collective of a process group held the CPU for {}, the later ones for {}: most "
      "likely its communicator was created there.",
      {ns(found.first_ns), ns(found.usual_ns)});
  finding.at_stake_ns = found.first_ns - found.usual_ns;
  finding.arithmetic.push_back(
      say(facts, "compared with {} later [call|calls] of the same group: median {}, longest {}",
          {count(found.others), ns(found.usual_ns), ns(found.longest_ns)}));
  finding.evidence.push_back({found.slice, say("{}", {name(trace.name(found.slice))})});
  finding.try_next = {
      "exclude the first step; if start-up time matters, make one small collective before the "
      "loop, or connect at once with init_process_group(device_id=...)"};
  finding.confidence = Confidence::kMedium;
  finding.sample_count = found.others + 1;
  finding.sample_noun = "collective";
  finding.brief = say("The first collective of a process group took {}, later ones {}",
                      {ns(found.first_ns), ns(found.usual_ns)});
  return finding;
}

}  // namespace

extern constinit const Rule first_collective_rule = {
    .id = "first-collective",
    .question = "why is the first collective slow?",
    .order = 420,
    .run = measure_and_tell<measure_first_collective, tell_first_collective>,
};

}  // namespace lanescope::explain::rules
