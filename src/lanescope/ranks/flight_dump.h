// The dump of PyTorch's flight recorder for one rank: its last collectives, and which of them had not ended.
// docs/formats/flight_recorder.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"

namespace lanescope::ranks {

enum class CallState : std::uint8_t { kScheduled, kStarted, kCompleted };

// Texts come from the file and are untrusted.
struct FlightCall {
  std::size_t group = 0;  // index into FlightDump::groups
  // Number in the group; -1: unknown. Sends and receives have their own numbers since dump version 2.2.
  std::int64_t sequence = -1;
  bool point_to_point = false;
  std::string name;   // "all_reduce", without the backend; "send 0->1"
  std::string dtype;  // of the first input, else output
  std::int64_t in_elements = -1, out_elements = -1;  // -1: not recorded
  CallState state = CallState::kScheduled;
  bool timed_out = false;       // the watchdog gave up waiting for it
  std::int64_t created_ns = 0;  // since 1970, on the rank's clock; 0: unknown
  std::string place;  // "step (train.py:88)": the innermost frame outside torch; empty: unknown
  std::string text() const;  // "all_reduce of 1024 Float"
};

struct FlightGroup {
  std::string name, description;
  std::vector<std::int64_t> ranks;  // empty: unknown
};

struct FlightDump {
  std::string file, version;
  std::optional<std::int64_t> rank;  // from the file's name: a dump does not say it
  std::vector<FlightGroup> groups;
  std::vector<FlightCall> calls;  // in the order of their making
  bool is_whole = false;          // the first call of the process is in it: nothing was overwritten
  // The dump comes from a recording. Which of its calls have ended is unknown (a killed process
  // loses the last kernels), so the last one counts as open.
  bool is_recording = false;
  std::int64_t end_ns = 0;    // is_recording: its end, on its own clock
  std::uint64_t skipped = 0;  // entries that make no sense
};

inline constexpr std::size_t kMostDumpBytes = std::size_t{512} << 20, kMostDumpCalls = 200'000;

// True: this looks like a dump, a pickle or JSON with "entries" or "pg_config" near its start.
bool looks_like_dump(std::string_view head);

// JSON, or a pickle of plain data. kCorruptInput: neither, or without entries; kUnsupported: a pickle with
// code; kLimit: larger than the limits above. O(bytes).
Result<FlightDump> read_flight_dump(std::string_view bytes, std::string file);

// The same from a recording or trace, from the calls on its CPU. Without sequence numbers, calls
// are counted if the recording has the creation of the communicator. kUnsupported: neither.
// O(slices).
Result<FlightDump> dump_of_trace(const Trace& trace, std::string file);

}  // namespace lanescope::ranks
