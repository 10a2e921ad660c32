#include "lanescope/explain/run_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "lanescope/analysis/trace_info.h"
#include "lanescope/base/share_work.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/declared_rules.h"
#include "lanescope/explain/left_out_steps.h"
#include "lanescope/explain/missing_operators.h"
#include "lanescope/explain/rules/double_backward.h"
#include "lanescope/explain/rules/gloo_waits.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/explain/rules/start_up_calls.h"
#include "lanescope/explain/rules/uncompiled_code.h"
#include "lanescope/explain/sentences.h"

namespace lanescope::explain {
namespace {

// The rules in the order of the list, and by id.
struct RuleTable {
  std::vector<const Rule*> in_order;
  std::map<std::string_view, const Rule*> by_id;
};

const RuleTable& rule_table() {
  static const RuleTable table = [] {
    RuleTable made;
    for (const Rule* rule : declared_rules()) {
      made.in_order.push_back(rule);
      made.by_id.emplace(rule->id, rule);
    }
    sort_rows(made.in_order.begin(), made.in_order.end(), [](const Rule* a, const Rule* b) {
      return a->order != b->order ? a->order < b->order
                                  : std::string_view(a->id) < std::string_view(b->id);
    });
    return made;
  }();
  return table;
}

Outcome check(const Rule& rule, const Facts& facts) {
  if (const Need* need = rule.needs.first_unmet(facts)) return NotChecked{need->missing};
  if (rule.only_if && !rule.only_if(facts)) return Quiet{};
  if (const Need* need = rule.then_needs.first_unmet(facts)) return NotChecked{need->missing};
  return rule.run(facts);
}

bool contains(const std::vector<std::string>& ids, std::string_view id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// A browser's trace, or one of any other program.
bool is_of_another_kind(const Trace& trace) {
  const auto is_known = [](const Category& category) {
    return category.kind != CategoryKind::kOther && category.kind != CategoryKind::kNone &&
           category.kind != CategoryKind::kFlow;
  };
  return trace.slices().size() > 0 &&
         std::none_of(trace.categories().begin(), trace.categories().end(), is_known);
}

Sentence cpu_headline(const Facts& facts) {
  if (facts.trace->import_stats().is_truncated())
    return say(
        "The file was cut, and what is left holds no GPU work: it does not show what bounds a "
        "step.");
  if (rules::is_end_of_loop(facts))
    return say(
        "The only step is over after {}, almost without operators: the loop ended in it. Record "
        "whole steps: schedule(..., repeat=1), or fewer active steps.",
        {ns(facts.steady_wall_ns())});
  for (const Rule* rule : all_rules()) {
    if (!rule->is_cpu_headline) continue;
    const Outcome outcome = check(*rule, facts);
    const auto* finding = std::get_if<Finding>(&outcome);
    if (!finding) continue;
    Sentence headline = finding->verdict;
    if (!facts.vendor)
      headline.pattern =
          (rules::used_gpu(facts) ? "The program used a GPU, but the trace holds none of its work. "
                                  : "The trace holds no GPU work. ") +
          headline.pattern;
    return headline;
  }
  if (const std::string writer = analysis::other_program_of(*facts.trace); !writer.empty())
    return say(
        "This is a trace of {}, not of PyTorch: explain reads no such rows. lanescope view shows "
        "it, and lanescope sql reads it.",
        {text(writer)});
  if (is_of_another_kind(*facts.trace))
    return say(facts,
               "This is not a trace of PyTorch or of a GPU: of its {} [slice|slices] none has a "
               "category that explain knows. lanescope info shows what it holds.",
               {count(facts.trace->slices().size())});
  if (facts.trace->slices().size() <= 1)
    return say("The trace is empty: nothing was recorded between the profiler's start and stop.");
  return say("The trace holds no GPU work: it does not show what bounds a step on a GPU.");
}

// What is left to say when no rule names the bound.
Sentence plain_headline(const Facts& facts) {
  const Trace& trace = *facts.trace;
  if (!facts.main_device) {
    const bool called =
        std::any_of(trace.categories().begin(), trace.categories().end(),
                    [](const Category& category) { return is_api_call(category.kind); });
    return called && !facts.vendor
               ? say("The trace holds calls to the GPU but no GPU work: it does not say what "
                     "the GPU did.")
               : cpu_headline(facts);
  }
  const auto& part = facts.wall.partition;
  if (trace.import_stats().is_truncated())
    return say("The trace does not show what bounds a step.");
  if (rules::is_thin(facts))
    return say("There is too little GPU work in the trace to say what bounds a step.");
  if (part.idle_ns * 2 > part.wall_ns) {
    const std::int64_t unexplained = facts.wall.idle_by(analysis::IdleCause::kWaiting) +
                                     facts.wall.idle_by(analysis::IdleCause::kUnknown);
    return say(facts, "[limit|Idle:] of the {} [a step took], the GPU worked {} ({}); {}.",
               {linked(ns(facts.per_step(part.wall_ns)), shows::kStep),
                linked(ns(facts.per_step(part.busy_ns())), shows::kBusy),
                linked(ratio(part.busy_ns(), part.wall_ns), shows::kBusy),
                text(unexplained * 2 > part.idle_ns
                         ? "for most of the rest, the trace does not show what it waited for"
                         : "no single cause explains the rest")});
  }
  const std::string limit = part.compute_ns * 4 >= part.wall_ns * 3 ? "[limit|Mostly GPU-bound:]"
                                                                    : "[no limit|No single limit:]";
  return say(facts,
             limit +
                 " of the {} [a step took], the GPU computed for {}, only moved data or "
                 "communicated for {}, and was idle for {}.",
             {linked(ns(facts.per_step(part.wall_ns)), shows::kStep),
              linked(ratio(part.compute_ns, part.wall_ns), shows::kCompute),
              linked(ratio(part.exposed_communication_ns + part.exposed_copy_ns, part.wall_ns),
                     shows::kMoves),
              linked(ratio(part.idle_ns, part.wall_ns), shows::kIdle)});
}

// The gap at the edge of the recording: the GPU was most likely busy with work that was not
// recorded. Shares of costs are of the wall without it, except for rules that count it.
void leave_out_edge_gap(const Facts& facts, const analysis::Gap* edge, Finding& finding) {
  if (!edge || finding.kind != FindingKind::kCost) return;
  const std::int64_t rest = facts.wall.partition.wall_ns - (edge->end_ns - edge->start_ns);
  if (rest <= 0) return;
  finding.at_stake_ratio = std::min(1.0, static_cast<double>(finding.at_stake_ns) *
                                             static_cast<double>(facts.selection.steady.size()) /
                                             static_cast<double>(rest));
}

// A note on the recording never replaces a cost of the program.
bool may_cover(FindingKind exact, FindingKind general) {
  return exact == general || exact == FindingKind::kCost || exact == FindingKind::kBound ||
         (exact == FindingKind::kTrust && general == FindingKind::kOnce);
}

void leave_out_covered(Explanation& result) {
  std::vector<std::string> covered;
  for (const Finding& general : result.findings) {
    if (general.kind != FindingKind::kCost && general.kind != FindingKind::kOnce &&
        general.kind != FindingKind::kTrust)
      continue;
    const Finding* best = nullptr;
    std::int64_t best_ns = 0;
    for (const Finding& exact : result.findings)
      for (const Explained& part : exact.explains)
        if (may_cover(exact.kind, general.kind) && general.rule == part.rule &&
            part.at_stake_ns > best_ns) {
          best = &exact;
          best_ns = part.at_stake_ns;
        }
    if (!best || static_cast<double>(best_ns) < find_rule(general.rule)->covered_from *
                                                    static_cast<double>(general.at_stake_ns))
      continue;
    covered.push_back(general.rule);
    for (RuleRun& run : result.runs)
      if (run.id == general.rule) {
        run.state = RuleRun::State::kCovered;
        run.covered_by = best->rule;
      }
  }
  std::erase_if(result.findings,
                [&](const Finding& finding) { return contains(covered, finding.rule); });
}

// What comes first: what limits the step, what ends the program, what this recording mostly
// consists of; then by kind, and in a kind what gives back most.
int group_of(const Finding& finding) {
  if (finding.kind <= FindingKind::kEnds) return static_cast<int>(finding.kind);
  return finding.leads ? static_cast<int>(FindingKind::kCost) : static_cast<int>(finding.kind) + 1;
}

bool is_about_long_step(std::string_view id) {
  const Rule* rule = find_rule(id);
  return rule && rule->is_about_long_step;
}

// How much of the long step this finding explains.
std::int64_t part_of_long_step_ns(const Finding& finding) {
  std::int64_t part_ns = 0;
  for (const Explained& part : finding.explains)
    if (is_about_long_step(part.rule)) part_ns = std::max(part_ns, part.at_stake_ns);
  return part_ns;
}

// Longer than all steps without the one that it lies in.
bool leads(const Facts& facts, const Finding& finding) {
  if (finding.kind != FindingKind::kOnce || facts.selection.one_chosen) return false;
  // Without steps: most of the recording.
  if (!facts.main_device && !facts.steps.marked && !facts.steps.found)
    return finding.at_stake_ns * 2 > facts.cpu_wall.wall_ns;
  if (!facts.steps.marked || !facts.main_device) return false;
  const auto& steps = facts.steps.steps;
  std::optional<std::size_t> own;
  const bool is_long = is_about_long_step(finding.rule);
  if (is_long || part_of_long_step_ns(finding) > 0) own = facts.selection.long_step;
  const SliceId slice = finding.evidence.empty() ? kNone<SliceId> : finding.evidence.front().slice;
  for (std::size_t i = 0; !own && slice != kNone<SliceId> && i < steps.size(); ++i) {
    const std::int64_t time_ns = facts.trace->start_ns(slice);
    if (time_ns >= steps[i].cpu_start_ns && time_ns < steps[i].cpu_end_ns) own = i;
  }
  // The long step is compared with the steady ones: a first step that starts the program up, or does the same, is none.
  const bool is_of_long_step = is_long || part_of_long_step_ns(finding) * 2 > finding.at_stake_ns;
  std::int64_t others_ns = 0;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (i != own &&
        !(is_of_long_step && facts.selection.reason(i) == analysis::LeftOutReason::kStartUp))
      others_ns += facts.device().windows[i].length_ns();
  return finding.at_stake_ns > others_ns;
}

void put_in_order(const Facts& facts, std::vector<Finding>& findings) {
  for (Finding& finding : findings) finding.leads = leads(facts, finding);
  sort_rows(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    if (group_of(a) != group_of(b)) return group_of(a) < group_of(b);
    return a.at_stake_ns > b.at_stake_ns;
  });
}

// What would be wrong if some of the GPU work of the steps were missing.
bool is_about_a_mean(const Outcome& outcome) {
  const auto* finding = std::get_if<Finding>(&outcome);
  return finding && (finding->kind == FindingKind::kBound || finding->kind == FindingKind::kCost ||
                     finding->kind == FindingKind::kWhere);
}

// Whole threads, streams or steps may be in the part of a file that is missing: what bounds a
// step, and where the GPU or the CPU was idle, does not follow from the rest.
bool rests_on_lost_work(const Facts& facts, const Rule& rule, const Outcome& outcome) {
  const auto* finding = std::get_if<Finding>(&outcome);
  return finding && facts.trace->import_stats().is_truncated() &&
         (finding->kind == FindingKind::kBound || !rule.survives_cut);
}

// The verdict on what bounds a step: of a finding in `result`, or of a rule that was not run.
std::optional<Sentence> bound_headline(const Facts& facts, const Explanation& result) {
  std::optional<Finding> best;
  const auto consider = [&](const Finding& finding) {
    if (finding.kind == FindingKind::kBound && (!best || finding.at_stake_ns > best->at_stake_ns))
      best = finding;
  };
  for (const Rule* rule : all_rules()) {
    if (!rule->bounds_step) continue;
    const bool asked = std::any_of(result.runs.begin(), result.runs.end(),
                                   [&](const RuleRun& run) { return run.id == rule->id; });
    if (asked) continue;
    const Outcome outcome = check(*rule, facts);
    if (rests_on_lost_work(facts, *rule, outcome)) continue;
    if (const auto* finding = std::get_if<Finding>(&outcome)) consider(*finding);
  }
  for (const Finding& finding : result.findings) consider(finding);
  return best ? std::optional(best->verdict) : std::nullopt;
}

}  // namespace

std::span<const Rule* const> all_rules() { return rule_table().in_order; }

const Rule* find_rule(std::string_view id) {
  const auto found = rule_table().by_id.find(id);
  return found == rule_table().by_id.end() ? nullptr : found->second;
}

namespace {

// A rule looks at the facts alone, so rules do not wait for each other.
struct Look {
  const Rule* rule;
  Outcome outcome;
  std::int64_t time_ns = 0;
};
std::vector<Look> look(const Facts& facts, const RuleOptions& options) {
  constexpr std::size_t kSmallTrace = 20'000;  // slices: all rules together take milliseconds
  std::vector<Look> looks;
  for (const Rule* rule : all_rules())
    if ((options.only.empty() ? !rule->only_on_request : contains(options.only, rule->id)) &&
        !contains(options.off, rule->id))
      looks.push_back({rule, Quiet{}});
  const bool is_small = options.threads == 0 && facts.trace->slices().size() < kSmallTrace;
  share_work(looks.size(), is_small ? 1 : options.threads, [&](std::size_t i) {
    const auto began = std::chrono::steady_clock::now();
    looks[i].outcome = check(*looks[i].rule, facts);
    looks[i].time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                           std::chrono::steady_clock::now() - began)
                           .count();
  });
  return looks;
}

// Where nothing else separates start-up from the rest. Longer than all that follows: the recording
// shows mostly that.
Sentence first_use_note(const Facts& facts) {
  if (!facts.main_device || facts.steps.marked || facts.steps.found) return {};
  const std::int64_t context_ns = rules::start_up_calls(facts).context_ns;
  if (context_ns <= facts.steady_wall_ns()) return {};
  return say("Not counted: {} before that, in which the GPU was used for the first time.",
             {linked(ns(context_ns), rules::kStartUpCallsRule)});
}

// The first of two iterations is not counted, though it took less than nine tenths of the second.
Sentence short_first_note(const Facts& facts) {
  if (!facts.steps.found || facts.steps.steps.size() != 2 || facts.selection.one_chosen ||
      facts.selection.reason(0) != analysis::LeftOutReason::kStartUp ||
      facts.selection.steady.size() != 1)
    return {};
  const std::int64_t first_ns = facts.step_window(0).length_ns();
  if (wide(first_ns) * 10 >= wide(facts.step_window(1).length_ns()) * 9) return {};
  return say("Only the second of two steps is counted; the first took {}.",
             {linked(ns(first_ns), facts.steps.steps[0].slice)});
}

// What precedes the iterations that are measured, if it is longer than all of them.
Sentence long_start_up_note(const Facts& facts) {
  if (Sentence note = short_first_note(facts); !note.pattern.empty()) return note;
  const auto before = time_before_iterations(facts);
  if (!before || before->is_other_phase || before->window.length_ns() <= facts.steady_wall_ns())
    return {};
  const analysis::StepRange& first = facts.steps.steps[facts.selection.steady.front()];
  const Value length = linked(ns(before->window.length_ns()), first.slice);
  if (!before->is_start_up && facts.steps.steps.size() == 2)
    return say("Only the second of two steps is counted: the first, {}, may be start-up.",
               {length});
  if (!before->is_start_up)
    return say("The first {}, up to step {}, are left out.",
               {length, step_number(facts, facts.selection.steady.front())});
  // What takes long in each later step, too, is no start-up.
  const bool is_again = facts.main_device && !rules::start_up_calls(facts).repeated.empty();
  return say(
      is_again ? "The first {} are left out." : "The first {} are start-up and are left out.",
      {length});
}

// What the numbers leave out, and how the steps were found. `tells_gloo`: the headline is about gloo already.
void append_notes(const Facts& facts, bool tells_gloo, Sentence& headline) {
  const auto add = [&](const Sentence& note) {
    if (note.pattern.empty()) return;
    headline.pattern += " ";
    append(headline, note);
  };
  if (const Sentence iterations = found_iterations_note(facts); !iterations.pattern.empty()) {
    add(iterations);
    append(headline, outer_loop_note(facts));
    add(other_phase_note(facts));
  }
  add(long_start_up_note(facts));
  add(first_use_note(facts));
  add(long_step_note(facts));
  add(turns_note(facts));
  if (!tells_gloo) add(rules::gloo_waits_note(facts));
  add(missing_operators_note(facts));
  if (facts.trace->import_stats().is_truncated() && facts.main_device)
    headline.pattern +=
        " The end of the file is missing, and whole threads or streams may be missing with it.";
  add(cut_steps_note(facts));
}

}  // namespace

