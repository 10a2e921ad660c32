// Flags of `lanescope record` that limit a recording: its size, the free space that it leaves, its
// cost in time.
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
// Sets the environment of the recorded program.
void set_size_environment(const SizeFlags& flags);

}  // namespace lanescope::cli
