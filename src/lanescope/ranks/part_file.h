// The summaries of some of a job's ranks in one file, so that several machines can read one job without
// talking to each other. docs/formats/rank_summary.md.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/ranks/job.h"

namespace lanescope::ranks {

inline constexpr std::string_view kPartEnding = ".lsranks";
inline constexpr std::string_view kPartMark = R"({"lanescope_ranks_part":1)";
inline constexpr std::size_t kMostPartBytes = std::size_t{8} << 30;

// One line per file, in the order of `files`, between a first and a last line.
std::string write_part(std::span<const RankFile> files);

// True: the text begins as such a file does.
bool is_part(std::string_view head);

// The rows of a part. A row that is damaged becomes a file with an error; a part without its last line
// adds one error that says how many rows are missing. kCorruptInput: it is no part. Any thread.
Result<std::vector<RankFile>> read_part(std::string_view text, std::string_view name);

}  // namespace lanescope::ranks
