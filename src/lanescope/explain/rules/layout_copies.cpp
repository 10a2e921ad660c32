// Copies inside the GPU that only change a tensor's layout.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "lanescope/base/json_value.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;
using analysis::WorkClass;

namespace {

// True: a tensor of this shape and these strides lies in memory without gaps.
bool is_dense(const std::vector<JsonValue>& shape, const std::vector<JsonValue>& strides) {
  std::vector<std::pair<std::int64_t, std::int64_t>> by_stride;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i].integer.value_or(1) > 1)
      by_stride.emplace_back(strides[i].integer.value_or(0), *shape[i].integer);
  std::sort(by_stride.begin(), by_stride.end());
  std::int64_t expected = 1;
  for (const auto& [stride, size] : by_stride) {
    if (stride != expected || size > std::numeric_limits<std::int64_t>::max() / expected)
      return false;
    expected *= size;
  }
  return true;
}

// True: copy_ reads a tensor that is not dense and has the type that it writes. From the JSON of
// "Input Dims", "Input Strides" and "Input type". Nothing: the strides were not recorded.
std::optional<bool> changes_layout(const Trace& trace, SliceId op) {
  const ArgsView args = trace.slice_args(op);
  const auto read = [&](ArgKey key) -> std::optional<JsonValue> {
    const auto text = args.text(key);
    return text ? parse_json(trace.text(*text)) : std::nullopt;
  };
  const auto dims = read(ArgKey::kInputDims), strides = read(ArgKey::kInputStrides),
             types = read(ArgKey::kInputType);
  if (!dims || !strides || !types || dims->items.size() < 2 || strides->items.size() < 2 ||
      types->items.size() < 2)
    return std::nullopt;
  if (types->items[0].text != types->items[1].text) return false;  // a conversion
  const auto& shape = dims->items[1].items;
  const auto& from = strides->items[1].items;
  const auto& to = strides->items[0].items;
  if (shape.size() != from.size() || from.size() != to.size() ||
      dims->items[0].items.size() != shape.size())
    return false;
  // A copy into a part of a larger tensor (a slot of a cache) moves data: it is no change of layout.
  if (!is_dense(shape, to)) return false;
  bool differs = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].integer != dims->items[0].items[i].integer) return false;  // broadcast
    if (shape[i].integer.value_or(1) == 1) continue;
    if (from[i].integer == 0) return false;  // expanded: more data comes out than goes in
    differs |= from[i].integer != to[i].integer;
  }
  return differs;
}

// The operator that called for the copy: the outermost one around it that only copies.
SliceId copying_operator(const Facts& facts, SliceId copy) {
  static constexpr std::string_view kCopying[] = {"aten::clone",   "aten::contiguous",
                                                  "aten::reshape", "aten::_reshape_copy",
                                                  "aten::flatten", "aten::copy_"};
  SliceId op = copy;
  for (int i = 0; i < 4; ++i) {
    const SliceId parent = facts.nesting.parent[raw(op)];
    if (parent == kNone<SliceId>) break;
    const std::string_view label = facts.trace->name(parent);
    if (std::find(std::begin(kCopying), std::end(kCopying), label) == std::end(kCopying)) break;
    op = parent;
  }
  return op;
}

struct CalledCopies {
  std::uint64_t copies = 0;
  std::int64_t total_ns = 0;
  SliceId longest = kNone<SliceId>;
};

// Where the program cannot drop a .contiguous(): autograd asks for the copy.
struct BackwardCopies {
  std::int64_t in_nodes_ns = 0;  // in any node of the backward pass
  std::int64_t of_split_views_ns =
      0;  // of these, gradients of views that were permuted and unbound
};

struct LayoutCopies {
  Savings found;
  std::map<std::string_view, CalledCopies> by_caller;
  BackwardCopies backward;
};

// The gradient of x.view(...).permute(...), of which unbind() or indices take parts: UnbindBackward0, PermuteBackward0, ViewBackward0
// follow each other. The parts' gradients are joined, and the sum of the steps is not in the order of x.
bool is_of_split_view(const Facts& facts, SliceId node) {
  const Trace& trace = *facts.trace;
  constexpr std::uint32_t kFurthest = 64;
  constexpr std::array<std::string_view, 2> kBefore = {"PermuteBackward0", "UnbindBackward0"};
  if (!trace.name(node).ends_with("ViewBackward0")) return false;
  std::size_t seen = 0;
  for (std::uint32_t i = raw(node); i > trace.track(node).first_slice && raw(node) - i < kFurthest;
       --i) {
    const std::string_view before = trace.name(SliceId{i - 1});
    if (!before.starts_with(kEvaluateNode)) continue;
    if (!before.ends_with(kBefore[seen])) return false;
    if (++seen == kBefore.size()) return true;
  }
  return false;
}

void add_backward(const Facts& facts, SliceId op, std::int64_t time_ns, BackwardCopies& backward) {
  const SliceId node = ancestor_named(facts, op, kEvaluateNode);
  if (node == kNone<SliceId>) return;
  backward.in_nodes_ns += time_ns;
  if (is_of_split_view(facts, node)) backward.of_split_views_ns += time_ns;
}

