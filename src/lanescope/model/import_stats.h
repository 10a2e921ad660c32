// What was wrong with an input. Readers count each issue and keep the place of the first one;
// nothing is silent.
#pragma once
#include <array>
#include <cstdint>
#include <optional>

namespace lanescope {

enum class Severity : std::uint8_t {
  kNote,      // unusual, nothing changed
  kRepaired,  // the event is there, a part of it was repaired
  kLost,      // something of the file is not in the Trace
};

enum class ImportIssue : std::uint8_t {
  kTruncatedFile,     // the JSON ends before its last bracket
  kTruncatedStream,   // the gzip or zstd stream ends early or is damaged; what could be
                      // unpacked was read
  kTrailingBytes,     // bytes after the end of the trace or of the compressed stream
  kSecondDocument,    // another JSON document after the end of the trace; it is not read
  kEventLost,         // an event whose text could not be understood even after repair
  kUnescapedText,     // a stray quote, backslash or control character inside a string
  kInvalidUtf8,       // bytes replaced by U+FFFD
  kNotANumber,        // NaN or Infinity where a number belongs
  kWrongType,         // a field of another JSON type than the format says
  kMissingField,      // an event without a field it needs (ts, name, ph)
  kUnknownPhase,      // a "ph" that lanescope does not read
  kBadTime,           // a time or duration that no clock gives (model/time_limits.h)
  kSubNanosecond,     // digits below one nanosecond were cut off
  kNegativeDuration,  // dur < 0, read as 0
  kMissingDuration,   // an X event without dur, read as 0
  kEndWithoutBegin,   // E (or async end) with no open begin
  kBeginWithoutEnd,   // B (or async begin) never closed; it lasts to the end of the trace
  kOrphanFlow,        // a flow start without end, or an end without start
  kOutOfOrder,        // events not sorted by time (normal for Kineto)
  kSyntax,            // JSON repaired between events: missing or doubled commas, stray bytes
  kMetadataLost,      // a top-level entry that could not be understood
  kChecksumMismatch,  // a spool chunk whose bytes changed after it was closed
  kOpenChunk,         // a spool chunk its writer had not closed (killed process); its complete
                      // records were read
  kDroppedRecords,    // records that the recorder could not keep
  kOpenRange,         // a range still open when recording ended
  kEarlyRange,        // a range that began before what a ring kept; it begins there
  kLostBegin,         // the end of a range whose begin a ring has overwritten
  kMissingName,       // an event without name; it got an empty one
  kFieldLost,  // one value of an event could not be kept: a counter that is no number, over 65535
               // words of args
  kUnmeasuredTime,        // device activity whose time the device or its driver did not report
  kOutOfWindow,           // device work outside every recorded window
  kLaunchedBeforeWindow,  // device work in a window that was launched before it
  kLaunchUnknown,         // device work in a window whose API call was not recorded
  kLostSamples,           // stretches without samples of hardware counters, and refused samples
  kWrongChecksum,         // of a gzip or zstd stream whose text is whole, or it is missing
  kProfileLost,           // frames and samples of a CPU profile (V8) that could not be placed
  kCount
};
inline constexpr std::size_t kImportIssueCount = static_cast<std::size_t>(ImportIssue::kCount);

struct ImportIssueInfo {
  const char* name;  // stable, for JSON: "truncated-file"
  Severity severity;
  const char* description;  // one clause for people
};
const ImportIssueInfo& import_issue_info(ImportIssue issue);

// A plain value; one writer.
class ImportStats {
 public:
  struct Counter {
    std::uint64_t count = 0;
    std::optional<std::uint64_t> first_offset;  // bytes into the unpacked input
  };
  void count(ImportIssue issue, std::optional<std::uint64_t> offset = std::nullopt,
             std::uint64_t times = 1) {
    Counter& counter = counters_[static_cast<std::size_t>(issue)];
    if (counter.count == 0) counter.first_offset = offset;
    counter.count += times;
  }
  const Counter& operator[](ImportIssue issue) const {
    return counters_[static_cast<std::size_t>(issue)];
  }
  bool lost_anything() const;
  bool is_truncated() const;  // the end of the file is missing
  // Adds the counts of another part of the same input, but not its sizes.
  void add(const ImportStats& other);

  std::uint64_t input_bytes = 0;     // as on disk
  std::uint64_t unpacked_bytes = 0;  // after gzip or zstd
  std::uint64_t events = 0;          // events met, of every phase, lost ones not included

 private:
  std::array<Counter, kImportIssueCount> counters_;
};

}  // namespace lanescope
