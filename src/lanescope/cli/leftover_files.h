// Finds the files that killed processes left in a folder. docs/decisions/leftovers.md.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/base/result.h"

namespace lanescope::cli {

struct LeftoverOptions {
  bool recordings = false;  // also recordings of killed processes that are not converted yet
  bool any_host = false;    // also files of other and of unknown machines
};

struct LeftoverFile {
  std::string path;
  std::string what;         // "half-written file", "copy for reading", "temporary
                            // recording", "recording", "hardware counters of a recording", ...
  std::string why_not;      // empty: it is a leftover; else why to keep it
  std::uint64_t bytes = 0;  // on the disk
};

// Our unfinished files in the folder, by name; does not follow symbolic links and folders. kIo: the
// folder cannot be listed.
Result<std::vector<LeftoverFile>> find_leftovers(const std::string& folder,
                                                 const LeftoverOptions& options);

}  // namespace lanescope::cli