Measurement<LayoutCopies> measure_layout_copies(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::map<std::string_view, CalledCopies> by_caller;
  std::map<std::array<std::uint32_t, 3>, std::optional<bool>> known;
  Savings found;
  BackwardCopies backward;
  std::int64_t unknown_ns = 0;
  for (const DeviceWork& work : facts.device().timeline.work) {
    const SliceId op = facts.links.op_of[raw(work.slice)];
    if (work.work == WorkClass::kCommunication || op == kNone<SliceId> ||
        trace.name(op) != "aten::copy_" || !inside(facts.steady_windows, work.start_ns))
      continue;
    if (work.work == WorkClass::kCopy &&
        trace.name(work.slice).find("DtoD") == std::string_view::npos)
      continue;
    const ArgsView args = trace.slice_args(op);
    const auto id = [&](ArgKey key) { return raw(args.text(key).value_or(kNone<StringId>)); };
    const auto [at, is_new] = known.try_emplace(
        {id(ArgKey::kInputDims), id(ArgKey::kInputStrides), id(ArgKey::kInputType)});
    if (is_new) at->second = changes_layout(trace, op);
    if (!at->second) unknown_ns += work.end_ns - work.start_ns;
    if (!at->second.value_or(false) || is_in_sparse(facts, op)) continue;
    found.add(work.slice, work.start_ns, work.end_ns, work.end_ns - work.start_ns);
    add_backward(facts, op, work.end_ns - work.start_ns, backward);
    CalledCopies& called = by_caller[trace.name(copying_operator(facts, op))];
    ++called.copies;
    called.total_ns += work.end_ns - work.start_ns;
    if (called.longest == kNone<SliceId> || trace.dur_ns(work.slice) > trace.dur_ns(called.longest))
      called.longest = work.slice;
  }
  found.finish();
  if (share_of(found.time_ns(), facts.wall.partition.busy_ns()) < 0.03) {
    if (share_of(unknown_ns, facts.wall.partition.busy_ns()) >= 0.03)
      return NotChecked{"strides of the operators' inputs (record with record_shapes=True)"};
    return Quiet{};
  }
  return LayoutCopies{std::move(found), std::move(by_caller), backward};
}

void tell_backward(const Facts& facts, const LayoutCopies& measured, Finding& finding) {
  const BackwardCopies& backward = measured.backward;
  finding.arithmetic.push_back(say(facts, "the backward pass makes copies for {} [per step] of it",
                                   {ns(facts.per_step(backward.in_nodes_ns))}));
  if (backward.of_split_views_ns * 2 > measured.found.time_ns()) {
    finding.try_next = {
        "x.view(b, t, 3, heads, d).permute(2, 0, 3, 1, 4) gives parts whose gradients are "
        "joined in the permuted order and then copied back",
        "q, k, v = x.chunk(3, dim=-1), and a view and a transpose of each, join them in the "
        "order of x; this needs all of q before all of k in x"};
    finding.brief = say(
        facts, "{} [copy puts|copies put] gradients of permuted parts back in order [in {} steps]",
        {count(measured.found.calls()), count(facts.selection.steady.size())});
    finding.action =
        say("Where parts follow each other in x: x.chunk(3, dim=-1) first, then view and transpose "
            "each");
    return;
  }
  finding.try_next = {
      "a gradient comes in another layout than the tensor of the forward pass has: look "
      "for a view, reshape, permute or transpose there, around the place that is named",
      "keep one layout from operator to operator, so that no gradient needs another one"};
  finding.action = say(
      "Keep one layout in the forward pass there: its permute or transpose makes this gradient");
}

Finding tell_layout_copies(const Facts& facts, const LayoutCopies& measured) {
  const auto& [found, by_caller, backward] = measured;
  Finding finding;
  finding.verdict = say(
      facts, "Tensors are copied to change their layout: {} [copy|copies], {} of [a step's] {}.",
      {count(found.calls()), ns(facts.per_step(found.time_ns())),
       ns(facts.per_step(facts.wall.partition.wall_ns))});
  std::vector<std::pair<std::string_view, CalledCopies>> ranked(by_caller.begin(), by_caller.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.total_ns > b.second.total_ns; });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    const CalledCopies& called = ranked[i].second;
    finding.evidence.push_back(
        {called.longest,
         say(facts, "called by {} x{}: {} [per step]; this is the longest",
             {name(ranked[i].first), count(called.copies), ns(facts.per_step(called.total_ns))})});
  }
  rate_finding(facts, found, finding);
  finding.sample_noun = "copy";
  finding.try_next = {"keep one layout: transpose the weights once, permute where the data is made",
                      "operators that take strided inputs need no .contiguous() before them; a "
                      "copy that many calls read may be worth its time"};
  finding.explains.push_back({"no-roof", finding.at_stake_ns});
  finding.brief =
      say(facts, "{} [copy changes|copies change] only the layout of a tensor [in {} steps]",
          {count(found.calls()), count(facts.selection.steady.size())});
  finding.action =
      say("Transpose weights once; drop .contiguous() where only few calls read the copy");
  if (backward.in_nodes_ns * 2 > found.time_ns()) tell_backward(facts, measured, finding);
  return finding;
}

}  // namespace

extern constinit const Rule layout_copies_rule = {
    .id = "layout-copies",
    .question = "are tensors copied only to change their layout?",
    .meant_by = "channelslast",
    .order = 600,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_layout_copies, tell_layout_copies>,
    .is_regression = true,
    .fix = Fix::kGpu,
    .covered_from = 0.8,
};

}  // namespace lanescope::explain::rules
