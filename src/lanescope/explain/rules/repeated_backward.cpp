// The backward pass goes over the same graph several times: a.backward(retain_graph=True), then
// b.backward().
//
// A text that is read in parts, whose state keeps its history, looks like it: the backward pass of each
// part goes through all parts before it. There the forward pass goes on between the backward passes, and
// the earlier a node was made, the more often it runs. Example: nodes of part 1 run 4 times, of part 4
// once.
//
// A backward pass that is itself differentiated (torch.autograd.grad(create_graph=True), for a penalty on
// gradients) looks like it, too: the second pass goes over the nodes that the first one made, and then over
// those of the forward pass again. One call cannot replace both.
//
// torch.autograd.grad() of each loss (gradient surgery) returns gradients that the program uses by themselves: the sum of the
// losses would have only their sum.
//
// Two networks that train against each other (a GAN) go over one of them twice if the other's loss is not cut off from it.
// An optimizer steps between the passes, so one call cannot replace both; detach() ends the first pass earlier. If one of them trains
// with a penalty on gradients (R1), all passes of the penalty count, not only the nodes that run again.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/gradient_passes.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/penalty_passes.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
constexpr std::uint64_t kFewestNodes = 4;  // of a step, that run more than once

// Without a device there are no launches to follow.
// An autograd node: what torch numbered when the forward pass made it.
using Node = std::tuple<std::int64_t, std::int64_t, std::uint32_t>;  // sequence, thread, raw name

struct RepeatedBackward {
  std::uint64_t nodes = 0, repeated = 0, runs = 0;  // runs: of the repeated nodes
  std::int64_t busy_ns = 0, idle_ns = 0;            // of the runs after each node's first
  SliceId longest = kNone<SliceId>;                 // of those runs
  bool is_differentiated = false;                   // nodes of nodes run, too: create_graph=True
  bool can_be_joined = false;    // and most of these runs are of passes from one output
  bool keeps_history = false;    // each part of the input goes through all before
  std::uint64_t of_penalty = 0;  // runs that are there for a penalty on gradients; 0: none is known
  bool has_step_between = false;  // an optimizer changes parameters between most of these runs
  std::int64_t cost_ns() const { return busy_ns + idle_ns; }
};

constexpr std::size_t kFewestParts = 3;

// Nodes made inside a backward pass: operators that carry a number there have their gradients recorded. The
// operator that a node runs has that node's own number.
std::set<std::int64_t> made_in_backward(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::set<std::int64_t> made;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || trace.name(id).starts_with(kEvaluate)) continue;
    const auto number = trace.slice_args(id).integer(ArgKey::kSequenceNumber);
    if (!number || *number < 0) continue;
    const SliceId node = ancestor_named(facts, id, kEvaluate);
    if (node != kNone<SliceId> &&
        trace.slice_args(node).integer(ArgKey::kSequenceNumber).value_or(*number) != *number)
      made.insert(*number);
  }
  return made;
}

// The node is part of the program's backward pass: a recomputation inside another node does not.
bool is_outer_node(const Facts& facts, SliceId node) {
  return ancestor_named(facts, facts.nesting.parent[raw(node)], kEvaluate) == kNone<SliceId>;
}

// Does the forward pass go on between the first backward pass of a step and its last?
bool goes_on_between(const Facts& facts, const std::map<std::size_t, Window>& backward) {
  const Trace& trace = *facts.trace;
  std::uint64_t between = 0;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp ||
        trace.slice_args(id).integer(ArgKey::kSequenceNumber).value_or(-1) < 0 ||
        outermost_around(facts, id) != id || trace.name(id).starts_with(kEvaluate))
      continue;
    const auto step = backward.find(steady_step_at(facts, trace.start_ns(id)));
    if (step != backward.end() && trace.start_ns(id) > step->second.start_ns &&
        trace.end_ns(id) < step->second.end_ns)
      ++between;
  }
  return between >= kFewestParts * std::max<std::size_t>(1, backward.size());
}

