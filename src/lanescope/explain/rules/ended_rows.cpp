// A batch of sequences is decoded to its end, also those that have ended: a mask replaces their tokens.
//
// Problem: which rows have ended is a value, and a trace holds none. Idea: the mask shows. After the tokens of a step are chosen
// (argmax, multinomial) for B rows, an operator replaces some of them: where with B booleans, or a product of B whole numbers with
// B others. Attention of one token for each of B rows has then read the caches of all of them. Example: attention of
// [64, 16, 1, 64] and [64, 16, 8192, 64], argmax of [64, 32000], where of bool [64] and [64].
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lanescope/explain/rules/cost_of_calls.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/phase_work.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

using analysis::TensorArguments;

namespace {

constexpr double kLeastEndedRowsShare = 0.1;
constexpr std::int64_t kFewestSequences = 4;
constexpr std::size_t kMostMaskInputs = 3;
constexpr std::size_t kMostCallsToMask = 8;  // between the choice of tokens and their mask

bool chooses_tokens(std::string_view op) {
  return op == "aten::argmax" || op == "aten::multinomial";
}

bool is_whole_number(const analysis::Tensor& tensor) {
  return tensor.type && tensor.type->torch == "long int";
}

// Replaces some of `rows` tokens.
bool masks_tokens(std::string_view op, const TensorArguments& inputs, double rows) {
  std::size_t masks = 0, tokens = 0;
  for (std::size_t k = 0; k < kMostMaskInputs; ++k)
    if (const auto tensor = inputs.tensor(k); tensor && tensor->elements() == rows) {
      masks += tensor->type && tensor->type->torch == "bool" ? 1 : 0;
      tokens += is_whole_number(*tensor) ? 1 : 0;
    }
  if (op == "aten::where" || op == "aten::masked_fill" || op == "aten::masked_fill_")
    return masks == 1 && tokens >= 1;
  return op == "aten::mul" && masks == 0 && tokens == 2;
}

// Attention of one token for each row, over a longer cache.
bool reads_caches(const Trace& trace, SliceId call, std::int64_t rows) {
  if (trace.name(call) != "aten::scaled_dot_product_attention") return false;
  const TensorArguments inputs = operator_inputs(trace, call);
  const auto query = inputs.tensor(0), keys = inputs.tensor(1);
  constexpr std::size_t kRank = 4, kLength = 2;
  return query && keys && query->rank() == kRank && keys->rank() == kRank &&
         query->dims[0] == rows && query->dims[kLength] == 1 && keys->dims[kLength] > 1;
}

struct EndedRows {
  std::int64_t rows = 0;
  std::uint64_t steps = 0;
  SliceId mask = kNone<SliceId>, attention = kNone<SliceId>;
  std::unordered_set<std::uint32_t> calls;
  std::int64_t whole_ns = 0, cost_ns = 0;
};

void add_ended_rows(const Trace& trace, const CallSequence& calls, EndedRows& found) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!chooses_tokens(trace.name(calls[i]))) continue;
    const auto scores = operator_inputs(trace, calls[i]).tensor(0);
    if (!scores || scores->rank() < 2 || scores->dims[0] < kFewestSequences) continue;
    const std::int64_t rows = scores->dims[0];
    const std::size_t end = std::min(calls.size(), i + 1 + kMostCallsToMask);
    const auto mask =
        std::find_if(calls.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                     calls.begin() + static_cast<std::ptrdiff_t>(end), [&](SliceId call) {
                       return masks_tokens(trace.name(call), operator_inputs(trace, call),
                                           static_cast<double>(rows));
                     });
    if (mask == calls.begin() + static_cast<std::ptrdiff_t>(end)) continue;
    const std::size_t before = found.calls.size();
    for (std::size_t k = 0; k < i; ++k) {
      if (!reads_caches(trace, calls[k], rows)) continue;
      found.calls.insert(raw(calls[k]));
      if (found.attention == kNone<SliceId>) found.attention = calls[k];
    }
    if (found.calls.size() == before) continue;
    ++found.steps;
    found.rows = rows;
    found.mask = *mask;
  }
}

std::optional<EndedRows> measure_ended_rows(const Facts& facts) {
  if (trains(facts)) return std::nullopt;
  EndedRows found;
  for (const CallSequence& calls : call_sequences(facts))
    add_ended_rows(*facts.trace, calls, found);
  if (found.steps == 0 || found.steps < facts.selection.steady.size()) return std::nullopt;
  found.whole_ns = cost_of_calls(facts, found.calls);
  // One row is left at least.
  found.cost_ns = found.whole_ns - found.whole_ns / found.rows;
  if (share_of(found.cost_ns, facts.steady_wall_ns()) < kLeastEndedRowsShare) return std::nullopt;
  return found;
}

Finding tell_ended_rows(const Facts& facts, const EndedRows& found) {
  const Trace& trace = *facts.trace;
  const Value rows = count(static_cast<std::uint64_t>(found.rows)),
              mask = name(trace.name(found.mask)), op = name(trace.name(found.attention));
  Finding finding;
  finding.verdict =
      say(facts,
          "{} reads the caches of all {} sequences, {} [per step] ({}), and afterwards {} replaces "
          "the tokens of those that have ended.",
          {op, rows, ns(facts.per_step(found.whole_ns)),
           ratio(found.whole_ns, facts.steady_wall_ns()), mask});
  rate_cost(facts, found.cost_ns, found.calls.size(), finding);
  finding.gain_is_bound = true;
  finding.arithmetic.push_back(
      say("counted: attention of one token for each sequence, before argmax or multinomial of as "
          "many rows, whose result a mask changes; how many have ended is not recorded: all but "
          "one at most"));
  finding.evidence.push_back(called_at(facts, found.attention, say("the first such attention")));
  finding.evidence.push_back(called_at(facts, found.mask, say("the mask")));
  finding.try_next = {
      "keep the rows of sequences that go on: tokens[going], and the same rows of the caches",
      "or give the places of ended sequences to new requests (continuous batching)",
      "sort requests by their expected length, so that a batch ends together"};
  for (const char* covered : {"hotspot-kernel", "memory-roof", "no-roof", "slow-attention"})
    finding.explains.push_back({covered, finding.at_stake_ns});
  finding.brief =
      say("{} reads the caches of all {} sequences, also of those that have ended", {op, rows});
  finding.action =
      say("{} replaces their tokens: if many have ended, take them out of batch and caches, or "
          "begin new requests there",
          {mask});
  return finding;
}

}  // namespace

extern constinit const Rule ended_rows_rule = {
    .id = "ended-rows",
    .question = "are sequences decoded that have ended?",
    .meant_by = "generate decode batch ended finished eos padding continuous batching serving",
    .order = 475,
    .needs = {need::kAnyWork},
    .run = measure_and_tell<measure_ended_rows, tell_ended_rows>,
    .fix = Fix::kGpu,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules
