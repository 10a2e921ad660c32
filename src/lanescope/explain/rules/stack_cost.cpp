// Recorded Python stacks make the CPU side slower than it is.
#include <algorithm>
#include <optional>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct StackCost {
  std::uint64_t frames = 0;
  std::uint64_t others = 0;
  bool cpu_counts = false;
};

std::optional<StackCost> measure_stack_cost(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::uint64_t frames = 0, others = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const CategoryKind kind = trace.kind(SliceId{i});
    if (kind == CategoryKind::kPythonFunction)
      ++frames;
    else if (is_front_end(kind) || is_api_call(kind))
      ++others;
  }
  if (frames < 1000 || frames <= others) return std::nullopt;
  return StackCost{frames, others, facts.main_device && is_host_bound(facts)};
}

Finding tell_stack_cost(const Facts& facts, const StackCost& measured) {
  const auto& [frames, others, cpu_counts] = measured;
  Finding finding;
  finding.kind = FindingKind::kTrust;
  finding.verdict =
      say("{} of the CPU's {} events are Python frames (with_stack=True): each was written while "
          "the program ran, so the CPU side is slower here than without{}.",
          {count(frames), count(frames + others),
           text(cpu_counts ? ", and so is the step, because the GPU waits for the CPU" : "")});
  if (!facts.selection.steady.empty() && facts.steps.marked)
    finding.arithmetic.push_back(
        say("about {} frames per step", {count(frames / facts.steps.steps.size())}));
  finding.arithmetic.push_back(say(
      "one trace does not show how much slower; durations of kernels and copies are not affected"));
  finding.try_next = {
      "read lines and call paths here, and take times from a second recording without with_stack"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = frames;
  finding.sample_noun = "frame";
  return finding;
}

}  // namespace

extern constinit const Rule stack_cost_rule = {
    .id = "stack-cost",
    .question = "did recording Python stacks slow the CPU?",
    .order = 300,
    .run = measure_and_tell<measure_stack_cost, tell_stack_cost>,
};

}  // namespace lanescope::explain::rules
