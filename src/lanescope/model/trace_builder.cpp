// Takes events in any order: appends them to the columns, or keeps them to be paired at the end
// (pair_events.cpp, finish_trace.cpp).
#include "lanescope/model/trace_builder.h"

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
  trace_.categories_.push_back({kNone<StringId>, CategoryKind::kNone});
}

CategoryId TraceBuilder::category(std::string_view text) {
  const StringId id = intern(text);
  const auto [it, added] = category_by_text_.try_emplace(raw(id), CategoryId{});
  if (added) {
    // A file with 65535 categories is broken; further ones are counted and left out.
    if (trace_.categories_.size() < 65535) {
      it->second = CategoryId{static_cast<std::uint16_t>(trace_.categories_.size())};
      trace_.categories_.push_back({id, category_kind(text)});
    } else {
      it->second = no_category();
      stats().count(ImportIssue::kFieldLost);
    }
  }
  return it->second;
}

ProcessId TraceBuilder::process(const Scalar& pid) {
  const auto next = ProcessId{static_cast<std::uint32_t>(trace_.processes_.size())};
  const auto [it, added] = process_by_pid_.try_emplace(pid, next);
  if (added) {
    trace_.processes_.push_back({});
    trace_.processes_.back().pid = pid;
  }
  return it->second;
}

TrackId TraceBuilder::find_or_add_track(const TrackKey& key) {
  const auto next = TrackId{static_cast<std::uint32_t>(trace_.tracks_.size())};
  const auto [it, added] = track_by_key_.try_emplace(key, next);
  if (added) {
    Track track;
    track.kind = key.kind;
    track.process = key.process;
    track.tid = key.tid;
    track.name = key.name;
    track.series = key.series;
    trace_.tracks_.push_back(track);
  }
  return it->second;
}

TrackId TraceBuilder::track(const Scalar& pid, const Scalar& tid, bool on_stream) {
  TrackKey key{on_stream ? TrackKind::kStream : TrackKind::kThread, process(pid), tid,
               kNone<StringId>, kNone<StringId>};
  if (flow_only_tracks_.empty()) return find_or_add_track(key);
  if (const auto it = track_by_key_.find(key); it != track_by_key_.end()) {
    if (!on_stream) flow_only_tracks_.erase(raw(it->second));
    return it->second;
  }
  if (!on_stream) return find_or_add_track(key);
  const TrackKey thread_key{TrackKind::kThread, key.process, tid, kNone<StringId>, kNone<StringId>};
  const auto thread = track_by_key_.find(thread_key);
  if (thread == track_by_key_.end() || flow_only_tracks_.erase(raw(thread->second)) == 0)
    return find_or_add_track(key);
  const TrackId id = thread->second;  // an arrow came first: it pointed to this stream
  track_by_key_.erase(thread);
  track_by_key_.emplace(key, id);
  trace_.tracks_[raw(id)].kind = TrackKind::kStream;
  return id;
}

TrackId TraceBuilder::flow_track(const Scalar& pid, const Scalar& tid) {
  TrackKey key{TrackKind::kStream, process(pid), tid, kNone<StringId>, kNone<StringId>};
  if (const auto it = track_by_key_.find(key); it != track_by_key_.end()) return it->second;
  key.kind = TrackKind::kThread;
  const std::size_t before = trace_.tracks_.size();
  const TrackId id = find_or_add_track(key);
  if (trace_.tracks_.size() > before) flow_only_tracks_.insert(raw(id));
  return id;
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
  each_column(trace_.slices_, [count](auto& column) { column.reserve(count); });
}

void TraceBuilder::push_slice(TrackId track, CategoryId category, StringId name,
                              std::int64_t start_ns, std::int64_t dur_ns, ArgsId args,
                              std::uint32_t event_index) {
  SliceColumns& slices = trace_.slices_;
  slices.start_ns.push_back(start_ns);
  slices.dur_ns.push_back(dur_ns);
  slices.name.push_back(name);
  slices.track.push_back(track);
  slices.category.push_back(category);
  slices.args.push_back(args);
  slices.event_index.push_back(event_index);
}

void TraceBuilder::add_slice(TrackId track, CategoryId category, StringId name,
                             std::int64_t start_ns, std::int64_t dur_ns, ArgsId args) {
  if (dur_ns < 0) {
    stats().count(ImportIssue::kNegativeDuration);
    dur_ns = 0;
  }
  // An end beyond 64-bit time would overflow every later sum, so the slice is cut there.
  dur_ns = saturating_end(start_ns, dur_ns) - start_ns;
  push_slice(track, category, name, start_ns, dur_ns, args, event_index_++);
}

void TraceBuilder::add_begin(TrackId track, CategoryId category, StringId name,
                             std::int64_t time_ns, ArgsId args) {
  begin_end_.push_back({time_ns, track, category, 'B', name, args, event_index_++});
}

void TraceBuilder::add_end(TrackId track, StringId name, std::int64_t time_ns, ArgsId args) {
  begin_end_.push_back({time_ns, track, no_category(), 'E', name, args, event_index_++});
}

void TraceBuilder::add_async(char phase, TrackId async_track, CategoryId category, StringId name,
                             std::int64_t time_ns, ArgsId args) {
  async_.push_back({time_ns, async_track, category, phase, name, args, event_index_++});
}

void TraceBuilder::add_instant(TrackId track, CategoryId category, StringId name,
                               std::int64_t time_ns, char scope, ArgsId args) {
  InstantColumns& instants = trace_.instants_;
  instants.time_ns.push_back(time_ns);
  instants.name.push_back(name);
  instants.track.push_back(track);
  instants.category.push_back(category);
  instants.args.push_back(args);
  instants.event_index.push_back(event_index_++);
  instants.scope.push_back(scope);
}

void TraceBuilder::add_counter(TrackId counter_track, std::int64_t time_ns, double value) {
  trace_.counters_.time_ns.push_back(time_ns);
  trace_.counters_.track.push_back(counter_track);
  trace_.counters_.value.push_back(value);
}

void TraceBuilder::add_flow(char phase, TrackId track, CategoryId category, StringId name,
                            const Scalar& id, std::int64_t time_ns, bool binds_enclosing) {
  flow_points_.push_back(
      {time_ns, id, name, track, category, phase, binds_enclosing, event_index_++});
}

void TraceBuilder::set_process_name(const Scalar& pid, StringId name) {
  trace_.processes_[raw(process(pid))].name = name;
}
void TraceBuilder::set_process_labels(const Scalar& pid, StringId labels) {
  trace_.processes_[raw(process(pid))].labels = labels;
}
void TraceBuilder::set_process_sort_index(const Scalar& pid, std::int64_t index) {
  trace_.processes_[raw(process(pid))].sort_index = index;
}
void TraceBuilder::set_thread_name(const Scalar& pid, const Scalar& tid, StringId name) {
  labels_.push_back({pid, tid, name, std::nullopt});
}
void TraceBuilder::set_thread_sort_index(const Scalar& pid, const Scalar& tid, std::int64_t index) {
  labels_.push_back({pid, tid, kNone<StringId>, index});
}
void TraceBuilder::add_metadata(std::string_view key, std::string_view json) {
  trace_.metadata_.push_back({intern(key), intern(json)});
}
void TraceBuilder::set_window(std::int64_t start_ns, std::int64_t end_ns) {
  trace_.window_start_ns_ = start_ns;
  trace_.window_end_ns_ = end_ns;
  trace_.has_window_span_ = true;
}

}  // namespace lanescope
