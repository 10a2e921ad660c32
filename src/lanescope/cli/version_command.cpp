#include "lanescope/cli/command_line.h"
#include "lanescope/cli/help.h"

namespace lanescope::cli {

void add_version_command(CommandLine& line) {
  Command command = line.command("version", "print the version");
  command.runs([](Output& output) -> int {
    output.write(version_line() + "\n");
    return kOk;
  });
}

}  // namespace lanescope::cli
