// Layers compute rows, a cut at their end keeps few of them, and nothing else reads the others. Example: the neighbours in a
// sampled graph, of which the loss reads only the first nodes.
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
#include "lanescope/explain/rules/backward_passes.h"
#include "lanescope/explain/rules/cost_of_calls.h"
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

constexpr double kLeastLateCutShare = 0.1;
constexpr double kMostRowsKept = 0.25;
constexpr std::int64_t kLeastRowsCut = 1024;  // a smaller number may equal another size by chance
constexpr std::size_t kMostCutInputs = 6;     // of a call that are looked at

std::int64_t row_count(const Tensor& tensor) { return tensor.rank() > 0 ? tensor.dims[0] : 0; }

// The rows that x[:n], x.narrow(0, ..) or x.index_select(0, ..) keeps of its first dimension.
std::optional<std::int64_t> rows_kept(std::string_view op, const TensorArguments& inputs) {
  if (op != "aten::slice" && op != "aten::index_select" && op != "aten::narrow")
    return std::nullopt;
  const auto tensor = inputs.tensor(0);
  const auto dim = inputs.value(1);
  if (!tensor || tensor->rank() < 2 || !dim || !dim->integer || *dim->integer != 0 ||
      row_count(*tensor) <= 0)
    return std::nullopt;
  if (op == "aten::narrow") {
    const auto length = inputs.value(3);
    return length && length->integer ? std::optional(*length->integer) : std::nullopt;
  }
  const auto taken = taken_of(op, inputs, 0);
  if (!taken) return std::nullopt;
  return static_cast<std::int64_t>(
      taken->elements / tensor->elements() * static_cast<double>(row_count(*tensor)) + 0.5);
}

// Adds rows into others, by an index: where rows read other rows.
bool adds_by_index(std::string_view op) {
  static constexpr std::array<std::string_view, 7> kAdders = {
      "aten::index_add_",   "aten::index_add",       "aten::scatter_add_",  "aten::scatter_add",
      "aten::index_reduce", "aten::scatter_reduce_", "aten::scatter_reduce"};
  return std::find(kAdders.begin(), kAdders.end(), op) != kAdders.end();
}

// Each row of the result depends on the same row of the input.
bool works_row_by_row(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kByRow = {
      "aten::layer_norm", "aten::rms_norm", "aten::dropout", "aten::contiguous", "aten::to"};
  return keeps_size(op) || std::find(kByRow.begin(), kByRow.end(), op) != kByRow.end();
}

struct RowsBefore {
  SliceId cut = kNone<SliceId>;
  std::int64_t rows = 0, kept = 0;
  // calls[d]: calls that are followed by d additions by index before the cut. So calls[0] are those of the last layer.
  std::vector<std::vector<SliceId>> calls = {{}};
  std::int64_t edges = 0;  // rows that are added by an index; 0: none are
  std::size_t mixes = 0;   // additions by index, going back from the cut
};

enum class Met : std::uint8_t {
  kCounted,  // a call on these rows, or one that does not matter: go on
  kOther,    // a call on other tensors: the chain ends
  kReader    // the rows that the cut leaves out may be needed here
};

class ChainBefore {
 public:
  ChainBefore(const Trace& trace, RowsBefore& found) : trace_(trace), found_(found) {}

  // Goes back by one call.
  Met meet(SliceId op) {
    const std::string_view label = trace_.name(op);
    const TensorArguments inputs = operator_inputs(trace_, op);
    if (is_factory(label) || label == "aten::new_zeros") return met_factory(op, inputs);
    if (adds_by_index(label)) return met_adder(op, inputs);
    if (label == "aten::cat") return met_cat(op);
    const Tensor* own = nullptr;
    for (std::size_t k = 0; k < kMostCutInputs && !own; ++k)
      if (const auto tensor = inputs.tensor(k); tensor && is_own(row_count(*tensor))) own = tensor;
    if (!own) return is_view(label) ? Met::kCounted : Met::kOther;
    if (const auto kept = rows_kept(label, inputs)) {
      if (*kept == row_count(*own) && is_view(label)) return Met::kCounted;
      return is_own(*kept) ? count_on_edges(op) : Met::kReader;
    }
    if (is_view(label)) return Met::kCounted;
    if (label == "aten::gather" || label == "aten::index")
      return found_.edges > 0 ? count_on_edges(op) : Met::kReader;
    if (is_product(label)) {
      const auto made = made_size(label, inputs);
      if (!made || made->empty() || !is_own(made->front())) return Met::kReader;
      return count(op);
    }
    if (works_row_by_row(label)) return count(op);
    const auto taken = taken_of(label, inputs, 0);
    const bool keeps_rows = taken && taken->elements >= static_cast<double>(row_count(*own));
    return keeps_rows ? count(op) : Met::kReader;
  }

 private:
  bool is_own(std::int64_t rows) const {
    return rows == found_.rows || (found_.edges > 0 && rows == found_.edges);
  }

