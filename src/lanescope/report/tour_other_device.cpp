#include "lanescope/report/tour_other_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lanescope/analysis/vendor_rows.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/tour_maker.h"

namespace lanescope::report {

using analysis::Window;
using view::LaneKind;

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
  sort_rows(busy.begin(), busy.end(),
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

void TourMaker::add_other_device() {
  if (!facts_.vendor) return;
  const SliceId longest = longest_of_other_device(*facts_.trace, *facts_.vendor, window_);
  if (longest == kNone<SliceId>) return;
  add_slice("The device",
            fmt::format("The {0} does the work that the CPU gives it. This lane is one of its "
                        "streams, a queue: its work runs one after the other, and work of "
                        "different streams may run at the same time. The longest computation "
                        "of this {1} is {2}, for {3}. Bars with stripes are waits.",
                        facts_.vendor->name, facts_.steps.marked ? "step" : "recording",
                        name_of(longest), rounded_time(trace_.dur_ns(longest))),
            longest, "stream");
}

void TourMaker::add_wait_of_other_device() {
  if (!facts_.vendor) return;
  const Window longest = longest_wait_of_other_device(*facts_.trace, window_);
  if (longest.length_ns() <= 0) return;
  TourStop& stop = add(
      "Where the device waits",
      fmt::format("Here no stream of the {} computes, communicates or copies for {}. The reason "
                  "is unknown: lanescope does not tie this device's work to calls of the CPU. "
                  "What the CPU did meanwhile is in the lanes above.",
                  facts_.vendor->name, rounded_time(longest.length_ns())),
      longest, "idle");
  for (std::uint32_t i = 0; i < lanes_.lanes().size(); ++i)
    if (lanes_.lanes()[i].kind == LaneKind::kDevice && lanes_.lanes()[i].is_main)
      stop.lanes.push_back(i);
}

}  // namespace lanescope::report
