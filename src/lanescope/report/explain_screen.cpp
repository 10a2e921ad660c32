#include "lanescope/report/explain_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lanescope/explain/owner_words.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/predicted_gains.h"
#include "lanescope/explain/rules/copying.h"
#include "lanescope/explain/rules/cpu_waits.h"
#include "lanescope/explain/rules/rules.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using analysis::HostPart;
using analysis::IdleCause;
using explain::Explanation;
using explain::Facts;
using explain::Finding;
using explain::FindingKind;
using explain::Sentence;
using explain::Suggestion;
using explain::Value;

constexpr std::size_t kMostWallLines = 4, kBarWidth = 30;
constexpr std::size_t kNarrow = 80, kWide = 100, kScreenLines = 24;

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Three digits: 1.23, 12.3, 123, 1234.
std::string three_digits(double value) {
  return value < 9.995   ? fmt::format("{:.2f}", value)
         : value < 99.95 ? fmt::format("{:.1f}", value)
                         : fmt::format("{:.0f}", value);
}

std::string rounded_value(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNs:
      return rounded_time(value.integer);
    case Value::Kind::kRatio:
      return rounded_percent(value.real);
    default:
      return value_text(value);
  }
}

// The parts of a step's time that are not empty.
std::vector<WallLine> all_wall_parts(const Facts& facts) {
  std::vector<WallLine> parts;
  const auto add = [&](const char* label, std::int64_t total_ns) {
    if (total_ns > 0)
      parts.push_back(
          {label, facts.per_step(total_ns),
           static_cast<double>(total_ns) / static_cast<double>(facts.steady_wall_ns())});
  };
  if (facts.vendor) {
    const analysis::VendorWall& wall = facts.vendor_wall;
    const std::string device = facts.vendor->name;
    add((device + " computing").c_str(), wall.compute_ns);
    add("collectives, no compute", wall.exposed_communication_ns);
    add("copies, no compute", wall.exposed_copy_ns);
    add((device + " idle or waiting").c_str(), wall.idle_ns());
    return parts;
  }
  if (!facts.main_device) {
    for (std::size_t i = 0; i < analysis::kHostPartCount; ++i)
      add(host_part_text(static_cast<HostPart>(i)), facts.cpu_wall.part_ns[i]);
    return parts;
  }
  const auto& part = facts.wall.partition;
  add("GPU compute", part.compute_ns);
  add("communication, no compute", part.exposed_communication_ns);
  add("copies, no compute", part.exposed_copy_ns);
  const std::int64_t for_cpu_ns =
      facts.device().timeline.has_launches() ? facts.waiting_for_cpu_ns() : 0;
  const std::int64_t for_batch_ns =
      for_cpu_ns == 0 ? 0
                      : std::min(for_cpu_ns, explain::rules::waiting_for_batches(facts).time_ns);
  const std::int64_t between_ns = facts.wall.idle_by(IdleCause::kBetweenQueued);
  const std::int64_t profiler_ns = facts.wall.idle_by(IdleCause::kProfiler);
  add("idle: waiting for a batch", for_batch_ns);
  const std::int64_t for_copies_ns =
      std::min(for_cpu_ns - for_batch_ns, explain::rules::waiting_in_copies_ns(facts));
  add("idle: CPU makes a copy", for_copies_ns);
  add("idle: waiting for the CPU", for_cpu_ns - for_batch_ns - for_copies_ns);
  add("idle: between queued kernels", between_ns);
  add("idle: the profiler's own work", profiler_ns);
  const analysis::Gap* edge = explain::rules::find_edge_gap(facts);
  const std::int64_t unknown_ns = part.idle_ns - for_cpu_ns - between_ns - profiler_ns;
  const std::int64_t edge_ns = edge ? std::min(unknown_ns, edge->end_ns - edge->start_ns) : 0;
  add("not recorded (edge of trace)", edge_ns);
  add("idle: cause unknown", unknown_ns - edge_ns);
  return parts;
}

// What its rule declares; findings of no rule have none of these properties.
bool has_property(const Finding& finding, bool explain::Rule::*property) {
  const explain::Rule* rule = explain::find_rule(finding.rule);
  return rule && rule->*property;
}

