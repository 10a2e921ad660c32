// A recording as Kineto JSON, written in pieces: memory does not grow with its length.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/cli/output.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/model/import_stats.h"

namespace lanescope::cli {

struct SavedRecording {
  ImportStats stats;
  format::WriteStats written;
  std::uint64_t slices = 0;  // without the spans of the windows
  std::uint64_t tracks = 0;  // that have slices
  bool is_empty = false;     // nothing was recorded: then no file was made
};

// By its first bytes; false also when it cannot be read.
bool is_recording(const std::filesystem::path& path);

// `target` as in save_trace(): "-" is standard output. Shows progress. Errors: of the recording, as
// format::read_spool(); of the target kIo. Memory: 60 MB and the recording's texts.
Result<SavedRecording> save_recording(const std::filesystem::path& recording,
                                      const std::string& target, Output& output);

}  // namespace lanescope::cli
