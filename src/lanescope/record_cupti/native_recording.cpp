#include "lanescope/record_cupti/native_recording.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/byte_size.h"
#include "lanescope/base/duration.h"
#include "lanescope/base/percent.h"
#include "lanescope/codec/spool_ending.h"
#include "lanescope/record/recorder.h"
#include "lanescope/record/recording_name.h"
#include "lanescope/record/write_results.h"

extern char** environ;

namespace lanescope::record_cupti {
namespace {

using Settings = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kPrefix = "LANESCOPE_RECORD_";

struct NativeRecording {
  pid_t pid = 0;
  Settings settings;
  std::string base;  // <DIR>/<name>: record/recording_name.h
  std::unique_ptr<record::Recorder> recorder;
};

std::mutex recording_mutex;            // of the three below
NativeRecording* recording = nullptr;  // never freed: it ends with the process
Settings* own_settings = nullptr;      // of lanescope_native_settings(), never freed
bool started = false;                  // once a process

std::string_view value(const Settings& settings, std::string_view key) {
  const auto found = settings.find(key);
  return found == settings.end() ? std::string_view() : std::string_view(found->second);
}

bool is_on(const Settings& settings, std::string_view key) { return value(settings, key) == "1"; }

// Prints one line on standard error, by the descriptor: the stream may be closed by now.
void say(const std::string& line) { dprintf(2, "lanescope: %s\n", line.c_str()); }

Settings settings_of_environment() {
  Settings settings;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (text.starts_with(kPrefix) && equals != std::string_view::npos)
      settings.emplace(text.substr(kPrefix.size(), equals - kPrefix.size()),
                       text.substr(equals + 1));
  }
  return settings;
}

// True: this process may record. Writes its process id over the digits in the environment. That
// needs no new memory, so threads that read the environment meanwhile are safe.
bool take_ownership(const Settings& settings) {
  const std::string mine = fmt::format("{:010}", getpid());
  const std::string_view owner = value(settings, "OWNER");
  const bool is_free = owner.find_first_not_of('0') == std::string_view::npos;
  if (!is_free && owner != mine && !is_on(settings, "CHILDREN")) return false;
  if (char* digits = getenv("LANESCOPE_RECORD_OWNER"); digits && strlen(digits) == mine.size())
    memcpy(digits, mine.data(), mine.size());
  return true;
}

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The rank of this process, from the Python package or from the launcher's RANK. A process started
// by a recorded rank inherits RANK but is not that rank.
std::optional<std::uint32_t> rank_of(const Settings& settings) {
  if (settings.contains("PROGRAM")) return whole_number(value(settings, "RANK"));
  const char* const rank = getenv("RANK");
  if (!rank || value(settings, "PARENT_RANK") == rank) return std::nullopt;
  return whole_number(rank);
}

// The wanted name of the results; if it is taken, the recorder adds a count.
std::string wanted_base(const Settings& settings) {
  std::string_view folder = value(settings, "DIR"), program = value(settings, "PROGRAM");
  if (folder.empty()) folder = "lanescope_traces";
  if (program.empty()) program = program_invocation_short_name;
  const std::string_view run = value(settings, "STARTED");
  return fmt::format("{}/{}", folder, record::recording_name(program, rank_of(settings), run));
}

record::RecorderOptions recorder_options(const Settings& settings, const std::string& spool_path) {
  record::RecorderOptions options;
  options.spool_path = spool_path;
  options.free_name = true;
  options.activities = LANESCOPE_ACTIVITY_CPU | LANESCOPE_ACTIVITY_CUDA;
  const std::string_view activities = value(settings, "ACTIVITIES");
  if (!activities.empty()) {
    options.activities = 0;
    if (activities.find("cpu") != std::string_view::npos)
      options.activities |= LANESCOPE_ACTIVITY_CPU;
    if (activities.find("cuda") != std::string_view::npos)
      options.activities |= LANESCOPE_ACTIVITY_CUDA;
  }
  if (const auto last = parse_duration_ns(value(settings, "LAST"))) {
    options.last_ns = *last;
    options.dump_signal = SIGUSR2;
    options.quiet_dumps = is_on(settings, "QUIET");
  }
  if (const auto size = parse_byte_size(value(settings, "MAX_SIZE"))) options.max_bytes = *size;
  options.disk_reserve_bytes = parse_byte_size(value(settings, "DISK_RESERVE"));
  if (const auto budget = parse_percent(value(settings, "BUDGET"))) {
    options.budget_ratio = *budget;
    options.gpu_in_parts = true;
  }
  if (is_on(settings, "SHAPES")) options.options |= LANESCOPE_RECORD_SHAPES;
  if (is_on(settings, "MEMORY")) options.options |= LANESCOPE_RECORD_MEMORY;
  if (is_on(settings, "ALL_API")) options.options |= LANESCOPE_RECORD_ALL_API;
  return options;
}

// A recording with another name belongs to the program, and ours shares it: it stays.
record::ResultOptions results_of(const Settings& settings, const std::string& base,
                                 const std::string& spool) {
  return {.command = std::string(value(settings, "COMMAND")),
          .recording = spool,
          .trace = base + (is_on(settings, "GZIP") ? ".json.gz" : ".json"),
          .always_json = is_on(settings, "JSON"),
          .keep_recording = is_on(settings, "KEEP_SPOOL") || !spool.starts_with(base)};
}

void finish() {
  const std::lock_guard lock(recording_mutex);
  if (!recording || recording->pid != getpid()) return;  // a forked child: not its recording
  NativeRecording* const r = std::exchange(recording, nullptr);
  const std::string spool = r->recorder->spool_path();
  r->recorder->stop();
  r->recorder->close();  // ends a dump that is being written
  const std::vector<std::string> dumps = r->recorder->dumps();
  for (const std::string& note : r->recorder->notes()) say(note);
  std::vector<record::ResultOptions> recordings;
  for (const std::string& dump : dumps)
    recordings.push_back(results_of(r->settings, dump.substr(0, dump.rfind(spool::kEnding)), dump));
  recordings.push_back(results_of(r->settings, r->base, spool));
  const std::vector<std::string> lines = record::write_results(recordings);
  if (is_on(r->settings, "QUIET")) return;
  for (const std::string& line : lines) say(line);
}

void finish_at_exit() {
  try {
    finish();
  } catch (...) {  // no memory: the spool stays
  }
}

bool start() {
  const std::lock_guard lock(recording_mutex);
  if (started) return false;
  const Settings settings = own_settings ? *own_settings : settings_of_environment();
  if (!is_on(settings, "NATIVE") || !take_ownership(settings)) return false;
  started = true;
  auto r = std::make_unique<NativeRecording>();
  r->pid = getpid();
  r->settings = settings;
  r->base = wanted_base(settings);
  auto opened =
      record::Recorder::open(recorder_options(settings, r->base + std::string(spool::kEnding)));
  if (!opened) {
    say("this process is not recorded: " + opened.error().message);
    return false;
  }
  r->recorder = std::move(opened).value();
  const std::string& spool = r->recorder->spool_path();
  if (spool.starts_with(r->base))  // else the program records, too, and both use its file
    r->base = spool.substr(0, spool.size() - spool::kEnding.size());
  r->recorder->prepare();
  if (const auto running = r->recorder->start(); !running) {
    say("this process is not recorded: " + running.error().message);
    return false;
  }
  recording = r.release();
  atexit(finish_at_exit);
  return true;
}

}  // namespace

bool start_native_recording() noexcept {
  try {
    return start();
  } catch (...) {  // no memory: the program goes on without us
    return false;
  }
}

}  // namespace lanescope::record_cupti

int lanescope_native_settings(const char* lines) {
  using namespace lanescope::record_cupti;
  try {
    Settings settings;
    for (std::string_view rest = lines ? lines : ""; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      const std::size_t equals = line.find('=');
      if (equals != std::string_view::npos)
        settings.emplace(line.substr(0, equals), line.substr(equals + 1));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    }
    const std::lock_guard lock(recording_mutex);
    if (lines && !own_settings) own_settings = new Settings();
    if (lines) *own_settings = std::move(settings);
    return recording && recording->pid == getpid() ? 1 : 0;
  } catch (...) {  // no memory: the last settings stay
    return 0;
  }
}
