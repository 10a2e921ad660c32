#include "lanescope/format/index_file/index_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

#include "lanescope/format/index_file/index_layout.h"
#include "lanescope/format/index_file/open_indexed.h"

namespace lanescope::format {
namespace {
namespace fs = std::filesystem;

bool is_used() {
  const auto options = index_options_from_environment();
  return options && options->use != IndexUse::kOff;
}

}  // namespace

IndexPlace find_index_place(const fs::path& index) {
  struct stat info {};
  if (::stat(index.c_str(), &info) != 0) return IndexPlace::kFree;
  if (!S_ISREG(info.st_mode)) return IndexPlace::kNoFile;
  const int fd = ::open(index.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno == ENOENT ? IndexPlace::kFree : IndexPlace::kUnreadable;
  char head[sizeof(kIndexMagic)];
  const ssize_t got = ::read(fd, head, sizeof(head));
  ::close(fd);
  if (got < 0) return IndexPlace::kUnreadable;
  // An index that was cut is damage.
  const std::string_view magic(kIndexMagic, sizeof(kIndexMagic));
  return magic.starts_with(std::string_view(head, static_cast<std::size_t>(got)))
             ? IndexPlace::kFree
             : IndexPlace::kOther;
}

OtherFiles::OtherFiles() : looks_(is_used()) {}

void OtherFiles::look_next_to(const fs::path& trace) {
  if (!looks_) return;
  fs::path index = index_path_of(trace);
  const IndexPlace place = find_index_place(index);
  if (place != IndexPlace::kOther && place != IndexPlace::kNoFile) return;
  const std::lock_guard lock(mutex_);
  found_.insert(std::move(index));
}

std::optional<std::string> OtherFiles::text() const {
  const std::lock_guard lock(mutex_);
  if (found_.empty()) return std::nullopt;
  const std::string first = found_.begin()->string();
  const std::size_t more = found_.size() - 1;
  if (more == 0)
    return first +
           " is not an index of lanescope, and left as it was: move it, or let lanescope index "
           "--force write over it";
  return fmt::format(
      "{} and {} other{} are not an index of lanescope, and left as they were: move them, or let "
      "lanescope index --force write over them",
      first, more, more == 1 ? "" : "s");
}

}  // namespace lanescope::format
