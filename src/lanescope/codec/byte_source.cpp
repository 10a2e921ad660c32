#include "lanescope/codec/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace lanescope::codec {
namespace {

class FileSource final : public ByteSource {
 public:
  FileSource(int fd, std::uint64_t total, std::string name)
      : fd_(fd), total_(total), name_(std::move(name)) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { ::close(fd_); }

  Result<std::size_t> read(std::span<char> into) override {
    for (;;) {
      const ssize_t count = ::read(fd_, into.data(), into.size());
      if (count >= 0) {
        done_ += static_cast<std::uint64_t>(count);
        return static_cast<std::size_t>(count);
      }
      if (errno != EINTR)
        return Error{Errc::kIo, "cannot read " + name_ + ": " + std::strerror(errno), done_};
    }
  }
  std::uint64_t done_bytes() const override { return done_; }
  std::uint64_t total_bytes() const override { return total_; }

 private:
  int fd_;
  std::uint64_t total_, done_ = 0;
  std::string name_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  Result<std::size_t> read(std::span<char> into) override {
    const std::size_t count = std::min(into.size(), bytes_.size() - done_);
    if (count > 0) std::memcpy(into.data(), bytes_.data() + done_, count);
    done_ += count;
    return count;
  }
  std::uint64_t done_bytes() const override { return done_; }
  std::uint64_t total_bytes() const override { return bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t done_ = 0;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error{Errc::kIo, "cannot open " + name + ": " + std::strerror(errno)};
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    const int reason = errno;
    ::close(fd);
    return Error{Errc::kIo, "cannot read " + name + ": " + std::strerror(reason)};
  }
  if (S_ISDIR(info.st_mode)) {
    ::close(fd);
    return Error{Errc::kInvalidArgument, "expected a file, found the directory " + name};
  }
  const std::uint64_t total =
      S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : std::uint64_t{0};
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);  // advice only: failing costs nothing
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(fd, total, name));
}

std::unique_ptr<ByteSource> memory_source(std::string_view bytes) {
  return std::make_unique<MemorySource>(bytes);
}

}  // namespace lanescope::codec
