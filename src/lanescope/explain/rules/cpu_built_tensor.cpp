// Tensors that are made on the CPU and moved to the GPU at once: torch.zeros(n).to("cuda").
#include <algorithm>
#include <array>
#include <map>

#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::WorkClass;

namespace {

bool is_factory(std::string_view op) {
  static constexpr std::array kFactories = {
      "aten::zeros",      "aten::ones",         "aten::full",         "aten::arange",
      "aten::eye",        "aten::rand",         "aten::randn",        "aten::randint",
      "aten::zeros_like", "aten::ones_like",    "aten::full_like",    "aten::linspace",
      "aten::randperm",   "aten::tril_indices", "aten::triu_indices", "aten::scalar_tensor",
  };
  return std::find(kFactories.begin(), kFactories.end(), op) != kFactories.end();
}

// The outermost operator around an event, below annotations.
SliceId outermost_op(const Facts& facts, SliceId op) {
  SliceId found = kNone<SliceId>;
  for (; op != kNone<SliceId>; op = facts.nesting.parent[raw(op)])
    if (facts.trace->kind(op) == CategoryKind::kCpuOp) found = op;
  return found;
}

struct Group {
  std::uint64_t pairs = 0;
  std::int64_t bytes = 0, idle_ns = 0;
  SliceId slice = kNone<SliceId>;
};

}  // namespace

Outcome cpu_built_tensor(const Facts& facts) {
  if (!facts.main_device) return NotChecked{kNeedsDevice};
  if (!has_launches(facts)) return NotChecked{kNeedsLaunches};
  const Trace& trace = *facts.trace;
  const auto& timeline = facts.device().timeline;
  const auto cpu_windows = facts.steady_cpu_windows();
  // aten::to with a copy to the GPU below it, and its bytes.
  std::map<std::uint32_t, std::int64_t> moves;
  for (const auto& work : timeline.work) {
    if (work.work != WorkClass::kCopy ||
        trace.name(work.slice).find("HtoD") == std::string_view::npos)
      continue;
    const SliceId op = outermost_op(facts, facts.links.op_of[raw(work.slice)]);
    if (op == kNone<SliceId> || !inside(cpu_windows, trace.start_ns(op)) ||
        (trace.name(op) != "aten::to" && trace.name(op) != "aten::_to_copy"))
      continue;
    std::int64_t& bytes = moves[raw(op)];
    bytes = analysis::add_bytes(bytes,
                                trace.slice_args(work.slice).integer(ArgKey::kBytes).value_or(0));
  }
  std::map<std::string_view, Group> groups;
  std::uint64_t pairs = 0;
  std::int64_t idle_ns = 0, counted_until = 0;
  std::vector<std::pair<SliceId, std::int64_t>> in_order;
  for (const auto& [move, bytes] : moves) in_order.emplace_back(SliceId{move}, bytes);
  std::stable_sort(in_order.begin(), in_order.end(), [&](const auto& a, const auto& b) {
    return trace.start_ns(a.first) < trace.start_ns(b.first);
  });
  for (const auto& [to, bytes] : in_order) {
    // The operator just before it on the thread, beside it in the tree.
    const std::uint32_t move = raw(to);
    const Track& track = trace.track(to);
    SliceId before = kNone<SliceId>;
    for (std::uint32_t i = move; i > track.first_slice && move - i < 64;) {
      const SliceId id{--i};
      if (trace.kind(id) != CategoryKind::kCpuOp ||
          facts.nesting.depth[i] != facts.nesting.depth[move])
        continue;
      before = id;
      break;
    }
    if (before == kNone<SliceId> || !is_factory(trace.name(before)) ||
        trace.start_ns(to) - trace.end_ns(before) > 50'000)
      continue;
    const std::int64_t from = std::max(trace.start_ns(before), counted_until);
    const std::int64_t until = trace.end_ns(to);
    if (until <= from) continue;
    counted_until = until;
    const auto busy = timeline.time_within(from, until);
    const std::int64_t idle = until - from - busy[0] - busy[1] - busy[2];
    Group& group = groups[trace.name(before)];
    ++group.pairs;
    ++pairs;
    group.bytes = analysis::add_bytes(group.bytes, bytes);
    group.idle_ns += idle;
    idle_ns += idle;
    if (group.slice == kNone<SliceId>) group.slice = before;
  }
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  if (pairs < std::max<std::size_t>(3, facts.steady.size()) || share_of(idle_ns, wall_ns) < 0.01)
    return Quiet{};
  Finding finding;
  finding.verdict = say(
      "{} tensors were made on the CPU and moved to the GPU at once; the GPU was idle {} per step "
      "meanwhile.",
      {count(pairs), ns(facts.per_step(idle_ns))});
  finding.at_stake_ns = facts.per_step(idle_ns);
  finding.at_stake_ratio = share_of(idle_ns, wall_ns);
  finding.arithmetic.push_back(say(
      "from the begin of the operator that makes one to the end of the one that moves it, as far "
      "as no stream ran; making it on the GPU costs a launch"));
  for (const auto& [label, group] : groups)
    finding.evidence.push_back(
        {group.slice, say("{} x{}, then moved: {} in all; GPU idle {} per step",
                          {name(label), count(group.pairs), bytes(group.bytes),
                           ns(facts.per_step(group.idle_ns))})});
  std::stable_sort(finding.evidence.begin(), finding.evidence.end(),
                   [](const Evidence& a, const Evidence& b) {
                     return a.text.values[3].integer > b.text.values[3].integer;
                   });
  if (finding.evidence.size() > 3) finding.evidence.resize(3);
  finding.try_next = {
      "make it where it is used: torch.zeros(n, device=x.device), or x.new_zeros(n)",
      "make constants once, before the loop"};
  finding.confidence = facts.confidence();
  finding.sample_count = pairs;
  finding.sample_noun = "tensor";
  return finding;
}

}  // namespace lanescope::explain::rules
