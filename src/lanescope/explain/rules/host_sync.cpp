// The program waits for the GPU in the middle of a step: .item(), .cpu(), synchronize(), copies.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/analysis/launching_calls.h"
#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/base/json_value.h"
#include "lanescope/explain/loop_remedies.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/built_chains.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/host_syncs.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/sampled_code.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain::rules {
namespace {

// torch.linalg reads on the CPU whether each matrix could be factorised, unless the `_ex` form is called.
constexpr std::string_view kChecksMatrices = "aten::_linalg_check_errors";

struct CheckingCall {
  std::string_view op, form_without_check;
};
constexpr CheckingCall kCheckingCalls[] = {
    {"aten::cholesky", "torch.linalg.cholesky_ex"},
    {"aten::inverse", "torch.linalg.inv_ex"},
    {"aten::linalg_cholesky", "torch.linalg.cholesky_ex"},
    {"aten::linalg_inv", "torch.linalg.inv_ex"},
    {"aten::linalg_ldl_factor", "torch.linalg.ldl_factor_ex"},
    {"aten::linalg_lu_factor", "torch.linalg.lu_factor_ex"},
    {"aten::linalg_solve", "torch.linalg.solve_ex"},
};

// Values that a loop reads one after the other.
bool reads_one_by_one(const Facts& facts, const std::pair<std::string_view, SyncGroup>& group) {
  constexpr std::size_t kFewestReads = 16;  // of a step
  return (group.first == "aten::item" || group.first == "aten::is_nonzero") &&
         group.second.calls >= kFewestReads * facts.selection.steady.size();
}

// Compares, counts or adds up: what a search does in a round.
bool is_of_search(std::string_view op) {
  constexpr std::string_view kBegins[] = {"aten::__", "aten::bitwise_", "aten::logical_"};
  constexpr std::string_view kOps[] = {
      "aten::sum", "aten::mean",          "aten::any", "aten::all", "aten::max",
      "aten::min", "aten::item",          "aten::add", "aten::sub", "aten::mul",
      "aten::div", "aten::count_nonzero", "aten::to",  "aten::eq",  "aten::where"};
  return std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view each) { return op.starts_with(each); }) ||
         std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}
bool is_limit(std::string_view op) {
  return op == "aten::gt" || op == "aten::ge" || op == "aten::lt" || op == "aten::le";
}

// Does each round of this loop compare values with a limit, and only count afterwards? Then it may be a search, such as one that
// tries 100 thresholds.
bool tries_limits(const Owner& loop) {
  return loop.kind == OwnerKind::kLoop &&
         std::any_of(loop.cell.begin(), loop.cell.end(), is_limit) &&
         std::all_of(loop.cell.begin(), loop.cell.end(),
                     [](const std::string& op) { return is_limit(op) || is_of_search(op); });
}

// The loop of a search that has nine tenths of these waits, with one in each round or more; null: there is none.
const Owner* search_around(const Facts& facts, const SyncGroup& group) {
  constexpr std::uint64_t kFewestSearchRounds = 8;
  const Owners* owners = step_owners(facts);
  if (!owners) return nullptr;
  for (const Owner& owner : owners->owners)
    if (tries_limits(owner) && rounds_of(owner) >= kFewestSearchRounds &&
        owner.work.waits >= owner.rounds && owner.work.waits * 10 >= group.calls * 9)
      return &owner;
  return nullptr;
}

// True: the longest wait is for one copy of several values, as Tensor.tolist() and .cpu() make it.
bool reads_many_at_once(const Facts& facts, const SyncGroup& group) {
  constexpr std::int64_t kOneNumber = 16;  // bytes: a complex one is the largest
  const Trace& trace = *facts.trace;
  const SliceId op = outermost_operator(facts, group.longest);
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId> || !trace.name(work.slice).starts_with("Memcpy DtoH") ||
        outermost_operator(facts, launch) != op)
      continue;
    if (trace.slice_args(work.slice).integer(ArgKey::kBytes).value_or(0) > kOneNumber) return true;
  }
  return false;
}

