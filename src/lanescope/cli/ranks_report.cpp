#include "lanescope/cli/ranks_report.h"

#include "lanescope/cli/save_trace.h"
#include "lanescope/ranks/job_verdict.h"
#include "lanescope/report/ranks_text.h"

namespace lanescope::cli {

int check_report_target(const RanksReport& report, Output& output) {
  if (report.output_path.empty()) return kOk;
  const auto target = check_target(report.output_path, report.force);
  if (target) return kOk;
  output.complain("ranks: -o: " + message_of(target.error()));
  return kUsage;
}

int print_job(const ranks::Job& job, const RanksReport& report, Output& output) {
  const ranks::JobVerdict verdict = ranks::judge_job(job);
  const std::string text = report.json  ? report::ranks_json(job, verdict)
                           : report.csv ? report::ranks_csv(job)
                                        : report::ranks_text(job, verdict);
  return save_text(text, report.output_path.empty() ? "-" : report.output_path, output);
}

}  // namespace lanescope::cli
