#include "lanescope/model/import_stats.h"

namespace lanescope {
namespace {

// In the order of ImportIssue.
constexpr std::array<ImportIssueInfo, kImportIssueCount> kIssues{{
    {"truncated-file", Severity::kLost, "the file is cut off"},
    {"truncated-stream", Severity::kLost, "the compressed stream is cut or damaged"},
    {"trailing-bytes", Severity::kNote, "bytes follow the end of the trace"},
    {"second-document", Severity::kLost,
     "another JSON document follows the first one and was not read (split the file to read it)"},
    {"event-lost", Severity::kLost,
     "the event's text could not be understood: it is broken, or nested more than 512 levels deep "
     "(write what is nested deeper as a string)"},
    {"unescaped-text", Severity::kRepaired,
     "a string held an unescaped quote, backslash or control character"},
    {"invalid-utf8", Severity::kRepaired, "bytes that are not UTF-8 became U+FFFD"},
    {"not-a-number", Severity::kRepaired, "there was NaN or Infinity instead of a number"},
    {"wrong-type", Severity::kRepaired, "a field had the wrong JSON type"},
    {"missing-field", Severity::kLost, "the event lacks a field it needs"},
    {"unknown-phase", Severity::kLost,
     "the event is of a kind (phase, packet) that lanescope does not read"},
    {"bad-time", Severity::kLost, "a time or duration that no clock gives"},
    {"sub-nanosecond", Severity::kNote, "digits below one nanosecond were cut off"},
    {"negative-duration", Severity::kRepaired, "a duration below zero was read as zero"},
    {"missing-duration", Severity::kRepaired,
     "a complete event had no duration and was read as 0 long"},
    {"end-without-begin", Severity::kLost, "an end event had no open begin"},
    {"begin-without-end", Severity::kRepaired,
     "a begin event was never closed; it lasts to the end of the trace"},
    {"orphan-flow", Severity::kNote, "a flow arrow had only one end and is not kept"},
    {"out-of-order", Severity::kNote, "events were not sorted by time"},
    {"syntax", Severity::kRepaired, "JSON between events was repaired"},
    {"metadata-lost", Severity::kLost, "a top-level entry could not be understood"},
    {"checksum-mismatch", Severity::kLost, "a closed chunk changed after it was written"},
    {"open-chunk", Severity::kNote,
     "a chunk was still being written; its complete records were read"},
    {"dropped-records", Severity::kLost, "the recorder had no room for these records"},
    {"open-range", Severity::kRepaired,
     "a range was still open when recording ended; it lasts to the end"},
    {"early-range", Severity::kNote,
     "a range began before the seconds that the recording keeps; it is drawn from their start"},
    {"lost-begin", Severity::kLost,
     "the start of a range was overwritten, so the range is missing"},
    {"missing-name", Severity::kRepaired, "an event had no name and got an empty one"},
    {"field-lost", Severity::kLost, "one value of an event could not be kept"},
    {"unmeasured-time", Severity::kLost, "the device reported no time for an activity"},
    {"out-of-window", Severity::kNote, "device work was launched and ran outside of all windows"},
    {"launched-before-window", Severity::kNote,
     "device work inside a window was launched before it; it is marked"},
    {"launch-unknown", Severity::kNote, "the API call that started device work was not recorded"},
    {"lost-samples", Severity::kLost,
     "samples of the GPU's counters are missing here, or had impossible times"},
    {"wrong-checksum", Severity::kNote,
     "the checksum of the compressed stream is wrong or missing, so bytes of the text may have "
     "changed"},
    {"profile-lost", Severity::kLost,
     "a frame or a sample of a CPU profile could not be placed (no start, an unknown or circular "
     "parent, an impossible time, or too many frames)"},
}};
static_assert(kIssues.back().name != nullptr, "each ImportIssue needs its row here, in order");

}  // namespace

const ImportIssueInfo& import_issue_info(ImportIssue issue) {
  return kIssues[static_cast<std::size_t>(issue)];
}

void ImportStats::add(const ImportStats& other) {
  for (std::size_t i = 0; i < kImportIssueCount; ++i)
    if (other.counters_[i].count != 0)
      count(static_cast<ImportIssue>(i), other.counters_[i].first_offset, other.counters_[i].count);
  events += other.events;
}

bool ImportStats::lost_anything() const {
  for (std::size_t i = 0; i < kImportIssueCount; ++i)
    if (kIssues[i].severity == Severity::kLost && counters_[i].count > 0) return true;
  return false;
}

bool ImportStats::is_truncated() const {
  return (*this)[ImportIssue::kTruncatedFile].count > 0 ||
         (*this)[ImportIssue::kTruncatedStream].count > 0;
}

}  // namespace lanescope
