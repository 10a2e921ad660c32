#include "lanescope/explain/do_first.h"

#include <algorithm>
#include <string>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/finding_place.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/explain/rule.h"
#include "lanescope/explain/rules/step_state.h"
#include "lanescope/explain/shared_time.h"
#include "lanescope/explain/step_path.h"

namespace lanescope::explain {
namespace {

constexpr double kLeastDoFirstShare = 0.05;
constexpr std::size_t kEnoughSteps = 3;  // to know what each of them pays

bool is_general(const Finding& finding) {
  const Rule* rule = find_rule(finding.rule);
  return finding.kind == FindingKind::kBound || (rule && rule->is_general);
}

bool is_predicted(const Finding& finding) { return finding.gain.state == Gain::State::kPredicted; }

// What orders costs: the gain that is shown.
std::int64_t gain_ns(const Explanation& explanation, const Finding& finding) {
  return explanation.gains ? explanation.gains->shown_ns(finding) : finding.at_stake_ns;
}

// Waits after which the GPU idles for less than a twentieth of a step that the GPU bounds: without them the CPU would only be
// further ahead. If a replay predicts a gain, that counts.
bool is_wait_without_loss(const Explanation& explanation, const Finding& finding) {
  if (!explanation.gains || finding.idle_after_waits_ns < 0 || is_predicted(finding)) return false;
  return static_cast<double>(finding.idle_after_waits_ns) <
             kWorthwhileGain * static_cast<double>(explanation.gains->base().step_ns) &&
         is_gpu_bound_without_profiler(*explanation.gains);
}

bool is_cost(const Explanation& explanation, const Finding& finding) {
  if (finding.kind != FindingKind::kCost || finding.at_stake_ns <= 0 || finding.try_next.empty())
    return false;
  if (!explanation.gains) return finding.at_stake_ratio >= kLeastGain;
  if (is_wait_without_loss(explanation, finding)) return false;
  return static_cast<double>(gain_ns(explanation, finding)) >=
         kLeastGain * static_cast<double>(explanation.gains->base().step_ns);
}

// Launches in general: a CUDA graph would spare them all, whatever makes them.
bool is_of_all_launches(const Finding& finding) {
  const Rule* rule = find_rule(finding.rule);
  return rule && (rule->fix == Fix::kCudaGraph || rule->same_time_as == Fix::kCudaGraph);
}

// Says where time is lost and not why: what bounds the step, idle time or launches in general, rules that name no cause, and
// fixes whose gain is only a bound.
bool is_vague(const Finding& finding) { return !names_cause(finding) || finding.gain_is_bound; }

// Both are upper limits of one time: launches in general, and calls of the program that make most of these launches.
bool is_bound_of_launches(const Finding& calls, const Finding& launches) {
  return calls.gain_is_bound && is_of_cpu(calls) && !is_of_all_launches(calls) &&
         is_of_all_launches(launches) && !is_predicted(launches);
}

// A cost that names its cause comes before a vague one that gains less beyond it than the cause does: of the GPU's waiting
// for the CPU, the cause removes its part. Where nothing predicts what the vague one gains, a third of its bound is enough.
// Where neither is predicted, two thirds of what is lost between many small kernels, or of calls that can be left out; and a
// wait needs two thirds, too, because what the GPU is idle after it may be the launches that follow.
bool comes_before_vague(const Explanation& explanation, const Finding& cause,
                        const Finding& vague) {
  if (cause.kind != FindingKind::kCost || is_general(cause) ||
      (is_vague(cause) && !is_bound_of_launches(cause, vague)))
    return false;
  const std::int64_t gain = gain_ns(explanation, cause), vague_ns = gain_ns(explanation, vague);
  if (!is_predicted(vague)) {
    const Rule* rule = find_rule(cause.rule);
    const bool is_wait = rule && rule->fix == Fix::kRemoveSync;
    const Rule* vague_rule = find_rule(vague.rule);
    const bool leaves_out_calls =
        names_cause(vague) &&
        ((vague_rule && vague_rule->fix == Fix::kCalls) || !vague.spared_calls.empty());
    const bool needs_more = !is_predicted(cause) && !is_general(vague) &&
                            (is_of_all_launches(vague) || is_wait || leaves_out_calls);
    return gain * 3 >= vague_ns * (needs_more ? 2 : 1);
  }
  const std::int64_t shared_ns = is_of_cpu(cause) ? gain : std::min(gain, cause.waiting_ns);
  return gain >= vague_ns - shared_ns;
}

void put_causes_before_vague(const Explanation& explanation, std::vector<std::size_t>& found) {
  const std::vector<Finding>& findings = explanation.findings;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Finding& vague = findings[found[i]];
    if (!is_vague(vague)) continue;
    std::stable_partition(
        found.begin() + static_cast<std::ptrdiff_t>(i), found.end(),
        [&](std::size_t other) { return comes_before_vague(explanation, findings[other], vague); });
    while (i < found.size() && !is_vague(findings[found[i]])) ++i;
  }
}

// The recording says that the CPU is the limit, and without the profiler it may be the GPU: more than two thirds of that step are
// the GPU's work, within the error of the estimate.
bool may_be_gpu_bound(const Explanation& explanation) {
  if (!explanation.gains) return false;
  const std::int64_t busy_ns = explanation.gains->busy_ns(),
                     step_ns = explanation.gains->mean_step_ns();
  return busy_ns * 3 > step_ns * 2 &&
         is_gpu_bound(busy_ns, step_ns - explanation.gains->base().cpu_error_ns);
}

// In such a step, what launches gain is the least sure. A cost of the GPU's work that may gain two thirds as much comes first.
void put_gpu_work_before_launches(const Explanation& explanation, std::vector<std::size_t>& found) {
  if (!may_be_gpu_bound(explanation)) return;
  const std::vector<Finding>& findings = explanation.findings;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Finding& launches = findings[found[i]];
    if (launches.kind != FindingKind::kBound && !is_of_all_launches(launches)) continue;
    std::stable_partition(
        found.begin() + static_cast<std::ptrdiff_t>(i), found.end(), [&](std::size_t other) {
          const Finding& work = findings[other];
          const Rule* rule = find_rule(work.rule);
          return work.kind == FindingKind::kCost && rule && rule->fix == Fix::kGpu &&
                 !is_general(work) &&
                 gain_ns(explanation, work) * 3 >= gain_ns(explanation, launches) * 2;
        });
    return;
  }
}

