#include "lanescope/explain/sentences.h"

#include <string_view>
#include <utility>

#include "lanescope/explain/rules/batch_advice.h"
#include "lanescope/explain/rules/launch_kind.h"

namespace lanescope::explain {
namespace {

// Words that depend on whether the trace marks steps.
struct StepWords {
  std::string_view written, of_step, of_recording;
};
constexpr StepWords kStepWords[] = {
    {"[per step]", "per step", ""},
    {"[a step takes]", "a step takes", "the recording takes"},
    {"[a step then takes]", "a step then takes", "the same work then takes"},
    {"[a step took]", "a step took", "the recording took"},
    {"[a step's]", "a step's", "the recording's"},
};

bool spares_launches(const Facts& facts) {
  return rules::works_on_batch(facts) && !rules::are_for_parameters(facts) &&
         !rules::are_of_parts(facts);
}

// Words that are said only of some programs.
struct Condition {
  std::string_view written;
  bool (*holds)(const Facts&);
};
constexpr Condition kConditions[] = {{"[if batch|", rules::works_on_batch},
                                     {"[if a batch spares launches|", spares_launches}};

// Words that say what bounds the step.
struct LimitBracket {
  std::string_view written;
  LimitWords limit;
};
constexpr LimitBracket kLimits[] = {{"[limit CPU|", LimitWords::kCpuBound},
                                    {"[no limit|", LimitWords::kNoSingle},
                                    {"[limit|", LimitWords::kOther}};

constexpr std::string_view kInSteps = "[in {} steps]";
// A count that does not divide by the steps is rounded where that changes it by a twentieth at most.
constexpr std::int64_t kRoundedFrom = 10;  // of a step

class Builder {
 public:
  Builder(const Facts& facts, std::string_view pattern, std::vector<Value> values)
      : facts_(facts), marked_(facts.steps.marked), rest_(pattern) {
    sentence_.values = std::move(values);
    count_by_step();
  }

  Sentence build() {
    while (!rest_.empty())
      if (!take_value() && !take_step_words() && !take_steps() && !take_condition() &&
          !take_limit() && !take_noun()) {
        sentence_.pattern += rest_.front();
        rest_.remove_prefix(1);
      }
    return std::move(sentence_);
  }

 private:
  // "384 times in 4 steps" is 96 times per step: the count right before the steps is of all of them.
  void count_by_step() {
    auto& values = sentence_.values;
    const std::size_t at = rest_.find(kInSteps);
    if (!marked_ || at == rest_.npos) return;
    std::size_t place = 0;  // of the steps among the values
    for (std::size_t found = rest_.find("{}"); found < at; found = rest_.find("{}", found + 2))
      ++place;
    if (place == 0 || place >= values.size() || values[place - 1].kind != Value::Kind::kCount)
      return;
    const std::int64_t total = values[place - 1].integer, steps = values[place].integer;
    const bool is_exact = steps > 1 && total % steps == 0;
    if (steps < 2 || total < steps || (!is_exact && total < kRoundedFrom * steps)) return;
    values[place - 1].integer = (total + steps / 2) / steps;
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(place));
    by_step_ = place - 1;
    is_rounded_ = !is_exact;
  }

  void pass_value() {
    const auto& values = sentence_.values;
    if (next_ < values.size() && values[next_].kind == Value::Kind::kCount)
      is_one_ = values[next_].integer == 1;
    ++next_;
  }

  // "{} [time|times] " before "[in {} steps]" or "[per step]", where the count is 1.
  bool is_one_time() const {
    return next_ < sentence_.values.size() && sentence_.values[next_].integer == 1 &&
           sentence_.values[next_].kind == Value::Kind::kCount &&
           (next_ == by_step_ || rest_.starts_with("{} [time|times] [in {} steps]") ||
            rest_.starts_with("{} [time|times] [per step]"));
  }

