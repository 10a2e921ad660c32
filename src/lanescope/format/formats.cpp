#include "lanescope/format/formats.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "lanescope/base/share_work.h"
#include "lanescope/codec/spool_ending.h"
#include "lanescope/format/kineto_json/read_kineto_json.h"
#include "lanescope/format/known_files.h"
#include "lanescope/format/perfetto/read_pftrace.h"
#include "lanescope/format/perfetto/write_pftrace.h"
#if LANESCOPE_HAS_SQL
#include "lanescope/format/nsys_sqlite/read_nsys_sqlite.h"
#endif

namespace lanescope::format {
namespace {

constexpr std::array<std::string_view, 3> kJsonEndings{".json", ".json.gz", ".json.zst"};
constexpr std::array<std::string_view, 1> kRecordingEndings{spool::kEnding};
constexpr std::array<std::string_view, 2> kPerfettoEndings{".pftrace", ".perfetto-trace"};

Result<Trace> read_json(const TraceInput& input, const ReadOptions& options) {
  return read_kineto_json(input.source, input.name, options);
}

Result<Trace> read_recording(const TraceInput& input, const ReadOptions& /*options*/) {
  if (input.path) return read_spool(*input.path);
  if (!input.bytes.empty()) return read_spool_bytes(input.bytes);
  const bool packed = input.source.packing() != codec::Packing::kPlain;
  return Error{Errc::kUnsupported,
               std::string(input.name) +
                   ": expected a lanescope recording as a file, because it is read more than once; "
                   "found one " +
                   (packed ? std::string("in a ") + codec::packing_name(input.source.packing()) +
                                 " file; unpack it first"
                           : "in a pipe; give its path"),
               0};
}

Result<ImportStats> read_recording_pieces(const std::filesystem::path& path,
                                          std::uint64_t rows_per_piece,
                                          const SpoolPieceSink& sink) {
  return read_spool_pieces(path, rows_per_piece, sink);
}

Result<Trace> read_perfetto(const TraceInput& input, const ReadOptions& options) {
  return read_pftrace(input.source, options);
}

#if LANESCOPE_HAS_SQL
constexpr std::array<std::string_view, 1> kNsysEndings{".sqlite"};

// Says whose database it is by its tables, which may be far from the file's first bytes.
Error other_sqlite(const SqliteFile& file, std::string_view name) {
  std::string head("SQLite format 3\0", 16);
  for (const std::string& table : file.table_names()) head += "CREATE TABLE " + table + '\n';
  const KnownFile known = known_file(head, name);
  return {Errc::kUnsupported,
          std::string(name) + ": expected " + formats_text() + ", found " + known.found + "; " +
              known.advice,
          0};
}

// An error without a message: read_trace names the file.
Result<Trace> read_sqlite(const TraceInput& input, const ReadOptions& options) {
  if (!input.path && input.bytes.empty()) return Error{Errc::kUnsupported, "", 0};
  const auto file =
      input.path ? SqliteFile::open(*input.path) : SqliteFile::open_bytes(input.bytes);
  if (!file) return Error{Errc::kUnsupported, "", 0};
  if (!is_nsys_export(**file)) return other_sqlite(**file, input.name);
  (*file)->set_reads_ahead((options.threads == 0 ? usual_threads() : options.threads) > 1);
  return read_nsys_sqlite(**file, input.source.total_bytes());
}
#endif

constexpr std::array kFormats{std::to_array<TraceFormat>({
  {"kineto-json", "a PyTorch or Chrome trace", kJsonEndings, &looks_like_kineto_json,
   &read_json,    &write_kineto_json,          nullptr},
      {"lanescope-recording", "a lanescope recording",
       kRecordingEndings,     &is_spool,
       &read_recording,       nullptr,
       &read_recording_pieces},
      {"perfetto",     "a Perfetto trace", kPerfettoEndings, &is_pftrace,
       &read_perfetto, &write_pftrace,     nullptr},
#if LANESCOPE_HAS_SQL
      {"nsys-sqlite", "an SQLite export of Nsight Systems",
       kNsysEndings,  &is_sqlite,
       &read_sqlite,  nullptr,
       nullptr},
#endif
})};

// The first kFormatHeadBytes, unpacked; fewer if the file is shorter. Empty: it cannot be read.
std::string head_of_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  auto file = codec::open_file(path);
  if (!file) return {};
  const auto unpacked = codec::open_unpacked(std::move(*file));
  if (!unpacked) return {};
  std::string head(kFormatHeadBytes, '\0');
  std::size_t filled = 0;
  while (filled < head.size()) {
    const auto count = (*unpacked)->read(std::span(head).subspan(filled));
    if (!count || *count == 0) break;
    filled += *count;
  }
  head.resize(filled);
  return head;
}

// `head`: as head_of_file(), of a file that looks like JSON.
bool is_other_json(std::string_view head) {
  const auto has = [&](std::string_view text) { return head.find(text) != std::string_view::npos; };
  if (has("speedscope.app/file-format-schema")) return true;
  const std::size_t first = head.find_first_of("{[");
  const bool is_whole = head.size() < kFormatHeadBytes;
  return is_whole && first != std::string_view::npos && head[first] == '{' &&
         !has("\"traceEvents\"");
}

}  // namespace

