// The verdict on a job in sentences.
#pragma once
#include <string>
#include <vector>

#include "lanescope/ranks/job_verdict.h"

namespace lanescope::report {

// The first one is the verdict, the next ones the cause and since when. Text of files is escaped.
std::vector<std::string> verdict_sentences(const ranks::JobVerdict& verdict);

}  // namespace lanescope::report
