// Runs the rules over a trace: findings in the order in which to read them, and what was not
// checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/rule.h"

namespace lanescope::explain {

struct RuleOptions {
  std::vector<std::string> only;  // ids; empty: all. Rules asked by id are never covered
  std::vector<std::string> off;   // ids that do not run
  // How many threads run rules, the caller's among them. 0: one for each core, at most 8; one for a
  // small trace. The findings are the same for any number.
  unsigned threads = 0;
};

struct RuleRun {
  std::string id, question;
  // kCovered: another finding says the same more exactly, so this one is left out.
  enum class State : std::uint8_t { kFound, kQuiet, kNotChecked, kCovered } state = State::kQuiet;
  std::string missing;       // kNotChecked
  std::string covered_by;    // kCovered: that rule's id
  std::int64_t time_ns = 0;  // that the rule took
};

class GainModel;  // predicted_gains.h

struct Explanation {
  Sentence headline;  // of all rules, whichever were asked
  bool headline_has_base =
      false;  // the headline gives the step without the profiler: predict_gains()
  // Where the headline's notes begin, such as those about steps: characters of its pattern, and values.
  std::size_t notes_from = 0, note_values_from = 0;
  bool is_answer = false;         // only the rules that RuleOptions::only names were asked
  std::vector<Finding> findings;  // bound, then cost by time at stake, then the other kinds
  std::shared_ptr<const GainModel> gains = nullptr;  // predict_gains(); null: nothing is predicted
  std::vector<RuleRun> runs;  // one a rule that was asked, in the order of all_rules()
};

// kInvalidArgument: an id that is no rule's. Any thread.
Result<Explanation> run_rules(const Facts& facts, const RuleOptions& options = {});

}  // namespace lanescope::explain
