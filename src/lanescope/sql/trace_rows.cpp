#include "lanescope/sql/trace_rows.h"

#include <algorithm>
#include <limits>

#include "lanescope/analysis/device_work.h"

namespace lanescope::sql {

const analysis::SliceNesting& TraceRows::nesting() {
  if (!nesting_)
    nesting_ = analysis::compute_slice_nesting(*trace_, {.python_frames = true, .threads = 0});
  return *nesting_;
}

const analysis::SliceNesting& TraceRows::nesting_without_frames() {
  if (!nesting_without_frames_)
    nesting_without_frames_ = analysis::compute_slice_nesting(*trace_, {.threads = 0});
  return *nesting_without_frames_;
}

const analysis::LaunchLinks& TraceRows::links() {
  if (!links_) links_ = analysis::compute_launch_links(*trace_, 0);
  return *links_;
}

names::PythonFrame TraceRows::frame(std::uint32_t slice) {
  if (!frames_) frames_.emplace(*trace_);
  const names::PythonFrame* const found = frames_->find(trace_->slices().name[slice]);
  return found ? *found : names::PythonFrame{};
}

const std::vector<analysis::StepRange>& TraceRows::steps() {
  if (!steps_) steps_ = analysis::find_steps(*trace_, links());
  return steps_->steps;
}

std::optional<std::int64_t> TraceRows::step_at(std::int64_t time_ns) {
  const auto& all = steps();
  const auto after = std::upper_bound(
      all.begin(), all.end(), time_ns,
      [](std::int64_t time, const analysis::StepRange& step) { return time < step.cpu_start_ns; });
  if (after == all.begin()) return std::nullopt;
  const analysis::StepRange& step = *(after - 1);
  return time_ns < step.cpu_end_ns ? step.number : std::nullopt;
}

std::optional<std::int64_t> TraceRows::step_of_launch(std::uint32_t slice) {
  const SliceId call = links().launch_of[slice];
  return call == kNone<SliceId> ? std::nullopt : step_at(trace_->start_ns(call));
}

std::int64_t TraceRows::device_ns(std::uint32_t slice) {
  if (!device_ns_) {
    device_ns_.emplace(trace_->slices().size(), 0);
    const auto& op_of = links().op_of;
    for (std::uint32_t i = 0; i < op_of.size(); ++i)
      if (op_of[i] != kNone<SliceId> && is_device_work(trace_->kind(SliceId{i}))) {
        // Durations of a damaged file can be anything: the sum stays at the largest number.
        std::int64_t& sum = (*device_ns_)[raw(op_of[i])];
        if (__builtin_add_overflow(sum, trace_->dur_ns(SliceId{i}), &sum))
          sum = std::numeric_limits<std::int64_t>::max();
      }
  }
  return (*device_ns_)[slice];
}

const std::vector<analysis::CollectiveCall>& TraceRows::collectives() {
  if (collectives_) return *collectives_;
  collectives_.emplace();
  for (const auto& device : analysis::compute_device_timelines(*trace_, links()))
    for (const auto& call : analysis::find_collective_calls(*trace_, links(), device)) {
      collectives_->push_back(call);
      collective_devices_.push_back(device.device);
    }
  return *collectives_;
}

const std::vector<std::int64_t>& TraceRows::collective_devices() {
  collectives();
  return collective_devices_;
}

SliceId TraceRows::slice_at(TrackId track, std::int64_t time_ns) {
  const Track& place = trace_->track(track);
  const std::int64_t* const starts = trace_->slices().start_ns.data();
  const std::int64_t* const first = starts + place.first_slice;
  const std::int64_t* const after = std::upper_bound(first, first + place.slice_count, time_ns);
  if (after == first) return kNone<SliceId>;
  SliceId slice{static_cast<std::uint32_t>(after - starts - 1)};
  while (slice != kNone<SliceId> && trace_->end_ns(slice) <= time_ns)
    slice = nesting().parent[raw(slice)];
  return slice;
}

SliceId TraceRows::slice_after(TrackId track, std::int64_t time_ns) const {
  const Track& place = trace_->track(track);
  const std::int64_t* const starts = trace_->slices().start_ns.data();
  const std::int64_t* const first = starts + place.first_slice;
  const std::int64_t* const end = first + place.slice_count;
  const std::int64_t* const found = std::lower_bound(first, end, time_ns);
  return found == end ? kNone<SliceId> : SliceId{static_cast<std::uint32_t>(found - starts)};
}

const TraceRows::ArgSets& TraceRows::arg_sets() {
  if (arg_sets_) return *arg_sets_;
  ArgSets sets;
  const auto add = [&](const Column<ArgsId>& column) {
    for (const ArgsId id : column)
      if (id != kNone<ArgsId>) sets.ids.push_back(id);
  };
  add(trace_->slices().args);
  add(trace_->instants().args);
  std::sort(sets.ids.begin(), sets.ids.end());
  sets.ids.erase(std::unique(sets.ids.begin(), sets.ids.end()), sets.ids.end());
  sets.first_row.reserve(sets.ids.size() + 1);
  std::uint64_t row = 0;
  for (std::size_t i = 0; i < sets.ids.size(); ++i) {
    const std::size_t count = trace_->args(sets.ids[i]).size();
    if (row + count >= std::numeric_limits<std::uint32_t>::max()) {
      sets.ids.resize(i);  // more rows than a table can number
      break;
    }
    sets.first_row.push_back(static_cast<std::uint32_t>(row));
    row += count;
  }
  sets.first_row.push_back(static_cast<std::uint32_t>(row));
  return arg_sets_.emplace(std::move(sets));
}

TraceRows::ArgPlace TraceRows::arg_at(std::uint32_t row) {
  const ArgSets& sets = arg_sets();
  const auto& first = sets.first_row;
  if (row < first[last_set_] || row >= first[last_set_ + 1]) {
    const bool is_next =
        last_set_ + 2 < first.size() && row >= first[last_set_ + 1] && row < first[last_set_ + 2];
    last_set_ = is_next ? last_set_ + 1
                        : static_cast<std::size_t>(
                              std::upper_bound(first.begin(), first.end(), row) - first.begin()) -
                              1;
  }
  return {sets.ids[last_set_], row - first[last_set_]};
}

}  // namespace lanescope::sql
