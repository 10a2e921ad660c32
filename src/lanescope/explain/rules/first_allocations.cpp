// The caching allocator asks the driver for memory in the first step, and not in later ones.
#include <fmt/format.h>
#include <optional>

#include <map>

#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

// NCCL makes its buffers in a communicator's first collective; torch's cache has no part in them.
bool inside_collective(const Facts& facts, SliceId call) {
  return ancestor_named(facts, call, "record_param_comms") != kNone<SliceId> ||
         ancestor_named(facts, call, "nccl:") != kNone<SliceId>;
}

struct FirstAllocations {
  std::uint64_t calls = 0;
  std::int64_t total_ns = 0;
  std::int64_t idle_ns = 0;
  std::uint64_t later = 0;  // calls in later steps
  std::map<std::string, Named> by_name;
};

std::optional<FirstAllocations> measure_first_allocations(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& first = facts.steps.steps.front();
  std::vector<Window> windows;
  std::map<std::string, Named> by_name;
  std::uint64_t later = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (!trace.api_call(id).does(api_effect::kAllocates) || inside_collective(facts, id)) continue;
    if (trace.start_ns(id) >= first.cpu_end_ns) {
      ++later;
    } else if (trace.start_ns(id) >= first.cpu_start_ns) {
      windows.push_back({trace.start_ns(id), trace.end_ns(id)});
      by_name[std::string(trace.name(id))].add(id, trace.dur_ns(id));
    }
  }
  const std::int64_t total_ns = total_length(windows);
  const std::uint64_t later_each = later / (facts.steps.steps.size() - 1);
  if (windows.size() < 3 || total_ns < 200'000 || later_each * 10 > windows.size())
    return std::nullopt;
  const std::int64_t idle_ns = device_idle_during(facts, windows);
  return FirstAllocations{.calls = windows.size(),
                          .total_ns = total_ns,
                          .idle_ns = idle_ns,
                          .later = later,
                          .by_name = std::move(by_name)};
}

Finding tell_first_allocations(const Facts& facts, const FirstAllocations& found) {
  Finding finding;
  finding.kind = FindingKind::kOnce;
  finding.verdict =
      say(facts,
          "The first step asked the driver for memory {} [time|times] ({}); the {} [step|steps] "
          "after it {} in all: torch's cache filled up, as it should.",
          {count(found.calls), ns(found.total_ns), count(facts.steps.steps.size() - 1),
           text(found.later == 1 ? "once" : fmt::format("{} times", found.later))});
  finding.at_stake_ns = found.idle_ns;
  finding.arithmetic.push_back(say("the GPU was idle {} during these calls", {ns(found.idle_ns)}));
  add_named(facts, found.by_name, finding);
  finding.try_next = {
      "change nothing, but exclude the first step from averages; for calls in later steps see "
      "allocator-calls"};
  finding.confidence = Confidence::kHigh;
  finding.sample_count = found.calls;
  finding.sample_noun = "call";
  return finding;
}

}  // namespace

extern constinit const Rule first_allocations_rule = {
    .id = "first-allocations",
    .question = "did the first step fill the memory cache?",
    .order = 840,
    .needs = {need::kGpuWork, need::kTwoMarkedSteps},
    .run = measure_and_tell<measure_first_allocations, tell_first_allocations>,
};

}  // namespace lanescope::explain::rules