// The finding of the verdict. Its advice is shown if there is no other.
const Finding* headline_finding(const Explanation& explanation) {
  for (const Finding& finding : explanation.findings)
    if (is_headline(explanation, finding) || has_property(finding, &explain::Rule::is_cpu_headline))
      return &finding;
  return nullptr;
}

// Work is missing in the trace, or there is hardly any.
bool has_too_little_data(const Facts& facts) {
  return facts.selection.lacks_gpu_work || facts.trace->import_stats().is_truncated() ||
         (facts.main_device && explain::rules::is_thin(facts));
}

// The largest of so many owners that a change is known for; null: none.
const explain::Owner* owner_with_remedy(const Facts& facts, std::size_t shown) {
  const explain::Owners* owners = explain::step_owners(facts);
  if (!owners || has_too_little_data(facts)) return nullptr;
  for (std::size_t i = 0; i < owners->owners.size() && i < shown; ++i)
    if (explain::has_remedy(facts, owners->owners[i])) return &owners->owners[i];
  return nullptr;
}

// What the evidence suggests for that owner, else what to record for the largest; empty: nothing.
std::string owner_advice(const Facts& facts) {
  const explain::Owners* owners = explain::step_owners(facts);
  if (!owners || owners->owners.empty() || has_too_little_data(facts)) return {};
  const explain::Owner* known = owner_with_remedy(facts, 3);
  return rounded_sentence(explain::advice_text(facts, known ? *known : owners->owners.front()));
}

class Screen {
 public:
  Screen(const Facts& facts, const Explanation& explanation, const ScreenOptions& options)
      : facts_(facts), explanation_(explanation), options_(options) {
    width_ = std::clamp(options.width, kNarrow, kWide);
  }

  std::string run() {
    write_headline();
    for (const std::string& line : damage_lines(explanation_)) out_ += wrapped("", line, width_);
    write_wall();
    const std::vector<Suggestion> first = explain::do_first(facts_, explanation_);
    const std::size_t after_wall = out_.size();
    if (first.empty())
      write_nothing_to_do();
    else
      write_first(first);
    if (!first.empty()) write_owners();
    write_rest(first);
    if (!first.empty()) insert_largest_kernels(after_wall);
    return std::move(out_);
  }

 private:
  std::string bold(const std::string& text) const {
    return options_.colour ? fmt::format("\x1b[1m{}\x1b[0m", text) : text;
  }

  void write_headline() {
    std::string text = wrapped("", rounded_sentence(explanation_.headline), width_);
    text.pop_back();  // the newline stays outside of the colour
    out_ += fmt::format("{}\n", bold(text));
  }

  void write_wall() {
    const std::vector<WallLine> lines = wall_lines(facts_);
    if (lines.empty()) return;
    std::size_t label_width = text_length(wall_subject(facts_));
    for (const WallLine& line : lines)
      label_width = std::max(label_width, text_length(line.label) + 2);
    out_ += fmt::format("\n{}  {}\n", pad_right(wall_subject(facts_), label_width),
                        pad_left(rounded_time(facts_.per_step(facts_.steady_wall_ns())), 8));
    for (const WallLine& line : lines) write_wall_line(line, label_width - 2);
    if (const std::string base = base_text(facts_, explanation_); !base.empty())
      out_ += wrapped("", base, width_);
  }

  void write_wall_line(const WallLine& line, std::size_t label_width) {
    const auto filled =
        static_cast<std::size_t>(std::lround(std::clamp(line.ratio, 0.0, 1.0) * kBarWidth));
    out_ += fmt::format("  {}  {}  {}{}\n", pad_right(line.label, label_width),
                        pad_left(rounded_time(line.per_step_ns), 8),
                        pad_left(rounded_percent(line.ratio), 5),
                        filled == 0 ? "" : "  " + std::string(filled, '#'));
  }

  void write_first(const std::vector<Suggestion>& first) {
    out_ += fmt::format("\n{}\n", bold("Do first"));
    std::size_t number = 0;
    for (const Suggestion& each : first) {
      const std::string gain = gain_text(each);
      std::string verdict = rounded_sentence(each.verdict);
      if (verdict.ends_with('.')) verdict.pop_back();
      const std::string start = fmt::format("{}. ", ++number);
      out_ += gain.empty() ? wrapped(start, verdict, width_) : with_gain(start, verdict, gain);
      out_ += wrapped("   ", action_text(each), width_);
    }
    if (const std::string together = together_text(explanation_, first); !together.empty())
      out_ += wrapped("", together, width_);
  }

