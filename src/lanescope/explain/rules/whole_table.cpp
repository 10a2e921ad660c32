// A lookup of few rows makes a gradient as large as the table, and the optimizer then updates all of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/many_tables.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/operator_neighbours.h"
#include "lanescope/explain/rules/optimizer_steps.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/step_state.h"
#include "lanescope/names/training_ranges.h"

namespace lanescope::explain::rules {

using analysis::Sizes;

namespace {

constexpr double kLeastWholeTableShare = 0.08;
constexpr std::int64_t kRowsPerLookup = 8;  // a smaller table is mostly looked up
constexpr std::string_view kOfLookups = "aten::embedding_dense_backward",
                           kOfBags = "aten::_embedding_bag_dense_backward";

// A call that makes the gradient of a table: the table's size, and how many rows were looked up.
struct TableGradient {
  Sizes table;
  std::int64_t looked_up = 0;
};
std::optional<TableGradient> table_gradient(const Trace& trace, SliceId op) {
  const bool is_bag = trace.name(op) == kOfBags;
  if (!is_bag && trace.name(op) != kOfLookups) return std::nullopt;
  const auto inputs = operator_inputs(trace, op);
  const auto gradient = inputs.tensor(0), indices = inputs.tensor(1);
  // [gradient, indices, rows, ...]; of bags [gradient, indices, bags, sizes, maxima, rows, ...].
  const auto rows = inputs.value(is_bag ? 5 : 2);
  if (!gradient || !indices || gradient->rank() == 0 || !rows || !rows->integer)
    return std::nullopt;
  return TableGradient{{*rows->integer, gradient->dims.back()},
                       static_cast<std::int64_t>(indices->elements())};
}

// How much of the first argument's elements, a tensor or a list, belongs to the tables.
double part_of_tables(const Trace& trace, SliceId op, const std::set<Sizes>& tables) {
  double own = 0, all = 0;
  for (const Sizes& each : first_input_shapes(trace, op)) {
    all += analysis::element_count(each);
    if (tables.contains(each)) own += analysis::element_count(each);
  }
  return all > 0 ? own / all : 0;
}

struct WholeTable {
  TableGradient of;        // the largest table, and the most rows that were looked up in one
  std::set<Sizes> tables;  // all sizes
  double unlisted_part =
      0;  // the tables' part of the parameters, where lists have no shapes; 0: they have
  bool has_shapes = true;  // false: `of` is not known, and the optimizer updates nothing but tables
  std::vector<SliceId> gradients;
  std::int64_t gradient_ns = 0, update_ns = 0;
  std::int64_t clipping_ns =
      0;  // norms of the gradients, and scaling them in place, before the update
  SliceId update = kNone<SliceId>;
  std::vector<SliceId> updates = {};  // calls that update tables mostly
  std::int64_t cost_ns() const { return gradient_ns + update_ns + clipping_ns; }
};

// torch.nn.utils.clip_grad_norm_: norms, then a product in place, on tensors or lists.
bool is_norm(std::string_view op) {
  return op == "aten::_foreach_norm" || op == "aten::linalg_vector_norm";
}
bool is_scaling(std::string_view op) { return op == "aten::_foreach_mul_" || op == "aten::mul_"; }

// Calls of the program outside of the optimizer that take the norm of tensors of a table's size and scale such tensors in
// place, with the tables' part of their elements. Empty: not both.
std::vector<std::pair<SliceId, double>> clipping_of_tables(const Facts& facts,
                                                           const std::set<Sizes>& tables) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::vector<std::pair<SliceId, double>> calls;
  bool takes_norms = false, scales = false;
  const auto is_norm_or_scaling = [](std::string_view name) {
    return is_norm(name) || is_scaling(name);
  };
  for (const SliceId id : slices_named(facts, is_norm_or_scaling)) {
    const std::string_view label = trace.name(id);
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(windows, trace.start_ns(id)) ||
        outermost_around(facts, id) != id || is_in_optimizer_step(facts, id))
      continue;
    const double part = part_of_tables(trace, id, tables);
    if (part <= 0) continue;
    calls.emplace_back(id, part);
    (is_norm(label) ? takes_norms : scales) = true;
  }
  if (!takes_norms || !scales) calls.clear();
  return calls;
}

// Calls by their part of the tables: most lists have one, so they are asked together.
std::int64_t cost_of_parts(const Facts& facts,
                           const std::vector<std::pair<SliceId, double>>& calls) {
  std::unordered_set<std::uint32_t> ids;
  double parts = 0;
  for (const auto& [id, part] : calls) {
    ids.insert(raw(id));
    parts += part;
  }
  if (calls.empty()) return 0;
  return static_cast<std::int64_t>(static_cast<double>(cost_of_calls(facts, ids)) * parts /
                                   static_cast<double>(calls.size()));
}

