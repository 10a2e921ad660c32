// Problem: files list events in any order, with begin and end apart and arrows as loose halves;
// analyses want columns that are sorted and whole. Idea: append first, then once, at the end, pair
// what belongs together and sort by one permutation applied column by column. Cost: O(n log n) at
// worst, O(n) for the usual nearly sorted file; one extra column of memory.
#include "lanescope/model/trace_builder.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace lanescope {
namespace {

template <typename T>
void permute(std::vector<T>& column, const std::vector<std::uint32_t>& order) {
  std::vector<T> sorted;
  sorted.reserve(order.size());
  for (const std::uint32_t from : order) sorted.push_back(column[from]);
  column = std::move(sorted);
}

bool is_identity(const std::vector<std::uint32_t>& order) {
  for (std::uint32_t i = 0; i < order.size(); ++i)
    if (order[i] != i) return false;
  return true;
}

// Sorts what is a few sorted runs one behind the other, as writers leave it (thread by thread, then
// the runtime rows).
template <typename Iterator, typename Less>
void sort_runs(Iterator begin, Iterator end, Less less) {
  std::vector<Iterator> bounds{begin};
  while (bounds.back() != end && bounds.size() <= 64)
    bounds.push_back(std::is_sorted_until(bounds.back(), end, less));
  if (bounds.back() != end) return std::sort(begin, end, less);
  while (bounds.size() > 2) {
    std::vector<Iterator> merged{begin};
    for (std::size_t i = 0; i + 1 < bounds.size(); i += 2) {
      const std::size_t last = std::min(i + 2, bounds.size() - 1);
      std::inplace_merge(bounds[i], bounds[i + 1], bounds[last], less);
      merged.push_back(bounds[last]);
    }
    bounds = std::move(merged);
  }
}

// The number at the end of "stream 7", "stream 7 " or "7".
std::optional<std::int64_t> trailing_number(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::size_t at = text.size();
  while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') --at;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || at == text.size())
    return std::nullopt;
  return value;
}

// Of points at one time, starts come first and ends last.
int phase_rank(char phase) { return phase == 's' ? 0 : phase == 't' ? 1 : 2; }

std::int64_t saturating_end(std::int64_t start, std::int64_t dur) {
  std::int64_t end = 0;
  return __builtin_add_overflow(start, dur, &end) ? std::numeric_limits<std::int64_t>::max() : end;
}

std::int64_t saturating_length(std::int64_t start, std::int64_t end) {
  std::int64_t length = 0;
  return __builtin_sub_overflow(end, start, &length) ? std::numeric_limits<std::int64_t>::max()
                                                     : length;
}

}  // namespace

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
    // 65535 categories are a broken file; the rest have none, and are counted.
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
  const TrackId id = thread->second;  // an arrow came first: what it pointed to is this stream
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
  // An end beyond 64-bit time would overflow every later sum; such a slice is cut at the end of
  // time.
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

ArgsId TraceBuilder::merge_args(ArgsId first, ArgsId second) {
  if (first == kNone<ArgsId>) return second;
  if (second == kNone<ArgsId>) return first;
  struct Field {
    StringId key;
    ArgType type;
    std::uint64_t bits;
  };
  std::vector<Field> fields;
  for (const ArgsId id : {first, second}) {
    const ArgsView view = trace_.args_.view(id);
    for (std::size_t i = 0; i < view.size(); ++i)
      fields.push_back({view.field(i).key, view.field(i).type, view.bits(view.field(i))});
  }
  trace_.args_.begin();
  for (const Field& field : fields)
    trace_.args_.add(field.key, arg_key(text(field.key)), field.type, field.bits);
  return trace_.args_.end();
}

std::int64_t TraceBuilder::last_time_ns() const {
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (std::size_t i = 0; i < trace_.slices_.size(); ++i)
    last = std::max(last, saturating_end(trace_.slices_.start_ns[i], trace_.slices_.dur_ns[i]));
  for (const std::int64_t time : trace_.instants_.time_ns) last = std::max(last, time);
  for (const OpenEvent& event : begin_end_) last = std::max(last, event.time_ns);
  for (const OpenEvent& event : async_) last = std::max(last, event.time_ns);
  return last;
}

