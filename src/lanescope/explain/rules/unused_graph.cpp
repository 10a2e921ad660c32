// backward(create_graph=True) without a second backward pass: the operators of the backward pass record a graph of
// their own, each gradient is copied, and nothing ever goes back over that graph.
//
// torch writes a sequence number to operators that record a graph. In a usual backward pass those inside of its nodes
// have none.
#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Window;

namespace {

constexpr std::uint64_t kFewestGradients = 4;  // of a step
constexpr double kLeastUnusedGraphShare = 0.01;

struct UnusedGraph {
  std::uint64_t gradients = 0,
                copied = 0;               // nodes that add up a gradient; those that record a graph
  std::uint64_t made = 0, run = 0;        // nodes of the graph of the backward pass
  std::int64_t busy_ns = 0, idle_ns = 0;  // of the copies
  SliceId longest = kNone<SliceId>;
  std::int64_t cost_ns() const { return busy_ns + idle_ns; }
};

std::optional<UnusedGraph> measure_unused_graph(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  UnusedGraph found;
  std::set<std::int64_t> made, run;
  std::vector<SliceId> copying;  // in order: nodes that copy their gradient
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(cpu_windows, trace.start_ns(id)))
      continue;
    const auto number = trace.slice_args(id).integer(ArgKey::kSequenceNumber).value_or(-1);
    const std::string_view op = trace.name(id);
    if (op.starts_with(kEvaluateNode)) {
      if (number >= 0) run.insert(number);
      if (is_accumulating_node(op)) ++found.gradients;
      continue;
    }
    if (number < 0 || !op.starts_with("aten::")) continue;
    const SliceId node = ancestor_named(facts, facts.nesting.parent[i], kEvaluateNode);
    if (node == kNone<SliceId>) continue;
    made.insert(number);
    if (!is_accumulating_node(trace.name(node))) continue;
    if (copying.empty() || copying.back() != node) copying.push_back(node);
  }
  found.copied = copying.size();
  found.made = made.size();
  for (const std::int64_t number : made) found.run += run.contains(number) ? 1u : 0u;
  const auto steps = step_count(facts);
  if (found.copied < kFewestGradients * steps || found.copied * 2 < found.gradients ||
      found.run * 10 > found.made)
    return std::nullopt;
  std::vector<Window> windows;
  for (const SliceId node : copying) {
    windows.push_back({trace.start_ns(node), trace.end_ns(node)});
    if (found.longest == kNone<SliceId> || trace.dur_ns(node) > trace.dur_ns(found.longest))
      found.longest = node;
  }
  if (facts.main_device) {
    std::sort(copying.begin(), copying.end());
    std::vector<const DeviceWork*> works;
    for (const DeviceWork* work : steady_work(facts))
      if (std::binary_search(
              copying.begin(), copying.end(),
              ancestor_named(facts, facts.links.op_of[raw(work->slice)], kEvaluateNode)))
        works.push_back(work);
    found.busy_ns = union_ns(works);
    found.idle_ns = device_idle_during(facts, std::move(windows));
  } else {
    found.busy_ns = total_length(std::move(windows));
  }
  if (share_of(found.cost_ns(), facts.steady_wall_ns()) < kLeastUnusedGraphShare)
    return std::nullopt;
  return found;
}

Finding tell_unused_graph(const Facts& facts, const UnusedGraph& found) {
  const auto steps = step_count(facts);
  Finding finding;
  finding.verdict = say(
      facts,
      "The backward pass records a graph of itself (create_graph=True), and nothing goes back over "
      "it: {} [gradient is copied|gradients are copied] [per step], {} [per step] ({}).",
      {count(found.copied / steps), ns(facts.per_step(found.cost_ns())),
       ratio(found.cost_ns(), facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns(), found.copied, finding);
  finding.waiting_ns = facts.per_step(found.idle_ns);
  finding.arithmetic.push_back(say(
      "{} operators inside the backward pass record a graph; {} of its nodes run in the recording",
      {count(found.made), count(found.run)}));
  finding.arithmetic.push_back(
      say("counted are the copies of the gradients; the graph also costs CPU time in each operator "
          "of the backward pass, and memory until it is freed"));
  finding.evidence.push_back({found.longest, say("the longest copy of a gradient")});
  finding.try_next = {
      "call backward() without create_graph=True; it is needed only if gradients are "
      "differentiated again (a gradient penalty, a second-order optimizer)",
      "with create_graph=True, set gradients to None after each step: a graph that holds its own "
      "gradients is never freed"};
  finding.brief = say("The backward pass records a graph of itself, which nothing uses");
  finding.action = say("Call backward() without create_graph=True");
  finding.sample_noun = "gradient";
  return finding;
}

}  // namespace

extern constinit const Rule unused_graph_rule = {
    .id = "unused-graph",
    .question = "does the backward pass prepare another one that never runs?",
    .order = 447,
    .needs = {need::kAnyWork, need::kLaunchCallsOfGpu},
    .run = measure_and_tell<measure_unused_graph, tell_unused_graph>,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules
