#include "lanescope/base/memory_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lanescope/base/number_after.h"
#include "lanescope/base/paging_watch.h"
#include "lanescope/base/spill_memory.h"

namespace lanescope {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

// "RssAnon:	     112 kB". 0: there is no such line.
std::uint64_t kib_in(std::string_view text, std::string_view name) {
  return number_after(text, name).value_or(0) * 1024;
}

std::uint64_t most_of(std::uint64_t free_bytes) {
  return free_bytes - std::min(MemoryWatch::kForFiles, free_bytes / 2);
}

// Takes no memory.
[[noreturn]] void refuse(const char* format, std::uint64_t first, std::uint64_t second,
                         std::uint64_t third = 0) {
  std::array<char, 512> message{};
  std::snprintf(message.data(), message.size(), format,
                static_cast<unsigned long long>(first / kMiB),
                static_cast<unsigned long long>(second / kMiB),
                static_cast<unsigned long long>(third / kMiB));
  throw SpillFailed(message.data());
}

}  // namespace

constinit std::atomic<const MemoryWatch*> MemoryWatch::made_ = nullptr;

MemoryWatch::MemoryWatch(const GroupMemory& group, const std::string& proc)
    : group_(group),
      most_bytes_(most_of(group.free_bytes + group.swap_bytes)),
      step_bytes_(std::clamp(group.free_bytes / 128, kMiB / 8, 16 * kMiB)),
      status_(::open((proc + "/status").c_str(), O_RDONLY | O_CLOEXEC)),
      own_at_start_(own_bytes()) {}

MemoryWatch::~MemoryWatch() {
  if (status_ >= 0) ::close(status_);
}

std::uint64_t MemoryWatch::own_bytes() const {
  std::array<char, 4096> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const ssize_t size = ::pread(status_, buffer.data(), buffer.size(), 0);
  if (size <= 0) return 0;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(size));
  return kib_in(text, "\nRssAnon:") + kib_in(text, "\nVmSwap:") + kib_in(text, "\nVmPTE:");
}

void MemoryWatch::expect_least() const {
  if (group_.free_bytes + group_.swap_bytes >= kLeastFree) return;
  refuse(
      "the control group (a container or a job) allows %llu MiB of memory; expected at least %llu "
      "MiB that are free; raise its limit",
      group_.limit_bytes, kLeastFree);
}

void MemoryWatch::begin() const {
  expect_least();
  start_paging_watch(group_);
}

void MemoryWatch::expect_room() const {
  const std::uint64_t own = own_bytes();
  const std::uint64_t taken = own - std::min(own, own_at_start_);
  if (taken <= most_bytes_) return;
  refuse(
      "the control group (a container or a job) allows %llu MiB of memory, of which %llu MiB were "
      "free at the start; expected more; raise its limit, or take a smaller trace",
      group_.limit_bytes, group_.free_bytes);
}

bool MemoryWatch::is_little() const {
  constexpr std::uint64_t kLittle = 48 * kMiB;
  return group_.free_bytes + group_.swap_bytes < kLittle;
}

void MemoryWatch::expect_in_use(std::uint64_t bytes) const {
  const std::uint64_t free = group_.free_bytes + group_.swap_bytes;
  if (free >= bytes || std::getenv("LANESCOPE_MEMORY")) return;
  refuse(
      "the control group (a container or a job) allows %llu MiB of memory, of which %llu MiB are "
      "free; expected about %llu MiB for this trace; raise its limit, or make an index elsewhere "
      "(`lanescope index`) and take a part (`--window`); LANESCOPE_MEMORY=16MiB tries it as it is, "
      "from the disk",
      group_.limit_bytes, free, bytes + kMiB - 1);
}

void MemoryWatch::start() {
  if (const auto group = group_memory()) made_ = new MemoryWatch(*group);
}

void expect_in_use(std::uint64_t bytes) {
  if (const MemoryWatch* const watch = MemoryWatch::of_process()) watch->expect_in_use(bytes);
}

}  // namespace lanescope