  Met count(SliceId op) {
    found_.calls.resize(std::max(found_.calls.size(), found_.mixes + 1));
    found_.calls[found_.mixes].push_back(op);
    return Met::kCounted;
  }
  // Counts only the rows that the addition after it reads.
  Met count_on_edges(SliceId op) {
    found_.calls[found_.mixes > 0 ? found_.mixes - 1 : 0].push_back(op);
    return Met::kCounted;
  }

  Met met_factory(SliceId op, const TensorArguments& inputs) {
    const std::size_t index = trace_.name(op) == "aten::new_zeros" ? 1 : 0;
    const auto value = inputs.value(index);
    const auto size = value ? analysis::sizes_of(*value) : std::nullopt;
    return size && !size->empty() && is_own(size->front()) ? count_on_edges(op) : Met::kCounted;
  }

  Met met_adder(SliceId op, const TensorArguments& inputs) {
    const auto into = inputs.tensor(0);
    if (!into) return Met::kOther;
    std::int64_t source = 0;
    for (std::size_t k = 1; k < kMostCutInputs; ++k)
      if (const auto tensor = inputs.tensor(k); tensor && tensor->rank() > 1)
        source = row_count(*tensor);
    if (row_count(*into) != found_.rows) return is_own(source) ? Met::kReader : Met::kOther;
    if (source == 0 || (found_.edges > 0 && source != found_.edges)) return Met::kReader;
    found_.edges = source;
    count(op);
    ++found_.mixes;
    return Met::kCounted;
  }

  Met met_cat(SliceId op) {
    const auto parts = first_input_shapes(trace_, op);
    const auto is_part = [&](const Sizes& part) { return !part.empty() && is_own(part.front()); };
    if (parts.empty() || std::none_of(parts.begin(), parts.end(), is_part)) return Met::kOther;
    const auto dim = operator_inputs(trace_, op).value(1);
    const bool is_along_rows = dim && dim->integer && *dim->integer == 0;
    return !is_along_rows && std::all_of(parts.begin(), parts.end(), is_part) ? count(op)
                                                                              : Met::kReader;
  }

  const Trace& trace_;
  RowsBefore& found_;
};

// Whether nothing reads the rows that the cut at `at` leaves out, and an operator reads those that it keeps. Adds what other
// cuts of the same rows keep.
bool only_cuts_read(const Trace& trace, const CallSequence& calls, std::size_t at,
                    RowsBefore& found) {
  const Sizes whole = operator_inputs(trace, calls[at]).tensor(0)->dims;
  bool is_taken = false;
  for (std::size_t i = at + 1; i < calls.size(); ++i) {
    const std::string_view label = trace.name(calls[i]);
    if (label.starts_with(kEvaluateNode)) break;
    const TensorArguments inputs = operator_inputs(trace, calls[i]);
    for (std::size_t k = 0; k < kMostCutInputs; ++k) {
      const auto tensor = inputs.tensor(k);
      if (!tensor || tensor->rank() == 0) continue;
      if (row_count(*tensor) == found.rows) {
        const auto more = k == 0 && tensor->dims == whole ? rows_kept(label, inputs) : std::nullopt;
        if (!more) return false;
        found.kept += *more;
      }
      is_taken = is_taken || (row_count(*tensor) == found.kept && !is_view(label));
    }
  }
  return is_taken &&
         static_cast<double>(found.kept) <= kMostRowsKept * static_cast<double>(found.rows);
}

std::optional<RowsBefore> rows_before(const Trace& trace, const CallSequence& calls,
                                      std::size_t at) {
  const TensorArguments cutting = operator_inputs(trace, calls[at]);
  const auto kept = rows_kept(trace.name(calls[at]), cutting);
  if (!kept || *kept <= 0) return std::nullopt;
  RowsBefore found;
  found.cut = calls[at];
  found.rows = row_count(*cutting.tensor(0));
  found.kept = *kept;
  if (found.rows < kLeastRowsCut || !only_cuts_read(trace, calls, at, found)) return std::nullopt;
  ChainBefore chain(trace, found);
  for (std::size_t i = at; i-- > 0;) {
    const Met met = chain.meet(calls[i]);
    if (met == Met::kReader) return std::nullopt;
    if (met == Met::kOther) break;
  }
  // Without additions by index, rows may be the words of a text, which other layers mix.
  if (found.mixes == 0) return std::nullopt;
  return found;
}

// These calls, and the nodes of autograd that they or operators in them made.
std::unordered_set<std::uint32_t> with_their_nodes(const Facts& facts,
                                                   const std::vector<AutogradPair>& pairs,
                                                   const std::vector<SliceId>& calls) {
  std::unordered_set<std::uint32_t> all;
  for (const SliceId call : calls) all.insert(raw(call));
  std::vector<SliceId> nodes;
  for (const AutogradPair& pair : pairs) {
    SliceId up = pair.forward;
    while (up != kNone<SliceId> && !all.contains(raw(up))) up = facts.nesting.parent[raw(up)];
    if (up != kNone<SliceId>) nodes.insert(nodes.end(), pair.nodes.begin(), pair.nodes.end());
  }
  for (const SliceId node : nodes) all.insert(raw(node));
  return all;
}

