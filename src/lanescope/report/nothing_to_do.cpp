#include "lanescope/report/nothing_to_do.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/explain/owner_advice.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/explain/rules/bound.h"
#include "lanescope/explain/rules/elementwise_chains.h"
#include "lanescope/explain/rules/step_state.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/rounded_numbers.h"

namespace lanescope::report {
namespace {

using explain::Explanation;
using explain::Facts;
using explain::Finding;

// The finding of the verdict. Its advice is shown if there is no other.
const Finding* headline_finding(const Explanation& explanation) {
  for (const Finding& finding : explanation.findings)
    if (is_headline(explanation, finding) || declares(finding, &explain::Rule::is_cpu_headline))
      return &finding;
  return nullptr;
}

// Work is missing in the trace, or there is hardly any.
bool has_too_little_data(const Facts& facts) {
  return facts.selection.lacks_gpu_work || facts.trace->import_stats().is_truncated() ||
         (facts.main_device && explain::rules::is_thin(facts)) ||
         explain::rules::is_end_of_loop(facts);
}

// The GPU is the limit, in the recording or without the profiler, and what takes most of its time comes near what it can do. Otherwise
// there may be a fault that no rule knows.
bool is_healthy(const Facts& facts, const Explanation& explanation) {
  if (!facts.main_device || facts.vendor) return false;
  const std::vector<explain::TimeTaker> takers = explain::largest_time_takers(facts);
  if (takers.empty() || !takers.front().owner || !explain::uses_gpu_well(*takers.front().owner))
    return false;
  return explain::rules::find_bound(facts) == explain::rules::Bound::kCompute ||
         (explanation.gains && explain::is_gpu_bound_without_profiler(*explanation.gains));
}

// Chains of element-wise kernels may save 1 % and still be below the threshold of their rule.
std::string remark_on_gains(const Facts& facts, const Explanation& explanation) {
  constexpr double kLeastShare = 0.01;
  const std::string_view unit = facts.steps.marked ? "step" : "recording";
  const std::int64_t chains_ns = explain::rules::saved_by_one_kernel_for_each_chain_ns(facts);
  const double share = static_cast<double>(chains_ns) / static_cast<double>(facts.steady_wall_ns());
  if (share < kLeastShare)
    return fmt::format(
        "{} would save 1 % of the {} or more.",
        is_healthy(facts, explanation) ? "Healthy, as far as known: no fix" : "No known fix", unit);
  return fmt::format(
      "Only torch.compile would save 1 % of the {} or more, by fusing chains of elementwise "
      "kernels: "
      "at most {} ({}).",
      unit, rounded_time(facts.per_step(chains_ns)), rounded_percent(share));
}

// What the evidence suggests for that owner, else what to record for the largest; empty: nothing.
std::string owner_advice(const Facts& facts) {
  const explain::Owners* owners = explain::step_owners(facts);
  if (!owners || owners->owners.empty() || has_too_little_data(facts)) return {};
  const explain::Owner* known = owner_with_remedy(facts, 3);
  return rounded_sentence(explain::advice_text(facts, known ? *known : owners->owners.front()));
}

}  // namespace

const char* nothing_title(const Facts& facts) {
  return facts.vendor ? "What takes the time" : "No known fault";
}

const explain::Owner* owner_with_remedy(const Facts& facts, std::size_t shown) {
  if (has_too_little_data(facts)) return nullptr;
  const std::vector<explain::TimeTaker> takers = explain::largest_time_takers(facts);
  for (std::size_t i = 0; i < takers.size() && i < shown; ++i)
    if (takers[i].owner && explain::has_remedy(facts, *takers[i].owner)) return takers[i].owner;
  return nullptr;
}

bool is_left_with_less_work(const Facts& facts,
                            const std::vector<explain::Suggestion>& suggestions) {
  constexpr double kMost = 0.5, kMuch = 0.1;
  if (has_too_little_data(facts)) return false;
  const std::vector<explain::TimeTaker> takers = explain::largest_time_takers(facts);
  if (takers.empty() || !takers.front().owner || takers.front().ratio <= kMost) return false;
  return std::none_of(suggestions.begin(), suggestions.end(),
                      [](const explain::Suggestion& each) { return each.gain_ratio >= kMuch; }) &&
         explain::uses_gpu_well(*takers.front().owner);
}

NothingToDo nothing_to_do(const Facts& facts, const Explanation& explanation) {
  NothingToDo nothing;
  if (!explain::rules::is_end_of_loop(facts)) nothing.takers = explain::largest_time_takers(facts);
  const bool has_takers = !nothing.takers.empty();
  nothing.remark = has_too_little_data(facts)
                       ? std::string("The trace holds too little to say what to change.")
                       : remark_on_gains(facts, explanation);
  if (!facts.main_device && has_takers)
    nothing.remark = "Most of the CPU's time belongs to:";
  else if (has_takers)
    nothing.remark += " Most of the time belongs to:";
  const Finding* headline = headline_finding(explanation);
  // If the device is not a GPU, its own rows say more than the calls of the CPU.
  const bool is_of_device = facts.vendor && headline && !headline->action.pattern.empty();
  if (const std::string advice = owner_advice(facts); !advice.empty() && !is_of_device) {
    nothing.next = advice;
    return nothing;
  }
  if (is_of_device) {
    nothing.next = fmt::format("To go further: {}", rounded_sentence(headline->action));
    return nothing;
  }
  if (!facts.main_device && explain::step_owners(facts)) return nothing;
  if (!headline || has_too_little_data(facts) || headline->try_next.empty()) return nothing;
  nothing.next = fmt::format("To go further: {}", headline->action.pattern.empty()
                                                      ? headline->try_next.front()
                                                      : rounded_sentence(headline->action));
  return nothing;
}

std::vector<std::string> nothing_to_do_lines(const Facts& facts, const Explanation& explanation,
                                             bool markdown) {
  if (facts.steady_wall_ns() == 0) return {};
  const NothingToDo nothing = nothing_to_do(facts, explanation);
  std::vector<std::string> lines{nothing.remark};
  for (const explain::TimeTaker& taker : nothing.takers)
    lines.push_back(fmt::format("{} ({}): {}", rounded_time(taker.per_step_ns),
                                rounded_percent(taker.ratio),
                                rounded_sentence(taker.what, markdown)));
  if (!nothing.next.empty()) lines.push_back(nothing.next);
  return lines;
}

}  // namespace lanescope::report