// "SGD" of the range "Optimizer.step#SGD.step" around a call; empty: there is none.
std::string_view optimizer_of(const Facts& facts, SliceId call) {
  const SliceId range = optimizer_step_around(facts, call);
  return range == kNone<SliceId> ? std::string_view{}
                                 : names::optimizer_of_step(facts.trace->name(range));
}

// Calls of the optimizer itself in steady steps, none inside another operator.
std::vector<SliceId> calls_of_optimizer(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::vector<SliceId> calls;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(windows, trace.start_ns(id)) ||
        !is_in_optimizer_step(facts, id))
      continue;
    const SliceId parent = facts.nesting.parent[i];
    if (parent == kNone<SliceId> || !trace.name(parent).starts_with("aten::")) calls.push_back(id);
  }
  return calls;
}

// Without shapes: as many dense gradients of tables as parameters that the optimizer updates, one by one.
std::optional<WholeTable> measure_without_shapes(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  WholeTable found;
  found.has_shapes = false;
  std::unordered_set<std::uint32_t> gradients, updating;
  const auto is_gradient = [](std::string_view name) {
    return name == kOfLookups || name == kOfBags;
  };
  for (const SliceId id : slices_named(facts, is_gradient)) {
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(windows, trace.start_ns(id))) continue;
    if (table_gradient(trace, id)) return std::nullopt;
    found.gradients.push_back(id);
    gradients.insert(raw(id));
  }
  // The last call of Adam, Adagrad and RMSprop, and that of SGD.
  std::size_t divided = 0, added = 0;
  for (const SliceId id : calls_of_optimizer(facts)) {
    updating.insert(raw(id));
    if (trace.name(id).starts_with("aten::_foreach_") ||
        trace.name(id).starts_with("aten::_fused_"))
      return std::nullopt;
    if (trace.name(id) == "aten::addcdiv_") ++divided;
    if (trace.name(id) == "aten::add_") ++added;
  }
  const std::size_t updated = divided > 0 ? divided : added;
  if (updated < facts.selection.steady.size() || updated > found.gradients.size())
    return std::nullopt;
  found.gradient_ns = cost_of_calls(facts, gradients);
  found.update_ns = cost_of_calls(facts, updating);
  if (share_of(found.cost_ns(), facts.steady_wall_ns()) < kLeastWholeTableShare)
    return std::nullopt;
  return found;
}

// Which input of this operator is a weight; nothing: none.
std::optional<std::size_t> weight_of(std::string_view op) {
  if (op == "aten::addmm") return 2;
  if (op == "aten::linear" || op == "aten::mm" || op == "aten::convolution") return 1;
  return std::nullopt;
}

// Elements of the weights that products and convolutions take in the forward pass of the steady steps, and of tables that `found` does
// not count. What is nested counts twice, so this is rather too much.
double other_elements(const Facts& facts, const WholeTable& found) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  double total = 0;
  for (const SliceId id :
       slices_named(facts, [](std::string_view op) { return weight_of(op).has_value(); }))
    if (inside(windows, trace.start_ns(id)) && !is_in_backward_node(facts, id))
      if (const auto weight = operator_inputs(trace, id).tensor(*weight_of(trace.name(id))))
        total += weight->elements();
  for (const SliceId id : slices_named(facts, kOfLookups))
    if (const auto gradient = table_gradient(trace, id);
        gradient && inside(windows, trace.start_ns(id)) && !found.tables.contains(gradient->table))
      total += analysis::element_count(gradient->table);
  return total;
}

// Its first argument is a list, and each tensor of it stands there without dimensions.
bool has_no_shapes(const Trace& trace, SliceId op) {
  const std::vector<Sizes> shapes = first_input_shapes(trace, op);
  return std::all_of(shapes.begin(), shapes.end(), [](const Sizes& each) { return each.empty(); });
}

// An optimizer that updates lists of tensors whose shapes are not recorded: the tables' part follows from the sizes of their gradients
// and of the weights that the forward pass takes. Empty: each call has shapes, or the tables are less than half.
std::vector<std::pair<SliceId, double>> updates_of_unlisted(const Facts& facts,
                                                            const WholeTable& found) {
  const Trace& trace = *facts.trace;
  std::vector<std::pair<SliceId, double>> updates;
  const bool has_own =
      tables_with_own_gradient(facts) * facts.selection.steady.size() >= found.gradients.size();
  double own = 0;
  if (has_own)
    for (const SliceId id : found.gradients)
      own += analysis::element_count(table_gradient(trace, id)->table);
  else
    for (const Sizes& table : found.tables)
      own += analysis::element_count(table) * static_cast<double>(facts.selection.steady.size());
  const double part = own / (own + other_elements(facts, found));
  if (part < 0.5) return updates;
  for (const SliceId id : calls_of_optimizer(facts))
    if ((trace.name(id).starts_with("aten::_foreach_") ||
         trace.name(id).starts_with("aten::_fused_")) &&
        has_no_shapes(trace, id))
      updates.emplace_back(id, part);
  return updates;
}