// Stacks per track, in time order; equal times keep the file's order. An end that names an outer
// begin also closes the inner ones (their end was lost); an end that matches nothing is counted.
void TraceBuilder::pair_begin_end(std::vector<OpenEvent>& events) {
  if (events.empty()) return;
  const std::int64_t last = last_time_ns();
  std::stable_sort(events.begin(), events.end(), [](const OpenEvent& a, const OpenEvent& b) {
    return a.track != b.track ? a.track < b.track : a.time_ns < b.time_ns;
  });
  std::vector<const OpenEvent*> open;
  std::unordered_map<std::uint32_t, std::uint32_t>
      open_by_name;  // an end without begin is told without a walk
  // Closes the innermost begin.
  const auto close = [&](std::int64_t end_ns, ArgsId args) {
    const OpenEvent& begin = *open.back();
    open.pop_back();
    --open_by_name[raw(begin.name)];
    push_slice(begin.track, begin.category, begin.name, begin.time_ns,
               saturating_length(begin.time_ns, end_ns), args, begin.event_index);
  };
  for (std::size_t i = 0; i < events.size(); ++i) {
    const OpenEvent& event = events[i];
    if (event.phase == 'B') {
      open.push_back(&event);
      ++open_by_name[raw(event.name)];
    } else if (const bool any = event.name == kNone<StringId>;
               any ? open.empty() : open_by_name[raw(event.name)] == 0) {
      stats().count(ImportIssue::kEndWithoutBegin);
    } else {
      while (!any && open.back()->name != event.name) {
        stats().count(ImportIssue::kBeginWithoutEnd);
        close(event.time_ns, open.back()->args);
      }
      close(event.time_ns, merge_args(open.back()->args, event.args));
    }
    if (i + 1 == events.size() || events[i + 1].track != event.track) {
      while (!open.empty()) {
        stats().count(ImportIssue::kBeginWithoutEnd);
        close(std::max(last, open.back()->time_ns), open.back()->args);
      }
    }
  }
  events.clear();
  events.shrink_to_fit();
}

// Points of one (category, name, id), in time order: each step or end is reached from the latest
// start or step before it. Ids are reused in old files; time decides. One start with many ends is a
// CUDA graph launch.
void TraceBuilder::pair_flows() {
  if (flow_points_.empty()) return;
  const auto key_less = [](const FlowPoint& a, const FlowPoint& b) {
    if (a.category != b.category) return a.category < b.category;
    if (a.id.is_text != b.id.is_text) return b.id.is_text;
    if (a.id.number != b.id.number) return a.id.number < b.id.number;
    if (a.id.text != b.id.text) return a.id.text < b.id.text;
    return a.name < b.name;
  };
  std::sort(flow_points_.begin(), flow_points_.end(), [&](const FlowPoint& a, const FlowPoint& b) {
    if (key_less(a, b)) return true;
    if (key_less(b, a)) return false;
    if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
    if (a.phase != b.phase) return phase_rank(a.phase) < phase_rank(b.phase);
    return a.event_index < b.event_index;
  });
  const auto add = [&](const FlowPoint& from, const FlowPoint& to) {
    Flow flow;
    flow.id = from.id;
    flow.name = from.name;
    flow.category = from.category;
    flow.from_track = from.track;
    flow.from_ns = from.time_ns;
    flow.to_track = to.track;
    flow.to_ns = to.time_ns;
    flow.binds_enclosing = to.binds_enclosing;
    trace_.flows_.push_back(flow);
  };
  for (std::size_t first = 0; first < flow_points_.size();) {
    std::size_t last = first + 1;
    while (last < flow_points_.size() && !key_less(flow_points_[first], flow_points_[last])) ++last;
    const FlowPoint* from = nullptr;
    bool used = true;
    std::uint64_t orphans = 0;
    // An end that precedes its only start (clock skew between CPU and GPU) still belongs to it.
    const FlowPoint* first_start = nullptr;
    for (std::size_t i = first; i < last && !first_start; ++i)
      if (flow_points_[i].phase == 's') first_start = &flow_points_[i];
    for (std::size_t i = first; i < last; ++i) {
      const FlowPoint& point = flow_points_[i];
      if (point.phase == 's') {
        if (!used && from) ++orphans;
        if (from != &point) used = false;
        from = &point;
        continue;
      }
      const bool early = from == nullptr;
      const FlowPoint* source = early ? first_start : from;
      if (!source) {
        ++orphans;
        continue;
      }
      add(*source, point);
      used = true;
      if (early) {
        from = first_start;  // counted as used when its own turn comes
      }
      if (point.phase == 't') from = &point;
    }
    if (!used && from) ++orphans;
    if (orphans > 0) stats().count(ImportIssue::kOrphanFlow, std::nullopt, orphans);
    first = last;
  }
  flow_points_.clear();
  flow_points_.shrink_to_fit();
  std::sort(trace_.flows_.begin(), trace_.flows_.end(), [](const Flow& a, const Flow& b) {
    if (a.from_ns != b.from_ns) return a.from_ns < b.from_ns;
    if (a.to_ns != b.to_ns) return a.to_ns < b.to_ns;
    if (a.category != b.category) return a.category < b.category;
    if (a.id.number != b.id.number) return a.id.number < b.id.number;
    if (a.id.text != b.id.text) return a.id.text < b.id.text;
    if (a.from_track != b.from_track) return a.from_track < b.from_track;
    return a.to_track < b.to_track;
  });
  trace_.flows_.shrink_to_fit();
}