  // With the gain right-aligned on the first line; the lines below have the whole width.
  std::string with_gain(const std::string& start, const std::string& verdict,
                        const std::string& gain) const {
    const std::string text = wrapped(start, verdict, width_ - text_length(gain) - 2);
    const std::string line = text.substr(0, text.find('\n'));
    std::string rest = verdict.substr(std::min(verdict.size(), line.size() - start.size()));
    rest.erase(0, rest.find_first_not_of(' '));
    return pad_right(line, width_ - text_length(gain)) + gain + "\n" +
           (rest.empty() ? "" : wrapped(std::string(start.size(), ' '), rest, width_));
  }

  // Where the screen has room for it.
  void insert_largest_kernels(std::size_t place) {
    const std::string text = largest_kernels_text(facts_);
    if (text.empty()) return;
    const std::string lines = wrapped("", text, width_);
    if (line_count(out_) + line_count(lines) <= kScreenLines) out_.insert(place, lines);
  }

  // Who holds the time, whatever the findings say of it.
  void write_owners() {
    std::string lines;
    std::size_t shown_owners = 0;
    // A title, the rest on up to two lines, and blank lines.
    constexpr std::size_t kKept = 5;
    const auto shown = line_count(out_);
    std::size_t room = shown + kKept < kScreenLines ? kScreenLines - shown - kKept : 0;
    for (const explain::TimeTaker& taker : explain::largest_time_takers(facts_)) {
      const std::string line = taker_line(taker);
      const auto height = line_count(line);
      if (height > room) break;
      room -= height;
      lines += line;
      ++shown_owners;
    }
    if (lines.empty()) return;
    out_ += fmt::format("\n{}\n",
                        bold(facts_.steps.marked ? "Who holds the step" : "Who holds the time"));
    out_ += lines;
    const explain::Owner* owner = owner_with_remedy(facts_, shown_owners);
    if (!owner) return;
    const std::string advice = rounded_sentence(explain::advice_text(facts_, *owner));
    const std::string text = wrapped("  ", advice, width_);
    if (out_.find(advice) == std::string::npos && line_count(text) <= room) out_ += text;
  }

  // A long name begins further left rather than leave the screen.
  std::string taker_line(const explain::TimeTaker& taker) const {
    std::string text =
        wrapped(fmt::format("  {}  {}  ", pad_left(rounded_time(taker.per_step_ns), 8),
                            pad_left(rounded_percent(taker.ratio), 5)),
                rounded_sentence(taker.what), width_);
    std::string fitted;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, end - at);
      const std::size_t length = text_length(line), spaces = line.find_first_not_of(' ');
      if (length > width_ && spaces != std::string::npos)
        line.erase(0, std::min(spaces, length - width_));
      fitted += line + "\n";
      at = end + 1;
    }
    return fitted;
  }

  void write_nothing_to_do() {
    if (facts_.steady_wall_ns() == 0) return;
    out_ += fmt::format("\n{}\n", bold(kNothingTitle));
    const NothingToDo nothing = nothing_to_do(facts_, explanation_);
    out_ += wrapped("  ", nothing.remark, width_);
    for (const explain::TimeTaker& taker : nothing.takers) out_ += taker_line(taker);
    if (!nothing.next.empty()) out_ += wrapped("  ", nothing.next, width_);
  }

  void write_rest(const std::vector<Suggestion>& first) {
    std::string text = rest_text(explanation_, first);
    if (!options_.full_hint.empty()) {
      if (text.empty()) text = "Everything that was checked";
      // Not wrapped: a command on two lines cannot be copied.
      const std::string hint = one_line(options_.full_hint);
      text += text_length(text) + 2 + text_length(hint) <= width_ ? fmt::format(": {}\n", hint)
                                                                  : fmt::format(":\n  {}\n", hint);
    } else if (!text.empty()) {
      text += "\n";
    }
    if (!text.empty()) out_ += fmt::format("\n{}", text);
  }

  const Facts& facts_;
  const Explanation& explanation_;
  const ScreenOptions& options_;
  std::size_t width_ = kNarrow;
  std::string out_;
};

}  // namespace

