// All rows of a batch begin with the same part: expand() repeats one row, and cat puts the rest after it. What follows
// works on that part once for each row.
//
// Example: instructions of 1,024 tokens, expanded to 8 rows, and questions of 64 tokens after them: 7 of 8 times 1,024 of
// 1,088 tokens are the same work.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lanescope/explain/rules/autograd_pairs.h"
#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/operator_results.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::Sizes;
using analysis::TensorArguments;

namespace {

constexpr double kLeastRepeatedPrefixShare = 0.1;
constexpr std::int64_t kFewestPrefixRows = 4, kShortestPrefix = 32;

struct SharedPrefix {
  std::int64_t rows = 0, shared = 0, length = 0;
  SliceId join = kNone<SliceId>;
  // The part of the work on all rows that is repeated.
  double repeated() const {
    return static_cast<double>(shared) / static_cast<double>(length) *
           (1 - 1 / static_cast<double>(rows));
  }
};

// expand of [1, n, ...]. Its result's size is not recorded: cat shows it.
std::optional<Sizes> expanded_row(const Trace& trace, SliceId op) {
  if (trace.name(op) != "aten::expand") return std::nullopt;
  const auto row = operator_inputs(trace, op).tensor(0);
  if (!row || row->rank() < 2 || row->dims[0] != 1 || row->dims[1] < kShortestPrefix)
    return std::nullopt;
  return row->dims;
}

// cat along dimension 1 of that row, repeated, and something no longer.
std::optional<SharedPrefix> joined_prefix(const Trace& trace, SliceId op, const Sizes& row) {
  if (trace.name(op) != "aten::cat") return std::nullopt;
  const auto inputs = taken_tensors(trace, op);
  if (!inputs || !inputs->is_list || inputs->tensors.size() != 2 || inputs->number(1) != 1)
    return std::nullopt;
  const Sizes& first = inputs->tensors[0];
  const Sizes& rest = inputs->tensors[1];
  if (first.size() != row.size() || rest.size() != row.size() || first[0] < kFewestPrefixRows ||
      !std::equal(first.begin() + 1, first.end(), row.begin() + 1) || rest[1] > first[1])
    return std::nullopt;
  return SharedPrefix{first[0], first[1], first[1] + rest[1], op};
}

// Takes tokens of all rows, as [rows, tokens, ...], [rows, heads, tokens, width] or [rows * tokens, ...].
bool works_on_all_rows(const Trace& trace, SliceId op, const SharedPrefix& prefix) {
  const TensorArguments inputs = operator_inputs(trace, op);
  for (std::size_t k = 0; k < 3; ++k) {
    const auto tensor = inputs.tensor(k);
    if (!tensor || tensor->rank() == 0) continue;
    const Sizes& dims = tensor->dims;
    if (dims[0] == prefix.rows * prefix.length) return true;
    if (dims[0] == prefix.rows &&
        std::find(dims.begin() + 1, dims.end(), prefix.length) != dims.end())
      return true;
  }
  return false;
}

struct RepeatedPrefix {
  SharedPrefix prefix;  // the longest
  std::unordered_set<std::uint32_t> calls;
  std::int64_t all_ns = 0, cost_ns = 0;
};

std::optional<RepeatedPrefix> measure_repeated_prefix(const Facts& facts) {
  const Trace& trace = *facts.trace;
  RepeatedPrefix found;
  for (const CallSequence& sequence : call_sequences(facts)) {
    std::optional<Sizes> row;
    std::optional<SharedPrefix> prefix;
    for (const SliceId op : sequence) {
      if (auto expanded = expanded_row(trace, op)) row = std::move(expanded);
      if (row)
        if (auto joined = joined_prefix(trace, op, *row)) {
          prefix = joined;
          if (joined->shared > found.prefix.shared) found.prefix = *joined;
        }
      if (prefix && !is_view(trace.name(op)) && works_on_all_rows(trace, op, *prefix))
        found.calls.insert(raw(op));
    }
  }
  if (found.calls.empty()) return std::nullopt;
  found.all_ns = cost_of_calls(facts, with_backward_nodes(facts, found.calls));
  found.cost_ns =
      static_cast<std::int64_t>(found.prefix.repeated() * static_cast<double>(found.all_ns));
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastRepeatedPrefixShare)
    return std::nullopt;
  return found;
}

Finding tell_repeated_prefix(const Facts& facts, const RepeatedPrefix& found) {
  const auto number = [](std::int64_t value) { return count(static_cast<std::uint64_t>(value)); };
  const SharedPrefix& prefix = found.prefix;
  Finding finding;
  finding.verdict =
      say(facts,
          "All {} rows begin with the same {} of {} tokens (expand() and cat), and each row "
          "computes them again: {} [per step] ({}).",
          {number(prefix.rows), number(prefix.shared), number(prefix.length),
           ns(facts.per_step(found.cost_ns)), ratio(found.cost_ns, facts.steady_wall_ns())});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.arithmetic.push_back(
      say(facts,
          "calls on tensors of all rows after that cat take {} [per step]; of these, the part of "
          "the shared ones, without one row: {}",
          {ns(facts.per_step(found.all_ns)),
           ratio(static_cast<std::int64_t>(prefix.repeated() * 1e6), 1'000'000)}));
  finding.evidence.push_back(called_at(facts, prefix.join, say("the cat after the shared part")));
  finding.try_next = {
      "compute the shared part once, for one row, and expand its keys and values; if it is the "
      "same in each step (a system prompt, instructions, examples), keep them between steps",
      "this needs a shared part that does not depend on what comes after it, as with causal "
      "attention"};
  for (const char* covered : {"hotspot-kernel", "no-roof", "memory-roof"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say("All {} rows begin with the same {} of {} tokens, and each row computes them again",
          {number(prefix.rows), number(prefix.shared), number(prefix.length)});
  finding.action =
      say("With causal attention: compute that part once (a prefix's KV cache), and keep it if it "
          "stays");
  return finding;
}

}  // namespace

extern constinit const Rule repeated_prefix_rule = {
    .id = "repeated-prefix",
    .question = "do all rows begin with the same part?",
    .meant_by = "prompt prefix system cache expand cat",
    .order = 462,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_repeated_prefix, tell_repeated_prefix>,
};

}  // namespace lanescope::explain::rules
