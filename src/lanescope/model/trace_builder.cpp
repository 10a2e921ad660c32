// Takes events in any order and appends them to the columns; finish_trace.cpp sorts them.
#include "lanescope/model/trace_builder.h"

#include <algorithm>
#include <utility>

#include "lanescope/model/each_column.h"
#include "lanescope/model/nearly_sorted.h"

namespace lanescope {

std::size_t TraceBuilder::ScalarHash::operator()(const Scalar& scalar) const {
  const std::uint64_t value = scalar.is_text ? ~static_cast<std::uint64_t>(raw(scalar.text))
                                             : static_cast<std::uint64_t>(scalar.number);
  return static_cast<std::size_t>((value ^ (value >> 31)) * 0x9e3779b97f4a7c15);
}

std::size_t TraceBuilder::TrackKeyHash::operator()(const TrackKey& key) const {
  std::uint64_t hash = ScalarHash()(key.tid) ^ (static_cast<std::uint64_t>(raw(key.process)) << 8) ^
                       static_cast<std::uint64_t>(key.kind);
  hash = (hash ^ (static_cast<std::uint64_t>(raw(key.name)) << 32) ^ raw(key.series)) *
         0xd6e8feb86659fd93;
  return static_cast<std::size_t>(hash ^ (hash >> 29));
}

TraceBuilder::TraceBuilder() {
  tables_.categories.push_back({kNone<StringId>, CategoryKind::kNone});
}

CategoryId TraceBuilder::category(std::string_view text) {
  const StringId id = intern(text);
  const auto [it, added] = category_by_text_.try_emplace(raw(id), CategoryId{});
  if (added) {
    // A file with 65535 categories is broken; further ones are counted and left out.
    if (tables_.categories.size() < 65535) {
      it->second = CategoryId{static_cast<std::uint16_t>(tables_.categories.size())};
      tables_.categories.push_back({id, category_kind(text)});
    } else {
      it->second = no_category();
      stats().count(ImportIssue::kFieldLost);
    }
  }
  return it->second;
}

ProcessId TraceBuilder::process(const Scalar& pid) {
  const auto next = ProcessId{static_cast<std::uint32_t>(tables_.processes.size())};
  const auto [it, added] = process_by_pid_.try_emplace(pid, next);
  if (added) {
    tables_.processes.push_back({});
    tables_.processes.back().pid = pid;
  }
  return it->second;
}

TrackId TraceBuilder::find_or_add_track(const TrackKey& key) {
  const auto next = TrackId{static_cast<std::uint32_t>(tables_.tracks.size())};
  const auto [it, added] = track_by_key_.try_emplace(key, next);
  if (added) {
    Track track;
    track.kind = key.kind;
    track.process = key.process;
    track.tid = key.tid;
    track.name = key.name;
    track.series = key.series;
    tables_.tracks.push_back(track);
  }
  return it->second;
}

std::optional<TrackId> TraceBuilder::find_track(const TrackKey& key) const {
  const auto it = track_by_key_.find(key);
  return it == track_by_key_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<TrackId> TraceBuilder::find_thread(ProcessId process, const Scalar& tid) const {
  return find_track({TrackKind::kThread, process, tid, kNone<StringId>, kNone<StringId>});
}

std::optional<TrackId> TraceBuilder::find_stream(ProcessId process, const Scalar& tid) const {
  return find_track({TrackKind::kStream, process, tid, kNone<StringId>, kNone<StringId>});
}

TrackId TraceBuilder::thread_track(const Scalar& pid, const Scalar& tid) {
  return find_or_add_track(
      {TrackKind::kThread, process(pid), tid, kNone<StringId>, kNone<StringId>});
}

TrackId TraceBuilder::stream_track(const Scalar& pid, const Scalar& tid) {
  const std::size_t before = tables_.tracks.size();
  const TrackId id =
      find_or_add_track({TrackKind::kStream, process(pid), tid, kNone<StringId>, kNone<StringId>});
  if (tables_.tracks.size() > before) number_stream(id);
  return id;
}

void TraceBuilder::make_stream(TrackId thread) {
  Track& track = tables_.tracks[raw(thread)];
  TrackKey key{TrackKind::kThread, track.process, track.tid, kNone<StringId>, kNone<StringId>};
  track_by_key_.erase(key);
  key.kind = track.kind = TrackKind::kStream;
  track_by_key_.emplace(key, thread);
  number_stream(thread);
}

void TraceBuilder::number_stream(TrackId stream) {
  Track& track = tables_.tracks[raw(stream)];
  const Scalar& pid = tables_.processes[raw(track.process)].pid;
  if (!pid.is_text && pid.number >= 0 && pid.number <= INT32_MAX)
    track.device = static_cast<std::int32_t>(pid.number);
  if (!track.tid.is_text) track.stream = track.tid.number;
}

TrackId TraceBuilder::async_track(const Scalar& pid, std::string_view category, const Scalar& id) {
  return find_or_add_track(
      {TrackKind::kAsync, process(pid), id, kNone<StringId>, intern(category)});
}

TrackId TraceBuilder::counter_track(const Scalar& pid, std::string_view name,
                                    std::string_view series) {
  return find_or_add_track({TrackKind::kCounter, process(pid), {}, intern(name), intern(series)});
}

void TraceBuilder::expect_slices(std::size_t count) {
  each_slice_column([count](const char*, auto& column) { column.reserve(count); }, tables_.slices);
}

void TraceBuilder::add_slice_at(std::uint32_t event_index, TrackId track, CategoryId category,
                                StringId name, std::int64_t start_ns, std::int64_t dur_ns,
                                ArgsId args) {
  if (dur_ns < 0) {
    stats().count(ImportIssue::kNegativeDuration);
    dur_ns = 0;
  }
  if (!is_possible_time(start_ns) || !durations_.take(dur_ns)) {
    stats().count(ImportIssue::kBadTime);
    start_ns = std::clamp(start_ns, -kMaxTimeNs, kMaxTimeNs);
    dur_ns = 0;
  }
  auto& slices = tables_.slices;
  slices.start_ns.push_back(start_ns);
  slices.dur_ns.push_back(dur_ns);
  slices.name.push_back(name);
  slices.track.push_back(track);
  slices.category.push_back(category);
  slices.args.push_back(args);
  slices.event_index.push_back(event_index);
}

void TraceBuilder::add_instant_at(std::uint32_t event_index, TrackId track, CategoryId category,
                                  StringId name, std::int64_t time_ns, char scope, ArgsId args) {
  auto& instants = tables_.instants;
  instants.time_ns.push_back(time_ns);
  instants.name.push_back(name);
  instants.track.push_back(track);
  instants.category.push_back(category);
  instants.args.push_back(args);
  instants.event_index.push_back(event_index);
  instants.scope.push_back(scope);
}

void TraceBuilder::add_counter(TrackId counter_track, std::int64_t time_ns, double value) {
  tables_.counters.time_ns.push_back(time_ns);
  tables_.counters.track.push_back(counter_track);
  tables_.counters.value.push_back(value);
}

void TraceBuilder::set_process_name(const Scalar& pid, StringId name) {
  tables_.processes[raw(process(pid))].name = name;
}
void TraceBuilder::set_process_labels(const Scalar& pid, StringId labels) {
  tables_.processes[raw(process(pid))].labels = labels;
}
void TraceBuilder::set_process_sort_index(const Scalar& pid, std::int64_t index) {
  tables_.processes[raw(process(pid))].sort_index = index;
}
void TraceBuilder::add_metadata(std::string_view key, std::string_view json) {
  tables_.metadata.push_back({intern(key), intern(json)});
}
void TraceBuilder::set_window(std::int64_t start_ns, std::int64_t end_ns) {
  tables_.values.window_start_ns = start_ns;
  tables_.values.window_end_ns = end_ns;
  tables_.values.has_window_span = true;
}

}  // namespace lanescope
