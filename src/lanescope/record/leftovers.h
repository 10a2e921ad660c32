// Files of processes that no longer run: which process wrote a file, and whether it still runs.
// docs/decisions/leftovers.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "lanescope/record/record_abi.h"

namespace lanescope::record {

// From a spool's header.
struct SpoolOwner {
  std::uint64_t pid = 0;
  std::string host;          // as RecordingName::host
  bool is_finished = false;  // its recording ended normally
  bool is_written = false;   // a process has it open to write, on this machine, or on another one
                             // if the file system shares locks
};

// Reads the first bytes of a regular file, without waiting. Nothing: not a spool of this
// version, or unreadable.
LANESCOPE_RECORD_EXPORT std::optional<SpoolOwner> read_spool_owner(const std::string& path);

// Whether process `pid` of this machine may have written a file that last changed at `changed_s`
// (seconds since 1970): it runs, and began before then. In doubt: true.
LANESCOPE_RECORD_EXPORT bool may_be_writer(std::uint64_t pid, std::int64_t changed_s);

// Removes temporary spools in `directory` that killed processes of this user and machine left more
// than an hour ago. Limits: reads 4,096 names, checks 100 of ours, removes 16. Ignores failures.
// Returns how many it removed.
LANESCOPE_RECORD_EXPORT int remove_old_temporary_spools(const std::string& directory) noexcept;

}  // namespace lanescope::record
