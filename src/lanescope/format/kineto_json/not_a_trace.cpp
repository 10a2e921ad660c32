#include "lanescope/format/kineto_json/not_a_trace.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "lanescope/format/known_files.h"

namespace lanescope::format {
namespace {

constexpr const char* kGiveExport =
    "give the trace that the profiler exported, for example with prof.export_chrome_trace()";
constexpr const char* kCutExport = "the export or a copy was cut short: export or copy it again";

}  // namespace

std::optional<std::string> why_no_trace(const DocumentParts& parts, const ImportStats& stats) {
  const auto error = [](std::string_view found, std::string_view advice = {}) {
    return fmt::format(
        "expected a PyTorch or Chrome trace (JSON with traceEvents, or an array of events), "
        "found {}{}",
        found, advice);
  };
  if (parts.first == '[') {
    if (parts.has_event || parts.event_count > 0) {
      // Any list of records is an array of objects; in a trace, at least one has a phase
      // and a time.
      const std::uint64_t strangers =
          stats[ImportIssue::kMissingField].count + stats[ImportIssue::kUnknownPhase].count;
      if (strangers == 0 || strangers < parts.event_count) return std::nullopt;
      return error(
          "a JSON array of objects that are no events (an event has a \"ph\" and a \"ts\")");
    }
    if (stats[ImportIssue::kEventLost].count + stats[ImportIssue::kSyntax].count == 0)
      return std::nullopt;
    return error("a JSON array without a single event; ", kGiveExport);
  }
  if (parts.first == '{') {
    if (parts.has_events) return std::nullopt;
    const bool cut = stats[ImportIssue::kTruncatedFile].count > 0;
    const auto has = [&](std::string_view key) {
      return std::find(parts.keys.begin(), parts.keys.end(), key) != parts.keys.end();
    };
    if (has("traceEvents")) return error("a traceEvents that is not an array");
    if (const auto known = known_json_object(parts.keys))
      return error(known->found + "; " + known->advice);
    std::string keys;
    for (std::size_t i = 0; i < std::min<std::size_t>(parts.keys.size(), 6); ++i)
      keys += (i ? ", " : "") + parts.keys[i];
    if (parts.keys.size() > 6) keys += ", ...";
    return error(fmt::format("a JSON object without traceEvents ({}{}{}); ",
                             cut ? "the text ends early; " : "",
                             keys.empty() ? "no keys" : "its keys: ", keys),
                 cut ? kCutExport : kGiveExport);
  }
  return error("text that is no JSON object or array");
}

}  // namespace lanescope::format
