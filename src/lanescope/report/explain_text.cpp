#include "lanescope/report/explain_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lanescope/explain/predicted_gains.h"
#include "lanescope/report/explain_screen.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/nothing_to_do.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/screen_wall.h"
#include "lanescope/report/text_format.h"
#include "lanescope/simulate/simulated_trace.h"

namespace lanescope::report {
namespace {

using analysis::HostPart;
using analysis::IdleCause;
using explain::Evidence;
using explain::Explanation;
using explain::Facts;
using explain::Finding;
using explain::FindingKind;
using explain::RuleRun;

constexpr std::size_t kFullBarWidth = 30, kLabelWidth = 34;
constexpr std::size_t kMostNamedRules = 8;  // longer lists are only counted

class ExplanationText {
 public:
  ExplanationText(const Facts& facts, const Explanation& explanation,
                  ExplanationTextOptions options)
      : facts_(facts),
        explanation_(explanation),
        markdown_(options.markdown),
        every_rule_(options.every_rule) {}

  std::string run() {
    if (markdown_) out_ += "# What bounds a step\n\n";
    if (const std::string by = simulate::simulated_by(*facts_.trace); !by.empty())
      out_ += wrapped("", fmt::format("Simulated by {}.", by)) + "\n";
    out_ += wrapped("", sentence_text(explanation_.headline, markdown_));
    if (explanation_.is_answer) {  // answers come first
      write_asked();
      write_findings();
      write_wall();
    } else {
      write_wall();
      write_do_first();
      write_findings();
      write_not_checked();
    }
    return std::move(out_);
  }

 private:
  void heading(std::string_view text) {
    out_ += markdown_ ? fmt::format("\n## {}\n\n", text) : fmt::format("\n{}\n", text);
  }

  void bar(std::string_view label, std::int64_t part_ns) {
    const std::int64_t wall = facts_.steady_wall_ns();
    const auto filled = static_cast<std::size_t>(
        static_cast<double>(part_ns) / static_cast<double>(wall) * kFullBarWidth + 0.5);
    out_ += fmt::format(
        "  {} {}{} {} {}\n", pad_right(label, kLabelWidth),
        std::string(std::min(filled, kFullBarWidth), '#'),
        std::string(kFullBarWidth - std::min(filled, kFullBarWidth), '.'),
        pad_left(format_time_ns(facts_.per_step(part_ns)), 10),
        pad_left(format_percent(static_cast<double>(part_ns), static_cast<double>(wall)), 8));
  }

  void write_wall() {
    if (facts_.steady_wall_ns() == 0) return;
    heading(wall_title_text(facts_));
    if (markdown_) out_ += "```\n";
    out_ += wrapped("  ", steady_steps_text(facts_));
    if (facts_.main_device)
      write_device_parts();
    else
      for (std::size_t i = 0; i < analysis::kHostPartCount; ++i)
        if (facts_.cpu_wall.part_ns[i] > 0)
          bar(host_part_text(static_cast<HostPart>(i)), facts_.cpu_wall.part_ns[i]);
    out_ += fmt::format("  {} {} {} {}\n", pad_right("wall", kLabelWidth),
                        std::string(kFullBarWidth, ' '),
                        pad_left(format_time_ns(facts_.per_step(facts_.steady_wall_ns())), 10),
                        pad_left("100.00%", 8));
    const std::vector<std::int64_t> lengths = facts_.steady_lengths_ns();
    if (lengths.size() > 1) {
      const auto statistics = analysis::step_statistics(lengths);
      out_ += fmt::format(
          "  steps: shortest {}, median {}, longest {}{}\n", format_time_ns(statistics.shortest_ns),
          format_time_ns(statistics.median_ns), format_time_ns(statistics.longest_ns),
          statistics.slow.empty()
              ? ""
              : fmt::format("; slow: {}", slow_steps_text(facts_, statistics.slow)));
    }
    if (const std::string base = base_text(facts_, explanation_); !base.empty())
      out_ += wrapped("  ", base);
    if (markdown_) out_ += "```\n";
    write_other_devices();
  }

  void write_device_parts() {
    const auto& part = facts_.wall.partition;
    bar("compute", part.compute_ns);
    if (part.exposed_communication_ns > 0)
      bar("communication alone", part.exposed_communication_ns);
    if (part.exposed_copy_ns > 0) bar("copies and memsets alone", part.exposed_copy_ns);
    bar("idle", part.idle_ns);
    for (std::size_t i = 0; i < facts_.wall.idle.size(); ++i)
      if (facts_.wall.idle[i] > 0)
        bar(fmt::format("- {}", idle_cause_text(static_cast<IdleCause>(i))), facts_.wall.idle[i]);
  }