void TraceBuilder::apply_thread_labels() {
  for (const ThreadLabel& label : labels_) {
    const ProcessId owner = process(label.pid);
    bool found = false;
    for (const TrackKind kind : {TrackKind::kThread, TrackKind::kStream}) {
      const auto it =
          track_by_key_.find({kind, owner, label.tid, kNone<StringId>, kNone<StringId>});
      if (it == track_by_key_.end()) continue;
      found = true;
      Track& track = trace_.tracks_[raw(it->second)];
      if (label.name != kNone<StringId>) track.name = label.name;
      if (label.sort_index) track.sort_index = label.sort_index;
    }
    if (!found) {  // a thread without slices keeps its name
      Track& track = trace_.tracks_[raw(this->track(label.pid, label.tid, false))];
      track.name = label.name;
      track.sort_index = label.sort_index;
    }
  }
  labels_.clear();
}

void TraceBuilder::sort_slices() {
  SliceColumns& slices = trace_.slices_;
  const auto count = static_cast<std::uint32_t>(slices.size());
  // Bucket by track first: within one track most writers are nearly sorted already.
  std::vector<std::uint32_t> first(trace_.tracks_.size() + 1, 0);
  for (const TrackId track : slices.track) ++first[raw(track) + 1];
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<std::uint32_t> order(count);
  std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
  for (std::uint32_t i = 0; i < count; ++i) order[at[raw(slices.track[i])]++] = i;
  const auto less = [&](std::uint32_t a, std::uint32_t b) {
    if (slices.start_ns[a] != slices.start_ns[b]) return slices.start_ns[a] < slices.start_ns[b];
    if (slices.dur_ns[a] != slices.dur_ns[b]) return slices.dur_ns[a] > slices.dur_ns[b];
    return slices.event_index[a] < slices.event_index[b];
  };
  for (std::size_t track = 0; track < trace_.tracks_.size(); ++track) {
    const auto begin = order.begin() + first[track], end = order.begin() + first[track + 1];
    if (!std::is_sorted(begin, end, less)) {
      sort_runs(begin, end, less);
      stats().count(ImportIssue::kOutOfOrder);
    }
    trace_.tracks_[track].first_slice = first[track];
    trace_.tracks_[track].slice_count = first[track + 1] - first[track];
  }
  if (!is_identity(order)) {
    permute(slices.start_ns, order);
    permute(slices.dur_ns, order);
    permute(slices.name, order);
    permute(slices.track, order);
    permute(slices.category, order);
    permute(slices.args, order);
    permute(slices.event_index, order);
  } else {
    slices.start_ns.shrink_to_fit();
    slices.dur_ns.shrink_to_fit();
    slices.name.shrink_to_fit();
    slices.track.shrink_to_fit();
    slices.category.shrink_to_fit();
    slices.args.shrink_to_fit();
    slices.event_index.shrink_to_fit();
  }
}

void TraceBuilder::sort_instants() {
  InstantColumns& instants = trace_.instants_;
  std::vector<std::uint32_t> order(instants.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return instants.time_ns[a] < instants.time_ns[b];
  });
  permute(instants.time_ns, order);
  permute(instants.name, order);
  permute(instants.track, order);
  permute(instants.category, order);
  permute(instants.args, order);
  permute(instants.event_index, order);
  permute(instants.scope, order);
}

