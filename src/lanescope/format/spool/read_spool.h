// A recording, finished or left by a killed process, becomes a Trace with the rows torch.profiler
// would have written.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::format {

struct ReadSpoolOptions {
  std::optional<std::uint32_t> session;  // only this session's windows and metadata
  std::optional<std::uint32_t> cycle;    // only windows of this number
  // Top-level entries (key, JSON) that win over the file's.
  std::vector<std::pair<std::string, std::string>> metadata;
  bool live = false;  // the writer still runs (it is us): chunks that are open are no news
};

// By its first 8 bytes.
bool is_spool(std::string_view first_bytes);

// Damage anywhere is counted (kTruncatedFile, kChecksumMismatch, kOpenChunk, kDroppedRecords,
// kOpenRange, ...): what can be read is read. Errors: kIo, kCorruptInput (no spool at all),
// kUnsupported (another layout). Cost: the file once for its headers, twice for its records, once
// for device activities; memory is the Trace, 40 bytes a chunk and, while it reads, about 250 bytes
// a launch and 100 a range when there are activities. Any thread, one is used.
Result<Trace> read_spool(const std::filesystem::path& path, const ReadSpoolOptions& options = {});
Result<Trace> read_spool_bytes(std::string_view bytes, const ReadSpoolOptions& options = {});

// The *.lspool files of a directory, by name. kIo when it cannot be listed.
Result<std::vector<std::filesystem::path>> find_spools(const std::filesystem::path& directory);

}  // namespace lanescope::format