std::string rounded_time(std::int64_t ns) {
  if (ns < 0) return fmt::format("-{}", rounded_time(-ns));
  const auto value = static_cast<double>(ns);
  if (ns >= 999'500'000) return fmt::format("{} s", three_digits(value / 1e9));
  if (ns >= 999'500) return fmt::format("{} ms", three_digits(value / 1e6));
  return fmt::format("{} us", three_digits(value / 1e3));
}

std::string rounded_percent(double ratio) {
  if (ratio > 0 && ratio < 0.005) return "<1 %";
  if (ratio < 1 && ratio >= 0.995) return ">99 %";
  return fmt::format("{:.0f} %", ratio * 100);
}

std::string rounded_sentence(const Sentence& sentence, bool markdown) {
  return fill_sentence(sentence, markdown, rounded_value);
}

std::vector<WallLine> wall_lines(const Facts& facts) {
  if (facts.steady_wall_ns() == 0) return {};
  std::vector<WallLine> parts = all_wall_parts(facts);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const WallLine& a, const WallLine& b) { return a.ratio > b.ratio; });
  if (parts.size() <= kMostWallLines) return parts;
  WallLine rest{"everything else", 0, 0};
  for (std::size_t i = kMostWallLines - 1; i < parts.size(); ++i) {
    rest.per_step_ns += parts[i].per_step_ns;
    rest.ratio += parts[i].ratio;
  }
  parts.resize(kMostWallLines - 1);
  parts.push_back(std::move(rest));
  return parts;
}

std::string wall_subject(const Facts& facts) {
  if (!facts.steps.marked || facts.selection.steady.empty()) return "recording";
  const auto number = [&](std::size_t index) {
    return facts.steps.steps[index].number.value_or(0);
  };
  if (facts.selection.steady.size() == 1)
    return fmt::format("step {}", number(facts.selection.steady.front()));
  return fmt::format("step (mean of {}-{})", number(facts.selection.steady.front()),
                     number(facts.selection.steady.back()));
}

std::vector<std::string> damage_lines(const Explanation& explanation, bool markdown) {
  std::vector<std::string> lines;
  for (const Finding& finding : explanation.findings)
    if (has_property(finding, &explain::Rule::warns_of_loss) && !finding.brief.pattern.empty())
      lines.push_back(fmt::format("Warning: {}", rounded_sentence(finding.brief, markdown)));
  return lines;
}

std::string rest_text(const Explanation& explanation, const std::vector<Suggestion>& first) {
  std::size_t findings = 0, notes = 0;
  for (std::size_t i = 0; i < explanation.findings.size(); ++i) {
    const Finding& finding = explanation.findings[i];
    const bool shown = is_headline(explanation, finding) ||
                       std::any_of(first.begin(), first.end(),
                                   [&](const Suggestion& s) { return s.finding == i; });
    if (shown) continue;
    ++(finding.kind == FindingKind::kTrust ? notes : findings);
  }
  std::string text;
  if (findings > 0)
    text = fmt::format("{}{} finding{}", findings, first.empty() ? "" : " more",
                       findings == 1 ? "" : "s");
  if (notes > 0)
    text += fmt::format("{}{} note{} on the recording", text.empty() ? "" : ", ", notes,
                        notes == 1 ? "" : "s");
  return text;
}

std::string gain_text(const Suggestion& suggestion) {
  if (suggestion.is_predicted) {
    const std::string gain = rounded_time(suggestion.gain_ns);
    const std::string most = rounded_time(suggestion.at_most_ns);
    return fmt::format("predicted {}{}", gain,
                       gain == most ? "" : fmt::format(" (at most {})", most));
  }
  return suggestion.gain_ns <= 0 ? ""
                                 : fmt::format("up to {} ({})", rounded_time(suggestion.gain_ns),
                                               rounded_percent(suggestion.gain_ratio));
}

