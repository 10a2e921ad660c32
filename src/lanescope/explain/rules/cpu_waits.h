// How long the GPU waited while the CPU was in certain code.
#pragma once
#include <cstdint>
#include <type_traits>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

// Time of the steady steps in which the GPU waited for the CPU (host_late_stretches) while the launching thread was in certain
// events: `wanted` accepts the innermost one. It is called as wanted(slice), or as wanted(slice, from, to) for a part of the
// slice.
struct WaitTime {
  std::int64_t time_ns = 0;
  SliceId longest = kNone<SliceId>;  // the event with most of it, unless a caller says otherwise
};
template <typename Wanted>
WaitTime waiting_while(const Facts& facts, Wanted wanted) {
  WaitTime found;
  std::int64_t most_ns = 0;
  analysis::HostReader host(*facts.host);
  for (const HostStretch& stretch : host_late_stretches(facts))
    host.visit(stretch.thread, stretch.start_ns, stretch.end_ns,
               [&](SliceId slice, std::int64_t from, std::int64_t to) {
                 if (slice == kNone<SliceId>) return;
                 if constexpr (std::is_invocable_v<Wanted, SliceId>) {
                   if (!wanted(slice)) return;
                 } else {
                   if (!wanted(slice, from, to)) return;
                 }
                 found.time_ns += to - from;
                 if (to - from <= most_ns) return;
                 most_ns = to - from;
                 found.longest = slice;
               });
  return found;
}

// Time in which the loop asked its DataLoader for the next batch while the GPU waited for the CPU;
// without GPU work, all such time of the steps. `longest`: the longest of these `__next__` ranges.
WaitTime waiting_for_batches(const Facts& facts);

// The parts of stretches that lie in windows; both in order of time.
std::vector<HostStretch> parts_within(const std::vector<HostStretch>& all,
                                      const std::vector<analysis::Window>& windows);

// How long the GPU waits for this CPU thread within these windows, in ns.
std::int64_t waiting_within(const Facts& facts, TrackId thread,
                            const std::vector<analysis::Window>& windows);

// Words and advice for a thread that launches and sleeps (time.sleep) while the GPU waits.
void advise_about_sleep(Finding& finding);

}  // namespace lanescope::explain::rules
