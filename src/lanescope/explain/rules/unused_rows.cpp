// Only a small part of a product's result, or of an enlarged image, is read: select, slice and x[rows] cut it, nothing else
// reads it.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

using analysis::shape_text;
using analysis::Sizes;
using analysis::Tensor;
using analysis::TensorArguments;

namespace {

constexpr double kLeastUnusedRowsShare = 0.05;
constexpr double kMostRead = 0.25;  // of the result's elements
constexpr double kLeastElements = 4096;

// True: the operator passes on all elements one by one, so what is read of its result counts.
bool passes_on(std::string_view op) {
  return op == "aten::to" || op == "aten::_to_copy" || op == "aten::contiguous" ||
         op == "aten::clone" || op == "aten::detach" || op == "aten::copy_";
}

// The part of its first input that a view or index_select keeps, 0 to 1, and the size of the dimension that it cuts.
struct Cut {
  double part = 1;
  std::int64_t size = 0;
};
std::optional<Cut> cut_of(std::string_view op, const TensorArguments& inputs, const Tensor& input) {
  if (op != "aten::select" && op != "aten::slice" && op != "aten::index_select")
    return std::nullopt;
  const auto taken = taken_of(op, inputs, 0);
  if (!taken || input.elements() <= 0) return std::nullopt;
  const auto dim = inputs.value(1);
  const std::int64_t at = dim && dim->integer ? *dim->integer : 0;
  const auto rank = static_cast<std::int64_t>(input.rank());
  return Cut{taken->elements / input.elements(),
             input.dims[static_cast<std::size_t>(at < 0 ? at + rank : at)]};
}

struct UnusedRows {
  std::unordered_set<std::uint32_t> calls;
  double unread_ns = 0;  // of their costs
  std::int64_t cost_ns = 0;
  SliceId longest = kNone<SliceId>;  // a product
  Sizes shape;                       // of its result
  double read = 0;                   // of its elements
  SliceId maker = kNone<SliceId>;    // makes the dimension that is cut, before the product
  bool is_enlarged = false;          // `longest` is no product, but enlarges the rows that are cut
};

// How much of the result of the product at `at` is read until the same product runs again, and the
// operators that passed it on. Nothing: all of it is read, or it is not known.
struct Read {
  double part = 0;
  std::int64_t cut_size = 0;  // of the dimension that is cut
  std::vector<SliceId> passed_on;
};
std::optional<Read> read_after(const Trace& trace, const CallSequence& calls, std::size_t at,
                               const Sizes& shape) {
  Read read;
  const auto own_dims = trace.slice_args(calls[at]).text(ArgKey::kInputDims);
  bool is_cut = false, is_taken = false;
  std::vector<double> cuts;  // elements of each
  for (std::size_t i = at + 1; i < calls.size(); ++i) {
    const std::string_view op = trace.name(calls[i]);
    if (op.starts_with(kEvaluateNode)) continue;
    if (op == trace.name(calls[at]) &&
        trace.slice_args(calls[i]).text(ArgKey::kInputDims) == own_dims)
      break;
    const TensorArguments inputs = operator_inputs(trace, calls[i]);
    for (std::size_t k = 0; k < 4; ++k) {
      const auto input = inputs.tensor(k);
      if (!input) continue;
      is_taken = is_taken || (!is_view(op) && !passes_on(op) &&
                              std::find(cuts.begin(), cuts.end(), input->elements()) != cuts.end());
      if (input->dims != shape) continue;
      const auto cut = k == 0 ? cut_of(op, inputs, *input) : std::nullopt;
      if (cut && cut->part < 1) {
        read.part += cut->part;
        read.cut_size = cut->size;
        is_cut = true;
        cuts.push_back(std::round(cut->part * input->elements()));
      } else if (!cut) {
        if (k != 0 || is_cut || (!passes_on(op) && !works_on_each_element(op))) return std::nullopt;
        read.passed_on.push_back(calls[i]);
      }
    }
  }
  // A part that only leaves the step, as a view or a copy, may be read later in other ways.
  if (!is_taken || read.part > kMostRead) return std::nullopt;
  return read;
}

bool has_dimension(const Trace& trace, SliceId op, std::int64_t size) {
  const TensorArguments inputs = operator_inputs(trace, op);
  for (std::size_t k = 0; k < 3; ++k)
    if (const auto tensor = inputs.tensor(k);
        tensor && std::find(tensor->dims.begin(), tensor->dims.end(), size) != tensor->dims.end())
      return true;
  return false;
}

// Operators that make a dimension of frames, windows or pixels.
bool makes_dimension(std::string_view op) {
  return op == "aten::stft" || op == "aten::unfold" || op == "aten::conv1d" ||
         op == "aten::conv2d" || op.starts_with("aten::upsample_");
}

// What leads to the product on tensors with the dimension that is cut, and nothing else: elementwise operators, and the one
// that makes it.
struct LeadUp {
  std::vector<SliceId> calls;
  SliceId maker = kNone<SliceId>;
};
LeadUp calls_before(const Trace& trace, const CallSequence& calls, std::size_t at,
                    std::int64_t cut_size) {
  constexpr std::int64_t kTellingSize = 64;  // smaller ones are equal by chance
  LeadUp before;
  if (cut_size < kTellingSize || !has_dimension(trace, calls[at], cut_size)) return before;
  for (std::size_t i = at; i-- > 0;) {
    const std::string_view op = trace.name(calls[i]);
    const bool has_size = has_dimension(trace, calls[i], cut_size);
    if (makes_dimension(op) && !has_size) {
      before.calls.push_back(calls[i]);
      before.maker = calls[i];
      break;
    }
    if (!has_size) break;
    if (is_view(op)) continue;
    if (!works_on_each_element(op)) break;
    before.calls.push_back(calls[i]);
  }
  return before;
}

bool enlarges(std::string_view op) {
  return op.starts_with("aten::upsample_") || op.starts_with("aten::_upsample_");
}

// The size of what an upsample makes, from its recorded output size or from what its input keeps.
std::optional<Sizes> enlarged_size(const TensorArguments& inputs) {
  const auto input = inputs.tensor(0);
  if (!input || input->rank() < 3) return std::nullopt;
  const auto size = inputs.list(1, input->rank() - 2);
  if (!size) return std::nullopt;
  Sizes made = {input->dims[0], input->dims[1]};
  made.insert(made.end(), size->begin(), size->end());
  return made;
}

// x[rows] at `at`, of the first dimension of x: the part that it keeps, by what the next operator takes.
std::optional<double> kept_by_index(const Trace& trace, const CallSequence& calls, std::size_t at,
                                    const Tensor& input) {
  for (std::size_t i = at + 1; i < calls.size(); ++i) {
    if (trace.name(calls[i]).starts_with(kEvaluateNode)) return std::nullopt;
    const auto next = operator_inputs(trace, calls[i]).tensor(0);
    if (!next) continue;
    if (next->rank() != input.rank() || input.dims[0] <= 0 || next->dims[0] >= input.dims[0] ||
        !std::equal(next->dims.begin() + 1, next->dims.end(), input.dims.begin() + 1))
      return std::nullopt;
    return static_cast<double>(next->dims[0]) / static_cast<double>(input.dims[0]);
  }
  return std::nullopt;
}

// Rows that are enlarged, and of which x[rows] or index_select keeps few.
struct ChosenLate {
  std::vector<SliceId> calls;  // the operator that enlarges, and those on its whole result
  Sizes shape;
  double part = 0;
};
std::optional<ChosenLate> chosen_late(const Trace& trace, const CallSequence& calls,
                                      std::size_t at) {
  if (trace.name(calls[at]) != "aten::index" && trace.name(calls[at]) != "aten::index_select")
    return std::nullopt;
  const TensorArguments cutting = operator_inputs(trace, calls[at]);
  const auto whole = cutting.tensor(0);
  if (!whole || whole->rank() < 3 || whole->elements() < kLeastElements) return std::nullopt;
  const auto cut = cut_of(trace.name(calls[at]), cutting, *whole);
  const auto part = cut ? std::optional(cut->part) : kept_by_index(trace, calls, at, *whole);
  if (!part || *part > kMostRead) return std::nullopt;
  // Back through views and elementwise operators to the one that enlarges.
  ChosenLate found;
  found.part = *part;
  std::size_t first = at;
  while (found.shape.empty()) {
    if (first-- == 0) return std::nullopt;
    const std::string_view op = trace.name(calls[first]);
    const TensorArguments inputs = operator_inputs(trace, calls[first]);
    const auto input = inputs.tensor(0);
    if (enlarges(op)) {
      const auto made = enlarged_size(inputs);
      if (!made || analysis::element_count(*made) != whole->elements()) return std::nullopt;
      found.shape = *made;
    } else if (!input || input->elements() != whole->elements()) {
      if (input && is_view(op)) continue;  // of another tensor
      return std::nullopt;
    } else if (is_view(op)) {
      continue;
    } else if (!passes_on(op) && !works_on_each_element(op)) {
      return std::nullopt;
    }
    found.calls.push_back(calls[first]);
  }
  // Nothing else reads the whole.
  for (std::size_t i = at + 1; i < calls.size(); ++i) {
    if (enlarges(trace.name(calls[i]))) break;
    const TensorArguments inputs = operator_inputs(trace, calls[i]);
    for (std::size_t k = 0; k < 4; ++k)
      if (const auto input = inputs.tensor(k); input && input->elements() == whole->elements())
        return std::nullopt;
  }
  return found;
}

std::optional<UnusedRows> measure_unused_rows(const Facts& facts) {
  const Trace& trace = *facts.trace;
  UnusedRows found;
  double read = 0;
  for (const CallSequence& sequence : call_sequences(facts))
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      const SliceId id = sequence[i];
      if (const auto late = chosen_late(trace, sequence, i)) {
        const SliceId enlarged = late->calls.back();
        for (const SliceId op : late->calls) found.calls.insert(raw(op));
        read += late->part * static_cast<double>(trace.dur_ns(enlarged));
        found.unread_ns += static_cast<double>(trace.dur_ns(enlarged));
        if (found.longest == kNone<SliceId> ||
            trace.dur_ns(found.longest) < trace.dur_ns(enlarged)) {
          found.longest = enlarged;
          found.shape = late->shape;
          found.read = late->part;
          found.maker = kNone<SliceId>;
          found.is_enlarged = true;
        }
        continue;
      }
      if (maker_kind(trace.name(id)) != MakerKind::kProduct) continue;
      const auto shape = made_size(trace.name(id), operator_inputs(trace, id));
      if (!shape) continue;
      double elements = 1;
      for (const std::int64_t size : *shape) elements *= static_cast<double>(size);
      if (elements < kLeastElements) continue;
      const auto after = read_after(trace, sequence, i, *shape);
      if (!after) continue;
      found.calls.insert(raw(id));
      for (const SliceId op : after->passed_on) found.calls.insert(raw(op));
      const LeadUp before = calls_before(trace, sequence, i, after->cut_size);
      for (const SliceId op : before.calls) found.calls.insert(raw(op));
      read += after->part * static_cast<double>(trace.dur_ns(id));
      found.unread_ns += static_cast<double>(trace.dur_ns(id));
      if (found.longest != kNone<SliceId> && trace.dur_ns(found.longest) >= trace.dur_ns(id))
        continue;
      found.longest = id;
      found.shape = *shape;
      found.read = after->part;
      found.maker = before.maker;
      found.is_enlarged = false;
    }
  if (found.calls.empty()) return std::nullopt;
  // Without the unread rows, the cost falls by their share of the result.
  const double unread = found.unread_ns > 0 ? 1 - read / found.unread_ns : 0;
  found.cost_ns =
      static_cast<std::int64_t>(unread * static_cast<double>(cost_of_calls(facts, found.calls)));
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastUnusedRowsShare) return std::nullopt;
  return found;
}

