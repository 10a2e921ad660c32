#include "lanescope/cli/mpi_flags.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace lanescope::cli {

MpiFlags parse_mpi_flags(int argc, char** argv) {
  MpiFlags flags;
  CLI::App app(
      "Many ranks of one job, read by the processes of an MPI job. Same answer as lanescope ranks.",
      "lanescope-mpi");
  app.require_subcommand(1);
  CLI::App* const command = app.add_subcommand("ranks", "which rank delays the others, and why");
  command
      ->add_option("PATHS", flags.paths,
                   "a folder that all machines see, a pattern in quotes, files, or parts")
      ->required();
  CLI::Option* const json = command->add_flag("--json", flags.report.json, "JSON");
  command->add_flag("--csv", flags.report.csv, "CSV, one line per rank")->excludes(json);
  command->add_option("--html", flags.report.html_path, "write one page instead");
  command->add_option("-o,--output", flags.report.output_path,
                      "where worker 0 writes the answer (default: standard output)");
  command->add_flag("--force", flags.report.force, "overwrite an existing file");
  command->add_flag("--statistics", flags.statistics,
                    "a line for each worker on standard error: files, time, bytes sent, memory");
  app.footer(
      "Examples:\n"
      "  mpirun -n 8 lanescope-mpi ranks traces/\n"
      "  srun -N 64 --ntasks-per-node 16 lanescope-mpi ranks /shared/traces --json\n");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    flags.help = app.help("", CLI::AppFormatMode::All);
  } catch (const CLI::ParseError& error) {
    flags.mistake = fmt::format("{}; see lanescope-mpi --help", error.what());
  }
  return flags;
}

}  // namespace lanescope::cli
