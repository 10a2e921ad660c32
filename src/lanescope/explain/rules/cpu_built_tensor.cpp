// Tensors that are made on the CPU and moved to the GPU at once: torch.zeros(n).to("cuda").
#include <algorithm>
#include <map>
#include <optional>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::WorkClass;

namespace {

// The longest Python time between making and moving. With a profiler, torch.ones(n).to() took 35 to
// 78 us.
constexpr std::int64_t kPauseNs = 150'000;

// The outermost operator around an event, below annotations.
SliceId outermost_op(const Facts& facts, SliceId op) {
  SliceId found = kNone<SliceId>;
  for (; op != kNone<SliceId>; op = facts.nesting.parent[raw(op)])
    if (facts.trace->kind(op) == CategoryKind::kCpuOp) found = op;
  return found;
}

struct Move {
  std::int64_t bytes = 0, end_ns = 0;  // of its copies on the GPU
};

struct BuiltTensors {
  std::uint64_t pairs = 0;
  std::int64_t bytes = 0, cost_ns = 0;
  SliceId slice = kNone<SliceId>;
};

// The operator just before this one on the thread, on the same level.
SliceId op_before(const Facts& facts, SliceId op) {
  const Trace& trace = *facts.trace;
  const std::uint32_t at = raw(op);
  for (std::uint32_t i = at; i > trace.track(op).first_slice && at - i < 64;) {
    const SliceId id{--i};
    if (trace.kind(id) == CategoryKind::kCpuOp && facts.nesting.depth[i] == facts.nesting.depth[at])
      return id;
  }
  return kNone<SliceId>;
}

// Each aten::to with a copy to the GPU below it, in order of time.
std::vector<std::pair<SliceId, Move>> moves_to_gpu(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  std::map<std::uint32_t, Move> moves;
  for (const auto& work : facts.device().timeline.work) {
    if (work.work != WorkClass::kCopy ||
        trace.name(work.slice).find("HtoD") == std::string_view::npos)
      continue;
    const SliceId op = outermost_op(facts, facts.links.op_of[raw(work.slice)]);
    if (op == kNone<SliceId> || !inside(cpu_windows, trace.start_ns(op)) ||
        (trace.name(op) != "aten::to" && trace.name(op) != "aten::_to_copy"))
      continue;
    Move& move = moves[raw(op)];
    move.bytes = analysis::add_bytes(
        move.bytes, trace.slice_args(work.slice).integer(ArgKey::kBytes).value_or(0));
    move.end_ns = std::max(move.end_ns, work.end_ns);
  }
  std::vector<std::pair<SliceId, Move>> in_order;
  for (const auto& [op, move] : moves) in_order.emplace_back(SliceId{op}, move);
  sort_rows(in_order.begin(), in_order.end(), [&](const auto& a, const auto& b) {
    return trace.start_ns(a.first) < trace.start_ns(b.first);
  });
  return in_order;
}

struct BuiltOnCpu {
  std::map<std::string_view, BuiltTensors> groups;  // by the operator that makes them
  std::uint64_t pairs = 0;
  std::int64_t cost_ns = 0;
  std::int64_t moving_ns = 0;
};

std::optional<BuiltOnCpu> measure_cpu_built_tensor(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& timeline = facts.device().timeline;
  std::map<std::string_view, BuiltTensors> groups;
  std::uint64_t pairs = 0;
  std::int64_t cost_ns = 0, moving_ns = 0, counted_until = 0;
  // Making it on the GPU saves all of this: idle time, and time in which only the copy ran.
  const auto without_compute = [&](std::int64_t from, std::int64_t until) {
    const auto busy = timeline.time_within(from, until);
    return until - from - busy[static_cast<std::size_t>(WorkClass::kCompute)] -
           busy[static_cast<std::size_t>(WorkClass::kCommunication)];
  };
  for (const auto& [to, move] : moves_to_gpu(facts)) {
    const SliceId before = op_before(facts, to);
    if (before == kNone<SliceId> || !is_factory(trace.name(before)) ||
        trace.start_ns(to) - trace.end_ns(before) > std::max(kPauseNs, trace.dur_ns(before) / 10))
      continue;
    const std::int64_t from = std::max(trace.start_ns(before), counted_until);
    const std::int64_t until = std::max(trace.end_ns(to), move.end_ns);
    if (until <= from) continue;
    counted_until = until;
    const std::int64_t cost = without_compute(from, until);
    moving_ns += without_compute(std::max(from, trace.start_ns(to)), until);
    BuiltTensors& group = groups[trace.name(before)];
    ++group.pairs;
    ++pairs;
    group.bytes = analysis::add_bytes(group.bytes, move.bytes);
    group.cost_ns += cost;
    cost_ns += cost;
    if (group.slice == kNone<SliceId>) group.slice = before;
  }
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (pairs < std::max<std::size_t>(3, facts.selection.steady.size()) ||
      share_of(cost_ns, wall_ns) < 0.01)
    return std::nullopt;
  return BuiltOnCpu{
      .groups = std::move(groups), .pairs = pairs, .cost_ns = cost_ns, .moving_ns = moving_ns};
}

Finding tell_cpu_built_tensor(const Facts& facts, const BuiltOnCpu& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict = say(facts,
                        "{} tensors were made on the CPU and then moved to the GPU: {} [per step] "
                        "in which the GPU computes nothing.",
                        {count(found.pairs), ns(facts.per_step(found.cost_ns))});
  finding.at_stake_ns = facts.per_step(found.cost_ns);
  finding.at_stake_ratio = share_of(found.cost_ns, wall_ns);
  finding.explains.push_back({"pageable-copy", facts.per_step(found.moving_ns)});
  finding.arithmetic.push_back(say(
      "counted from the start of the operator that makes a tensor to the end of its copy, where "
      "the GPU neither computed nor communicated; making the tensor on the GPU costs one launch"));
  for (const auto& [label, group] : found.groups)
    finding.evidence.push_back(
        {group.slice, say(facts, "{} x{}, then moved: {} in all; {} [per step] without compute",
                          {name(label), count(group.pairs), bytes(group.bytes),
                           ns(facts.per_step(group.cost_ns))})});
  sort_rows(finding.evidence.begin(), finding.evidence.end(),
            [](const Evidence& a, const Evidence& b) {
              return a.text.values[3].integer > b.text.values[3].integer;
            });
  if (finding.evidence.size() > 3) finding.evidence.resize(3);
  finding.try_next = {
      "make it where it is used: torch.zeros(n, device=x.device), or x.new_zeros(n)",
      "make constants once, before the loop"};
  finding.confidence = facts.confidence();
  finding.sample_count = found.pairs;
  finding.sample_noun = "tensor";
  finding.brief =
      say(facts, "{} [tensor is|tensors are] made on the CPU and then copied to the GPU",
          {count(found.pairs)});
  finding.action = say("Make them on the GPU, device=x.device; make constants before the loop");
  return finding;
}

}  // namespace

extern constinit const Rule cpu_built_tensor_rule = {
    .id = "cpu-built-tensor",
    .question = "are tensors made on the CPU and then moved to the GPU?",
    .order = 450,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_cpu_built_tensor, tell_cpu_built_tensor>,
    .is_regression = true,
    .stake_is_waiting = true,
};

}  // namespace lanescope::explain::rules
