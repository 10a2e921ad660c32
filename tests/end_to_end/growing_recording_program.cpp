// A program whose recording grows on demand: growing_recording_program RECORDING.lspool [LAST_MS]. With LAST_MS
// it is a ring that keeps so many milliseconds. Each line on standard input is a
// number of steps to do; "done" is printed after them. At the end of the input the recording is finished.
// test_cli_view_growing.py and the browser test of a recording that runs use it.
#include <stdio.h>
#include <stdlib.h>

#include <chrono>
#include <thread>

#include "lanescope/profiler/profiler.h"

namespace {

void work() {
  const lanescope::RecordFunction load("load batch");
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const lanescope::RecordFunction inner("augment");
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// A thread of its own, so that a new lane appears.
void work_elsewhere() {
  std::thread([] {
    const lanescope::RecordFunction write("write checkpoint");
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }).join();
}

}  // namespace

int main(int, char** arguments) {
  lanescope::ProfilerOptions options;
  options.activities = {lanescope::ProfilerActivity::kCpu};
  options.spool_path = arguments[1] ? arguments[1] : "";
  if (arguments[1] && arguments[2])
    options.last_ns = atoll(arguments[2]) * 1'000'000;
  else
    options.schedule = *lanescope::schedule({.active = 1'000'000});
  lanescope::Profiler profiler(options);
  if (const auto started = profiler.start(); !started) {
    fprintf(stderr, "%s\n", started.error().message.c_str());
    return 1;
  }
  char line[64];
  for (int call = 0; fgets(line, sizeof line, stdin); ++call) {
    for (int steps = atoi(line); steps > 0; --steps) {
      work();
      profiler.step();
    }
    if (call > 0) work_elsewhere();
    puts("done");
    fflush(stdout);
  }
  profiler.stop();
  return 0;
}
