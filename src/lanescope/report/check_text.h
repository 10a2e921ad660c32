// `lanescope check` as text, as Markdown and as JSON.
#pragma once
#include <string>

#include "lanescope/explain/budget.h"
#include "lanescope/explain/facts.h"

namespace lanescope::report {

struct CheckOptions {
  std::string trace, budget;  // paths
  bool markdown = false;
};

// A verdict, then one line per limit: broken ones with their evidence, missing ones with what to
// record, then kept ones.
std::string check_text(const explain::Facts& facts, const explain::BudgetReport& report,
                       const CheckOptions& options);

// docs/formats/json_output.md, command "check"; lines in the order of the budget.
std::string check_json(const explain::Facts& facts, const explain::BudgetReport& report,
                       const CheckOptions& options);

}  // namespace lanescope::report
