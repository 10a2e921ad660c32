// What processes that no longer live have left in a folder. docs/decisions/leftovers.md.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lanescope/base/result.h"

namespace lanescope::cli {

struct LeftoverOptions {
  bool recordings = false;  // also recordings of killed processes that nothing was made of yet
  bool any_host = false;    // also files of other machines, and those that do not say of which
};

struct LeftoverFile {
  std::string path;
  std::string what;     // "half-written file", "copy for reading", "temporary recording" or
                        // "recording"
  std::string why_not;  // empty: it is a leftover; else why it stays
  std::uint64_t bytes = 0;  // on the disk
};

// The files of the folder itself, by name, that are ours and not finished; symbolic links and
// folders are not followed. kIo: the folder cannot be listed.
Result<std::vector<LeftoverFile>> find_leftovers(const std::string& folder,
                                                 const LeftoverOptions& options);

}  // namespace lanescope::cli
