// Declares subcommands that print one table about the steady steps of a trace, or about one step.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "lanescope/cli/command_line.h"
#include "lanescope/explain/facts.h"

namespace lanescope::cli {

struct StepReport {
  const char* name;
  const char* summary;
  const char* epilogue;
  std::string (*text)(const explain::Facts& facts, std::size_t rows);
  // `originals`: report::kernel_groups_json().
  std::string (*json)(const explain::Facts& facts, std::span<const SliceId> originals);
};

// TRACE, --step, --rows and --json.
void add_step_report(CommandLine& line, const StepReport& report);

}  // namespace lanescope::cli
