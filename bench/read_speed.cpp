// How fast a trace file becomes a Trace: MB/s of JSON text, events/s, memory an event, peak memory
// of the process. Alternating with it: reading the bytes, finding the tokens (simdjson's first
// stage), and a bare simdjson on-demand pass.
//   read_speed TRACE [ROUNDS]; a .gz or .zst is first unpacked outside of the measurement, and read
//   packed as well
#include <fcntl.h>
#include <simdjson.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lanescope/base/share_work.h"
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
[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "read_speed: %s\n", message.c_str());
  std::exit(2);
}
// Of this program alone: getrusage() also counts what the process had before it became this program.
double peak_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) * 1024.0 / 1e6;
  fail("expected VmHWM in /proc/self/status");
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

// The trace as JSON text. A packed file is unpacked into a temporary file, which goes at the end.
class Input {
 public:
  explicit Input(std::string given) : given_(std::move(given)), path_(given_) {
    auto packed = codec::open_file(given_);
    if (!packed) fail(packed.error().message);
    auto unpacked = codec::open_unpacked(*std::move(packed));
    if (!unpacked) fail(unpacked.error().message);
    is_packed_ = (*unpacked)->packing() != codec::Packing::kPlain;
    if (is_packed_) unpack(**unpacked);
  }
  ~Input() {
    if (is_packed_) std::filesystem::remove(path_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const std::string& given() const { return given_; }
  const std::string& path() const { return path_; }
  bool is_packed() const { return is_packed_; }
  double megabytes() const { return static_cast<double>(std::filesystem::file_size(path_)) / 1e6; }

 private:
  void unpack(codec::ByteSource& source) {
    path_ = (std::filesystem::temp_directory_path() /
             ("lanescope_read_speed_" + std::to_string(getpid()) + ".json"))
                .string();
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    if (!file) fail("cannot write " + path_);
    std::vector<char> buffer(1 << 20);
    for (;;) {
      const auto count = source.read(buffer);
      if (!count) fail(count.error().message);
      if (*count == 0) break;
      if (std::fwrite(buffer.data(), 1, *count, file) != *count) fail("cannot write " + path_);
    }
    std::fclose(file);
  }

  std::string given_, path_;
  bool is_packed_ = false;
};

// One line of the result, with the seconds of each round.
struct Line {
  Line(const char* title, std::function<void()> measured)
      : name(title), work(std::move(measured)) {}
  void measure() {
    const Seconds seconds = timed(work);
    wall.push_back(seconds.wall);
    cpu.push_back(seconds.cpu);
  }
  void print(double megabytes) const {
    std::printf("%-52s %9.1f %9.1f %9.1f %9.0f %10.0f\n", name, median(wall) * 1e3,
                median(cpu) * 1e3, *std::min_element(wall.begin(), wall.end()) * 1e3,
                megabytes / median(wall), megabytes / median(cpu));
  }

  const char* name;
  std::function<void()> work;
  std::vector<double> wall, cpu;
};

Trace read(const std::string& path, unsigned threads) {
  format::ReadOptions options;
  options.threads = threads;
  auto result = format::read_trace(path, options);
  if (!result) fail(result.error().message);
  return *std::move(result);
}

// What lanescope does, on one thread and on all cores; each leaves its Trace in `trace`. There is one Trace at a time, as in a
// command: two of a long file are memory that the system has to find.
std::vector<Line> lanescope_lines(const Input& input, Trace& trace) {
  const unsigned all = usual_threads();  // of the cores that taskset leaves
  const auto add = [&](std::vector<Line>& lines, const char* name, const std::string& path,
                       unsigned threads) {
    lines.emplace_back(name, [&trace, &path, threads] {
      trace = Trace();
      trace = read(path, threads);
    });
  };
  std::vector<Line> lines;
  add(lines, "lanescope: file to Trace, 1 thread", input.path(), 1);
  add(lines, "lanescope: file to Trace, all cores", input.path(), all);
  if (!input.is_packed()) return lines;
  add(lines, "lanescope: packed file to Trace, 1 thread", input.given(), 1);
  add(lines, "lanescope: packed file to Trace, all cores", input.given(), all);
  return lines;
}

// What the lines of the floors and the peer need; it must live longer than they do.
struct PeerState {
  std::vector<char> copied = std::vector<char>(1 << 20);
  codec::JsonIndex index;
  simdjson::ondemand::parser parser;
};

void add_peers(std::vector<Line>& lines, const std::string& path, PeerState& state) {
  lines.emplace_back("floor: read() and memcpy() of the bytes", [&] {
    for_each_window(path, [&](std::span<char> window) {
      std::memcpy(state.copied.data(), window.data(), window.size());
      sink += static_cast<unsigned char>(state.copied[window.size() / 2]);
      return window.size();
    });
  });
  lines.emplace_back("floor: read() of the bytes", [&] {
    for_each_window(path, [](std::span<char> window) { return window.size(); });
  });
  lines.emplace_back("floor: read() and token positions", [&] {
    for_each_window(path, [&](auto window) { return tokens_of(state.index, window); });
  });
  lines.emplace_back("peer: simdjson on-demand, ts and dur, keeps nothing", [&] {
    sink = 0;
    for_each_window(path, [&](auto window) { return on_demand(state.parser, window); });
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) fail("usage: read_speed TRACE [ROUNDS]");
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 11;
  const Input input(argv[1]);
  Trace trace = read(input.path(), 1);  // page cache, and the peak before the peers run
  const double peak = peak_megabytes();

  PeerState state;
  std::vector<Line> lines = lanescope_lines(input, trace);
  add_peers(lines, input.path(), state);
  for (int round = 0; round < rounds; ++round)
    for (Line& line : lines) line.measure();

  double text_megabytes = 0;
  Line write("lanescope: Trace to JSON text (/dev/null)", [&] {
    const auto stats = format::write_kineto_json(trace, "/dev/null");
    if (!stats) fail(stats.error().message);
    text_megabytes = static_cast<double>(stats->text_bytes) / 1e6;
  });
  for (int round = 0; round < rounds; ++round) write.measure();

  const auto events = static_cast<double>(std::max<std::uint64_t>(trace.import_stats().events, 1));
  std::printf("%.1f MB of JSON, %.0f events, %zu slices; medians of %d interleaved rounds\n",
              input.megabytes(), events, trace.slices().size(), rounds);
  std::printf("%-52s %9s %9s %9s %9s %10s\n", "", "wall ms", "cpu ms", "best ms", "MB/s",
              "MB/s cpu");
  for (const Line& line : lines) line.print(input.megabytes());
  write.print(text_megabytes);
  std::printf(
      "Trace: %.1f bytes an event (%.1f MB); peak memory of the process after one read: %.1f MB\n",
      static_cast<double>(trace.memory_bytes()) / events,
      static_cast<double>(trace.memory_bytes()) / 1e6, peak);
  return sink == 0 ? 1 : 0;
}