// Do most of these reads follow one another, with views at most between them? So reads a loop over the elements of a result.
bool reads_elements(const Facts& facts, std::string_view op) {
  std::uint64_t reads = 0, in_a_row = 0;
  for (const CallSequence& calls : call_sequences(facts)) {
    bool is_after_read = false;
    for (const SliceId call : calls) {
      const std::string_view label = facts.trace->name(call);
      if (label != op && is_view(label)) continue;
      reads += label == op ? 1 : 0;
      in_a_row += label == op && is_after_read ? 1 : 0;
      is_after_read = label == op;
    }
  }
  return in_a_row > 0 && in_a_row * 4 >= reads * 3;
}

// True: the longest wait checks a matrix.
bool is_check_of_matrix(const Facts& facts, const SyncGroup& group) {
  return ancestor_named(facts, facts.links.op_of[raw(group.longest)], kChecksMatrices) !=
         kNone<SliceId>;
}

// A factorisation that waits for its own kernels: no line of the program can leave that out.
bool is_own_wait(const Facts& facts, const SyncGroup& group) {
  const SliceId op = facts.links.op_of[raw(group.longest)];
  return op != kNone<SliceId> && (facts.trace->name(op).starts_with("aten::linalg_") ||
                                  facts.trace->name(op).starts_with("aten::_linalg_"));
}

void tell_own_wait(const Facts& facts, const SyncGroup& group, Finding& finding) {
  const std::string op(facts.trace->name(facts.links.op_of[raw(group.longest)]));
  finding.kind = FindingKind::kWhere;
  finding.try_next = {op +
                      " waits for its own kernels: call it less often (keep its result), or once "
                      "for a stack of matrices"};
}

void tell_checks(std::string_view op, Finding& finding) {
  const auto call = std::find_if(std::begin(kCheckingCalls), std::end(kCheckingCalls),
                                 [&](const CheckingCall& each) { return each.op == op; });
  finding.try_next = {
      "torch.linalg waits to see whether each matrix could be factorised: its _ex functions "
      "(cholesky_ex, inv_ex, solve_ex, lu_factor_ex) do not, and return `info`, which can be read "
      "once, at the end",
      "factorise matrices of one size in one batched call: one wait for all"};
  finding.action =
      call == std::end(kCheckingCalls)
          ? say("It waits to check its matrix: stack matrices, one batched call waits once for all")
          : say("Call {}: it does not wait to check; or one batched call for all matrices",
                {name(call->form_without_check)});
}

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