  bool take_value() {
    if (!rest_.starts_with("{}")) return false;
    constexpr std::string_view kTimes = "{} [time|times] ";
    if (is_one_time() && rest_.starts_with(kTimes)) {
      sentence_.values.erase(sentence_.values.begin() + static_cast<std::ptrdiff_t>(next_));
      sentence_.pattern += "once ";
      rest_.remove_prefix(kTimes.size());
      return true;
    }
    if (next_ == by_step_ && is_rounded_) sentence_.pattern += "about ";
    pass_value();
    sentence_.pattern += "{}";
    rest_.remove_prefix(2);
    return true;
  }

  bool take_step_words() {
    for (const StepWords& words : kStepWords) {
      if (!rest_.starts_with(words.written)) continue;
      const std::string_view chosen = marked_ ? words.of_step : words.of_recording;
      if (chosen.empty() && sentence_.pattern.ends_with(' ')) sentence_.pattern.pop_back();
      sentence_.pattern += chosen;
      rest_.remove_prefix(words.written.size());
      return true;
    }
    return false;
  }

  bool take_steps() {
    if (!rest_.starts_with(kInSteps)) return false;
    rest_.remove_prefix(kInSteps.size());
    if (by_step_ != kNoPlace) {
      sentence_.pattern += "per step";
      by_step_ = kNoPlace;
      return true;
    }
    if (marked_) {
      pass_value();
      sentence_.pattern += is_one_ ? "in {} step" : "in {} steps";
      return true;
    }
    auto& values = sentence_.values;
    if (next_ < values.size()) values.erase(values.begin() + static_cast<std::ptrdiff_t>(next_));
    sentence_.pattern += "in the recording";
    return true;
  }

  bool take_condition() {
    for (const Condition& condition : kConditions) {
      if (!rest_.starts_with(condition.written)) continue;
      const std::size_t close = rest_.find(']');
      if (close == rest_.npos) return false;
      if (condition.holds(facts_))
        sentence_.pattern +=
            rest_.substr(condition.written.size(), close - condition.written.size());
      rest_.remove_prefix(close + 1);
      return true;
    }
    return false;
  }

  bool take_limit() {
    for (const LimitBracket& bracket : kLimits) {
      if (!sentence_.pattern.empty() || !rest_.starts_with(bracket.written)) continue;
      const std::size_t begin = bracket.written.size(), close = rest_.find(']');
      if (close == rest_.npos) return false;
      sentence_.pattern = rest_.substr(begin, close - begin);
      sentence_.limit = bracket.limit;
      sentence_.limit_size = static_cast<std::uint32_t>(sentence_.pattern.size());
      rest_.remove_prefix(close + 1);
      return true;
    }
    return false;
  }

  // "[call|calls]"
  bool take_noun() {
    if (!rest_.starts_with('[')) return false;
    const std::size_t bar = rest_.find('|'), close = rest_.find(']');
    if (close == rest_.npos || bar > close) return false;
    sentence_.pattern +=
        is_one_ ? rest_.substr(1, bar - 1) : rest_.substr(bar + 1, close - bar - 1);
    rest_.remove_prefix(close + 1);
    return true;
  }

  static constexpr std::size_t kNoPlace = ~std::size_t{0};

  const Facts& facts_;
  const bool marked_;
  std::string_view rest_;
  Sentence sentence_;
  std::size_t next_ = 0;            // index of the next value
  bool is_one_ = false;             // the last count before this place is 1
  std::size_t by_step_ = kNoPlace;  // the value that was divided by the steps
  bool is_rounded_ = false;
};

}  // namespace

Sentence say(const Facts& facts, std::string_view pattern, std::initializer_list<Value> values) {
  return Builder(facts, pattern, values).build();
}
Sentence say(const Facts& facts, std::string_view pattern, std::vector<Value> values) {
  return Builder(facts, pattern, std::move(values)).build();
}

std::string words_for(const Facts& facts, std::string_view pattern) {
  return say(facts, pattern).pattern;
}

const char* step_noun(const Facts& facts) { return facts.steps.marked ? "step" : "recording"; }

}  // namespace lanescope::explain
