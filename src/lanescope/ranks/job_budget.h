// A budget over the ranks of a job: limits that every rank must keep. docs/formats/budget.md#jobs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/explain/budget.h"
#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::ranks {

// Keys that a trace's budget also has mean the same there. docs/definitions/budgets.md#jobs.
std::span<const explain::Measure> job_measures();
std::vector<std::string> job_verdict_names();  // that a budget can forbid

struct JobBudget {
  bool allow_damage = false;  // a job whose files are not all whole may keep the budget
  std::vector<explain::Limit> limits = {};    // of job_measures()
  std::vector<std::string> must_not_be = {};  // of job_verdict_names()
};

struct JobBudgetLine {
  std::string key;  // of the measure, "verdict" or "damage"
  explain::BudgetState state = explain::BudgetState::kKept;
  bool has_value = false;
  double value = 0, limit = 0;  // in the limit's unit
  std::string unit;             // "ns", "count", "ratio" (of the rank's own step)
  bool at_most = true;
  std::int64_t rank = -1;  // whose value it is: the one closest to breaking it; -1: the whole job's
  std::int64_t error_ns = 0;  // of the clocks, where the value needs them
  std::string text;           // kKept, kBroken without a value: what was found. No text of files
  std::string missing;        // kMissing: what the files lack
};

struct JobBudgetReport {
  std::vector<JobBudgetLine> lines;  // in the order of the budget; verdicts last
  std::size_t broken = 0, missing = 0;
  bool kept() const { return broken == 0 && missing == 0; }
};

// O(ranks limits). Any thread.
JobBudgetReport check_job(const Job& job, const JobVerdict& verdict, const JobBudget& budget);

}  // namespace lanescope::ranks
