// Describes the file from which an index was made, so that a later change of the file is noticed.
#pragma once
#include <filesystem>
#include <optional>

#include "lanescope/base/result.h"
#include "lanescope/format/index_file/index_layout.h"

namespace lanescope::format {

// Size, time of the last change, and a hash of 160 KB at most: the first and the last 64 KB, and eight
// blocks of 4 KB between. So a change that keeps size and time is noticed only if it is inside these
// parts. Nothing: it is no regular file; or an unfinished recording, which may grow while its time stays
// the same; or a recording with a separate file of hardware counters. kIo: it cannot be read. Cost: ten
// small reads.
Result<std::optional<IndexSource>> describe_source(const std::filesystem::path& path);

}  // namespace lanescope::format
