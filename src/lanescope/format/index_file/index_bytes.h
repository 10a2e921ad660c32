// Opens an index file: maps it where that is safe, else copies it.
#pragma once
#include <cstdint>
#include <filesystem>

#include "lanescope/base/result.h"
#include "lanescope/format/index_file/read_index.h"

namespace lanescope::format {

// Which file it was, and in which state. The kernel sets `status_changed_ns` at every change of
// bytes, owner or permissions, and no program can choose its value.
struct IndexFileState {
  std::uint64_t device = 0, inode = 0, bytes = 0;
  std::int64_t changed_ns = 0, status_changed_ns = 0;
  bool operator==(const IndexFileState&) const = default;
};

struct IndexFile {
  IndexBytes bytes;
  IndexFileState state;
  // The file belongs to this user, and nobody else may write it. Only then it is mapped; else the
  // bytes are a copy. Whoever may write a mapped file could change it after it was checked.
  bool is_ours = false;
};

// kIo: the system's reason; kCorruptInput: no regular file, or too short for an index.
Result<IndexFile> open_index_file(const std::filesystem::path& path);

}  // namespace lanescope::format
