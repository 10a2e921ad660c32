#include "lanescope/explain/sentences.h"

#include <string_view>
#include <utility>

namespace lanescope::explain {
namespace {

// Words that depend on whether the trace marks steps.
struct StepWords {
  std::string_view written, of_step, of_recording;
};
constexpr StepWords kStepWords[] = {
    {"[per step]", "per step", ""},
    {"[a step takes]", "a step takes", "the recording takes"},
    {"[a step took]", "a step took", "the recording took"},
    {"[a step's]", "a step's", "the recording's"},
};
constexpr std::string_view kInSteps = "[in {} steps]";

class Builder {
 public:
  Builder(const Facts& facts, std::string_view pattern, std::vector<Value> values)
      : marked_(facts.steps.marked), rest_(pattern) {
    sentence_.values = std::move(values);
  }

  Sentence build() {
    while (!rest_.empty())
      if (!take_value() && !take_step_words() && !take_steps() && !take_noun()) {
        sentence_.pattern += rest_.front();
        rest_.remove_prefix(1);
      }
    return std::move(sentence_);
  }

 private:
  void pass_value() {
    const auto& values = sentence_.values;
    if (next_ < values.size() && values[next_].kind == Value::Kind::kCount)
      is_one_ = values[next_].integer == 1;
    ++next_;
  }

  bool take_value() {
    if (!rest_.starts_with("{}")) return false;
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

  const bool marked_;
  std::string_view rest_;
  Sentence sentence_;
  std::size_t next_ = 0;  // index of the next value
  bool is_one_ = false;   // the last count before this place is 1
};

}  // namespace

Sentence say(const Facts& facts, std::string_view pattern, std::initializer_list<Value> values) {
  return Builder(facts, pattern, values).build();
}
Sentence say(const Facts& facts, std::string_view pattern, std::vector<Value> values) {
  return Builder(facts, pattern, std::move(values)).build();
}

const char* step_noun(const Facts& facts) { return facts.steps.marked ? "step" : "recording"; }

}  // namespace lanescope::explain
