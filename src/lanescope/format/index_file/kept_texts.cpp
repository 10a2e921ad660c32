#include "lanescope/format/index_file/kept_texts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "lanescope/base/string_pool.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/format/index_file/index_source.h"

namespace lanescope::format {
namespace {
namespace fs = std::filesystem;

constexpr std::uint64_t kMostHeadBytes = 1024;
// Counting what lies in the cache costs a look at each file, so it is done once for so many bytes.
constexpr std::uint64_t kBytesBetweenCounts = 8'000'000;

// The bytes of a file of ours that nobody else may write. Nothing: there is none, or it is too long.
std::optional<std::string> read_own_file(const fs::path& path, std::uint64_t most_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  struct stat info {};
  std::string text;
  bool is_good = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid() &&
                 (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 && info.st_size >= 0 &&
                 static_cast<std::uint64_t>(info.st_size) <= most_bytes;
  if (is_good) text.resize(static_cast<std::size_t>(info.st_size));
  for (std::size_t got = 0; is_good && got < text.size();) {
    const ssize_t more = ::read(fd, text.data() + got, text.size() - got);
    if (more < 0 && errno == EINTR) continue;
    is_good = more > 0;
    if (is_good) got += static_cast<std::size_t>(more);
  }
  ::close(fd);
  return is_good ? std::optional(std::move(text)) : std::nullopt;
}

class TextKeeper : public std::enable_shared_from_this<TextKeeper> {
 public:
  TextKeeper(KeptTextOptions options, IndexUse use, IndexCache cache)
      : options_(std::move(options)), use_(use), cache_(std::move(cache)) {}

  KeptText of(const std::string& path) {
    const auto source = describe_source(path);
    if (!source || !*source || (*source)->bytes < options_.write_from_bytes) return {};
    KeptText kept;
    kept.text = read(cache_.text_of(path), **source);
    if (use_ == IndexUse::kAutomatic)
      kept.keep = [self = shared_from_this(), path, source = **source](std::string_view text) {
        self->write(path, source, text);
      };
    return kept;
  }

 private:
  // All that the text depends on, and the text's own length and hash.
  std::string head_of(const IndexSource& source, std::string_view text) const {
    return fmt::format("lanescope kept text 1 {} {} {:016x} of {} {} {:016x}: {} {:016x}\n",
                       options_.kind, options_.version, index_build(), source.bytes,
                       source.changed_ns, source.fingerprint, text.size(), hash_bytes(text));
  }

  std::optional<std::string> read(const fs::path& file, const IndexSource& source) const {
    if (!cache_.may_use_texts()) return std::nullopt;
    auto found = read_own_file(file, options_.most_text_bytes + kMostHeadBytes);
    if (!found) return std::nullopt;
    const std::size_t end = found->find('\n');
    if (end == std::string::npos) return std::nullopt;
    const std::string_view text = std::string_view(*found).substr(end + 1);
    if (std::string_view(*found).substr(0, end + 1) != head_of(source, text)) return std::nullopt;
    return found->substr(end + 1);
  }

  void write(const std::string& path, const IndexSource& source, std::string_view text) {
    if (text.size() > options_.most_text_bytes || !cache_.make()) return;
    const auto now = describe_source(path);
    if (!now || *now != source || !cache_.has_room(text.size())) return;
    // Relaxed: it only spreads the counting.
    const std::uint64_t before = written_.fetch_add(text.size(), std::memory_order_relaxed);
    if (before == 0 || before / kBytesBetweenCounts != (before + text.size()) / kBytesBetweenCounts)
      cache_.make_room_for_texts(options_.most_cache_bytes -
                                 std::min(options_.most_cache_bytes, kBytesBetweenCounts));
    const auto sink = codec::create_file(cache_.text_of(path), 0077);
    if (sink && (*sink)->write(head_of(source, text)) && (*sink)->write(text))
      static_cast<void>((*sink)->finish());
  }

  const KeptTextOptions options_;
  const IndexUse use_;
  const IndexCache cache_;
  std::atomic<std::uint64_t> written_{0};
};

}  // namespace

KeepTexts keep_texts(const KeptTextOptions& options, const IndexOptions& index) {
  if (index.use == IndexUse::kOff || !index.cache) return {};
  const auto keeper = std::make_shared<TextKeeper>(options, index.use, *index.cache);
  return [keeper](const std::string& path) { return keeper->of(path); };
}

KeepTexts keep_texts(const KeptTextOptions& options) {
  const auto index = index_options_from_environment();
  return index ? keep_texts(options, *index) : KeepTexts();
}

}  // namespace lanescope::format
