#include "lanescope/cli/size_flags.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>

#include "lanescope/base/byte_size.h"
#include "lanescope/base/percent.h"

namespace lanescope::cli {
namespace {

constexpr std::uint64_t kLeastSize = 1 << 20;

Result<void> check_size(const char* flag, const std::string& text, std::uint64_t least,
                        const char* what) {
  const auto bytes = parse_byte_size(text);
  if (bytes && *bytes >= least) return {};
  return Error{
      Errc::kInvalidArgument,
      fmt::format("{} expects {}, such as 500M, 2G or 4GiB; found '{}'", flag, what, text)};
}

}  // namespace

void add_size_flags(Command& command, SizeFlags* flags) {
  command.text_flag("--max-size", &flags->max_size, "SIZE",
                    "largest recording: 500M, 2G, 4GiB (default 4GiB). When it is full, new "
                    "records are dropped and counted; with --last, the oldest are overwritten");
  command.text_flag("--disk-reserve", &flags->disk_reserve, "SIZE",
                    "leave SIZE free on the disk (default: 5 % of the disk and at least 1G, but at "
                    "most half of what is free)");
  command.text_flag("--budget", &flags->budget, "SHARE",
                    "recording operators may cost SHARE of the time: 1%, 0.5%. Above it, details "
                    "are left out, shapes first, and the trace lists them (default: no limit)",
                    {Completes::kWords, {"1%", "2%", "5%"}});
}

Result<void> check_size_flags(const SizeFlags& flags) {
  if (!flags.max_size.empty())
    LANESCOPE_TRY_VOID(
        check_size("--max-size", flags.max_size, kLeastSize, "a size of 1MiB or more"));
  if (!flags.disk_reserve.empty())
    LANESCOPE_TRY_VOID(check_size("--disk-reserve", flags.disk_reserve, 0, "a size"));
  if (!flags.budget.empty() && !parse_percent(flags.budget))
    return Error{Errc::kInvalidArgument,
                 fmt::format("--budget expects a share of the time from 0.1% to 50%, such as 1% or "
                             "2.5%; found '{}'",
                             flags.budget)};
  return {};
}

void set_size_environment(const SizeFlags& flags) {
  if (!flags.max_size.empty()) setenv("LANESCOPE_RECORD_MAX_SIZE", flags.max_size.c_str(), 1);
  if (!flags.disk_reserve.empty())
    setenv("LANESCOPE_RECORD_DISK_RESERVE", flags.disk_reserve.c_str(), 1);
  if (!flags.budget.empty()) setenv("LANESCOPE_RECORD_BUDGET", flags.budget.c_str(), 1);
}

}  // namespace lanescope::cli
