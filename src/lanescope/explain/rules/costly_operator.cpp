// An operator that costs more than its users expect, where another one does the same with less.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/host_syncs.h"
#include "lanescope/explain/rules/kept_functions.h"
#include "lanescope/explain/rules/operator_advice.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/rounds_of_inputs.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::Sizes;
using analysis::Window;

namespace {

// Without a device there are no launches to follow.
constexpr double kLeastCostlyOperatorShare = 0.08, kLeastOfKernelsOnly = 0.03;

struct AdvisedCalls {
  std::vector<SliceId> calls;
  std::vector<SliceId>
      nodes;  // of the backward pass, and calls that are spared too, where these count
  std::vector<const DeviceWork*> works;
  std::int64_t busy_ns = 0, idle_ns = 0;
  std::int64_t cost_ns() const { return busy_ns + idle_ns; }
};

using ByRow = std::map<const OperatorAdvice*, AdvisedCalls>;

// The outermost operator around a slice (or itself) that has a row.
std::pair<SliceId, const OperatorAdvice*> advised_around(const Facts& facts, SliceId slice) {
  std::pair<SliceId, const OperatorAdvice*> found{kNone<SliceId>, nullptr};
  for (; slice != kNone<SliceId>; slice = facts.nesting.parent[raw(slice)]) {
    if (facts.trace->kind(slice) != CategoryKind::kCpuOp) continue;
    const std::string_view op = facts.trace->name(slice);
    if (found.second && !found.second->unless_in.empty() && op.starts_with(found.second->unless_in))
      found = {kNone<SliceId>, nullptr};
    if (const OperatorAdvice* row = advice_for_call(facts, slice)) found = {slice, row};
  }
  return found;
}

// What replaces the calls of such a row has a backward pass of its own: the nodes of autograd that these calls made, with their work,
// are calls of the row, too. So are calls that are spared with the row's own, such as the lookup before a sum by index.
void add_spared_too(const Facts& facts, const OperatorAdvice& row, AdvisedCalls& calls) {
  const bool has_nodes = row.has_backward || row.spares_too || is_recurrent_cell(row.op);
  if (!has_nodes && !row.is_of_kept_matrix) return;
  std::unordered_set<std::uint32_t> own, added;
  for (const SliceId call : calls.calls) {
    own.insert(raw(call));
    if (row.spares_too)
      for (const SliceId other : row.spares_too(facts, call)) added.insert(raw(other));
    if (row.is_of_kept_matrix)
      for (const SliceId other : calls_of_kept_function(facts, call)) added.insert(raw(other));
  }
  for (const std::uint32_t call : own)
    for (SliceId up{call}; up != kNone<SliceId>; up = facts.nesting.parent[raw(up)])
      added.erase(raw(up));
  const auto around_in = [&](SliceId slice, const std::unordered_set<std::uint32_t>& wanted) {
    while (slice != kNone<SliceId> && !wanted.contains(raw(slice)))
      slice = facts.nesting.parent[raw(slice)];
    return slice;
  };
  const std::unordered_set<std::uint32_t> others = added;
  if (has_nodes)
    for (const AutogradPair& pair : autograd_pairs(facts))
      if (around_in(pair.forward, own) != kNone<SliceId> ||
          around_in(pair.forward, others) != kNone<SliceId>)
        for (const SliceId node : pair.nodes) added.insert(raw(node));
  for (const std::uint32_t each : added) calls.nodes.push_back(SliceId{each});
  for (const DeviceWork* work : steady_work(facts))
    if (around_in(facts.links.op_of[raw(work->slice)], added) != kNone<SliceId>)
      calls.works.push_back(work);
  sort_rows(calls.works.begin(), calls.works.end(),
            [](const DeviceWork* a, const DeviceWork* b) { return a->start_ns < b->start_ns; });
}

ByRow find_calls(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto cpu_windows = facts.steady_cpu_windows();
  ByRow found;
  for (const SliceId id : slices_named(facts, has_advice)) {
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(cpu_windows, trace.start_ns(id)) ||
        !advice_for_call(facts, id))
      continue;
    const auto [call, row] = advised_around(facts, id);
    if (call == id) found[row].calls.push_back(id);
  }
  if (found.empty() || !facts.main_device) return found;
  for (const DeviceWork* work : steady_work(facts)) {
    const auto [call, row] = advised_around(facts, facts.links.op_of[raw(work->slice)]);
    if (row) found[row].works.push_back(work);
  }
  for (auto& [row, calls] : found) add_spared_too(facts, *row, calls);
  return found;
}

