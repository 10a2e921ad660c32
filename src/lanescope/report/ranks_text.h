// The text, JSON and CSV of `lanescope ranks`. docs/definitions/ranks.md.
#pragma once
#include <string>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::report {

// The job in a line, what does not fit, the verdict, a line a rank (of more than 16 ranks the extremes
// and the median), bandwidths, what to look at next.
std::string ranks_text(const ranks::Job& job, const ranks::JobVerdict& verdict);
// The first of these: who is in the job, and how many collective calls found their partners.
std::string job_sentence(const ranks::Job& job);
// Every compared rank, whatever their number. `sort_by`: a column's title, "rank" in rising order, others
// in falling order. Unknown titles sort by rank. `row_limit`: 0 is none.
struct RanksTableOptions {
  std::string sort_by = "rank";
  std::size_t row_limit = 0;
};
std::string ranks_table(const ranks::Job& job, const RanksTableOptions& options);
// Everything; docs/formats/json_output.md.
std::string ranks_json(const ranks::Job& job, const ranks::JobVerdict& verdict);
// A header, and a line a rank. Times are whole nanoseconds; unknown is an empty field.
std::string ranks_csv(const ranks::Job& job);

}  // namespace lanescope::report