// What the runs (in order of their SliceIds) launched, and the GPU's idle time during them.
void measure_on_device(const Facts& facts, const std::vector<SliceId>& runs,
                       RepeatedBackward& found) {
  std::vector<Window> windows;
  for (const SliceId run : runs)
    windows.push_back({facts.trace->start_ns(run), facts.trace->end_ns(run)});
  std::vector<const DeviceWork*> works;
  for (const DeviceWork* work : steady_work(facts)) {
    SliceId outermost = kNone<SliceId>;
    for (SliceId op = facts.links.op_of[raw(work->slice)]; op != kNone<SliceId>;
         op = facts.nesting.parent[raw(op)])
      if (facts.trace->kind(op) == CategoryKind::kCpuOp) outermost = op;
    if (std::binary_search(runs.begin(), runs.end(), outermost)) works.push_back(work);
  }
  found.busy_ns = union_ns(works);
  found.idle_ns = device_idle_during(facts, std::move(windows));
}

Node node_of(const Trace& trace, SliceId run) {
  const ArgsView args = trace.slice_args(run);
  return {args.integer(ArgKey::kSequenceNumber).value_or(-1),
          args.integer(ArgKey::kFwdThreadId).value_or(0), raw(trace.slices().name[raw(run)])};
}

// Runs that one torch.autograd.grad() for several inputs would spare: of passes that begin at the same node, the runs of nodes
// that an earlier one of these passes went over, and later the runs of the nodes that these runs made.
std::vector<SliceId> runs_of_same_outputs(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::map<Node, std::set<Node>> seen;  // by the first node of a pass
  std::vector<SliceId> again;
  for (const std::vector<SliceId>& pass : count_gradient_passes(facts).inner_passes) {
    if (std::get<0>(node_of(trace, pass.front())) < 0) continue;
    const auto [group, is_new] = seen.try_emplace(node_of(trace, pass.front()));
    for (const SliceId run : pass) {
      const Node node = node_of(trace, run);
      if (std::get<0>(node) >= 0 && !group->second.insert(node).second && !is_new)
        again.push_back(run);
    }
  }
  const NodesMadeIn made(facts, again);
  std::set<SliceId> spared(again.begin(), again.end());
  for (const SliceId run : backward_nodes(facts))
    if (steady_step_at(facts, trace.start_ns(run)) != ~std::size_t{0} &&
        is_outer_node(facts, run) && made.contains(trace, run))
      spared.insert(run);
  return {spared.begin(), spared.end()};
}

