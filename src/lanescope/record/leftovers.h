// Files that processes left which no longer live: whose a file is, and whether that process runs.
// docs/decisions/leftovers.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "lanescope/record/record_abi.h"

namespace lanescope::record {

// Says a spool's header.
struct SpoolOwner {
  std::uint64_t pid = 0;
  std::string host;           // as RecordingName::host
  bool is_finished = false;   // its recording ended as it should
  bool is_written = false;    // a process holds it open to write, on this machine or, where the
                              // file system passes locks on, another one
};

// Reads the first bytes of a regular file, without waiting. Nothing: not a spool of this version,
// or it cannot be read.
LANESCOPE_RECORD_EXPORT std::optional<SpoolOwner> read_spool_owner(const std::string& path);

// Whether process `pid` of this machine can be the one that wrote a file which changed last at
// `changed_s` (seconds since 1970): it lives, and began before then. When in doubt, true.
LANESCOPE_RECORD_EXPORT bool may_be_writer(std::uint64_t pid, std::int64_t changed_s);

// The temporary spools in `directory` that killed processes of this user and machine left, last
// changed more than an hour ago. Bounded: 4,096 names, 100 of ours looked at, 16 removed. What
// fails is left. Returns how many were removed.
LANESCOPE_RECORD_EXPORT int remove_old_temporary_spools(const std::string& directory) noexcept;

}  // namespace lanescope::record
