// `lanescope ranks diff` as text, JSON and CSV. docs/definitions/ranks.md#comparing-jobs.
#pragma once
#include <string>

#include "lanescope/ranks/job_compare.h"
#include "lanescope/ranks/job_verdict.h"

namespace lanescope::report {

struct JobSide {
  std::string label;  // the path; untrusted
  const ranks::Job* job = nullptr;
  const ranks::JobVerdict* verdict = nullptr;
};

// Both jobs in a line each, the parts of the step, the ranks and the collectives that changed.
std::string ranks_diff_text(const ranks::JobComparison& change, const JobSide& a, const JobSide& b);
// docs/formats/json_output.md, command "ranks diff".
std::string ranks_diff_json(const ranks::JobComparison& change, const JobSide& a, const JobSide& b);
// A header, and a line for each rank that both jobs compare. Whole nanoseconds.
std::string ranks_diff_csv(const ranks::JobComparison& change);

}  // namespace lanescope::report
