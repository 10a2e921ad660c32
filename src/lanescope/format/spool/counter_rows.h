// Adds the hardware counters next to a recording (codec/counter_file.h) to its trace.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/codec/counter_file.h"
#include "lanescope/format/spool/counter_clock.h"
#include "lanescope/format/spool/spool_piece.h"
#include "lanescope/format/spool/spool_windows.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// The metadata entry that says what was sampled, as docs/definitions/hardware.md defines it.
inline constexpr std::string_view kHardwareMetadata = "lanescope_hardware";

// What the pieces of a recording share.
struct CounterCarry {
  counters::CounterFile file;
  bool has_clocks = false;
  std::vector<CounterClock> clocks;                // in the order of file.devices
  std::vector<std::optional<EdgeShift>> measured;  // likewise
};

struct CounterRowsContext {
  TraceBuilder& builder;  // has the piece's kernels
  const SpoolPiece& piece;
  const SpoolWindows& windows;
  std::string_view process_name;
  std::function<std::optional<std::int64_t>(std::uint64_t)> time_ns;  // of a tick
};

// Adds one track for each series, in the device's process. A value holds until the next one. Leaves out
// samples that are not wholly inside a window. The first piece measures the clocks.
void add_counter_rows(const CounterRowsContext& context, CounterCarry* carry);

}  // namespace lanescope::format