Finding tell_unused_rows(const Facts& facts, const UnusedRows& found) {
  Finding finding;
  const Value read = ratio(static_cast<std::int64_t>(found.read * 1e6), 1'000'000);
  finding.verdict =
      say(facts, "Of the result of {}, {}, only {} is read: {} [per step] ({}) go into the rest.",
          {name(facts.trace->name(found.longest)), text(shape_text(found.shape)), read,
           ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(say(
      "counted: products whose result no operator of the step takes as a whole, only aten::select, "
      "aten::slice and aten::index_select, which keep a quarter of it or less for an operator "
      "after them; copies and elementwise operators between, and those before that have the same "
      "dimension; and aten::upsample_*, if aten::index or aten::index_select keeps a quarter of "
      "its rows or less and nothing else reads them; by shapes, on the same thread"));
  finding.evidence.push_back(
      called_at(facts, found.longest, say("the longest of these operators")));
  finding.try_next = {
      "select the rows before the product, not after it: head(h[:, -1]) instead of head(h)[:, -1]",
      "where the columns are cut, multiply by that part of the weight"};
  for (const char* covered :
       {"hotspot-kernel", "no-roof", "memory-roof", "inflated-tensor", "unfused-chain"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say("Of the result of {}, {}, only {} is read",
          {name(facts.trace->name(found.longest)), text(shape_text(found.shape)), read});
  if (found.is_enlarged) {
    finding.try_next = {
        "choose the rows first, then enlarge: resize(masks[chosen]) instead of "
        "resize(masks)[chosen]"};
    finding.action = say("Choose the rows first, then enlarge: index the input of {}",
                         {name(facts.trace->name(found.longest))});
    return finding;
  }
  finding.action =
      found.maker == kNone<SliceId>
          ? say("Select the rows before the product: head(h[:, -1]), not head(h)[:, -1]")
          : say("Let {} make only what is kept: a longer hop or stride, or cut its input",
                {name(facts.trace->name(found.maker))});
  return finding;
}

}  // namespace

extern constinit const Rule unused_rows_rule = {
    .id = "unused-rows",
    .question = "is only a small part of a matrix product or of an enlarged image read?",
    .meant_by = "logits head positions select slice unused computed",
    .order = 498,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_unused_rows, tell_unused_rows>,
};

}  // namespace lanescope::explain::rules