std::optional<WholeTable> measure_whole_table(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  WholeTable found;
  std::vector<std::pair<SliceId, double>> updates;
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
    const SliceId id{i};
    if (trace.kind(id) != CategoryKind::kCpuOp || !inside(windows, trace.start_ns(id))) continue;
    const auto gradient = table_gradient(trace, id);
    if (!gradient || gradient->looked_up * kRowsPerLookup > gradient->table[0]) continue;
    if (found.gradients.empty() ||
        analysis::element_count(gradient->table) > analysis::element_count(found.of.table))
      found.of.table = gradient->table;
    found.of.looked_up = std::max(found.of.looked_up, gradient->looked_up);
    found.tables.insert(gradient->table);
    found.gradients.push_back(id);
  }
  if (found.gradients.empty()) return measure_without_shapes(facts);
  if (found.gradients.size() < facts.selection.steady.size()) return std::nullopt;
  for (const SliceId id : calls_of_optimizer(facts))
    if (const double part = part_of_tables(trace, id, found.tables); part > 0)
      updates.emplace_back(id, part);
  if (updates.empty()) {
    updates = updates_of_unlisted(facts, found);
    if (updates.empty()) return std::nullopt;
    found.unlisted_part = updates.front().second;
  }
  std::unordered_set<std::uint32_t> calls;
  for (const SliceId id : found.gradients) calls.insert(raw(id));
  found.gradient_ns = cost_of_calls(facts, calls);
  found.update_ns = cost_of_parts(facts, updates);
  found.update = updates.front().first;
  for (const auto& [id, part] : updates)
    if (part >= 0.5) found.updates.push_back(id);
  found.clipping_ns = cost_of_parts(facts, clipping_of_tables(facts, found.tables));
  if (share_of(found.cost_ns(), facts.steady_wall_ns()) < kLeastWholeTableShare)
    return std::nullopt;
  return found;
}

// The rows that a batch looks up are not known.
void tell_without_shapes(const Facts& facts, const WholeTable& found, Finding& finding) {
  finding.verdict = say(
      facts,
      "The optimizer updates embedding tables and nothing else. Their gradients are as large as "
      "the tables, and all rows are updated, whatever a batch looks up: {} and {} [per step] "
      "({}).",
      {ns(facts.per_step(found.gradient_ns)), ns(facts.per_step(found.update_ns)),
       ratio(found.cost_ns(), facts.steady_wall_ns())});
  finding.arithmetic.push_back(
      say("counted: aten::embedding_dense_backward, and all calls in Optimizer.step, which updates "
          "no more parameters than there are such gradients"));
  finding.brief = say("The optimizer updates whole embedding tables, whatever a batch looks up");
  finding.action =
      say("If a batch reads few of their rows: nn.Embedding(sparse=True) and SparseAdam or SGD");
}

// What the nodes of autograd of lookups do is told here, on the first screen. With many tables, a sparse gradient for each would add
// launches: one table for all has few.
void tell_many_tables(const Facts& facts, const WholeTable& found, Finding& finding) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  for (const SliceId node : slices_named(facts, [](std::string_view label) {
         return label.starts_with(kEvaluateNode) &&
                without_evaluate(label).starts_with("Embedding");
       })) {
    const TrackId thread = trace.slices().track[raw(node)];
    if (!inside(windows, trace.start_ns(node)) ||
        (finding.told_thread != kNone<TrackId> && finding.told_thread != thread))
      continue;
    finding.told_thread = thread;
    finding.spared_calls.push_back(node);
    finding.told_windows.push_back({trace.start_ns(node), trace.end_ns(node)});
  }
  if (tables_with_own_gradient(facts) < kManyTables) {
    finding.spared_calls.clear();
    return;
  }
  // One table launches once what many launch each.
  finding.spared_calls.insert(finding.spared_calls.end(), found.updates.begin(),
                              found.updates.end());
  finding.gain_is_bound = true;
  const bool is_bag = trace.name(found.gradients.front()) == kOfBags;
  const std::string_view optimizer = optimizer_of(facts, found.update);
  const bool takes_sparse = optimizer == "SGD" || optimizer == "Adagrad";
  finding.action = say("Make one {}(sparse=True) of all tables, with offsets, and use {} for it",
                       {name(is_bag ? "nn.EmbeddingBag" : "nn.Embedding"),
                        name(takes_sparse ? optimizer : "SparseAdam")});
  finding.try_next.insert(
      finding.try_next.begin(),
      "one nn.Embedding(sum(sizes), width, sparse=True), and table(indices + offsets) with the "
      "first row of each table as its offset; with 26 tables of 13 million rows in all, measured "
      "on an H200: 6.4 instead of 23.4 ms a step. sparse=True and SparseAdam for each of the 26 "
      "tables took 29.4 ms, because that launches many small kernels for each");
}

