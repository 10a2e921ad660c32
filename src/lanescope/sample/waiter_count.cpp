#include "lanescope/sample/waiter_count.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace lanescope::sample {
namespace {

constexpr std::uint32_t kWaiters = 3;

// Device and inode of the mapped libc, as /proc has them; empty: none.
std::string libc_file(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  std::string range, rights, offset, device, inode, path;
  while (maps >> range >> rights >> offset >> device >> inode && std::getline(maps, path)) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) continue;
    const std::string name = path.substr(slash + 1);
    if (name == "libc.so.6" || name.starts_with("libc-2.")) return device + " " + inode;
  }
  return "";
}

// Lets threads wait on a condition variable of our own and looks for their number in it.
std::optional<std::size_t> measure() {
  std::mutex mutex;
  std::condition_variable condition;
  std::uint32_t waiting = 0;
  bool is_over = false;
  std::vector<std::thread> threads;
  const auto wait = [&] {
    std::unique_lock lock(mutex);
    ++waiting;
    condition.wait(lock, [&] { return is_over; });
  };
  std::optional<std::size_t> found;
  try {
    for (std::uint32_t i = 0; i < kWaiters; ++i) threads.emplace_back(wait);
    while (true) {
      const std::lock_guard lock(mutex);
      if (waiting < kWaiters) continue;
      // Each has let go of the mutex inside wait(), so each is counted.
      std::uint32_t words[sizeof(pthread_cond_t) / 4];
      std::memcpy(words, condition.native_handle(), sizeof words);
      int matches = 0;
      for (std::size_t i = 0; i < std::size(words); ++i)
        if (words[i] >> 3 == kWaiters) found = i * 4, ++matches;
      if (matches != 1) found.reset();
      break;
    }
  } catch (const std::system_error&) {
    found.reset();  // no thread could be started
  }
  {
    const std::lock_guard lock(mutex);
    is_over = true;
  }
  condition.notify_all();
  for (std::thread& thread : threads) thread.join();
  return found;
}

}  // namespace

std::optional<std::size_t> find_waiter_count(pid_t pid) {
  const std::string own = libc_file(getpid());
  if (own.empty() || own != libc_file(pid)) return std::nullopt;
  static const std::optional<std::size_t> offset = measure();
  return offset;
}

}  // namespace lanescope::sample
