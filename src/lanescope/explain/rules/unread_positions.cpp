// A product, such as the head of a language model, and what follows it (log_softmax, gather, sums) work on all positions of a
// text, and slices then keep few of the positions. Nothing else reads the others.
//
// Problem: the result of the product itself is never cut, only what is computed from it, position by position. Idea: from a
// product on, follow the shapes of what is made from its result, as long as each position of it depends on the same position
// before. A reader that joins positions, or whose result is unknown, ends it. Example: [16, 511, 50304] -> log_softmax -> gather
// -> [16, 511] -> slice -> [16, 128].
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/tensor_sizes.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::Tensor;
using analysis::TensorArguments;

namespace {

constexpr double kLeastUnreadPositions = 0.05;  // of a steady step
constexpr double kMostPositionsKept = 0.75;     // more only shifts or trims them
constexpr double kLeastPositionElements = 1e6;  // of the product's result
constexpr std::int64_t kFewestPositions = 16;   // a smaller size equals another one by chance
constexpr std::size_t kMostPositionInputs = 5;  // of a call that are looked at

template <std::size_t count>
bool is_among(const std::array<std::string_view, count>& names, std::string_view op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool copies_or_casts(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kCopies = {
      "aten::to", "aten::_to_copy", "aten::contiguous", "aten::clone", "aten::detach"};
  return is_among(kCopies, op);
}

bool reduces_last(std::string_view op) {
  static constexpr std::array<std::string_view, 8> kReducing = {
      "aten::sum", "aten::mean", "aten::amax",   "aten::amin",
      "aten::max", "aten::min",  "aten::argmax", "aten::logsumexp"};
  return is_among(kReducing, op);
}

bool is_softmax_of_rows(std::string_view op) {
  return op == "aten::softmax" || op == "aten::log_softmax" || op == "aten::_softmax" ||
         op == "aten::_log_softmax";
}

// The dimension that argument `index` gives, alone or as the only one of a list.
std::optional<std::size_t> only_dimension(const TensorArguments& inputs, std::size_t index,
                                          std::size_t rank) {
  std::optional<double> at;
  if (const auto value = inputs.value(index); value && value->integer)
    at = static_cast<double>(*value->integer);
  else if (const auto list = inputs.numbers(index); list.size() == 1)
    at = list.front();
  if (!at) return std::nullopt;
  if (*at < 0) *at += static_cast<double>(rank);
  if (*at < 0 || *at >= static_cast<double>(rank)) return std::nullopt;
  return static_cast<std::size_t>(*at);
}

struct CutPositions {
  SliceId product = kNone<SliceId>, cut = kNone<SliceId>;
  std::int64_t positions = 0, kept = 0, classes = 0;
  std::vector<SliceId> calls;      // from the product to the cuts
  bool goes_through_rows = false;  // a call between reads a whole row: softmax, gather, a sum
};

enum class Position : std::uint8_t {
  kOther,    // reads none of them
  kFollows,  // each position of its result depends on that position alone
  kCut,      // keeps few of them
  kReader    // may need all of them
};

// What is made of a product's result, by shapes.
class PositionsAfter {
 public:
  PositionsAfter(const Trace& trace, Sizes made, CutPositions& found)
      : trace_(trace), found_(found), axis_(made.size() - 2) {
    found_.positions = made[axis_];
    found_.classes = made.back();
    whole_.push_back(std::move(made));
  }

  Position meet(SliceId op) {
    const std::string_view label = trace_.name(op);
    const TensorArguments inputs = operator_inputs(trace_, op);
    const Tensor* own = nullptr;
    std::size_t at = 0;
    for (std::size_t k = 0; k < kMostPositionInputs && !own; ++k)
      if (const auto* tensor = inputs.tensor(k); tensor && is_whole(tensor->dims)) {
        own = tensor;
        at = k;
      }
    if (!own) {
      reads_kept_ = reads_kept_ || (!is_view(label) && takes_kept(inputs));
      return Position::kOther;
    }
    const bool each = copies_or_casts(label) || works_on_each_element(label);
    if (at != 0 && !each) return Position::kReader;
    const Position position = each                     ? after_each(label, inputs, *own)
                              : label == "aten::slice" ? after_slice(inputs, *own)
                              : is_view(label)         ? after_view(label, inputs, *own)
                                                       : after_row(label, inputs, *own);
    if (position == Position::kReader) return position;
    found_.calls.push_back(op);
    if (position == Position::kCut) found_.cut = op;
    return position;
  }
  // An operator takes what was kept: a part that only leaves the step may be read with the rest.
  bool reads_kept() const { return reads_kept_; }

 private:
  bool is_whole(const Sizes& dims) const {
    return std::find(whole_.begin(), whole_.end(), dims) != whole_.end();
  }
  bool takes_kept(const TensorArguments& inputs) const {
    for (std::size_t k = 0; k < kMostPositionInputs; ++k)
      if (const auto* tensor = inputs.tensor(k);
          tensor && std::find(kept_.begin(), kept_.end(), tensor->dims) != kept_.end())
        return true;
    return false;
  }
  Position follow(Sizes made) {
    if (!is_whole(made)) whole_.push_back(std::move(made));
    return Position::kFollows;
  }

  Position after_each(std::string_view label, const TensorArguments& inputs, const Tensor& own) {
    auto made = copies_or_casts(label) ? std::optional(own.dims) : made_size(label, inputs);
    if (!made) made = own.dims;
    if (made->size() != own.rank() || (*made)[axis_] != own.dims[axis_]) return Position::kReader;
    return follow(*std::move(made));
  }

  Position after_slice(const TensorArguments& inputs, const Tensor& own) {
    const auto taken = taken_of("aten::slice", inputs, 0);
    const auto dim = only_dimension(inputs, 1, own.rank());
    if (!taken || !dim || own.elements() <= 0) return Position::kReader;
    Sizes made = own.dims;
    made[*dim] = static_cast<std::int64_t>(
        taken->elements / own.elements() * static_cast<double>(own.dims[*dim]) + 0.5);
    const auto before = static_cast<double>(own.dims[*dim]);
    if (*dim != axis_ || static_cast<double>(made[*dim]) > kMostPositionsKept * before)
      return follow(std::move(made));
    found_.positions = own.dims[axis_];
    found_.kept = std::max(found_.kept, made[axis_]);
    kept_.push_back(std::move(made));
    return Position::kCut;
  }

  Position after_view(std::string_view label, const TensorArguments& inputs, const Tensor& own) {
    Sizes made = own.dims;
    if (label == "aten::squeeze") {
      const auto dim = only_dimension(inputs, 1, own.rank());
      if (dim != own.rank() - 1 || *dim <= axis_ || made.back() != 1) return Position::kReader;
      made.pop_back();
      return follow(std::move(made));
    }
    if (label != "aten::unsqueeze" || only_dimension(inputs, 1, own.rank() + 1) != own.rank())
      return label == "aten::alias" ? Position::kFollows : Position::kReader;
    made.push_back(1);
    return follow(std::move(made));
  }

  Position after_row(std::string_view label, const TensorArguments& inputs, const Tensor& own) {
    const std::size_t last = own.rank() - 1;
    if (last <= axis_ || only_dimension(inputs, 1, own.rank()) != last) return Position::kReader;
    if (is_softmax_of_rows(label)) {
      found_.goes_through_rows = true;
      return Position::kFollows;
    }
    if (label == "aten::gather") {
      const auto* index = inputs.tensor(2);
      if (!index || index->rank() != own.rank() || index->dims[axis_] != own.dims[axis_])
        return Position::kReader;
      found_.goes_through_rows = true;
      return follow(index->dims);
    }
    if (!reduces_last(label)) return Position::kReader;
    found_.goes_through_rows = true;
    Sizes made = own.dims;
    made.back() = 1;  // with keepdim
    follow(made);
    made.pop_back();
    return follow(std::move(made));
  }

  const Trace& trace_;
  CutPositions& found_;
  std::size_t axis_;
  std::vector<Sizes> whole_, kept_;  // shapes of all positions, and of those that were kept
  bool reads_kept_ = false;
};

std::optional<CutPositions> positions_after(const Trace& trace, const CallSequence& calls,
                                            std::size_t at) {
  if (maker_kind(trace.name(calls[at])) != MakerKind::kProduct) return std::nullopt;
  auto made = made_size(trace.name(calls[at]), operator_inputs(trace, calls[at]));
  if (!made || made->size() < 3 || analysis::element_count(*made) < kLeastPositionElements ||
      (*made)[made->size() - 2] < kFewestPositions)
    return std::nullopt;
  CutPositions found;
  found.product = calls[at];
  found.calls.push_back(calls[at]);
  PositionsAfter after(trace, *std::move(made), found);
  for (std::size_t i = at + 1; i < calls.size(); ++i) {
    if (trace.name(calls[i]).starts_with(kEvaluateNode)) break;
    if (after.meet(calls[i]) == Position::kReader) return std::nullopt;
  }
  // A cut of the product's own result belongs to unused-rows.
  if (found.cut == kNone<SliceId> || found.kept <= 0 || !found.goes_through_rows ||
      !after.reads_kept())
    return std::nullopt;
  return found;
}

struct UnreadPositions {
  CutPositions first;
  std::unordered_set<std::uint32_t> calls;  // with their nodes of the backward pass
  std::uint64_t forward_calls = 0;
  std::int64_t whole_ns = 0, cost_ns = 0;
  // GPU work of the slices' nodes, of elementwise calls, and of copies.
  std::int64_t slices_ns = 0, chains_ns = 0, copies_ns = 0;
};

// How long the GPU works in those of the calls that have an operator around the launch whose name fits.
template <typename Fits>
std::int64_t work_in(const Facts& facts, const std::unordered_set<std::uint32_t>& calls,
                     Fits fits) {
  std::int64_t time_ns = 0;
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    bool is_fit = false;
    SliceId op = facts.links.op_of[raw(work->slice)];
    for (; op != kNone<SliceId>; op = facts.nesting.parent[raw(op)]) {
      is_fit = is_fit || fits(facts.trace->name(op));
      if (calls.contains(raw(op))) break;
    }
    if (op != kNone<SliceId> && is_fit) time_ns += work->end_ns - work->start_ns;
  }
  return time_ns;
}

std::optional<UnreadPositions> measure_unread_positions(const Facts& facts) {
  const Trace& trace = *facts.trace;
  UnreadPositions found;
  double unread = 1;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto cut = positions_after(trace, calls, i);
      if (!cut) continue;
      for (const SliceId call : cut->calls) found.calls.insert(raw(call));
      unread = std::min(unread,
                        1 - static_cast<double>(cut->kept) / static_cast<double>(cut->positions));
      if (found.first.product == kNone<SliceId>) found.first = *std::move(cut);
    }
  if (found.calls.empty()) return std::nullopt;
  found.forward_calls = found.calls.size();
  found.calls = with_backward_nodes(facts, std::move(found.calls));
  found.whole_ns = cost_of_calls(facts, found.calls);
  found.cost_ns = static_cast<std::int64_t>(static_cast<double>(found.whole_ns) * unread);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastUnreadPositions) return std::nullopt;
  found.slices_ns = work_in(facts, found.calls,
                            [](std::string_view op) { return op.ends_with("SliceBackward0"); });
  found.chains_ns =
      work_in(facts, found.calls, [](std::string_view op) { return works_on_each_element(op); });
  found.copies_ns = work_in(facts, found.calls, [](std::string_view op) {
    return op == "aten::contiguous" || op == "aten::clone";
  });
  return found;
}

