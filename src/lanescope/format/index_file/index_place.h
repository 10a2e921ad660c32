// What lies where the index of a trace belongs, next to it: another program's file may have that
// name.
#pragma once
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace lanescope::format {

enum class IndexPlace : std::uint8_t {
  kFree,   // no file; or an index, which may be damaged or of another version; or an empty file
  kOther,  // a file that does not begin like an index
  kUnreadable,  // a file that this user may not read
  kNoFile,      // a folder, a pipe, a device
};

// Opens the file, and reads a few bytes of a regular one. `index`: index_path_of(trace).
IndexPlace find_index_place(const std::filesystem::path& index);

// Collects the files of other programs under the names of indexes. Any number of threads may look.
class OtherFiles {
 public:
  // Nothing is looked at with LANESCOPE_INDEX=off: then no command would use an index.
  OtherFiles();
  void look_next_to(const std::filesystem::path& trace);
  // One line about all of them: what it is, and what to do. Nothing: there is none.
  std::optional<std::string> text() const;

 private:
  const bool looks_;
  mutable std::mutex mutex_;
  std::set<std::filesystem::path> found_;  // kOther and kNoFile
};

}  // namespace lanescope::format
