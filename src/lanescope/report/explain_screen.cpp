#include "lanescope/report/explain_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "lanescope/explain/happened_once.h"
#include "lanescope/explain/owner_advice.h"
#include "lanescope/explain/shared_time.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/explain_words.h"
#include "lanescope/report/nothing_to_do.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/screen_wall.h"
#include "lanescope/report/text_format.h"
#include "lanescope/simulate/simulated_trace.h"

namespace lanescope::report {
namespace {

using explain::Explanation;
using explain::Facts;
using explain::Finding;
using explain::FindingKind;
using explain::Suggestion;

constexpr std::size_t kBarWidth = 30;
constexpr std::size_t kNarrow = 80, kWide = 100, kScreenLines = 24;

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
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
    const std::string once = rounded_sentence(explain::happened_once(facts_, explanation_, first));
    if (!once.empty()) once_ = wrapped("", once, width_);
    if (first.empty()) {
      write_nothing_to_do();
      write_rest(first);
      return std::move(out_);
    }
    const std::size_t after_wall = out_.size();
    const std::string kernels = largest_kernels_text(facts_);
    if (!kernels.empty()) kernels_ = wrapped("", kernels, width_);
    write_rest(write_causes(first));
    insert_largest_kernels(after_wall);
    return std::move(out_);
  }

 private:
  std::string bold(const std::string& text) const {
    return options_.colour ? fmt::format("\x1b[1m{}\x1b[0m", text) : text;
  }

  void write_headline() {
    if (const std::string by = simulate::simulated_by(*facts_.trace); !by.empty())
      out_ += wrapped("", fmt::format("Simulated by {}.", by), width_) + "\n";
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
    // Indent, label, time, share, and two blanks before each.
    const std::size_t text_width = 2 + label_width + 2 + 8 + 2 + 5 + 2;
    const std::size_t room = width_ > text_width ? width_ - text_width : 0;
    const double bar_width = static_cast<double>(std::min(kBarWidth, room));
    const auto filled =
        static_cast<std::size_t>(std::lround(std::clamp(line.ratio, 0.0, 1.0) * bar_width));
    out_ += fmt::format("  {}  {}  {}{}\n", pad_right(line.label, label_width),
                        pad_left(rounded_time(line.per_step_ns), 8),
                        pad_left(rounded_percent(line.ratio), 5),
                        filled == 0 ? "" : "  " + std::string(filled, '#'));
  }

  std::string suggestion_lines(const Suggestion& suggestion, std::size_t number) const {
    const std::string gain = gain_text(suggestion);
    std::string verdict = rounded_sentence(suggestion.verdict);
    if (verdict.ends_with('.')) verdict.pop_back();
    const std::string start = fmt::format("{}. ", number);
    return (gain.empty() ? wrapped(start, verdict, width_) : with_gain(start, verdict, gain)) +
           wrapped("   ", action_text(suggestion), width_);
  }

  static bool names_owner(const Suggestion& suggestion, const explain::TimeTaker& taker) {
    const std::string owner = rounded_sentence(taker.name);
    return !owner.empty() && rounded_sentence(suggestion.verdict).find(owner) != std::string::npos;
  }