// The GPU's waiting for the CPU in a step, whatever the cause.
std::int64_t waiting_ns(const Facts& facts, const Explanation& explanation) {
  if (!explanation.gains) return facts.per_step(facts.waiting_for_cpu_ns());
  return explanation.gains->base().step_ns - explanation.gains->busy_ns();
}

// Launches in general, where a fix that is already chosen leaves less than a quarter of the waiting that a graph would
// remove.
bool is_removed_by_cause(const Facts& facts, const Explanation& explanation,
                         const std::vector<Suggestion>& chosen, const Finding& launches) {
  if (!is_of_all_launches(launches)) return false;
  const std::int64_t all_ns = waiting_ns(facts, explanation);
  return std::any_of(chosen.begin(), chosen.end(), [&](const Suggestion& each) {
    const Finding& cause = explanation.findings[each.finding];
    if (cause.kind != FindingKind::kCost || is_general(cause) || is_of_all_launches(cause))
      return false;
    const std::int64_t removed_ns =
        is_of_cpu(cause) ? each.gain_ns : std::min(each.gain_ns, cause.waiting_ns);
    return (all_ns - removed_ns) * 4 < gain_ns(explanation, launches);
  });
}

// An operator is in one line only: what it does, or that the CPU waits in it.
bool names_same_operator(const Sentence& a, const Sentence& b) {
  const auto is_operator = [](const Sentence& sentence) {
    return !sentence.values.empty() && sentence.pattern.starts_with("{} ") &&
           sentence.values.front().kind == Value::Kind::kName;
  };
  return is_operator(a) && is_operator(b) && a.values.front().text == b.values.front().text;
}

