// How `lanescope ranks` and `lanescope-mpi ranks` print a finished job.
#pragma once
#include <string>

#include "lanescope/cli/output.h"
#include "lanescope/ranks/job.h"

namespace lanescope::cli {

struct RanksReport {
  bool json = false, csv = false;  // neither: text
  std::string html_path;           // not empty: a page, and nothing else
  std::string output_path;         // empty: standard output
  bool force = false;              // overwrite output_path
};

// Whether the answer can be written where it will go; if not, prints a line and returns a code.
int check_report_target(const RanksReport& report, Output& output);

// Judges the job and prints it. Returns the exit code.
int print_job(const ranks::Job& job, const RanksReport& report, Output& output);

}  // namespace lanescope::cli