Finding tell_whole_table(const Facts& facts, const WholeTable& found) {
  const Value table = text(analysis::shape_text(found.of.table)),
              looked_up = count(static_cast<std::uint64_t>(found.of.looked_up));
  const std::uint64_t lookups = a_step(facts, found.gradients.size());
  Finding finding;
  finding.verdict = say(
      facts,
      lookups > 1 ? "{} lookups [per step] read at most {} rows each of tables of up to {}, but "
                    "their gradients are as large as the tables, and the optimizer updates all of "
                    "them: {} and {} [per step] ({})."
                  : "A lookup reads at most {} rows of a table of {}, but its gradient is as large "
                    "as the table, and the optimizer updates all of it: {} and {} [per step] ({}).",
      {looked_up, table, ns(facts.per_step(found.gradient_ns)), ns(facts.per_step(found.update_ns)),
       ratio(found.gradient_ns + found.update_ns, facts.steady_wall_ns())});
  if (lookups > 1) finding.verdict.values.insert(finding.verdict.values.begin(), count(lookups));
  if (found.clipping_ns > 0)
    append(finding.verdict,
           say(facts, " Clipping takes their norms and scales them: {} more [per step] ({}).",
               {ns(facts.per_step(found.clipping_ns)),
                ratio(found.clipping_ns, facts.steady_wall_ns())}));
  rate_cost(facts, found.cost_ns(), found.gradients.size(), finding);
  finding.evidence.push_back(
      called_at(facts, found.gradients.front(), say("one of these gradients")));
  finding.try_next = {
      "nn.Embedding(sparse=True) with SGD without momentum, SparseAdam or Adagrad: it updates only "
      "the rows of the batch",
      "Adam and momentum also change rows that a step does not look up: with sparse gradients "
      "results differ a little"};
  // Where the CPU is the limit, fewer calls gain more than less work of the GPU.
  finding.explains.push_back({"costly-operator", is_host_bound(facts) ? 0 : finding.at_stake_ns});
  for (const char* covered : {"hotspot-kernel", "memory-roof", "optimizer-share", "no-roof"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.arithmetic.push_back(
      say("counted: aten::embedding_dense_backward or that of bags, and the calls in "
          "Optimizer.step on tensors of a table's size; if a call updates more tensors, the "
          "tables' share of their elements; sparse gradients take some of this time themselves"));
  finding.brief =
      lookups > 1
          ? say("Tables of up to {} are updated as a whole for at most {} rows that were looked up",
                {table, looked_up})
          : say("A table of {} is updated as a whole for the {} rows that were looked up",
                {table, looked_up});
  const Value module = name(
      facts.trace->name(found.gradients.front()) == kOfBags ? "nn.EmbeddingBag" : "nn.Embedding");
  const std::string_view optimizer = optimizer_of(facts, found.update);
  finding.action =
      optimizer == "SGD" || optimizer == "Adagrad"
          ? say("Use {}(sparse=True), which {} supports", {module, name(optimizer)})
          : say("Use {}(sparse=True), and SparseAdam or Adagrad for the tables", {module});
  if (found.clipping_ns > 0)
    append(finding.action, say("; clip_grad_norm_ does not: leave the tables out of it"));
  if (found.unlisted_part > 0)
    finding.arithmetic.push_back(
        say("the optimizer's lists have no recorded shapes: {} of the parameters are taken for "
            "these tables', by the sizes of their gradients and of the weights in the forward pass",
            {ratio(static_cast<std::int64_t>(found.unlisted_part * 1000), 1000)}));
  if (found.has_shapes) tell_many_tables(facts, found, finding);
  if (!found.has_shapes) {
    finding.arithmetic.clear();
    tell_without_shapes(facts, found, finding);
  }
  return finding;
}

}  // namespace

extern constinit const Rule whole_table_rule = {
    .id = "whole-table",
    .question = "is a whole table updated for a few rows of it?",
    .meant_by = "embedding sparse table rows dense gradient optimizer update recommender",
    .order = 457,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_whole_table, tell_whole_table>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