std::optional<RepeatedBackward> measure_repeated_backward(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  std::map<Node, std::vector<SliceId>> runs;
  std::map<std::size_t, Window> backward;  // by step, of all nodes that are counted
  RepeatedBackward found;
  const std::set<std::int64_t> made = made_in_backward(facts);
  for (const SliceId id : slices_starting_with(facts, kEvaluate)) {
    if (trace.kind(id) != CategoryKind::kCpuOp || is_accumulating_node(trace.name(id)) ||
        !inside(cpu_windows, trace.start_ns(id)))
      continue;
    found.is_differentiated = found.is_differentiated ||
                              trace.name(id).find("BackwardBackward") != std::string_view::npos;
    const auto sequence = trace.slice_args(id).integer(ArgKey::kSequenceNumber);
    if (!sequence || *sequence < 0) continue;
    found.is_differentiated =
        found.is_differentiated || (made.contains(*sequence) && is_outer_node(facts, id));
    const auto thread = trace.slice_args(id).integer(ArgKey::kFwdThreadId).value_or(0);
    // A hook's own backward passes, such as those of a solver, need each other's results.
    if (!is_outer_node(facts, id)) continue;
    runs[{*sequence, thread, raw(trace.slices().name[raw(id)])}].push_back(id);
    Window& all = backward
                      .try_emplace(steady_step_at(facts, trace.start_ns(id)),
                                   Window{trace.start_ns(id), trace.end_ns(id)})
                      .first->second;
    all.start_ns = std::min(all.start_ns, trace.start_ns(id));
    all.end_ns = std::max(all.end_ns, trace.end_ns(id));
  }
  std::vector<SliceId> again;
  std::set<std::size_t> numbers_of_runs;
  const std::vector<std::int64_t>& stepped_ns = optimizer_steps_ns(facts);
  std::uint64_t after_step = 0;  // later runs
  for (auto& [node, all] : runs) {
    ++found.nodes;
    numbers_of_runs.insert(all.size());
    if (all.size() < 2) continue;
    ++found.repeated;
    found.runs += all.size();
    sort_rows(all.begin(), all.end(),
              [&](SliceId a, SliceId b) { return trace.start_ns(a) < trace.start_ns(b); });
    again.insert(again.end(), all.begin() + 1, all.end());
    for (std::size_t i = 1; i < all.size(); ++i) {
      const auto step =
          std::lower_bound(stepped_ns.begin(), stepped_ns.end(), trace.end_ns(all[i - 1]));
      after_step += step != stepped_ns.end() && *step < trace.start_ns(all[i]) ? 1 : 0;
    }
  }
  found.has_step_between = after_step * 2 > again.size();
  if (found.repeated < kFewestNodes * step_count(facts)) return std::nullopt;
  found.keeps_history = numbers_of_runs.size() >= kFewestParts && goes_on_between(facts, backward);
  if (found.is_differentiated && count_gradient_passes(facts).can_be_joined()) {
    again = runs_of_same_outputs(facts);
    found.can_be_joined = true;
  } else if (found.is_differentiated && !count_gradient_passes(facts).are_of_tasks()) {
    if (std::vector<SliceId> penalty = runs_of_gradient_penalty(facts); !penalty.empty()) {
      again = std::move(penalty);
      found.of_penalty = again.size();
    }
  }
  for (const SliceId run : again)
    if (found.longest == kNone<SliceId> || trace.dur_ns(run) > trace.dur_ns(found.longest))
      found.longest = run;
  std::sort(again.begin(), again.end());
  if (facts.main_device)
    measure_on_device(facts, again, found);
  else
    for (const SliceId run : again) found.busy_ns += trace.dur_ns(run);
  if (share_of(found.cost_ns(), facts.steady_wall_ns()) < 0.05) return std::nullopt;
  return found;
}

// The losses are not known before the first backward pass, so one call cannot take them all.
void tell_history(const Facts& facts, const RepeatedBackward& found, Finding& finding) {
  finding.arithmetic.push_back(say(
      "the forward pass goes on between the backward passes, and earlier nodes run more often"));
  finding.try_next = {
      "detach the state between the parts (state = state.detach()), as truncated backpropagation "
      "does; retain_graph=True is then not needed",
      "if gradients are to reach all earlier parts, call backward once, after the last"};
  finding.brief = say(
      facts,
      "The backward pass of each part goes back through the parts before it: operators run {} "
      "times",
      {factor(static_cast<std::int64_t>(found.runs), static_cast<std::int64_t>(found.repeated))});
  finding.action = say("Detach the state between the parts, or call backward once, after the last");
}

// Derivatives of one output by its inputs, as in the residual of a differential equation.
void tell_same_outputs(const Facts& facts, const RepeatedBackward& found, Finding& finding) {
  const GradientPasses& passes = count_gradient_passes(facts);
  finding.verdict =
      say(facts,
          "The gradients of one output are taken in several calls; what one call for all inputs "
          "would spare takes {} [per step] ({}).",
          {ns(facts.per_step(found.cost_ns())), ratio(found.cost_ns(), facts.steady_wall_ns())});
  finding.arithmetic = {say(
      facts,
      "{} of {} passes that return gradients [per step] begin at a node at which an earlier one "
      "began; counted are their runs of nodes that the earlier ones went over, and of nodes that "
      "these runs made",
      {count(a_step(facts, passes.of_same_output)), count(a_step(facts, passes.inner))})};
  finding.try_next = {
      "torch.autograd.grad(u, (x, y, t), torch.ones_like(u), create_graph=True) returns the "
      "gradients of u by all three, and goes over the graph once",
      "gradients of gradients stay calls of their own; where inputs are few, torch.func.jvp goes "
      "forward instead"};
  finding.brief = say(
      facts, "{} of {} backward passes [per step] differentiate an output again, by another input",
      {count(a_step(facts, passes.of_same_output)),
       count(a_step(facts, passes.inner + passes.adding))});
  finding.action = remedy_of_same_output();
}

