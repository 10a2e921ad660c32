#include "lanescope/format/spool/counter_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace lanescope::format {
namespace {

constexpr std::uint64_t kOffsetEveryNs = 1'000'000'000;
constexpr std::int64_t kReachNs = 1'000'000;  // how wrong the clock may be before the correction
constexpr std::int64_t kWantedSamples = 4;
constexpr float kIdlePercent = 1, kBusyPercent = 10;

std::int64_t median(std::vector<std::int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

CounterClock::CounterClock(
    std::span<const counters::Anchor> anchors,
    const std::function<std::optional<std::int64_t>(std::uint64_t)>& time_ns) {
  std::uint64_t second = 0;
  for (const counters::Anchor& anchor : anchors) {
    const auto time = time_ns(anchor.ticks);
    if (!time) continue;
    const Offset offset{anchor.device_ns, *time - static_cast<std::int64_t>(anchor.device_ns)};
    const std::uint64_t in_second = anchor.device_ns / kOffsetEveryNs;
    if (!offsets_.empty() && anchor.device_ns <= offsets_.back().device_ns) continue;  // damage
    if (offsets_.empty() || in_second != second)
      offsets_.push_back(offset);
    else if (offset.offset_ns < offsets_.back().offset_ns)
      offsets_.back() = offset;
    second = in_second;
  }
}

std::int64_t CounterClock::time_ns(std::uint64_t device_ns) const {
  const auto next = std::upper_bound(
      offsets_.begin(), offsets_.end(), device_ns,
      [](std::uint64_t time, const Offset& offset) { return time < offset.device_ns; });
  std::int64_t offset_ns = 0;
  if (next == offsets_.begin()) {
    offset_ns = offsets_.front().offset_ns;
  } else if (next == offsets_.end()) {
    offset_ns = offsets_.back().offset_ns;
  } else {
    const Offset& before = *(next - 1);
    const double share = static_cast<double>(device_ns - before.device_ns) /
                         static_cast<double>(next->device_ns - before.device_ns);
    offset_ns = before.offset_ns +
                static_cast<std::int64_t>(
                    std::llround(share * static_cast<double>(next->offset_ns - before.offset_ns)));
  }
  return static_cast<std::int64_t>(device_ns) + offset_ns + shift_ns_;
}

std::optional<EdgeShift> measure_edges(std::span<const BusySpan> busy,
                                       std::span<const std::int64_t> start_ns,
                                       std::span<const std::uint32_t> length_ns,
                                       std::span<const float> active, std::int64_t interval_ns) {
  const std::int64_t least_ns = kWantedSamples * interval_ns;
  std::vector<std::int64_t> shifts;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const std::int64_t start = busy[i].start_ns;
    const std::int64_t reach = std::min(kReachNs, busy[i].end_ns - start);
    if (busy[i].end_ns - start < least_ns) continue;
    if (i > 0 && start - busy[i - 1].end_ns < least_ns) continue;
    const auto first = std::lower_bound(start_ns.begin(), start_ns.end(), start - reach);
    for (auto at = static_cast<std::size_t>(first - start_ns.begin());
         at + 2 < start_ns.size() && start_ns[at] < start + reach; ++at) {
      // Idle, then partly active, then active: the part says when it began.
      if (at == 0 || active[at - 1] > kIdlePercent || active[at] <= kIdlePercent) continue;
      const float full = active[at + 1];
      if (full < kBusyPercent || std::fabs(active[at + 2] - full) > full / 10 ||
          start_ns[at + 2] - start_ns[at] > 3 * interval_ns)
        break;
      const double part = std::min(1.0, static_cast<double>(active[at] / full));
      const std::int64_t edge =
          start_ns[at] + length_ns[at] -
          static_cast<std::int64_t>(std::llround(part * static_cast<double>(length_ns[at])));
      shifts.push_back(start - edge);
      break;
    }
  }
  if (shifts.size() < kFewestEdges) return std::nullopt;
  EdgeShift found;
  found.edges = static_cast<std::uint32_t>(shifts.size());
  found.shift_ns = median(shifts);
  for (std::int64_t& shift : shifts) shift = std::abs(shift - found.shift_ns);
  found.error_ns = median(shifts);
  return found;
}

}  // namespace lanescope::format
