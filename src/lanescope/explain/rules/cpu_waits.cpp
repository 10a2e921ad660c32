#include "lanescope/explain/rules/cpu_waits.h"

#include <algorithm>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/named_slices.h"
#include "lanescope/explain/rules/loader_waits.h"
#include "lanescope/explain/rules/program_calls.h"

namespace lanescope::explain::rules {

using analysis::Window;

namespace {

// The `enumerate(DataLoader)#..._Iter.__next__` ranges, in order of time. Found by time and thread,
// not by nesting, because nesting does not include recorded Python frames.
std::vector<SliceId> loader_ranges(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::vector<SliceId> ranges;
  for (const SliceId id : slices_starting_with(facts, "enumerate(DataLoader)"))
    if (is_front_end(trace.kind(id))) ranges.push_back(id);  // old files: under the operators
  sort_rows(ranges.begin(), ranges.end(),
            [&](SliceId a, SliceId b) { return trace.start_ns(a) < trace.start_ns(b); });
  return ranges;
}

// Where a wait for a batch costs time: where the GPU waits for the CPU; without a GPU, always.
std::vector<HostStretch> costly_stretches(const Facts& facts) {
  if (facts.main_device) return host_late_stretches(facts);
  std::vector<HostStretch> steps;
  for (const Window& window : facts.steady_windows)
    steps.push_back({facts.cpu->thread, window.start_ns, window.end_ns, kNone<SliceId>});
  return steps;
}

// Calls `visit` with each such range and each stretch of waiting in it.
template <typename Visit>
void visit_batch_waits(const Facts& facts, Visit visit) {
  const Trace& trace = *facts.trace;
  const std::vector<HostStretch> stretches = costly_stretches(facts);
  for (const SliceId range : loader_ranges(facts)) {
    auto stretch = std::upper_bound(
        stretches.begin(), stretches.end(), trace.start_ns(range),
        [](std::int64_t time, const HostStretch& each) { return time < each.end_ns; });
    for (; stretch != stretches.end() && stretch->start_ns < trace.end_ns(range); ++stretch)
      if (stretch->thread == trace.slices().track[raw(range)])
        visit(range, Window{std::max(stretch->start_ns, trace.start_ns(range)),
                            std::min(stretch->end_ns, trace.end_ns(range))});
  }
}

WaitTime make_waiting_for_batches(const Facts& facts) {
  const Trace& trace = *facts.trace;
  WaitTime found;
  visit_batch_waits(facts, [&](SliceId range, const Window& wait) {
    found.time_ns += wait.length_ns();
    if (wait.length_ns() > 0 &&
        (found.longest == kNone<SliceId> || trace.dur_ns(range) > trace.dur_ns(found.longest)))
      found.longest = range;
  });
  return found;
}

}  // namespace

WaitTime waiting_for_batches(const Facts& facts) {
  return made_once<make_waiting_for_batches>(facts);
}

bool has_loader(const Facts& facts) { return !loader_ranges(facts).empty(); }

std::vector<Window> batch_wait_windows(const Facts& facts) {
  std::vector<Window> windows;
  visit_batch_waits(facts, [&](SliceId, const Window& wait) { windows.push_back(wait); });
  return joined(std::move(windows));
}

std::vector<HostStretch> parts_within(const std::vector<HostStretch>& all,
                                      const std::vector<Window>& windows) {
  std::vector<HostStretch> parts;
  std::size_t at = 0;
  for (const HostStretch& each : all) {
    while (at < windows.size() && windows[at].end_ns <= each.start_ns) ++at;
    for (std::size_t i = at; i < windows.size() && windows[i].start_ns < each.end_ns; ++i) {
      HostStretch part = each;
      part.start_ns = std::max(part.start_ns, windows[i].start_ns);
      part.end_ns = std::min(part.end_ns, windows[i].end_ns);
      parts.push_back(part);
    }
  }
  return parts;
}

void advise_about_sleep(Finding& finding) {
  finding.brief = say("The GPU waits while the program sleeps (time.sleep)");
  finding.action =
      say("If it keeps a pace, leave it; if it waits for something: queue.get(), future.result(), "
          "join()");
  finding.try_next = {
      "a loop of time.sleep waits up to one period too long; queue.get(), future.result(), an "
      "event or a condition return at once",
      "if nothing is waited for, remove the sleep"};
}

std::int64_t waiting_within(const Facts& facts, TrackId thread,
                            const std::vector<analysis::Window>& windows) {
  std::vector<HostStretch> of_thread;
  for (const HostStretch& stretch : host_late_stretches(facts))
    if (stretch.thread == thread) of_thread.push_back(stretch);
  std::int64_t waiting_ns = 0;
  for (const HostStretch& part : parts_within(of_thread, windows))
    waiting_ns += part.end_ns - part.start_ns;
  return waiting_ns;
}

}  // namespace lanescope::explain::rules