bool runs_kernel(const Trace& trace, const AdvisedCalls& calls, std::string_view part) {
  return std::any_of(calls.works.begin(), calls.works.end(), [&](const DeviceWork* work) {
    return trace.name(work->slice).find(part) != std::string_view::npos;
  });
}

// Leaves the kernels of the row, and the calls that launched them.
std::vector<Window> keep_kernels(const Facts& facts, std::string_view part, AdvisedCalls& calls) {
  const Trace& trace = *facts.trace;
  std::erase_if(calls.works, [&](const DeviceWork* work) {
    return trace.name(work->slice).find(part) == std::string_view::npos;
  });
  std::vector<Window> windows;
  for (const DeviceWork* work : calls.works)
    if (const SliceId call = facts.links.launch_of[raw(work->slice)]; call != kNone<SliceId>)
      windows.push_back({trace.start_ns(call), trace.end_ns(call)});
  return windows;
}

// What runs in these calls and stays (OperatorAdvice::keeps): its windows. Its work is removed from that of the calls.
std::vector<Window> take_out_kept(const Facts& facts, const OperatorAdvice& row,
                                  AdvisedCalls& calls) {
  const Trace& trace = *facts.trace;
  if (row.keeps.empty()) return {};
  std::erase_if(calls.works, [&](const DeviceWork* work) {
    return ancestor_where(facts, facts.links.op_of[raw(work->slice)], [&](std::string_view name) {
             return name == row.keeps;
           }) != kNone<SliceId>;
  });
  std::unordered_set<std::uint32_t> own;
  for (const SliceId call : calls.calls) own.insert(raw(call));
  std::vector<Window> windows;
  for (const SliceId kept : slices_named(facts, row.keeps)) {
    SliceId around = kept;
    while (around != kNone<SliceId> && !own.contains(raw(around)))
      around = facts.nesting.parent[raw(around)];
    if (around != kNone<SliceId>) windows.push_back({trace.start_ns(kept), trace.end_ns(kept)});
  }
  return windows;
}

// How long the GPU waits for the CPU in these windows.
std::int64_t gpu_waits_in(const Facts& facts, std::vector<Window> windows) {
  std::vector<Window> waits;
  for (const HostStretch& stretch : host_late_stretches(facts))
    waits.push_back({stretch.start_ns, stretch.end_ns});
  sort_rows(windows.begin(), windows.end(),
            [](const Window& a, const Window& b) { return a.start_ns < b.start_ns; });
  std::int64_t idle_ns = 0;
  std::size_t at = 0;
  for (const Window& wait : waits) {
    while (at < windows.size() && windows[at].end_ns <= wait.start_ns) ++at;
    for (std::size_t i = at; i < windows.size() && windows[i].start_ns < wait.end_ns; ++i)
      idle_ns += std::max<std::int64_t>(0, std::min(windows[i].end_ns, wait.end_ns) -
                                               std::max(windows[i].start_ns, wait.start_ns));
  }
  return idle_ns;
}

void measure_cost(const Facts& facts, const OperatorAdvice& row, AdvisedCalls& calls) {
  const Trace& trace = *facts.trace;
  std::vector<Window> windows, kept;
  if (row.is_kernel_only && facts.main_device) {
    windows = keep_kernels(facts, row.kernel, calls);
  } else {
    for (const std::vector<SliceId>* part : {&calls.calls, &calls.nodes})
      for (const SliceId call : *part)
        windows.push_back({trace.start_ns(call), trace.end_ns(call)});
    kept = take_out_kept(facts, row, calls);
  }
  if (!facts.main_device) {
    calls.busy_ns = total_length(std::move(windows)) - total_length(std::move(kept));
    return;
  }
  calls.busy_ns = union_ns(calls.works);
  calls.idle_ns = gpu_waits_in(facts, std::move(windows)) - gpu_waits_in(facts, std::move(kept));
}

struct CostlyOperator {
  std::vector<std::pair<const OperatorAdvice*, AdvisedCalls>> ranked;  // most first
  const AdvisedCalls* matrix = nullptr;  // makes a matrix that goes with the first one's remedy
};