// Findings that may be acted on, in their order, the bound at the place that its stake gives it.
std::vector<std::size_t> candidates_of(const Explanation& explanation, bool has_start_of_program) {
  const std::vector<Finding>& findings = explanation.findings;
  std::vector<std::size_t> found;
  std::int64_t largest_cost_ns = 0;
  std::size_t cost_count = 0;
  for (const Finding& finding : findings) {
    if (!is_cost(explanation, finding) || is_general(finding)) continue;
    ++cost_count;
    largest_cost_ns = std::max(largest_cost_ns, finding.at_stake_ns);
  }
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = findings[i];
    const bool is_worth_it =
        !explanation.gains ||
        static_cast<double>(gain_ns(explanation, finding)) >=
            kLeastGain * static_cast<double>(explanation.gains->base().step_ns);
    const bool is_unexplained =
        is_general(finding) && finding.kind != FindingKind::kTrust && finding.at_stake_ns > 0 &&
        finding.at_stake_ratio >= kLeastGain && is_worth_it &&
        (largest_cost_ns * 4 < finding.at_stake_ns ||
         (cost_count < kMostSuggestions && largest_cost_ns * 2 < finding.at_stake_ns));
    // What happened once is to be acted on where its rule says how.
    const bool leads = finding.leads && !finding.brief.pattern.empty();
    const bool fills_memory =
        finding.kind == FindingKind::kMemory && !finding.brief.pattern.empty();
    if (finding.kind == FindingKind::kEnds || leads || fills_memory ||
        (is_cost(explanation, finding) && !is_general(finding)) || is_unexplained)
      found.push_back(i);
  }
  // What happened once comes first where it is most of the recording. But without marked steps the
  // recording begins with the program: then what each of several steps pays comes first.
  const bool has_cost_of_steps =
      has_start_of_program && std::any_of(found.begin(), found.end(), [&](std::size_t i) {
        return findings[i].kind == FindingKind::kCost && !is_general(findings[i]) &&
               findings[i].at_stake_ratio >= kLeastDoFirstShare;
      });
  const auto comes_before = [&](std::size_t a, std::size_t b) {
    const auto rank = [&](const Finding& each) {
      if (each.kind == FindingKind::kEnds) return 0;
      if (each.kind == FindingKind::kMemory) return 1;
      return each.leads ? (has_cost_of_steps ? 3 : 1) : 2;
    };
    const Finding &left = findings[a], &right = findings[b];
    return rank(left) != rank(right)
               ? rank(left) < rank(right)
               : rank(left) == 2 && gain_ns(explanation, left) > gain_ns(explanation, right);
  };
  sort_rows(found.begin(), found.end(), comes_before);
  put_causes_before_vague(explanation, found);
  put_gpu_work_before_launches(explanation, found);
  return found;
}

// A sentence begins with a capital, code does not: "keep shapes" but "torch.compile", "fused=True".
std::string capitalized(std::string advice) {
  const std::size_t end = std::min(advice.find_first_of(" ,:;"), advice.size());
  const bool is_word =
      std::all_of(advice.begin(), advice.begin() + static_cast<std::ptrdiff_t>(end),
                  [](char c) { return c >= 'a' && c <= 'z'; });
  if (is_word && end > 0) advice[0] = static_cast<char>(advice[0] - 'a' + 'A');
  return advice;
}

Sentence action_of(const Finding& finding) {
  if (!finding.action.pattern.empty()) return finding.action;
  return finding.try_next.empty() ? Sentence{}
                                  : say("{}", {text(capitalized(finding.try_next.front()))});
}

bool is_same(const Sentence& a, const Sentence& b) {
  if (a.pattern != b.pattern || a.values.size() != b.values.size()) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    if (a.values[i].text != b.values[i].text || a.values[i].integer != b.values[i].integer)
      return false;
  return true;
}

// Another candidate's fix removes the same time, and says so more exactly (Rule::same_time_as).
bool is_fixed_by_another(const Explanation& explanation, const std::vector<std::size_t>& candidates,
                         const Finding& finding) {
  const Rule* rule = find_rule(finding.rule);
  if (!rule || rule->same_time_as == Fix::kNone) return false;
  return std::any_of(candidates.begin(), candidates.end(), [&](std::size_t other) {
    const Rule* its = find_rule(explanation.findings[other].rule);
    return its && its->fix == rule->same_time_as;
  });
}

bool is_told_at(const Facts& facts, const Finding& its, SliceId event) {
  if (const SliceId launch = facts.links.launch_of[raw(event)]; launch != kNone<SliceId>)
    event = launch;
  return facts.trace->slices().track[raw(event)] == its.told_thread &&
         inside(its.told_windows, facts.trace->start_ns(event));
}

// Half or more of these events' time.
bool are_half_told(const Facts& facts, const Finding& its, const std::vector<SliceId>& events) {
  std::int64_t told_ns = 0, all_ns = 0;
  for (const SliceId event : events) {
    all_ns += facts.trace->dur_ns(event);
    if (is_told_at(facts, its, event)) told_ns += facts.trace->dur_ns(event);
  }
  return told_ns * 2 >= all_ns;
}

