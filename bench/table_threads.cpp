// The rows of the table of a trace that is loaded, on each number of threads: milliseconds by the clock, user and system time,
// and new pages (4 KiB each, minor page faults).
//   table_threads TRACE [ROUNDS] [THREADS ...]     medians of 5 rounds on 1, 2, 4 and 8 threads; the sum of all rows' counts
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lanescope/analysis/averages_by_track.h"
#include "lanescope/format/read_trace.h"

namespace {

struct Used {
  double wall_ms = 0, user_ms = 0, system_ms = 0;
  std::int64_t pages = 0;
};

Used used() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration<double, std::milli>(now).count(), ms(usage.ru_utime),
          ms(usage.ru_stime), usage.ru_minflt};
}

template <typename Value>
Value median(std::vector<Used> rounds, Value Used::*part) {
  std::sort(rounds.begin(), rounds.end(),
            [part](const Used& a, const Used& b) { return a.*part < b.*part; });
  return rounds[rounds.size() / 2].*part;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: table_threads TRACE [ROUNDS] [THREADS ...]\n");
    return 2;
  }
  const int rounds = count > 2 ? std::max(1, std::atoi(arguments[2])) : 5;
  std::vector<unsigned> threads;
  for (int i = 3; i < count; ++i)
    threads.push_back(static_cast<unsigned>(std::max(1, std::atoi(arguments[i]))));
  if (threads.empty()) threads = {1, 2, 4, 8};
  const auto trace = lanescope::format::read_trace(arguments[1]);
  if (!trace) {
    std::fprintf(stderr, "table_threads: %s\n", trace.error().message.c_str());
    return 2;
  }
  const double slices = static_cast<double>(trace->slices().size());
  std::printf("%.0f slices; medians of %d rounds\n", slices, rounds);
  std::printf("threads  wall ms  ns a slice   user ms  system ms    new pages       counts\n");
  for (const unsigned each : threads) {
    std::vector<Used> all;
    std::int64_t sum = 0;
    for (int round = 0; round < rounds; ++round) {
      const Used before = used();
      const auto rows = lanescope::analysis::averages_by_track(*trace, each);
      const Used after = used();
      all.push_back({after.wall_ms - before.wall_ms, after.user_ms - before.user_ms,
                     after.system_ms - before.system_ms, after.pages - before.pages});
      sum = 0;
      if (rows)
        for (const auto& row : rows->rows) sum += row.count;
    }
    const double wall_ms = median(all, &Used::wall_ms);
    std::printf("%7u %8.1f %11.1f %9.1f %10.1f %12lld %12lld\n", each, wall_ms,
                wall_ms * 1e6 / slices, median(all, &Used::user_ms), median(all, &Used::system_ms),
                static_cast<long long>(median(all, &Used::pages)), static_cast<long long>(sum));
    std::fflush(stdout);
  }
}