std::string together_text(const Explanation& explanation, const std::vector<Suggestion>& first) {
  const auto together = explain::gain_together(explanation, first);
  if (!together) return {};
  std::string numbers;
  for (std::size_t i = 0; i < together->numbers.size(); ++i)
    numbers += fmt::format("{}{}",
                           i == 0                              ? ""
                           : i + 1 == together->numbers.size() ? " and "
                                                               : ", ",
                           together->numbers[i]);
  return fmt::format("Fixes {} together: predicted {}.", numbers, rounded_time(together->gain_ns));
}

// Of a step in which the GPU waits for the CPU: the GPU's work, if that is nearly all of the step
// without the profiler, and most of the waiting is what recording cost. 0: it is not so.
std::int64_t busy_without_profiler_ns(const Facts& facts, const explain::StepBase& base) {
  if (!facts.main_device) return 0;
  const std::int64_t busy_ns = facts.per_step(facts.wall.partition.busy_ns());
  const std::int64_t waiting_ns = facts.per_step(facts.waiting_for_cpu_ns());
  const bool waits = waiting_ns * 5 >= base.recorded_ns;  // a fifth of the step
  const bool is_nearly_all = busy_ns * 5 >= base.step_ns * 4;
  const bool is_the_profilers = (base.recorded_ns - base.step_ns) * 2 > waiting_ns;
  return waits && is_nearly_all && is_the_profilers ? busy_ns : 0;
}

std::string base_text(const Facts& facts, const Explanation& explanation) {
  if (!explanation.gains) return {};
  const explain::StepBase& base = explanation.gains->base();
  const char* what = facts.steps.marked ? "a step" : "this";
  // Recording did not delay what limits the step.
  if (base.recorded_ns - base.step_ns < base.recorded_ns / 50)
    return fmt::format("Without the profiler {} takes about as long.", what);
  std::string text = fmt::format("Without the profiler {} takes about {} +- {}", what,
                                 rounded_time(base.step_ns), rounded_time(base.error_ns));
  // A limit that the recording made: a reader of the verdict alone would look at the CPU.
  if (const std::int64_t busy_ns = std::min(busy_without_profiler_ns(facts, base), base.step_ns);
      busy_ns > 0)
    text += fmt::format(
        ", and the GPU works for {} of it ({}): most of the waiting above is the profiler's",
        rounded_time(busy_ns),
        rounded_percent(static_cast<double>(busy_ns) / static_cast<double>(base.step_ns)));
  return text + ". Gains are of that.";
}

std::string largest_kernels_text(const Facts& facts) {
  if (!facts.main_device || facts.wall.partition.compute_ns * 2 < facts.wall.partition.wall_ns)
    return {};
  std::string text;
  for (const explain::TimeTaker& taker : explain::largest_kernels(facts))
    text += fmt::format("{}{} {}", text.empty() ? "Most of the GPU's time: " : "; ",
                        rounded_sentence(explain::say("{}", {taker.what.values.front()})),
                        rounded_percent(taker.ratio));
  return text.empty() ? text : text + ".";
}

NothingToDo nothing_to_do(const Facts& facts, const Explanation& explanation) {
  NothingToDo nothing;
  nothing.takers = explain::largest_time_takers(facts);
  const bool has_takers = !nothing.takers.empty();
  nothing.remark = has_too_little_data(facts)
                       ? std::string("The trace holds too little to say what to change.")
                       : fmt::format("No finding would save 1 % of the {} or more.",
                                     facts.steps.marked ? "step" : "recording");
  if (!facts.main_device && has_takers)
    nothing.remark = "Most of the CPU's time belongs to:";
  else if (has_takers)
    nothing.remark += " Most of the time belongs to:";
  if (const std::string advice = owner_advice(facts); !advice.empty()) {
    nothing.next = advice;
    return nothing;
  }
  const Finding* headline = headline_finding(explanation);
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

std::string action_text(const Suggestion& suggestion, bool markdown) {
  std::string action = rounded_sentence(suggestion.action, markdown);
  if (!suggestion.place.pattern.empty())
    action += fmt::format(" ({})", rounded_sentence(suggestion.place, markdown));
  return action;
}

std::string explanation_screen(const Facts& facts, const Explanation& explanation,
                               const ScreenOptions& options) {
  return Screen(facts, explanation, options).run();
}

}  // namespace lanescope::report