// A node of autograd without the words that the engine puts before its name.
Value asker_name(std::string_view label) {
  constexpr std::string_view kTorchNode = "torch::autograd::";
  label = without_evaluate(label);
  if (label.starts_with(kTorchNode)) label.remove_prefix(kTorchNode.size());
  return name(label);
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

// The CPU waits for a size that only the GPU knows: that of a boolean mask (aten::index), or of the output of another operator.
void tell_of_sizes(const Facts& facts, const HostSyncs& found, Finding& finding) {
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

// The Python line that waits, if there are enough samples of its stack.
void tell_samples(const Facts& facts, const HostSyncs& found, Finding& finding) {
  std::vector<analysis::Window> windows;
  for (const LaunchingWait& wait : found.launching_waits) windows.push_back(wait.window);
  const auto code = find_sampled_code(*facts.trace, facts.main_thread, joined(windows));
  if (!code) return;
  Sentence line = say("samples of the launching thread's Python stack in these waits: ");
  append(line, describe(*code));
  finding.arithmetic.push_back(std::move(line));
}

// What the fix saves, what it does not, and why.
void tell_savings(const Facts& facts, const HostSyncs& found, Finding& finding) {
  finding.arithmetic.push_back(
      say(facts,
          std::string("saved without the waits: the idle time after them, {} [per step]") +
              (found.lead_ns > 0 ? ", and what the CPU's lead would cover (below)" : "") +
              ", but at most the GPU's work ({}) + the operators that wait ({}); also the copies "
              "that only bring a value to the CPU, {}; all waits together take {}",
          {ns(facts.per_step(found.idle_ns)), ns(facts.per_step(found.busy_ns)),
           ns(facts.per_step(found.waiting_ops_ns)), ns(facts.per_step(found.copies_ns)),
           ns(facts.per_step(found.waited_ns))}));
  std::int64_t short_ns = 0;
  for (const auto& [asker, group] : found.groups)
    short_ns += group.idle_ns + group.lead_ns - group.cost_ns();
  if (facts.per_step(short_ns) > 0)
    finding.arithmetic.push_back(say(facts,
                                     "operators that wait less than 20 us on average count with no "
                                     "more than their own duration: {} [per step] less",
                                     {ns(facts.per_step(short_ns))}));
  if (found.sizing_ns > 0)
    finding.arithmetic.push_back(say(facts,
                                     "operators whose output size is known also save the GPU's "
                                     "waits for the CPU while these run, {} [per step]",
                                     {ns(facts.per_step(found.sizing_ns))}));
  if (found.lead_ns > 0)
    finding.arithmetic.push_back(say(
        facts,
        "a wait also costs the CPU its lead over the GPU: with it, {} [per step] of the GPU's "
        "later waits for the CPU would disappear (until the next such wait, at most its length)",
        {ns(facts.per_step(found.lead_ns))}));
  if (found.elsewhere_ns > 0)
    finding.arithmetic.push_back(
        say(facts,
            "not counted: {} [per step] after a wait in which the CPU allocated or freed memory at "
            "the driver, or waited for a batch",
            {ns(facts.per_step(found.elsewhere_ns))}));
  tell_samples(facts, found, finding);
}

// The operators whose waits cost most.
void tell_costliest_operators(const Facts& facts, const HostSyncs& found, Finding& finding) {
  for (std::size_t i = 0; i < found.ranked.size() && i < 3; ++i) {
    if (i > 0 && found.ranked[i].second.cost_ns() == 0) break;  // it cost nothing
    Sentence text = say(facts, "{} x{}: waited {} [per step], GPU idle afterwards {}",
                        {name(found.ranked[i].first), count(found.ranked[i].second.calls),
                         ns(facts.per_step(found.ranked[i].second.waited_ns)),
                         ns(facts.per_step(found.ranked[i].second.idle_ns))});
    add_line(facts, found.ranked[i].second.longest, text);
    finding.evidence.push_back({found.ranked[i].second.longest, std::move(text)});
  }
}

void tell_what_to_try(const HostSyncs& found, Finding& finding) {
  if (found.after_uploads_ns * 4 > found.idle_ns)
    finding.try_next.push_back(
        "for copies to the GPU: use pinned memory (DataLoader(pin_memory=True), "
        "tensor.pin_memory()) and .to(device, non_blocking=True), which do not wait");
  if (found.after_uploads_ns * 4 < found.idle_ns * 3) {
    finding.try_next.push_back(
        "keep values on the GPU; read a loss or a metric every n steps instead of every step");
    finding.try_next.push_back(
        "move .item(), .cpu(), nonzero(), masks and prints of tensors after the last launch of the "
        "step");
  }
}

// In training, a value may be a loss that is only reported. Elsewhere it is rather a result of the step.
bool trains_in_steps(const Facts& facts) {
  const auto windows = facts.steady_cpu_windows();
  return trains(facts, &windows);
}

// True: the operator makes copies for itself. Nobody can pin what they copy.
bool converts_layout(std::string_view op) {
  return op.starts_with("aten::to_sparse") || op.starts_with("aten::_to_sparse") ||
         op == "aten::_coalesce" || op == "aten::coalesce" || op == "aten::to_dense" ||
         op.starts_with("aten::nonzero") || op.starts_with("aten::unique") ||
         op.starts_with("aten::_unique");
}

// Copies of one operator to the GPU in the steady steps. `bytes` is -1 if one of them has no size.
struct Uploads {
  std::int64_t count = 0, bytes = 0, largest_bytes = 0;
  bool has_several_elements = false;  // one of them, where shapes are recorded
};

// Does the operator that makes the copy say that its tensor has more than one element?
bool copies_several_elements(const Facts& facts, SliceId launch) {
  const SliceId op = facts.links.op_of[raw(launch)];
  if (op == kNone<SliceId>) return false;
  const std::string_view label = facts.trace->name(op);
  if (label != "aten::copy_" && label != "aten::_to_copy" && label != "aten::to") return false;
  for (const analysis::Sizes& shape : first_input_shapes(*facts.trace, op))
    if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size > 1; }))
      return true;
  return false;
}

