// Which files are which ranks of one job, and what does not fit.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/ranks/job.h"

namespace lanescope::ranks {

// Fills ranks (by rank), numbers, world_size and remarks of a job. kInvalidArgument: no file has a
// summary.
Result<Job> make_roster(std::vector<RankFile> files);

// An error's message without "PATH: " at its beginning, for lines that begin with the file.
std::string message_without(const std::string& path, const std::string& message);

// "0 to 3, 7 and 9"; long lists end in "and N more".
std::string ranks_text(const std::vector<std::int64_t>& ranks);
// The same after its noun: "rank 3", "ranks 0 to 3".
std::string named_ranks(const std::vector<std::int64_t>& ranks);

}  // namespace lanescope::ranks
