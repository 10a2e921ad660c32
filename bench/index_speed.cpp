// What the index file of a trace gains: a real trace is repeated until it has as many slices as
// wanted, written as JSON, read, indexed, and opened again.
//
//   index_speed TRACE FOLDER SLICES...     FOLDER: for the files, 400 bytes a slice
//
// A row for each number: JSON, reading it, writing the index, opening it with everything checked,
// opening it when it was checked before. Floors: mapping the index and touching every page of it,
// and mapping it alone. Medians of processor time, user and system, which other programs disturb
// less; of the next opens also the time by the clock. The page cache is warm, as after a first
// question.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lanescope/format/index_file/index_bytes.h"
#include "lanescope/format/index_file/index_source.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/format/index_file/write_index.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/model/trace_builder.h"
#include "lanescope/model/trace_copier.h"

namespace {

using namespace lanescope;
namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& message) {
  fmt::print(stderr, "index_speed: {}\n", message);
  std::exit(2);
}

template <typename T>
T value_of(Result<T> result) {
  if (!result) fail(result.error().message);
  return *std::move(result);
}

double now_ms(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double milliseconds(int rounds, const std::function<void()>& work,
                    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const double begin = now_ms(clock);
    work();
    times.push_back(now_ms(clock) - begin);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// The slices and arrows of `trace`, one copy after the other.
Trace repeated(const Trace& trace, std::size_t wanted) {
  TraceBuilder builder;
  TraceCopier copier(trace, builder);
  const std::int64_t span_ns = trace.window_end_ns() - trace.window_start_ns() + 1000;
  const std::size_t times = std::max<std::size_t>(1, wanted / trace.slices().size());
  for (std::size_t time = 0; time < times; ++time) {
    const std::int64_t shift_ns = static_cast<std::int64_t>(time) * span_ns;
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i) {
      const SliceId id{i};
      builder.add_slice(copier.track(trace.slices().track[i]),
                        copier.copy(trace.slices().category[i]),
                        copier.copy(trace.slices().name[i]), trace.start_ns(id) + shift_ns,
                        trace.dur_ns(id), copier.copy(trace.slices().args[i]));
    }
    for (const Flow& flow : trace.flows()) {
      Flow own = flow;
      own.id_value += static_cast<std::int64_t>(time) << 32;
      own.name = copier.copy(flow.name);
      own.category = copier.copy(flow.category);
      own.from_track = copier.track(flow.from_track);
      own.to_track = copier.track(flow.to_track);
      own.from_ns += shift_ns;
      own.to_ns += shift_ns;
      builder.add_flow(own);
    }
  }
  return value_of(std::move(builder).finish());
}

std::uint64_t sink = 0;  // what was touched

void map_file(const fs::path& path, bool touch) {
  const format::IndexFile file = value_of(format::open_index_file(path));
  if (!touch) return;
  for (std::size_t at = 0; at < file.bytes.bytes.size(); at += 4096)
    sink += static_cast<std::uint64_t>(file.bytes.bytes[at]);
}

void measure(const Trace& one, const fs::path& folder, std::size_t wanted) {
  const fs::path json = folder / fmt::format("index_speed_{}.json", wanted);
  {
    const Trace trace = repeated(one, wanted);
    value_of(format::write_kineto_json(trace, json));
  }
  const auto source = value_of(format::describe_source(json));
  const fs::path index = format::index_path_of(json);
  std::size_t slices = 0;
  double write_ms = 0;
  const int rounds = wanted >= 5'000'000 ? 3 : 5;
  const double read_ms = milliseconds(rounds, [&] {
    const Trace trace = value_of(format::read_trace(json));
    slices = trace.slices().size();
  });
  {
    const Trace trace = value_of(format::read_trace(json));
    write_ms = milliseconds(rounds, [&] { value_of(format::write_index(trace, *source, index)); });
  }
  format::IndexOptions options;  // without a cache nothing is remembered: each open checks all
  const auto open = [&] {
    if (!format::open_by_index(json, options)) fail("the index was not used");
  };
  const double first_ms = milliseconds(rounds, open);
  options.cache = format::IndexCache(folder / "index_speed_cache");
  open();  // remembers
  const double next_ms = milliseconds(101, open);
  const double next_wall_ms = milliseconds(101, open, CLOCK_MONOTONIC);
  const double touch_ms = milliseconds(rounds, [&] { map_file(index, true); });
  const double map_ms = milliseconds(101, [&] { map_file(index, false); });
  fmt::print(
      "{:>10} {:>9.0f} {:>9.0f} {:>9.0f} {:>9.0f} {:>11.1f} {:>11.3f} {:>9.3f} {:>9.1f} {:>9.3f}\n",
      slices, static_cast<double>(fs::file_size(json)) / 1e6,
      static_cast<double>(fs::file_size(index)) / 1e6, read_ms, write_ms, first_ms, next_ms,
      next_wall_ms, touch_ms, map_ms);
  std::fflush(stdout);
  fs::remove(json);
  fs::remove(index);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) fail("usage: index_speed TRACE FOLDER SLICES...");
  const Trace one = value_of(format::read_trace(argv[1]));
  if (one.slices().size() == 0) fail("expected a trace with slices");
  fmt::print("{:>10} {:>9} {:>9} {:>9} {:>9} {:>11} {:>11} {:>9} {:>9} {:>9}\n", "", "JSON",
             "index", "read", "write", "first open", "next opens", "by clock", "touch", "map");
  fmt::print("{:>10} {:>9} {:>9} {:>9} {:>9} {:>11} {:>11} {:>9} {:>9} {:>9}\n", "slices", "MB",
             "MB", "ms", "ms", "ms", "ms", "ms", "ms", "ms");
  for (int i = 3; i < argc; ++i)
    measure(one, argv[2], static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)));
  fs::remove_all(fs::path(argv[2]) / "index_speed_cache");
  return sink == 1 ? 1 : 0;
}
