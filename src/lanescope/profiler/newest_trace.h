// Finds the newest trace in a folder.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/base/result.h"

namespace lanescope {

struct NewestTrace {
  std::string path;
  std::vector<std::pair<std::uint32_t, std::string>>
      ranks;               // of its run, with paths; empty if there is only one
  std::string line;        // for the user: which trace was chosen, from how many
  bool is_choice = false;  // there is another trace, or a newer file was skipped
};

// Considers files whose ending is in format/formats.h, in this folder but not in subfolders. Files
// that differ only in the ending are one trace; JSON is preferred to its .lspool. Newest: by the time of the last change,
// then by name. If the newest run has several ranks, takes the lowest. Newer files whose first
// bytes are not those of a trace (format::may_be_trace) are skipped and named in `line`.
// kInvalidArgument: there is no trace. `others`: how the user gets to the other ranks.
enum class OtherRanks : std::uint8_t { kByFile, kInPage };
Result<NewestTrace> newest_trace_in(const std::string& folder,
                                    OtherRanks others = OtherRanks::kByFile);

}  // namespace lanescope
