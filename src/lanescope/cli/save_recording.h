// Writes a recording as Kineto JSON in pieces, so memory does not grow with its length.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "lanescope/cli/output.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/model/import_stats.h"

namespace lanescope::cli {

struct SavedRecording {
  ImportStats stats;
  format::WriteStats written;
  std::uint64_t slices = 0;  // without the spans of the windows
  std::uint64_t tracks = 0;  // that have slices
  bool is_empty = false;     // nothing was recorded, so there is no file
};

// `target` as in save_trace(): "-" is standard output. Shows progress. Nothing: one line said why,
// and `code` is kUsage (the recording cannot be read) or kFailed (the target cannot be written).
// Memory: 60 MB and the recording's texts.
std::optional<SavedRecording> save_recording(const std::filesystem::path& recording,
                                             const std::string& target, Output& output, int* code);

}  // namespace lanescope::cli
