// Writes a trace as a file that lanescope does not read again: tables for SQLite, stacks for flame
// graphs. The ending of the file name chooses the format.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/cli/output.h"
#include "lanescope/model/trace.h"

namespace lanescope::cli {

struct OtherTarget {
  std::string_view ending;  // ".sqlite"
  // kIo: the reason. The file appears when it is complete; an older one is replaced.
  Result<void> (*write)(Trace&& trace, const std::string& path);
};

// nullptr: no such ending.
const OtherTarget* find_other_target(std::string_view path);
// ".sqlite, .folded, .speedscope.json"
std::string other_target_endings();

// Returns the exit code: kOk after "wrote x.sqlite: 1.2 MB", kFailed after one line with the reason.
int save_other(const OtherTarget& target, Trace&& trace, const std::string& path, Output& output);

}  // namespace lanescope::cli
