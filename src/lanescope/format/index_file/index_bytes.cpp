#include "lanescope/format/index_file/index_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace lanescope::format {
namespace {

Error cannot(const char* verb, const std::filesystem::path& path, int reason) {
  return {Errc::kIo,
          std::string("cannot ") + verb + " " + path.string() + ": " + std::strerror(reason)};
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// False: the file is shorter, or cannot be read.
bool read_all(int fd, void* into, std::size_t size) {
  std::size_t got = 0;
  while (got < size) {
    const ssize_t more =
        ::pread(fd, static_cast<char*>(into) + got, size - got, static_cast<off_t>(got));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;
    got += static_cast<std::size_t>(more);
  }
  return true;
}

}  // namespace

Result<IndexFile> open_index_file(const std::filesystem::path& path) {
  // A pipe of that name must not make us wait.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return cannot("open", path, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return cannot("open", path, errno);
  if (!S_ISREG(info.st_mode) || info.st_size < static_cast<off_t>(sizeof(IndexHeader)))
    return Error{Errc::kCorruptInput,
                 path.string() + ": expected an index of lanescope, found " +
                     (S_ISREG(info.st_mode) ? "a file that is too short" : "no regular file")};
  IndexFile opened;
  opened.state = {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
                  nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
  opened.is_ours = info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  const auto size = static_cast<std::size_t>(info.st_size);
  void* const place = opened.is_ours ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0)
                                     : ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return cannot("map", path, errno);
  opened.bytes.owner = std::shared_ptr<const void>(
      place, [size](const void* at) { ::munmap(const_cast<void*>(at), size); });
  if (!opened.is_ours && !read_all(file.get(), place, size)) return cannot("read", path, errno);
  opened.bytes.bytes = {static_cast<const std::byte*>(place), size};
  return opened;
}

}  // namespace lanescope::format
