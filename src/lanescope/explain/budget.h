// A budget: limits that a trace must keep, checked line by line. docs/formats/budget.md.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/explain/do_first.h"
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
  double value = 0;  // ns, count or bytes; a share: 0..1 of the wall
  std::string text;  // as in the file: "12 ms"
  int line = 0;      // of the file; 0: unknown
};

struct Budget {
  bool per_recording = false;  // the limits are for a recording without steps
  bool allow_damage = false;   // a trace with lost events may keep the budget
  std::vector<Limit> limits;
  std::vector<std::string> quiet_rules;  // ids that must not fire
};

// Parses a number with a unit of the measure: "12 ms", "5 %", "2 MiB", "120". kInvalidArgument says
// what was expected and what was found.
Result<Limit> parse_limit(const Measure& measure, bool at_most, std::string_view text);

enum class BudgetState : std::uint8_t { kKept, kBroken, kMissing };
const char* budget_state_name(BudgetState state);  // "kept", "broken", "missing"

struct BudgetLine {
  std::string key;  // of the measure, the id of a rule, or "damage"
  BudgetState state = BudgetState::kKept;
  Sentence text;  // the value and the limit
  bool has_value = false;
  double value = 0, limit = 0;  // in the limit's unit
  std::string unit;             // "ns", "count", "bytes", "ratio"
  bool at_most = true;
  std::vector<Evidence> evidence;  // kBroken
  std::string missing;             // kMissing: what the trace lacks, and how to record it
};

struct BudgetReport {
  std::vector<BudgetLine> lines;  // in the order of the budget
  // If a line is broken: what explain says about the trace, and what it would do first.
  std::optional<Explanation> explanation;
  std::vector<Suggestion> first;
  std::unique_ptr<Facts>
      own_facts;  // facts_of_explain(), which the explanation borrows; may be null
  std::size_t broken = 0, missing = 0;
  bool kept() const { return broken == 0 && missing == 0; }
};

// kInvalidArgument: a rule that does not exist. O(n log n). If a line is broken, it takes as long as explain does, too. The report
// borrows `facts`. Any thread.
Result<BudgetReport> check_budget(const Facts& facts, const Budget& budget);

// The facts that explain uses for the same trace. They differ if `facts` count a step that explain leaves out because it is no usual
// one (StepOptions::count_long_step). Null: they are the same.
Result<std::unique_ptr<Facts>> facts_of_explain(const Facts& facts);

// A budget that this trace keeps, as text of a budget file: times, shares, sizes and counts plus
// `slack` (0.1: 10 %), and rules that ran and stayed quiet. Measures that the trace lacks are left
// out. `source` is named in a comment. kInvalidArgument: the trace has no GPU work, or a part of
// the trace was lost.
Result<std::string> write_budget(const Facts& facts, double slack, std::string_view source);

}  // namespace lanescope::explain
