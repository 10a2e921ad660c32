// A layer multiplies rows that were gathered from a much smaller table: the same rows are multiplied again and again.
//
// Problem: y = linear(cat(x[near] - x, x)) multiplies each row of x once for each neighbour. Idea: a product is linear, so it may go
// before the lookup: linear(x)[near]. Between the lookup and the product may only be what is linear, too: views, copies, sums,
// differences and cat, for which the weight is split. Example: 32,768 points with 20 neighbours each: 655,360 rows of 128 numbers times
// 128 x 128; instead 32,768 rows of 64 numbers times 64 x 256, and a lookup of the results.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/needs.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/operator_results.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::Tensor;

namespace {

constexpr double kLeastGatheredShare = 0.03;
constexpr double kFewestTimesGathered =
    4;  // how often a row of the table is multiplied, on average
constexpr double kFewestGatheredRows = 4096;
constexpr std::size_t kMostCallsToLookup = 24;

// A product of rows with a weight.
struct RowProduct {
  double rows = 0, from = 0, to = 0;  // numbers of a row before and after
};

std::optional<RowProduct> row_product(const Trace& trace, SliceId op) {
  const std::string_view name = trace.name(op);
  const bool is_convolution = name == "aten::conv1d" || name == "aten::conv2d";
  if (name != "aten::linear" && name != "aten::matmul" && !is_convolution) return std::nullopt;
  const auto inputs = operator_inputs(trace, op);
  const auto data = inputs.tensor(0), weight = inputs.tensor(1);
  if (!data || !weight || data->rank() < 2 || weight->rank() < 2) return std::nullopt;
  // A kernel of one point: each row by itself.
  for (std::size_t k = 2; k < weight->rank(); ++k)
    if (weight->dims[k] != 1) return std::nullopt;
  if (weight->rank() > 2 && !is_convolution) return std::nullopt;
  const bool is_turned = name == "aten::matmul";  // [from, to]
  const auto from = static_cast<double>(weight->dims[is_turned ? 0 : 1]),
             to = static_cast<double>(weight->dims[is_turned ? 1 : 0]);
  const std::int64_t own = is_convolution ? data->dims[1] : data->dims.back();
  if (from < 1 || static_cast<double>(own) != from) return std::nullopt;
  return RowProduct{data->elements() / from, from, to};
}

// What may stay between a lookup and a product that goes before it: f(a + b) = f(a) + f(b).
bool is_linear_on_rows(std::string_view op) {
  constexpr std::array<std::string_view, 10> kLinear = {
      "aten::cat",   "aten::sub",    "aten::add",    "aten::neg", "aten::contiguous",
      "aten::clone", "aten::concat", "aten::detach", "aten::to",  "aten::concatenate"};
  return is_view(op) || std::find(kLinear.begin(), kLinear.end(), op) != kLinear.end();
}

// The table of a lookup of whole rows, or the rows that repeat() and expand() write several times.
std::optional<Tensor> table_of(const Trace& trace, SliceId op) {
  constexpr std::array<std::string_view, 6> kSpreading = {
      "aten::index",  "aten::index_select", "aten::gather",
      "aten::repeat", "aten::expand",       "aten::repeat_interleave"};
  if (std::find(kSpreading.begin(), kSpreading.end(), trace.name(op)) == kSpreading.end())
    return std::nullopt;
  auto table = operator_inputs(trace, op).tensor(0);
  if (!table || table->rank() < 2 || table->dims.back() < 1 || !table->type->is_floating)
    return std::nullopt;
  return table;
}

// Adds the elements of each tensor that the call takes.
void add_taken(const Trace& trace, SliceId op, std::vector<double>& taken) {
  const auto tensors = taken_tensors(trace, op);
  if (!tensors) return;
  for (const Sizes& each : tensors->tensors) taken.push_back(analysis::element_count(each));
}

// Writes rows for the product that no other order needs: their copies, or several tensors as one.
bool joins_rows(std::string_view op) {
  constexpr std::array<std::string_view, 5> kJoining = {
      "aten::cat", "aten::concat", "aten::contiguous", "aten::clone", "aten::reshape"};
  return std::find(kJoining.begin(), kJoining.end(), op) != kJoining.end();
}

struct LateProduct {
  SliceId product{}, lookup = kNone<SliceId>;
  std::vector<SliceId> joining;  // calls that go with the rows that they write
  double rows = 0, table_rows = 0;
  double spared = 0;  // of the product's work, 0 to 1
};

// The calls before `at` on the same thread, the nearest first.
std::optional<LateProduct> late_product(const Trace& trace, const CallSequence& calls,
                                        std::size_t at) {
  const auto product = row_product(trace, calls[at]);
  if (!product || product->rows < kFewestGatheredRows) return std::nullopt;
  LateProduct found;
  found.product = calls[at];
  found.rows = product->rows;
  std::vector<double> taken = {product->rows * product->from};
  double width = 0;  // numbers of a row that come from tables
  bool has_lookup = false;
  for (std::size_t i = at; i > 0 && at - i < kMostCallsToLookup; --i) {
    const SliceId op = calls[i - 1];
    if (const auto table = table_of(trace, op)) {
      const auto own = static_cast<double>(table->dims.back());
      const double written = product->rows * own;
      // A later call takes as many numbers, so that is the size of what the lookup made.
      if (table->elements() * kFewestTimesGathered <= written &&
          std::find(taken.begin(), taken.end(), written) != taken.end()) {
        const bool is_lookup = trace.name(op) == "aten::index" ||
                               trace.name(op) == "aten::index_select" ||
                               trace.name(op) == "aten::gather";
        width += own;
        if (trace.name(op) == "aten::repeat" || trace.name(op) == "aten::repeat_interleave")
          found.joining.push_back(op);
        if (is_lookup && !has_lookup) {
          found.lookup = op;
          found.table_rows = table->elements() / own;
        }
        has_lookup = has_lookup || is_lookup;
        add_taken(trace, op, taken);
        continue;
      }
    }
    if (!is_linear_on_rows(trace.name(op))) break;
    const std::size_t before = taken.size();
    add_taken(trace, op, taken);
    if (joins_rows(trace.name(op)) &&
        std::accumulate(taken.begin() + static_cast<std::ptrdiff_t>(before), taken.end(), 0.0) ==
            product->rows * product->from)
      found.joining.push_back(op);
  }
  // Much wider results would make the lookup dearer than the product was.
  if (!has_lookup || width <= 0 || product->to > 2 * width) return std::nullopt;
  found.spared =
      std::min(1.0, width / product->from) * (1 - found.table_rows / std::max(1.0, found.rows));
  return found.spared > 0 ? std::optional(found) : std::nullopt;
}

struct LateProducts {
  Savings savings;
  std::int64_t copies_ns = 0;  // of rows, which go
  LateProduct largest;
  std::size_t count = 0;
};

std::optional<LateProducts> measure_product_after_gather(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::unordered_map<std::uint32_t, double> spared;  // by raw slice of a product or its node
  LateProducts found;
  double most = 0;
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t at = 1; at < calls.size(); ++at)
      if (const auto late = late_product(trace, calls, at)) {
        ++found.count;
        spared.emplace(raw(late->product), late->spared);
        for (const SliceId call : late->joining) spared.emplace(raw(call), 1.0);
        const auto product = row_product(trace, late->product);
        if (product && product->rows * product->from * product->to > most) {
          most = product->rows * product->from * product->to;
          found.largest = *late;
        }
      }
  if (spared.empty()) return std::nullopt;
  for (const AutogradPair& pair : autograd_pairs(facts))
    if (const auto of = spared.find(raw(pair.forward)); of != spared.end())
      for (const SliceId node : pair.nodes) spared.emplace(raw(node), of->second);
  for (const KernelCall& kernel : kernel_facts(facts).kernels) {
    SliceId op = kernel.op;
    while (op != kNone<SliceId> && !spared.contains(raw(op))) op = facts.nesting.parent[raw(op)];
    if (op == kNone<SliceId>) continue;
    found.savings.add(kernel, static_cast<std::int64_t>(static_cast<double>(kernel.dur_ns()) *
                                                        spared.at(raw(op))));
    if (kernel.op != kNone<SliceId> && trace.name(kernel.op) == "aten::copy_")
      found.copies_ns += kernel.dur_ns();
  }
  found.savings.finish();
  if (wall_share(facts, found.savings.saved_ns()) < kLeastGatheredShare) return std::nullopt;
  return found;
}