void TraceBuilder::sort_counters() {
  CounterColumns& counters = trace_.counters_;
  std::vector<std::uint32_t> order(counters.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return counters.track[a] != counters.track[b] ? counters.track[a] < counters.track[b]
                                                  : counters.time_ns[a] < counters.time_ns[b];
  });
  permute(counters.time_ns, order);
  permute(counters.track, order);
  permute(counters.value, order);
}

void TraceBuilder::name_streams() {
  for (Track& track : trace_.tracks_) {
    if (track.kind != TrackKind::kStream) continue;
    const Scalar& pid = trace_.processes_[raw(track.process)].pid;
    const auto device = pid.is_text ? trailing_number(text(pid.text)) : std::optional(pid.number);
    if (device && *device >= 0 && *device <= INT32_MAX)
      track.device = static_cast<std::int32_t>(*device);
    track.stream =
        track.tid.is_text ? trailing_number(text(track.tid.text)) : std::optional(track.tid.number);
  }
}

void TraceBuilder::find_steps() {
  constexpr std::string_view kPrefix = "ProfilerStep#";
  const SliceColumns& slices = trace_.slices_;
  std::unordered_map<std::uint32_t, std::int64_t> number_by_name;
  for (std::uint32_t i = 0; i < trace_.strings_.size(); ++i) {
    const std::string_view name = trace_.strings_.view(StringId{i});
    if (!name.starts_with(kPrefix)) continue;
    std::int64_t number = 0;
    const auto [end, error] =
        std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) number_by_name.emplace(i, number);
  }
  if (number_by_name.empty()) return;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    const auto it = number_by_name.find(raw(slices.name[i]));
    if (it == number_by_name.end() ||
        trace_.tracks_[raw(slices.track[i])].kind != TrackKind::kThread)
      continue;
    if (kind(slices.category[i]) == CategoryKind::kGpuUserAnnotation) continue;
    trace_.steps_.push_back({it->second, SliceId{i}});
  }
  std::stable_sort(trace_.steps_.begin(), trace_.steps_.end(), [&](const Step& a, const Step& b) {
    return trace_.start_ns(a.slice) < trace_.start_ns(b.slice);
  });
}

void TraceBuilder::find_window() {
  if (trace_.has_window_span_) return;
  const SliceColumns& slices = trace_.slices_;
  struct Extent {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    void cover(std::int64_t start, std::int64_t end) {
      first = std::min(first, start);
      last = std::max(last, end);
    }
  };
  Extent all, spans;  // a recording of several cycles has a span for each
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::int64_t end = saturating_end(slices.start_ns[i], slices.dur_ns[i]);
    all.cover(slices.start_ns[i], end);
    if (kind(slices.category[i]) != CategoryKind::kTrace) continue;
    spans.cover(slices.start_ns[i], end);
    trace_.has_window_span_ = true;
  }
  if (slices.size() == 0) return;
  const Extent& window = trace_.has_window_span_ ? spans : all;
  trace_.window_start_ns_ = window.first;
  trace_.window_end_ns_ = window.last;
}

Result<Trace> TraceBuilder::finish() && {
  if (trace_.slices_.size() + begin_end_.size() + async_.size() >=
      std::numeric_limits<std::uint32_t>::max() - 1)
    return Error{Errc::kLimit, "expected fewer than 4294967294 slices in one trace"};
  stats().events = event_index_;
  pair_begin_end(begin_end_);
  for (OpenEvent& event : async_) {  // S/T/F/p are the older spelling of b/n/e
    if (event.phase == 'b' || event.phase == 'S')
      event.phase = 'B';
    else if (event.phase == 'e' || event.phase == 'F')
      event.phase = 'E';
  }
  for (const OpenEvent& event : async_) {
    if (event.phase == 'B' || event.phase == 'E') continue;
    InstantColumns& instants = trace_.instants_;
    instants.time_ns.push_back(event.time_ns);
    instants.name.push_back(event.name);
    instants.track.push_back(event.track);
    instants.category.push_back(event.category);
    instants.args.push_back(event.args);
    instants.event_index.push_back(event.event_index);
    instants.scope.push_back('t');
  }
  std::erase_if(async_,
                [](const OpenEvent& event) { return event.phase != 'B' && event.phase != 'E'; });
  pair_begin_end(async_);
  pair_flows();
  apply_thread_labels();
  sort_slices();
  sort_instants();
  sort_counters();
  name_streams();
  find_steps();
  find_window();
  trace_.args_.shrink_to_fit();
  return std::move(trace_);
}

}  // namespace lanescope
