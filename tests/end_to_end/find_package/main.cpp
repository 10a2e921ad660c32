// Records two nested ranges, prints their table and writes the trace that argv[1] names.
#include "lanescope/profiler.h"

#include <cstdio>

namespace {

volatile double sink = 0;

void work() {
  lanescope::RecordFunction outer("outer_range");
  for (int i = 0; i < 3; ++i) {
    lanescope::RecordFunction inner("inner_range");
    for (int k = 0; k < 1000; ++k) sink = sink + k;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  lanescope::Profiler profiler;
  if (auto started = profiler.start(); !started) {
    std::fprintf(stderr, "start: %s\n", started.error().message.c_str());
    return 1;
  }
  work();
  profiler.stop();
  auto averages = profiler.key_averages();
  if (!averages) {
    std::fprintf(stderr, "key_averages: %s\n", averages.error().message.c_str());
    return 1;
  }
  auto table = averages->table();
  if (!table) {
    std::fprintf(stderr, "table: %s\n", table.error().message.c_str());
    return 1;
  }
  std::puts(table->c_str());
  if (auto written = profiler.export_chrome_trace(argv[1]); !written) {
    std::fprintf(stderr, "export: %s\n", written.error().message.c_str());
    return 1;
  }
  return 0;
}
