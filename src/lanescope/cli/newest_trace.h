// Which trace a folder stands for: the newest in it.
#pragma once
#include <string>

#include "lanescope/base/result.h"

namespace lanescope::cli {

struct NewestTrace {
  std::string path;
  std::string line;  // what was chosen and from how many, for standard error
};

// Of the .json, .json.gz, .json.zst and .lspool files in the folder itself, not below it. Files of
// one name are one trace, and a finished one wins over its .lspool. Newest: the time of its last
// change, then its name. When the run of the newest has several ranks, the lowest is chosen.
// kInvalidArgument: there is none.
Result<NewestTrace> newest_trace_in(const std::string& folder);

}  // namespace lanescope::cli