// "aten::convolution_backward": autograd calls it, so no line of the program does.
bool is_backward(const OperatorAdvice& row) {
  return row.op.find("_backward") != std::string_view::npos;
}

std::optional<CostlyOperator> measure_costly_operator(const Facts& facts) {
  const auto steps = step_count(facts);
  CostlyOperator found;
  for (auto& [row, calls] : find_calls(facts)) {
    if (calls.calls.size() < static_cast<std::size_t>(row->least_calls) * steps) continue;
    if (!row->kernel.empty() && !runs_kernel(*facts.trace, calls, row->kernel)) continue;
    measure_cost(facts, *row, calls);
    found.ranked.emplace_back(row, std::move(calls));
  }
  // Rows that say the same of a part and of another count together.
  const auto cost_of_all = [&](const OperatorAdvice& row) {
    std::int64_t cost_ns = 0;
    for (const auto& [each, calls] : found.ranked)
      if (each->meaning == row.meaning) cost_ns += calls.cost_ns();
    return cost_ns;
  };
  std::vector<const OperatorAdvice*> small;
  for (const auto& [row, calls] : found.ranked)
    if (share_of(cost_of_all(*row), facts.steady_wall_ns()) <
        (row->is_kernel_only ? kLeastOfKernelsOnly : kLeastCostlyOperatorShare))
      small.push_back(row);
  std::erase_if(found.ranked, [&](const auto& each) {
    return std::find(small.begin(), small.end(), each.first) != small.end();
  });
  if (found.ranked.empty()) return std::nullopt;
  sort_rows(found.ranked.begin(), found.ranked.end(),
            [](const auto& a, const auto& b) { return a.second.cost_ns() > b.second.cost_ns(); });
  // Rows that say the same of a forward operator and of its backward part: the forward one is named.
  if (is_backward(*found.ranked.front().first))
    for (std::size_t i = 1; i < found.ranked.size(); ++i)
      if (found.ranked[i].first->meaning == found.ranked.front().first->meaning &&
          !is_backward(*found.ranked[i].first)) {
        std::swap(found.ranked.front(), found.ranked[i]);
        break;
      }
  auto& [first, all] = found.ranked.front();
  for (std::size_t i = 1; i < found.ranked.size(); ++i) {
    const auto& [row, calls] = found.ranked[i];
    if (row->meaning != first->meaning) continue;
    all.calls.insert(all.calls.end(), calls.calls.begin(), calls.calls.end());
    all.busy_ns += calls.busy_ns;
    all.idle_ns += calls.idle_ns;
  }
  // A matrix in place of lookups is made once, so what makes one in each step goes, too.
  if (first->spares_too)
    for (const auto& [row, calls] : found.ranked)
      if (row->is_of_kept_matrix && !found.matrix) found.matrix = &calls;
  return found;
}

// Are most of the waits that host-sync is about in calls of the row?
bool is_about_same_calls(const Facts& facts, const OperatorAdvice& row) {
  if (row.covers != std::string_view("host-sync")) return true;
  if (!facts.main_device) return false;
  const auto waits = measure_host_sync(facts);
  const auto* found = std::get_if<HostSyncs>(&waits);
  return found && found->ranked.front().first == row.op;
}

// "3 times a step, each of the same size": such a result may be kept.
void tell_how_often(const Facts& facts, const AdvisedCalls& calls, Finding& finding) {
  append(finding.brief, say(facts, ", {} [time|times] [in {} steps]",
                            {count(calls.calls.size()), count(facts.selection.steady.size())}));
  const auto matrix_of = [&](SliceId call) {
    return operator_inputs(*facts.trace, call).tensor(0);
  };
  const auto first = matrix_of(calls.calls.front());
  if (calls.calls.size() >= 2 && first &&
      std::all_of(calls.calls.begin(), calls.calls.end(), [&](SliceId call) {
        const auto matrix = matrix_of(call);
        return matrix && matrix->dims == first->dims;
      }))
    append(finding.brief, say(", of one size"));
}

// The part of their GPU work that nodes of autograd launched, per step.
std::int64_t in_backward_ns(const Facts& facts, const CostlyOperator& found) {
  std::int64_t time_ns = 0;
  for (const auto& [row, calls] : found.ranked)
    for (const DeviceWork* work : calls.works)
      if (ancestor_named(facts, facts.links.op_of[raw(work->slice)], kEvaluateNode) !=
          kNone<SliceId>)
        time_ns += work->end_ns - work->start_ns;
  return facts.per_step(time_ns);
}

