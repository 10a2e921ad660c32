#include "lanescope/record/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <string_view>

#include "lanescope/codec/counter_file.h"
#include "lanescope/codec/spool_ending.h"
#include "lanescope/codec/spool_layout.h"
#include "lanescope/record/recording_name.h"

namespace lanescope::record {
namespace {

constexpr std::int64_t kMarginSeconds = 5;  // clocks are set, and start times are whole ticks
constexpr std::int64_t kKeptSeconds = 3600;
constexpr int kMostNames = 4096, kMostLookedAt = 100, kMostRemoved = 16;

std::string read_small_file(const char* path) {
  std::string text(4096, '\0');
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const ssize_t got = read(fd, text.data(), text.size());
  close(fd);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

// Seconds since 1970 at which the process began; proc(5), fields `starttime` and `btime`.
std::optional<std::int64_t> start_time(std::uint64_t pid) {
  const std::string process = read_small_file(("/proc/" + std::to_string(pid) + "/stat").c_str());
  const std::size_t name_end = process.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  unsigned long long ticks = 0;
  if (sscanf(process.c_str() + name_end + 1,
             " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
             &ticks) != 1)
    return std::nullopt;
  // Not /proc/stat, which can be long: now, minus the time since the machine started.
  timespec now{}, up{};
  clock_gettime(CLOCK_REALTIME, &now);
  clock_gettime(CLOCK_BOOTTIME, &up);
  return now.tv_sec - up.tv_sec +
         static_cast<std::int64_t>(ticks / static_cast<unsigned long long>(sysconf(_SC_CLK_TCK)));
}

bool is_old_leftover(int folder, const std::string& path, const char* name) {
  struct stat file;
  if (fstatat(folder, name, &file, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(file.st_mode) ||
      file.st_uid != geteuid() || time(nullptr) - file.st_mtime < kKeptSeconds)
    return false;
  const auto owner = read_spool_owner(path);
  return owner && !owner->is_finished && !owner->is_written && owner->host == short_host_name() &&
         !may_be_writer(owner->pid, file.st_mtime);
}

}  // namespace

std::optional<SpoolOwner> read_spool_owner(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  alignas(spool::FileHeader) char bytes[sizeof(spool::FileHeader)] = {};
  struct stat file;
  const bool is_whole = fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
                        pread(fd, bytes, sizeof bytes, 0) == static_cast<ssize_t>(sizeof bytes);
  // SpoolFile::create() takes this lock. The kernel releases it when the last process that has the
  // file open ends.
  const bool is_written = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  const auto& header = *reinterpret_cast<const spool::FileHeader*>(bytes);
  if (!is_whole || memcmp(header.magic, spool::kMagic, sizeof header.magic) != 0 ||
      header.layout_version != spool::kLayoutVersion)
    return std::nullopt;
  SpoolOwner owner;
  owner.pid = header.pid;
  owner.host = host_part({header.host_name, strnlen(header.host_name, sizeof header.host_name)});
  owner.is_finished = header.state == spool::FileState::kFinished;
  owner.is_written = is_written;
  return owner;
}

bool may_be_writer(std::uint64_t pid, std::int64_t changed_s) {
  if (pid == 0 || pid > INT32_MAX) return false;
  if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return false;
  const auto began = start_time(pid);
  return !began || *began <= changed_s + kMarginSeconds;
}

int remove_old_temporary_spools(const std::string& directory) noexcept {
  int removed = 0;
  try {
    DIR* const folder = opendir(directory.c_str());
    if (!folder) return 0;
    int names = 0, looked_at = 0;
    while (const dirent* entry = readdir(folder)) {
      if (++names > kMostNames || looked_at == kMostLookedAt || removed == kMostRemoved) break;
      const std::string_view name = entry->d_name;
      if (!name.starts_with(kTemporaryProgram) || !name.ends_with(spool::kEnding)) continue;
      const auto parts = parse_recording_name(name);
      if (!parts || parts->program != kTemporaryProgram) continue;
      ++looked_at;
      const std::string path = directory + '/' + entry->d_name;
      if (is_old_leftover(dirfd(folder), path, entry->d_name) &&
          unlinkat(dirfd(folder), entry->d_name, 0) == 0) {
        ++removed;
        unlinkat(dirfd(folder), (std::string(name) + std::string(counters::kEnding)).c_str(), 0);
      }
    }
    closedir(folder);
  } catch (...) {  // no memory: they stay
  }
  return removed;
}

}  // namespace lanescope::record
