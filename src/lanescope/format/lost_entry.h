// Writes what a recording lost into the files made from it. Without this entry, the files would
// look complete. docs/formats/kineto_json.md.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/model/import_stats.h"

namespace lanescope::format {

inline constexpr std::string_view kLostEntry = "lanescope_lost";

// The entry's value: {"dropped-records": 12}, with the counts of kRecordingLosses
// (model/recording_losses.h). "": the recording lacks nothing.
std::string lost_entry(const ImportStats& stats);

// False: `key` is not kLostEntry, so the entry is metadata. Else adds its counts to the stats. A
// value that lost_entry() does not write counts once as kMetadataLost.
bool take_lost_entry(std::string_view key, std::string_view json, ImportStats* stats);

}  // namespace lanescope::format
