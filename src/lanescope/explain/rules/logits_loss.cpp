// The loss over logits of a large vocabulary reads and writes them many times.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/base/json_value.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::DeviceWork;

namespace {

constexpr std::int64_t kLargeVocabulary = 32'000;
constexpr std::uint64_t kFewestChunks = 2;  // calls of a step
constexpr std::string_view kForwardLoss = "aten::cross_entropy_loss";

bool is_loss_op(std::string_view op) {
  return op == "aten::cross_entropy_loss" || op == "aten::log_softmax" ||
         op == "aten::_log_softmax" || op == "aten::nll_loss_nd" || op == "aten::nll_loss" ||
         op == "aten::nll_loss_forward" || op == "aten::nll_loss2d_forward" ||
         op == "aten::_log_softmax_backward_data" || op == "aten::nll_loss_backward" ||
         op == "aten::nll_loss2d_backward";
}

// A softmax alone can have other uses, such as sampling or an entropy.
bool is_of_loss(std::string_view op) {
  return op.find("cross_entropy") != op.npos || op.find("nll_loss") != op.npos;
}

bool is_cast(std::string_view op) { return op == "aten::copy_" || op == "aten::_to_copy"; }

// The last dimension of an operator's first tensor; 0: not recorded.
std::int64_t last_dimension(std::string_view dims) {
  const auto shapes = parse_json(dims);
  if (!shapes) return 0;
  for (const JsonValue& shape : shapes->items)
    if (!shape.items.empty()) return shape.items.back().integer.value_or(0);
  return 0;
}

// True: a softmax for a metric: without gradients, in a program that trains, and in no loss.
bool is_beside_loss(const Facts& facts, SliceId op, const std::set<std::uint32_t>& for_backward) {
  const std::string_view name = facts.trace->name(op);
  if (for_backward.empty() || (name != "aten::log_softmax" && name != "aten::_log_softmax") ||
      ancestor_where(facts, op, is_of_loss) != kNone<SliceId>)
    return false;
  for (SliceId up = op; up != kNone<SliceId>; up = facts.nesting.parent[raw(up)])
    if (for_backward.contains(raw(up))) return false;
  return true;
}

struct LogitsLoss {
  std::int64_t vocabulary = 0;
  std::int64_t loss_ns = 0;
  std::map<std::string, std::pair<std::int64_t, SliceId>> by_op;
  std::uint64_t calls = 0;  // of the forward loss
};

// Without shapes: kernels of a loss that take so long read and write gigabytes. A loss of each pixel has other kernels.
std::optional<LogitsLoss> loss_by_time(const Facts& facts,
                                       const std::set<std::uint32_t>& for_backward) {
  constexpr std::int64_t kLongPassNs = 1'000'000;
  constexpr double kLeastByTime = 0.2;  // of the GPU's busy time
  const Trace& trace = *facts.trace;
  LogitsLoss found;
  std::vector<const DeviceWork*> works;
  for (const DeviceWork* work : steady_work(facts)) {
    const SliceId loss = ancestor_where(facts, facts.links.op_of[raw(work->slice)], is_loss_op);
    const std::int64_t length_ns = work->end_ns - work->start_ns;
    if (loss == kNone<SliceId> || length_ns < kLongPassNs ||
        is_beside_loss(facts, loss, for_backward))
      continue;
    if (trace.name(work->slice).find("Spatial") != std::string_view::npos ||
        trace.name(loss).find("2d") != std::string_view::npos)
      return std::nullopt;
    works.push_back(work);
    auto& [time_ns, first] =
        found.by_op.try_emplace(std::string(trace.name(loss)), 0, work->slice).first->second;
    time_ns += length_ns;
  }
  found.loss_ns = union_ns(works);
  if (is_thin(facts) || share_of(found.loss_ns, facts.wall.partition.busy_ns()) < kLeastByTime)
    return std::nullopt;
  return found;
}

Measurement<LogitsLoss> measure_logits_loss(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::map<std::uint32_t, std::int64_t> dimension_of;  // by raw StringId of the dims
  const auto dimension = [&](SliceId op) -> std::int64_t {
    const auto dims = trace.slice_args(op).text(ArgKey::kInputDims);
    if (!dims) return 0;
    const auto [entry, is_new] = dimension_of.try_emplace(raw(*dims));
    if (is_new) entry->second = last_dimension(trace.text(*dims));
    return entry->second;
  };
  std::vector<const DeviceWork*> works;
  std::map<std::string, std::pair<std::int64_t, SliceId>> by_op;
  std::int64_t vocabulary = 0;
  std::set<std::int64_t> of_loss;  // sizes seen in loss operators
  bool any_loss = false, any_shape = false;
  const auto& steady = steady_work(facts);
  const auto loss_around = [&](SliceId op) { return ancestor_where(facts, op, is_loss_op); };
  for (const DeviceWork* work : steady) {
    const SliceId loss = loss_around(facts.links.op_of[raw(work->slice)]);
    if (loss == kNone<SliceId>) continue;
    any_loss = any_loss || ancestor_where(facts, loss, is_of_loss) != kNone<SliceId>;
    const std::int64_t size = dimension(loss);
    any_shape = any_shape || size > 0;
    if (size >= kLargeVocabulary) of_loss.insert(size);
  }
  if (!any_loss) return Quiet{};
  std::set<std::uint32_t> for_backward;
  for (const AutogradPair& pair : autograd_pairs(facts)) for_backward.insert(raw(pair.forward));
  if (!any_shape) {
    if (auto found = loss_by_time(facts, for_backward)) return *std::move(found);
    return NotChecked{"the operators' shapes (record_shapes=True)"};
  }
  if (of_loss.empty()) return Quiet{};
  for (const DeviceWork* work : steady) {
    const SliceId op = facts.links.op_of[raw(work->slice)];
    if (op == kNone<SliceId>) continue;
    SliceId owner = loss_around(op);
    if (owner != kNone<SliceId> && is_beside_loss(facts, owner, for_backward)) continue;
    if (owner == kNone<SliceId> && is_cast(trace.name(op))) owner = op;
    // nll_loss_backward takes the scalar gradient first: its size is that of the loss around it.
    if (owner == kNone<SliceId>) continue;
    const bool sized =
        of_loss.contains(dimension(owner)) || trace.name(owner).starts_with("aten::nll_loss");
    if (!sized) continue;
    works.push_back(work);
    auto& entry = by_op[std::string(trace.name(owner))];
    entry.first += work->end_ns - work->start_ns;
    if (entry.second == kNone<SliceId> || entry.first == work->end_ns - work->start_ns)
      entry.second = work->slice;
  }
  vocabulary = *of_loss.rbegin();
  const std::int64_t loss_ns = union_ns(works), busy_ns = facts.wall.partition.busy_ns();
  if (is_thin(facts) || share_of(loss_ns, busy_ns) < 0.1) return Quiet{};
  // Counted by their work: a call without any, such as a view, is none.
  std::set<std::uint32_t> calls;
  for (const DeviceWork* work : steady) {
    const SliceId call = ancestor_named(facts, facts.links.op_of[raw(work->slice)], kForwardLoss);
    if (call != kNone<SliceId> && of_loss.contains(dimension(call))) calls.insert(raw(call));
  }
  return LogitsLoss{vocabulary, loss_ns, std::move(by_op), calls.size()};
}

Finding tell_logits_loss(const Facts& facts, const LogitsLoss& measured) {
  const auto& [vocabulary, loss_ns, by_op, calls] = measured;
  Finding finding;
  finding.verdict =
      say(facts,
          "The loss over logits of {} classes takes {} [per step], {} of the GPU's busy time: "
          "casts, log_softmax and nll_loss each read and write the whole matrix of logits.",
          {count(static_cast<std::uint64_t>(vocabulary)), ns(facts.per_step(loss_ns)),
           ratio(loss_ns, facts.wall.partition.busy_ns())});
  if (vocabulary == 0)  // no shapes
    finding.verdict =
        say(facts,
            "The loss takes {} [per step], {} of the GPU's busy time, in kernels of 1 ms and more: "
            "log_softmax and nll_loss each read and write the whole matrix of logits, and casts "
            "and the last linear layer come on top.",
            {ns(facts.per_step(loss_ns)), ratio(loss_ns, facts.wall.partition.busy_ns())});
  finding.at_stake_ns = facts.per_step(loss_ns);
  finding.at_stake_ratio = share_of(loss_ns, facts.wall.partition.wall_ns);
  std::vector<std::pair<std::string, std::pair<std::int64_t, SliceId>>> ranked(by_op.begin(),
                                                                               by_op.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  for (std::size_t i = 0; i < ranked.size() && i < 4; ++i)
    finding.evidence.push_back(
        {ranked[i].second.second,
         say(facts, "{}: {} [per step]",
             {name(ranked[i].first), ns(facts.per_step(ranked[i].second.first))})});
  finding.try_next = {
      "use a fused or chunked cross entropy, which never holds all logits in fp32, or "
      "torch.compile the loss together with the last linear layer"};
  finding.confidence = facts.confidence();
  finding.sample_count = facts.selection.steady.size();
  finding.brief = say("The loss reads and writes all logits of {} classes several times",
                      {count(static_cast<std::uint64_t>(vocabulary))});
  if (vocabulary == 0)
    finding.brief = say(facts, "The loss reads and writes all logits several times, {} [per step]",
                        {ns(facts.per_step(loss_ns))});
  finding.action =
      say("Use a fused or chunked cross entropy, or torch.compile loss and last linear layer");
  if (const std::uint64_t chunks = calls / step_count(facts); chunks >= kFewestChunks) {
    finding.try_next = {
        "the loss runs in chunks already; torch.compile of one chunk, with its linear layer, "
        "spares the casts and the passes between log_softmax and nll_loss"};
    finding.action =
        say("It runs in {} chunks already: torch.compile one chunk, its casts included",
            {count(chunks)});
  }
  return finding;
}

}  // namespace

extern constinit const Rule logits_loss_rule = {
    .id = "logits-loss",
    .question = "does the loss over a large vocabulary take a large part of the step?",
    .order = 800,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_logits_loss, tell_logits_loss>,
    .fix = Fix::kGpu,
    .fix_is_bound = true,
    .keeps_kernels = true,
};

}  // namespace lanescope::explain::rules
