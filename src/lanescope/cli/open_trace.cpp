#include "lanescope/cli/open_trace.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "lanescope/analysis/gpu_parts.h"
#include "lanescope/analysis/thinning.h"
#include "lanescope/cli/open_kept.h"
#include "lanescope/cli/progress.h"
#include "lanescope/cli/text.h"
#include "lanescope/format/index_file/index_place.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/profiler/newest_trace.h"
#include "lanescope/record/range.h"
#include "lanescope/report/thinning_text.h"

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

constexpr char kStandardInput[] = "/dev/stdin";
constexpr std::size_t kMostNames = 10000;  // names in a folder to check for suggestions

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end;
       !failed && at != end && names.size() < kMostNames; at.increment(failed)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string in_folder(const fs::path& folder, const std::string& name) {
  return folder == "." ? name : (folder / name).string();
}

// Sockets cannot be opened again through /dev/stdin, so read them into memory.
Result<Trace> read_socket(const format::ReadOptions& options) {
  std::string bytes;
  std::vector<char> buffer(std::size_t{1} << 20U);
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return Error{Errc::kIo,
                   fmt::format("could not read standard input: {}", std::strerror(errno))};
    if (got == 0) break;
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
    options.progress(bytes.size(), 0);
  }
  return format::read_trace_bytes(bytes, options, "standard input");
}

Result<Trace> read_standard_input(const format::ReadOptions& options) {
  if (isatty(STDIN_FILENO) == 1) {
    return Error{Errc::kInvalidArgument,
                 "expected a trace on standard input, found a terminal; name a file, or send one "
                 "in: lanescope table - < trace.json"};
  }
  struct stat info {};
  if (fstat(STDIN_FILENO, &info) == 0 && S_ISSOCK(info.st_mode)) return read_socket(options);
  Result<Trace> trace = format::read_trace(kStandardInput, options);
  if (!trace && trace.error().message.starts_with(kStandardInput)) {
    trace.error().message.replace(0, std::strlen(kStandardInput), "standard input");
  }
  return trace;
}

Result<Trace> read(const std::string& path, const format::ReadOptions& options,
                   format::KeptSections* kept, format::IndexUse at_most) {
  if (path == "-") return read_standard_input(options);
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found) return missing_file(path);
  LANESCOPE_TRY(format::IndexOptions index, format::index_options_from_environment());
  index.use = std::min(index.use, at_most);
  return format::open_indexed(path, options, index, kept);
}

// The event in which a cut file ends is lost, too: that is no damage of its own.
bool is_cut_event(const ImportStats& stats) {
  constexpr std::uint64_t kLongestEvent = 64 * 1024;
  const ImportStats::Counter& event = stats[ImportIssue::kEventLost];
  const ImportStats::Counter& cut = stats[ImportIssue::kTruncatedFile];
  return event.count == 1 && cut.count > 0 && event.first_offset && cut.first_offset &&
         *event.first_offset <= *cut.first_offset &&
         *cut.first_offset - *event.first_offset < kLongestEvent;
}

// "the JSON ends before its last bracket (at byte 812), ... (3 times, first at byte 55)"; "" when
// there is none.
std::string list_issues(const ImportStats& stats, Severity severity) {
  std::string list;
  for (std::size_t i = 0; i < kImportIssueCount; ++i) {
    const ImportIssueInfo& info = import_issue_info(static_cast<ImportIssue>(i));
    const ImportStats::Counter& counter = stats[static_cast<ImportIssue>(i)];
    if (info.severity != severity || counter.count == 0) continue;
    if (static_cast<ImportIssue>(i) == ImportIssue::kEventLost && is_cut_event(stats)) continue;
    // Kineto cuts arrows at the window's edges in nearly every trace, so only `info` counts them.
    if (static_cast<ImportIssue>(i) == ImportIssue::kOrphanFlow) continue;
    std::string place = counter.count > 1 ? with_commas(counter.count) + " times" : "";
    if (counter.first_offset) {
      place += fmt::format("{}at byte {}", place.empty() ? "" : ", first ",
                           with_commas(*counter.first_offset));
    }
    list += (list.empty() ? "" : "; ") + std::string(info.description);
    if (!place.empty()) list += fmt::format(" ({})", place);
  }
  return list;
}

}  // namespace

Error missing_file(const std::string& path) {
  const fs::path parent =
      fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  std::error_code failed;
  if (!fs::is_directory(parent, failed)) {
    return {Errc::kIo, fmt::format("expected a trace file, found no folder '{}'", parent.string())};
  }
  const std::string name = fs::path(path).filename().string();
  std::vector<std::string> close;
  for (const std::string& match : close_matches(name, names_in(parent))) {
    close.push_back(fmt::format("'{}'", in_folder(parent, match)));
  }
  return {Errc::kIo, fmt::format("expected a trace file, found no '{}'{}", path,
                                 close.empty() ? "" : "; did you mean " + joined_or(close) + "?")};
}

std::vector<std::string> damage_lines(const ImportStats& stats, const std::string& path) {
  std::vector<std::string> lines;
  const std::string lost = list_issues(stats, Severity::kLost);
  const std::string repaired = list_issues(stats, Severity::kRepaired);
  if (!lost.empty()) lines.push_back("lost: " + lost);
  if (!repaired.empty()) lines.push_back("repaired: " + repaired);
  if (stats[ImportIssue::kWrongChecksum].count > 0)
    lines.push_back(
        fmt::format("note: {}", import_issue_info(ImportIssue::kWrongChecksum).description));
  if (!lines.empty()) lines.back() += fmt::format("; see lanescope info {}", path);
  return lines;
}

std::optional<std::string> no_times_text(const Trace& trace, const std::string& path) {
  if (trace.slices().size() + trace.instants().size() + trace.counters().size() +
          trace.flows().size() >
      0)
    return std::nullopt;
  std::uint64_t without = 0;
  std::optional<std::uint64_t> first;
  for (const ImportIssue issue : {ImportIssue::kMissingField, ImportIssue::kBadTime}) {
    const ImportStats::Counter& counter = trace.import_stats()[issue];
    without += counter.count;
    if (counter.first_offset)
      first = std::min(first.value_or(*counter.first_offset), *counter.first_offset);
  }
  if (without == 0) return std::nullopt;
  return fmt::format(
      "{}: expected events with a time, found {} of which none has one that can be read{}; \"ts\" "
      "and \"dur\" are numbers of microseconds, as in \"ts\": 12.5",
      path == "-" ? "standard input" : path, with_commas(without),
      first ? fmt::format(" (the first at byte {})", with_commas(*first)) : "");
}

std::optional<std::string> file_of(const std::string& path, Output& output, int* code) {
  if (std::error_code failed; !fs::is_directory(path, failed)) return path;
  Result<NewestTrace> newest = newest_trace_in(path);
  if (!newest) {
    output.complain(message_of(newest.error()));
    *code = kUsage;
    return std::nullopt;
  }
  output.complain(newest->line);
  return newest->path;
}

void complain_of_others(const format::OtherFiles& others, Output& output) {
  if (const auto text = others.text()) output.complain(*text);
}

namespace {

std::string gpu_parts_text(const analysis::GpuParts& parts) {
  if (parts.count == 0)
    return "recorded with a budget that did not pay for the GPU before the end: this trace has no "
           "GPU work, whatever the program did";
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e9; };
  return fmt::format(
      "recorded with a budget: it paid for {} with the GPU; this trace is {}, from {:.2f} s to "
      "{:.2f} s after the recording's start",
      parts.count == 1 ? std::string("one part") : fmt::format("{} parts", parts.count),
      parts.count == 1 ? "that part" : "the longest of them", seconds(parts.from_ns),
      seconds(parts.to_ns));
}

std::optional<Trace> open(const std::string& file, Output& output, int* code, Damage damage,
                          format::KeptSections* kept, format::IndexUse at_most) {
  RecordFunction stage("read trace");
  const std::optional<std::string> found = file_of(file, output, code);
  if (!found) return std::nullopt;
  const std::string& path = *found;
  Result<Trace> trace = [&] {
    ProgressLine line(
        output, "reading " + (path == "-" ? "standard input" : fs::path(path).filename().string()));
    format::ReadOptions options;
    options.progress = [&](std::uint64_t done, std::uint64_t total) { line.update(done, total); };
    return read(path, options, kept, at_most);
  }();
  stage.end();
  if (!trace) {
    output.complain(message_of(trace.error()));
    *code = trace.error().code == Errc::kUnavailable ? kFailed : kUsage;
    return std::nullopt;
  }
  if (const auto nothing = no_times_text(*trace, path)) {
    output.complain(*nothing);
    *code = kUsage;
    return std::nullopt;
  }
  if (path != "-") {
    format::OtherFiles others;
    others.look_next_to(path);
    complain_of_others(others, output);
  }
  if (const auto parts = analysis::find_gpu_parts(*trace)) output.complain(gpu_parts_text(*parts));
  if (const auto thinning = analysis::find_thinning(*trace); thinning && damage == Damage::kPrinted)
    output.complain("recorded with a budget: " + report::thinning_text(*thinning));
  if (damage == Damage::kPrinted) {
    for (const std::string& line : damage_lines(trace->import_stats(), path)) output.complain(line);
  }
  return std::move(*trace);
}

}  // namespace

std::optional<Trace> open_trace(const std::string& file, Output& output, int* code, Damage damage) {
  return open(file, output, code, damage, nullptr, format::IndexUse::kAutomatic);
}

std::optional<Trace> open_trace_kept(const std::string& file, Output& output, int* code,
                                     format::KeptSections* kept, Damage damage,
                                     format::IndexUse at_most) {
  return open(file, output, code, damage, kept, at_most);
}

}  // namespace lanescope::cli