std::span<const TraceFormat> trace_formats() { return kFormats; }

const TraceFormat* find_format(std::string_view head) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(),
                                  [&](const TraceFormat& format) { return format.detects(head); });
  return found == kFormats.end() ? nullptr : &*found;
}

const TraceFormat* find_format_of_file(const std::filesystem::path& path) {
  return find_format(head_of_file(path));
}

bool may_be_trace(const std::filesystem::path& path) {
  const std::string head = head_of_file(path);
  if (head.empty()) return true;  // a trace whose writing failed: its error says so
  const TraceFormat* const format = find_format(head);
  if (!format) return false;
#if LANESCOPE_HAS_SQL
  if (is_sqlite(head)) {
    const auto file = SqliteFile::open(path);
    return file && is_nsys_export(**file);
  }
#endif
  return format->detects != &looks_like_kineto_json || !is_other_json(head);
}

const TraceFormat* find_format_by_ending(std::string_view file_name) {
  for (const TraceFormat& format : kFormats)
    for (const std::string_view ending : format.endings)
      if (file_name.ends_with(ending)) return &format;
  return nullptr;
}

std::span<const std::string_view> format_endings(Endings endings) {
  static const auto kLists = [] {
    std::array<std::vector<std::string_view>, 2> lists;
    for (const TraceFormat& format : kFormats) {
      lists[0].insert(lists[0].end(), format.endings.begin(), format.endings.end());
      if (format.write)
        lists[1].insert(lists[1].end(), format.endings.begin(), format.endings.end());
    }
    return lists;
  }();
  return kLists[endings == Endings::kWritten ? 1 : 0];
}

std::string endings_text(std::span<const std::string_view> endings) {
  std::string text;
  for (const std::string_view ending : endings)
    text.append(text.empty() ? "" : ", ").append(ending);
  return text;
}

const std::string& formats_text() {
  static const std::string kText = [] {
    std::string text;
    for (std::size_t i = 0; i < kFormats.size(); ++i) {
      if (i > 0) text += i + 1 == kFormats.size() ? " or " : ", ";
      text.append(kFormats[i].title).append(" (").append(endings_text(kFormats[i].endings)) += ')';
    }
    return text;
  }();
  return kText;
}

Result<void> check_written_ending(std::string_view file_name, std::string_view others) {
  const TraceFormat* const format = find_format_by_ending(file_name);
  if (format && format->write) return {};
  for (const std::string_view packing : {".gz", ".zst"})
    if (!format && file_name.ends_with(packing) &&
        find_format_by_ending(file_name.substr(0, file_name.size() - packing.size())))
      return Error{Errc::kInvalidArgument, "expected a file name without " + std::string(packing) +
                                               ", found '" + std::string(file_name) +
                                               "'; only JSON is packed while it is written"};
  if (!format) return {};
  return Error{Errc::kInvalidArgument,
               "expected a file name that ends in " +
                   endings_text(format_endings(Endings::kWritten)) + (others.empty() ? "" : ", ") +
                   std::string(others) + ", found '" + std::string(file_name) + "', and " +
                   std::string(format->title) + " is not a format that lanescope converts to"};
}

Result<WriteStats> write_trace(const Trace& trace, const std::filesystem::path& path,
                               const WriteOptions& options) {
  LANESCOPE_TRY_VOID(check_written_ending(path.filename().string()));
  const TraceFormat* const format = find_format_by_ending(path.filename().string());
  return (format ? format : kFormats.data())->write(trace, path, options);
}

}  // namespace lanescope::format
