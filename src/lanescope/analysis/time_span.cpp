#include "lanescope/analysis/time_span.h"

#include "lanescope/model/nearly_sorted.h"

namespace lanescope::analysis {

std::optional<FarTimes> find_far_times(const Trace& trace) {
  const SliceColumns& slices = trace.slices();
  if (slices.size() == 0) return std::nullopt;
  std::size_t first = 0, last = 0;
  std::int64_t first_ns = slices.start_ns[0], last_ns = first_ns;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices.start_ns[i] < first_ns) {
      first = i;
      first_ns = slices.start_ns[i];
    }
    const std::int64_t end_ns = saturating_end(slices.start_ns[i], slices.dur_ns[i]);
    if (end_ns > last_ns) {
      last = i;
      last_ns = end_ns;
    }
  }
  // Unsigned: the difference of any two 64-bit times fits.
  const std::uint64_t span_ns =
      static_cast<std::uint64_t>(last_ns) - static_cast<std::uint64_t>(first_ns);
  if (span_ns <= static_cast<std::uint64_t>(kLongestSpanNs)) return std::nullopt;
  return FarTimes{SliceId{static_cast<std::uint32_t>(first)},
                  SliceId{static_cast<std::uint32_t>(last)}, span_ns};
}

}  // namespace lanescope::analysis