  void write_other_devices() {
    for (std::size_t i = 0; i < facts_.devices.size(); ++i) {
      if (i == *facts_.main_device) continue;
      explain::WallTimes sum;
      for (const std::size_t index : facts_.selection.steady) sum += facts_.devices[i].walls[index];
      out_ += fmt::format(
          "  device {}: busy {} of {} per step (the rules below look at device {})\n",
          facts_.devices[i].timeline.device,
          format_time_ns(facts_.per_step(sum.partition.busy_ns())),
          format_time_ns(facts_.per_step(sum.partition.wall_ns)), facts_.device().timeline.device);
    }
  }

  // The list of the first screen, with the numbers of the findings below.
  void write_do_first() {
    const auto first = explain::do_first(facts_, explanation_);
    if (first.empty()) {
      const auto lines = nothing_to_do_lines(facts_, explanation_, markdown_);
      if (!lines.empty()) heading(nothing_title(facts_));
      for (const std::string& line : lines) out_ += wrapped(markdown_ ? "- " : "  ", line);
      return;
    }
    heading(do_first_title(facts_, explanation_, first));
    std::size_t number = 0;
    for (const explain::Suggestion& each : first) {
      std::string verdict = rounded_sentence(each.verdict, markdown_);
      if (verdict.ends_with('.')) verdict.pop_back();
      if (const std::string gain = gain_text(each); !gain.empty())
        verdict += fmt::format(": {}", gain);
      out_ += wrapped(fmt::format("{}. ", ++number),
                      fmt::format("{} (finding {})", verdict, each.finding + 1));
      out_ += wrapped("   ", action_text(each, markdown_));
    }
    if (const std::string together = together_text(explanation_, first); !together.empty())
      out_ += wrapped(markdown_ ? "\n" : "", together);
  }

  void write_findings() {
    std::size_t number = 0;
    bool any_cost = false;
    for (std::size_t i = 0; i < explanation_.findings.size(); ++i) {
      const Finding& finding = explanation_.findings[i];
      any_cost = any_cost || finding.kind == FindingKind::kCost ||
                 (finding.kind == FindingKind::kBound && finding.at_stake_ns > 0);
      const std::string title = finding_group_title(finding);
      if (i == 0 || title != finding_group_title(explanation_.findings[i - 1])) heading(title);
      write_finding(++number, finding);
    }
    if (!any_cost && facts_.main_device && !explanation_.is_answer)
      out_ += "\nNo rule found time to save.\n";
  }

  void write_finding(std::size_t number, const Finding& finding) {
    const std::string first = fmt::format("{}. ", number);
    const std::string indent(first.size(), ' ');
    const std::string verdict = sentence_text(finding.verdict, markdown_);
    out_ += wrapped(first,
                    is_headline(explanation_, finding) ? "The verdict above, in detail:" : verdict);
    const bool is_per_step =
        finding.kind == FindingKind::kBound || finding.kind == FindingKind::kCost;
    std::string about = markdown_ ? fmt::format("`{}`", finding.rule) : finding.rule;
    if (finding.at_stake_ns > 0 && is_per_step)
      about += fmt::format("; at stake: up to {}{} ({:.1f}%)", format_time_ns(finding.at_stake_ns),
                           facts_.steps.marked ? " per step" : "", finding.at_stake_ratio * 100);
    if (finding.at_stake_ns > 0 && is_per_step && explanation_.gains)
      if (const std::int64_t most_ns = explanation_.gains->at_most_ns(finding);
          most_ns < finding.at_stake_ns && !is_headline(explanation_, finding))
        about +=
            fmt::format(", at most {} of the step without the profiler", format_time_ns(most_ns));
    about += predicted_text(finding);
    about += fmt::format("; {} confidence from {} {}", confidence_name(finding.confidence),
                         format_count(finding.sample_count), sample_noun_text(finding));
    out_ += wrapped(indent + "[", about + "]");
    const std::string bullet = markdown_ ? "- " : "";
    for (const auto& line : finding.arithmetic)
      out_ += wrapped(indent + bullet + "= ", sentence_text(line, markdown_));
    for (const Evidence& evidence : finding.evidence)
      out_ += wrapped(indent + bullet + "> ", evidence_text(evidence));
    for (const std::string& advice : finding.try_next)
      out_ += wrapped(indent + bullet + "try: ", advice);
  }

