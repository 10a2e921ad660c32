// Tables and masks that are made out of constants again and again.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/constant_results.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastRepeatedConstantsShare = 0.03;
constexpr std::size_t kFewestSteps = 3;  // in all of which a result is made, for "in each step"
constexpr std::size_t kMostGroups = 16;

// Runs that compute the same.
struct Group {
  std::vector<const ConstantRun*> runs;
  std::int64_t cpu_ns = 0, cost_ns = 0;
  bool is_of_each_step = false;
  std::size_t a_step = 1;  // rounded down
};

struct RepeatedConstants {
  std::int64_t cost_ns = 0;  // of what need not run again
  std::uint64_t calls = 0;
  std::vector<SliceId> spared;
  std::vector<ConstantRun> runs;
  std::vector<Group> groups;  // most cost first; they point into `runs`
};

std::int64_t cost_of(const Facts& facts, const Group& group) {
  std::unordered_set<std::uint32_t> calls;
  for (const ConstantRun* run : group.runs)
    for (const SliceId call : run->calls) calls.insert(raw(call));
  return cost_of_calls(facts, calls);
}

std::optional<RepeatedConstants> measure_repeated_constants(const Facts& facts) {
  const std::size_t steady = facts.selection.steady.size();
  RepeatedConstants found;
  found.runs = constant_runs(facts);
  std::map<std::vector<std::uint32_t>, Group> by_symbol;
  for (const ConstantRun& run : found.runs) {
    Group& group = by_symbol[run.symbol];
    group.runs.push_back(&run);
    for (const SliceId call : run.calls) group.cpu_ns += facts.trace->dur_ns(call);
  }
  std::vector<Group> groups;
  for (auto& [symbol, group] : by_symbol) {
    std::set<std::size_t> steps;
    for (const ConstantRun* run : group.runs) steps.insert(run->step);
    group.a_step = group.runs.size() / steps.size();
    group.is_of_each_step = facts.steps.marked && steady >= kFewestSteps &&
                            steps.size() == steady && !group.runs.front()->has_counter;
    if (group.a_step >= 2 || group.is_of_each_step) groups.push_back(std::move(group));
  }
  sort_rows(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return a.cpu_ns > b.cpu_ns; });
  if (groups.size() > kMostGroups) groups.resize(kMostGroups);
  for (Group& group : groups) {
    group.cost_ns = cost_of(facts, group);
    // If it is not made in each step, the first one of a step must stay.
    if (!group.is_of_each_step)
      group.cost_ns -= group.cost_ns / static_cast<std::int64_t>(group.a_step);
    found.cost_ns += group.cost_ns;
    std::set<std::size_t> kept;  // steps whose first run stays
    for (const ConstantRun* run : group.runs) {
      found.calls += run->calls.size();
      if (group.is_of_each_step || !kept.insert(run->step).second)
        found.spared.insert(found.spared.end(), run->calls.begin(), run->calls.end());
    }
  }
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastRepeatedConstantsShare)
    return std::nullopt;
  sort_rows(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return a.cost_ns > b.cost_ns; });
  found.groups = std::move(groups);
  return found;
}

// "aten::arange to aten::cat": where it begins and ends.
Sentence span_text(const Facts& facts, const ConstantRun& run) {
  const Trace& trace = *facts.trace;
  if (run.calls.size() == 1) return say("{}", {name(trace.name(run.calls.front()))});
  return say("{} to {}", {name(trace.name(run.calls.front())), name(trace.name(run.calls.back()))});
}

// With the number of operators.
Sentence run_text(const Facts& facts, const ConstantRun& run) {
  if (run.calls.size() == 1) return span_text(facts, run);
  Sentence sentence = say("{} operators, ", {count(run.calls.size())});
  append(sentence, span_text(facts, run));
  return sentence;
}

Finding tell_repeated_constants(const Facts& facts, const RepeatedConstants& found) {
  const Group& largest = found.groups.front();
  const ConstantRun& run = *largest.runs.front();
  Finding finding;
  finding.verdict = say("A result that depends on no tensor of the program is computed ");
  append(finding.verdict, largest.a_step >= 2
                              ? say(facts, "{} times [per step] (", {count(largest.a_step)})
                              : say("again in each step ("));
  append(finding.verdict, run_text(facts, run));
  append(finding.verdict,
         say(facts, "): {} [per step] ({}) are repeated work.",
             {ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())}));
  rate_cost(facts, found.cost_ns, found.calls, finding);
  finding.spared_calls = found.spared;
  finding.arithmetic.push_back(
      say("counted: operators in a row that begin with one that makes a tensor out of numbers, and "
          "then take only tensors with shapes of those that were just made; equal names, shapes, "
          "types and recorded arguments"));
  finding.arithmetic.push_back(say(
      "the trace does not hold numbers inside of arithmetic (x * 0.5), nor the tensors' values"));
  for (std::size_t i = 0; i < found.groups.size() && i < 3; ++i) {
    const Group& group = found.groups[i];
    Sentence line = run_text(facts, *group.runs.front());
    append(line, say(facts, ", {} [time|times] [in {} steps]: {} [per step]",
                     {count(group.runs.size()), count(facts.selection.steady.size()),
                      ns(facts.per_step(group.cost_ns))}));
    const SliceId first = group.runs.front()->calls.front();
    add_line(facts, first, line);
    finding.evidence.push_back({first, std::move(line)});
  }
  finding.try_next = {
      "compute it once and keep it: in register_buffer(), or in a variable outside of the layers",
      "if it depends on a length that changes, compute it for the longest and slice, or once per "
      "step"};
  for (const char* covered : {"unfused-chain", "tiny-kernels"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("The same constants are computed ");
  append(finding.brief, largest.a_step >= 2
                            ? say(facts, "{} times [per step]: ", {count(largest.a_step)})
                            : say("again in each step: "));
  append(finding.brief, span_text(facts, run));
  finding.action = say("Compute them once and keep them (register_buffer)");
  return finding;
}

}  // namespace

extern constinit const Rule repeated_constants_rule = {
    .id = "repeated-constants",
    .question = "are tables or masks computed again although their inputs stay the same?",
    .meant_by = "constants positions mask rope table repeated same again twice",
    .order = 435,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_repeated_constants, tell_repeated_constants>,
};

}  // namespace lanescope::explain::rules
