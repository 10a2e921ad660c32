// Gradient accumulation that sums gradients over the ranks in every micro-step.
#include <algorithm>
#include <map>

#include "lanescope/analysis/collective_calls.h"
#include "lanescope/analysis/interval_union.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::WorkClass;

namespace {

struct Pass {
  std::int64_t start_ns = 0, end_ns = 0;  // of its backward operators, on the CPU
  std::uint64_t nodes = 0;
  std::vector<std::pair<std::uint32_t, std::int64_t>> messages;  // collective and size
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;  // of its all-reduces, on the device
  std::int64_t exposed_ns = 0;
  SliceId first_call = kNone<SliceId>;
};

// Backward passes in order of time. The engine runs the ready node with the highest sequence
// number first, and a node only depends on higher ones: within a pass the numbers fall, and where
// they rise a new pass begins.
std::vector<Pass> passes_of_nodes(const Facts& facts) {
  const Trace& trace = *facts.trace;
  struct Node {
    std::int64_t start_ns, end_ns, sequence;
  };
  std::map<std::uint32_t, std::vector<Node>> by_track;
  const auto is_node = [](std::string_view name) { return name.ends_with("Backward0"); };
  for (const SliceId id : slices_named(facts, is_node)) {
    if (trace.kind(id) != CategoryKind::kCpuOp) continue;
    const auto sequence = trace.slice_args(id).integer(ArgKey::kSequenceNumber);
    if (!sequence || *sequence < 0) continue;
    by_track[raw(trace.slices().track[raw(id)])].push_back(
        {trace.start_ns(id), trace.end_ns(id), *sequence});
  }
  std::vector<Pass> passes;
  for (const auto& [track, nodes] : by_track) {
    std::int64_t last = 0;
    bool first = true;
    for (const Node& node : nodes) {
      if (first || node.sequence > last)
        passes.push_back({node.start_ns, node.end_ns, 0, {}, {}, 0, {}});
      passes.back().end_ns = std::max(passes.back().end_ns, node.end_ns);
      ++passes.back().nodes;
      last = node.sequence;
      first = false;
    }
  }
  sort_rows(passes.begin(), passes.end(),
            [](const Pass& a, const Pass& b) { return a.start_ns < b.start_ns; });
  std::erase_if(passes, [](const Pass& pass) { return pass.nodes < 2; });
  return passes;
}

struct MicroStepSync {
  std::size_t passes_a_step = 0;
  std::size_t messages = 0;
  std::int64_t early_ns = 0;
  std::int64_t exposed_ns = 0;
  SliceId first = kNone<SliceId>;
};

Measurement<MicroStepSync> measure_micro_step_sync(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& timeline = facts.device().timeline;
  const auto calls = analysis::find_collective_calls(trace, facts.links, timeline);
  if (calls.empty()) return Quiet{};
  if (!facts.steps.marked) return NotChecked{need::kRecordSteps};
  std::vector<Pass> passes = passes_of_nodes(facts);
  // A bucket that is ready at the end of a pass is launched there, so calls belong to a pass until
  // the next one begins.
  for (const auto& call : calls) {
    const SliceId launch = facts.links.launch_of[raw(call.work.slice)];
    if (launch == kNone<SliceId> || trace.text(call.name) != "allreduce") continue;
    const auto after =
        std::upper_bound(passes.begin(), passes.end(), trace.start_ns(launch),
                         [](std::int64_t time, const Pass& pass) { return time < pass.start_ns; });
    if (after == passes.begin()) continue;
    Pass& pass = *std::prev(after);
    if (pass.messages.empty()) pass.first_call = call.work.slice;
    pass.messages.emplace_back(raw(call.group), call.message_bytes.value_or(-1));
    pass.spans.emplace_back(call.work.start_ns, call.work.end_ns);
    pass.exposed_ns += timeline.time_within(
        call.work.start_ns, call.work.end_ns)[static_cast<std::size_t>(WorkClass::kCommunication)];
  }
  const std::vector<std::int64_t>& optimizer_ns = optimizer_steps_ns(facts);
  // All steps must be alike: several passes with the same messages, and one optimizer step.
  std::size_t passes_a_step = 0, messages = 0;
  analysis::IntervalUnion early;
  std::int64_t exposed_ns = 0;
  SliceId first = kNone<SliceId>;
  for (const std::size_t index : facts.selection.steady) {
    const auto& step = facts.steps.steps[index];
    const auto from =
        std::lower_bound(passes.begin(), passes.end(), step.cpu_start_ns,
                         [](const Pass& pass, std::int64_t time) { return pass.start_ns < time; });
    auto to = from;
    while (to != passes.end() && to->start_ns < step.cpu_end_ns) ++to;
    const auto optimizer_steps =
        std::lower_bound(optimizer_ns.begin(), optimizer_ns.end(), step.cpu_end_ns) -
        std::lower_bound(optimizer_ns.begin(), optimizer_ns.end(), step.cpu_start_ns);
    const auto found = static_cast<std::size_t>(to - from);
    if (found < 2 || optimizer_steps != 1 || from->messages.empty() ||
        (passes_a_step != 0 && passes_a_step != found))
      return Quiet{};
    for (auto pass = from; pass != to; ++pass) {
      if (pass->messages != from->messages) return Quiet{};
      if (pass + 1 == to) continue;
      exposed_ns += pass->exposed_ns;
      for (const auto& [start_ns, end_ns] : pass->spans) early.add(start_ns, end_ns);
    }
    passes_a_step = found;
    messages = from->messages.size();
    if (first == kNone<SliceId>) first = from->first_call;
  }
  if (passes_a_step < 2) return Quiet{};
  // Hidden communication also costs up to its length, because it slows the kernels that run at the
  // same time.
  early.finish();
  const std::int64_t early_ns = early.length_ns();
  return MicroStepSync{passes_a_step, messages, early_ns, exposed_ns, first};
}

Finding tell_micro_step_sync(const Facts& facts, const MicroStepSync& measured) {
  const auto& [passes_a_step, messages, early_ns, exposed_ns, first] = measured;
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict =
      say("Gradients are summed over the ranks in each of {} backward passes of a step, though the "
          "optimizer steps once: {} of {} all-reduces are not needed.",
          {count(passes_a_step), count((passes_a_step - 1) * messages),
           count(passes_a_step * messages)});
  finding.at_stake_ns = facts.per_step(early_ns);
  finding.at_stake_ratio = share_of(early_ns, wall_ns);
  finding.arithmetic.push_back(
      say(facts,
          "all passes but the last one communicate for {} [per step], during {} of it nothing "
          "computes, and the rest slows the kernels that run at the same time",
          {ns(facts.per_step(early_ns)), ns(facts.per_step(exposed_ns))}));
  finding.evidence.push_back({first, say("the first all-reduce that is not needed")});
  finding.try_next = {
      "run all micro-steps but the last under model.no_sync() (DDP), or after "
      "set_requires_gradient_sync(False) (FSDP)"};
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  finding.brief = say(facts, "{} of {} gradient all-reduces [per step] are not needed",
                      {count((passes_a_step - 1) * messages), count(passes_a_step * messages)});
  finding.action = say("Run all micro-steps but the last under model.no_sync()");
  return finding;
}

}  // namespace

extern constinit const Rule micro_step_sync_rule = {
    .id = "micro-step-sync",
    .question = "does gradient accumulation communicate in each micro-step?",
    .order = 440,
    .needs = {need::kGpuWork},
    .run = measure_and_tell<measure_micro_step_sync, tell_micro_step_sync>,
    .is_regression = true,
};

}  // namespace lanescope::explain::rules