// Does the finding lie in the function that `its` is about? All that is known of its cost decides, else its first event, which has
// most of it.
bool is_told_by(const Facts& facts, const Finding& its, const Finding& finding) {
  if (its.told_windows.empty() || its.at_stake_ns < finding.at_stake_ns) return false;
  if (!finding.spared_calls.empty()) return are_half_told(facts, its, finding.spared_calls);
  if (!finding.spared_windows.empty())
    return finding.spared_thread == its.told_thread &&
           overlap_of_windows(finding.spared_windows, its.told_windows) * 2 >=
               length_of_windows(finding.spared_windows);
  if (!finding.all_work.empty()) return are_half_told(facts, its, finding.all_work);
  const auto first =
      std::find_if(finding.evidence.begin(), finding.evidence.end(),
                   [](const Evidence& each) { return each.slice != kNone<SliceId>; });
  return first != finding.evidence.end() && is_told_at(facts, its, first->slice);
}

// A suggestion that is already chosen is about all that a function does, and this finding lies in it.
bool is_told_with_function(const Facts& facts, const Explanation& explanation,
                           const std::vector<Suggestion>& chosen, const Finding& finding) {
  if (is_general(finding) || is_of_all_launches(finding)) return false;
  return std::any_of(chosen.begin(), chosen.end(), [&](const Suggestion& earlier) {
    return is_told_by(facts, explanation.findings[earlier.finding], finding);
  });
}

// A step that took longer than the others, where another candidate is the cause of more than half of that.
bool is_caused_by_another(const Explanation& explanation,
                          const std::vector<std::size_t>& candidates, const Finding& finding) {
  const Rule* rule = find_rule(finding.rule);
  if (!rule || !rule->is_about_long_step) return false;
  return std::any_of(candidates.begin(), candidates.end(), [&](std::size_t other) {
    const std::vector<Explained>& parts = explanation.findings[other].explains;
    return std::any_of(parts.begin(), parts.end(), [&](const Explained& part) {
      return part.rule == finding.rule && part.at_stake_ns * 2 > finding.at_stake_ns;
    });
  });
}

// Launches in general, where another candidate says which launches, and what to do about them.
bool is_explained_by_launches(const Explanation& explanation,
                              const std::vector<std::size_t>& candidates, const Finding& finding) {
  if (!is_general(finding)) return false;
  return std::any_of(candidates.begin(), candidates.end(), [&](std::size_t other) {
    const Finding& its = explanation.findings[other];
    const Rule* rule = find_rule(its.rule);
    return rule && !is_general(its) &&
           (rule->fix == Fix::kCudaGraph || rule->same_time_as == Fix::kCudaGraph) &&
           gain_ns(explanation, its) * 4 >= gain_ns(explanation, finding);
  });
}

// Does the sentence name this place already, as "aten::item makes the CPU wait" does?
bool names(const Sentence& sentence, const Sentence& place) {
  if (place.values.empty() ||
      !(place.pattern.starts_with("in ") || place.pattern.starts_with("at ")))
    return false;
  return std::any_of(sentence.values.begin(), sentence.values.end(), [&](const Value& value) {
    return value.kind == Value::Kind::kName && value.text == place.values.front().text;
  });
}

// How much of its gain is the CPU's time: all of it, or what the GPU waits of the time at stake.
double part_of_cpu(const Finding& finding) {
  if (is_of_cpu(finding)) return 1;
  return std::clamp(static_cast<double>(finding.waiting_ns) /
                        static_cast<double>(std::max<std::int64_t>(1, finding.at_stake_ns)),
                    0.0, 1.0);
}

// True: the fix shortens some part of the CPU's time. Two such fixes may save the same time, such as that of code without events
// and a function in it.
bool is_part_of_cpu_time(const Finding& finding) {
  const Rule* rule = find_rule(finding.rule);
  return rule && rule->fix == Fix::kCpu && finding.spared_calls.empty();
}

// Every gain is of the step without the profiler, and at most as long.
void use_base(const GainModel& gains, const Finding& finding, Suggestion& suggestion) {
  suggestion.gain_ns = gains.at_most_ns(finding);
  if (is_predicted(finding)) {
    suggestion.is_predicted = true;
    suggestion.at_most_ns = suggestion.gain_ns;
    suggestion.gain_ns = finding.gain.gain_ns;
    suggestion.error_ns = error_of_gain(gains, finding, suggestion.gain_ns);
    if (suggestion.error_ns > suggestion.gain_ns) {  // no prediction
      suggestion.is_predicted = false;
      suggestion.gain_ns = suggestion.at_most_ns;
    }
  }
  if (!suggestion.is_predicted && finding.gain.spread_ns > 0) {
    suggestion.is_range = true;
    suggestion.at_most_ns = suggestion.gain_ns;
    suggestion.gain_ns = finding.gain.gain_ns;
    suggestion.error_ns = finding.gain.spread_ns;
  } else if (!suggestion.is_predicted) {
    suggestion.error_ns = error_of_gain(gains, finding, suggestion.gain_ns);
    if (suggestion.error_ns > suggestion.gain_ns) suggestion.error_ns = 0;  // as unsure as the step
  }
  const std::int64_t step_ns = gains.base().step_ns;
  suggestion.step_error_ns = gains.base().cpu_error_ns;
  suggestion.gain_ratio =
      step_ns <= 0 ? 0 : static_cast<double>(suggestion.gain_ns) / static_cast<double>(step_ns);
}

}  // namespace

