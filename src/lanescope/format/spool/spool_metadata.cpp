#include "lanescope/format/spool/spool_metadata.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/json_text.h"
#include "lanescope/codec/record_options.h"
#include "lanescope/format/lost_entry.h"
#include "lanescope/format/spool/clock_anchors.h"

namespace lanescope::format {
namespace {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  codec::append_escaped_json(out, text);
  return out + '"';
}

bool is_requested(const SpoolMetadata& entry, const ReadSpoolOptions& options) {
  return !options.session || entry.session == 0 || entry.session == *options.session;
}

}  // namespace

std::string_view spool_device_properties(const SpoolIndex& index, const ReadSpoolOptions& options) {
  std::string_view json = "[]";
  for (const SpoolMetadata& entry : index.metadata)
    if (entry.key == "deviceProperties" && is_requested(entry, options) &&
        codec::is_strict_json(entry.json))
      json = entry.json;
  for (const auto& [key, value] : options.metadata)
    if (key == "deviceProperties") json = value;
  return json;
}

void add_spool_metadata(const SpoolScan& scan, const ReadSpoolOptions& options,
                        TraceBuilder& builder) {
  const SpoolIndex& index = scan.index;
  builder.add_metadata("schemaVersion", "1");
  for (const spool::RecordOption& option : spool::kRecordOptions)
    if (option.in_trace && (scan.windows.options() & option.bit) != 0)
      builder.add_metadata(option.name, "1");
  if (!index.host_name.empty()) builder.add_metadata("host_name", json_string(index.host_name));
  std::vector<std::pair<std::string_view, std::string_view>> entries{{"deviceProperties", "[]"}};
  std::unordered_map<std::string_view, std::size_t> place_of_key{{"deviceProperties", 0}};
  const auto set = [&](std::string_view key,
                       std::string_view json) {  // the last of equal keys wins
    const auto [known, is_new] = place_of_key.try_emplace(key, entries.size());
    if (is_new)
      entries.emplace_back(key, json);
    else
      entries[known->second].second = json;
  };
  for (const SpoolMetadata& entry : index.metadata) {
    if (!is_requested(entry, options)) continue;
    if (!codec::is_strict_json(entry.json))
      builder.stats().count(ImportIssue::kMetadataLost);
    else
      set(entry.key, entry.json);
  }
  for (const auto& [key, json] : options.metadata) set(key, codec::without_blanks_around(json));
  for (const auto& [key, json] : entries)
    if (!take_lost_entry(key, json, &builder.stats())) builder.add_metadata(key, json);
  std::string notes;
  for (const auto& [session, line] : index.notes)
    if (!options.session || session == *options.session)
      notes += (notes.empty() ? "" : ", ") + json_string(line);
  if (!notes.empty()) builder.add_metadata("lanescope_notes", "[" + notes + "]");
  if (const std::string anchors = clock_anchors_json(*scan.clock, index.ticks_per_second);
      !anchors.empty())
    builder.add_metadata("lanescope_clock_anchors", anchors);
  builder.add_metadata("lanescope_version", json_string(LANESCOPE_VERSION));
  builder.add_metadata("displayTimeUnit", "\"ms\"");
  builder.add_metadata("baseTimeNanoseconds", std::to_string(scan.base_ns));
}

}  // namespace lanescope::format
