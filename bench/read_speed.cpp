// How fast a trace file becomes a Trace: MB/s of JSON text, events/s, memory an event, peak memory
// of the process. Alternating with it: reading the bytes, finding the tokens (simdjson's first
// stage), and a bare simdjson on-demand pass.
//   read_speed TRACE [ROUNDS]; a .gz or .zst is first unpacked outside of the measurement, and read
//   packed as well
#include <fcntl.h>
#include <simdjson.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/codec/byte_source.h"
#include "lanescope/codec/json_event_bounds.h"
#include "lanescope/codec/json_index.h"
#include "lanescope/codec/unpack.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"

namespace {

using namespace lanescope;

struct Seconds {
  double wall = 0, cpu = 0;
};
double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
Seconds timed(const std::function<void()>& work) {
  const double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  work();
  return {now(CLOCK_MONOTONIC) - wall, now(CLOCK_PROCESS_CPUTIME_ID) - cpu};
}
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}
[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "read_speed: %s\n", message.c_str());
  std::exit(2);
}

// Every window of the file, with the padding that simdjson needs after it.
void for_each_window(const std::string& path,
                     const std::function<std::size_t(std::span<char>)>& use) {
  auto source = codec::open_file(path);
  if (!source) fail(source.error().message);
  std::vector<char> buffer((256 << 10) + codec::kJsonPadding);
  const std::size_t room = buffer.size() - codec::kJsonPadding;
  std::size_t held = 0;
  for (;;) {
    const auto count = (*source)->read(std::span(buffer).subspan(held, room - held));
    if (!count) fail(count.error().message);
    if (*count == 0) return;
    held += *count;
    const std::size_t used = use(std::span(buffer).first(held));
    std::memmove(buffer.data(), buffer.data() + used, held - used);
    held -= used;
  }
}

std::uint64_t sink = 0;  // what the peers compute, so that it is computed

