// Every element of one tensor is combined with every element of another by broadcasting. What is written, and what reads
// it, grows with the product of both sizes.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/calls_with_work.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/products.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/step_state.h"

namespace lanescope::explain::rules {

using analysis::shape_text;
using analysis::Sizes;
using analysis::Tensor;
using analysis::TensorArguments;

namespace {

constexpr double kLeastAllPairsShare = 0.08;
constexpr double kLeastPairGrowth = 16;  // times the larger input
constexpr double kLeastPairs = 1e6;

enum class PairKind : std::uint8_t { kCompare, kSubtract, kProduct, kOther };

std::optional<PairKind> pair_kind(std::string_view op) {
  static constexpr std::array<std::string_view, 6> kComparisons = {
      "aten::gt", "aten::lt", "aten::ge", "aten::le", "aten::eq", "aten::ne"};
  // Sums of these over one side may be a matrix product, or a product of sums.
  static constexpr std::array<std::string_view, 3> kProducts = {"aten::add", "aten::mul",
                                                                "aten::div"};
  static constexpr std::array<std::string_view, 6> kOthers = {
      "aten::maximum",     "aten::minimum",     "aten::pow",
      "aten::bitwise_and", "aten::logical_and", "aten::bitwise_xor"};
  if (std::find(kComparisons.begin(), kComparisons.end(), op) != kComparisons.end())
    return PairKind::kCompare;
  if (op == "aten::sub" || op == "aten::rsub") return PairKind::kSubtract;
  if (std::find(kProducts.begin(), kProducts.end(), op) != kProducts.end())
    return PairKind::kProduct;
  if (std::find(kOthers.begin(), kOthers.end(), op) != kOthers.end()) return PairKind::kOther;
  return std::nullopt;
}

// The shape of the result, if it has many more elements than either input; none: no pairs.
std::optional<Sizes> pairs_of(const TensorArguments& inputs) {
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  if (!a || !b) return std::nullopt;
  auto shape = analysis::broadcast(a->dims, b->dims);
  if (!shape) return std::nullopt;
  const double elements = analysis::element_count(*shape);
  if (elements < kLeastPairs ||
      elements < kLeastPairGrowth * std::max(a->elements(), b->elements()))
    return std::nullopt;
  return shape;
}

// Attention that takes the pairs as a mask, and products: their time is that of their own work.
bool has_work_of_its_own(std::string_view op) {
  return op.find("attention") != op.npos || is_product(op);
}

// A maximum is no sum: neither a sum of each side nor a product of matrices makes it.
bool takes_extremes(std::string_view op) {
  static constexpr std::array<std::string_view, 9> kExtremes = {
      "aten::amax",   "aten::amin",   "aten::max",  "aten::min",     "aten::aminmax",
      "aten::argmax", "aten::argmin", "aten::topk", "aten::kthvalue"};
  return std::find(kExtremes.begin(), kExtremes.end(), op) != kExtremes.end();
}

bool takes_shape(const TensorArguments& inputs, const Sizes& shape) {
  for (std::size_t i = 0; i < 4; ++i)
    if (const auto tensor = inputs.tensor(i); tensor && tensor->dims == shape) return true;
  return false;
}

// A mask of pairs, as a comparison makes it, decides what is kept of a tensor of that shape.
bool is_masked_by(std::string_view op, const TensorArguments& inputs, const Sizes& mask) {
  static constexpr std::array<std::string_view, 7> kMasking = {
      "aten::mul",          "aten::mul_",        "aten::where",      "aten::masked_fill",
      "aten::masked_fill_", "aten::logical_and", "aten::bitwise_and"};
  if (std::find(kMasking.begin(), kMasking.end(), op) == kMasking.end()) return false;
  bool has_mask = false, has_other = false;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto tensor = inputs.tensor(i);
    if (!tensor || tensor->dims != mask) continue;
    (tensor->type->torch == "bool" && !has_mask ? has_mask : has_other) = true;
  }
  return has_mask && has_other;
}

// A matrix product, written so: broadcast-product tells more of it.
bool is_summed_product(const Trace& trace, const CallSequence& calls, std::size_t at) {
  if (trace.name(calls[at]) != "aten::mul") return false;
  for (std::size_t i = at + 1; i < calls.size(); ++i)
    if (!is_view(trace.name(calls[i]))) return trace.name(calls[i]) == "aten::sum";
  return false;
}

// What becomes of differences, [.., n, m, coordinates]: one number for each pair, as a distance has, and nothing else.
enum class DifferenceUse : std::uint8_t { kOpen, kPowers, kDistances, kOther };

// After another reader of the differences. Powers and absolute values come before a sum, a norm takes them itself.
DifferenceUse after_reader(DifferenceUse before, std::string_view op, const TensorArguments& inputs,
                           const Sizes& shape) {
  static constexpr std::array<std::string_view, 7> kPowers = {
      "aten::pow", "aten::pow_", "aten::square", "aten::square_",
      "aten::abs", "aten::abs_", "aten::mul"};
  static constexpr std::array<std::string_view, 3> kSums = {"aten::sum", "aten::mean",
                                                            "aten::nansum"};
  static constexpr std::array<std::string_view, 3> kNorms = {
      "aten::norm", "aten::linalg_vector_norm", "aten::linalg_norm"};
  const auto is_one_of = [op](const auto& names) {
    return std::find(names.begin(), names.end(), op) != names.end();
  };
  if (before == DifferenceUse::kOther) return before;
  if (op == "aten::to" || op == "aten::_to_copy" || op == "aten::contiguous") return before;
  const bool is_norm = is_one_of(kNorms);
  if (is_norm || is_one_of(kSums)) {
    const bool has_powers = before == DifferenceUse::kPowers || before == DifferenceUse::kDistances;
    const std::vector<double> over = inputs.numbers(is_norm ? 2 : 1);
    const bool is_last =
        over.size() == 1 && (over[0] == -1 || over[0] == static_cast<double>(shape.size()) - 1);
    return is_last && (is_norm || has_powers) ? DifferenceUse::kDistances : DifferenceUse::kOther;
  }
  if (!is_one_of(kPowers)) return DifferenceUse::kOther;
  const auto factor = inputs.tensor(1);
  if (op == "aten::mul" && (!factor || factor->dims != shape)) return DifferenceUse::kOther;
  return before == DifferenceUse::kOpen ? DifferenceUse::kPowers : before;
}

// Compares with a number, as with a cutoff.
bool compares_with_number(std::string_view op, const TensorArguments& inputs) {
  static constexpr std::array<std::string_view, 4> kLimits = {"aten::lt", "aten::le", "aten::gt",
                                                              "aten::ge"};
  const auto other = inputs.tensor(1);
  return std::find(kLimits.begin(), kLimits.end(), op) != kLimits.end() &&
         (!other || other->elements() == 1);
}

struct AllPairs {
  std::unordered_set<std::uint32_t> calls;  // that write or read the pairs
  std::uint64_t made = 0;                   // calls that make them
  std::int64_t cost_ns = 0;
  // If the GPU mostly waits for the CPU: for how long the work of these calls is the critical path.
  std::optional<std::int64_t> path_ns;
  SliceId largest = kNone<SliceId>;  // that makes most pairs
  PairKind kind = PairKind::kOther;
  double elements = 0;
  std::string left, right;        // shapes
  Sizes shape;                    // of the pairs
  std::vector<Sizes> masks;       // equality decides which pairs are kept
  bool is_for_attention = false;  // attention takes pairs as its mask
  bool has_largest_of = false;    // of the pairs only the largest or smallest are kept
  DifferenceUse differences = DifferenceUse::kOpen;  // of the largest pairs
  SliceId cutoff = kNone<SliceId>;  // compares what is left of them with a number; its result masks
  std::unordered_set<std::uint32_t> of_pairs;  // calls that take one number for each pair
  // The pairs, or what becomes of their coordinates, are kept where two numbers are equal: those of one group.
  bool is_masked_by_group() const {
    return std::any_of(masks.begin(), masks.end(), [&](const Sizes& mask) {
      return mask.size() <= shape.size() && std::equal(mask.begin(), mask.end(), shape.begin());
    });
  }
};

void take_pairs(const Trace& trace, SliceId op, PairKind kind, const Sizes& shape,
                AllPairs& found) {
  ++found.made;
  found.calls.insert(raw(op));
  const double elements = analysis::element_count(shape);
  if (elements <= found.elements) return;
  const TensorArguments inputs = operator_inputs(trace, op);
  found.largest = op;
  found.kind = kind;
  found.elements = elements;
  found.left = shape_text(inputs.tensor(0)->dims);
  found.right = shape_text(inputs.tensor(1)->dims);
  found.shape = shape;
  found.differences = DifferenceUse::kOpen;
}

// Follows what one thread makes of coordinates of pairs, [n, m, coordinates]: one number for each pair, [n, m], then a comparison of
// these with a number, whose result decides which are kept.
class PairsUnderLimit {
 public:
  PairsUnderLimit(const Trace& trace, AllPairs& found) : trace_(trace), found_(found) {}