// The second pass needs what the optimizer made of the first one's gradients, so one call cannot take both losses.
void tell_step_between(const Facts& facts, const RepeatedBackward& found, Finding& finding) {
  finding.arithmetic.push_back(
      say("an optimizer steps between the passes, so that one call cannot replace them"));
  finding.try_next = {
      "if the first pass needs no gradients of that part, as the loss of a GAN's discriminator "
      "needs none of the generator: give it a detached input, discriminator(fake.detach())",
      "retain_graph=True is then not needed, and the memory of the graph is freed earlier. If the "
      "gradients of both passes are used, no change is needed"};
  finding.brief = say(
      facts,
      "The backward pass runs {} times over the same operators, before and after an optimizer's "
      "step",
      {factor(static_cast<std::int64_t>(found.runs), static_cast<std::int64_t>(found.repeated))});
  finding.action = say(
      "If the first pass needs no gradients there: detach() its input (fake.detach() in a GAN)");
}

// Nothing is promised: the program needs the gradient of each loss.
void tell_returned_gradients(const Facts& facts, const RepeatedBackward& found, Finding& finding) {
  finding.kind = FindingKind::kWhere;
  finding.at_stake_ns = finding.waiting_ns = 0;
  finding.at_stake_ratio = 0;
  const GradientPasses& passes = count_gradient_passes(facts);
  finding.arithmetic.push_back(say(
      facts,
      "{} of {} backward passes [per step] add nothing to the gradients of parameters: they "
      "return gradients (torch.autograd.grad), so the sum of the losses cannot replace them",
      {count(a_step(facts, passes.inner)), count(a_step(facts, passes.inner + passes.adding))}));
  finding.try_next = {
      "where the program uses each of these gradients by itself, as gradient surgery does, the "
      "passes stay: make each of them cheaper",
      "where it only adds them up: add the losses and call backward once"};
  finding.brief = say(
      "The gradients of several losses are taken one by one: operators of the backward pass run {} "
      "times",
      {factor(static_cast<std::int64_t>(found.runs), static_cast<std::int64_t>(found.repeated))});
  finding.action = say("If each gradient is used by itself: keep the passes, make each cheaper");
}

// The penalty is taken for one of two networks, so the step goes on without it.
void tell_penalty(const Facts& facts, const RepeatedBackward& found, Finding& finding) {
  finding.verdict = say(
      facts,
      "A gradient is differentiated again (create_graph=True) before one optimizer's step, not "
      "before the other's: {} runs of autograd nodes [per step] serve that, and take {} [per step] "
      "({}).",
      {count(found.of_penalty / step_count(facts)), ns(facts.per_step(found.cost_ns())),
       ratio(found.cost_ns(), facts.steady_wall_ns())});
  finding.arithmetic = {say(
      facts,
      "counted are the pass that is differentiated, the nodes that it made, and the nodes that run "
      "again for it: GPU work of {} [per step], and the time in which the GPU is idle during them, "
      "{}",
      {ns(facts.per_step(found.busy_ns)), ns(facts.per_step(found.idle_ns))})};
  finding.evidence = {{found.longest, say("the longest of these runs")}};
  finding.sample_count = found.of_penalty;
  finding.try_next = {
      "a penalty on gradients such as R1: take it every 16th step, with 16 times its weight (lazy "
      "regularization); training changes a little, and such a step keeps its full length",
      "where no gradient of a gradient is needed, leave create_graph=True out"};
  finding.gain_is_bound = true;
  finding.brief =
      say("A gradient is differentiated again (create_graph=True), as for a penalty on gradients");
  finding.action = say(
      "If it is a penalty such as R1: take it every 16th step, 16 times as strong, which changes "
      "the training a little");
}

