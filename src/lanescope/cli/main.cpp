// The `lanescope` command. command_line.h lists the subcommands; each has its file.
#include <fcntl.h>

#include <string>
#include <vector>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/hardware_process.h"
#include "lanescope/cli/output.h"

namespace {

// The next file that is opened would get a closed descriptor 0..2, and messages would go into that
// file. So fill these descriptors: an input that cannot be read, outputs that cannot be written.
void keep_standard_descriptors() {
  for (const int descriptor : {0, 1, 2}) {
    if (fcntl(descriptor, F_GETFD) < 0) {
      static_cast<void>(open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_descriptors();
  // Not a command: recorded programs start it.
  if (argc > 1 && std::string(argv[1]) == lanescope::cli::kHardwareProcess)
    return lanescope::cli::run_hardware_process(std::vector<std::string>(argv + 2, argv + argc));
  lanescope::cli::Output output;
  lanescope::cli::CommandLine line;
  return line.parse_and_run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                            output);
}