std::size_t tokens_of(codec::JsonIndex& index, std::span<char> window) {
  const std::size_t size = codec::find_last_event_end({window.data(), window.size()});
  if (size > 0 && index.build(window.data(), size)) sink += index.tokens().size();
  return size > 0 ? size : window.size();
}
// Sums ts and dur of each event, as text; keeps nothing.
std::size_t on_demand(simdjson::ondemand::parser& parser, std::span<char> window) {
  const std::size_t size = codec::find_last_event_end({window.data(), window.size()});
  if (size == 0) return window.size();
  const std::size_t start = std::string_view(window.data(), size).find(sink == 0 ? "\"ph\"" : "{");
  const std::size_t first = std::string_view(window.data(), size).rfind('{', start);
  std::string piece = "[";
  piece.append(window.data() + first, size - first - 1).append("]");
  piece.reserve(piece.size() + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::document document;
  simdjson::ondemand::array events;
  if (parser.iterate(piece.data(), piece.size(), piece.capacity()).get(document) ||
      document.get_array().get(events))
    return size;
  for (auto event : events) {
    simdjson::ondemand::object fields;
    if (event.get_object().get(fields)) break;
    for (auto field : fields) {
      simdjson::ondemand::raw_json_string key;
      if (field.key().get(key)) break;
      if (key == "ts" || key == "dur")
        sink += std::string_view(field.value().raw_json_token()).size();
    }
  }
  return size;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) fail("usage: read_speed TRACE [ROUNDS]");
  const std::string given = argv[1];
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 11;
  auto packed = codec::open_file(given);
  if (!packed) fail(packed.error().message);
  auto unpacked = codec::open_unpacked(*std::move(packed));
  if (!unpacked) fail(unpacked.error().message);
  std::string path = given;
  const bool is_packed = (*unpacked)->packing() != codec::Packing::kPlain;
  if (is_packed) {
    path = (std::filesystem::temp_directory_path() /
            ("lanescope_read_speed_" + std::to_string(getpid()) + ".json"))
               .string();
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (!file) fail("cannot write " + path);
    std::vector<char> buffer(1 << 20);
    for (;;) {
      const auto count = (*unpacked)->read(buffer);
      if (!count) fail(count.error().message);
      if (*count == 0) break;
      if (std::fwrite(buffer.data(), 1, *count, file) != *count) fail("cannot write " + path);
    }
    std::fclose(file);
  }
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) / 1e6;

  struct Line {
    const char* name;
    std::function<void()> work;
    std::vector<double> wall, cpu;
  };
  Trace trace;
  const unsigned all = std::max(1u, std::thread::hardware_concurrency());
  const auto read = [&](const std::string& from, unsigned threads) {
    format::ReadOptions options;
    options.threads = threads;
    auto result = format::read_trace(from, options);
    if (!result) fail(result.error().message);
    trace = *std::move(result);
  };
  codec::JsonIndex index;
  simdjson::ondemand::parser parser;
  std::vector<Line> lines;
  lines.push_back({"lanescope: file to Trace, 1 thread", [&] { read(path, 1); }, {}, {}});
  lines.push_back({"lanescope: file to Trace, all cores", [&] { read(path, all); }, {}, {}});
  if (is_packed) {
    lines.push_back({"lanescope: packed file to Trace, 1 thread", [&] { read(given, 1); }, {}, {}});
    lines.push_back(
        {"lanescope: packed file to Trace, all cores", [&] { read(given, all); }, {}, {}});
  }
  std::vector<char> copied(1 << 20);
  lines.push_back({"floor: read() and memcpy() of the bytes",
                   [&] {
                     for_each_window(path, [&](std::span<char> window) {
                       std::memcpy(copied.data(), window.data(), window.size());
                       sink += static_cast<unsigned char>(copied[window.size() / 2]);
                       return window.size();
                     });
                   },
                   {},
                   {}});
  lines.push_back(
      {"floor: read() of the bytes",
       [&] { for_each_window(path, [](std::span<char> window) { return window.size(); }); },
       {},
       {}});
  lines.push_back(
      {"floor: read() and token positions",
       [&] { for_each_window(path, [&](auto window) { return tokens_of(index, window); }); },
       {},
       {}});
  lines.push_back({"peer: simdjson on-demand, ts and dur, keeps nothing",
                   [&] {
                     sink = 0;
                     for_each_window(path, [&](auto window) { return on_demand(parser, window); });
                   },
                   {},
                   {}});
  read(path, 1);  // page cache, and the peak before the peers run
  const double peak = peak_megabytes();
  for (int round = 0; round < rounds; ++round) {
    for (Line& line : lines) {
      const Seconds seconds = timed(line.work);
      line.wall.push_back(seconds.wall);
      line.cpu.push_back(seconds.cpu);
    }
  }
  std::vector<double> write_cpu, write_wall;
  double text_megabytes = 0;
  for (int round = 0; round < rounds; ++round) {
    const Seconds seconds = timed([&] {
      const auto stats = format::write_kineto_json(trace, "/dev/null");
      if (!stats) fail(stats.error().message);
      text_megabytes = static_cast<double>(stats->text_bytes) / 1e6;
    });
    write_wall.push_back(seconds.wall);
    write_cpu.push_back(seconds.cpu);
  }
  if (is_packed) std::filesystem::remove(path);

  const auto events = static_cast<double>(std::max<std::uint64_t>(trace.import_stats().events, 1));
  std::printf("%.1f MB of JSON, %.0f events, %zu slices; medians of %d interleaved rounds\n",
              megabytes, events, trace.slices().size(), rounds);
  std::printf("%-52s %9s %9s %9s %9s %10s\n", "", "wall ms", "cpu ms", "best ms", "MB/s",
              "MB/s cpu");
  for (const Line& line : lines)
    std::printf("%-52s %9.1f %9.1f %9.1f %9.0f %10.0f\n", line.name, median(line.wall) * 1e3,
                median(line.cpu) * 1e3, *std::min_element(line.wall.begin(), line.wall.end()) * 1e3,
                megabytes / median(line.wall), megabytes / median(line.cpu));
  std::printf("%-52s %9.1f %9.1f %9.1f %9.0f %10.0f\n", "lanescope: Trace to JSON text (/dev/null)",
              median(write_wall) * 1e3, median(write_cpu) * 1e3,
              *std::min_element(write_wall.begin(), write_wall.end()) * 1e3,
              text_megabytes / median(write_wall), text_megabytes / median(write_cpu));
  std::printf(
      "Trace: %.1f bytes an event (%.1f MB); peak memory of the process after one read: %.1f MB\n",
      static_cast<double>(trace.memory_bytes()) / events,
      static_cast<double>(trace.memory_bytes()) / 1e6, peak);
  return sink == 0 ? 1 : 0;
}