Uploads uploads_of(const Facts& facts, std::string_view op) {
  Uploads found;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId launch = facts.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId> || !facts.trace->name(work.slice).starts_with("Memcpy HtoD") ||
        !inside(facts.steady_windows, work.start_ns) ||
        facts.trace->name(outermost_operator(facts, launch)) != op)
      continue;
    const auto own = facts.trace->slice_args(work.slice).integer(ArgKey::kBytes);
    if (!own) return {.bytes = -1};
    ++found.count;
    found.bytes += *own;
    found.largest_bytes = std::max(found.largest_bytes, *own);
    found.has_several_elements =
        found.has_several_elements || copies_several_elements(facts, launch);
  }
  return found;
}

// Uploads of one operator that carry so little that the calls are the cost: pinned memory would not spare them.
bool are_many_small_uploads(const Facts& facts,
                            const std::pair<std::string_view, SyncGroup>& group) {
  constexpr std::uint64_t kFewestUploads = 8;  // of a step
  constexpr std::int64_t kSmallBytes = 4096;
  if (group.second.calls < kFewestUploads * facts.selection.steady.size()) return false;
  const Uploads uploads = uploads_of(facts, group.first);
  return uploads.count > 0 && uploads.bytes >= 0 && uploads.bytes <= uploads.count * kSmallBytes;
}

// What to do about copies to the GPU. A number of the program that became a tensor on the CPU, as by x[index] = 0, cannot be
// pinned; a few numbers, such as the labels of a small batch, can.
Sentence remedy_for_uploads(const Facts& facts, std::string_view op) {
  constexpr std::int64_t kOneNumber = 8, kFewBytes = 64;
  const Uploads uploads = uploads_of(facts, op);
  const bool are_known = uploads.count > 0 && uploads.bytes >= 0;
  if (!are_known || uploads.largest_bytes > kFewBytes)
    return say("Use pinned memory and .to(device, non_blocking=True): such copies do not wait");
  if (uploads.largest_bytes > kOneNumber || uploads.has_several_elements)
    return say(
        "A few bytes per copy: pinned memory with non_blocking=True, or send them with the batch");
  return op.starts_with("aten::index_put")
             ? say("x[i] = number copies the number to the GPU: use x.index_fill_(0, i, number), "
                   "or make it a tensor there once")
             : say("One number per copy: make it on the GPU (torch.full), or once before the loop");
}

// torch.cuda.synchronize(); other calls wait for one stream or event.
bool waits_for_all_streams(std::string_view call) {
  return call.find("DeviceSynchronize") != call.npos || call.find("CtxSynchronize") != call.npos;
}

// The outermost operator of the thread before this wait's.
std::string_view operator_before(const Facts& facts, SliceId wait) {
  const SliceId op = outermost_operator(facts, wait);
  const Track& track = facts.trace->track(op);
  if (raw(op) == track.first_slice) return {};
  return facts.trace->name(outermost_operator(facts, SliceId{raw(op) - 1}));
}

// torch.distributions checks its arguments: all(...) of a comparison, and then Python asks whether it is true.
bool is_check_of_arguments(const Facts& facts,
                           const std::pair<std::string_view, SyncGroup>& ranked) {
  return ranked.first == "aten::is_nonzero" &&
         operator_before(facts, ranked.second.longest) == "aten::_is_all_true";
}

// In the step of torch.optim.LBFGS, and not in its closure.
bool is_own_read_of_lbfgs(const Facts& facts, SliceId wait) {
  const SliceId range = optimizer_step_around(facts, facts.links.op_of[raw(wait)]);
  return range != kNone<SliceId> && names::optimizer_of_step(facts.trace->name(range)) == "LBFGS" &&
         training_phases(facts)[raw(wait)] == analysis::Phase::kOptimizer;
}

