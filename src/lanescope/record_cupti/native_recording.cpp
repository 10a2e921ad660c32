#include "lanescope/record_cupti/native_recording.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/byte_size.h"
#include "lanescope/base/duration.h"
#include "lanescope/record/recorder.h"

extern char** environ;

namespace lanescope::record_cupti {
namespace {

using Settings = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kPrefix = "LANESCOPE_RECORD_";

struct NativeRecording {
  pid_t pid = 0;
  Settings settings;
  std::string base;  // <DIR>/<program>_<pid>
  std::unique_ptr<record::Recorder> recorder;
};

std::mutex mutex;                      // of the three below
NativeRecording* recording = nullptr;  // never freed: it ends with the process
Settings* own_settings = nullptr;      // of lanescope_native_settings(), never freed
bool started = false;                  // once a process

std::string_view value(const Settings& settings, std::string_view key) {
  const auto found = settings.find(key);
  return found == settings.end() ? std::string_view() : std::string_view(found->second);
}

bool is_on(const Settings& settings, std::string_view key) { return value(settings, key) == "1"; }

// One line on standard error. The descriptor, not the stream: that may be closed by now.
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

// True: this process may record. Writes its number over the digits in the environment, which needs
// no new memory, so threads that read the environment meanwhile are safe.
bool take_ownership(const Settings& settings) {
  const std::string mine = fmt::format("{:010}", getpid());
  const std::string_view owner = value(settings, "OWNER");
  const bool is_free = owner.find_first_not_of('0') == std::string_view::npos;
  if (!is_free && owner != mine && !is_on(settings, "CHILDREN")) return false;
  if (char* digits = getenv("LANESCOPE_RECORD_OWNER"); digits && strlen(digits) == mine.size())
    memcpy(digits, mine.data(), mine.size());
  return true;
}

// As python/lanescope/_autorecord.py names its results.
std::string file_name(std::string_view program) {
  program = program.substr(program.rfind('/') + 1);
  std::string name;
  for (const char c : program.substr(0, 80))
    name += isalnum(static_cast<unsigned char>(c)) || strchr("._-", c) ? c : '_';
  return name.empty() ? "program" : name;
}

// A name that no file has: a process may become another program, which then records anew.
std::string free_base(const Settings& settings) {
  std::string_view folder = value(settings, "DIR"), program = value(settings, "PROGRAM");
  if (folder.empty()) folder = "lanescope_traces";
  if (program.empty()) program = program_invocation_short_name;
  const std::string first = fmt::format("{}/{}_{}", folder, file_name(program), getpid());
  std::string base = first;
  for (int number = 2; number < 1000; ++number) {
    bool taken = false;
    for (const char* end : {".lspool", ".json", ".json.gz"})
      taken |= access((base + end).c_str(), F_OK) == 0;
    if (!taken) break;
    base = fmt::format("{}_{}", first, number);
  }
  return base;
}

record::RecorderOptions recorder_options(const Settings& settings, const std::string& spool_path) {
  record::RecorderOptions options;
  options.spool_path = spool_path;
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
  if (is_on(settings, "SHAPES")) options.options |= LANESCOPE_RECORD_SHAPES;
  if (is_on(settings, "MEMORY")) options.options |= LANESCOPE_RECORD_MEMORY;
  if (is_on(settings, "ALL_API")) options.options |= LANESCOPE_RECORD_ALL_API;
  return options;
}

// What `command` may see: not what made us record, or it would record itself.
std::vector<std::string> clean_environment() {
  std::vector<std::string> clean;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("LANESCOPE_RECORD") && !text.starts_with("CUDA_INJECTION64_PATH=") &&
        !text.starts_with("NVTX_INJECTION64_PATH="))
      clean.emplace_back(text);
  }
  return clean;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Runs it without a shell, standard output into `out`, and waits. True: it ended with 0, or
// somebody else took its exit code; the caller looks at the files.
bool run(std::vector<std::string> words, const std::string& out) {
  std::vector<std::string> environment = clean_environment();
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int failed = posix_spawn(&child, words.front().c_str(), &files, &attributes,
                                 pointers_to(words).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    say(fmt::format("{}: {}", words.front(), strerror(failed)));
    return false;
  }
  int status = 0;
  pid_t ended = -1;
  while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  return ended != child || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

bool has_content(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && found.st_size > 0;
}

// The results of a finished spool, named `base` and an ending. True: both are there.
bool write_results(const Settings& settings, const std::string& base, const std::string& spool) {
  const std::string command(value(settings, "COMMAND"));
  if (command.empty()) return false;
  const std::string trace = base + (is_on(settings, "GZIP") ? ".json.gz" : ".json");
  const std::string table = base + ".txt";
  // While the children run, a handler of the program must not collect them.
  struct sigaction before, standard = {};
  standard.sa_handler = SIG_DFL;
  const bool changed = sigaction(SIGCHLD, &standard, &before) == 0;
  const bool converted =
      run({command, "convert", "--force", spool, trace}, "/dev/null") && has_content(trace);
  const bool tabled = converted && run({command, "table", "--row-limit", "100", spool}, table) &&
                      has_content(table);
  if (changed) sigaction(SIGCHLD, &before, nullptr);
  if (!tabled) return false;
  if (!is_on(settings, "QUIET")) {
    say("trace " + trace);
    say("table " + table);
  }
  return true;
}

void turn_into_results(const Settings& settings, const std::string& base,
                       const std::string& spool) {
  if (!write_results(settings, base, spool)) {
    say("what was recorded is in " + spool + "; every lanescope command reads it");
  } else if (!is_on(settings, "KEEP_SPOOL")) {
    unlink(spool.c_str());
  }
}

void finish() {
  const std::lock_guard lock(mutex);
  if (!recording || recording->pid != getpid()) return;  // a forked child: not its recording
  NativeRecording* const r = std::exchange(recording, nullptr);
  const std::string spool = r->recorder->spool_path();
  r->recorder->stop();
  r->recorder->close();  // ends a dump that is being written
  const std::vector<std::string> dumps = r->recorder->dumps();
  for (const std::string& note : r->recorder->notes()) say(note);
  for (const std::string& dump : dumps)
    turn_into_results(r->settings, dump.substr(0, dump.rfind(".lspool")), dump);
  turn_into_results(r->settings, r->base, spool);
}

void finish_at_exit() {
  try {
    finish();
  } catch (...) {  // no memory: the spool stays
  }
}

bool start() {
  const std::lock_guard lock(mutex);
  if (started) return false;
  const Settings settings = own_settings ? *own_settings : settings_of_environment();
  if (!is_on(settings, "NATIVE") || !take_ownership(settings)) return false;
  started = true;
  auto r = std::make_unique<NativeRecording>();
  r->pid = getpid();
  r->settings = settings;
  r->base = free_base(settings);
  auto opened = record::Recorder::open(recorder_options(settings, r->base + ".lspool"));
  if (!opened) {
    say("this process is not recorded: " + opened.error().message);
    return false;
  }
  r->recorder = std::move(opened).value();
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
    const std::lock_guard lock(mutex);
    if (lines && !own_settings) own_settings = new Settings();
    if (lines) *own_settings = std::move(settings);
    return recording && recording->pid == getpid() ? 1 : 0;
  } catch (...) {  // no memory: the last settings stay
    return 0;
  }
}
