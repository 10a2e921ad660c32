// Why a job hangs, from the flight-recorder dumps of its ranks: the first collective that ranks disagree
// on, the first one that not all have called, and what each rank waits in.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/ranks/flight_dump.h"

namespace lanescope::ranks {

enum class HangKind : std::uint8_t {
  kMismatch,   // ranks call different collectives at one place of a group's sequence
  kNotCalled,  // some ranks wait in a collective that others have not called
  kNotPaired,  // a send or receive whose other side was never called
  kNoDump,     // ranks of a group without a dump
  kNotEnded,   // all ranks are in it, and it has not ended
};
const char* hang_name(HangKind kind);  // "mismatch", "not-called", ...

// One line of the report. Texts may hold untrusted text of the dumps.
struct HangFinding {
  HangKind kind{};
  std::vector<std::int64_t> ranks;  // that cause the hang; kNotEnded: all in the call
  std::string group;                // "0 (default_pg)"; empty: none
  std::int64_t sequence = -1;
  std::string text;
};

struct HangRank {
  std::int64_t rank = 0;
  std::string file;
  std::uint64_t calls = 0;
  // The first call that has not ended, and the last one that has; indices into the dump's calls.
  std::optional<std::size_t> open, ended;
};

struct HangReport {
  std::vector<FlightDump> dumps;      // by rank
  std::vector<HangRank> ranks;        // one a dump
  std::vector<HangFinding> findings;  // by kind, then group
  std::vector<std::string> remarks;   // files that do not count, and why
  std::uint64_t calls = 0, groups = 0;
};

struct DumpFile {
  std::string file;
  Result<FlightDump> dump;
};

// kInvalidArgument: no dump could be read; the message names the first reason. O(calls log calls).
Result<HangReport> find_hang(std::vector<DumpFile> files);

// Folders (their files that look like dumps), files and patterns; at most 100,000 files. Where there is no
// dump, traces and recordings with one of `endings`, which `read_trace` reads one after the other.
Result<std::vector<DumpFile>> read_dump_files(
    const std::vector<std::string>& paths, std::span<const std::string_view> endings,
    const std::function<Result<Trace>(const std::string& path)>& read_trace);

}  // namespace lanescope::ranks