// Tensors that the program makes on the CPU right before it copies them: pinned memory is no help for these.
std::uint64_t uploads_of_made_tensors(const Facts& facts, std::string_view op) {
  std::uint64_t copies = 0;
  for (const BuiltChain& chain : built_chains(facts))
    for (const SliceId copy : chain.copies) copies += facts.trace->name(copy) == op ? 1 : 0;
  return copies;
}

// What to do about the waits of one operator.
Sentence remedy_for(const Facts& facts, const std::pair<std::string_view, SyncGroup>& ranked) {
  const auto& [op, waits] = ranked;
  if (is_check_of_arguments(facts, ranked))
    return say(
        "If torch.distributions checks its arguments: "
        "Distribution.set_default_validate_args(False)");
  if (op == "aten::coalesce")
    return say("If the matrix stays the same: coalesce it once; for a small table: sparse=False");
  if (converts_layout(op))
    return op.find("sparse") == std::string_view::npos
               ? say("If its input stays the same: do it once, before the loop")
               : say("If the matrix stays the same: convert it once, before the loop");
  if (waits.is_of_uploads())
    if (const std::uint64_t made = uploads_of_made_tensors(facts, op); made * 2 > waits.calls)
      return say(facts,
                 "The CPU makes {} of these [tensor|tensors] [per step] right before: make them on "
                 "the GPU (device=x.device), constants once",
                 {count(a_step(facts, made))});
  if (waits.is_of_uploads())
    return are_many_small_uploads(facts, ranked)
               ? say("If known ahead: join them on the CPU and copy once; else pinned memory and "
                     "non_blocking=True")
               : remedy_for_uploads(facts, op);
  const ApiCall call = find_api_call(op);  // where no operator is around it
  if (call.does(api_effect::kBlocks) && !call.does(api_effect::kCopies))
    return waits_for_all_streams(op) ? say("Remove torch.cuda.synchronize() from the loop")
                                     : say("Let a stream wait instead of the CPU: "
                                           "stream.wait_event() or stream.wait_stream()");
  if (reads_one_by_one(facts, ranked))
    if (const Owner* search = search_around(facts, waits))
      return say(
          "If no round needs the one before it: try all {} at once (broadcasting, "
          "torch.searchsorted), read once; else test every few rounds",
          {count(rounds_of(*search))});
  if (reads_one_by_one(facts, ranked) && is_own_read_of_lbfgs(facts, waits.longest))
    return say(
        "L-BFGS reads a product of each entry of its history: use a smaller history_size (100 "
        "unless set)");
  if (reads_one_by_one(facts, ranked))
    return reads_elements(facts, op)
               ? say("Keep the results in one tensor, and read it once: .tolist() or .cpu()")
               : say("Do it for all values at once on the GPU (where, gather, scatter), or read "
                     "all in one copy");
  if (waits.at_end == waits.calls && !trains_in_steps(facts) &&
      waits.calls >= 2 * facts.selection.steady.size())
    return say(
        "Copy all results with non_blocking=True into pinned memory, then wait once, a step later "
        "if possible");
  if (waits.at_end == waits.calls)
    return trains_in_steps(facts)
               ? say("If the next step does not need it: read it a step later (pinned memory, "
                     "non_blocking=True), or every n steps")
               : say("If the next step does not need it: read it a step later (pinned memory, "
                     "non_blocking=True)");
  if (reads_many_at_once(facts, waits))
    return say("If the CPU needs these values now, one copy is right; else read them a step later");
  return trains_in_steps(facts) ? say("Keep the value on the GPU; if it is only reported, read it "
                                      "after the last launch or every n steps")
                                : say("Keep the value on the GPU; read it after the last launch");
}

