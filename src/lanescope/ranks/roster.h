// Which files are which ranks of one job, and what does not fit.
#pragma once
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/ranks/job.h"

namespace lanescope::ranks {

// Fills ranks (by rank), numbers, world_size and remarks of a job. kInvalidArgument: no file has a
// summary.
Result<Job> make_roster(std::vector<RankFile> files);

// "0 to 3, 7 and 9"; long lists end in "and N more".
std::string ranks_text(const std::vector<std::int64_t>& ranks);

}  // namespace lanescope::ranks