  // What to do, and what takes the time, whatever the findings say of it. Both have their first entry;
  // then comes what matters more, as long as there is room. Returns the suggestions that are shown.
  std::vector<Suggestion> write_causes(const std::vector<Suggestion>& first) {
    // The rest on up to two lines after a blank one; a blank line and a title above each list.
    constexpr std::size_t kRest = 3, kTitle = 2;
    constexpr double kSmallGain = 0.02, kLargeGain = 0.2;
    std::vector<std::string> suggestions, owners;
    for (const Suggestion& each : first)
      suggestions.push_back(suggestion_lines(each, suggestions.size() + 1));
    std::vector<explain::TimeTaker> takers = explain::largest_time_takers(facts_);
    if (is_left_with_less_work(facts_, first)) ask_if_all_is_needed(takers.front());
    for (const explain::TimeTaker& taker : takers) owners.push_back(taker_line(taker));

    const std::size_t used =
        line_count(out_) + line_count(once_) + kRest + kTitle + line_count(suggestions.front());
    std::size_t room = used < kScreenLines ? kScreenLines - used : 0;
    std::size_t shown = 1, shown_owners = 0;
    const auto fits = [&](std::size_t lines) {
      if (lines > room) return false;
      room -= lines;
      return true;
    };
    const auto add_suggestions = [&](double least_ratio) {
      while (shown < first.size() && first[shown].gain_ratio >= least_ratio &&
             fits(line_count(suggestions[shown])))
        ++shown;
    };
    const auto is_worthwhile = [&](const Suggestion& each) {
      return each.gain_ratio >= kLargeGain ||
             (each.gain_ratio >= explain::kWorthwhileGain &&
              explain::names_cause(explanation_.findings[each.finding]));
    };
    // "All other parts" names no owner, and an owner that the first suggestion names is on the screen.
    const bool is_named = !takers.empty() && !takers.front().is_whole_step &&
                          !names_owner(first.front(), takers.front());
    // What bounds the step is no cause: one that a finding names comes before the owner.
    if (explanation_.findings[first.front().finding].kind == FindingKind::kBound &&
        first.size() > 1 && fits(line_count(suggestions[1])))
      ++shown;
    if (is_named) {
      add_suggestions(takers.front().ratio);
      // The name and share of the largest owner come first. Then come suggestions that name a cause or gain much, and then what
      // else is known of the owner. A suggestion with half of its share, or a fifth of the step, comes first where there is no room for both.
      explain::TimeTaker brief = takers.front();
      brief.what = brief.name;
      const std::string all = std::exchange(owners.front(), taker_line(brief));
      const std::size_t brief_lines = line_count(owners.front());
      if (shown < first.size() && kTitle + brief_lines + line_count(suggestions[shown]) > room)
        add_suggestions(std::min(takers.front().ratio / 2, kLargeGain));
      // What the suggestions gain together keeps its line: a reader would add their gains up.
      const std::size_t sum_lines = line_count(sum_of_gains(first, shown));
      if (kTitle + brief_lines + sum_lines <= room && fits(kTitle + brief_lines)) {
        ++shown_owners;
        while (shown < first.size() && is_worthwhile(first[shown]) &&
               fits(line_count(suggestions[shown])))
          ++shown;
        const std::size_t more_lines = line_count(all) - brief_lines;
        if (more_lines + line_count(sum_of_gains(first, shown)) <= room && fits(more_lines))
          owners.front() = all;
      }
    }
    // What kind of work the GPU does comes before a gain of next to nothing.
    add_suggestions(kSmallGain);
    const std::size_t reserved = kernels_.starts_with(kKindsOfWork) ? line_count(kernels_) : 0;
    const bool has_room = fits(reserved);
    add_suggestions(0);
    std::string together = sum_of_gains(first, shown);
    if (!fits(line_count(together))) together.clear();
    while (shown_owners < owners.size() &&
           fits((shown_owners == 0 ? kTitle : 0) + line_count(owners[shown_owners])))
      ++shown_owners;
    if (has_room) room += reserved;

    out_ += fmt::format("\n{}\n", bold(do_first_title(facts_, explanation_, first)));
    for (std::size_t i = 0; i < shown; ++i) out_ += suggestions[i];
    out_ += together + once_;
    if (shown_owners > 0) {
      out_ += fmt::format("\n{}\n", bold("What takes the time"));
      for (std::size_t i = 0; i < shown_owners; ++i) out_ += owners[i];
      write_owner_advice(shown_owners, room);
    }
    return {first.begin(), first.begin() + static_cast<std::ptrdiff_t>(shown)};
  }

  // "Fixes 1 and 2 together: ..." of the first `shown` suggestions, as it is printed; empty: nothing to say. A replay of the step decides
  // it, so each is kept.
  const std::string& sum_of_gains(const std::vector<Suggestion>& first, std::size_t shown) {
    const auto [kept, is_new] = sums_.try_emplace(shown);
    if (is_new) {
      const std::string text = together_text(
          explanation_, {first.begin(), first.begin() + static_cast<std::ptrdiff_t>(shown)});
      if (!text.empty()) kept->second = wrapped("", text, width_);
    }
    return kept->second;
  }

  // On the last line of its row, if there is room: more lines would hide what is below.
  void ask_if_all_is_needed(explain::TimeTaker& taker) const {
    explain::TimeTaker asked = taker;
    explain::append(asked.what, explain::say("; less work helps: is all of it needed?"));
    if (line_count(taker_line(asked)) == line_count(taker_line(taker))) taker = asked;
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
    if (line_count(out_) + line_count(kernels_) <= kScreenLines) out_.insert(place, kernels_);
  }

  void write_owner_advice(std::size_t shown_owners, std::size_t room) {
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
    out_ += fmt::format("\n{}\n", bold(nothing_title(facts_)));
    const NothingToDo nothing = nothing_to_do(facts_, explanation_);
    out_ += wrapped("  ", nothing.remark, width_);
    // The rest has up to two lines after a blank one. The largest owner always has its lines.
    constexpr std::size_t kRest = 3;
    const std::size_t rest = kRest + line_count(once_);
    const std::string next = nothing.next.empty() ? "" : wrapped("  ", nothing.next, width_);
    for (std::size_t i = 0; i < nothing.takers.size(); ++i) {
      const std::string line = taker_line(nothing.takers[i]);
      if (i > 0 && line_count(out_) + line_count(line) + line_count(next) + rest > kScreenLines)
        break;
      out_ += line;
    }
    out_ += next + once_;
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
  std::string once_;     // what happened once; empty: nothing large
  std::string kernels_;  // a line or two on what the GPU does; empty: it is not the limit
  std::map<std::size_t, std::string> sums_;  // sum_of_gains by the number of suggestions
  std::string out_;
};

}  // namespace

