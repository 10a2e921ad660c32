#include "lanescope/cli/flight_flags.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "lanescope/base/duration.h"

namespace lanescope::cli {
namespace {

Result<void> check_last(std::string_view text) {
  if (parse_duration_ns(text)) return {};
  return Error{Errc::kInvalidArgument,
               fmt::format("--last expects a time of 1 ms or more, such as 10s, 500ms or 2m; found "
                           "'{}'",
                           text)};
}

Result<void> check_slow_step(std::string_view text) {
  std::string_view unit = text;
  const std::optional<double> number = take_decimal(&unit);
  if (number && *number > 1 && *number <= 1e6 && (unit.empty() || unit == "x")) return {};
  return Error{Errc::kInvalidArgument,
               fmt::format("--slow-step expects how many times the median makes a step slow, above "
                           "1, such as 2x or 2.5x; found '{}'",
                           text)};
}

}  // namespace

void add_flight_flags(Command& command, FlightFlags* flags) {
  command.text_flag("--last", &flags->last, "TIME",
                    "record without end and keep only the last TIME: 10s, 500ms, 2m; kill -USR2 "
                    "makes a dump at any time");
  command.text_flag("--slow-step", &flags->slow_step, "FACTOR",
                    "with --last: a dump when a step takes FACTOR times the median of the steps "
                    "before it, such as 2x");
  command.number_flag(
      "--max-dumps", &flags->max_dumps, 0, 1'000'000,
      "with --slow-step: at most N dumps stay, those of the worst steps (default 8)");
}

Result<void> check_flight_flags(const FlightFlags& flags, const std::string& schedule) {
  if (flags.last.empty()) {
    if (flags.slow_step.empty() && !flags.max_dumps) return {};
    return Error{Errc::kInvalidArgument,
                 fmt::format("{} needs --last, which says how much is kept, such as --last 10s",
                             flags.slow_step.empty() ? "--max-dumps" : "--slow-step")};
  }
  if (!schedule.empty()) {
    return Error{Errc::kInvalidArgument,
                 "--last and --schedule exclude each other: a schedule chooses its steps in "
                 "advance, --last keeps the last moments before a problem; leave out one"};
  }
  LANESCOPE_TRY_VOID(check_last(flags.last));
  if (!flags.slow_step.empty()) LANESCOPE_TRY_VOID(check_slow_step(flags.slow_step));
  return {};
}

void set_flight_environment(const FlightFlags& flags) {
  if (flags.last.empty()) return;
  setenv("LANESCOPE_RECORD_LAST", flags.last.c_str(), 1);
  if (!flags.slow_step.empty()) setenv("LANESCOPE_RECORD_SLOW_STEP", flags.slow_step.c_str(), 1);
  if (flags.max_dumps)
    setenv("LANESCOPE_RECORD_MAX_DUMPS", std::to_string(*flags.max_dumps).c_str(), 1);
}

}  // namespace lanescope::cli