  void begin(PairKind kind, const Sizes& shape) {
    pairs_.clear();
    limit_ = kNone<SliceId>;
    if (kind == PairKind::kSubtract && shape.size() >= kLeastRank &&
        shape.back() <= kMostCoordinates)
      pairs_.assign(shape.begin(), shape.end() - 1);
  }
  void meet(SliceId op, const TensorArguments& inputs) {
    const std::string_view label = trace_.name(op);
    if (pairs_.empty() || is_view(label) || has_work_of_its_own(label) ||
        !takes_shape(inputs, pairs_))
      return;
    found_.of_pairs.insert(raw(op));
    if (limit_ != kNone<SliceId> && is_masked_by(label, inputs, pairs_)) found_.cutoff = limit_;
    if (compares_with_number(label, inputs)) limit_ = op;
  }

 private:
  static constexpr std::size_t kLeastRank = 3;
  static constexpr std::int64_t kMostCoordinates = 4;  // of a point; cells of more are mostly empty
  const Trace& trace_;
  AllPairs& found_;
  Sizes pairs_;  // empty: none
  SliceId limit_ = kNone<SliceId>;
};

void measure_sequence(const Trace& trace, const CallSequence& sequence, AllPairs& found) {
  std::optional<Sizes> pairs;  // the last that were made
  std::optional<Sizes> equal;  // the last of them by aten::eq
  bool are_largest = false;    // the last that were made
  PairsUnderLimit under_limit(trace, found);
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    const SliceId op = sequence[i];
    const auto kind = pair_kind(trace.name(op));
    if (!pairs && !kind) continue;  // it makes none, and there are none yet
    const TensorArguments inputs = operator_inputs(trace, op);
    if (equal && is_masked_by(trace.name(op), inputs, *equal)) found.masks.push_back(*equal);
    if (kind && !is_summed_product(trace, sequence, i))
      if (auto shape = pairs_of(inputs)) {
        take_pairs(trace, op, *kind, *shape, found);
        are_largest = found.shape == *shape && found.kind == *kind;
        if (trace.name(op) == "aten::eq") equal = shape;
        under_limit.begin(*kind, *shape);
        pairs = std::move(shape);
        continue;
      }
    under_limit.meet(op, inputs);
    if (!pairs || is_view(trace.name(op)) || !takes_shape(inputs, *pairs)) continue;
    found.is_for_attention =
        found.is_for_attention || trace.name(op).find("attention") != std::string_view::npos;
    found.has_largest_of = found.has_largest_of || takes_extremes(trace.name(op));
    if (are_largest)
      found.differences = after_reader(found.differences, trace.name(op), inputs, *pairs);
    if (!has_work_of_its_own(trace.name(op))) found.calls.insert(raw(op));
  }
}

