// A large tensor is copied as a whole to change a small part of it. Examples: cat makes a queue again with new rows in front;
// few rows are written into a clone; the rows of a cache get another order after each write; index_copy returns a changed
// copy.
//
// Problem: the copy is as fast as memory allows, so no rule about kernels reports it. Idea: compare what is copied with
// what is new. Example: cat of [64, 256] and [1048512, 256] copies 268 M elements for 16 K new ones.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/operator_results.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::element_count;
using analysis::Sizes;
using analysis::TensorArguments;

namespace {

constexpr double kLeastRebuiltShare = 0.05;
constexpr double kLeastRebuiltElements = 1 << 20;
constexpr double kMostNew = 1.0 / 8;         // of what is copied
constexpr std::size_t kFurthestWrite = 6;    // operators of the program after the copy
constexpr std::size_t kFurthestRound = 500;  // and before it

enum class RebuiltBy : std::uint8_t { kJoin, kClone, kReorder, kOperator };

struct Rebuilt {
  double elements = 0, added = 0;
  RebuiltBy by = RebuiltBy::kClone;
};

// cat of a large tensor, which slice has cut just before, and small ones: a queue of fixed length. One that grows has no
// place of its own to write to (growing-cat).
std::optional<Rebuilt> joined_anew(const Trace& trace, const CallSequence& calls, std::size_t at) {
  if (trace.name(calls[at]) != "aten::cat" || at == 0) return std::nullopt;
  const auto inputs = taken_tensors(trace, calls[at]);
  if (!inputs || !inputs->is_list || inputs->tensors.size() < 2) return std::nullopt;
  const Sizes* largest = nullptr;
  double all = 0;
  for (const Sizes& each : inputs->tensors) {
    all += element_count(each);
    if (!largest || element_count(each) > element_count(*largest)) largest = &each;
  }
  const double added = all - element_count(*largest);
  if (all < kLeastRebuiltElements || added > kMostNew * all) return std::nullopt;
  for (std::size_t i = at; i-- > 0 && at - i <= kFurthestWrite;) {
    // Zeros in front: a shift by some places, not a queue.
    const ResultKind kind = result_kind(trace.name(calls[i]));
    if (kind == ResultKind::kFill || kind == ResultKind::kFillLike ||
        trace.name(calls[i]).starts_with("aten::new_"))
      return std::nullopt;
    if (trace.name(calls[i]) != "aten::slice") continue;
    const auto cut = operator_inputs(trace, calls[i]).tensor(0);
    // As long before as after.
    if (cut && cut->rank() == largest->size() && cut->elements() == all)
      return Rebuilt{all, added, RebuiltBy::kJoin};
  }
  return std::nullopt;
}

// clone() of a large tensor and then a write into a part of it.
std::optional<Rebuilt> cloned_for_a_part(const Trace& trace, const CallSequence& calls,
                                         std::size_t at) {
  if (trace.name(calls[at]) != "aten::clone") return std::nullopt;
  const auto copied = operator_inputs(trace, calls[at]).tensor(0);
  if (!copied || copied->elements() < kLeastRebuiltElements) return std::nullopt;
  bool is_cut = false;
  for (std::size_t i = at + 1; i < calls.size() && i - at <= kFurthestWrite; ++i) {
    const std::string_view op = trace.name(calls[i]);
    const TensorArguments inputs = operator_inputs(trace, calls[i]);
    const auto into = inputs.tensor(0);
    if (!into) continue;
    if ((op == "aten::select" || op == "aten::slice") && into->dims == copied->dims) is_cut = true;
    // Into a view of it.
    if (is_cut && (op == "aten::copy_" || op == "aten::fill_") &&
        into->elements() <= kMostNew * copied->elements())
      return Rebuilt{copied->elements(), into->elements(), RebuiltBy::kClone};
  }
  return std::nullopt;
}

bool takes_rows(std::string_view op) { return op == "aten::index" || op == "aten::index_select"; }

// x = x[rows] of a large tensor, after a write into a part of one of its size and an earlier x[rows].
std::optional<Rebuilt> reordered(const Trace& trace, const CallSequence& calls, std::size_t at) {
  if (!takes_rows(trace.name(calls[at]))) return std::nullopt;
  const auto own_dims = trace.slice_args(calls[at]).text(ArgKey::kInputDims);
  const auto copied = operator_inputs(trace, calls[at]).tensor(0);
  if (!copied || copied->rank() < 3 || copied->elements() < kLeastRebuiltElements)
    return std::nullopt;
  double written = 0;  // by the copy_ that is looked at, going backwards
  std::optional<double> most;
  for (std::size_t i = at; i-- > 0 && at - i <= kFurthestRound;) {
    const std::string_view op = trace.name(calls[i]);
    if (op.starts_with(kEvaluateNode)) break;
    if (takes_rows(op) && trace.slice_args(calls[i]).text(ArgKey::kInputDims) == own_dims) {
      if (!most) continue;  // of another tensor of this size, in the same round
      return *most <= kMostNew * copied->elements()
                 ? std::optional(Rebuilt{copied->elements(), *most, RebuiltBy::kReorder})
                 : std::nullopt;
    }
    const bool is_cut = op == "aten::select" || op == "aten::slice";
    if (op != "aten::copy_" && !is_cut) {
      if (!is_view(op)) written = 0;
      continue;
    }
    const auto into = operator_inputs(trace, calls[i]).tensor(0);
    if (!into) continue;
    if (!is_cut) {
      written = into->elements();
    } else if (written > 0 && into->dims == copied->dims) {
      most = std::max(most.value_or(0), written);
      written = 0;
    }
  }
  return std::nullopt;
}

// Operators that return a copy of their first input in which a part is changed. `changed_by`: the argument with one
// element for each that changes, at least.
struct CopyingOperator {
  std::string_view name;
  std::size_t changed_by = 0;
  bool has_form_in_place = true;
};
constexpr std::array<CopyingOperator, 9> kCopyingOperators = {{{"aten::index_copy", 3},
                                                               {"aten::index_add", 3},
                                                               {"aten::index_reduce", 3},
                                                               {"aten::scatter", 2},
                                                               {"aten::scatter_add", 2},
                                                               {"aten::scatter_reduce", 2},
                                                               {"aten::masked_scatter", 2},
                                                               {"aten::slice_scatter", 1, false},
                                                               {"aten::select_scatter", 1, false}}};

const CopyingOperator* copying_operator(std::string_view op) {
  const auto* const found =
      std::find_if(kCopyingOperators.begin(), kCopyingOperators.end(),
                   [&](const CopyingOperator& each) { return each.name == op; });
  return found == kCopyingOperators.end() ? nullptr : found;
}

// y = x.index_copy(0, rows, source) of a large x and a small source.
std::optional<Rebuilt> copied_by_operator(const Trace& trace, SliceId call) {
  const CopyingOperator* const known = copying_operator(trace.name(call));
  if (!known) return std::nullopt;
  const TensorArguments inputs = operator_inputs(trace, call);
  const auto copied = inputs.tensor(0), changed = inputs.tensor(known->changed_by);
  if (!copied || !changed || changed->elements() <= 0 ||
      copied->elements() < kLeastRebuiltElements ||
      changed->elements() > kMostNew * copied->elements())
    return std::nullopt;
  return Rebuilt{copied->elements(), changed->elements(), RebuiltBy::kOperator};
}

struct RebuiltTensors {
  std::unordered_set<std::uint32_t> calls;
  Rebuilt largest;
  SliceId call = kNone<SliceId>;
  std::int64_t cost_ns = 0;
};

std::optional<RebuiltTensors> measure_rebuilt_tensor(const Facts& facts) {
  const Trace& trace = *facts.trace;
  RebuiltTensors found;
  for (const CallSequence& sequence : call_sequences(facts))
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      auto rebuilt = joined_anew(trace, sequence, i);
      if (!rebuilt) rebuilt = cloned_for_a_part(trace, sequence, i);
      if (!rebuilt) rebuilt = reordered(trace, sequence, i);
      if (!rebuilt) rebuilt = copied_by_operator(trace, sequence[i]);
      if (!rebuilt) continue;
      found.calls.insert(raw(sequence[i]));
      if (rebuilt->elements <= found.largest.elements) continue;
      found.largest = *rebuilt;
      found.call = sequence[i];
    }
  if (found.calls.empty()) return std::nullopt;
  found.cost_ns = cost_of_calls(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastRebuiltShare) return std::nullopt;
  return found;
}

