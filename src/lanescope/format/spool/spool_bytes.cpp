#include "lanescope/format/spool/spool_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace lanescope::format {
namespace {

class FileBytes final : public SpoolBytes {
 public:
  static Result<std::unique_ptr<FileBytes>> open(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return Error{Errc::kIo, fmt::format("{}: {}", path.string(), std::strerror(errno))};
    std::unique_ptr<FileBytes> file(new FileBytes(fd));
    struct stat info {};
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
      return Error{Errc::kIo, fmt::format("{}: not a regular file", path.string())};
    file->size_ = static_cast<std::uint64_t>(info.st_size);
    return file;
  }
  ~FileBytes() override { close(fd_); }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  std::uint64_t size() const override { return size_; }
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) const override {
    std::size_t got = 0;
    while (got < into.size()) {
      const ssize_t count =
          pread(fd_, into.data() + got, into.size() - got, static_cast<off_t>(offset + got));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      got += static_cast<std::size_t>(count);
    }
    return got;
  }

 private:
  explicit FileBytes(int fd) : fd_(fd) {}
  int fd_;
  std::uint64_t size_ = 0;
};

class MemoryBytes final : public SpoolBytes {
 public:
  explicit MemoryBytes(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset >= bytes_.size()) return 0;
    const std::size_t count =
        std::min(into.size(), bytes_.size() - static_cast<std::size_t>(offset));
    std::memcpy(into.data(), bytes_.data() + offset, count);
    return count;
  }

 private:
  std::string_view bytes_;
};

}  // namespace

Result<std::unique_ptr<SpoolBytes>> open_spool_file(const std::filesystem::path& path) {
  LANESCOPE_TRY(auto file, FileBytes::open(path));
  return std::unique_ptr<SpoolBytes>(std::move(file));
}

std::unique_ptr<SpoolBytes> spool_bytes_of(std::string_view bytes) {
  return std::make_unique<MemoryBytes>(bytes);
}

}  // namespace lanescope::format
