// A program that is recorded natively, as the CUDA driver would start it, without CUDA:
// test_cli_native_recording.py runs it. Its words are done in order; it ends with 0 when
// they run out.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/record/range.h"
#include "lanescope/record_cupti/native_recording.h"

extern char** environ;

namespace {

void work(int times) {
  for (int i = 0; i < times; ++i) {
    const lanescope::RecordFunction step("work " + std::to_string(i));
    LANESCOPE_RECORD_FUNCTION("inner");
  }
}

void wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

// Whole dumps in the folder of the results.
int dumps_there() {
  const char* folder = getenv("LANESCOPE_RECORD_DIR");
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder ? folder : ".")) {
    const std::string name = entry.path().filename().string();
    found += name.find("_dump") != std::string::npos && name.ends_with(".lspool");
  }
  return found;
}

std::ptrdiff_t threads_there() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// Registered before the recording starts, so it runs after the recording's own end.
void late() { fputs("late handler\n", stderr); }

int number_of(const std::string& word) { return atoi(word.c_str() + word.find('=') + 1); }

void dump() {  // and waits until it is there and the thread that made it is gone
  const int before = dumps_there();
  const auto threads = threads_there();
  kill(getpid(), SIGUSR2);
  for (int tries = 0; tries < 240'000 && (dumps_there() == before || threads_there() != threads);
       ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void begin_dump() {  // and waits until a thread is at it
  const auto threads = threads_there();
  kill(getpid(), SIGUSR2);
  for (int tries = 0; tries < 240'000 && dumps_there() == 0 && threads_there() == threads; ++tries)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// Words after which this process is another one, or ends. No value: not such a word.
std::optional<int> do_process_word(const std::string& word, char** rest) {
  if (word == "fork") {  // the child does the words that follow, too
    fflush(nullptr);
    if (const pid_t child = fork(); child != 0) wait_for(child);
  } else if (word == "spawn") {  // another process of this program does the rest, this one nothing
    fflush(nullptr);
    pid_t child = 0;
    std::vector<char*> argv = {const_cast<char*>("spawned")};
    for (; *rest; ++rest) argv.push_back(*rest);
    argv.push_back(nullptr);
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv.data(), environ) != 0)
      return 99;
    wait_for(child);
    exit(0);
  } else if (word == "exec") {  // the process becomes another program, which does the rest
    fflush(nullptr);
    std::vector<char*> argv = {const_cast<char*>("second")};
    for (; *rest; ++rest) argv.push_back(*rest);
    argv.push_back(nullptr);
    execv("/proc/self/exe", argv.data());
    return 99;
  } else if (word.starts_with("exit=")) {
    exit(number_of(word));
  } else if (word.starts_with("_exit=")) {
    fflush(nullptr);
    _exit(number_of(word));
  } else if (word.starts_with("signal=")) {
    fflush(nullptr);
    kill(getpid(), number_of(word));
    std::this_thread::sleep_for(std::chrono::seconds(60));
  } else {
    return std::nullopt;
  }
  return 0;
}

int do_word(const std::string& word, char** rest) {
  if (const auto done = do_process_word(word, rest)) return *done;
  if (word == "start") {
    atexit(late);
    printf("started %d\n", lanescope::record_cupti::start_native_recording());
  } else if (word.starts_with("settings=")) {
    std::string lines = word.substr(strlen("settings="));
    for (char& c : lines)
      if (c == ';') c = '\n';
    lanescope_native_settings(lines.c_str());
  } else if (word.starts_with("work=")) {
    work(number_of(word));
  } else if (word == "threads") {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work, 100);
    for (std::thread& thread : threads) thread.join();
  } else if (word == "busy-thread") {
    std::thread([] {
      for (;;) work(1);
    }).detach();
  } else if (word.starts_with("pause=")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(number_of(word)));
  } else if (word == "dump") {
    dump();
  } else if (word == "begin-dump") {
    begin_dump();
  } else if (word == "environment") {
    const char* owner = getenv("LANESCOPE_RECORD_OWNER");
    printf("owner %s, process %d\n", owner ? owner : "none", getpid());
  } else if (word == "ignore-children") {
    signal(SIGCHLD, SIG_IGN);
  } else if (word == "reap-children") {
    signal(SIGCHLD, [](int) {
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
    });
  } else if (word == "close-stderr") {
    close(2);
  } else {
    fprintf(stderr, "no such word: %s\n", word.c_str());
    return 99;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (const int failed = do_word(argv[i], argv + i + 1)) return failed;
  return 0;
}