Finding tell_repeated_backward(const Facts& facts, const RepeatedBackward& found) {
  const std::int64_t wall_ns = facts.steady_wall_ns();
  const auto steps = step_count(facts);
  Finding finding;
  finding.verdict = say(
      facts,
      "The backward pass goes over the same operators several times: {} of {} autograd nodes [per "
      "step] run {} times on average; all runs but the first take {} [per step] ({}).",
      {count(found.repeated / steps), count(found.nodes / steps),
       factor(static_cast<std::int64_t>(found.runs), static_cast<std::int64_t>(found.repeated)),
       ns(facts.per_step(found.cost_ns())), ratio(found.cost_ns(), wall_ns)});
  finding.at_stake_ns = facts.per_step(found.cost_ns());
  finding.waiting_ns = facts.per_step(found.idle_ns);
  finding.at_stake_ratio = share_of(found.cost_ns(), wall_ns);
  if (facts.main_device)
    finding.arithmetic.push_back(say(
        facts,
        "one backward pass saves the GPU work of the later runs, {} [per step], and the time in "
        "which the GPU is idle during them, {}",
        {ns(facts.per_step(found.busy_ns)), ns(facts.per_step(found.idle_ns))}));
  finding.evidence.push_back(
      {found.longest, say("the longest of the later runs of a node; nodes are the same where name, "
                          "sequence number and forward thread are")});
  finding.try_next = {
      "add the losses and call backward once: (loss_a + loss_b).backward() gives the same "
      "gradients",
      "if each loss needs gradients of its own, go back over the shared part once: detach its "
      "output, add up the gradients there, then call backward with them"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.repeated;
  finding.sample_noun = "node";
  finding.brief = say(
      facts, "The backward pass runs {} times over the same operators",
      {factor(static_cast<std::int64_t>(found.runs), static_cast<std::int64_t>(found.repeated))});
  finding.action = say("Add the losses and call backward once: (loss_a + loss_b).backward()");
  if (!found.is_differentiated && count_gradient_passes(facts).mostly_return()) {
    tell_returned_gradients(facts, found, finding);
    return finding;
  }
  if (found.has_step_between) tell_step_between(facts, found, finding);
  if (found.keeps_history) tell_history(facts, found, finding);
  if (found.can_be_joined) tell_same_outputs(facts, found, finding);
  if (!found.is_differentiated || found.can_be_joined) return finding;
  if (found.of_penalty > 0) {
    tell_penalty(facts, found, finding);
    return finding;
  }
  // One call cannot replace both: the second pass needs the graph of the first one.
  finding.try_next = {
      "a penalty on gradients may be taken every few steps, or on fewer rows, where training "
      "allows it",
      "where no gradient of a gradient is needed, leave create_graph=True out"};
  finding.brief = say(
      "A backward pass is differentiated (create_graph=True): it runs {} times over the same "
      "operators",
      {factor(static_cast<std::int64_t>(found.runs), static_cast<std::int64_t>(found.repeated))});
  finding.action =
      count_gradient_passes(facts).are_of_tasks()
          ? say("If these are updates of tasks: torch.func.vmap over all tasks; or first-order "
                "gradients (no create_graph)")
          : say("If it is a penalty on gradients: take it every few steps or on fewer rows, which "
                "changes the training");
  return finding;
}

}  // namespace

extern constinit const Rule repeated_backward_rule = {
    .id = "repeated-backward",
    .question = "does the backward pass go over the same operators several times?",
    .meant_by = "backward retain_graph",
    .order = 445,
    .needs = {need::kAnyWork, need::kLaunchCallsOfGpu},
    .run = measure_and_tell<measure_repeated_backward, tell_repeated_backward>,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules
