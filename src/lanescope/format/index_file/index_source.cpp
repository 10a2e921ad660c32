#include "lanescope/format/index_file/index_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "lanescope/base/string_pool.h"
#include "lanescope/codec/counter_file.h"
#include "lanescope/codec/spool_layout.h"
#include "lanescope/format/spool/read_spool.h"

namespace lanescope::format {
namespace {

constexpr std::uint64_t kEndBytes = 64 * 1024, kMiddleBytes = 4 * 1024, kMiddleBlocks = 8;

Error unreadable(const std::filesystem::path& path, int reason) {
  return {Errc::kIo, "cannot read " + path.string() + ": " + std::strerror(reason)};
}

// A recording that its program has not finished: records are written into it without a change of the
// file's time. Other layouts may say so elsewhere.
bool may_grow(std::string_view head) {
  using spool::FileHeader;
  if (!is_spool(head)) return false;
  if (head.size() < sizeof(FileHeader)) return true;
  std::uint32_t version = 0;
  spool::FileState state{};
  std::memcpy(&version, head.data() + offsetof(FileHeader, layout_version), sizeof(version));
  std::memcpy(&state, head.data() + offsetof(FileHeader, state), sizeof(state));
  return version != spool::kLayoutVersion || state != spool::FileState::kFinished;
}

// Counters of the hardware lie in a file of their own, which read_spool() reads as well.
bool has_counters(std::filesystem::path recording) {
  recording += counters::kEnding;
  std::error_code failed;
  return std::filesystem::exists(recording, failed);
}

class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

  // Appends up to `count` bytes; fewer at the end.
  bool read(std::uint64_t at, std::uint64_t count, std::string& out) const {
    const std::size_t before = out.size();
    out.resize(before + count);
    std::size_t got = 0;
    while (got < count) {
      const ssize_t more =
          ::pread(fd_, out.data() + before + got, count - got, static_cast<off_t>(at + got));
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) return false;
      if (more == 0) break;
      got += static_cast<std::size_t>(more);
    }
    out.resize(before + got);
    return true;
  }

 private:
  int fd_;
};

}  // namespace

Result<std::optional<IndexSource>> describe_source(const std::filesystem::path& path) {
  // A pipe is not opened: its writer would take that for the reader.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return unreadable(path, errno);
  if (!S_ISREG(info.st_mode)) return std::optional<IndexSource>();
  const OpenFile file(path);
  if (file.fd() < 0 || ::fstat(file.fd(), &info) != 0) return unreadable(path, errno);
  if (!S_ISREG(info.st_mode)) return std::optional<IndexSource>();

  IndexSource source;
  source.bytes = static_cast<std::uint64_t>(info.st_size);
  source.changed_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
  std::string bytes;
  bool read = file.read(0, kEndBytes, bytes);
  if (read && may_grow(bytes)) return std::optional<IndexSource>();
  if (read && is_spool(bytes) && has_counters(path)) return std::optional<IndexSource>();
  for (std::uint64_t i = 1; i <= kMiddleBlocks; ++i)
    read = read && file.read(source.bytes / (kMiddleBlocks + 1) * i, kMiddleBytes, bytes);
  read = read && file.read(source.bytes - std::min(source.bytes, kEndBytes), kEndBytes, bytes);
  if (!read) return unreadable(path, errno);
  source.fingerprint = hash_bytes(bytes);
  return std::optional(source);
}

}  // namespace lanescope::format
