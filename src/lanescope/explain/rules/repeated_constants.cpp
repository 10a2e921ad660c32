// Tables and masks that are made out of constants again and again.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/rules/constant_results.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
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

// Several results in a row that each layer makes anew.
struct SameInLayers {
  std::size_t rounds = 0, results = 0;  // of the last step; results: of a round
  std::int64_t cost_ns = 0;  // of all rounds but the first, with what lies between the results
  std::uint64_t calls = 0;
  bool sizes_differ = false;
};

struct RepeatedConstants {
  std::int64_t cost_ns = 0;  // of what need not run again
  std::uint64_t calls = 0;
  std::vector<SliceId> spared;
  std::vector<ConstantRun> runs;
  std::vector<Group> groups;  // most cost first; they point into `runs`
  std::optional<SameInLayers> layers;
};

using RunsOfStep = std::vector<const ConstantRun*>;

// How many runs are a round, if the runs that come three times or more are three equal rounds or more; 0: they are not. The
// others are taken out.
std::size_t round_of_runs(RunsOfStep& runs) {
  constexpr std::size_t kFewestRounds = 3, kFewestResults = 3;
  std::map<std::vector<std::uint32_t>, std::uint64_t> times;
  for (const ConstantRun* run : runs) ++times[run->symbol];
  std::erase_if(runs, [&](const ConstantRun* run) { return times[run->symbol] < kFewestRounds; });
  std::map<std::vector<std::uint32_t>, std::uint64_t> numbers;
  std::vector<std::uint64_t> symbols;
  for (const ConstantRun* run : runs)
    symbols.push_back(numbers.try_emplace(run->symbol, numbers.size()).first->second);
  for (std::size_t size = kFewestResults; size * kFewestRounds <= symbols.size(); ++size)
    if (symbols.size() % size == 0 &&
        std::equal(symbols.begin() + static_cast<std::ptrdiff_t>(size), symbols.end(),
                   symbols.begin()))
      return size;
  return 0;
}

// From one result to the next one of the round: no more than a few calls, and none of a layer.
bool are_close(const Trace& trace, const CallSequence& calls, std::size_t from, std::size_t to) {
  constexpr std::size_t kMostBetween = 16;
  if (to < from || to - from > kMostBetween) return false;
  return std::none_of(calls.begin() + static_cast<std::ptrdiff_t>(from),
                      calls.begin() + static_cast<std::ptrdiff_t>(to),
                      [&](SliceId call) { return is_layer_operator(trace.name(call)); });
}

// The windows of a step's rounds but the first, from the first call of a round to the last one; empty: other work lies between.
std::vector<analysis::Window> windows_of_rounds(const Trace& trace, const CallSequence& calls,
                                                const RunsOfStep& runs, std::size_t size) {
  auto at = calls.begin();
  const auto place_of = [&](SliceId call) {  // asked for in order
    at = std::find(at, calls.end(), call);
    return static_cast<std::size_t>(at - calls.begin());
  };
  std::vector<analysis::Window> windows;
  std::size_t before = 0;
  for (std::size_t i = size; i < runs.size(); ++i) {
    const SliceId first = runs[i]->calls.front(), last = runs[i]->calls.back();
    const std::size_t from = place_of(first);
    if (i % size == 0)
      windows.push_back({trace.start_ns(first), trace.end_ns(last)});
    else if (!are_close(trace, calls, before, from))
      return {};
    before = place_of(last);
    windows.back().end_ns = trace.end_ns(last);
  }
  return windows;
}

// The document lengths of a batch make a mask in each layer: no table that could be kept, but the same in all layers of a step.
std::optional<SameInLayers> measure_same_in_layers(const Facts& facts,
                                                   const std::vector<ConstantRun>& runs) {
  std::map<std::size_t, RunsOfStep> by_step;
  for (const ConstantRun& run : runs) by_step[run.step].push_back(&run);
  if (by_step.size() < facts.selection.steady.size()) return std::nullopt;
  SameInLayers found;
  std::vector<analysis::Window> windows;
  const ConstantRun* first_of_other = nullptr;
  for (auto& [step, its] : by_step) {
    const std::size_t size = round_of_runs(its);
    if (size == 0) return std::nullopt;
    const auto calls = std::find_if(
        call_sequences(facts).begin(), call_sequences(facts).end(), [&](const CallSequence& each) {
          return std::find(each.begin(), each.end(), its.front()->calls.front()) != each.end();
        });
    if (calls == call_sequences(facts).end()) return std::nullopt;
    const auto of_step = windows_of_rounds(*facts.trace, *calls, its, size);
    if (of_step.empty()) return std::nullopt;
    windows.insert(windows.end(), of_step.begin(), of_step.end());
    found.rounds = its.size() / size;
    if (found.results > 0 && found.results != size) found.sizes_differ = true;
    found.results = size;
    found.calls += its.size();
    // Equal operators of other shapes, or another round in another step.
    std::set<std::vector<std::uint32_t>> kinds;
    for (std::size_t i = 0; i < size; ++i) kinds.insert(its[i]->symbol);
    if (first_of_other && first_of_other->symbol != its.front()->symbol) found.sizes_differ = true;
    first_of_other = its.front();
    found.sizes_differ = found.sizes_differ || kinds.size() * 2 > size;
  }
  windows = steady_parts(facts, joined(std::move(windows)));
  found.cost_ns =
      union_ns(steady_work_launched_in(facts, windows)) + lost_in(facts, windows).idle_ns;
  return found;
}

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
  if (facts.main_device && facts.steps.marked)
    found.layers = measure_same_in_layers(facts, found.runs);
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
  if (found.layers && !found.layers->sizes_differ) found.layers.reset();
  if (share_of(std::max(found.cost_ns, found.layers ? found.layers->cost_ns : 0),
               facts.steady_wall_ns()) < kLeastRepeatedConstantsShare ||
      groups.empty())
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

// What each layer makes anew, of sizes that other batches do not have.
void tell_same_in_layers(const Facts& facts, const SameInLayers& layers, const ConstantRun& run,
                         Finding& finding) {
  finding.verdict = say(facts, "In each of {} rounds [per step] the same {} results are computed (",
                        {count(layers.rounds), count(layers.results)});
  append(finding.verdict, run_text(facts, run));
  append(finding.verdict,
         say(facts, "): all rounds but the first take {} [per step] ({}).",
             {ns(facts.per_step(layers.cost_ns)), ratio(layers.cost_ns, facts.steady_wall_ns())}));
  rate_cost(facts, layers.cost_ns, layers.calls, finding);
  finding.spared_calls.clear();
  finding.arithmetic.push_back(
      say("in these rounds, from the first of these calls to the last: the GPU's work, and its "
          "waits for the CPU; the rounds have equal shapes in equal order"));
  finding.try_next = {
      "their sizes follow from the batch, so no buffer can keep them: build them once per step, "
      "before the layers, and pass them on"};
  finding.brief = say("The same {} results are computed in each of {} rounds: ",
                      {count(layers.results), count(layers.rounds)});
  append(finding.brief, span_text(facts, run));
  finding.action = say(
      "If they depend on the batch and not on the layer: build them once per step and pass them "
      "to the layers");
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
  if (found.layers && found.layers->cost_ns > found.cost_ns) {
    tell_same_in_layers(facts, *found.layers, run, finding);
    for (const char* covered : {"looped-calls", "python-indexing", "tiny-kernels"})
      finding.explains.push_back({covered, finding.at_stake_ns});
  }
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
