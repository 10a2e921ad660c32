#include "lanescope/cli/self_profile.h"

#include <utility>

#include "lanescope/cli/save_trace.h"
#include "lanescope/profiler/profiler.h"

namespace lanescope::cli {

int run_self_profiled(const std::string& path, const std::string& command,
                      const std::function<int()>& run, Output& output) {
  if (const Result<void> free = check_target(path, true); !free || path == "-") {
    output.complain(free ? "--self-profile expects a file name; found '-'"
                         : "--self-profile: " + message_of(free.error()));
    return kUsage;
  }
  ProfilerOptions options;
  options.activities = {ProfilerActivity::kCpu};
  Profiler profiler(std::move(options));
  if (const Result<void> started = profiler.start(); !started) {
    output.complain("--self-profile: " + message_of(started.error()));
    return kFailed;
  }
  int code = kOk;
  {
    const RecordFunction whole("lanescope " + command);
    code = run();
  }
  profiler.stop();
  if (const Result<void> written = profiler.export_chrome_trace(path); !written) {
    output.complain("--self-profile: " + message_of(written.error()));
    return kFailed;
  }
  return code;
}

}  // namespace lanescope::cli
