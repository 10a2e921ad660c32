// The `lanescope` command. command_line.h lists the subcommands; each has its file.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "lanescope/base/memory_watch.h"
#include "lanescope/base/spill_memory.h"
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

// glibc loads its unwinder when an exception first leaves std::call_once, and ends the process when there is no memory for it.
// Under `ulimit -v` the exception is that there is no memory. So one leaves it now.
void load_unwinder() {
  rlimit addresses{};
  if (::getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur == RLIM_INFINITY) return;
  try {
    std::once_flag once;
    std::call_once(once, [] { throw std::bad_alloc(); });
  } catch (const std::bad_alloc&) {
    return;
  }
}

int run(int argc, char** argv) {
  load_unwinder();
  lanescope::MemoryWatch::start();
  // Not a command: recorded programs start it.
  if (argc > 1 && std::string(argv[1]) == lanescope::cli::kHardwareProcess)
    return lanescope::cli::run_hardware_process(std::vector<std::string>(argv + 2, argv + argc));
  lanescope::cli::Output output;
  lanescope::cli::CommandLine line;
  return line.parse_and_run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                            output);
}

// Takes no memory.
int complain(const char* message) {
  for (const char* const part : {"lanescope: ", message, "\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_descriptors();
  try {
    return run(argc, argv);
  } catch (const lanescope::SpillFailed& error) {  // before the command began
    return complain(error.what());
  } catch (const std::bad_alloc&) {
    return complain("expected more free memory than there is; close other programs");
  }
}
