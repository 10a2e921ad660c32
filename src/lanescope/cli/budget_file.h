// Budget files: TOML, docs/formats/budget.md.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/explain/budget.h"
#include "lanescope/ranks/job_budget.h"

namespace lanescope::cli {

// At most 1 MiB. kIo: it cannot be read. kInvalidArgument: not TOML, an unknown key (the message
// names the closest), a value without its unit, no limit; messages name the line. kUnavailable:
// built without toml++.
Result<explain::Budget> read_budget(const std::string& path);

// The same for a text; messages call it `name`.
Result<explain::Budget> parse_budget(std::string_view text, std::string_view name);

// Both for a budget over the ranks of a job.
Result<ranks::JobBudget> read_job_budget(const std::string& path);
Result<ranks::JobBudget> parse_job_budget(std::string_view text, std::string_view name);

}  // namespace lanescope::cli
