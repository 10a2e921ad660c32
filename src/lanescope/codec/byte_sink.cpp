#include "lanescope/codec/byte_sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace lanescope::codec {
namespace {

Error system_error(const char* verb, const std::string& name, int reason) {
  std::string message = std::string("cannot ") + verb + " " + name + ": " + std::strerror(reason);
  if (reason == ENOSPC || reason == EDQUOT)
    message += " (nothing was changed; free some space and try again)";
  return Error{Errc::kIo, std::move(message)};
}

class FileSink final : public ByteSink {
 public:
  FileSink(int fd, std::string name, std::string partial)
      : fd_(fd), name_(std::move(name)), partial_(std::move(partial)) {}
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  ~FileSink() override {
    if (fd_ >= 0) ::close(fd_);
    if (!partial_.empty()) ::unlink(partial_.c_str());
  }

  Result<void> write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return system_error("write", name_, errno);
      bytes.remove_prefix(static_cast<std::size_t>(count));
      written_ += static_cast<std::uint64_t>(count);
    }
    return {};
  }
  Result<void> finish() override {
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0 && errno != EINTR) return system_error("write", name_, errno);
    if (partial_.empty()) return {};
    if (std::rename(partial_.c_str(), name_.c_str()) != 0)
      return system_error("write", name_, errno);
    partial_.clear();
    return {};
  }
  std::uint64_t written_bytes() const override { return written_; }

 private:
  int fd_;
  std::string name_, partial_;  // partial_ is empty when name_ is written directly
  std::uint64_t written_ = 0;
};

class StringSink final : public ByteSink {
 public:
  explicit StringSink(std::string& out) : out_(out) {}
  Result<void> write(std::string_view bytes) override {
    out_ += bytes;
    written_ += bytes.size();
    return {};
  }
  Result<void> finish() override { return {}; }
  std::uint64_t written_bytes() const override { return written_; }

 private:
  std::string& out_;
  std::uint64_t written_ = 0;
};

}  // namespace

Result<std::unique_ptr<ByteSink>> create_file(const std::filesystem::path& path,
                                              unsigned withheld) {
  const std::string name = path.string();
  struct stat info {};
  const bool exists = ::stat(name.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    return Error{Errc::kIo, "cannot write " + name + ": it is a directory"};
  const bool direct = exists && !S_ISREG(info.st_mode);
  // Follow a link: its target is replaced and the link stays.
  std::error_code no_link;
  const std::string target =
      exists && !direct ? std::filesystem::canonical(path, no_link).string() : name;
  const std::string final_name = no_link ? name : target;
  const std::string partial =
      direct ? std::string() : final_name + ".partial-" + std::to_string(::gettid());
  const int fd = ::open(direct ? name.c_str() : partial.c_str(),
                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666 & ~withheld);
  if (fd < 0) return system_error("write", name, errno);
  if (exists && !direct) static_cast<void>(::fchmod(fd, info.st_mode & 07777 & ~withheld));
  return std::unique_ptr<ByteSink>(std::make_unique<FileSink>(fd, final_name, partial));
}

std::unique_ptr<ByteSink> string_sink(std::string& out) {
  return std::make_unique<StringSink>(out);
}

}  // namespace lanescope::codec