Result<Explanation> run_rules(const Facts& facts, const RuleOptions& options) {
  for (const auto* ids : {&options.only, &options.off})
    for (const std::string& id : *ids)
      if (!find_rule(id))
        return Error{Errc::kInvalidArgument, fmt::format("expected a rule's id, found '{}'", id)};

  Explanation result;
  const analysis::Gap* edge = rules::find_edge_gap(facts);
  const rules::UncompiledCode& uncompiled = rules::find_uncompiled_code(facts);
  for (auto& [rule, outcome, time_ns] : look(facts, options)) {
    RuleRun run{rule->id, rule->question, RuleRun::State::kQuiet, {}, {}, time_ns};
    if (facts.selection.lacks_gpu_work && is_about_a_mean(outcome))
      outcome = NotChecked{"all GPU work of a step (it is missing from the end of the trace)"};
    if (rests_on_lost_work(facts, *rule, outcome))
      outcome = NotChecked{rules::need::kWholeFile.missing};
    if (auto* finding = std::get_if<Finding>(&outcome)) {
      if (facts.trace->import_stats().is_truncated() && is_about_a_mean(outcome))
        finding->confidence = Confidence::kLow;
      run.state = RuleRun::State::kFound;
      finding->rule = rule->id;
      if (uncompiled) rules::leave_out_compiling(facts, uncompiled, *finding);
      rules::leave_out_compiling_of_backward(facts, *finding);
      if (!rule->counts_edge_gap) leave_out_edge_gap(facts, edge, *finding);
      if (finding->sample_noun.empty()) finding->sample_noun = step_noun(facts);
      result.findings.push_back(std::move(*finding));
    } else if (const auto* missing = std::get_if<NotChecked>(&outcome)) {
      run.state = RuleRun::State::kNotChecked;
      run.missing = missing->missing;
    }
    result.runs.push_back(std::move(run));
  }
  result.is_answer = !options.only.empty();
  if (!result.is_answer) leave_out_covered(result);
  put_in_order(facts, result.findings);
  const std::optional<Sentence> bound =
      facts.selection.lacks_gpu_work
          ? say("The trace does not show what bounds a step: GPU work of it is missing.")
          : bound_headline(facts, result);
  const Sentence gloo = bound ? Sentence() : rules::gloo_headline(facts);
  result.headline = bound ? *bound : gloo.pattern.empty() ? plain_headline(facts) : gloo;
  result.notes_from = result.headline.pattern.size();
  result.note_values_from = result.headline.values.size();
  append_notes(facts, !gloo.pattern.empty(), result.headline);
  return result;
}

}  // namespace lanescope::explain
