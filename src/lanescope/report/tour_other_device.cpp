#include "lanescope/report/tour_other_device.h"

#include <algorithm>
#include <vector>

#include "lanescope/analysis/vendor_rows.h"

namespace lanescope::report {

using analysis::Window;

SliceId longest_of_other_device(const Trace& trace, const analysis::VendorDevice& device,
                                const Window& window) {
  SliceId longest = kNone<SliceId>;
  for (const SliceId work : device.works)
    if (trace.start_ns(work) >= window.start_ns && trace.end_ns(work) <= window.end_ns &&
        (longest == kNone<SliceId> || trace.dur_ns(work) > trace.dur_ns(longest)))
      longest = work;
  return longest;
}

Window longest_wait_of_other_device(const Trace& trace, const Window& window) {
  std::vector<Window> busy;
  for (const auto& row : analysis::find_vendor_rows(trace))
    if (row.kind != analysis::VendorRowKind::kWait && !row.is_sum &&
        trace.end_ns(row.slice) > window.start_ns && trace.start_ns(row.slice) < window.end_ns)
      busy.push_back({trace.start_ns(row.slice), trace.end_ns(row.slice)});
  std::sort(busy.begin(), busy.end(),
            [](const Window& a, const Window& b) { return a.start_ns < b.start_ns; });
  busy.push_back({window.end_ns, window.end_ns});
  Window longest{window.start_ns, window.start_ns};
  std::int64_t covered = window.start_ns;
  for (const Window& each : busy) {
    if (each.start_ns - covered > longest.length_ns()) longest = {covered, each.start_ns};
    covered = std::max(covered, each.end_ns);
  }
  return longest;
}

}  // namespace lanescope::report
