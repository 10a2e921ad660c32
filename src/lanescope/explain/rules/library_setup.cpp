// The first use of the GPU and of its libraries: start-up, which steady steps do not repeat.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/long_step_share.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/start_up_calls.h"

namespace lanescope::explain::rules {
namespace {

constexpr std::int64_t kLeastNs = 100'000'000;

std::optional<StartUpCalls> measure_library_setup(const Facts& facts) {
  StartUpCalls found = start_up_calls(facts);
  if (found.total_ns() < kLeastNs) return std::nullopt;
  return found;
}

Sentence call_text(const Facts& facts, const StartUpCall& call) {
  const Trace& trace = *facts.trace;
  const Value length = ns(trace.dur_ns(call.call));
  if (call.kind == StartUpCall::Kind::kContext)
    return say("{}, {}, before any GPU work: the process's context on the GPU is made",
               {name(trace.name(call.call)), length});
  if (call.kind == StartUpCall::Kind::kOperator)
    return say("{}, {}: its first call plans, loads code or tunes",
               {name(trace.name(call.call)), length});
  return say("{}, {}, in the first {} while the GPU had nothing to do: a library sets itself up",
             {name(trace.name(call.call)), length, name(trace.name(call.op))});
}

// The part of these calls that lies in the first of several steps.
std::int64_t in_first_step(const Facts& facts, const StartUpCalls& found) {
  if (!facts.steps.marked) return 0;
  const analysis::Window& first = facts.device().windows.front();
  std::int64_t time_ns = 0;
  for (const analysis::Window& window : found.windows)
    time_ns += std::max<std::int64_t>(
        0, std::min(window.end_ns, first.end_ns) - std::max(window.start_ns, first.start_ns));
  return time_ns;
}

Finding tell_library_setup(const Facts& facts, const StartUpCalls& found) {
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict = say(facts,
                        "The first use of the GPU and its libraries took {}, in {} [call|calls]: "
                        "start-up, which steady work does not repeat.",
                        {ns(found.total_ns()), count(found.calls.size())});
  finding.at_stake_ns = found.total_ns();
  finding.explains.push_back({"slow-first-step", in_first_step(facts, found)});
  explain_long_step(facts, found.windows, {}, finding);
  if (found.context_ns > 0)
    finding.arithmetic.push_back(
        say("{} before the first GPU work, {} after it",
            {ns(found.context_ns), ns(found.total_ns() - found.context_ns)}));
  std::vector<StartUpCall> ranked = found.calls;
  sort_rows(ranked.begin(), ranked.end(), [&](const StartUpCall& a, const StartUpCall& b) {
    return facts.trace->dur_ns(a.call) > facts.trace->dur_ns(b.call);
  });
  for (std::size_t i = 0; i < ranked.size() && i < 4; ++i)
    finding.evidence.push_back({ranked[i].call, call_text(facts, ranked[i])});
  finding.try_next = {
      "run a few steps before measuring; where the first request matters (a server), run one at "
      "start",
      "if it takes many seconds: a build of torch or of a library without code for this GPU "
      "compiles its kernels at first use"};
  finding.sample_count = found.calls.size();
  finding.sample_noun = "call";
  finding.confidence = Confidence::kMedium;
  finding.brief = say("The first use of the GPU and its libraries took {}", {ns(found.total_ns())});
  finding.action = say("Run a few warm-up steps before you record");
  return finding;
}

}  // namespace

extern constinit const Rule library_setup_rule = {
    .id = "library-setup",
    .question = "was the GPU's context or a library set up during the recording?",
    .meant_by = "initialise initialize",
    .order = 825,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_library_setup, tell_library_setup>,
};

}  // namespace lanescope::explain::rules