// A hook of the program on the gradient of a parameter: operators in AccumulateGrad that are not its own work.
bool is_in_gradient_hook(const Facts& facts, SliceId wait) {
  const Trace& trace = *facts.trace;
  SliceId outermost = kNone<SliceId>;  // of the aten operators around the wait
  for (SliceId up = facts.links.op_of[raw(wait)]; up != kNone<SliceId>;
       up = facts.nesting.parent[raw(up)]) {
    const std::string_view label = trace.name(up);
    if (label.starts_with(kEvaluateNode))
      return is_accumulating_node(label) && outermost != kNone<SliceId> &&
             !trace.name(outermost).starts_with("aten::add") &&
             trace.name(outermost) != "aten::detach" && trace.name(outermost) != "aten::copy_";
    if (label.starts_with("aten::")) outermost = up;
    if (names::is_optimizer_step(label)) return false;  // an optimizer in the backward pass
  }
  return false;
}

// Nodes of the steady steps in which such a hook waits: one for each gradient and backward pass.
std::uint64_t hooked_gradients(const Facts& facts, const HostSyncs& found) {
  return static_cast<std::uint64_t>(
      std::count_if(found.waiting_ops.begin(), found.waiting_ops.end(),
                    [&](SliceId op) { return is_accumulating_node(facts.trace->name(op)); }));
}

void tell_gradient_hooks_that_wait(const Facts& facts, const HostSyncs& found, Finding& finding) {
  const SyncGroup& group = found.ranked.front().second;
  finding.brief = say(
      facts,
      "Hooks on {} gradients read values: the CPU waits for the GPU, {} [time|times] [in {} steps]",
      {count(a_step(facts, hooked_gradients(facts, found))), count(group.calls),
       count(facts.selection.steady.size())});
  finding.action =
      say("Run the hooks every n steps, or collect the values on the GPU and copy them once");
  finding.try_next = {
      "a hook on a gradient (register_hook, register_post_accumulate_grad_hook) that calls .item() "
      "or .cpu() waits for the GPU each time: keep its values on the GPU, torch.stack() them after "
      "backward(), and read them in one copy",
      "values that are only watched: every n steps"};
}

// "aten::to and aten::item make the CPU wait for the GPU, 180 times in 60 steps": the operators whose waits cost a tenth of
// all or more, three at most, the costliest first.
Sentence brief_of_waits(const Facts& facts, const HostSyncs& found) {
  constexpr std::size_t kMostNames = 3;
  std::int64_t total_ns = 0;
  for (const auto& [op, group] : found.ranked) total_ns += group.cost_ns();
  std::vector<std::string_view> names;
  std::uint64_t calls = 0;
  for (const auto& [op, group] : found.ranked) {
    if (!names.empty() && (group.cost_ns() * 10 < total_ns || group.cost_ns() == 0)) break;
    if (names.size() == kMostNames) break;
    // The uploads of an operator and its reads are two things.
    if (std::find(names.begin(), names.end(), op) != names.end()) continue;
    names.push_back(op);
    calls += group.calls;
  }
  std::string pattern = "{}";
  std::vector<Value> values{asker_name(names.front())};
  for (std::size_t i = 1; i < names.size(); ++i) {
    pattern += i + 1 == names.size() ? " and {}" : ", {}";
    values.push_back(asker_name(names[i]));
  }
  pattern += names.size() == 1 ? " makes" : " make";
  values.push_back(count(calls));
  values.push_back(count(facts.selection.steady.size()));
  return say(facts, pattern + " the CPU wait for the GPU, {} [time|times] [in {} steps]",
             std::move(values));
}

// True: of the operators that cost a tenth or more, those that copy an index from the CPU (x[i]) have four fifths of the calls, and others
// read results.
bool mostly_copies_indices(const HostSyncs& found) {
  std::int64_t total_ns = 0;
  for (const auto& [op, group] : found.ranked) total_ns += group.cost_ns();
  std::uint64_t calls = 0, of_indices = 0;
  for (const auto& [op, group] : found.ranked) {
    if (group.cost_ns() * 10 < total_ns || group.cost_ns() == 0) break;
    calls += group.calls;
    of_indices += op == "aten::index" && group.is_of_uploads() ? group.calls : 0;
  }
  return of_indices > 0 && of_indices * 5 >= calls * 4;
}

