// Results are weighted by a table that is mostly zeros: topk chose some of the rows, scatter filled a table with their
// weights, and then all rows are computed and multiplied by it.
//
// Example: topk chooses 4,096 of 32,768 tokens for each of 8 experts, and each expert works on all 32,768.
#include <algorithm>
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
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::TensorArguments;

namespace {

constexpr double kLeastZeroWeightedShare = 0.1;
constexpr double kMostWeighted = 0.5;  // of the table
constexpr std::int64_t kFewestWeightedRows = 64;
constexpr std::size_t kFurthestScatter = 8;  // operators after topk

// A table of weights for [rows, parts], of which `filled` are not zero.
struct WeightTable {
  std::int64_t rows = 0, parts = 0;
  double filled = 0;  // 0 to 1
};

// topk of [rows, parts] and a scatter of as many elements into a table of that size.
std::optional<WeightTable> weight_table(const Trace& trace, const CallSequence& calls,
                                        std::size_t at) {
  if (trace.name(calls[at]) != "aten::topk") return std::nullopt;
  const auto scores = operator_inputs(trace, calls[at]).tensor(0);
  if (!scores || scores->rank() != 2 || scores->dims[0] < kFewestWeightedRows ||
      scores->dims[1] < 2)
    return std::nullopt;
  for (std::size_t i = at + 1; i < calls.size() && i - at <= kFurthestScatter; ++i) {
    const std::string_view op = trace.name(calls[i]);
    if (op != "aten::scatter" && op != "aten::scatter_") continue;
    const TensorArguments inputs = operator_inputs(trace, calls[i]);
    const auto table = inputs.tensor(0), index = inputs.tensor(2);
    if (!table || !index || table->dims != scores->dims) continue;
    const double filled = index->elements() / table->elements();
    if (filled > kMostWeighted) return std::nullopt;
    return WeightTable{scores->dims[0], scores->dims[1], filled};
  }
  return std::nullopt;
}

// mul of [rows, 1], a column of the table, and [rows, width].
bool weighs_rows(const Trace& trace, SliceId op, const WeightTable& table) {
  if (trace.name(op) != "aten::mul") return false;
  const TensorArguments inputs = operator_inputs(trace, op);
  const auto a = inputs.tensor(0), b = inputs.tensor(1);
  if (!a || !b || a->rank() != 2 || b->rank() != 2) return false;
  const Sizes column{table.rows, 1};
  const auto& other = a->dims == column ? b->dims : a->dims;
  return (a->dims == column || b->dims == column) && other[0] == table.rows && other[1] > 1;
}

bool has_rows(const Trace& trace, SliceId op, std::int64_t rows) {
  const TensorArguments inputs = operator_inputs(trace, op);
  for (std::size_t k = 0; k < 3; ++k)
    if (const auto tensor = inputs.tensor(k);
        tensor && tensor->rank() == 2 && tensor->dims[0] == rows)
      return true;
  return false;
}

struct ZeroWeightedRows {
  WeightTable table;
  std::uint64_t tables = 0;
  SliceId first = kNone<SliceId>;  // a mul
  std::unordered_set<std::uint32_t> calls;
  std::int64_t all_ns = 0, cost_ns = 0;
};

std::optional<ZeroWeightedRows> measure_zero_weighted_rows(const Facts& facts) {
  const Trace& trace = *facts.trace;
  ZeroWeightedRows found;
  for (const CallSequence& sequence : call_sequences(facts))
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      const auto table = weight_table(trace, sequence, i);
      if (!table) continue;
      // A weighted result for each part, and all that has led to it on these rows.
      std::vector<SliceId> pending, taken;
      std::int64_t weighted = 0;
      SliceId first = kNone<SliceId>;
      for (std::size_t k = i + 1; k < sequence.size() && weighted < table->parts; ++k) {
        const SliceId op = sequence[k];
        if (trace.name(op) == "aten::topk" || trace.name(op).starts_with(kEvaluateNode)) break;
        if (is_view(trace.name(op)) || !has_rows(trace, op, table->rows)) continue;
        pending.push_back(op);
        if (!weighs_rows(trace, op, *table)) continue;
        if (first == kNone<SliceId>) first = op;
        taken.insert(taken.end(), pending.begin(), pending.end());
        pending.clear();
        ++weighted;
      }
      if (weighted != table->parts) continue;
      ++found.tables;
      found.table = *table;
      if (found.first == kNone<SliceId>) found.first = first;
      for (const SliceId op : taken) found.calls.insert(raw(op));
    }
  if (found.tables == 0) return std::nullopt;
  found.all_ns = cost_of_calls(facts, with_backward_nodes(facts, found.calls));
  found.cost_ns =
      static_cast<std::int64_t>((1 - found.table.filled) * static_cast<double>(found.all_ns));
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastZeroWeightedShare)
    return std::nullopt;
  return found;
}

Finding tell_zero_weighted_rows(const Facts& facts, const ZeroWeightedRows& found) {
  const auto number = [](std::int64_t value) { return count(static_cast<std::uint64_t>(value)); };
  const Value filled = ratio(static_cast<std::int64_t>(found.table.filled * 1e6), 1'000'000),
              zero = ratio(static_cast<std::int64_t>((1 - found.table.filled) * 1e6), 1'000'000);
  Finding finding;
  finding.verdict = say(
      facts,
      "{} results of all {} rows are multiplied by weights of which topk and scatter set {} and "
      "leave the rest zero: {} [per step] ({}) go into rows that do not count.",
      {number(found.table.parts), number(found.table.rows), filled,
       ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(say(
      facts, "the calls on these rows, with their backward parts, {} [per step], times {} zeros",
      {ns(facts.per_step(found.all_ns)), zero}));
  finding.arithmetic.push_back(
      say("if scatter fills zeros: what it fills is not recorded, only sizes"));
  finding.evidence.push_back(called_at(facts, found.first, say("the first of these weights")));
  finding.try_next = {
      "give each part only its chosen rows: x.index_select(0, rows) before it, index_add(0, rows, "
      "...) after it; with one size for all parts, one batched product for all of them",
      "no change is needed if the weights that topk left out are not zero"};
  finding.brief = say("{} parts work on all {} rows each, of which {} are then weighted by zero",
                      {number(found.table.parts), number(found.table.rows), zero});
  finding.action =
      say("Give each part (expert) only its chosen rows: index_select before it, index_add after");
  return finding;
}

}  // namespace

extern constinit const Rule zero_weighted_rows_rule = {
    .id = "zero-weighted-rows",
    .question = "are rows computed that are then multiplied by zero?",
    .meant_by = "experts mixture moe gate topk scatter zero routing",
    .order = 463,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_zero_weighted_rows, tell_zero_weighted_rows>,
};

}  // namespace lanescope::explain::rules
