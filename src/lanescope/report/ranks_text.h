// The text, JSON and CSV of `lanescope ranks`. docs/definitions/ranks.md.
#pragma once
#include <string>

#include "lanescope/ranks/job.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::report {

// The job in one line, what does not fit, the verdict, one line per rank (with more than 16 ranks,
// only the extremes and the median), bandwidths, and what to look at next.
std::string ranks_text(const ranks::Job& job, const ranks::JobVerdict& verdict);
// The first of these: who is in the job, and how many collective calls found their partners.
std::string job_sentence(const ranks::Job& job);
// Every compared rank, however many there are. `sort_by`: the title of a column; "rank" sorts in
// rising order, others in falling order, unknown titles by rank. `row_limit`: 0 is no limit.
struct RanksTableOptions {
  std::string sort_by = "rank";
  std::size_t row_limit = 0;
};
std::string ranks_table(const ranks::Job& job, const RanksTableOptions& options);
// Everything; docs/formats/json_output.md.
std::string ranks_json(const ranks::Job& job, const ranks::JobVerdict& verdict);
// A header, and a line per rank. Times are whole nanoseconds; unknown is an empty field.
std::string ranks_csv(const ranks::Job& job);

}  // namespace lanescope::report