Sentence how_counted(const Facts& facts, const OperatorAdvice& row, const AdvisedCalls& calls) {
  if (!facts.main_device)
    return say("the time of these calls; what replaces them takes some of it itself");
  const bool has_scale =
      row.spares_too && std::any_of(calls.nodes.begin(), calls.nodes.end(), [&](SliceId call) {
        return facts.trace->name(call).starts_with("aten::mul");
      });
  return say(
      facts,
      calls.nodes.empty()
          ? "GPU work of these calls {} [per step] + the GPU's waits for the CPU during them "
            "{}; what replaces them takes some of this time itself"
      : has_scale ? "GPU work of these calls, of the lookups and products with a number for "
                    "each row before them and of the backward pass of all {} [per step] + "
                    "the GPU's waits for the CPU during them {}; what replaces them takes "
                    "some of this time itself"
      : row.spares_too
          ? "GPU work of these calls, of the lookups before them and of the backward pass "
            "of both {} [per step] + the GPU's waits for the CPU during them {}; what "
            "replaces them takes some of this time itself"
      : row.is_of_kept_matrix
          ? "GPU work of these calls and of the others in their function {} [per step] + "
            "the GPU's waits for the CPU during them {}; with a matrix that does not change "
            "their results do not change, either"
          : "GPU work of these calls and of their backward pass {} [per step] + the GPU's "
            "waits for the CPU during them {}; what replaces them takes some of this time "
            "itself",
      {ns(facts.per_step(calls.busy_ns)), ns(facts.per_step(calls.idle_ns))});
}

// What the GPU did for calls of one operator.
struct MeanWork {
  std::int64_t time_ns = 0;
  std::uint64_t calls = 0;
};

// The backward part of x[index] (index_put_ with accumulate) beside that of x.index_select(0, index) (index_add_), for tensors of the
// same sizes. Only what this trace measured is compared.
void tell_other_gather(const Facts& facts, const OperatorAdvice& row, const AdvisedCalls& calls,
                       Finding& finding) {
  constexpr double kLeastOfOtherGather = 0.03;  // of a steady step
  if (!row.spares_too || !facts.main_device) return;
  const Trace& trace = *facts.trace;
  std::map<Sizes, std::pair<MeanWork, MeanWork>> by_rows;  // of index_put, of index_add
  std::unordered_set<std::uint32_t> met;
  for (const DeviceWork* work : calls.works) {
    SliceId op = facts.links.op_of[raw(work->slice)];
    while (op != kNone<SliceId> && trace.name(op) != "aten::_index_put_impl_" &&
           trace.name(op) != "aten::index_add_")
      op = facts.nesting.parent[raw(op)];
    if (op == kNone<SliceId>) continue;
    const bool is_put = trace.name(op) == "aten::_index_put_impl_";
    const auto values = operator_inputs(trace, op).tensor(is_put ? 2 : 3);
    if (!values || values->rank() != 2) continue;
    auto& both = by_rows[values->dims];
    MeanWork& own = is_put ? both.first : both.second;
    own.time_ns += work->end_ns - work->start_ns;
    own.calls += met.insert(raw(op)).second ? 1 : 0;
  }
  std::int64_t put_ns = 0, add_ns = 0;
  for (const auto& [rows, both] : by_rows) {
    const auto& [put, add] = both;
    if (put.calls == 0 || add.calls == 0) continue;
    put_ns += put.time_ns;
    add_ns +=
        add.time_ns / static_cast<std::int64_t>(add.calls) * static_cast<std::int64_t>(put.calls);
  }
  if (share_of(put_ns - add_ns, facts.steady_wall_ns()) < kLeastOfOtherGather) return;
  finding.arithmetic.push_back(say(
      facts,
      "the backward part of x[index], index_put_ with accumulate, takes {} [per step]; index_add_ "
      "on rows of the same sizes, that of index_select, takes {} for as many calls in this trace",
      {ns(facts.per_step(put_ns)), ns(facts.per_step(add_ns))}));
  finding.try_next.emplace_back(
      "where edges change: x.index_select(0, index) instead of x[index]; its backward part is "
      "index_add_");
}