  std::string predicted_text(const Finding& finding) const {
    const explain::Gain& gain = finding.gain;
    if (gain.state == explain::Gain::State::kUnsure)
      return "; no prediction: it depends on what recording cost";
    if (gain.state != explain::Gain::State::kPredicted) return {};
    const double ratio =
        static_cast<double>(gain.gain_ns) /
        static_cast<double>(std::max<std::int64_t>(1, explanation_.gains->base().step_ns));
    // With an error as large as the gain, the first screen shows the time at stake instead.
    const std::int64_t error_ns =
        explain::error_of_gain(*explanation_.gains, finding, gain.gain_ns);
    if (ratio >= explain::kLeastGain && error_ns > gain.gain_ns)
      return fmt::format("; no prediction: a replay gains {}, and its error is {}",
                         format_time_ns(gain.gain_ns), format_time_ns(error_ns));
    if (ratio >= explain::kLeastGain)
      return fmt::format("; predicted gain: {} ({:.1f}%), then bound by {}",
                         format_time_ns(gain.gain_ns), ratio * 100, gain.then_bound_by);
    return fmt::format("; predicted gain: nothing, without the profiler the step is bound by {}",
                       gain.then_bound_by);
  }

  std::string evidence_text(const Evidence& evidence) const {
    const std::string text = sentence_text(evidence.text, markdown_);
    if (evidence.slice == kNone<SliceId>) return text;
    const Trace& trace = *facts_.trace;
    return fmt::format("{} [at {}, {} long, {}]", text,
                       format_time_ns(trace.start_ns(evidence.slice) - trace.window_start_ns()),
                       format_time_ns(trace.dur_ns(evidence.slice)),
                       track_place(trace.track(evidence.slice)));
  }

  void write_asked() {
    heading("What you asked");
    for (const RuleRun& run : runs_found_first(explanation_)) {
      out_ += wrapped(markdown_ ? "- " : "  ", fmt::format("{}: {}", run.id, run.question));
      out_ += wrapped("    ", rule_answer_text(explanation_, run));
    }
  }

  // "a, b, c", or how many.
  std::string rules_text(const std::vector<std::string>& ids) {
    if (every_rule_ || ids.size() <= kMostNamedRules)
      return fmt::format("{}", fmt::join(ids, ", "));
    has_counted_ = true;
    return fmt::format("{} rules", ids.size());
  }

  void write_not_checked() {
    std::vector<std::pair<std::string, std::vector<std::string>>>
        missing;  // what is missing, ids of rules
    std::vector<std::string> quiet, covered;
    for (const RuleRun& run : explanation_.runs) {
      if (run.state == RuleRun::State::kNotChecked) {
        auto same = std::find_if(missing.begin(), missing.end(),
                                 [&](const auto& each) { return each.first == run.missing; });
        if (same == missing.end()) same = missing.insert(same, {run.missing, {}});
        same->second.push_back(run.id);
      }
      if (run.state == RuleRun::State::kQuiet) quiet.push_back(run.id);
      if (run.state == RuleRun::State::kCovered)
        covered.push_back(fmt::format("{} (by {})", run.id, run.covered_by));
    }
    if (missing.empty() && quiet.empty() && covered.empty()) return;
    heading("What else was checked");
    const std::string bullet = markdown_ ? "- " : "  ";
    if (!covered.empty())
      out_ += wrapped(bullet, fmt::format("part of another finding: {}", fmt::join(covered, ", ")));
    if (!quiet.empty())
      out_ += wrapped(bullet, "no issue, or below the threshold: " + rules_text(quiet));
    for (const auto& [what, ids] : missing)
      out_ += wrapped(bullet, fmt::format("not checked: {}; needs {}", rules_text(ids), what));
    if (has_counted_) out_ += wrapped(bullet, "lanescope explain --all names every rule");
  }

  const Facts& facts_;
  const Explanation& explanation_;
  bool markdown_, every_rule_;
  bool has_counted_ = false;
  std::string out_;
};

}  // namespace

std::string sentence_text(const explain::Sentence& sentence, bool markdown) {
  return fill_sentence(sentence, markdown, value_text);
}

std::string explanation_text(const Facts& facts, const Explanation& explanation,
                             ExplanationTextOptions options) {
  return ExplanationText(facts, explanation, options).run();
}

std::string rule_list_text() {
  std::string out;
  std::size_t width = 0;
  for (const explain::Rule* rule : explain::all_rules())
    width = std::max(width, std::string_view(rule->id).size());
  for (const explain::Rule* rule : explain::all_rules())
    out += fmt::format("{}  {}{}\n", pad_right(rule->id, width), rule->question,
                       rule->only_on_request ? " (only on request)" : "");
  return out;
}

}  // namespace lanescope::report
