#include "lanescope/format/index_file/index_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "lanescope/base/string_pool.h"
#include "lanescope/format/spool/read_spool.h"

namespace lanescope::format {
namespace {

constexpr std::uint64_t kEndBytes = 64 * 1024, kMiddleBytes = 4 * 1024, kMiddleBlocks = 8;

Error unreadable(const std::filesystem::path& path, int reason) {
  return {Errc::kIo, "cannot read " + path.string() + ": " + std::strerror(reason)};
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
  if (read && is_spool(bytes)) return std::optional<IndexSource>();
  for (std::uint64_t i = 1; i <= kMiddleBlocks; ++i)
    read = read && file.read(source.bytes / (kMiddleBlocks + 1) * i, kMiddleBytes, bytes);
  read = read && file.read(source.bytes - std::min(source.bytes, kEndBytes), kEndBytes, bytes);
  if (!read) return unreadable(path, errno);
  source.fingerprint = hash_bytes(bytes);
  return std::optional(source);
}

}  // namespace lanescope::format
