// Lanes of counters: launch queues, memory, and what the file counts.
#include "lanescope/analysis/launch_queue.h"
#include "lanescope/analysis/thinning.h"
#include "lanescope/view/lane_maker.h"

namespace lanescope::view {

void LaneMaker::add_counter(Lane lane, CounterSeries series) {
  if (series.size() == 0) return;
  series.finish();
  lane.kind = LaneKind::kCounter;
  lane.counter = static_cast<std::uint32_t>(out_.counters_.size());
  lane.slice_count = series.size();
  out_.counters_.push_back(std::move(series));
  out_.lanes_.push_back(lane);
}

void LaneMaker::add_queues() {
  for (const auto& device : facts_.devices) {
    const analysis::LaunchQueue queue =
        analysis::compute_launch_queue(trace_, facts_.links, device.timeline);
    CounterSeries series;
    std::size_t launched = 0, began = 0;
    while (launched < queue.launched_ns.size() || began < queue.began_ns.size()) {
      const bool is_launch =
          began == queue.began_ns.size() || (launched < queue.launched_ns.size() &&
                                             queue.launched_ns[launched] <= queue.began_ns[began]);
      const std::int64_t time = is_launch ? queue.launched_ns[launched++] : queue.began_ns[began++];
      series.add(time, static_cast<double>(launched) - static_cast<double>(began));
    }
    const std::int64_t number = device.timeline.device;
    add_counter({.group = device_group(number),
                 .device = number,
                 .source = CounterSource::kQueueDepth,
                 .unit = CounterUnit::kCount},
                std::move(series));
  }
}

void LaneMaker::add_memory() {
  const std::optional<std::int64_t> memory_end = analysis::find_memory_end(trace_);
  for (const auto& device : facts_.memory.devices) {
    CounterSeries allocated, reserved;
    for (const auto& sample : device.samples) {
      allocated.add(sample.time_ns, static_cast<double>(sample.allocated));
      if (device.has_reserved && sample.reserved > 0)
        reserved.add(sample.time_ns, static_cast<double>(sample.reserved));
    }
    Lane lane{.group = device.is_accelerator() ? device_group(device.id) : cpu_group(),
              .source = CounterSource::kAllocated,
              .unit = CounterUnit::kBytes};
    if (device.is_accelerator()) lane.device = device.id;
    // Nothing was recorded of what came later, so the last level need not be the level then.
    if (memory_end) {
      allocated.end_at(*memory_end);
      reserved.end_at(*memory_end);
    }
    add_counter(lane, std::move(allocated));
    lane.source = CounterSource::kReserved;
    add_counter(lane, std::move(reserved));
  }
}

std::uint32_t LaneMaker::cpu_group() {
  if (facts_.main_thread != kNone<TrackId>) return group_of(trace_.track(facts_.main_thread));
  for (const Track& track : trace_.tracks())
    if (track.kind == TrackKind::kThread) return group_of(track);
  return trace_group();
}

// A counter of a process that has streams belongs to their device.
const Track& LaneMaker::counted_by(const Track& counter) const {
  for (const Track& track : trace_.tracks())
    if (track.kind == TrackKind::kStream && track.process == counter.process) return track;
  return counter;
}

void LaneMaker::add_counters() {
  const auto& counters = trace_.counters();
  for (std::size_t i = 0; i < counters.size();) {
    const TrackId track = counters.track[i];
    CounterSeries series;
    for (; i < counters.size() && counters.track[i] == track; ++i)
      series.add(counters.time_ns[i], counters.value[i]);
    Lane lane{.group = group_of(counted_by(trace_.track(track))), .track = track};
    add_counter(lane, std::move(series));
  }
}

}  // namespace lanescope::view
