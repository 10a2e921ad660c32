// Operators inside the backward pass that have their own sequence number. They are recorded for a
// later backward pass, so they are forward work that runs again. Reentrant checkpoints have no such
// numbers in their first run. In the second run all have them, inside a row of the engine.
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/memory_end.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Phase;
using analysis::Window;

namespace {

// With at most this share of the memory in use, some layers need no checkpoint.
constexpr double kRoomRatio = 0.5;

struct Recompute {
  std::int64_t again_ns = 0;   // cost_of_spared(), and the GPU's idle time in `windows`
  std::vector<SliceId> calls;  // in steady steps, none inside another
  std::map<std::string, std::int64_t> by_op;
  // From the begin of a node to the end of the last call in it that computes again: also what Python does between these calls. Of the
  // thread that has most of them.
  TrackId thread = kNone<TrackId>;
  std::vector<Window> windows;
};

// The node computes something of its own before this call, which it would do without the call, too.
bool has_work_before(const Facts& facts, SliceId node, SliceId call) {
  for (std::uint32_t i = raw(node) + 1; i < raw(call); ++i)
    if (facts.trace->kind(SliceId{i}) == CategoryKind::kCpuOp &&
        facts.trace->name(SliceId{i}).starts_with("aten::"))
      return true;
  return false;
}

// `calls`: in order of their slices, so that those of one node follow each other on its thread.
void find_windows(const Facts& facts, Recompute& found) {
  const Trace& trace = *facts.trace;
  std::map<TrackId, std::vector<Window>> of_thread;
  SliceId last = kNone<SliceId>;
  for (const SliceId call : found.calls) {
    const SliceId node = ancestor_named(facts, call, kEvaluateNode);
    std::vector<Window>& windows = of_thread[trace.slices().track[raw(call)]];
    if (node == last && !windows.empty()) {
      windows.back().end_ns = trace.end_ns(call);
      continue;
    }
    last = node;
    const SliceId from = has_work_before(facts, node, call) ? call : node;
    windows.push_back({trace.start_ns(from), trace.end_ns(call)});
  }
  for (auto& [thread, windows] : of_thread)
    if (windows.size() > found.windows.size()) {
      found.thread = thread;
      found.windows = joined(std::move(windows));
    }
}

// The GPU's idle time in the windows, without that during the calls.
std::int64_t idle_between_calls(const Facts& facts, const Recompute& found) {
  std::vector<Window> of_calls;
  for (const SliceId call : found.calls)
    if (facts.trace->slices().track[raw(call)] == found.thread)
      of_calls.push_back({facts.trace->start_ns(call), facts.trace->end_ns(call)});
  return device_idle_during(facts, within_steady(facts, found.windows)) -
         device_idle_during(facts, within_steady(facts, joined(std::move(of_calls))));
}

Measurement<Recompute> measure_recompute(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& phases = training_phases(facts);
  const auto windows = facts.steady_cpu_windows();
  std::vector<bool> again(trace.slices().size(), false);
  std::unordered_set<std::uint64_t> forward;  // (name, shapes) of what the forward pass ran
  const auto key_of = [&](SliceId id) {
    return (std::uint64_t{raw(trace.slices().name[raw(id)])} << 32) |
           raw(trace.slice_args(id).text(ArgKey::kInputDims).value_or(kNone<StringId>));
  };
  const auto is_recorded = [&](SliceId id) {
    const ArgsView args = trace.slice_args(id);
    return trace.kind(id) == CategoryKind::kCpuOp &&
           args.integer(ArgKey::kSequenceNumber).value_or(-1) >= 0 &&
           args.integer(ArgKey::kFwdThreadId).value_or(0) == 0 &&
           trace.name(id).starts_with("aten::");
  };
  bool any_backward = false, any_numbers = false, second_derivative = false;
  for (std::uint32_t i = 0; i < again.size(); ++i) {
    any_backward = any_backward || phases[i] == Phase::kBackward;
    if (phases[i] == Phase::kOther && trace.kind(SliceId{i}) == CategoryKind::kCpuOp)
      forward.insert(key_of(SliceId{i}));
    any_numbers =
        any_numbers || trace.slice_args(SliceId{i}).integer(ArgKey::kSequenceNumber).has_value();
    // A backward pass that is itself recorded will be differentiated again.
    second_derivative =
        second_derivative || (phases[i] == Phase::kBackward && is_recorded(SliceId{i}) &&
                              trace.name(SliceId{i}).find("backward") != std::string_view::npos);
  }
  if (!any_backward || second_derivative) return Quiet{};
  if (!any_numbers)
    return NotChecked{
        "a backward pass inside the recorded steps, with Sequence numbers (torch 1.9 or later)"};
  std::vector<SliceId> calls;
  for (std::uint32_t i = 0; i < again.size(); ++i) {
    const SliceId id{i}, parent = facts.nesting.parent[i];
    if (parent != kNone<SliceId> && again[raw(parent)]) {
      again[i] = true;
      continue;
    }
    // The engine's rows have the number of the forward thread; recorded operators do not.
    if (phases[i] != Phase::kBackward || !is_recorded(id) || !forward.contains(key_of(id)))
      continue;
    if (ancestor_named(facts, id, kEvaluateNode) == kNone<SliceId>) continue;
    again[i] = true;
    if (inside(windows, trace.start_ns(id))) calls.push_back(id);
  }
  if (calls.empty() || (facts.main_device && is_thin(facts))) return Quiet{};
  Recompute found;
  found.calls = std::move(calls);
  found.again_ns = cost_of_spared(facts, found.calls);
  if (facts.main_device) {
    find_windows(facts, found);
    found.again_ns += idle_between_calls(facts, found);
  }
  if (share_of(found.again_ns, facts.steady_wall_ns()) < 0.03) return Quiet{};
  if (!facts.main_device) {
    for (const SliceId call : found.calls)
      found.by_op[std::string(trace.name(call))] += trace.dur_ns(call);
    return found;
  }
  for (const DeviceWork* work : steady_work(facts)) {
    const SliceId op = facts.links.op_of[raw(work->slice)];
    if (op != kNone<SliceId> && again[raw(op)])
      found.by_op[std::string(trace.name(op))] += work->end_ns - work->start_ns;
  }
  return found;
}

// Says how much memory the device has left, where the trace knows it to the end.
Sentence advise_fewer_checkpoints(const Facts& facts) {
  const MemoryUse use = use_of_memory(facts);
  if (!use.is_known() || !has_memory_to_the_end(facts) ||
      share_of(use.most_bytes, use.device_bytes) > kRoomRatio)
    return say("Checkpoint fewer layers if memory allows");
  return say("Checkpoint fewer layers: at most {} of the GPU's {} are in use",
             {bytes(use.most_bytes), bytes(use.device_bytes)});
}

Finding tell_recompute(const Facts& facts, const Recompute& measured) {
  const auto& [again_ns, calls, by_op, thread, windows] = measured;
  Finding finding;
  finding.verdict = say(facts,
                        "The backward pass runs forward work again, {} [per step] ({}), as "
                        "activation checkpointing does: it saves memory and costs time.",
                        {ns(facts.per_step(again_ns)), ratio(again_ns, facts.steady_wall_ns())});
  rate_cost(facts, again_ns, calls.size(), finding);
  finding.arithmetic.push_back(
      say(facts,
          facts.main_device
              ? "{} [operator|operators] [per step] inside the backward pass [carries|carry] a "
                "sequence number of their own and the name and shapes of a forward one; counted: "
                "GPU work launched in them, and the GPU's idle time from the begin of their node "
                "to the end of the last of them"
              : "{} [operator|operators] [per step] inside the backward pass [carries|carry] a "
                "sequence number of their own and the name and shapes of a forward one; their "
                "times count",
          {count(calls.size() / step_count(facts))}));
  finding.evidence.push_back(called_at(facts, calls.front(), say("the first of them")));
  std::vector<std::pair<std::string, std::int64_t>> ranked(by_op.begin(), by_op.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i)
    finding.evidence.push_back(
        {kNone<SliceId>,
         say(facts, facts.main_device ? "{}: {} of GPU time [per step]" : "{}: {} [per step]",
             {name(ranked[i].first), ns(facts.per_step(ranked[i].second))})});
  finding.try_next = {
      "if the peak leaves room, checkpoint fewer layers, or only cheap operators (selective "
      "checkpointing)",
      "leave it where the model does not fit without it"};
  finding.spared_calls = calls;
  finding.spared_thread = thread;
  finding.spared_windows = windows;
  finding.sample_noun = "operator";
  finding.brief = say("The backward pass computes forward work again (checkpointing)");
  finding.action = advise_fewer_checkpoints(facts);
  return finding;
}

}  // namespace

extern constinit const Rule recompute_rule = {
    .id = "recompute",
    .question = "does the backward pass run forward work again?",
    .meant_by = "backward",
    .order = 790,
    .needs = {need::kAnyWork, need::kLaunchCallsOfGpu},
    .run = measure_and_tell<measure_recompute, tell_recompute>,
    .fix = Fix::kCalls,
};

}  // namespace lanescope::explain::rules
