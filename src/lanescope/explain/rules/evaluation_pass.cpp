// After the optimizer, each step runs the model once more without gradients, as for a test or a validation.
//
// Problem: a model without gradients may also be a teacher, a target network or a policy that acts. Idea: a teacher's result is
// needed before the backward pass, so it runs before the optimizer; a policy acts in many rounds. Example: linear a, b, c, a
// backward pass, Optimizer.step, and again linear a, b, c without nodes of autograd.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/loop_sizes.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/needs.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {
namespace {

constexpr double kLeastEvaluationShare = 0.1;
constexpr std::size_t kFewestEvaluated = 2;  // layers of the model
constexpr std::size_t kMostEvaluations = 8;  // of a step; more are rounds in which the model acts
constexpr double kLeastTestedRows = 0.25;    // of the rows that the first layer trains with

struct Evaluation {
  std::size_t layers = 0;  // of the model
  std::uint64_t steps = 0, passes = 0;
  SliceId first = kNone<SliceId>;  // layer
  std::vector<SliceId> calls;
  std::int64_t cost_ns = 0;
};

// Times of one steady step.
struct Training {
  std::int64_t first_node_ns = -1, last_node_ns = -1;
  std::int64_t updated_ns = -1;  // the end of the last optimizer's step
};

std::map<std::size_t, Training> training_of_steps(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::map<std::size_t, Training> steps;
  for (const BackwardPass& pass : backward_passes(facts)) {
    Training& step = steps[pass.step];
    const std::int64_t first_ns = trace.start_ns(pass.nodes.front());
    step.first_node_ns = step.first_node_ns < 0 ? first_ns : std::min(step.first_node_ns, first_ns);
    step.last_node_ns = std::max(step.last_node_ns, trace.start_ns(pass.nodes.back()));
  }
  for (const SliceId update : optimizer_steps(facts))
    if (const auto step = steps.find(steady_step_at(facts, trace.start_ns(update)));
        step != steps.end())
      step->second.updated_ns = std::max(step->second.updated_ns, trace.end_ns(update));
  return steps;
}

bool only_reads_a_value(std::string_view op) {
  return op == "aten::item" || op == "aten::_local_scalar_dense" || op == "aten::detach" ||
         op == "aten::is_nonzero";
}

// The rows of a layer's input; nothing: not recorded.
std::optional<double> rows_of_layer(const Trace& trace, SliceId layer) {
  const auto input = operator_inputs(trace, layer).tensor(0);
  if (!input || input->rank() == 0) return std::nullopt;
  return input->elements() / static_cast<double>(std::max<std::int64_t>(1, input->dims.back()));
}

// How often `again` holds the layers of `model`, one pass after the other; 0: it holds something else.
std::size_t passes_in(const Trace& trace, const std::vector<SliceId>& model,
                      const std::vector<SliceId>& again) {
  if (model.size() < kFewestEvaluated || again.empty() || again.size() % model.size() != 0 ||
      again.size() / model.size() > kMostEvaluations)
    return 0;
  for (std::size_t i = 0; i < again.size(); ++i)
    if (trace.slices().name[raw(again[i])] != trace.slices().name[raw(model[i % model.size()])])
      return 0;
  const auto trained = rows_of_layer(trace, model.front()),
             now = rows_of_layer(trace, again.front());
  if (trained && now && *now < kLeastTestedRows * *trained) return 0;
  return again.size() / model.size();
}

std::optional<Evaluation> measure_evaluation_pass(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto steps = training_of_steps(facts);
  if (steps.empty()) return std::nullopt;
  std::unordered_set<std::uint32_t> trained, spared;
  for (const AutogradPair& pair : autograd_pairs(facts)) trained.insert(raw(pair.forward));
  Evaluation found;
  for (const CallSequence& calls : call_sequences(facts)) {
    const auto step = steps.find(steady_step_at(facts, trace.start_ns(calls.front())));
    if (step == steps.end() || step->second.updated_ns < step->second.last_node_ns) continue;
    std::vector<SliceId> model, again, after;
    std::size_t with_gradients = 0;
    for (const SliceId call : calls) {
      const bool is_layer = is_layer_operator(trace.name(call));
      if (trace.start_ns(call) < step->second.first_node_ns) {
        if (!is_layer) continue;
        model.push_back(call);
        with_gradients += trained.contains(raw(call)) ? 1 : 0;
      } else if (trace.start_ns(call) >= step->second.updated_ns) {
        if (is_layer) again.push_back(call);
        // The loss that trained is often read first.
        if (!after.empty() || !only_reads_a_value(trace.name(call))) after.push_back(call);
      }
    }
    const std::size_t passes = passes_in(trace, model, again);
    if (passes == 0 || with_gradients * 2 < model.size()) continue;
    ++found.steps;
    found.passes += passes;
    if (found.first == kNone<SliceId>) {
      found.first = again.front();
      found.layers = model.size();
    }
    for (const SliceId call : after) spared.insert(raw(call));
    found.calls.insert(found.calls.end(), after.begin(), after.end());
  }
  if (found.steps * 2 <= facts.selection.steady.size()) return std::nullopt;
  found.cost_ns = cost_of_calls(facts, spared);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastEvaluationShare) return std::nullopt;
  return found;
}

// The GPU work that these calls launched, in order of time.
std::vector<SliceId> work_of_calls(const Facts& facts, const std::vector<SliceId>& calls) {
  std::unordered_set<std::uint32_t> all;
  for (const SliceId call : calls) all.insert(raw(call));
  std::vector<SliceId> works;
  if (!facts.main_device) return works;
  for (const analysis::DeviceWork* work : steady_work(facts))
    if (const SliceId op = outermost_operator_of(facts, work->slice);
        op != kNone<SliceId> && all.contains(raw(op)))
      works.push_back(work->slice);
  return works;
}

Finding tell_evaluation_pass(const Facts& facts, const Evaluation& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          "After the optimizer, the model runs {} [time|times] [per step] without gradients: {} "
          "operators, {} [per step] ({}).",
          {count(std::max<std::uint64_t>(1, found.passes / found.steps)),
           count(found.calls.size() / found.steps), ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(
      say("counted: all operators of that thread after the step's last Optimizer.step, from the "
          "first one that does not only read a value: their GPU work, and the time in which the "
          "GPU is idle during them"));
  finding.arithmetic.push_back(
      say("its {} layers have the names and the order of those that train, and no backward pass "
          "follows in the step",
          {count(found.layers)}));
  finding.evidence.push_back(
      called_at(facts, found.first, say("the first layer without gradients")));
  finding.try_next = {
      "a test or validation pass need not run in every step: every n steps or epochs, or on a part "
      "of the data, saves the rest of this time",
      "if it runs each time: in a larger batch than training (it keeps nothing for a backward "
      "pass), and read its numbers once at the end",
      "if its result is needed in the next step, keep it"};
  finding.spared_calls = found.calls;
  finding.all_work = work_of_calls(facts, found.calls);
  finding.gain_is_bound = true;
  finding.brief =
      say(facts, "The model runs without gradients after the optimizer, in each step", {});
  finding.action =
      say("A test or validation pass: run it every n steps or epochs, or on less data");
  return finding;
}

}  // namespace

extern constinit const Rule evaluation_pass_rule = {
    .id = "evaluation-pass",
    .question = "does the model run without gradients after the optimizer in each step?",
    .meant_by = "evaluation validation test eval epoch metrics no_grad",
    .order = 439,
    .needs = {need::kAnyWork, need::kMarkedSteps},
    .run = measure_and_tell<measure_evaluation_pass, tell_evaluation_pass>,
    .fix = Fix::kCalls,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules
