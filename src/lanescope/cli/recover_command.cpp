// `lanescope recover`: turns a recording left by a killed process into a trace that
// every tool opens.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "lanescope/cli/background.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/save_recording.h"
#include "lanescope/cli/save_trace.h"
#include "lanescope/cli/table_text.h"
#include "lanescope/cli/text.h"
#include "lanescope/codec/counter_file.h"
#include "lanescope/format/spool/read_spool.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

struct RecoverFlags {
  std::string folder, out;
  bool force = false, yes = false, table = false, remove = false, background = false;
};

struct Recordings {
  std::vector<fs::path> here;   // in the given folder, or the given file
  std::vector<fs::path> below;  // in the folders in it
};

std::vector<fs::path> recordings_below(const fs::path& folder) {
  std::vector<fs::path> found;
  struct stat top;
  if (stat(folder.c_str(), &top) != 0) return found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    struct stat inner;  // no links, no other file systems
    if (lstat(at->path().c_str(), &inner) != 0 || !S_ISDIR(inner.st_mode) ||
        inner.st_dev != top.st_dev)
      continue;
    if (const Result<std::vector<fs::path>> spools = format::find_spools(at->path()))
      found.insert(found.end(), spools->begin(), spools->end());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// In the folder and its subfolders, not deeper.
Result<Recordings> find_recordings(const std::string& folder) {
  std::error_code failed;
  if (!fs::exists(folder, failed)) {
    return Error{
        Errc::kIo,
        fmt::format("expected the folder that a recorded process wrote to, found no '{}'", folder)};
  }
  if (!fs::is_directory(folder, failed)) return Recordings{{folder}, {}};
  Recordings found;
  LANESCOPE_TRY(found.here, format::find_spools(folder));
  found.below = recordings_below(folder);
  if (!found.here.empty() || !found.below.empty()) return found;
  return Error{Errc::kUnavailable, fmt::format("expected recordings (*.lspool) in '{}', found "
                                               "none; a program that ended by itself leaves "
                                               "finished .json traces instead",
                                               folder)};
}

// The user may not know all subfolders of the folder: `recover /` must write nowhere.
void list_subfolders(const RecoverFlags& flags, const Recordings& found, Output& output) {
  constexpr std::size_t kMostFolders = 8;
  std::vector<std::string> folders;
  for (const fs::path& path : found.below)
    if (folders.empty() || folders.back() != path.parent_path().string())
      folders.push_back(path.parent_path().string());
  std::string list;
  for (std::size_t i = 0; i < std::min(folders.size(), kMostFolders); ++i)
    list += fmt::format("{}'{}'", i == 0 ? "" : ", ", folders[i]);
  if (folders.size() > kMostFolders)
    list += fmt::format(" and {} more", with_commas(folders.size() - kMostFolders));
  output.complain(fmt::format(
      "recover: {} recording{} in folders of '{}' {} left alone: {}; name the folder, or add --yes "
      "to write a trace next to each",
      with_commas(found.below.size()), found.below.size() == 1 ? "" : "s", flags.folder,
      found.below.size() == 1 ? "is" : "are", list));
}

// "1,234 ranges on 3 tracks; 2 chunks were still open, their complete records are in".
std::string summary(const SavedRecording& saved) {
  const ImportStats& stats = saved.stats;
  std::string text =
      fmt::format("{} range{} on {} track{}", with_commas(saved.slices),
                  saved.slices == 1 ? "" : "s", saved.tracks, saved.tracks == 1 ? "" : "s");
  const auto add = [&](ImportIssue issue, const char* one, const char* many) {
    const std::uint64_t count = stats[issue].count;
    if (count > 0) text += fmt::format("; {} {}", with_commas(count), count == 1 ? one : many);
  };
  add(ImportIssue::kOpenChunk, "chunk was still open, its complete records are in",
      "chunks were still open, their complete records are in");
  add(ImportIssue::kOpenRange, "range had not ended, it is drawn to the end",
      "ranges had not ended, they are drawn to the end");
  add(ImportIssue::kEarlyRange, "range had begun before what was kept, it is drawn from there",
      "ranges had begun before what was kept, they are drawn from there");
  add(ImportIssue::kLostBegin, "range is lost, its begin was not kept",
      "ranges are lost, their begins were not kept");
  add(ImportIssue::kChecksumMismatch, "chunk has changed since it was closed",
      "chunks have changed since they were closed");
  add(ImportIssue::kTruncatedFile, "chunk is cut off", "chunks are cut off");
  add(ImportIssue::kDroppedRecords, "record had found no room", "records had found no room");
  add(ImportIssue::kLostSamples, "stretch lacks samples of the GPU's counters",
      "stretches lack samples of the GPU's counters");
  return text;
}

// The name of the trace without .json, .gz and .zst, and ".txt".
std::string table_path(const std::string& trace) {
  std::string stem = trace;
  for (const char* end : {".gz", ".zst", ".json"})
    if (stem.ends_with(end)) stem.erase(stem.size() - std::strlen(end));
  return stem + ".txt";
}

// True: it was written, and a line said so.
bool write_table(const fs::path& recording, const std::string& path, const RecoverFlags& flags,
                 Output& output) {
  const Result<Trace> trace = format::read_spool(recording);
  const Result<std::string> text =
      trace ? usual_table_text(*trace, 100) : Result<std::string>(trace.error());
  const Result<std::uint64_t> written =
      text ? write_text_file(*text, path) : Result<std::uint64_t>(text.error());
  if (!written) {
    output.complain(message_of(written.error()));
    return false;
  }
  if (flags.background)
    output.write(fmt::format("table {}\n", path));
  else
    print_text_written(path, *written, output);
  return true;
}

int recover_one(const fs::path& recording, const std::string& target, const RecoverFlags& flags,
                Output& output) {
  if (const Result<void> free = check_target(target, flags.force); !free) {
    output.complain("recover: " + message_of(free.error()));
    return kUsage;
  }
  int code = kOk;
  const std::optional<SavedRecording> saved = save_recording(recording, target, output, &code);
  if (!saved) return code;
  std::error_code failed;
  fs::path counters = recording;
  counters += counters::kEnding;
  if (saved->is_empty) {
    const bool removed =
        flags.remove && !saved->stats.lost_anything() && fs::remove(recording, failed);
    output.complain(removed ? "nothing was recorded: no operator, no range, no CUDA call"
                            : fmt::format("nothing was recorded in '{}', so nothing was written",
                                          recording.string()));
    return kFailed;
  }
  if (target == "-") return kOk;
  if (flags.background) {
    output.write(fmt::format("trace {}\n", target));
  } else {
    output.write(fmt::format("{}: {}\n", recording.string(), summary(*saved)));
    print_written(saved->written, target, output);
  }
  if (flags.table && !write_table(recording, table_path(target), flags, output)) return kFailed;
  if (flags.remove && !fs::remove(recording, failed)) {
    output.complain(
        fmt::format("the recording stays: {}: {}", recording.string(), failed.message()));
    return kFailed;
  }
  if (flags.remove) fs::remove(counters, failed);
  return kOk;
}

int run_recover(const RecoverFlags& flags, Output& output) {
  if (flags.background) go_into_background();
  const Result<Recordings> found = find_recordings(flags.folder);
  if (!found) {
    output.complain("recover: " + message_of(found.error()));
    return found.error().code == Errc::kUnavailable ? kFailed : kUsage;
  }
  std::error_code failed;
  const bool into_folder = fs::is_directory(flags.out, failed);
  std::vector<fs::path> recordings = found->here;
  if (flags.yes || into_folder)
    recordings.insert(recordings.end(), found->below.begin(), found->below.end());
  else if (!found->below.empty())
    list_subfolders(flags, *found, output);
  if (recordings.empty()) return kUsage;  // all are in subfolders: a flag is missing
  if (recordings.size() > 1 && !flags.out.empty() && !into_folder) {
    output.complain(fmt::format(
        "recover: expected -o to name a folder, because '{}' holds {} recordings; found '{}'",
        flags.folder, recordings.size(), flags.out));
    return kUsage;
  }
  int worst = kOk;
  for (const fs::path& recording : recordings) {
    const fs::path next_to_it = fs::path(recording).replace_extension(".json");
    const fs::path target = flags.out.empty() ? next_to_it
                            : into_folder     ? flags.out / next_to_it.filename()
                                              : fs::path(flags.out);
    worst = std::max(worst, recover_one(recording, target.string(), flags, output));
  }
  return worst;
}

}  // namespace

void add_recover_command(CommandLine& line) {
  Command command = line.command("recover", "make traces from the recordings of killed processes");
  const auto flags = std::make_shared<RecoverFlags>();
  command.argument("DIR", &flags->folder,
                   "folder that the process recorded into (record -o), or one .lspool file",
                   {Completes::kFolder});
  command.text_flag(
      "-o,--out", &flags->out, "OUT",
      "file to write, packed if it ends in .gz or .zst; - is standard output; a folder if DIR "
      "holds several recordings (default: a .json next to each)",
      {Completes::kFile});
  command.switch_flag("--force", &flags->force, "overwrite existing files");
  command.switch_flag("--table", &flags->table, "also write the table, as .txt");
  command.switch_flag("--remove", &flags->remove,
                      "remove the recording when everything is written");
  command.switch_flag("--background", &flags->background,
                      "run with the lowest priority and at most 200 MB of memory, and end first if "
                      "memory is short (`record` uses it at the end of a program)");
  command.switch_flag(
      "--yes", &flags->yes,
      "also convert recordings in subfolders of DIR, each trace next to its recording");
  command.epilogue(R"(Examples:
  lanescope recover lanescope_traces
  lanescope recover lanescope_traces/train_20261123T061902Z_node7_4711.lspool -o train.json.gz

The recorder writes straight into its file, so kill -9 loses no complete record. Without --remove the recordings stay
as they are. Every reading command opens them without recover, too: lanescope table lanescope_traces
Memory does not grow with the recording: 100 MB are enough for any length. Only --table reads all of it at once.
Recordings in subfolders of DIR are listed, but converted only with --yes, or if -o names a folder. Deeper folders, links
to folders and other file systems are not searched.
)");
  command.runs([flags](Output& output) -> int { return run_recover(*flags, output); });
}

}  // namespace lanescope::cli
