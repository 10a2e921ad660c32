// Finds the files of a job: folders, patterns and names become one sorted list.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"

namespace lanescope::ranks {

inline constexpr std::size_t kMostFiles = 100'000;

// A folder means the files in it and in its subfolders, down to two levels below it, that end in one of `endings`
// (format::format_endings(): the first ending of files with one name counts) or in kPartEnding. A path
// that does not exist and holds *, ? or [ is a pattern. Sorted, without repeats. kInvalidArgument: a path
// does not exist and matches nothing as a pattern, or there is no file at all; kLimit: more than kMostFiles.
Result<std::vector<std::string>> find_rank_files(const std::vector<std::string>& paths,
                                                 std::span<const std::string_view> endings);

// The files of one shard of several: every count-th, beginning with index. Each file is in exactly one shard.
std::vector<std::string> shard_of(const std::vector<std::string>& files, std::size_t index,
                                  std::size_t count);

}  // namespace lanescope::ranks
