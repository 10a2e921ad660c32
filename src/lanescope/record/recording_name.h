// How the files of a recording are named: docs/decisions/file_names.md.
//
//   train_20261123T061902Z_rank0_node7_4711.lspool
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/record/record_abi.h"

namespace lanescope::record {

// Any thread; nothing is opened or made.
struct RecordingName {
  std::string program;  // letters, digits, '.', '_', '-'
  std::string started;  // of the run, in UTC: "20261123T061902Z"; all processes of a run share it
  std::optional<std::uint32_t> rank;
  std::string host;  // up to its first dot: letters, digits and '-'
  std::uint64_t pid = 0;
};

// The program name of temporary recordings, which are removed with their profile.
inline constexpr char kTemporaryProgram[] = "lanescope_temporary";

// The time now, as RecordingName::started.
LANESCOPE_RECORD_EXPORT std::string run_stamp();
// The name for a recording of this process. `program`: a path or a name; `started`: a run_stamp(),
// anything else means now.
LANESCOPE_RECORD_EXPORT std::string recording_name(std::string_view program,
                                                   std::optional<std::uint32_t> rank,
                                                   std::string_view started);
// Reads back what recording_name() put into a file name (without folder), whatever comes after it
// (a count, "_dump1.lspool", ".json.gz"). Nothing: the name has another form.
LANESCOPE_RECORD_EXPORT std::optional<RecordingName> parse_recording_name(std::string_view name);
// The name of this machine or container, as RecordingName::host.
LANESCOPE_RECORD_EXPORT std::string short_host_name();
// The part of a host name that RecordingName::host keeps.
LANESCOPE_RECORD_EXPORT std::string host_part(std::string_view name);

}  // namespace lanescope::record
