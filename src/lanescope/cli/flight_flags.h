// The flags of `lanescope record` for a flight recorder: what to keep, and when a step is slow.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/cli/command_line.h"

namespace lanescope::cli {

struct FlightFlags {
  std::string last, slow_step;
  std::optional<std::int64_t> max_dumps;
};

void add_flight_flags(Command& command, FlightFlags* flags);
// kInvalidArgument names the flag, what it expects and what was found. `schedule`: the
// value of --schedule.
Result<void> check_flight_flags(const FlightFlags& flags, const std::string& schedule);
// Sets LANESCOPE_RECORD_LAST and similar variables, which python/lanescope/_autorecord.py reads.
void set_flight_environment(const FlightFlags& flags);

}  // namespace lanescope::cli
