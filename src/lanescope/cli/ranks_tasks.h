// What `lanescope ranks` does with finished jobs besides its report: table, diff, check, hang.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/cli/output.h"
#include "lanescope/cli/ranks_report.h"
#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_budget.h"

namespace lanescope::cli {

// The first argument of `lanescope ranks`, if it is one of these words. A folder of such a name is "./diff".
enum class RanksTask : std::uint8_t { kReport, kTable, kDiff, kCheck, kHang };
RanksTask ranks_task(const std::string& word);

struct RanksTaskFlags {
  std::string budget, sort_by;
  std::optional<std::int64_t> row_limit;
};
// One line on what does not fit the task; empty: all fits. `paths` are without the task's word.
std::string ranks_task_mistake(RanksTask task, const std::vector<std::string>& paths,
                               const RanksTaskFlags& flags, const RanksReport& report);

// Each prints its answer and returns the exit code.
int print_ranks_table(const ranks::Job& job, const RanksTaskFlags& flags, const RanksReport& report,
                      Output& output);
int print_ranks_diff(const ranks::Job& a, const ranks::Job& b, const std::string& a_path,
                     const std::string& b_path, const RanksReport& report, Output& output);
// kFailed: the budget is not kept.
int print_ranks_check(const ranks::Job& job, const std::string& path,
                      const ranks::JobBudget& budget, const std::string& budget_path,
                      const RanksReport& report, Output& output);
// `paths` are flight-recorder dumps, or killed recordings.
int print_ranks_hang(const std::vector<std::string>& paths, const RanksReport& report,
                     Output& output);

}  // namespace lanescope::cli
