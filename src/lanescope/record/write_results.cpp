#include "lanescope/record/write_results.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "lanescope/codec/counter_file.h"
#include "lanescope/codec/spool_layout.h"

extern char** environ;

namespace lanescope::record {
namespace {

std::int64_t now_ms() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

// The environment without the variables that made the program record, or the command
// would record itself.
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

// Starts it without a shell, in a new session, so that Ctrl-C in a terminal does not reach it. Its
// output goes into `pipe_end`. 0 or an errno.
int spawn(std::vector<std::string> words, int pipe_end, pid_t* child) {
  std::vector<std::string> environment = clean_environment();
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, pipe_end, 1);
  posix_spawn_file_actions_adddup2(&files, pipe_end, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  const int failed = posix_spawn(child, words.front().c_str(), &files, &attributes,
                                 pointers_to(words).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return failed;
}

// Reads what the process prints until it closes its output. False: time was up. `deadline_ms`
// 0: no limit.
bool read_lines(int fd, std::int64_t deadline_ms, std::string* said) {
  char piece[4096];
  while (true) {
    const std::int64_t left = deadline_ms == 0 ? -1 : deadline_ms - now_ms();
    if (deadline_ms != 0 && left <= 0) return false;
    pollfd wanted{fd, POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    const ssize_t got = read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    if (said->size() < (64u << 10)) said->append(piece, static_cast<std::size_t>(got));
  }
}

// True: it ended with 0, or somebody else took its exit code; the caller checks the files.
bool wait_for(pid_t child) {
  int status = 0;
  pid_t ended = -1;
  while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  return ended != child || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

std::uint64_t size_of(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

std::vector<std::string> describe_unconverted(const ResultOptions& options, std::uint64_t bytes) {
  return {
      fmt::format("recording {} ({:.1f} MB)", options.recording, static_cast<double>(bytes) * 1e-6),
      fmt::format("every lanescope command opens it, for example: lanescope explain {}",
                  options.recording),
      fmt::format("for Perfetto and other tools: lanescope recover {}", options.recording)};
}

// The command starts its messages with its name. So does the caller that prints these lines:
// remove it here.
std::vector<std::string> lines_of(std::string_view text) {
  constexpr std::string_view kPrefix = "lanescope: ";
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.starts_with(kPrefix)) line.remove_prefix(kPrefix.size());
    if (!line.empty()) lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// While the process runs, no handler of the program may wait for it.
class DefaultChildSignal {
 public:
  DefaultChildSignal() {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    changed_ = sigaction(SIGCHLD, &standard, &before_) == 0;
  }
  ~DefaultChildSignal() {
    if (changed_) sigaction(SIGCHLD, &before_, nullptr);
  }
  DefaultChildSignal(const DefaultChildSignal&) = delete;
  DefaultChildSignal& operator=(const DefaultChildSignal&) = delete;

 private:
  struct sigaction before_ {};
  bool changed_ = false;
};

// False: somebody else still records into it.
bool is_finished(const std::string& recording) {
  const int fd = open(recording.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  spool::FileState state{};
  const ssize_t got = pread(fd, &state, sizeof state, offsetof(spool::FileHeader, state));
  close(fd);
  return got == sizeof state && state == spool::FileState::kFinished;
}

std::vector<std::string> convert(const ResultOptions& options, std::uint64_t bytes,
                                 std::int64_t deadline_ms) {
  const std::string stays = fmt::format(
      "what was recorded is in {}; every lanescope command opens it", options.recording);
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0)
    return {fmt::format("the trace was not written: {}", strerror(errno)), stays};
  std::vector<std::string> words = {options.command, "recover",     options.recording,
                                    "--out",         options.trace, "--background"};
  // A table needs the whole recording in memory, so a large recording gets none.
  if (bytes <= kMostBytesForJson) words.emplace_back("--table");
  if (!options.keep_recording && is_finished(options.recording)) words.emplace_back("--remove");
  const DefaultChildSignal quiet;
  pid_t child = 0;
  const int failed = spawn(std::move(words), ends[1], &child);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    return {fmt::format("the trace was not written: {}: {}", options.command, strerror(failed)),
            stays};
  }
  std::string said;
  const bool ended = read_lines(ends[0], options.always_json ? 0 : deadline_ms, &said);
  close(ends[0]);
  std::vector<std::string> lines = lines_of(said);
  if (!ended) {
    lines.push_back(
        fmt::format("{} is being written by process {}; until then what was recorded "
                    "is in {}",
                    options.trace, child, options.recording));
    return lines;
  }
  if (wait_for(child) && size_of(options.trace) != 0) return lines;
  if (size_of(options.recording) != 0) lines.push_back(stays);
  return lines;
}

std::vector<std::string> write_one(const ResultOptions& options, std::int64_t deadline_ms) {
  const std::uint64_t bytes = size_of(options.recording);
  if (bytes == 0) return {fmt::format("{}: the recording is gone", options.recording)};
  const std::uint64_t all = bytes + size_of(options.recording + std::string(counters::kEnding));
  if (options.command.empty() || (all > kMostBytesForJson && !options.always_json))
    return describe_unconverted(options, bytes);
  return convert(options, bytes, deadline_ms);
}

}  // namespace

std::vector<std::string> write_results(const std::vector<ResultOptions>& recordings) {
  const std::int64_t deadline_ms = now_ms() + std::int64_t{kMostSecondsToWait} * 1000;
  std::vector<std::string> lines;
  for (const ResultOptions& options : recordings) {
    const std::vector<std::string> more = write_one(options, deadline_ms);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

}  // namespace lanescope::record