std::optional<AllPairs> measure_all_pairs(const Facts& facts) {
  AllPairs found;
  for (const CallSequence& sequence : call_sequences(facts))
    measure_sequence(*facts.trace, sequence, found);
  if (found.calls.empty()) return std::nullopt;
  // A list of near pairs spares what works on one number for each pair, too.
  if (found.cutoff != kNone<SliceId>)
    found.calls.insert(found.of_pairs.begin(), found.of_pairs.end());
  found.cost_ns = cost_of_calls(facts, found.calls);
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastAllPairsShare) return std::nullopt;
  if (facts.main_device && is_host_bound(facts))
    found.path_ns = on_path_ns(facts, work_in_calls(facts, found.calls));
  return found;
}

constexpr char kByGroup[] =
    "Make only the pairs of one group: a dimension for the groups, or sort and go group by group";

constexpr char kOfExtremes[] =
    "If only near pairs matter: make those alone, in a window or group; else torch.compile what "
    "makes and reduces them";

constexpr char kForAttention[] =
    "Attention without a mask in memory: flex_attention, or packed lengths (varlen); make it once "
    "for all layers";

constexpr char kUnderLimit[] =
    "If few pairs lie within the limit: a list of near pairs (cells), renewed every few steps; "
    "else "
    "torch.compile";

constexpr char kOfDifferences[] =
    "Go through blocks of rows, or torch.compile what makes and reads them";

