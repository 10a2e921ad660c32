// The period of time that makes a piece of evidence readable.
//
// Example: a kernel of 2 us began after a gap of 60 us; its launch call lies in the gap. Shown are
// the gap, the call and the kernel, and a margin of 6 % on both sides.
#include <algorithm>
#include <optional>

#include "lanescope/view/evidence_scene.h"

namespace lanescope::view {
namespace {

using analysis::Gap;
using analysis::Window;
using explain::Facts;

constexpr std::int64_t kShortNs =
    10'000;  // shorter slices count as this long where "near" is decided
constexpr std::size_t kReadableSlices = 160, kFewSlices = 40;

// Window ends come from files: sums must not overflow.
constexpr std::int64_t kFar = std::int64_t{1} << 61U;
std::int64_t bounded(std::int64_t ns) { return std::clamp(ns, -kFar, kFar); }

void include(Window& window, std::int64_t start_ns, std::int64_t end_ns) {
  window.start_ns = std::min(window.start_ns, bounded(start_ns));
  window.end_ns = std::max(window.end_ns, bounded(end_ns));
}

// First slice of the track that starts at `time` or later, as an index into all slices.
std::uint32_t first_from(const Trace& trace, const Track& track, std::int64_t time_ns) {
  const auto begin = trace.slices().start_ns.begin() + track.first_slice;
  return static_cast<std::uint32_t>(std::lower_bound(begin, begin + track.slice_count, time_ns) -
                                    trace.slices().start_ns.begin());
}

const analysis::Gaps* gaps_of(const Facts& facts, SliceId slice) {
  if (!facts.main_device) return nullptr;
  const explain::DeviceFacts* device = device_of_work(facts, slice);
  return device ? &device->gaps : &facts.device().gaps;
}

std::vector<Gap>::const_iterator first_ending_after(const std::vector<Gap>& gaps,
                                                    std::int64_t time_ns) {
  return std::upper_bound(gaps.begin(), gaps.end(), time_ns,
                          [](std::int64_t time, const Gap& gap) { return time < gap.end_ns; });
}

void include_around_work(const Facts& facts, SliceId slice, Window& window) {
  const Trace& trace = *facts.trace;
  if (const auto* gaps = gaps_of(facts, slice)) {
    const auto gap = first_ending_after(gaps->gaps, trace.start_ns(slice) - 1);
    if (gap != gaps->gaps.end() && gap->end_ns == trace.start_ns(slice))
      include(window, gap->start_ns, gap->end_ns);
  }
  const SliceId launch = facts.links.launch_of[raw(slice)];
  if (launch == kNone<SliceId>) return;
  const std::int64_t near_ns = 3 * std::max(window.length_ns(), kShortNs);
  if (window.start_ns - trace.start_ns(launch) <= near_ns)
    include(window, trace.start_ns(launch), trace.start_ns(launch));
}

void include_around_host(const Facts& facts, SliceId slice, Window& window) {
  const Trace& trace = *facts.trace;
  const std::int64_t near_ns = 2 * std::max(window.length_ns(), kShortNs);
  const Window core = window;
  const Track& track = trace.track(slice);
  std::size_t works = 0;
  for (std::uint32_t i = raw(slice); i < track.first_slice + track.slice_count && works < 64; ++i) {
    if (i != raw(slice) && trace.slices().start_ns[i] >= core.end_ns) break;
    for (const SliceId work : facts.links.launched_by(SliceId{i})) {
      if (++works > 64) break;
      if (trace.end_ns(work) - core.end_ns <= near_ns)
        include(window, window.start_ns, trace.end_ns(work));
    }
  }
  if (const auto* gaps = gaps_of(facts, slice))
    for (auto gap = first_ending_after(gaps->gaps, core.start_ns);
         gap != gaps->gaps.end() && gap->start_ns <= core.end_ns; ++gap) {
      if (gap->end_ns > core.end_ns && gap->end_ns - core.end_ns <= near_ns)
        include(window, window.start_ns, gap->end_ns);
      if (gap->start_ns < core.start_ns && core.start_ns - gap->start_ns <= near_ns)
        include(window, gap->start_ns, window.end_ns);
    }
}

// The longest period inside the slice in which the GPU waited for the CPU; if there is none, in
// which it was idle.
std::optional<Window> longest_idle(const Facts& facts, SliceId slice) {
  const analysis::Gaps* gaps = gaps_of(facts, slice);
  if (!gaps) return {};
  const std::int64_t start_ns = facts.trace->start_ns(slice), end_ns = facts.trace->end_ns(slice);
  std::optional<Window> waiting, any;
  const auto keep_longer = [](std::optional<Window>& longest, const Window& next) {
    if (!longest || next.length_ns() > longest->length_ns()) longest = next;
  };
  auto part = std::upper_bound(
      gaps->parts.begin(), gaps->parts.end(), start_ns,
      [](std::int64_t time, const analysis::IdlePart& each) { return time < each.end_ns; });
  for (; part != gaps->parts.end() && part->start_ns < end_ns; ++part) {
    const Window inside{std::max(part->start_ns, start_ns), std::min(part->end_ns, end_ns)};
    keep_longer(any, inside);
    if (part->cause == analysis::IdleCause::kHostLate ||
        part->cause == analysis::IdleCause::kAfterSync)
      keep_longer(waiting, inside);
  }
  return waiting ? waiting : any;
}

// A part of a long operator or annotation that a person can read.
Window readable_part(const Facts& facts, SliceId slice, const Window& whole) {
  const Trace& trace = *facts.trace;
  const Track& track = trace.track(slice);
  const std::uint32_t first = first_from(trace, track, trace.start_ns(slice));
  const std::uint32_t last = first_from(trace, track, trace.end_ns(slice));
  if (last - first <= kReadableSlices) return whole;
  const auto& starts = trace.slices().start_ns;
  Window part{trace.start_ns(slice), starts[first + kReadableSlices]};
  const auto longest = longest_idle(facts, slice);
  if (!longest) return part;
  // A gap that fills much of the evidence is best seen with all of it.
  const std::int64_t gap_ns = longest->length_ns();
  if (gap_ns >= trace.dur_ns(slice) / 4) return whole;
  const std::int64_t margin = gap_ns / 4 + 1'000;
  part = {std::max(longest->start_ns - margin, trace.start_ns(slice)),
          std::min(longest->end_ns + margin, trace.end_ns(slice))};
  std::uint32_t from = first_from(trace, track, part.start_ns);
  std::uint32_t to = first_from(trace, track, part.end_ns);
  if (to - from > kReadableSlices) part.end_ns = starts[from + kReadableSlices];
  if (to - from < kFewSlices) {
    from = std::max(first, from - std::min<std::uint32_t>(from, kFewSlices / 2));
    to = std::min<std::uint32_t>(last, to + kFewSlices / 2);
    include(part, starts[from], starts[to - 1]);
  }
  return {std::max(part.start_ns, trace.start_ns(slice)), std::min(part.end_ns, whole.end_ns)};
}

}  // namespace

const explain::DeviceFacts* device_of_work(const Facts& facts, SliceId slice) {
  if (!is_device_work(facts.trace->kind(slice))) return nullptr;
  const std::int64_t start_ns = facts.trace->start_ns(slice);
  for (const explain::DeviceFacts& device : facts.devices) {
    const auto& work = device.timeline.work;
    auto at = std::lower_bound(
        work.begin(), work.end(), start_ns,
        [](const analysis::DeviceWork& each, std::int64_t time) { return each.start_ns < time; });
    for (; at != work.end() && at->start_ns == start_ns; ++at)
      if (at->slice == slice) return &device;
  }
  return nullptr;
}

Window evidence_window(const Facts& facts, SliceId slice) {
  const Trace& trace = *facts.trace;
  Window window{bounded(trace.start_ns(slice)), bounded(trace.end_ns(slice))};
  if (is_device_work(trace.kind(slice)))
    include_around_work(facts, slice, window);
  else
    include_around_host(facts, slice, window);
  if (is_front_end(trace.kind(slice))) window = readable_part(facts, slice, window);
  const std::int64_t margin = std::max<std::int64_t>(window.length_ns() / 16, 500);
  // Gaps at the ends of the recording are not shown.
  return {std::max(window.start_ns - margin, std::min(window.start_ns, trace.window_start_ns())),
          std::min(window.end_ns + margin, std::max(window.end_ns, trace.window_end_ns()))};
}

}  // namespace lanescope::view