Finding tell_unread_positions(const Facts& facts, const UnreadPositions& found) {
  const CutPositions& first = found.first;
  const Value positions = count(static_cast<std::uint64_t>(first.positions)),
              kept = count(static_cast<std::uint64_t>(first.kept)),
              classes = count(static_cast<std::uint64_t>(first.classes));
  const Value product = name(facts.trace->name(first.product));
  Finding finding;
  finding.verdict =
      say(facts,
          "{} and what follows it work on {} positions of {} numbers, slices then keep {} of the "
          "positions, and nothing else reads the others. These calls take {} [per step] ({}), "
          "their backward pass included.",
          {product, positions, classes, kept, ns(facts.per_step(found.whole_ns)),
           ratio(found.whole_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.forward_calls, finding);
  finding.arithmetic.push_back(
      say("{} x the share of positions that is not kept, {} of {}",
          {ns(facts.per_step(found.whole_ns)),
           count(static_cast<std::uint64_t>(first.positions - first.kept)), positions}));
  finding.arithmetic.push_back(say(
      "counted: the product, and the calls after it on the thread that take a tensor made from its "
      "result, as long as each position depends on that position alone: elementwise calls, "
      "softmax, gather and sums over the last dimension; by recorded shapes"));
  finding.evidence.push_back(called_at(facts, first.product, say("the product")));
  finding.evidence.push_back(called_at(facts, first.cut, say("a slice that keeps few positions")));
  finding.try_next = {
      "slice before the product: head(h[:, -n:]) instead of f(head(h))[:, -n:]; for the words that "
      "follow each position head(h[:, -n - 1:-1])",
      "if the program keeps the other positions for later, no change is needed"};
  for (const char* covered :
       {"hotspot-kernel", "no-roof", "memory-roof", "inflated-tensor", "logits-loss"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.explains.push_back({"slow-backward", facts.per_step(found.slices_ns)});
  finding.explains.push_back({"unfused-chain", facts.per_step(found.chains_ns)});
  finding.explains.push_back({"layout-copies", facts.per_step(found.copies_ns)});
  finding.brief = say("{} and what follows it work on {} positions of {} numbers; slices keep {}",
                      {product, positions, classes, kept});
  finding.action = say("Slice before the product: head(h[:, -n:]), not f(head(h))[:, -n:]");
  return finding;
}

}  // namespace

extern constinit const Rule unread_positions_rule = {
    .id = "unread-positions",
    .question = "does a product work on positions that a later slice leaves out?",
    .meant_by = "logits head positions completion prompt slice log_softmax unread",
    .order = 483,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_unread_positions, tell_unread_positions>,
};

}  // namespace lanescope::explain::rules