const char* pair_action(const AllPairs& found) {
  switch (found.kind) {
    case PairKind::kCompare:
      return "To count or find: sort one side, then torch.searchsorted or bucketize; or torch.isin";
    case PairKind::kSubtract:
      if (found.differences == DifferenceUse::kOther) return kOfDifferences;
      return "Distances: torch.cdist, or |a|^2 + |b|^2 - 2 a @ b.T; else go through blocks of rows";
    case PairKind::kProduct:
      return "Sum first, or use a matrix product, where it gives the same; else go through blocks";
    case PairKind::kOther:
      return "If only some pairs count: pair within groups; else torch.compile it";
  }
  return "";
}

// The GPU waits for the CPU. Work that is the critical path is a cost all the same: the CPU waits for it in its turn.
void rate_on_path(const Facts& facts, std::int64_t path_ns, Finding& finding) {
  if (share_of(path_ns, facts.steady_wall_ns()) < kLeastAllPairsShare) {
    finding.kind = FindingKind::kWhere;
    finding.arithmetic.push_back(
        say("the GPU mostly waits for the CPU: fewer pairs alone save hardly any of that time"));
    return;
  }
  finding.at_stake_ns = facts.per_step(path_ns);
  finding.at_stake_ratio = share_of(path_ns, facts.steady_wall_ns());
  finding.arithmetic.push_back(only_on_path(facts, path_ns));
}

Finding tell_all_pairs(const Facts& facts, const AllPairs& found) {
  const std::string_view op = facts.trace->name(found.largest);
  Finding finding;
  finding.verdict = say(
      facts,
      "Every element of one tensor meets every element of another: {} makes {} pairs of {} and {}; "
      "calls that write or read such pairs take {} [per step] ({}).",
      {name(op), count(static_cast<std::uint64_t>(found.elements)), text(found.left),
       text(found.right), ns(facts.per_step(found.cost_ns)),
       ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  if (found.path_ns) rate_on_path(facts, *found.path_ns, finding);
  finding.arithmetic.push_back(
      say("counted: elementwise calls whose result has a million elements and 16 times as many as "
          "either input, and the calls after them on the same thread that take a tensor of that "
          "shape; by recorded shapes"));
  Sentence line = say("the largest of them");
  add_line(facts, found.largest, line);
  finding.evidence.push_back({found.largest, std::move(line)});
  const bool by_group = found.is_masked_by_group();
  if (by_group)
    finding.arithmetic.push_back(
        say("aten::eq compares all pairs of two lists of numbers, and its result masks the pairs: "
            "only those with equal numbers, such as that of their picture, are kept"));
  const bool is_under_limit = found.cutoff != kNone<SliceId>;
  if (is_under_limit) {
    finding.arithmetic.push_back(
        say("{} compares one number for each pair with a limit, and its result decides which are "
            "kept; calls on one number for each pair count, too",
            {name(facts.trace->name(found.cutoff))}));
    finding.evidence.push_back(called_at(facts, found.cutoff, say("the limit")));
  }
  const char* const advice = found.is_for_attention ? kForAttention
                             : by_group             ? kByGroup
                             : is_under_limit       ? kUnderLimit
                             : found.has_largest_of && found.kind == PairKind::kProduct
                                 ? kOfExtremes
                                 : pair_action(found);
  finding.try_next = {advice,
                      "torch.compile on the function that makes and reduces the pairs never writes "
                      "them to memory"};
  for (const char* covered : {"hotspot-kernel", "memory-roof", "no-roof", "inflated-tensor"})
    finding.explains.push_back({covered, facts.per_step(found.cost_ns)});
  finding.brief = say("{} makes all {} pairs of {} and {}",
                      {name(op), count(static_cast<std::uint64_t>(found.elements)),
                       text(found.left), text(found.right)});
  if (found.is_for_attention)
    finding.brief.pattern += ", as a mask of attention";
  else if (by_group)
    finding.brief.pattern += ", and keeps those of one group";
  else if (is_under_limit)
    append(finding.brief,
           say(", and a limit ({}) masks them", {name(facts.trace->name(found.cutoff))}));
  finding.action = say(advice);
  return finding;
}

}  // namespace

extern constinit const Rule all_pairs_rule = {
    .id = "all-pairs",
    .question = "does an operator combine every element with every other?",
    .meant_by = "broadcast pairs quadratic distance compare outer",
    .order = 493,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_all_pairs, tell_all_pairs>,
};

}  // namespace lanescope::explain::rules
