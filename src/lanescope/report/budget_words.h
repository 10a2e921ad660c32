// Words for reports on a budget, of one trace or of the ranks of a job.
#pragma once
#include <cstddef>
#include <string>

#include "lanescope/explain/budget.h"

namespace lanescope::report {

// "kept", "BROKEN", "MISSING": what is not kept catches the eye.
const char* budget_label(explain::BudgetState state);

// "The budget is kept: 3 of 3 lines.", or how many of `lines` are broken and how many cannot be checked.
std::string budget_result(std::size_t lines, std::size_t broken, std::size_t missing);

}  // namespace lanescope::report
