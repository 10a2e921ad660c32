#include "lanescope/cli/view_browser.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace lanescope::cli {
namespace {

std::atomic<bool> ending{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void end_on_signal(int) { ending.store(true, std::memory_order_relaxed); }

bool is_remote() {
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value != '\0';
  };
  return (is_set("SSH_CONNECTION") || is_set("SSH_TTY")) && !is_set("DISPLAY") &&
         !is_set("WAYLAND_DISPLAY");
}

}  // namespace

bool open_browser(const std::string& url) {
#if defined(__APPLE__)
  constexpr char kOpener[] = "open";
#else
  constexpr char kOpener[] = "xdg-open";
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY")) return false;
#endif
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&quiet, descriptor, "/dev/null", O_RDWR, 0);
  std::string program = kOpener, address = url;
  char* const arguments[] = {program.data(), address.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawnp(&child, kOpener, &quiet, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&quiet);
  return failed == 0;
}

void announce(const server::HttpServer& http, bool opened, Output& output) {
  output.write(fmt::format("{}\n", http.url()));
  if (opened) {
    output.note("The page opens in your browser; the address above opens it again.");
  } else if (is_remote()) {
    const char* user = std::getenv("USER");
    char host[256] = "HOST";
    static_cast<void>(gethostname(host, sizeof host - 1));
    output.note(
        "This machine has no browser. On yours, type the next line, then open the address above "
        "there:");
    output.note(fmt::format("  ssh -N -L {0}:127.0.0.1:{0} {1}{2}{3}", http.port(),
                            user ? user : "", user ? "@" : "", host));
  } else {
    output.note("Open the address above in a browser on this machine.");
  }
  output.note("Ctrl-C ends it.");
}

void end_on_signals() {
  struct sigaction action {};
  action.sa_handler = end_on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

bool is_ending() { return ending.load(std::memory_order_relaxed); }

}  // namespace lanescope::cli