struct LateCut {
  std::uint64_t cuts = 0, calls = 0;
  RowsBefore first;
  SliceId longest = kNone<SliceId>;  // of the calls
  std::int64_t whole_ns = 0, cost_ns = 0;
};

std::optional<LateCut> measure_late_cut(const Facts& facts) {
  const Trace& trace = *facts.trace;
  LateCut found;
  std::vector<std::pair<std::vector<SliceId>, double>>
      by_depth;  // and the share of rows that is not needed
  for (const CallSequence& calls : call_sequences(facts))
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto rows = rows_before(trace, calls, i);
      if (!rows) continue;
      // Going back, each layer needs more rows: those that later layers read, and the rows that are added into them.
      const double grows = 1 + static_cast<double>(rows->edges) / static_cast<double>(rows->rows);
      double needed = static_cast<double>(rows->kept) / static_cast<double>(rows->rows);
      by_depth.resize(std::max(by_depth.size(), rows->calls.size()));
      for (std::size_t depth = 0; depth < rows->calls.size(); ++depth) {
        auto& [all, unneeded] = by_depth[depth];
        all.insert(all.end(), rows->calls[depth].begin(), rows->calls[depth].end());
        unneeded = std::max(0.0, 1 - needed);
        needed *= grows;
        found.calls += rows->calls[depth].size();
        for (const SliceId call : rows->calls[depth])
          if (found.longest == kNone<SliceId> ||
              (adds_by_index(trace.name(call)) && !adds_by_index(trace.name(found.longest))))
            found.longest = call;
      }
      if (found.cuts++ == 0) found.first = *std::move(rows);
    }
  if (found.cuts == 0 || found.cuts < facts.selection.steady.size()) return std::nullopt;
  const std::vector<AutogradPair>& pairs = autograd_pairs(facts);
  for (const auto& [calls, unneeded] : by_depth) {
    const std::int64_t cost_ns = cost_of_calls(facts, with_their_nodes(facts, pairs, calls));
    found.whole_ns += cost_ns;
    found.cost_ns += static_cast<std::int64_t>(static_cast<double>(cost_ns) * unneeded);
  }
  // Idle time next to one layer's calls may lie next to another's, too.
  if (const std::int64_t wall_ns = facts.steady_wall_ns(); found.whole_ns > wall_ns) {
    found.cost_ns = static_cast<std::int64_t>(static_cast<double>(found.cost_ns) *
                                              share_of(wall_ns, found.whole_ns));
    found.whole_ns = wall_ns;
  }
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastLateCutShare) return std::nullopt;
  return found;
}

Finding tell_late_cut(const Facts& facts, const LateCut& found) {
  const Value rows = count(static_cast<std::uint64_t>(found.first.rows)),
              kept = count(static_cast<std::uint64_t>(found.first.kept));
  Finding finding;
  finding.verdict =
      say(facts,
          "{} keeps {} of {} rows, and nothing else reads the others. The calls that "
          "compute all rows take {} [per step] ({}), their backward pass included.",
          {name(facts.trace->name(found.first.cut)), kept, rows, ns(facts.per_step(found.whole_ns)),
           ratio(found.whole_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls, finding);
  finding.gain_is_bound = true;  // which rows the layers before need is not recorded
  finding.arithmetic.push_back(
      say("counted, going back from the cut to a call on other tensors: the calls on that many "
          "rows, and on the rows that index_add or scatter_add adds into them. Their time counts "
          "times the share of rows that is not needed; for the calls before each such addition, "
          "the needed rows grow by the factor 1 + added rows / rows"));
  finding.evidence.push_back(called_at(facts, found.longest, say("one of these calls")));
  finding.evidence.push_back(called_at(facts, found.first.cut, say("the cut")));
  finding.try_next = {
      "let each layer compute only the rows that the layers after it read: cut x and the edges for "
      "each layer (PyTorch Geometric: trim_to_layer)",
      "if the program keeps the other rows for later, no change is needed"};
  for (const char* covered : {"hotspot-kernel", "no-roof", "memory-roof", "unfused-chain",
                              "unused-rows", "inflated-tensor", "slow-backward"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief = say("Layers compute {} rows, of which only {} are read", {rows, kept});
  finding.action =
      say("Let each layer compute only the rows that later layers read (PyG: trim_to_layer)");
  return finding;
}

}  // namespace

extern constinit const Rule late_cut_rule = {
    .id = "late-cut",
    .question = "do layers compute rows that nothing reads?",
    .meant_by = "graph neighbours hops sampled rows cut seeds unread gnn trim",
    .order = 451,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_late_cut, tell_late_cut>,
};

}  // namespace lanescope::explain::rules
