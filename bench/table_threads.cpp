// What a trace that is loaded costs on each number of threads, in rounds that alternate between these numbers: the rows of
// the table, which slice is inside which (with Python frames and without), and the joins of launches. Milliseconds by the clock, user and system time, and new pages
// (4 KiB each, minor page faults). The last column is a sum of what came out; it must not depend on threads.
//   table_threads TRACE [ROUNDS] [THREADS ...]     medians of 5 rounds on 1, 2, 4 and 8 threads
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lanescope/analysis/averages_by_track.h"
#include "lanescope/analysis/launch_links.h"
#include "lanescope/analysis/slice_nesting.h"
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

std::int64_t table(const lanescope::Trace& trace, unsigned threads) {
  std::int64_t sum = 0;
  if (const auto rows = lanescope::analysis::averages_by_track(trace, threads))
    for (const auto& row : rows->rows) sum += row.count;
  return sum;
}

std::int64_t sum_of(const lanescope::analysis::SliceNesting& nesting) {
  std::int64_t sum = 0;
  for (const std::int64_t self_ns : nesting.self_ns.rows()) sum += self_ns;
  return sum;
}

std::int64_t nesting(const lanescope::Trace& trace, unsigned threads) {
  return sum_of(lanescope::analysis::compute_slice_nesting(trace, {.threads = threads}));
}

std::int64_t nesting_with_frames(const lanescope::Trace& trace, unsigned threads) {
  return sum_of(lanescope::analysis::compute_slice_nesting(
      trace, {.python_frames = true, .threads = threads}));
}

std::int64_t launches(const lanescope::Trace& trace, unsigned threads) {
  return static_cast<std::int64_t>(
      lanescope::analysis::compute_launch_links(trace, threads).launched_count);
}

struct Question {
  const char* name;
  std::int64_t (*answer)(const lanescope::Trace& trace, unsigned threads);
};

constexpr Question kQuestions[] = {{"rows of the table", table},
                                   {"nesting", nesting},
                                   {"nesting with Python frames", nesting_with_frames},
                                   {"joins of launches", launches}};

void measure(const Question& question, const lanescope::Trace& trace, int rounds,
             const std::vector<unsigned>& threads) {
  std::vector<std::vector<Used>> all(threads.size());
  std::vector<std::int64_t> sums(threads.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < threads.size(); ++i) {
      const Used before = used();
      sums[i] = question.answer(trace, threads[i]);
      const Used after = used();
      all[i].push_back({after.wall_ms - before.wall_ms, after.user_ms - before.user_ms,
                        after.system_ms - before.system_ms, after.pages - before.pages});
    }
  std::printf("%s\n", question.name);
  std::printf(
      "threads  wall ms  ns a slice   user ms  system ms    new pages                  sum\n");
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const double wall_ms = median(all[i], &Used::wall_ms);
    std::printf("%7u %8.1f %11.1f %9.1f %10.1f %12lld %20lld\n", threads[i], wall_ms,
                wall_ms * 1e6 / static_cast<double>(trace.slices().size()),
                median(all[i], &Used::user_ms), median(all[i], &Used::system_ms),
                static_cast<long long>(median(all[i], &Used::pages)),
                static_cast<long long>(sums[i]));
  }
  std::fflush(stdout);
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
  std::printf("%zu slices; medians of %d rounds\n", trace->slices().size(), rounds);
  for (const Question& question : kQuestions) measure(question, *trace, rounds, threads);
}