Finding tell_product_after_gather(const Facts& facts, const LateProducts& found) {
  const Value product = name(facts.trace->name(found.largest.product)),
              lookup = name(facts.trace->name(found.largest.lookup)),
              rows = count(static_cast<std::uint64_t>(found.largest.rows)),
              table = count(static_cast<std::uint64_t>(found.largest.table_rows));
  Finding finding;
  finding.verdict =
      say(facts,
          "{} multiplies {} rows that {} gathered from {}: the same rows {} times on "
          "average. {} such [product|products] [in {} steps] with their backward "
          "passes take {} [per step].",
          {product, rows, lookup, table,
           count(static_cast<std::uint64_t>(found.largest.rows / found.largest.table_rows)),
           count(found.count), count(facts.selection.steady.size()),
           ns(facts.per_step(found.savings.time_ns()))});
  rate_finding(facts, found.savings, finding);
  finding.arithmetic.push_back(say(
      facts,
      "counted: the kernels of these products, of the calls that repeat, join or copy rows for "
      "them "
      "(aten::cat, aten::contiguous), and of their backward passes; without what the product of "
      "the table's rows and of the parts of a row that are not gathered needs: {} [per step]. The "
      "lookup then reads results instead of inputs",
      {ns(facts.per_step(found.savings.saved_ns()))}));
  finding.evidence.push_back(called_at(facts, found.largest.product, say("the largest product")));
  finding.evidence.push_back(called_at(facts, found.largest.lookup, say("the lookup before it")));
  finding.try_next = {
      "multiply the table's rows once and look the results up: linear(x)[index] instead of "
      "linear(x[index])",
      "of linear(cat(x[i] - x[j], x[j])) split the weight w into w1 and w2: linear(x, w1)[i] + "
      "linear(x, w2 - w1)[j]; the calls that join the rows go, too",
      "add the bias once, after the sum. A nonlinear operator between lookup and product would "
      "forbid this; none was found"};
  finding.brief =
      say("{} multiplies {} rows that were gathered from only {}", {product, rows, table});
  finding.action = say(
      "Multiply first, then gather the results: linear(x)[index]; for cat(a, b) split the weight");
  finding.explains.push_back({"layout-copies", facts.per_step(found.copies_ns)});
  return finding;
}

}  // namespace

extern constinit const Rule product_after_gather_rule = {
    .id = "product-after-gather",
    .question = "are gathered rows multiplied that could be multiplied before?",
    .meant_by = "gather neighbours edges graph point cloud linear order",
    .order = 482,
    .needs = {need::kGpuWork, need::kLaunchCalls, need::kShapes},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_product_after_gather, tell_product_after_gather>,
    .fix = Fix::kGpu,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules
