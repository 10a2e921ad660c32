// What a JSON document is that holds no trace.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lanescope/model/import_stats.h"

namespace lanescope::format {

// What was found in a document, from its first character to its end.
struct DocumentParts {
  int first = 0;                  // its first character that is not blank; a negative number: none
  bool has_events = false;        // an object with "traceEvents", as an array
  bool has_event = false;         // an array of which an event was read
  std::uint64_t event_count = 0;  // of the trace
  std::span<const std::string> keys;  // of an object, other than the events
};

// Nothing for a trace, also for an empty or a damaged one. Otherwise "expected ..., found ...", with
// what to do where that is known.
std::optional<std::string> why_no_trace(const DocumentParts& parts, const ImportStats& stats);

}  // namespace lanescope::format
