#include "lanescope/explain/rules/double_backward.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/analysis/interval_union.h"
#include "lanescope/explain/enclosing_facts.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/loop_remedies.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/rule.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/launch_kind.h"
#include "lanescope/explain/rules/launch_mode.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/uncompiled_code.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/explain/user_code.h"

namespace lanescope::explain::rules {
namespace {

constexpr char kNotTwice[] = "torch.compile does not support double backward";
constexpr char kCompiledOptimizer[] = "torch.compile(optimizer.step)";

bool make_differentiates_backward(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  const std::vector<SliceId> nodes = slices_named(facts, [](std::string_view label) {
    return label.starts_with(kEvaluateNode) && label.find("BackwardBackward") != label.npos;
  });
  return std::any_of(nodes.begin(), nodes.end(), [&](SliceId node) {
    return trace.kind(node) == CategoryKind::kCpuOp && inside(windows, trace.start_ns(node));
  });
}

// The loop whose rounds, each with a backward pass over nodes of its own, launch half of the work or more; null: there is none.
const Owner* rounds_with_backward(const Facts& facts) {
  const Owners* owners = step_owners(facts);
  if (!owners) return nullptr;
  for (const Owner& owner : owners->owners)
    if (owner.kind == OwnerKind::kLoop && owner.has_backward && !owner.repeats_graph &&
        rounds_of(owner) >= 3 && owner.work.launches * 2 >= facts.launches.linked_count)
      return &owner;
  return nullptr;
}

// Where operators are that a backward pass goes through twice.
struct TwiceDifferentiated {
  std::vector<analysis::Window>
      by_step;                   // from the first to the last of a steady step; of length 0: none
  std::set<std::string> places;  // the outermost modules, or ranges, around them
};

std::string outer_place(const Facts& facts, SliceId op) {
  const Sentence place = outer_user_code(facts, op);
  return place.values.empty() ? std::string() : place.values.front().text;
}

TwiceDifferentiated make_twice_differentiated(const Facts& facts) {
  constexpr std::size_t kMostSamples = 32;
  const Trace& trace = *facts.trace;
  TwiceDifferentiated found;
  found.by_step.resize(facts.steps.steps.size(), {0, 0});
  const std::vector<SliceId>& ops = forward_of_recording_nodes(facts);
  for (const SliceId op : ops) {
    const std::size_t step = steady_step_at(facts, trace.start_ns(op));
    if (step >= found.by_step.size()) continue;
    analysis::Window& window = found.by_step[step];
    window = window.length_ns() == 0
                 ? analysis::Window{trace.start_ns(op), trace.end_ns(op)}
                 : analysis::Window{std::min(window.start_ns, trace.start_ns(op)),
                                    std::max(window.end_ns, trace.end_ns(op))};
  }
  const std::size_t samples = std::min(kMostSamples, ops.size());
  for (std::size_t i = 0; i < samples; ++i)
    if (std::string place = outer_place(facts, ops[ops.size() * (2 * i + 1) / (2 * samples)]);
        !place.empty())
      found.places.insert(std::move(place));
  return found;
}

bool is_differentiated_twice(const Facts& facts, SliceId event) {
  const Trace& trace = *facts.trace;
  if (const SliceId launch = facts.links.launch_of[raw(event)]; launch != kNone<SliceId>)
    event = launch;
  if (training_phases(facts)[raw(event)] == analysis::Phase::kOptimizer) return false;
  if (const SliceId node = ancestor_named(facts, event, kEvaluateNode); node != kNone<SliceId>) {
    const SliceId forward = forward_of_node(facts, node);
    // A node in no pair is one that is differentiated, or one that a backward pass made.
    if (forward == kNone<SliceId>) return !is_accumulating_node(trace.name(node));
    event = forward;
  }
  const auto& twice = made_once<make_twice_differentiated>(facts);
  const std::size_t step = steady_step_at(facts, trace.start_ns(event));
  if (step < twice.by_step.size() && trace.start_ns(event) >= twice.by_step[step].start_ns &&
      trace.start_ns(event) < twice.by_step[step].end_ns)
    return true;
  const std::string place = outer_place(facts, event);
  return !place.empty() && twice.places.contains(place);
}

// Launches in general, or code that a backward pass goes through twice.
bool may_hold_double_backward(const Facts& facts, const Finding& finding) {
  const Rule* const rule = find_rule(finding.rule);
  const auto first =
      std::find_if(finding.evidence.begin(), finding.evidence.end(),
                   [](const Evidence& each) { return each.slice != kNone<SliceId>; });
  if (first == finding.evidence.end() || finding.kind == FindingKind::kBound ||
      finding.is_about_all_work ||
      (rule &&
       (rule->is_general || rule->fix == Fix::kCudaGraph || rule->same_time_as == Fix::kCudaGraph)))
    return true;
  return is_differentiated_twice(facts, first->slice);
}

}  // namespace

bool differentiates_backward(const Facts& facts) {
  return made_once<make_differentiates_backward>(facts);
}

Sentence graph_of_double_backward(const Facts& facts) {
  // An optimizer's step is not differentiated.
  if (are_mostly_the_optimizers(facts))
    return say(
        "Pass fused=True or else foreach=True to the optimizer, if it has them; or "
        "torch.compile(optimizer.step)");
  const WaitsInside& waits = waits_inside(facts);
  if (const Owner* loop = rounds_with_backward(facts))
    return say(
        "If no round needs the one before it: torch.func.vmap over the {} rounds; else a CUDA "
        "graph of one round. {}",
        {count(rounds_of(*loop)), text(kNotTwice)});
  if (waits.are_many() && !waits.may_stay() && !waits.may_stay_between_rounds())
    return say(facts,
               "First remove the {} waits [per step], most in {}, then capture a CUDA graph of the "
               "step. {}",
               {count(waits.per_step), name(waits.op), text(kNotTwice)});
  return say("Capture the step, or what lies between its waits, as a CUDA graph. {}",
             {text(kNotTwice)});
}

void leave_out_compiling_of_backward(const Facts& facts, Finding& finding) {
  const auto advises = [](std::string_view words) {
    return words.find("torch.compile") != words.npos && words.find(kNotTwice) == words.npos &&
           words.find(kCompiledOptimizer) == words.npos;
  };
  const bool is_advised = finding.action.pattern.empty()
                              ? !finding.try_next.empty() && advises(finding.try_next.front())
                              : advises(finding.action.pattern);
  // Code under torch.compile may be another part of the program.
  if (!is_advised && std::none_of(finding.try_next.begin(), finding.try_next.end(), advises))
    return;
  if (!differentiates_backward(facts) || launch_mode_of(facts) != LaunchMode::kEager ||
      !may_hold_double_backward(facts, finding))
    return;
  const auto is_about_launches = [](std::string_view words) {
    return words.find("reduce-overhead") != words.npos || words.find("CUDA graph") != words.npos;
  };
  if (is_advised && !cut_choice_of_compiling(finding.action))
    finding.action = is_about_launches(finding.action.pattern)
                         ? graph_of_double_backward(facts)
                         : say("Write it with fewer, larger operators. {}", {text(kNotTwice)});
  std::erase_if(finding.try_next, advises);
  finding.try_next.insert(finding.try_next.begin(),
                          "torch.compile does not support double backward (create_graph=True): "
                          "torch.func.vmap, CUDA graphs and operators that do more work do");
}

}  // namespace lanescope::explain::rules
