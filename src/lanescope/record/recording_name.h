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
  std::string started;  // of the run, in UTC: "20261123T061902Z"; the processes of one run share it
  std::optional<std::uint32_t> rank;
  std::string host;  // up to its first dot: letters, digits and '-'
  std::uint64_t pid = 0;
};

// The program of temporary recordings, which go with their profile.
inline constexpr char kTemporaryProgram[] = "lanescope_temporary";

// Now, as RecordingName::started.
LANESCOPE_RECORD_EXPORT std::string run_stamp();
// This process's name. `program`: a path or a name; `started`: empty or anything else than a
// run_stamp() means now.
LANESCOPE_RECORD_EXPORT std::string recording_name(std::string_view program,
                                                   std::optional<std::uint32_t> rank,
                                                   std::string_view started);
// Of a file name without folder: what recording_name() put into it, whatever comes after (a count,
// "_dump1.lspool", ".json.gz"). Nothing when it has another form.
LANESCOPE_RECORD_EXPORT std::optional<RecordingName> parse_recording_name(std::string_view name);
// This machine's or container's, as RecordingName::host.
LANESCOPE_RECORD_EXPORT std::string short_host_name();
// A whole host name's, as RecordingName::host.
LANESCOPE_RECORD_EXPORT std::string host_part(std::string_view name);

}  // namespace lanescope::record
