#include "lanescope/format/lost_entry.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "lanescope/base/json_value.h"
#include "lanescope/model/recording_losses.h"

namespace lanescope::format {
namespace {

std::optional<ImportIssue> issue_of_recording(std::string_view name) {
  for (const ImportIssue issue : kRecordingLosses)
    if (name == import_issue_info(issue).name) return issue;
  return std::nullopt;
}

}  // namespace

std::string lost_entry(const ImportStats& stats) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::string json;
  for (const ImportIssue issue : kRecordingLosses) {
    const std::uint64_t count = stats[issue].count;
    if (count == 0) continue;
    json += json.empty() ? "{\"" : ", \"";
    json += import_issue_info(issue).name;
    json += "\": " + std::to_string(std::min(count, kMost));
  }
  return json.empty() ? json : json + "}";
}

bool take_lost_entry(std::string_view key, std::string_view json, ImportStats* stats) {
  if (key != kLostEntry) return false;
  const auto value = parse_json(json);
  bool is_understood = value && value->is_object();
  if (is_understood) {
    for (const auto& [name, count] : value->members) {
      const auto issue = issue_of_recording(name);
      if (issue && count.integer && *count.integer > 0)
        stats->count(*issue, std::nullopt, static_cast<std::uint64_t>(*count.integer));
      else
        is_understood = false;
    }
  }
  if (!is_understood) stats->count(ImportIssue::kMetadataLost);
  return true;
}

}  // namespace lanescope::format
