// Shell completion, made from the tree of the command line, so that it knows new flags at once.
#pragma once
#include <string>

#include "lanescope/cli/command_line.h"

namespace lanescope::cli {

enum class Shell : std::uint8_t { kBash, kZsh, kFish };

// A script to source. Offers subcommands, flags, the words that a flag accepts, and files.
std::string completion_script(const CommandLine& line, Shell shell);

}  // namespace lanescope::cli
