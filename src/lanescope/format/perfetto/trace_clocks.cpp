#include "lanescope/format/perfetto/trace_clocks.h"

#include <vector>

#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/perfetto/fields.h"

namespace lanescope::format {
namespace {

using codec::WireReader;

constexpr std::uint64_t kLastSequenceClock = 127;
constexpr std::size_t kMostClocks = 100'000;  // a hostile file names many

struct Reading {
  std::uint64_t clock = 0, time = 0, unit = 1;
  bool is_incremental = false;
  std::uint64_t ns() const { return time * unit; }
};

Reading reading_of(std::string_view message) {
  Reading reading;
  for (WireReader field(message); field.next();) {
    if (field.number() == pftrace::kClockId) reading.clock = field.integer();
    if (field.number() == pftrace::kClockTime) reading.time = field.integer();
    if (field.number() == pftrace::kClockIncremental) reading.is_incremental = field.integer() != 0;
    if (field.number() == pftrace::kClockUnit && field.integer() != 0)
      reading.unit = field.integer();
  }
  return reading;
}

}  // namespace

TraceClocks::Key TraceClocks::key(std::uint64_t clock, std::uint64_t sequence) {
  const bool is_own = clock >= pftrace::kFirstSequenceClock && clock <= kLastSequenceClock;
  return {is_own ? sequence + 1 : 0, clock};
}

void TraceClocks::snapshot(std::string_view message, std::uint64_t sequence) {
  std::vector<Reading> readings;
  for (WireReader field(message); field.next();)
    if (field.number() == pftrace::kClocks) readings.push_back(reading_of(field.bytes()));
  // The moment in the boot clock, itself or through a clock that is known already.
  std::optional<std::uint64_t> boot;
  for (const Reading& reading : readings)
    if (reading.clock == pftrace::kBootTime) boot = reading.ns();
  for (const Reading& reading : readings) {
    const auto known = clocks_.find(key(reading.clock, sequence));
    if (!boot && known != clocks_.end() && !known->second.is_incremental)
      boot = reading.ns() + known->second.offset;
  }
  // None is known: the first one is taken as the boot clock.
  if (!boot && !readings.empty()) boot = readings.front().ns();
  for (const Reading& reading : readings) {
    if (reading.clock == pftrace::kRealtime && !day_ns_)
      day_ns_ = static_cast<std::int64_t>(reading.ns() - *boot);
    if (reading.clock == pftrace::kBootTime || clocks_.size() >= kMostClocks) continue;
    const Key at = key(reading.clock, sequence);
    // Builtin clocks drift; the first snapshot counts, so that times of one clock keep their order.
    if (at.first == 0 && clocks_.contains(at)) continue;
    clocks_[at] = {*boot - reading.ns(), reading.ns(), reading.unit, reading.is_incremental};
  }
}

std::optional<std::int64_t> TraceClocks::to_boot_ns(std::uint64_t clock, std::uint64_t sequence,
                                                    std::uint64_t value) {
  const auto found = clocks_.find(key(clock, sequence));
  if (found == clocks_.end()) {
    if (key(clock, sequence).first != 0) return std::nullopt;
    return static_cast<std::int64_t>(
        value);  // all times are of this clock, or it is the boot clock
  }
  State& state = found->second;
  std::uint64_t ns = value * state.unit;
  if (state.is_incremental) ns = state.now += ns;
  return static_cast<std::int64_t>(ns + state.offset);
}

}  // namespace lanescope::format
