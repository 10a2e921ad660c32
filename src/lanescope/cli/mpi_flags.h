// The flags of `lanescope-mpi`. They are in the command's library, because CLI11 is compiled there anyway (docs/decisions/build_time.md).
#pragma once
#include <string>
#include <vector>

#include "lanescope/cli/ranks_report.h"

namespace lanescope::cli {

struct MpiFlags {
  std::vector<std::string> paths;
  RanksReport report;
  bool statistics = false;
  std::string help;     // not empty: --help was asked for; print this
  std::string mistake;  // not empty: one line about wrong arguments
};

// Prints nothing: each worker parses, and only worker 0 may print.
MpiFlags parse_mpi_flags(int argc, char** argv);

}  // namespace lanescope::cli
