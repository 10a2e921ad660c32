#include "lanescope/base/paging_watch.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <new>
#include <string_view>

#include "lanescope/base/number_after.h"

namespace lanescope {
namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;
constexpr std::uint64_t kPagingMiB = 1u << 20;

// The bytes of a file that a line of /proc/self/maps maps: "7f00-7f10 r--p 00000000 fe:00 1234 /path". 0: no file.
std::uint64_t file_bytes_of(const char* line) {
  unsigned long long from = 0, to = 0, inode = 0;
  // NOLINTNEXTLINE(cert-err34-c): what is no number leaves 0
  if (std::sscanf(line, "%llx-%llx %*s %*s %*s %llu", &from, &to, &inode) != 3) return 0;
  return inode == 0 || to < from ? 0 : to - from;
}

// Takes no memory.
std::uint64_t mapped_file_bytes() {
  const int file = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 4096> buffer{};
  std::array<char, 128> line{};  // the path is not needed
  std::size_t length = 0;
  std::uint64_t bytes = 0;
  for (ssize_t size = 0; (size = ::read(file, buffer.data(), buffer.size())) > 0;)
    for (const char letter : std::string_view(buffer.data(), static_cast<std::size_t>(size))) {
      if (letter != '\n') {
        if (length + 1 < line.size()) line[length++] = letter;
        continue;
      }
      line[length] = '\0';
      bytes += file_bytes_of(line.data());
      length = 0;
    }
  ::close(file);
  return bytes;
}

// Nothing: the system does not say.
std::optional<PagingSample> sample_of_process(int io_file) {
  std::array<char, 512> buffer{};
  const ssize_t size = ::pread(io_file, buffer.data(), buffer.size(), 0);
  if (size <= 0) return std::nullopt;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(size));
  const auto disk = number_after(text, "\nread_bytes:"), asked = number_after(text, "rchar:");
  timespec time{};
  rusage usage{};
  if (!disk || !asked || ::clock_gettime(CLOCK_MONOTONIC, &time) != 0 ||
      ::getrusage(RUSAGE_SELF, &usage) != 0)
    return std::nullopt;
  return PagingSample{.time_ns = time.tv_sec * kSecond_ns + time.tv_nsec,
                      .user_ns = usage.ru_utime.tv_sec * kSecond_ns + usage.ru_utime.tv_usec * 1000,
                      .disk_bytes = *disk,
                      .asked_bytes = *asked,
                      .mapped_bytes = mapped_file_bytes()};
}

// The pages in use fill the group: without that, what is read again was pushed out for another reason.
bool group_is_full() {
  try {
    const auto group = group_memory();
    return group && group->unused_bytes < group->limit_bytes / 8;
  } catch (const std::bad_alloc&) {
    return true;
  }
}

[[noreturn]] void end_with_a_line(const GroupMemory& at_start) {
  std::array<char, 512> line{};
  const int length = std::snprintf(
      line.data(), line.size(),
      "lanescope: the control group (a container or a job) allows %llu MiB of memory, of which "
      "%llu MiB were free at the start; this work needs more at once and reads the same pages from "
      "the disk again and again; raise the limit, take a part of it (`--window`), or make an index "
      "on another machine (`lanescope index`)\n",
      static_cast<unsigned long long>(at_start.limit_bytes / kPagingMiB),
      static_cast<unsigned long long>(at_start.free_bytes / kPagingMiB));
  if (::write(STDERR_FILENO, line.data(), static_cast<std::size_t>(std::max(length, 0))) < 0)
    ::_exit(1);
  ::_exit(1);  // not exit(): the other threads wait for the disk
}

GroupMemory group_at_start;  // written before the thread begins

void* look_each_second(void*) {
  const int io_file = ::open("/proc/self/io", O_RDONLY | O_CLOEXEC);
  PagingJudge judge;
  for (;;) {
    const auto sample = sample_of_process(io_file);
    if (!sample) break;
    if (judge.is_stuck(*sample) && group_is_full()) end_with_a_line(group_at_start);
    const timespec second = {.tv_sec = 1, .tv_nsec = 0};
    ::nanosleep(&second, nullptr);
  }
  if (io_file >= 0) ::close(io_file);
  return nullptr;
}

}  // namespace

bool PagingJudge::is_stuck(const PagingSample& now) {
  const PagingSample from = since_.value_or(now);
  const std::uint64_t disk = now.disk_bytes - from.disk_bytes;
  const std::uint64_t paged = disk - std::min(disk, now.asked_bytes - from.asked_bytes);
  const auto progress_ns = static_cast<std::int64_t>(paged / kPagingMiB) * kUser_ns_per_MiB;
  if (!since_ || now.user_ns - from.user_ns >= progress_ns) {
    since_ = now;
    most_mapped_bytes_ = now.mapped_bytes;
    return false;
  }
  most_mapped_bytes_ = std::max(most_mapped_bytes_, now.mapped_bytes);
  return now.time_ns - from.time_ns >= kLeastTime_ns && paged >= kLeastTimes * most_mapped_bytes_;
}

void start_paging_watch(const GroupMemory& at_start) {
  group_at_start = at_start;
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // Signals are for the other threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  static_cast<void>(::pthread_create(&thread, &attributes, look_each_second, nullptr));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
}

}  // namespace lanescope
