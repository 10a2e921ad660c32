#include "lanescope/cli/ranks_report.h"

#include <fmt/format.h>

#include <utility>

#include "lanescope/cli/save_trace.h"
#include "lanescope/ranks/job_verdict.h"
#include "lanescope/report/ranks_html.h"
#include "lanescope/report/ranks_text.h"

namespace lanescope::cli {

int check_report_target(const RanksReport& report, Output& output) {
  const std::pair<const char*, const std::string&> targets[] = {{"-o", report.output_path},
                                                                {"--html", report.html_path}};
  for (const auto& [flag, path] : targets) {
    if (path.empty()) continue;
    if (const auto target = check_target(path, report.force); !target) {
      output.complain(fmt::format("ranks: {}: {}", flag, message_of(target.error())));
      return kUsage;
    }
  }
  return kOk;
}

int print_job(const ranks::Job& job, const RanksReport& report, Output& output) {
  const ranks::JobVerdict verdict = ranks::judge_job(job);
  if (!report.html_path.empty())
    return save_text(report::ranks_html(job, verdict), report.html_path, output);
  const std::string text = report.json  ? report::ranks_json(job, verdict)
                           : report.csv ? report::ranks_csv(job)
                                        : report::ranks_text(job, verdict);
  return save_text(text, report.output_path.empty() ? "-" : report.output_path, output);
}

}  // namespace lanescope::cli