std::int64_t error_of_gain(const GainModel& gains, const Finding& finding, std::int64_t gain_ns) {
  constexpr std::int64_t kLeastPart = 5;  // a fifth
  const StepBase& base = gains.base();
  const std::int64_t waiting_ns = std::max<std::int64_t>(1, base.step_ns - gains.busy_ns());
  const double share = std::min(
      1.0, part_of_cpu(finding) * static_cast<double>(gain_ns) / static_cast<double>(waiting_ns));
  const auto error_ns = static_cast<std::int64_t>(share * static_cast<double>(base.cpu_error_ns));
  return error_ns * kLeastPart >= gain_ns ? error_ns : 0;
}

bool names_cause(const Finding& finding) {
  const Rule* rule = find_rule(finding.rule);
  return !is_general(finding) && !is_of_all_launches(finding) &&
         !(rule && rule->names_no_cause && !finding.names_cause);
}

std::optional<Together> gain_together(const Explanation& explanation,
                                      const std::vector<Suggestion>& first) {
  Together together;
  std::vector<const Finding*> findings;
  bool has_cpu_time = false;
  std::int64_t largest_ns = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Finding& finding = explanation.findings[first[i].finding];
    const bool is_cpu_time = is_part_of_cpu_time(finding);
    if (!first[i].is_predicted || (is_cpu_time && has_cpu_time)) continue;
    has_cpu_time = has_cpu_time || is_cpu_time;
    largest_ns = std::max(largest_ns, first[i].gain_ns);
    together.numbers.push_back(i + 1);
    findings.push_back(&finding);
  }
  if (findings.size() < 2) return std::nullopt;
  const Gain gain = explanation.gains->gain_of(findings);
  if (gain.state != Gain::State::kPredicted) return std::nullopt;
  together.gain_ns = std::max(gain.gain_ns, largest_ns);
  return together;
}

std::vector<Suggestion> do_first(const Facts& facts, const Explanation& explanation) {
  std::vector<Suggestion> chosen;
  if (rules::is_end_of_loop(facts)) return chosen;
  const std::int64_t wall_ns = facts.per_step(facts.steady_wall_ns());
  const std::vector<std::size_t> candidates = candidates_of(
      explanation, facts.steps.found && facts.selection.steady.size() >= kEnoughSteps);
  for (const std::size_t index : candidates) {
    const Finding& finding = explanation.findings[index];
    if (is_fixed_by_another(explanation, candidates, finding) ||
        is_caused_by_another(explanation, candidates, finding) ||
        is_explained_by_launches(explanation, candidates, finding) ||
        is_removed_by_cause(facts, explanation, chosen, finding) ||
        is_told_with_function(facts, explanation, chosen, finding))
      continue;
    Suggestion next;
    next.finding = index;
    next.action = action_of(finding);
    if (std::any_of(chosen.begin(), chosen.end(), [&](const Suggestion& earlier) {
          return is_same(earlier.action, next.action);
        }))
      continue;
    if (finding.kind == FindingKind::kBound || finding.kind == FindingKind::kCost) {
      next.gain_ns = std::min(finding.at_stake_ns, wall_ns);
      next.gain_ratio = std::clamp(finding.at_stake_ratio, 0.0, 1.0);
      if (explanation.gains) use_base(*explanation.gains, finding, next);
    }
    next.verdict = finding.brief.pattern.empty() ? finding.verdict : finding.brief;
    if (std::any_of(chosen.begin(), chosen.end(), [&](const Suggestion& earlier) {
          return names_same_operator(earlier.verdict, next.verdict);
        }))
      continue;
    next.place = place_of_finding(facts, finding, is_of_all_launches(finding));
    if (names(next.verdict, next.place) || names(next.action, next.place)) next.place = {};
    chosen.push_back(std::move(next));
    if (chosen.size() == kMostSuggestions) break;
  }
  return chosen;
}

}  // namespace lanescope::explain
