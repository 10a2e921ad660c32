// A Perfetto trace has times of several clocks, and snapshots that show several clocks at one moment.
// This converts all times to the boot clock, as Perfetto's viewer does.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace lanescope::format {

// One thread. Sums wrap around at 64 bits: a hostile file gets wrong times, but causes no crash.
class TraceClocks {
 public:
  // A ClockSnapshot of that sequence.
  void snapshot(std::string_view message, std::uint64_t sequence);
  // Converts `value` to nanoseconds of the boot clock. An incremental clock adds it to its last time.
  // Nothing: the clock belongs to one sequence, and no snapshot defined it.
  std::optional<std::int64_t> to_boot_ns(std::uint64_t clock, std::uint64_t sequence,
                                         std::uint64_t value);
  // Nanoseconds since 1970 at time 0 of the boot clock. Nothing: no snapshot has the realtime clock.
  std::optional<std::int64_t> day_ns() const { return day_ns_; }

 private:
  struct State {
    std::uint64_t offset = 0;  // added to its nanoseconds
    std::uint64_t now = 0;     // of an incremental clock, nanoseconds
    std::uint64_t unit = 1;
    bool is_incremental = false;
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // sequence + 1 (0: of all sequences), clock
  static Key key(std::uint64_t clock, std::uint64_t sequence);

  std::map<Key, State> clocks_;
  std::optional<std::int64_t> day_ns_;
};

}  // namespace lanescope::format
