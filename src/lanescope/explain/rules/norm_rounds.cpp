#include "lanescope/explain/rules/norm_rounds.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <unordered_set>

#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

constexpr std::size_t kMostCallsBetween = 3;
constexpr std::size_t kFewestNormRounds = 4;

bool makes_norm(std::string_view op) {
  static constexpr std::array<std::string_view, 3> kNorms = {"aten::linalg_vector_norm",
                                                             "aten::norm", "aten::linalg_norm"};
  return std::find(kNorms.begin(), kNorms.end(), op) != kNorms.end();
}

// Another view of a tensor or of a number, or the same number in another type.
bool passes_tensor_on(std::string_view op) {
  return is_view(op) || op == "aten::detach" || op == "detach" || op == "aten::to" ||
         op == "aten::_to_copy";
}

// What programs do with a norm before they read it.
bool works_on_norm(std::string_view op) {
  return op == "aten::pow" || op == "aten::square" || op == "aten::sqrt";
}

// Where the round that begins at `at` ends: after its reading. `at`: there is no such round.
std::size_t end_of_round(const Trace& trace, const CallSequence& calls, std::size_t at) {
  if (!makes_norm(trace.name(calls[at]))) return at;
  for (std::size_t i = at + 1; i < calls.size() && i <= at + 1 + kMostCallsBetween; ++i) {
    if (trace.name(calls[i]) == "aten::item") return i + 1;
    if (!passes_tensor_on(trace.name(calls[i])) && !works_on_norm(trace.name(calls[i]))) break;
  }
  return at;
}

void add_loops(const Trace& trace, const CallSequence& calls, NormRounds& found) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    std::size_t first_end = 0, end = 0, rounds = 0;
    for (std::size_t at = i; at < calls.size() && (rounds == 0 || at <= end + kMostCallsBetween);) {
      const std::size_t after = end_of_round(trace, calls, at);
      if (after == at) {
        // What is computed from one round may be the next one's input, as in a power iteration.
        if (rounds == 0 || !passes_tensor_on(trace.name(calls[at]))) break;
        ++at;
        continue;
      }
      ++rounds;
      end = at = after;
      if (rounds == 1) first_end = after;
    }
    if (rounds == 0) continue;
    if (rounds >= kFewestNormRounds) {
      found.rounds += rounds;
      found.spared.insert(found.spared.end(),
                          calls.begin() + static_cast<std::ptrdiff_t>(first_end),
                          calls.begin() + static_cast<std::ptrdiff_t>(end));
      found.windows.push_back({trace.end_ns(calls[first_end - 1]), trace.end_ns(calls[end - 1])});
    }
    i = end - 1;
  }
}

NormRounds make_norm_rounds(const Facts& facts) {
  NormRounds found;
  for (const CallSequence& calls : call_sequences(facts)) add_loops(*facts.trace, calls, found);
  return found;
}

}  // namespace

const NormRounds& norm_rounds(const Facts& facts) { return made_once<make_norm_rounds>(facts); }

std::int64_t cost_of_norm_rounds(const Facts& facts, const NormRounds& rounds) {
  std::unordered_set<std::uint32_t> calls;
  for (const SliceId call : rounds.spared) calls.insert(raw(call));
  std::vector<Window> works;
  for (const analysis::DeviceWork* work : steady_work(facts)) {
    SliceId op = facts.links.op_of[raw(work->slice)];
    while (op != kNone<SliceId> && !calls.contains(raw(op))) op = facts.nesting.parent[raw(op)];
    if (op != kNone<SliceId>) works.push_back({work->start_ns, work->end_ns});
  }
  return total_length(within_steady(facts, works)) +
         device_idle_during(facts, within_steady(facts, rounds.windows));
}

}  // namespace lanescope::explain::rules
