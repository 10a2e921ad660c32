// What one range costs the program that it is in: begin and end together, nanoseconds.
//
// Each row is the median over many short bursts, so that the background thread keeps up and nothing
// is dropped (drops are printed; they must be 0). The rows take turns within each round, so a slow
// moment of the machine hits all of them. The floor is what two reads of the tick counter cost:
// less cannot be had for a begin and an end time.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/record/range.h"
#include "lanescope/record/recorder.h"
#include "lanescope/record/tick_clock.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBurst = 2000, kRounds = 400;

template <typename Body>
double burst_ns(Body body) {
  const auto start = Clock::now();
  for (int i = 0; i < kBurst; ++i) body(i);
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kBurst;
}

template <typename T>
void keep(T value) {
  asm volatile("" : : "r"(value) : "memory");
}

struct Row {
  const char* name;
  std::vector<double> ns = {};
  double at(double place) {
    std::sort(ns.begin(), ns.end());
    return ns[static_cast<std::size_t>(place * static_cast<double>(ns.size() - 1))];
  }
};

namespace record = lanescope::record;

// A ring against a file that keeps everything: the same bursts, one after the other in each round,
// alternating which is first. The ring keeps 2 ms, so chunks are given back and used again while it
// is measured. Returns the drops.
std::uint64_t compare_ring(const std::string& directory) {
  constexpr int kPairs = 60, kBursts = 60;
  Row rows[2] = {{"RecordFunction, all is kept"}, {"RecordFunction, a ring of 2 ms"}};
  Row difference{"ring minus the other, pairs"};
  std::uint64_t drops = 0, ring_bytes = 0;
  const auto measure = [&](bool ring) {
    auto recorder = record::Recorder::open({.directory = directory,
                                            .temporary = true,
                                            .ready_chunks = 16,
                                            .last_ns = ring ? 2'000'000 : 0});
    if (!recorder) return 0.0;
    (*recorder)->prepare();
    if (!(*recorder)->start()) return 0.0;
    Row bursts{""};
    for (int burst = 0; burst < kBursts; ++burst) {
      bursts.ns.push_back(burst_ns(
          [](int) { const lanescope::RecordFunction range("some_module::some_function"); }));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    (*recorder)->stop();
    drops += (*recorder)->stats().dropped_records;
    if (ring) ring_bytes = std::max(ring_bytes, (*recorder)->stats().file_bytes);
    return bursts.at(0.5);
  };
  for (int pair = 0; pair < kPairs; ++pair) {
    const bool ring_first = pair % 2 != 0;
    const double first = measure(ring_first), second = measure(!ring_first);
    rows[ring_first].ns.push_back(first);
    rows[!ring_first].ns.push_back(second);
    difference.ns.push_back(ring_first ? first - second : second - first);
  }
  std::printf("\na ring against a file that keeps everything, %d pairs of %d bursts of %d, ns\n",
              kPairs, kBursts, kBurst);
  for (Row* row : {&rows[0], &rows[1], &difference})
    std::printf("%-44s %8.2f %8.2f %8.2f\n", row->name, row->at(0.5), row->at(0.1), row->at(0.9));
  std::printf("records dropped: %llu; the ring's file at most: %.1f MB of %.1f MB written\n",
              static_cast<unsigned long long>(drops), static_cast<double>(ring_bytes) / 1e6,
              static_cast<double>(kBursts) * kBurst * 48 / 1e6);
  return drops;
}

// What a range costs once the file is as large as it may get and every record is dropped.
bool full_file(const std::string& directory) {
  auto recorder = record::Recorder::open(
      {.directory = directory, .temporary = true, .max_bytes = 4 << 20, .ready_chunks = 4});
  if (!recorder || !(*recorder)->start()) return false;
  const auto body = [](int) { const lanescope::RecordFunction range("some_function"); };
  while ((*recorder)->stats().dropped_records == 0) burst_ns(body);
  Row full{"RecordFunction, the file is full"};
  for (int round = 0; round < kRounds; ++round) full.ns.push_back(burst_ns(body));
  (*recorder)->stop();
  std::printf("\n%-44s %8.1f %8.1f %8.1f\n", full.name, full.at(0.5), full.at(0.1), full.at(0.9));
  return true;
}

}  // namespace

int main() {
  const auto directory =
      std::filesystem::temp_directory_path() / ("lanescope_bench_" + std::to_string(std::rand()));
  auto recorder = record::Recorder::open(
      {.directory = directory.string(), .temporary = true, .ready_chunks = 64});
  if (!recorder) return std::fprintf(stderr, "%s\n", recorder.error().message.c_str()), 1;
  (*recorder)->prepare();

  std::string names[64];
  for (int i = 0; i < 64; ++i) names[i] = "some_module::some_function_" + std::to_string(i);

  Row ticks{"two reads of the tick counter (floor)"}, clock{"two calls of clock_gettime"},
      inactive{"RecordFunction, not recording"}, macro{"LANESCOPE_RECORD_FUNCTION"},
      function{"RecordFunction, one name"}, many{"RecordFunction, 64 names in turn"},
      nested{"begin_nested + end_nested, with handle"};
  for (int round = 0; round < kRounds; ++round) {
    ticks.ns.push_back(burst_ns([](int) {
      keep(record::ticks());
      keep(record::ticks());
    }));
    clock.ns.push_back(burst_ns([](int) {
      timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      keep(now.tv_nsec);
      clock_gettime(CLOCK_MONOTONIC, &now);
      keep(now.tv_nsec);
    }));
    inactive.ns.push_back(
        burst_ns([&](int) { const lanescope::RecordFunction range("some_function"); }));
    if (!(*recorder)->start()) return 1;
    macro.ns.push_back(
        burst_ns([](int) { LANESCOPE_RECORD_FUNCTION("some_module::some_function"); }));
    function.ns.push_back(
        burst_ns([](int) { const lanescope::RecordFunction range("some_module::some_function"); }));
    many.ns.push_back(
        burst_ns([&](int i) { const lanescope::RecordFunction range(names[i & 63]); }));
    nested.ns.push_back(burst_ns([](int i) {
      record::RangeInfo info;
      info.name = 1;
      info.handle = static_cast<std::uint64_t>(i) + 1;
      record::begin_nested(info);
      record::end_nested(info.handle);
    }));
    (*recorder)->stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::printf("begin + end of one range, %d bursts of %d, nanoseconds\n%-44s %8s %8s %8s\n",
              kRounds, kBurst, "", "median", "10 %", "90 %");
  for (Row* row : {&ticks, &clock, &inactive, &macro, &function, &many, &nested})
    std::printf("%-44s %8.1f %8.1f %8.1f\n", row->name, row->at(0.5), row->at(0.1), row->at(0.9));
  std::printf(
      "above the floor: macro %.1f ns, RecordFunction %.1f ns; target for a range: 25 ns in all\n",
      macro.at(0.5) - ticks.at(0.5), function.at(0.5) - ticks.at(0.5));
  const auto stats = (*recorder)->stats();
  std::printf("records dropped: %llu; file: %.1f MB\n",
              static_cast<unsigned long long>(stats.dropped_records),
              static_cast<double>(stats.file_bytes) / 1e6);
  (*recorder)->close();
  recorder->reset();
  const bool full = full_file(directory.string());
  const std::uint64_t ring_drops = compare_ring(directory.string());
  std::filesystem::remove_all(directory);
  return full && stats.dropped_records + ring_drops == 0 ? 0 : 1;
}
