// Shell completion, made from the command line's own tree, so that a new flag completes without
// further work.
#pragma once
#include <string>

#include "lanescope/cli/command_line.h"

namespace lanescope::cli {

enum class Shell : std::uint8_t { kBash, kZsh, kFish };

// A script to source. Offers subcommands, flags, words of flags that take one of a few, and files
// where a file belongs.
std::string completion_script(const CommandLine& line, Shell shell);

}  // namespace lanescope::cli
