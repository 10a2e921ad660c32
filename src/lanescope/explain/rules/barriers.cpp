// torch.distributed.barrier() in each step: all ranks wait for the slowest, and the CPU for the GPU.
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr double kLeastBarriersShare = 0.02;

struct Barriers {
  std::uint64_t calls = 0;
  std::int64_t cost_ns = 0;  // of the GPU's idle time; without a GPU, of the CPU's time
  SliceId longest = kNone<SliceId>;
};

// The function barrier() around the call, where stacks are recorded; else until the program calls its next
// operator, because what waits is no event of its own.
Window window_of(const Facts& facts, const std::vector<SliceId>& functions,
                 const CallSequence& calls, std::size_t at) {
  const Trace& trace = *facts.trace;
  const SliceId call = calls[at];
  Window window{trace.start_ns(call), trace.end_ns(call)};
  for (const SliceId function : functions)
    if (trace.slices().track[raw(function)] == trace.slices().track[raw(call)] &&
        trace.start_ns(function) <= window.start_ns && trace.end_ns(function) >= window.end_ns)
      return {trace.start_ns(function), trace.end_ns(function)};
  if (at + 1 < calls.size()) window.end_ns = trace.start_ns(calls[at + 1]);
  return window;
}

std::optional<Barriers> measure_barriers(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<SliceId> functions;
  const auto is_barrier = [](std::string_view name) {
    return name.ends_with(": barrier") && name.find("distributed_c10d") != std::string_view::npos;
  };
  for (const SliceId id : slices_named(facts, is_barrier))
    if (trace.kind(id) == CategoryKind::kPythonFunction) functions.push_back(id);
  Barriers found;
  std::vector<Window> windows;
  std::int64_t longest_ns = -1;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (trace.name(calls[i]) != "c10d::barrier") continue;
      ++found.calls;
      windows.push_back(window_of(facts, functions, calls, i));
      if (windows.back().length_ns() <= longest_ns) continue;
      longest_ns = windows.back().length_ns();
      found.longest = calls[i];
    }
  if (found.calls == 0) return std::nullopt;
  found.cost_ns = facts.main_device ? device_idle_during(facts, std::move(windows))
                                    : total_length(std::move(windows));
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastBarriersShare) return std::nullopt;
  return found;
}

Finding tell_barriers(const Facts& facts, const Barriers& found) {
  const auto steps = step_count(facts);
  Finding finding;
  finding.verdict = say(facts,
                        "The program waits in torch.distributed.barrier(), {} [time|times] [in {} "
                        "steps]: {} [per step] ({}){}.",
                        {count(found.calls), count(steps), ns(facts.per_step(found.cost_ns)),
                         ratio(found.cost_ns, facts.steady_wall_ns()),
                         text(facts.main_device ? ", in which the GPU is idle" : "")});
  rate_cost(facts, found.cost_ns, found.calls, finding);
  finding.arithmetic.push_back(
      say("counted: from the call of the barrier to its return or, without stacks, to the next "
          "operator that the program calls"));
  finding.evidence.push_back(called_at(facts, found.longest, say("the longest")));
  finding.try_next = {
      "remove it from the step: collectives keep the ranks in step already, and "
      "DistributedDataParallel needs no barrier",
      "where one rank prepares something for the others (a checkpoint, a data set), call it only "
      "then"};
  finding.brief =
      say(facts, "The program waits in torch.distributed.barrier(), {} [time|times] [in {} steps]",
          {count(found.calls), count(steps)});
  finding.action =
      say("Remove the barrier from the step: collectives already make ranks wait for each other");
  finding.sample_noun = "barrier";
  finding.explains = {{"host-sync", finding.at_stake_ns}, {"python-hole", finding.at_stake_ns}};
  return finding;
}

}  // namespace

extern constinit const Rule barriers_rule = {
    .id = "barriers",
    .question = "do the ranks wait for each other in a barrier?",
    .meant_by = "barrier distributed wait",
    .order = 83,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_barriers, tell_barriers>,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules
