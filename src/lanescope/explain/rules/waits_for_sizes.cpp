#include "lanescope/explain/rules/waits_for_sizes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/base/json_value.h"
#include "lanescope/explain/rules/arithmetic.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/host_syncs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/wait_remedies.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain::rules {
namespace {

// True: after each of these operators a tensor is split by the same sizes, so each read the same result from the GPU. A plain
// list such as [64, 64] does not count: the program may have written it.
bool are_sizes_the_same(const Facts& facts, std::vector<SliceId> sizers) {
  constexpr std::size_t kFewestTimes = 4, kFewestSizes = 4, kFewestDifferent = 3, kListArgument = 1;
  const Trace& trace = *facts.trace;
  std::sort(sizers.begin(), sizers.end());
  sizers.erase(std::unique(sizers.begin(), sizers.end()), sizers.end());
  if (sizers.size() < kFewestTimes) return false;
  std::string_view same;
  for (std::size_t i = 0; i < sizers.size(); ++i) {
    const Track& track = trace.track(sizers[i]);
    const std::uint32_t track_end = track.first_slice + track.slice_count;
    const std::uint32_t end =
        i + 1 < sizers.size() && raw(sizers[i + 1]) < track_end ? raw(sizers[i + 1]) : track_end;
    std::string_view sizes;
    for (std::uint32_t k = raw(sizers[i]); k < end && sizes.empty(); ++k)
      if (trace.name(SliceId{k}) == "aten::split_with_sizes")
        if (const auto list = trace.slice_args(SliceId{k}).text(ArgKey::kConcreteInputs))
          sizes = trace.text(*list);
    if (sizes.empty() || (i > 0 && sizes != same)) return false;
    same = sizes;
  }
  const auto arguments = parse_json(same);
  if (!arguments || arguments->items.size() <= kListArgument) return false;
  const auto list =
      analysis::sizes_of(parse_json(arguments->items[kListArgument].text).value_or(JsonValue{}));
  if (!list || list->size() < kFewestSizes) return false;
  const std::set<std::int64_t> different(list->begin(), list->end());
  return different.size() >= kFewestDifferent;
}

// Makes a mask: a comparison, a logical operator, a cast.
bool makes_mask(std::string_view op) {
  constexpr std::string_view kOps[] = {
      "aten::lt",       "aten::le",   "aten::gt",    "aten::ge",       "aten::eq",
      "aten::ne",       "aten::__or", "aten::__and", "aten::__xor",    "aten::bitwise_",
      "aten::logical_", "aten::is",   "aten::to",    "aten::bernoulli"};
  return std::any_of(std::begin(kOps), std::end(kOps),
                     [&](std::string_view each) { return op.starts_with(each); });
}

// Takes a part of a tensor: x[mask[i]] looks for another mask than x[mask].
bool takes_part(std::string_view op) {
  return op == "aten::select" || op == "aten::slice" || op == "aten::narrow" ||
         op == "aten::unbind" || op == "aten::split" || op == "aten::chunk";
}

// The recorded shape of the mask that this operator looks for; kNone: not recorded.
StringId mask_shape(const Trace& trace, SliceId op) {
  const Track& track = trace.track(op);
  for (std::uint32_t k = raw(op);
       k < track.first_slice + track.slice_count && trace.start_ns(SliceId{k}) < trace.end_ns(op);
       ++k)
    if (trace.name(SliceId{k}) == "aten::nonzero")
      return trace.slice_args(SliceId{k}).text(ArgKey::kInputDims).value_or(kNone<StringId>);
  return kNone<StringId>;
}

// Of the operators that look for the elements of a mask, how many may look for those of the same mask as the read x[mask]
// before, in the same step: nothing between the two makes a mask, no part of a tensor is taken directly before, and the recorded
// shapes are the same.
std::uint64_t count_same_masks(const Facts& facts, std::vector<SliceId> sizers) {
  const Trace& trace = *facts.trace;
  std::sort(sizers.begin(), sizers.end());
  sizers.erase(std::unique(sizers.begin(), sizers.end()), sizers.end());
  std::uint64_t same = 0;
  for (std::size_t i = 1; i < sizers.size(); ++i) {
    const SliceId before = sizers[i - 1], op = sizers[i];
    if (trace.slices().track[raw(before)] != trace.slices().track[raw(op)] ||
        trace.name(before) != "aten::index" || !trace.name(op).starts_with("aten::index") ||
        steady_step_at(facts, trace.start_ns(before)) !=
            steady_step_at(facts, trace.start_ns(op)) ||
        mask_shape(trace, before) != mask_shape(trace, op))
      continue;
    bool is_same = true;
    SliceId last = kNone<SliceId>;  // the program's own operator directly before
    for (std::uint32_t k = raw(before) + 1; is_same && k < raw(op); ++k) {
      const SliceId id{k};
      if (trace.start_ns(id) < trace.end_ns(before)) continue;
      is_same = !makes_mask(trace.name(id));
      if (trace.kind(id) == CategoryKind::kCpuOp) last = id;
    }
    same += is_same && (last == kNone<SliceId> || !takes_part(trace.name(last))) ? 1 : 0;
  }
  return same;
}

// Indices of a mask are made once in a step, so one wait of each step stays, and so do the waits for anything but sizes.
void keep_one_wait_of_a_step(const Facts& facts, const HostSyncs& found, Finding& finding) {
  std::int64_t sizes_ns = found.sizing_ns;
  for (const auto& [asker, group] : found.groups)
    if (group.asks_for_size > 0) sizes_ns += group.cost_ns();
  std::set<std::size_t> steps;
  for (const SliceId op : found.sizers)
    steps.insert(steady_step_at(facts, facts.trace->start_ns(op)));
  const double uses = static_cast<double>(std::max<std::size_t>(1, found.sizers.size()));
  const double part = 1 - std::min(1.0, static_cast<double>(steps.size()) / uses);
  const auto saved_ns =
      static_cast<std::int64_t>(part * static_cast<double>(std::min(sizes_ns, found.at_stake_ns)));
  finding.at_stake_ns = facts.per_step(saved_ns);
  finding.at_stake_ratio = share_of(saved_ns, facts.wall.partition.wall_ns);
  finding.own_cost_ns = static_cast<std::int64_t>(part * static_cast<double>(finding.own_cost_ns));
  finding.arithmetic.push_back(
      say(facts,
          "one of {} waits for a size stays [per step], and so do waits for anything else: at most "
          "{} of {} [per step] go",
          {count(found.sizers.size() / std::max<std::size_t>(1, steps.size())),
           ns(finding.at_stake_ns), ns(facts.per_step(found.at_stake_ns))}));
}

// Operators whose size can be known in a way of their own.
void advise_on_sizes_of(std::string_view op, Finding& finding) {
  if (op == "aten::where")  // the one with a mask alone: with two tensors it does not wait
    finding.action =
        say("Use torch.where(mask, a, b), or multiply with the mask: torch.where(mask) alone "
            "lists positions, so it waits for their number");
  if (op == "aten::bincount") {
    finding.action = say(
        "Count with scatter_add_ into zeros of a known size; if the values stay the same, once");
    finding.try_next = {
        "torch.bincount asks for the largest value, also with minlength: "
        "torch.zeros(n).scatter_add_(0, x, ones) knows its size and does not wait",
        "where the values are the same in each round, count once; where the CPU needs the counts, "
        "read all of them in one copy"};
  }
  if (op == "aten::one_hot") {
    finding.action =
        say("Pass num_classes: F.one_hot(x, num_classes) knows its size and does not wait");
    finding.try_next = {
        "without num_classes, F.one_hot reads the largest index on the CPU; the result then may "
        "also differ in size from batch to batch"};
  }
  if (op.starts_with("aten::_unique") || op.starts_with("aten::unique")) {
    finding.action =
        say("Sort and mark where values change (padded to a known size); or find them once, in "
            "advance");
    finding.try_next = {
        "only the GPU knows the number of different values: sort, compare neighbours, and use a "
        "mask or torch.scatter with a known size; or find the values where the batch is made"};
  }
}

// True: most of these operators are x[mask], whose result may be far smaller than x. Writes, x[mask] = y, keep the size of x.
bool reads_by_mask(const std::map<std::string_view, std::uint64_t>& callers) {
  std::uint64_t reads = 0, all = 0;
  for (const auto& [op, calls] : callers) {
    all += calls;
    reads += op == "aten::index" ? calls : 0;
  }
  return reads * 2 > all;
}

// The backward pass of x[mask] waits, so many times.
void tell_backward_of_masks(const Facts& facts, std::uint64_t waits, Finding& finding) {
  finding.brief = say(
      facts,
      "The backward pass of x[mask] makes the CPU wait for a size, {} [time|times] [in {} steps]",
      {count(waits), count(facts.selection.steady.size())});
  finding.action =
      say("Make the mask's indices once: i = mask.nonzero(as_tuple=True); x[i] does not wait, "
          "and neither does its backward pass");
  finding.try_next = {
      "with i = mask.nonzero(as_tuple=True), all reads x[i] of one mask share one wait, and the "
      "backward pass knows the size",
      "where the mask keeps most rows: torch.where(mask, x, 0) needs no size at all"};
}

}  // namespace

void tell_waits_for_sizes(const Facts& facts, const HostSyncs& found, Finding& finding) {
  const Trace& trace = *facts.trace;
  std::map<std::string_view, std::uint64_t> callers;
  bool has_mask = false;
  for (const SliceId op : found.sizers) {
    ++callers[trace.name(op)];
    has_mask = has_mask || trace.name(op).starts_with("aten::index");
  }
  const auto most =
      std::max_element(callers.begin(), callers.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  finding.arithmetic.push_back(
      say(facts, "{} of the {} [wait|waits] are for a size that only the GPU knows",
          {count(found.sizers.size()), count(found.waits)}));
  finding.try_next = {
      "keep sizes known ahead: torch.where(mask, new, old) instead of x[mask] = new, x * mask "
      "instead of x[mask], torch.topk or a padded buffer instead of nonzero()",
      "if the mask comes from the CPU, find its indices there and copy them once"};
  finding.brief = say(
      facts,
      has_mask ? "Boolean masks make the CPU wait for a size: {} (aten::nonzero), {} [time|times] "
                 "[in {} steps]"
               : "{} makes the CPU wait for the size of its output, {} [time|times] [in {} steps]",
      {asker_name(most->first), count(most->second), count(facts.selection.steady.size())});
  // x[mask] and x[mask] = y are two operators with one cause.
  const auto reads = callers.find("aten::index"), writes = callers.find("aten::index_put_");
  if (has_mask && reads != callers.end() && writes != callers.end())
    finding.brief =
        say(facts,
            "Boolean masks make the CPU wait for a size: {} and {} (aten::nonzero), {} "
            "[time|times] [in {} steps]",
            {name(reads->first), name(writes->first), count(reads->second + writes->second),
             count(facts.selection.steady.size())});
  finding.action =
      say("Use torch.where(mask, a, b) or a multiplication with the mask: sizes known "
          "ahead need no wait");
  // The backward pass of x[mask] looks for the elements of the mask again, once for each read.
  if (const std::string_view node = without_evaluate(most->first); node == "IndexBackward0") {
    tell_backward_of_masks(facts, most->second, finding);
  } else if (reads_by_mask(callers)) {
    finding.action =
        say("If the mask keeps most rows: torch.where(mask, a, b) or a product with it; if few, "
            "its indices once: i = mask.nonzero(as_tuple=True), x[i]");
  }
  if (has_mask && count_same_masks(facts, found.sizers) * 2 > found.sizers.size()) {
    finding.action =
        say("If it is one mask, make its indices once: i = mask.nonzero(as_tuple=True); x[i]");
    keep_one_wait_of_a_step(facts, found, finding);
    finding.try_next = {
        "x[mask] and x[mask] = y look for the elements of the mask each time, and wait each time: "
        "i = mask.nonzero(as_tuple=True) once, then x[i] and x[i] = y wait no more, and compute "
        "the same rows",
        "where the mask keeps most rows: torch.where(mask, new, old) needs no size at all"};
  }
  advise_on_sizes_of(most->first, finding);
  if (are_sizes_the_same(facts, found.sizers)) {
    append(finding.brief, say(", with the same result each time"));
    finding.action =
        say("Compute it once and keep it: the sizes that follow are the same each time");
    finding.try_next.insert(
        finding.try_next.begin(),
        "the sizes by which a tensor is split after each wait are the same each time: compute "
        "them once, before the loop, or once for all layers");
    return;
  }
  if (most->first != "aten::repeat_interleave") return;
  finding.action = say("Pass output_size=n, the sum of the counts, if it is known: no wait");
  finding.try_next = {
      "pass repeat_interleave(x, counts, output_size=n): the code that makes the batch mostly "
      "knows the sum of the counts"};
}

}  // namespace lanescope::explain::rules
