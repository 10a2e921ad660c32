#include "lanescope/cli/leftover_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>

#include "lanescope/base/sort_rows.h"
#include "lanescope/codec/counter_file.h"
#include "lanescope/codec/spool_ending.h"
#include "lanescope/format/formats.h"
#include "lanescope/format/index_file/index_layout.h"
#include "lanescope/record/leftovers.h"
#include "lanescope/record/recording_name.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

enum class Kind : std::uint8_t {
  kNone,
  kHalfWritten,
  kReadCopy,
  kTemporary,
  kRecording,
  kLoneCounters,  // hardware counters whose recording is gone
};

struct Found {
  Kind kind = Kind::kNone;
  std::string host;  // empty: the file does not say
  std::uint64_t pid = 0;
  bool is_finished = false, is_written = false;
};

// The number after the last `mark`, if it ends the name.
std::optional<std::uint64_t> number_after(std::string_view name, std::string_view mark) {
  const std::size_t at = name.rfind(mark);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const char* const first = name.data() + at + mark.size();
  const char* const last = name.data() + name.size();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(first, last, number);
  if (error != std::errc() || end != last) return std::nullopt;
  return number;
}

bool is_counters(std::string_view name) {
  return name.ends_with(counters::kEnding) &&
         name.substr(0, name.size() - counters::kEnding.size()).ends_with(spool::kEnding);
}

bool is_result_name(std::string_view name) {
  const auto is_ending = [&](std::string_view ending) { return name.ends_with(ending); };
  const auto traces = format::format_endings(format::Endings::kWritten);
  constexpr std::string_view kTables[] = {".txt", ".html", ".svg"};
  return name.ends_with(format::kIndexEnding) ||
         std::any_of(traces.begin(), traces.end(), is_ending) ||
         std::any_of(std::begin(kTables), std::end(kTables), is_ending);
}

Found inspect_file(const fs::path& path);

// Hardware counters share the fate of their recording.
Found inspect_counters(const fs::path& path, Found found) {
  const std::string own = path.string();
  const std::string recording = own.substr(0, own.size() - counters::kEnding.size());
  std::error_code failed;
  if (fs::exists(fs::symlink_status(recording, failed))) return inspect_file(recording);
  if (found.pid != 0) found.kind = Kind::kLoneCounters;  // else not named by lanescope
  return found;
}

// <name>.partial-<pid>: codec/byte_sink.h. <recording>.lspool.part and <recording>.lspool.read<pid>
// are dumps and copies of a ring, made by the recording process.
Found inspect_file(const fs::path& path) {
  const std::string name = path.filename().string();
  const auto parts = record::parse_recording_name(name);
  Found found;
  if (parts) {
    found.host = parts->host;
    found.pid = parts->pid;
  }
  if (const auto pid = number_after(name, ".partial-")) {
    if (!is_result_name(name.substr(0, name.rfind(".partial-")))) return {};
    found.kind = Kind::kHalfWritten;
    found.pid = *pid;
    return found;
  }
  if (is_counters(name)) return inspect_counters(path, found);
  const bool is_part = name.ends_with(".lspool.part");
  const auto reader = number_after(name, ".lspool.read");
  if (!is_part && !reader && !name.ends_with(spool::kEnding)) return {};
  const auto owner = record::read_spool_owner(path.string());
  if (owner) {
    found.host = owner->host;
    found.pid = owner->pid;
    found.is_finished = owner->is_finished;
    found.is_written = owner->is_written;
  } else if (!parts) {
    return {};  // not ours, or of an unknown process
  }
  if (is_part) {
    found.kind = Kind::kHalfWritten;
  } else if (reader) {
    found.kind = Kind::kReadCopy;
    found.pid = *reader;
  } else if (owner) {  // else an .lspool that is not a recording
    const bool is_temporary = parts && parts->program == record::kTemporaryProgram;
    found.kind = is_temporary ? Kind::kTemporary : Kind::kRecording;
  }
  return found;
}

// Whether there is a result that is not empty, from `lanescope recover` or from the program's exit.
bool has_result(fs::path spool) {
  if (is_counters(spool.filename().string())) spool.replace_extension();
  for (const std::string_view ending : format::format_endings(format::Endings::kWritten)) {
    std::error_code failed;
    const fs::path result = fs::path(spool).replace_extension(ending);
    if (fs::is_regular_file(result, failed) && fs::file_size(result, failed) > 0) return true;
  }
  return false;
}

const char* word_of(Kind kind) {
  switch (kind) {
    case Kind::kHalfWritten:
      return "half-written file";
    case Kind::kReadCopy:
      return "copy for reading";
    case Kind::kTemporary:
      return "temporary recording";
    case Kind::kLoneCounters:
      return "hardware counters without their recording";
    default:
      return "recording";
  }
}

std::string reason_to_keep(const Found& found, const fs::path& path, std::int64_t changed_s,
                           const LeftoverOptions& options) {
  const bool is_here = found.host == record::short_host_name();
  if (found.is_written) return "a process is writing it";
  if (!is_here && !options.any_host)
    return found.host.empty()
               ? "its machine is unknown; add --any-host"
               : fmt::format("it is from the machine {}; add --any-host", found.host);
  if ((is_here || found.host.empty()) && record::may_be_writer(found.pid, changed_s))
    return fmt::format("process {} lives", found.pid);
  const bool is_useless = found.kind == Kind::kHalfWritten || found.kind == Kind::kReadCopy ||
                          found.kind == Kind::kLoneCounters;
  if (is_useless || options.recordings) return "";
  // A finished temporary recording was named on standard error when its program ended.
  if (found.kind == Kind::kTemporary)
    return found.is_finished ? "it is complete, and its program named it; add --recordings" : "";
  if (has_result(path)) return "";
  return "it holds what a killed process recorded; recover it, or add --recordings";
}

}  // namespace

Result<std::vector<LeftoverFile>> find_leftovers(const std::string& folder,
                                                 const LeftoverOptions& options) {
  std::vector<LeftoverFile> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    struct stat info;
    if (lstat(at->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const Found found = inspect_file(at->path());
    // A finished recording is a result, with any option.
    const bool is_result = found.kind == Kind::kRecording && found.is_finished;
    if (found.kind == Kind::kNone || is_result) continue;
    LeftoverFile file;
    file.path = at->path().string();
    file.what = word_of(found.kind);
    if (is_counters(file.path) && found.kind != Kind::kLoneCounters)
      file.what = fmt::format("hardware counters of a {}", file.what);
    file.why_not = reason_to_keep(found, at->path(), info.st_mtime, options);
    file.bytes = static_cast<std::uint64_t>(info.st_blocks) * 512;
    files.push_back(std::move(file));
  }
  if (failed)
    return Error{Errc::kIo, fmt::format("expected a folder that can be listed, found '{}': {}",
                                        folder, failed.message())};
  sort_rows(files.begin(), files.end(),
            [](const LeftoverFile& a, const LeftoverFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace lanescope::cli
