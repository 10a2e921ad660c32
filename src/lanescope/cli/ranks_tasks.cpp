#include "lanescope/cli/ranks_tasks.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/cli/text.h"
#include "lanescope/format/formats.h"
#include "lanescope/format/index_file/index_place.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/ranks/hang.h"
#include "lanescope/ranks/job_budget.h"
#include "lanescope/ranks/job_compare.h"
#include "lanescope/ranks/job_verdict.h"
#include "lanescope/report/ranks_check.h"
#include "lanescope/report/ranks_diff.h"
#include "lanescope/report/ranks_hang.h"
#include "lanescope/report/ranks_text.h"

namespace lanescope::cli {
namespace {

const std::vector<std::string> kSortColumns = {"rank",   "step",     "own",   "compute", "idle",
                                               "copies", "transfer", "waits", "hidden"};

int print_text(const std::string& text, const RanksReport& report, Output& output) {
  return save_text(text, report.output_path.empty() ? "-" : report.output_path, output);
}

}  // namespace

RanksTask ranks_task(const std::string& word) {
  if (word == "table") return RanksTask::kTable;
  if (word == "diff") return RanksTask::kDiff;
  if (word == "check") return RanksTask::kCheck;
  if (word == "hang") return RanksTask::kHang;
  return RanksTask::kReport;
}

std::string ranks_task_mistake(RanksTask task, const std::vector<std::string>& paths,
                               const RanksTaskFlags& flags, const RanksReport& report) {
  if (task == RanksTask::kDiff && paths.size() != 2)
    return fmt::format(
        "diff expects two jobs, each a folder, a pattern in quotes or a part; found "
        "{}",
        paths.size());
  if (task == RanksTask::kCheck && flags.budget.empty())
    return "check expects --budget FILE: docs/formats/budget.md";
  if (task != RanksTask::kCheck && !flags.budget.empty())
    return "--budget belongs to lanescope ranks check JOB";
  if (task != RanksTask::kTable && (flags.row_limit || !flags.sort_by.empty()))
    return "--sort-by and --row-limit belong to lanescope ranks table JOB";
  if (!flags.sort_by.empty() &&
      std::find(kSortColumns.begin(), kSortColumns.end(), flags.sort_by) == kSortColumns.end())
    return fmt::format("--sort-by expects {}; found '{}'", joined_or(kSortColumns), flags.sort_by);
  if (task != RanksTask::kReport && task != RanksTask::kHang && !report.html_path.empty())
    return "--html belongs to lanescope ranks JOB, without a word before it, and to lanescope "
           "ranks hang DUMPS";
  return {};
}

int print_ranks_table(const ranks::Job& job, const RanksTaskFlags& flags, const RanksReport& report,
                      Output& output) {
  if (report.json || report.csv) return print_job(job, report, output);
  if (job.compared.empty()) {
    output.complain("ranks: table: no ranks hold the same whole steps; lanescope ranks says why");
    return kUsage;
  }
  report::RanksTableOptions options;
  if (!flags.sort_by.empty()) options.sort_by = flags.sort_by;
  if (flags.row_limit) options.row_limit = static_cast<std::size_t>(*flags.row_limit);
  return print_text(report::ranks_table(job, options), report, output);
}

int print_ranks_diff(const ranks::Job& a, const ranks::Job& b, const std::string& a_path,
                     const std::string& b_path, const RanksReport& report, Output& output) {
  const auto change = ranks::compare_jobs(a, b);
  if (!change) {
    output.complain("ranks: diff: " + message_of(change.error()));
    return kUsage;
  }
  const ranks::JobVerdict a_verdict = ranks::judge_job(a), b_verdict = ranks::judge_job(b);
  const report::JobSide a_side{a_path, &a, &a_verdict}, b_side{b_path, &b, &b_verdict};
  return print_text(report.json  ? report::ranks_diff_json(*change, a_side, b_side)
                    : report.csv ? report::ranks_diff_csv(*change)
                                 : report::ranks_diff_text(*change, a_side, b_side),
                    report, output);
}

int print_ranks_check(const ranks::Job& job, const std::string& path,
                      const ranks::JobBudget& budget, const std::string& budget_path,
                      const RanksReport& report, Output& output) {
  const ranks::JobVerdict verdict = ranks::judge_job(job);
  const ranks::JobBudgetReport checked = ranks::check_job(job, verdict, budget);
  const report::JobCheck check{path, budget_path, &verdict};
  const int code = print_text(report.json  ? report::ranks_check_json(checked, check)
                              : report.csv ? report::ranks_check_csv(checked)
                                           : report::ranks_check_text(checked, check),
                              report, output);
  return code != kOk || checked.kept() ? code : kFailed;
}

int print_ranks_hang(const std::vector<std::string>& paths, const RanksReport& report,
                     Output& output) {
  format::OtherFiles others;
  auto files =
      ranks::read_dump_files(paths, format::format_endings(), [&others](const std::string& path) {
        others.look_next_to(path);
        return format::open_indexed(path, {}, format::IndexUse::kRead);
      });
  complain_of_others(others, output);
  if (files) {
    const auto found = ranks::find_hang(*std::move(files));
    if (found && !report.html_path.empty())
      return save_text(report::ranks_hang_html(*found), report.html_path, output);
    if (found)
      return print_text(report.json  ? report::ranks_hang_json(*found)
                        : report.csv ? report::ranks_hang_csv(*found)
                                     : report::ranks_hang_text(*found),
                        report, output);
    output.complain("ranks: hang: " + message_of(found.error()));
    return kUsage;
  }
  output.complain("ranks: hang: " + message_of(files.error()));
  return kUsage;
}

}  // namespace lanescope::cli
