// A budget: limits that a trace must keep, checked line by line. docs/formats/budget.md.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/measures.h"
#include "lanescope/explain/run_rules.h"

namespace lanescope::explain {

// One number that a measure may not exceed, or fall below.
struct Limit {
  const Measure* measure = nullptr;
  bool at_most = true;
  bool is_share = false;
  double value = 0;  // ns, pieces or bytes; of a share 0..1 of the wall
  std::string text;  // as it was written: "12 ms"
  int line = 0;      // of the file; 0: unknown
};

struct Budget {
  bool per_recording = false;  // the recording without steps is what the limits speak of
  bool allow_damage = false;   // a trace of which something was lost may keep the budget
  std::vector<Limit> limits;
  std::vector<std::string> quiet_rules;  // ids that must not fire
};

// "12 ms", "5 %", "2 MiB", "120": a number and the unit that the measure takes. kInvalidArgument:
// says what was expected and what was found.
Result<Limit> parse_limit(const Measure& measure, bool at_most, std::string_view text);

enum class BudgetState : std::uint8_t { kKept, kBroken, kMissing };
const char* budget_state_name(BudgetState state);  // "kept", "broken", "missing"

struct BudgetLine {
  std::string key;  // of the measure; of a rule its id; "damage"
  BudgetState state = BudgetState::kKept;
  Sentence text;  // what was found against what is allowed
  bool has_value = false;
  double value = 0, limit = 0;  // in the limit's unit
  std::string unit;             // "ns", "count", "bytes", "ratio"
  bool at_most = true;
  std::vector<Evidence> evidence;  // of a broken line
  std::string missing;             // of a missing one
};

struct BudgetReport {
  std::vector<BudgetLine> lines;  // in the order of the budget
  std::size_t broken = 0, missing = 0;
  bool kept() const { return broken == 0 && missing == 0; }
};

// kInvalidArgument: a rule that does not exist. O(n log n). Any thread.
Result<BudgetReport> check_budget(const Facts& facts, const Budget& budget);

// A budget that this trace keeps, as text of a budget file: times, shares, sizes and counts with
// `slack` (0.1: 10 %) on top, and the rules that looked and stayed quiet. What the trace cannot
// tell is left out. kInvalidArgument: the trace holds no GPU work to make one from.
Result<std::string> write_budget(const Facts& facts, double slack, std::string_view source);

}  // namespace lanescope::explain
