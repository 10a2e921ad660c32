// Times of a Perfetto trace are in several clocks; snapshots say how they relate. A Trace has the
// boot clock, as Perfetto shows it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace lanescope::format {

// One thread. Wire values wrap as 64-bit numbers do; a hostile file gets odd times, no crash.
class TraceClocks {
 public:
  // A ClockSnapshot of that sequence.
  void snapshot(std::string_view message, std::uint64_t sequence);
  // In nanoseconds of the boot clock. Nothing: a clock of the sequence that no snapshot defined.
  // An incremental clock moves on.
  std::optional<std::int64_t> to_boot_ns(std::uint64_t clock, std::uint64_t sequence,
                                         std::uint64_t value);
  // Time of the day at 0 of the boot clock. Nothing: no snapshot has both.
  std::optional<std::int64_t> day_ns() const { return day_ns_; }

 private:
  struct State {
    std::uint64_t offset = 0;  // added to its nanoseconds
    std::uint64_t now = 0;     // of an incremental clock, nanoseconds
    std::uint64_t unit = 1;
    bool is_incremental = false;
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // the sequence (0: of all), the clock
  static Key key(std::uint64_t clock, std::uint64_t sequence);

  std::map<Key, State> clocks_;
  std::optional<std::int64_t> day_ns_;
};

}  // namespace lanescope::format
