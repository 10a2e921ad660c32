// Flags of `lanescope record` about the size of a recording and the room that its disk keeps.
#pragma once
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/cli/command_line.h"

namespace lanescope::cli {

struct SizeFlags {
  std::string max_size, disk_reserve;  // as typed; empty: the defaults
};

void add_size_flags(Command& command, SizeFlags* flags);
Result<void> check_size_flags(const SizeFlags& flags);
// For the program that is recorded.
void set_size_environment(const SizeFlags& flags);

}  // namespace lanescope::cli
