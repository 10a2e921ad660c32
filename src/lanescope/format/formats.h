// The trace formats that lanescope reads and writes. Detection, reading, writing, commands and
// messages all use this list, so a new format needs one more row in it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lanescope/base/result.h"
#include "lanescope/codec/unpack.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

// What a reader gets. A reader that goes from front to back takes `source`. One that reads at any
// offset takes `path` or `bytes`; without both (a pipe, a compressed file) it returns an error.
struct TraceInput {
  codec::UnpackedSource& source;                // from the first byte
  std::string_view name;                        // for messages
  const std::filesystem::path* path = nullptr;  // a regular file that is not compressed
  std::string_view bytes = {};                  // the whole input, in memory and not compressed
};

struct TraceFormat {
  std::string_view name;   // stable: "kineto-json"
  std::string_view title;  // a noun phrase for messages: "a PyTorch or Chrome trace"
  // Endings of file names, the most usual one first. Packed forms (.json.gz) are separate entries.
  std::span<const std::string_view> endings;
  // From the first kFormatHeadBytes, unpacked. At most one format says yes.
  bool (*detects)(std::string_view head);
  // Errors and cost: read_trace.h. A reader returns an error without a message if this is another kind of file
  // with the same first bytes. It has read nothing from the source then, and read_trace() writes the message.
  Result<Trace> (*read)(const TraceInput& input, const ReadOptions& options);
  // Null: lanescope does not write it.
  Result<WriteStats> (*write)(const Trace& trace, const std::filesystem::path& path,
                              const WriteOptions& options);
  // Reads a file in pieces, so that memory does not grow with its length. Null: only as a whole.
  Result<ImportStats> (*read_pieces)(const std::filesystem::path& path,
                                     std::uint64_t rows_per_piece, const SpoolPieceSink& sink);
};

// Enough of the text for every detects().
inline constexpr std::size_t kFormatHeadBytes = 4096;

// In the order of preference: of two files with one name, the first format is opened.
std::span<const TraceFormat> trace_formats();

// By content. nullptr: none.
const TraceFormat* find_format(std::string_view head);
// The same for a regular file, which may be compressed. nullptr also if it cannot be read.
const TraceFormat* find_format_of_file(const std::filesystem::path& path);
// False if the first bytes show that it is no trace: another format, an SQLite file of another
// program, a profile for speedscope, or a short JSON object without traceEvents. True for an empty
// file and one that cannot be read. Costs one short read.
bool may_be_trace(const std::filesystem::path& path);
// By the ending of a file's name. nullptr: none.
const TraceFormat* find_format_by_ending(std::string_view file_name);

// The endings of all formats, in order of preference. `written`: only of those that lanescope
// writes.
enum class Endings : std::uint8_t { kRead, kWritten };
std::span<const std::string_view> format_endings(Endings endings = Endings::kRead);
// "a PyTorch or Chrome trace (.json, .json.gz, .json.zst) or a lanescope recording (.lspool)"
const std::string& formats_text();
// ".json, .json.gz, .json.zst"
std::string endings_text(std::span<const std::string_view> endings);

// In the format that the name's ending means; with any other ending as Kineto JSON.
// kInvalidArgument: lanescope does not write that format. Other errors: as the writer's.
Result<WriteStats> write_trace(const Trace& trace, const std::filesystem::path& path,
                               const WriteOptions& options = {});
// kInvalidArgument: lanescope reads the format of that ending, and does not write it.
// `others`: endings that the caller writes by other means, for the message: ".sqlite, .folded".
Result<void> check_written_ending(std::string_view file_name, std::string_view others = {});

}  // namespace lanescope::format