Finding tell_costly_operator(const Facts& facts, const CostlyOperator& found) {
  const std::int64_t wall_ns = facts.steady_wall_ns();
  const auto& [row, calls] = found.ranked.front();
  const auto steps = step_count(facts);
  Finding finding;
  finding.verdict = say(facts, "{} {}: {} [call|calls] [per step], {} [per step] ({}).",
                        {name(row->op), text(row->meaning), count(calls.calls.size() / steps),
                         ns(facts.per_step(calls.cost_ns())), ratio(calls.cost_ns(), wall_ns)});
  const std::int64_t matrix_ns = found.matrix ? found.matrix->cost_ns() : 0;
  finding.at_stake_ns = facts.per_step(calls.cost_ns() + matrix_ns);
  finding.at_stake_ratio = share_of(calls.cost_ns() + matrix_ns, wall_ns);
  finding.waiting_ns = facts.per_step(calls.idle_ns + (found.matrix ? found.matrix->idle_ns : 0));
  // What replaces these calls takes some of their time, so their removal is a bound. Calls of which only a kernel goes stay.
  if (!calls.nodes.empty() && !row->is_kernel_only) {
    finding.gain_is_bound = true;
    for (const AdvisedCalls* each : {&calls, found.matrix})
      if (each)
        for (const std::vector<SliceId>* part : {&each->calls, &each->nodes})
          finding.spared_calls.insert(finding.spared_calls.end(), part->begin(), part->end());
  }
  finding.arithmetic.push_back(how_counted(facts, *row, calls));
  if (found.matrix)
    finding.arithmetic.push_back(
        say(facts,
            "+ {} [per step] of aten::coalesce and of the other calls of its function: where edges "
            "stay the same, they are needed once",
            {ns(facts.per_step(matrix_ns))}));
  tell_other_gather(facts, *row, calls, finding);
  if (!row->keeps.empty())
    finding.arithmetic.push_back(
        say("without {} in these calls: what replaces them needs it, too", {name(row->keeps)}));
  for (std::size_t i = 0; i < found.ranked.size() && i < 3; ++i) {
    const auto& [each, own] = found.ranked[i];
    // Rows that say the same count together: the longest of this row's own operator.
    const auto length = [&](SliceId call) {
      return std::pair(facts.trace->name(call) == each->op, facts.trace->dur_ns(call));
    };
    const SliceId longest =
        *std::max_element(own.calls.begin(), own.calls.end(),
                          [&](SliceId a, SliceId b) { return length(a) < length(b); });
    finding.evidence.push_back(called_at(
        facts, longest,
        say(facts, "{} x{}: {} [per step]",
            {name(each->op), count(own.calls.size()), ns(facts.per_step(own.cost_ns()))})));
  }
  finding.try_next.insert(finding.try_next.begin(),
                          {row->more, std::string("read ") + row->source});
  finding.confidence = facts.confidence();
  finding.sample_count = calls.calls.size();
  finding.sample_noun = "call";
  for (const char* covered : {"hotspot-kernel", "few-blocks", "tiny-kernels", "memory-roof",
                              "graph-opportunity", "gpu-idle", "low-occupancy", "kernel-spread",
                              "no-roof", "layout-copies", "optimizer-loop", "inflated-tensor"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.explains.push_back({"slow-backward", in_backward_ns(facts, found)});
  if (row->covers && is_about_same_calls(facts, *row))
    finding.explains.push_back({row->covers, finding.at_stake_ns});
  finding.brief = say("{} {}", {name(row->op), text(row->meaning)});
  if (row->is_of_one_matrix) tell_how_often(facts, calls, finding);
  finding.action = say(row->action);
  if (found.matrix) append(finding.action, say("; made once, it spares aten::coalesce, too"));
  if (const std::size_t rounds = row->takes_all_inputs ? rounds_of_inputs(facts) : 0; rounds > 0)
    append(finding.action, say("; if possible for all {} inputs in one call", {count(rounds)}));
  return finding;
}

}  // namespace

extern constinit const Rule costly_operator_rule = {
    .id = "costly-operator",
    .question = "does an operator cost more than another that does the same?",
    .meant_by = "operator sort unique repeat",
    .order = 495,
    .needs = {need::kAnyWork, need::kLaunchCallsOfGpu},
    .run = measure_and_tell<measure_costly_operator, tell_costly_operator>,
};

}  // namespace lanescope::explain::rules
