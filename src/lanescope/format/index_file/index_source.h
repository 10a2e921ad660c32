// What is remembered of the file that an index was made of, to notice when it changes.
#pragma once
#include <filesystem>
#include <optional>

#include "lanescope/base/result.h"
#include "lanescope/format/index_file/index_layout.h"

namespace lanescope::format {

// Size, time of the last change, and a hash of 160 KB at most: the first and the last 64 KB, and
// eight blocks of 4 KB between. So a change in place that keeps size and time is noticed only in
// those. Nothing: no regular file; an unfinished recording, which may grow without a change of its
// time; or a recording with hardware counters in another file. kIo: it cannot be read. Cost: ten
// small reads.
Result<std::optional<IndexSource>> describe_source(const std::filesystem::path& path);

}  // namespace lanescope::format