void tell_form_in_place(std::string_view op, Finding& finding) {
  if (const CopyingOperator* const known = copying_operator(op); known && known->has_form_in_place)
    finding.action = say("Write in place, with {}_, if nothing reads the old tensor", {name(op)});
  else
    finding.action =
        say("Write into the tensor itself, x[part] = y, if nothing reads its old value");
  finding.try_next = {
      "of a cache or a pool, of which only the new state counts: write in place, under "
      "torch.no_grad() or torch.inference_mode(); where gradients go through the old values, keep "
      "the copy"};
}

Finding tell_rebuilt_tensor(const Facts& facts, const RebuiltTensors& found) {
  const auto whole = static_cast<std::uint64_t>(found.largest.elements),
             added = static_cast<std::uint64_t>(found.largest.added);
  const Value op = name(facts.trace->name(found.call));
  const std::uint64_t calls = std::max<std::uint64_t>(1, found.calls.size() / step_count(facts));
  Finding finding;
  finding.verdict =
      say(facts,
          "{} copies {} elements, of which {} are new; {} such [call|calls] [per "
          "step] take {} [per step] ({}).",
          {op, count(whole), count(added), count(calls), ns(facts.per_step(found.cost_ns)),
           ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(say(
      "counted: aten::cat after aten::slice of a tensor as large as its result, and "
      "aten::clone before a write into a part of the copy, and aten::index after a write into a "
      "part of a tensor of that size, and operators such as aten::index_copy, which return a "
      "changed copy; of 1,048,576 elements or more, an eighth or less of them new; by shapes, on "
      "the same thread"));
  finding.evidence.push_back(called_at(facts, found.call, say("the largest of these copies")));
  if (found.largest.by == RebuiltBy::kReorder) {
    finding.action =
        say("If the rest is the same in all rows (a prompt): reorder only the new part");
    finding.try_next = {
        "of caches in beam search: keep the prompt's part, which all beams share, and reorder what "
        "came after it; or keep the order of the rows as indices, and follow these when reading"};
  } else if (found.largest.by == RebuiltBy::kJoin) {
    finding.action =
        say("For a queue: keep one buffer, write the new rows over the oldest: buffer[at:at + n] = "
            "new");
    finding.try_next = {
        "a ring buffer: keep the place where the next rows go, modulo the length; what reads the "
        "buffer must not depend on the order of its rows, or use the place to find it"};
  } else if (found.largest.by == RebuiltBy::kOperator) {
    tell_form_in_place(facts.trace->name(found.call), finding);
  } else {
    finding.action = say("Write into the tensor itself, if nothing reads its old value");
    finding.try_next = {
        "write into the tensor itself where no one needs its old value (under torch.no_grad(), or "
        "of a tensor that needs no gradient); else torch.where or index_put make one new tensor"};
  }
  for (const char* covered :
       {"hotspot-kernel", "memory-roof", "no-roof", "exposed-copy", "copy-bound"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say("{} copies {} elements, of which {} are new", {op, count(whole), count(added)});
  return finding;
}

}  // namespace

extern constinit const Rule rebuilt_tensor_rule = {
    .id = "rebuilt-tensor",
    .question = "is a large tensor copied to change a small part of it?",
    .meant_by = "queue buffer cat clone copy ring",
    .order = 461,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_rebuilt_tensor, tell_rebuilt_tensor>,
};

}  // namespace lanescope::explain::rules