Finding tell_host_sync(const Facts& facts, const HostSyncs& found) {
  const std::int64_t wall_ns = facts.wall.partition.wall_ns;
  Finding finding;
  finding.verdict = say(facts,
                        "The CPU waits for the GPU in the middle of the work: {} [wait|waits] [in "
                        "{} steps], after which the GPU was idle for {} [per step] ({}).",
                        {count(found.waits), count(facts.selection.steady.size()),
                         ns(facts.per_step(found.idle_ns)), ratio(found.idle_ns, wall_ns)});
  finding.at_stake_ns = facts.per_step(found.at_stake_ns);
  finding.at_stake_ratio = share_of(found.at_stake_ns, wall_ns);
  finding.idle_after_waits_ns = facts.per_step(found.idle_ns);
  finding.spared_waits = found.upload_calls;
  // A call that only waits is there for the wait alone. While it is recorded, the CPU is so slow that such a wait is short, and a
  // replay shows too little of it.
  const ApiCall first_call = find_api_call(found.ranked.front().first);
  const bool only_waits =
      first_call.does(api_effect::kBlocks) && !first_call.does(api_effect::kCopies);
  finding.own_cost_ns = only_waits ? finding.at_stake_ns : facts.per_step(found.own_cost_ns);
  tell_savings(facts, found, finding);
  tell_costliest_operators(facts, found, finding);
  if (converts_layout(found.ranked.front().first))
    finding.try_next = {
        "it waits for its own copies and counts: call it once for an input that stays the same, "
        "and less often for others"};
  else
    tell_what_to_try(found, finding);
  finding.confidence = facts.confidence();
  finding.sample_count = found.waits;
  finding.sample_noun = "wait";
  finding.brief = brief_of_waits(facts, found);
  if (found.is_about_sizes) tell_of_sizes(facts, found, finding);
  if (const SyncGroup& worst = found.ranked.front().second; worst.lead_ns > worst.idle_ns)
    append(finding.brief, say(", and later the GPU waits for what the CPU does next"));
  if (found.is_for_streams_in_turn) {
    finding.brief = say(
        facts, "{} waits for one stream before the next gets work, {} [time|times] [in {} steps]",
        {name(found.ranked.front().first), count(found.ranked.front().second.calls),
         count(facts.selection.steady.size())});
    finding.try_next.insert(
        finding.try_next.begin(),
        "launch on all streams first, then wait for all of them, or let the current stream wait "
        "(wait_stream, wait_event): their work can run at the same time");
    finding.explains.push_back({"graph-gaps", finding.at_stake_ns});
  }
  if (found.is_about_sizes) return finding;
  if (is_in_gradient_hook(facts, found.ranked.front().second.longest)) {
    tell_gradient_hooks_that_wait(facts, found, finding);
    return finding;
  }
  if (is_check_of_matrix(facts, found.ranked.front().second)) {
    tell_checks(found.ranked.front().first, finding);
    return finding;
  }
  if (is_own_wait(facts, found.ranked.front().second)) {
    tell_own_wait(facts, found.ranked.front().second, finding);
    return finding;
  }
  finding.action =
      found.is_for_streams_in_turn
          ? say("Launch on all streams first, then wait for all: they can run at the same time")
          : remedy_for(facts, found.ranked.front());
  if (!found.is_for_streams_in_turn && !found.ranked.front().second.is_of_uploads() &&
      mostly_copies_indices(found))
    finding.action =
        say("x[i] with i on the CPU copies i each time, and waits: join all indices, copy them to "
            "the GPU once; results: one copy, too");
  return finding;
}

}  // namespace

extern constinit const Rule host_sync_rule = {
    .id = "host-sync",
    .question = "does the program wait for the GPU in the middle of a step?",
    .meant_by = "cudadevicesynchronize cudastreamsynchronize item sync print logging",
    .order = 80,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .run = measure_and_tell<measure_host_sync, tell_host_sync>,
    .is_regression = true,
    .fix = Fix::kRemoveSync,
};

}  // namespace lanescope::explain::rules