std::vector<std::string> damage_lines(const Explanation& explanation, bool markdown) {
  std::vector<std::string> lines;
  for (const Finding& finding : explanation.findings)
    if (declares(finding, &explain::Rule::warns_of_loss) && !finding.brief.pattern.empty())
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

std::string do_first_title(const Facts& facts, const Explanation& explanation,
                           const std::vector<Suggestion>& first) {
  const bool is_little = std::all_of(first.begin(), first.end(), [&](const Suggestion& each) {
    const FindingKind kind = explanation.findings[each.finding].kind;
    if ((kind != FindingKind::kCost && kind != FindingKind::kBound) || each.gain_ns <= 0)
      return false;
    const std::int64_t most_ns = std::max(each.gain_ns, each.at_most_ns) + each.error_ns;
    return each.gain_ratio * static_cast<double>(most_ns) <
           explain::kWorthwhileGain * static_cast<double>(each.gain_ns);
  });
  if (!is_little) return "Do first";
  return fmt::format("Do first (each saves less than 5 % of {})",
                     facts.steps.marked ? "a step" : "the recording");
}

namespace {

// The limit is as unsure as the step without the profiler. Where it is most of a step at both ends of that error, the share says
// how much; where the share may be half or less, the limit has its error. Limit and share are of the step in the middle, which
// the screen shows.
std::string unsure_limit(const Suggestion& suggestion) {
  const auto gain = static_cast<double>(suggestion.gain_ns),
             error = static_cast<double>(suggestion.error_ns),
             step_error = static_cast<double>(suggestion.step_error_ns);
  const double step = suggestion.gain_ratio > 0 ? gain / suggestion.gain_ratio : gain;
  const double least = step > step_error ? (gain - error) / (step - step_error) : 0;
  const double most = std::min(1.0, (gain + error) / (step + step_error));
  const bool is_known = least * 2 >= most;
  return is_known ? fmt::format("up to about {} ({})", rounded_time(suggestion.gain_ns),
                                rounded_percent(suggestion.gain_ratio))
                  : fmt::format("up to {} +- {} ({})", rounded_time(suggestion.gain_ns),
                                rounded_time(suggestion.error_ns),
                                rounded_percent(suggestion.gain_ratio));
}

}  // namespace

std::string gain_text(const Suggestion& suggestion) {
  if (suggestion.is_predicted) {
    const std::string gain = rounded_time(suggestion.gain_ns);
    const std::string most = rounded_time(suggestion.at_most_ns);
    if (suggestion.error_ns > 0)
      return fmt::format("predicted {} +- {}", gain, rounded_time(suggestion.error_ns));
    return fmt::format("predicted {}{}", gain,
                       gain == most ? "" : fmt::format(" (at most {})", most));
  }
  if (suggestion.gain_ns <= 0) return {};
  if (suggestion.is_range)
    return fmt::format(
        "{} to {}", rounded_time(suggestion.gain_ns - suggestion.error_ns),
        rounded_time(std::min(suggestion.at_most_ns, suggestion.gain_ns + suggestion.error_ns)));
  return suggestion.error_ns > 0 ? unsure_limit(suggestion)
                                 : fmt::format("up to {} ({})", rounded_time(suggestion.gain_ns),
                                               rounded_percent(suggestion.gain_ratio));
}

namespace {

// "1, 2 and 3"
std::string listed_numbers(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ", numbers[i]);
  return text;
}

std::string shared_text(const Explanation& explanation, const std::vector<Suggestion>& first) {
  const auto shared = explain::shared_time(explanation, first);
  if (!shared) return {};
  if (shared->is_part)
    return fmt::format("Fix {} is a part of fix {}.", shared->numbers[1], shared->numbers[0]);
  return fmt::format("Fixes {} save partly the same time: together at most {}.",
                     listed_numbers(shared->numbers), rounded_time(shared->most_ns));
}

}  // namespace

std::string together_text(const Explanation& explanation, const std::vector<Suggestion>& first) {
  const auto together = explain::gain_together(explanation, first);
  if (!together) return shared_text(explanation, first);
  const std::string gain = rounded_time(together->gain_ns);
  const auto best = std::max_element(
      together->numbers.begin(), together->numbers.end(),
      [&](std::size_t a, std::size_t b) { return first[a - 1].gain_ns < first[b - 1].gain_ns; });
  const std::string numbers = listed_numbers(together->numbers);
  return rounded_time(first[*best - 1].gain_ns) == gain
             ? fmt::format("Fixes {} together gain no more than fix {}.", numbers, *best)
             : fmt::format("Fixes {} together: predicted {}.", numbers, gain);
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
