// `lanescope ranks check` as text, JSON and CSV.
#pragma once
#include <string>

#include "lanescope/ranks/job_budget.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::report {

struct JobCheck {
  std::string job, budget;  // paths; untrusted
  const ranks::JobVerdict* verdict = nullptr;
};

// The verdict on the budget, then one line per limit. Broken limits are first, then limits that cannot be checked.
std::string ranks_check_text(const ranks::JobBudgetReport& report, const JobCheck& check);
// docs/formats/json_output.md, command "ranks check"; lines in the order of the budget.
std::string ranks_check_json(const ranks::JobBudgetReport& report, const JobCheck& check);
std::string ranks_check_csv(const ranks::JobBudgetReport& report);

}  // namespace lanescope::report
