// Flags of `lanescope record` about what a recording may take: its size, the room that its disk
// keeps, the time it costs.
#pragma once
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/cli/command_line.h"

namespace lanescope::cli {

struct SizeFlags {
  std::string max_size, disk_reserve;  // as typed; empty: the defaults
  std::string budget;                  // empty: none
};

void add_size_flags(Command& command, SizeFlags* flags);
Result<void> check_size_flags(const SizeFlags& flags);
// For the program that is recorded.
void set_size_environment(const SizeFlags& flags);

}  // namespace lanescope::cli
