#include "lanescope/explain/rules/many_tables.h"

#include <algorithm>
#include <string_view>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/operator_inputs.h"

namespace lanescope::explain::rules {

using analysis::TensorArguments;

namespace {

bool is_gradient_of_table(std::string_view op) {
  return op == "aten::embedding_dense_backward" || op == "aten::_embedding_bag_dense_backward";
}

// Lookups with a gradient of their own in a step, 0: most have none. In the steady steps, by the thread's order of nodes.
std::size_t count_own_gradients(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto windows = facts.steady_cpu_windows();
  std::size_t lookups = 0, own = 0;
  bool is_after_lookup = false;
  TrackId thread = kNone<TrackId>;
  for (const SliceId node : slices_named(
           facts, [](std::string_view label) { return label.starts_with(kEvaluateNode); })) {
    if (!inside(windows, trace.start_ns(node))) continue;
    if (trace.slices().track[raw(node)] != thread) is_after_lookup = false;
    thread = trace.slices().track[raw(node)];
    own += is_after_lookup && is_accumulating_node(trace.name(node)) ? 1 : 0;
    is_after_lookup = without_evaluate(trace.name(node)).starts_with("Embedding");
    lookups += is_after_lookup ? 1 : 0;
  }
  return own * 10 >= lookups * 9 ? own / std::max<std::size_t>(1, facts.selection.steady.size())
                                 : 0;
}

// Rows of all tables, and what is looked up, as far as sizes are recorded.
struct TableRows {
  double rows = 0, met = 0;
};
TableRows add_up_rows(const Facts& facts) {
  const auto windows = facts.steady_cpu_windows();
  TableRows found;
  for (const SliceId call : slices_named(facts, is_gradient_of_table)) {
    if (!inside(windows, facts.trace->start_ns(call)) ||
        facts.trace->name(call) != "aten::embedding_dense_backward")
      continue;
    const TensorArguments inputs = operator_inputs(*facts.trace, call);
    const auto indices = inputs.tensor(1);
    const auto rows = inputs.value(2);
    if (!indices || !rows || !rows->integer) continue;
    found.rows += static_cast<double>(*rows->integer);
    found.met += indices->elements();
  }
  return found;
}

}  // namespace

std::size_t tables_with_own_gradient(const Facts& facts) {
  return made_once<count_own_gradients>(facts);
}

bool is_not_of_many_tables(const Facts& facts, SliceId) {
  const TableRows& rows = made_once<add_up_rows>(facts);
  return tables_with_own_gradient(facts) < kManyTables || rows.rows < rows.met;
}

}  // namespace lanescope::explain::rules
